"""How the client asks each kind of service: one scorer a file."""
