#!/usr/bin/env bash
# Runs every test of the repository, cheap ones first, and says what passed, failed and was left out.
#   scripts/test.sh [STEP...]      only these steps
# With CI=true a step that is left out counts as failed. The last line is `N passed, N failed`.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
# What speeds up the next build is the half of what a build writes, and here there is no next one.
[ "${CI:-}" != true ] || export CARGO_INCREMENTAL=0

# name | what it needs | at most this many seconds | the file or package it is about | command
#   needs -    : nothing
#   needs net  : sends packets; in a network namespace of its own, without that on loopback only
#   needs netns: like net, but not without a namespace
#   needs root : makes interfaces, addresses or packet filters, in a namespace of its own
#   needs valgrind: counts instructions
#   needs pkgs : the packages of scripts/setup.sh
#   needs cargo: compiles what it runs, which counts apart from its seconds: a machine may have nothing compiled yet
steps() {
    cat <<'STEPS'
fmt           | -         | 120  |                    | cargo fmt --all --check
clippy        | -         | 900  |                    | cargo clippy --quiet --workspace --all-targets -- -D warnings
tidy          | -         | 300  |                    | cargo xtask tidy
scripts       | -         | 60   |                    | python3 scripts/test-docs.py --self-test && python3 -B -m unittest discover --quiet --start-directory interop
build         | -         | 900  |                    | cargo test --quiet --workspace --no-run
tests         | net       | 1200 |                    | cargo test --quiet --workspace --offline
loom          | -         | 300  |                    | scripts/test-mem.sh loom
faults        | netns     | 400  |                    | scripts/test-faults.sh
sim           | -         | 900  | bin:taut-sim       | cargo run --quiet --release --package taut-sim -- --seeds 5000
fuzz          | pkgs      | 600  | fuzz               | scripts/fuzz.sh 5
release       | -         | 900  | bin:taut           | cargo build --quiet --release --package taut-cli --package taut-interop-peer --package taut-perf-peer-taut --package taut-perf-peer-floor
bench-gate    | valgrind  | 300  | bin:taut-gate      | cargo xtask bench-gate
layout        | netns,valgrind | 300 | layout        | cargo xtask layout --check
demo          | net       | 60   | bin:taut           | env DEMO_SECONDS=5 "$CARGO_TARGET_DIR/release/taut" demo
perf-smoke    | netns,pkgs | 600  | peers/build.sh     | scripts/perf-smoke.sh
dpdk          | root,pkgs,cargo | 600  | crates/dpdk        | cargo clippy --quiet -p taut-dpdk -p taut-port-dpdk -p taut -p taut-cli -p taut-perf-peer-taut -p taut-perf-peer-floor --features dpdk --all-targets -- -D warnings && cargo test --quiet -p taut-dpdk -p taut-port-dpdk --features dpdk && cargo test --quiet -p taut-perf-peer-floor -p taut --features dpdk --test dpdk --test in_place
docs          | netns     | 300  |                    | python3 scripts/test-docs.py
interop-build | pkgs      | 900  | interop/build.sh   | interop/build.sh
interop       | root,pkgs | 1500 | interop/run.py     | python3 interop/run.py
interop-ipv6  | root,pkgs | 600  | interop/run.py     | python3 interop/run.py --ipv6
interop-move  | root,pkgs | 240  | interop/run.py     | python3 interop/run.py --move && python3 interop/run.py --peers
interop-critical | root,pkgs | 300 | interop/run.py   | python3 interop/run.py --critical
testbed       | root      | 60   | scripts/testbed.sh | scripts/testbed.sh test
interop-xdp   | root,pkgs | 600  | interop/run.py     | python3 interop/run.py --xdp && python3 interop/run.py --xdp --ipv6
interop-dpdk  | root,pkgs,cargo | 1500 | interop/run.py     | cargo build --quiet --release --package taut-interop-peer --features dpdk && python3 interop/run.py --dpdk --jobs 1 --only '*-keyed-volatile-*' && python3 interop/run.py --dpdk --ipv6 --jobs 1
STEPS
    # Part of `tests`, for who wants no other.
    [ "${1:-}" != all ] || echo 'bypass | root,cargo | 900 | | cargo test --quiet -p taut-netlink -p taut-ethernet -p taut-xdp -p taut-port-xdp -p taut-nic -p taut-netd && cargo test --quiet -p taut --test xdp --test netd && cargo test --quiet -p taut-cli --test command -- nic:: netd:: xdp && cargo test --quiet -p taut-perf-peer-floor --test xdp'
}

# Prints why a step cannot run here; nothing if it can.
obstacle() {
    local needs=$1 about=$2 missing
    case "$about" in
        "") ;;
        bin:*)
            cargo metadata --quiet --no-deps --offline --format-version 1 \
                | grep -q "\"kind\":\[\"bin\"\],[^}]*\"name\":\"${about#bin:}\"" \
                || { echo "the workspace has no program ${about#bin:}"; return; }
            ;;
        *) [ -e "$about" ] || { echo "there is no $about"; return; } ;;
    esac
    if [[ $needs == *root* ]]; then
        [ "$(id -u)" = 0 ] || { echo "it needs root: sudo make test"; return; }
    fi
    if [[ $needs == *netns* || $needs == *root* ]]; then
        [ "$has_netns" = yes ] || { echo "this system makes no network namespace"; return; }
    fi
    if [[ $needs == *valgrind* ]]; then
        command -v valgrind >/dev/null || { echo "there is no valgrind: sudo scripts/setup.sh test"; return; }
    fi
    if [[ $needs == *pkgs* ]]; then
        missing=$(scripts/setup.sh --missing test)
        [ -z "$missing" ] || { echo "not installed: ${missing% }"; return; }
    fi
}

# What of a command compiles, tests not run.
compiles() {
    echo 'set -e'
    sed 's/ && /\n/g' <<<"$1" | sed -n '/^cargo \(build\|clippy\) /p; s/^cargo test /&--no-run /p'
}

# Runs a step; what it prints is in $output, too.
run_step() {
    local needs=$1 limit=$2 command=$3 around=() tee code
    if [[ $needs == *net* || $needs == *root* ]]; then
        around=(env TAUT_INTERFACE=lo)
        [ "$has_netns" != yes ] || around=(scripts/in-netns.sh)
    fi
    exec 4> >(exec tee "$output")
    tee=$!
    timeout --kill-after=10 "$limit" "${around[@]}" bash -c "$command" </dev/null >&4 2>&1 4>&- &
    step=$!
    wait "$step"
    code=$?
    step=""
    [ $code -ne 124 ] || echo "stopped after $limit s" >&4
    exec 4>&-
    wait "$tee"
    return $code
}

# A step is in a process group of its own, to which `timeout` passes on what it is told.
stop() {
    [ -z "$step" ] || { kill "$step"; wait "$step"; }
    exit 130
}

trim() { sed 's/^ *//; s/ *$//' <<<"$1"; }

has_netns=$(scripts/in-netns.sh --check && echo yes || echo no)
passed=0 failed=0
summary="" left_out="" ends="" step=""
output=$(mktemp)
trap 'rm -f "$output"' EXIT
trap stop HUP INT TERM
for wanted in "$@"; do
    steps all | grep "^$wanted " >/dev/null || { echo "test.sh: there is no step $wanted" >&2; exit 2; }
done
# What only a feature takes is asked for where there is no network. Without one here a step says what it lacks.
timeout 120 cargo fetch --quiet --locked --target "$(rustc -vV | sed -n 's/^host: //p')" || true
while IFS='|' read -r name needs limit about command <&3; do
    name=$(trim "$name") needs=$(trim "$needs") limit=$(trim "$limit") about=$(trim "$about") command=$(trim "$command")
    [ $# = 0 ] || [[ " $* " == *" $name "* ]] || continue
    reason=$(obstacle "$needs" "$about")
    if [ -n "$reason" ]; then
        result="left out" seconds=0
        left_out+="  $name: $reason"$'\n'
        [ "${CI:-}" != true ] || failed=$((failed + 1))
    else
        printf '\n=== %s: %s\n' "$name" "$command"
        start=$SECONDS
        # A limit of 0 is none.
        if { [[ $needs != *cargo* ]] || run_step "$needs" 0 "$(compiles "$command")"; } \
            && run_step "$needs" "$limit" "$command"; then
            result=passed passed=$((passed + 1))
        else
            result=FAILED failed=$((failed + 1))
            # Who sees only the end of the output is told as well.
            ends+=$'\n'"The end of $name:"$'\n'$(tail -n 25 "$output" | cut -c 1-400)$'\n'
        fi
        seconds=$((SECONDS - start))
        printf '=== %s %s after %s s\n' "$name" "$result" "$seconds"
    fi
    summary+=$(printf '%-14s %-9s %5s s' "$name" "$result" "$seconds")$'\n'
done 3< <(steps "${1:+all}")

printf '\n%s%s' "$summary" "$ends"
if [ -n "$left_out" ]; then
    printf '\nLeft out:\n%s' "$left_out"
    [ "${CI:-}" != true ] || echo "CI=true: what is left out counts as failed."
fi
# Whatever is built or run then fails, and rarely says so.
free=$(df --output=avail --block-size=MiB "$CARGO_TARGET_DIR" 2>/dev/null | tail -n 1 | tr -dc 0-9)
[ "${free:-1000}" -ge 500 ] || printf '\nThe disk of %s is full: %s MiB are left, a first run writes 6 GiB.\n' "$CARGO_TARGET_DIR" "$free"
printf '\n%s passed, %s failed\n' "$passed" "$failed"
[ "$failed" = 0 ]
