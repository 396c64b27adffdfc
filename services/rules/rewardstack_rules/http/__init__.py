"""The reward server over HTTP: who may ask, what is read of a body, in which protocol, and what is answered.

No scoring enters: an endpoint hands requests to `scoring` and jobs to `jobs`. Flask and gunicorn stay in this room.
"""
