#!/bin/sh
# redis-cli in the containers of cache and queue: it logs in as the stack's own user (redis_server.sh).
PATH=${PATH#/usr/local/sbin:}
REDISCLI_AUTH=$(cat /run/secrets/server_password)
export REDISCLI_AUTH
exec redis-cli --user server "$@"
