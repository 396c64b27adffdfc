#!/bin/sh
# Starts a server with variables that are read from files: with_keys.sh NAME=FILE... PROGRAM ARGUMENT...
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
# Without this the server fails later, with a message that names no remedy.
if [ -n "${MODEL_CACHE:-}" ] && [ "${HF_HUB_OFFLINE:-0}" != 1 ] && ! [ -w "$MODEL_CACHE" ]; then
    echo "ERROR: user $(id -u) cannot write to $MODEL_CACHE (modelCache) — change the owner of the volume, set" \
        "podSecurityContext.fsGroup, or set HF_HUB_OFFLINE=1 if it has the model" >&2
    exit 1
fi
exec "$@"
