"""Code that the client, the reward server and its workers share: deadlines, batching, wire format.

The pipeline uses this package. The package does not depend on routes or on kinds of services.
"""
