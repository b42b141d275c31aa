#!/usr/bin/env bash
# Two network namespaces with a cable between them, for what goes past the kernel's stack, without hardware:
# taut-near with bed0, taut-far with bed1, some queues each. Needs root.
#   scripts/testbed.sh up [QUEUES]   make it, in place of what is left of another (default: 2 queues)
#   scripts/testbed.sh down          take it down
#   scripts/testbed.sh check         say what is missing here
#   scripts/testbed.sh test          make another (taut-test-near, taut-test-far), send samples past both kernels, take it down
set -euo pipefail
cd "$(dirname "$0")/.."

queues=2
# What the names of its namespaces begin with.
bed=${TAUT_TESTBED:-taut}

check() {
    local missing=0 said
    lacks() {
        echo "testbed: $1" >&2
        missing=1
    }
    command -v ip >/dev/null || lacks "there is no ip: install iproute2"
    if [ "$(id -u)" != 0 ]; then
        lacks "it needs root for network namespaces and programs of XDP: sudo make testbed"
        return 1
    fi
    if ! unshare --net true 2>/dev/null; then
        lacks "this process may make no network namespace (unshare --net): give it CAP_SYS_ADMIN"
    elif ! said=$(unshare --net ip link add bed0 type veth peer name bed1 2>&1); then
        case "$said" in
            *"not permitted"*) lacks "this process may make no interface (ip link add): give it CAP_NET_ADMIN" ;;
            *) lacks "this kernel has no veth: modprobe veth" ;;
        esac
    fi
    # BPF_MAP_CREATE of a map for AF_XDP sockets: the privilege, and the kernel's support, in one call.
    python3 - <<'PYTHON' || missing=1
import ctypes, os, platform, struct, sys
number = {"x86_64": 321, "aarch64": 280}.get(platform.machine())
libc = ctypes.CDLL(None, use_errno=True)
attributes = struct.pack("IIII", 17, 4, 4, 1).ljust(72, b"\0")
if number is None:
    sys.exit("testbed: not known how this machine calls bpf(2)")
if libc.syscall(number, 0, attributes, len(attributes)) < 0:
    error = ctypes.get_errno()
    remedy = "give it CAP_BPF and CAP_NET_ADMIN of the host" if error == 1 else "it needs CONFIG_XDP_SOCKETS"
    sys.exit(f"testbed: bpf(2) with a map of AF_XDP sockets: {os.strerror(error)}: {remedy}")
PYTHON
    return $missing
}

down() {
    for end in near far; do
        ! [ -e "/run/netns/$bed-$end" ] || ip netns del "$bed-$end"
    done
}

up() {
    down
    ip netns add "$bed-near"
    ip netns add "$bed-far"
    local of="numrxqueues $queues numtxqueues $queues"
    # shellcheck disable=SC2086
    ip -n "$bed-near" link add bed0 $of type veth peer name bed1 $of netns "$bed-far"
    local number=0 end
    for end in near far; do
        ip -n "$bed-$end" link set lo up
        ip -n "$bed-$end" address add "10.90.0.$((number + 1))/24" dev "bed$number"
        ip -n "$bed-$end" link set "bed$number" up multicast on
        ip -n "$bed-$end" route add 224.0.0.0/4 dev "bed$number"
        echo "$bed-$end: bed$number, 10.90.0.$((number + 1)), $queues queues"
        number=$((number + 1))
    done
}

# Whoever lacks something is told what, and nothing is made.
refuses() {
    refuses_without "it needs root for network namespaces" --reuid=65534 --clear-groups &&
        refuses_without "(unshare --net): give it CAP_SYS_ADMIN" --bounding-set=-sys_admin &&
        refuses_without "(ip link add): give it CAP_NET_ADMIN" --bounding-set=-net_admin &&
        refuses_without "bpf(2) with a map of AF_XDP sockets" --bounding-set=-sys_admin,-bpf
}

# Is who has given this up told that?
refuses_without() {
    local told=$1 said
    shift
    said=$(TAUT_TESTBED=$bed setpriv "$@" bash -c "$(cat scripts/testbed.sh)" scripts/testbed.sh up 2>&1) && {
        echo "testbed: setpriv $*: is not refused" >&2
        return 1
    }
    [[ $said == *"$told"* ]] || {
        echo "testbed: setpriv $*: is told: $said" >&2
        return 1
    }
    ! [ -e "/run/netns/$bed-near" ] || {
        echo "testbed: setpriv $*: is refused, and $bed-near is there" >&2
        return 1
    }
}

# What docs/past-the-kernel.md shows.
run() {
    local taut=${CARGO_TARGET_DIR:-target}/release/taut
    up
    ip netns exec "$bed-far" env TAUT_XDP_INTERFACE=bed1 "$taut" sub string --topic hello --count 3 &
    ip netns exec "$bed-near" env TAUT_XDP_INTERFACE=bed0 "$taut" pub string --topic hello --text hi --count 3
    wait $!
    down
}

# The same while there is a bed that somebody has made, or else one that is made here: it stays as it is.
run_beside() {
    local others=(/run/netns/taut-near /run/netns/taut-far) before
    trap 'down; [ -z "$made" ] || bed=$made down' EXIT
    if ! stat "${others[@]}" >/dev/null 2>&1; then
        made=taut
        bed=$made up
    fi
    before=$(stat --format=%i "${others[@]}")
    run
    [ "$(stat --format=%i "${others[@]}")" = "$before" ] || {
        echo "testbed: the bed that was there is another one" >&2
        return 1
    }
}

case "${1:-}" in
    up)
        queues=${2:-$queues}
        check && up
        ;;
    down) down ;;
    check) check && echo "testbed: all is there" ;;
    test)
        bed=taut-test made=
        check && down && refuses && run_beside
        ;;
    *)
        sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
esac
