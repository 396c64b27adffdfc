#!/bin/sh
# Start nginx's image with the DNS servers of this container, unless DNS_RESOLVER names others: start.sh nginx ARGUMENT...
# They are addresses, so nginx starts even if no name resolves.
set -eu
if [ -z "${DNS_RESOLVER:-}" ]; then
    DNS_RESOLVER=$(awk '$1 == "nameserver" && $2 !~ /%/ { printf "%s ", ($2 ~ /:/ ? "[" $2 "]" : $2) }' /etc/resolv.conf)
    export DNS_RESOLVER
fi
exec /docker-entrypoint.sh "$@"
