#!/bin/sh
# Alias of run_tei_docker.sh.
exec "$(dirname "$0")/run_tei_docker.sh" "$@"
