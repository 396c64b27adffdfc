#!/bin/sh
# A container's health check: `health.sh COMMAND...` is as well as the command. The engine starts again what ends, and by
# itself leaves alone what hangs: where a service was well and has not been for UNHEALTHY_TIMEOUT, this ends it. One that was
# not well yet is left in peace, for it may be loading a model; so is one whose command exits with 3, for it lives.
#
# Everything but the init of the engine is ended, which then ends as well; where something else is process 1, nothing is.
last_well=/dev/shm/last_well

timeout -s KILL 20 "$@"
status=$?
if [ "$status" -eq 0 ] || [ "$status" -eq 3 ]; then
    read -r now _ </proc/uptime
    echo "${now%.*}" >"$last_well"
    exit $((status != 0))
fi
if [ "$UNHEALTHY_TIMEOUT" -eq 0 ] || ! [ -s "$last_well" ] || [ "$(cat /proc/1/comm)" != docker-init ]; then
    exit 1
fi
read -r now _ </proc/uptime
if [ $((${now%.*} - $(cat "$last_well"))) -ge "$UNHEALTHY_TIMEOUT" ]; then
    echo "health.sh: not well for $UNHEALTHY_TIMEOUT s (UNHEALTHY_TIMEOUT), ended" >/proc/1/fd/2
    kill -TERM -1
    sleep 5
    kill -KILL -1
fi
exit 1
