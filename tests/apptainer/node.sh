#!/bin/bash
# What a user of a cluster does on one node, and what is found of it: run by root of a container, in a copy of the tree.
# node.sh IMAGES...: what each step says and its exit status go into found/.
set -u

found=$PWD/found
mkdir -p "$found"
chown user "$found"
useradd -m other

# as USER STEP COMMAND: its output is found/STEP.log, its exit status found/STEP.status.
as() {
    su "$1" -s /bin/bash -c "
        export APPTAINER_TMPDIR=/scratch APPTAINER_MKSQUASHFS_ARGS='-comp zstd -Xcompression-level 1'
        # Not the time is tried here, on a machine that has other work.
        export JUDGE=$JUDGE EMBEDDING=$EMBEDDING UP_TIMEOUT=600 $SOURCES
        cd '$PWD'; $3" >"$found/$2.log" 2>&1 </dev/null
    echo $? >"$found/$2.status"
}

# What is in the way of a Python that looks into the home: modules that end it, and a line that does at its start.
as user poison '
    for version in $(seq 10 20); do
        site=~/.local/lib/python3.$version/site-packages
        mkdir -p $site
        for module in usercustomize rewardstack gunicorn aiohttp supervisor vllm torch; do
            echo "raise SystemExit(\"poisoned\")" >$site/$module.py
        done
        echo "import os; os._exit(77)" >$site/poison.pth
    done'
files() { find / /scratch /dev/shm -xdev -path "$PWD" -prune -o -user user -print | sort; }
processes() { ps -u user -o stat=,args= | grep -v '^Z' || true; }
# Wait until the user has no process, a minute at most: what is ended may be late on a busy machine.
until_gone() { for _ in $(seq 60); do [ -z "$(processes)" ] && break; sleep 1; done; }

files >"$found/files-before"
as user build "apptainer/stack.sh build $*"
as user again "apptainer/stack.sh build $*"
as user up "$(cat page-up.sh)"
as user check "$(cat page-check.sh)"
as user endpoints 'stat -c %a /tmp/rewardstack-user /tmp/rewardstack-user/endpoints.json; cat /tmp/rewardstack-user/endpoints.json'
as other other-user '
    for port in 6000 8000 8080; do
        for path in /health /v1/models /v1/reward_types /info /metrics /openapi.json; do
            echo "$port $path $(curl -s -o /dev/null -w "%{http_code}" localhost:$port$path)"
        done
    done
    ls /tmp/rewardstack-user; cat /tmp/rewardstack-user/endpoints.json'
processes >"$found/processes"
# A job that is killed: nothing of it can tidy up.
as user killed 'kill -9 -1'
until_gone
# Meanwhile somebody else has taken a port.
su other -c 'cd; exec python3 -m http.server --bind 127.0.0.1 6000' >/dev/null 2>&1 &
for _ in $(seq 60); do curl -s -o /dev/null localhost:6000 && break; sleep 1; done
as user up-again "apptainer/stack.sh up --endpoints $found/endpoints.json; apptainer/stack.sh status"
cp "$found/endpoints.json" "$found/endpoints-again"
as user down "$(cat page-down.sh)"
until_gone
processes >"$found/processes-after"
files >"$found/files-after"
as user run-help 'for image in apptainer/images/*.sif; do apptainer run-help $image; done'
as user instance '
    cd /var/tmp; images=$OLDPWD/apptainer/images; export APPTAINER_CONFIGDIR=/var/tmp/instances
    apptainer instance start --cleanenv --no-home $images/redis.sif one --port 6399 --save ""
    for second in $(seq 60); do apptainer exec instance://one redis-cli -p 6399 ping && break; sleep 1; done
    apptainer instance stop one
    apptainer run --cleanenv --no-home $images/rules.sif rewardstack --version'
