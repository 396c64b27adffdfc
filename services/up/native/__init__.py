"""`make up` without containers: the same services as local processes under supervisor."""
