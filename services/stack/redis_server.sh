#!/bin/sh
# Start Redis in a container: `redis_server.sh redis-server ARGUMENT...`. Its users come from secret files over standard
# input, so that no variable and no command line has a password. `server` is the user of the stack's services. The default
# user is for trainers if the cache is published (compose.cache.yaml). In the queue it needs all rights: Redis replays
# transactions of its file as this user, and drops those that it may not run.
set -eu

password() {
    [ -s "/run/secrets/$1" ] || {
        echo "ERROR: /run/secrets/$1 is empty — use make up, or see compose.yaml" >&2
        exit 1
    }
    cat "/run/secrets/$1"
}

own=$(password server_password)
all='~* &* +@all'
default=">$own $all"
if [ -e /run/secrets/cache_password ]; then
    shared=$(password cache_password)
    default=">$shared $(cat /etc/trainers.acl)"
fi
exec "$@" - <<END
user default on $default
user server on >$own $all
END
