#!/usr/bin/env bash
# Kills, stops and scrambles processes that share memory, and looks at those that are left.
#   scripts/test-faults.sh [--full] [SCENARIO...]      only these; without a name all
# In short it takes a minute, with --full as long as docs/reliability.md says. The scenario `address` is
# `scramble` under the address sanitizer: it needs the nightly toolchain with the component rust-src, and
# without a name it runs with --full only.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-$PWD/target}
rounds=3 seconds=3 windows=2 percent=50 scramble=3 cycles=300 participants=30
all=(kill stop scramble attach users memory containers)
if [ "${1:-}" = --full ]; then
    shift
    rounds=${FAULT_ROUNDS:-1000} seconds=30 windows=3 percent=5 scramble=60 cycles=10000 participants=1000
    all+=(address)
fi
[ $# -gt 0 ] || set -- "${all[@]}"

# Without the points the workspace has no such program, so its clippy and its tests are here.
cargo clippy --quiet --package taut-faults --features failpoints --all-targets -- -D warnings
cargo test --quiet --package taut-faults --features failpoints
cargo build --quiet --package taut-faults --features failpoints

run() { scripts/in-netns.sh "$target/debug/taut-faults" "$@"; }

address() {
    local host sources
    host=$(rustc -vV | sed -n 's/^host: //p')
    sources=$(rustc +nightly --print sysroot 2>/dev/null)/lib/rustlib/src/rust/library
    if [ ! -d "$sources" ]; then
        echo "test-faults: address needs nightly: rustup toolchain install nightly --component rust-src" >&2
        return 1
    fi
    RUSTFLAGS="-Zsanitizer=address" CARGO_TARGET_DIR=$target/address cargo +nightly build --quiet -Zbuild-std \
        --target "$host" --package taut-faults --features failpoints
    scripts/in-netns.sh "$target/address/$host/debug/taut-faults" scramble --seconds "$scramble"
}

for what in "$@"; do
    case "$what" in
        users | memory | containers)
            if [ "$(id -u)" != 0 ]; then
                echo "test-faults: $what is left out: it needs root"
                continue
            fi
            run "$what"
            ;;
        kill) run kill --rounds "$rounds" ;;
        stop) run stop --seconds "$seconds" --rounds "$windows" --percent "$percent" ;;
        scramble) run scramble --seconds "$scramble" ;;
        attach) run attach --cycles "$cycles" --participants "$participants" ;;
        address) address ;;
        *) echo "test-faults: there is no $what" >&2; exit 2 ;;
    esac
done
