"""What NeMo Gym starts for a server that runs already: it waits, and requests go to the configuration's host and port."""

from threading import Event

Event().wait()
