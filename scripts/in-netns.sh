#!/usr/bin/env bash
# Runs a command in a network namespace of its own, which has nothing but a loopback interface that
# carries multicast. Nothing the command sends can leave; the namespace goes with its last process.
#   scripts/in-netns.sh COMMAND [ARGUMENT...]
#   scripts/in-netns.sh --check                 can this user make one?
# Root makes it directly, others through a user namespace where the system lets them. There they are who they were, and have
# what the setup takes until the command begins: a test that asks whether it is root is not misled.
set -euo pipefail

setup='ip link set lo up && ip link set lo multicast on && ip route add 224.0.0.0/4 dev lo'

if [ "$(id -u)" = 0 ]; then
    enter=(unshare --net)
    leave=exec
else
    enter=(unshare --user --map-current-user --keep-caps --net)
    leave='exec setpriv --inh-caps=-all --ambient-caps=-all'
fi

case "${1:-}" in
    "")
        echo "usage: scripts/in-netns.sh COMMAND [ARGUMENT...]" >&2
        exit 2
        ;;
    --check)
        exec "${enter[@]}" sh -c "$setup && $leave true" >/dev/null 2>&1
        ;;
    *)
        exec "${enter[@]}" sh -c "$setup && $leave \"\$@\"" in-netns "$@"
        ;;
esac
