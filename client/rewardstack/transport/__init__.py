"""How the client reaches a service: one event loop, several URLs, bounded patience, and no more load than it takes."""
