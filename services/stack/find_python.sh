#!/bin/sh
# Print the path of a Python >= 3.10 that can make virtual environments. If there is none, install it on Debian as root,
# unless INSTALL=never. The Python that PYTHON names comes first.
# `find_python.sh any`: that of .venv, else any Python >= 3.10; installs nothing.
set -eu

if [ "${1:-}" = any ]; then own=.venv/bin/python modules=sys; else own='' modules="sys, venv, ensurepip"; fi

find_python() {
    for name in "$own" "${PYTHON:-}" python3 python3.14 python3.13 python3.12 python3.11 python3.10; do
        found=$(command -v "$name") || continue
        "$found" -c "import $modules; sys.exit(sys.version_info < (3, 10))" >/dev/null 2>&1 && return
    done
    return 1
}

if ! find_python; then
    [ -z "$own" ] || exit 1
    sudo="sudo "
    if [ "$(id -u)" -eq 0 ]; then sudo=; fi
    install=${INSTALL:-$(cat .env.local .env 2>/dev/null | sed -n 's/^INSTALL=//p' | head -n 1)}
    if [ -z "$sudo" ] && [ "$install" != never ] && command -v apt-get >/dev/null; then
        echo "==> installing python3, python3-venv (apt-get); INSTALL=never to do it yourself" >&2
        export DEBIAN_FRONTEND=noninteractive
        apt-get -qq update >/dev/null || true
        apt-get -qq install -y --no-install-recommends python3 python3-venv >/dev/null || true
    fi
    find_python || {
        echo "ERROR: no Python >= 3.10 with venv and ensurepip was found" >&2
        echo "  remedy: install one, or set PYTHON to its path; on Debian:" >&2
        echo "      ${sudo}apt-get install python3 python3-venv" >&2
        exit 1
    }
fi
if [ -z "$own" ] && [ "$found" != "$(command -v "${PYTHON:-$found}")" ] && [ ! -e .venv/bin/pip ]; then
    echo "warning: PYTHON: $PYTHON is not a Python >= 3.10 with venv and ensurepip; .venv is created with $found" >&2
fi
echo "$found"
