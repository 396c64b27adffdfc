#!/bin/sh
# Start nginx's image with the DNS servers of this container, unless DNS_RESOLVER names others: start.sh nginx ARGUMENT...
# They are addresses, so nginx starts even if no name resolves. It would then answer 502 as long as it knows no address,
# so it waits, for at most a minute, while no DNS server answers.
set -eu
if [ -z "${DNS_RESOLVER:-}" ]; then
    DNS_RESOLVER=$(awk '$1 == "nameserver" && $2 !~ /%/ { printf "%s ", ($2 ~ /:/ ? "[" $2 "]" : $2) }' /etc/resolv.conf)
    export DNS_RESOLVER
fi
if command -v bash >/dev/null; then # other shells send no UDP
    end=$(($(date +%s) + 60))
    # shellcheck disable=SC2086 # several addresses
    until bash "$(dirname "$0")/dns_answers.sh" "${RULES_SERVER%%:*}" $DNS_RESOLVER; do
        if [ "$(date +%s)" -ge "$end" ]; then
            echo "DNS does not answer ($DNS_RESOLVER); the gateway starts all the same" >&2
            break
        fi
        sleep 1
    done
fi
exec /docker-entrypoint.sh "$@"
