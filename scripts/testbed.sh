#!/usr/bin/env bash
# Two network namespaces with a cable between them, for what goes past the kernel's stack, without hardware:
# taut-near with bed0, taut-far with bed1, some queues each. Needs root.
#   scripts/testbed.sh up [QUEUES]   make it, in place of what is left of another (default: 2 queues)
#   scripts/testbed.sh down          take it down
#   scripts/testbed.sh check         say what is missing here
#   scripts/testbed.sh test          make it, send samples past both kernels, take it down
set -euo pipefail
cd "$(dirname "$0")/.."

queues=2

check() {
    local missing=0
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
    elif ! unshare --net sh -c 'ip link add bed0 type veth peer name bed1' 2>/dev/null; then
        lacks "this kernel has no veth: modprobe veth"
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
        ! [ -e "/run/netns/taut-$end" ] || ip netns del "taut-$end"
    done
}

up() {
    down
    ip netns add taut-near
    ip netns add taut-far
    local of="numrxqueues $queues numtxqueues $queues"
    # shellcheck disable=SC2086
    ip -n taut-near link add bed0 $of type veth peer name bed1 $of netns taut-far
    local number=0 end
    for end in near far; do
        ip -n "taut-$end" link set lo up
        ip -n "taut-$end" address add "10.90.0.$((number + 1))/24" dev "bed$number"
        ip -n "taut-$end" link set "bed$number" up multicast on
        ip -n "taut-$end" route add 224.0.0.0/4 dev "bed$number"
        echo "taut-$end: bed$number, 10.90.0.$((number + 1)), $queues queues"
        number=$((number + 1))
    done
}

# Whoever lacks something is told what, and nothing is made.
refuses() {
    local said
    said=$(setpriv --reuid=65534 --clear-groups bash -c "$(cat scripts/testbed.sh)" scripts/testbed.sh up 2>&1) && {
        echo "testbed: who is not root is not refused" >&2
        return 1
    }
    [[ $said == *"it needs root for network namespaces"* ]] || {
        echo "testbed: who is not root is told: $said" >&2
        return 1
    }
}

# What docs/past-the-kernel.md shows.
run() {
    local taut=${CARGO_TARGET_DIR:-target}/release/taut
    trap down EXIT
    up
    ip netns exec taut-far env TAUT_XDP_INTERFACE=bed1 "$taut" sub string --topic hello --count 3 &
    ip netns exec taut-near env TAUT_XDP_INTERFACE=bed0 "$taut" pub string --topic hello --text hi --count 3
    wait $!
}

case "${1:-}" in
    up)
        queues=${2:-$queues}
        check && up
        ;;
    down) down ;;
    check) check && echo "testbed: all is there" ;;
    test) check && refuses && run ;;
    *)
        sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
esac
