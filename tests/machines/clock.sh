#!/bin/sh
# Lets the clock of the stack's Python services be what /tmp/clock says (+2h, -1d): those of nginx and Redis stay, for
# Redis's allocator and libfaketime wait for each other.
set -eu

library=$(echo /usr/lib/*/faketime/libfaketime.so.1)
echo +0 >/tmp/clock
chmod a+rw /tmp/clock
python=$(readlink -f .venv/bin/python)
rm .venv/bin/python
cat >.venv/bin/python <<END
#!/bin/bash
export LD_PRELOAD=$library FAKETIME_TIMESTAMP_FILE=/tmp/clock FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1
exec -a "\$0" $python "\$@"
END
for name in nginx redis-server; do
    printf '#!/bin/sh\nunset LD_PRELOAD\nexec %s "$@"\n' "$(command -v $name)" >/usr/local/bin/$name
done
chmod a+x .venv/bin/python /usr/local/bin/nginx /usr/local/bin/redis-server
