"""Start, query and stop the stack, in containers (`compose`), as local processes (`native`) or under `apptainer`."""
