"""How the stack is started and asked: as containers (`compose`) or as local processes (`native`)."""
