#!/bin/sh
# A container's health check: `health.sh COMMAND...` is healthy if the command succeeds. The engine restarts a container
# that exits, but not one that hangs: this script ends a service that was healthy and has not been for UNHEALTHY_TIMEOUT
# seconds. A service that was never healthy may be loading a model, and one whose command exits with 3 is alive; both are
# left alone.
#
# It signals every process except the engine's init, which then exits, too. If another program is process 1, it ends nothing.
last_healthy=/dev/shm/last_healthy

timeout -s KILL 20 "$@"
status=$?
if [ "$status" -eq 0 ] || [ "$status" -eq 3 ]; then
    read -r now _ </proc/uptime
    echo "${now%.*}" >"$last_healthy"
    exit $((status != 0))
fi
if [ "$UNHEALTHY_TIMEOUT" -eq 0 ] || ! [ -s "$last_healthy" ] || [ "$(cat /proc/1/comm)" != docker-init ]; then
    exit 1
fi
read -r now _ </proc/uptime
if [ $((${now%.*} - $(cat "$last_healthy"))) -ge "$UNHEALTHY_TIMEOUT" ]; then
    echo "health.sh: unhealthy for $UNHEALTHY_TIMEOUT s (UNHEALTHY_TIMEOUT), ended" >/proc/1/fd/2
    kill -TERM -1
    sleep 5
    kill -KILL -1
fi
exit 1
