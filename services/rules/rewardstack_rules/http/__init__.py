"""The reward server over HTTP: authentication, admission, request bodies, protocols and replies.

This package does not score: endpoints pass requests to `scoring` and jobs to `jobs`. Only this package uses Flask and
gunicorn.
"""
