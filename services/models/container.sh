# What the scripts share that serve a model in a container. They set -eu and $root before they read this.
# shellcheck shell=sh disable=SC2154

fail() {
    echo "error: $1" >&2
    echo "  remedy: $2" >&2
    exit 1
}

from_dotenv() {
    sed -n "s/^$1=//p" "$root/.env"
}

healthy() {
    if command -v curl >/dev/null; then
        curl -fsS -o /dev/null --max-time 2 "http://127.0.0.1:$PORT/health" 2>/dev/null
    else
        python3 -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=2)' \
            "http://127.0.0.1:$PORT/health" 2>/dev/null
    fi
}
