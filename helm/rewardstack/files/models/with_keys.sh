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
exec "$@"
