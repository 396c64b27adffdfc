#!/bin/bash
# Whether a DNS server answers that a name exists, or that it does not: dns_answers.sh NAME SERVER...
# A server is an address as nginx's `resolver` takes it: 10.0.0.10, 10.0.0.10:5353 or [fd00::10].
set -u
name=${1%.}
shift

# RFC 1035, section 4.1: a header that asks for recursion, then the name's labels, type A, class IN.
query='\x52\x53\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00'
IFS=. read -ra labels <<<"$name"
for label in "${labels[@]}"; do
    query+=$(printf '\\x%02x%s' "${#label}" "$label")
done
query+='\x00\x00\x01\x00\x01'

for server in "$@"; do
    [[ $server =~ ^\[([^]]*)\](:([0-9]+))?$ || $server =~ ^([^:]*)(:([0-9]+))?$ ]]
    exec 3<>"/dev/udp/${BASH_REMATCH[1]}/${BASH_REMATCH[3]:-53}" || continue
    # In one packet: bash writes each line by itself, and a byte may be a line's end.
    # shellcheck disable=SC2059 # the query is the format: its escapes are bytes
    printf "$query" | dd bs=512 iflag=fullblock status=none >&3
    read -r _ _ _ code < <(timeout 1 head -c 4 <&3 2>/dev/null | od -An -tu1)
    case $((${code:-2} % 16)) in # 0: it exists; 3: it does not; 2: the server cannot say
    0 | 3) exit 0 ;;
    esac
done
exit 1
