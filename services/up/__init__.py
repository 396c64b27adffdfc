"""Start, query and stop the stack: as containers (`compose`), local processes (`native`) or under `apptainer`."""
