"""What NeMo Gym starts for a server that runs already: it waits. Requests go to the host and port of the configuration."""

from threading import Event

Event().wait()
