"""Code below the pipeline that client, reward server and workers share: deadlines, batching, wire format.

It does not depend on routes or on kinds of services.
"""
