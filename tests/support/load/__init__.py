"""A steady load of samples whose worth is known, what is done to a stack meanwhile, and what became of each sample."""
