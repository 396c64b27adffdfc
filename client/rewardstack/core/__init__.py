"""What the client, the reward server and its workers share beneath the pipeline: deadlines, batching, wire format.

Nothing enters that knows a kind of service, or a route; `core` imports no other room.
"""
