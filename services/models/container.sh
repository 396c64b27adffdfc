# Shared by the scripts that serve a model in a container. They set -eu and $root before sourcing this, then $name of the
# container, $PORT and $HOST.
# shellcheck shell=sh disable=SC2034,SC2154

fail() {
    echo "ERROR: $1 — $2" >&2
    exit 1
}

from_dotenv() {
    sed -n "s/^$1=//p" "$root/.env.local" "$root/.env" 2>/dev/null | head -n 1
}

# require_docker SCRIPT: fail without a Docker engine, and suggest SCRIPT instead.
require_docker() {
    command -v docker >/dev/null || fail "docker is not installed" "install it, or use $1"
    docker info >/dev/null 2>&1 || fail "the Docker engine does not answer" "start it, or use $1"
}

# Set $gpu to the first usable GPU; empty if there is none.
find_gpu() {
    gpu=
    command -v nvidia-smi >/dev/null || return 0
    visible=${CUDA_VISIBLE_DEVICES-0}
    if [ -n "$visible" ] && nvidia-smi --id="${visible%%,*}" --list-gpus 2>/dev/null | grep -q GPU; then
        gpu=${visible%%,*}
    fi
}

# show COMMAND...: print it, quoted for the shell.
show() {
    line=
    for argument in "$@"; do
        case $argument in
            '' | *[!A-Za-z0-9_./:=,@-]*) argument="'$(printf %s "$argument" | sed "s/'/'\\\\''/g")'" ;;
        esac
        line="$line${line:+ }$argument"
    done
    printf '%s\n' "$line"
}

secrets=$HOME/.cache/rewardstack/secrets

# keep_secret VARIABLE TEXT: write the text to a file for the container $name, which with_keys.sh reads into the variable.
# `docker inspect` would show a variable of the container itself.
keep_secret() {
    (umask 077 && mkdir -p "$secrets/$name" && printf %s "$2" >"$secrets/$name/$1")
}

healthy() {
    if command -v curl >/dev/null; then
        curl --noproxy '*' -fsS -o /dev/null --max-time 2 "http://127.0.0.1:$PORT/health" 2>/dev/null
    else
        no_proxy='*' python3 -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=2)' \
            "http://127.0.0.1:$PORT/health" 2>/dev/null
    fi
}

# Label of containers that were started here; one of the same name without it belongs to someone else.
made_here=rewardstack.launcher

# Remove the container $name of an earlier run of the script.
remove_own() {
    there=$(docker ps --all --quiet --filter "name=^/?$name\$")
    [ -n "$there" ] || return 0
    own=$(docker ps --all --quiet --filter "name=^/?$name\$" --filter "label=$made_here")
    [ "$there" = "$own" ] || fail "a container $name exists that this script did not create" \
        "docker rename $name another-name, or docker rm -f $name if nobody needs it"
    docker rm --force "$name" >/dev/null
}

# run_detached WHAT ARGUMENT...: replace an earlier container, docker run in the background, and wait until it is healthy.
run_detached() {
    what=$1
    shift
    remove_own
    docker run --detach --name "$name" --label "$made_here" --restart unless-stopped "$@" >/dev/null ||
        fail "docker run failed" "see its output above"
    echo "==> waiting until $what answers (docker logs -f $name)"
    left=${MODEL_UP_TIMEOUT:-$(from_dotenv MODEL_UP_TIMEOUT)}
    until healthy; do
        restarts=$(docker inspect --format '{{.RestartCount}}' "$name")
        if [ "$restarts" -gt 0 ] || [ "$left" -le 0 ]; then
            docker logs --tail 20 "$name" >&2
            # Disable restarts first: a restarting container would survive `docker stop`.
            docker update --restart no "$name" >/dev/null
            docker stop "$name" >/dev/null
            fail "$what did not start; the last lines of its log are above" "docker logs $name"
        fi
        sleep 2
        left=$((left - 2))
    done
    echo "$what is up. In the shell of your trainer:"
}

# announce SERVER KEY: print the variables to export; SERVER is their prefix, such as LLM_JUDGE_SERVER.
announce() {
    here=localhost
    if command -v getent >/dev/null && ! getent ahosts localhost | grep -q '^127\.0\.0\.1 '; then here=127.0.0.1; fi
    echo
    echo "  export $1_URL=http://$here:$PORT"
    if [ "$HOST" = 0.0.0.0 ]; then
        address=$(hostname -I 2>/dev/null | cut -d ' ' -f 1)
        echo
        echo "On other nodes:"
        echo
        echo "  export $1_URL=http://${address:-$(hostname)}:$PORT"
    fi
    if [ -n "$2" ]; then
        echo "  export $1_API_KEY=...    # as it is set here"
    elif [ "$HOST" = 0.0.0.0 ]; then
        echo
        echo "warning: $1_API_KEY is empty: anyone who reaches this machine can use the server"
    fi
}
