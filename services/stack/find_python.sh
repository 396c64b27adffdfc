#!/bin/sh
# Print the path of a Python >= 3.10 that can make virtual environments; on Debian as root, install one where none is.
# `find_python.sh any` prints that of any Python >= 3.10, and installs none. The one that PYTHON names comes first.
set -eu

modules=", venv, ensurepip"
if [ "${1:-}" = any ]; then modules=""; fi

usable() {
    "$1" -c "import sys$modules; sys.exit(sys.version_info < (3, 10))" >/dev/null 2>&1
}

find_python() {
    for name in "${PYTHON:-}" python3 python3.14 python3.13 python3.12 python3.11 python3.10; do
        if found=$(command -v "$name") && usable "$found"; then return 0; fi
    done
    return 1
}

if ! find_python; then
    if [ -z "$modules" ]; then exit 1; fi
    if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
        echo "==> installing python3 and python3-venv with apt-get" >&2
        export DEBIAN_FRONTEND=noninteractive
        apt-get -qq update >/dev/null || true
        apt-get -qq install -y --no-install-recommends python3 python3-venv >/dev/null || true
    fi
    find_python || {
        echo "ERROR: no Python >= 3.10 with venv and ensurepip was found" >&2
        echo "  remedy: install it (Debian: apt-get install python3 python3-venv), or set PYTHON to its path" >&2
        exit 1
    }
fi
if [ -n "$modules" ] && [ "$found" != "$(command -v "${PYTHON:-$found}")" ] && [ ! -e .venv/bin/pip ]; then
    echo "warning: PYTHON: $PYTHON is no Python >= 3.10 with venv and ensurepip; .venv is made with $found" >&2
fi
echo "$found"
