"""Put a stack under a steady load of samples with known scores, disturb it, and report what became of each sample."""
