"""Run the stack without containers: the same services as local processes under supervisord."""
