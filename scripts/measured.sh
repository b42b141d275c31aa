#!/usr/bin/env bash
# Whether a run of taut perf has measured each of these peers, by each of these transports if there are any: what is absent
# fails no run.
#   scripts/measured.sh LINES "PEER..." ["TRANSPORT..."]
set -euo pipefail
lines=$1 peers=$2 transports=${3:-any}

missing=0
for peer in $peers; do
    for transport in $transports; do
        by=
        [ "$transport" = any ] || by="\"transport\":\"$transport\",.*"
        if ! grep -q "\"peer\":\"$peer\",.*$by\"status\":\"ok\"" "$lines"; then
            echo "measured: $peer was not measured${by:+ by $transport}: $lines" >&2
            missing=1
        fi
    done
done
exit $missing
