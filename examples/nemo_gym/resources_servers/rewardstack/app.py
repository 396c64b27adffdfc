"""NeMo Gym starts this for a server that runs already: it waits, and requests go to the host and port that are told."""

from threading import Event

Event().wait()
