#!/bin/sh
# Start a server with variables that are read from files: with_keys.sh NAME=FILE... PROGRAM ARGUMENT...
# An empty file sets nothing.
set -eu

while :; do
    case ${1:-} in
        [A-Z]*=*) ;;
        *) break ;;
    esac
    value=$(cat "${1#*=}")
    [ -z "$value" ] || export "${1%%=*}=$value"
    shift
done
# The server's own message about a failed download has no remedy.
if [ -n "${MODEL_CACHE:-}" ] && [ -z "${HF_HUB_OFFLINE:-}" ] && ! [ -w "$MODEL_CACHE" ]; then
    echo "WARNING: user $(id -u) cannot write to $MODEL_CACHE (modelCache) — to download a model, change the owner of the" \
        "volume or set podSecurityContext; if it has the model, set HF_HUB_OFFLINE=1" >&2
fi
exec "$@"
