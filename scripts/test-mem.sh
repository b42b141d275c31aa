#!/usr/bin/env bash
# Tries what threads share harder than `cargo test` does: the lanes and chunks of crates/mem under loom and under the
# sanitizers, what the executor's threads tell each other under loom.
#   scripts/test-mem.sh [loom|thread|address]...      only these; without a name all
# The sanitizers need the nightly toolchain with the component rust-src, loom does not.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-$PWD/target}
host=$(rustc -vV | sed -n 's/^host: //p')

# Each has a directory of its own: with other flags all is built anew.
loom() {
    RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=$target/loom CARGO_PROFILE_RELEASE_LTO=off \
        cargo test --quiet --release --package taut-mem --test lane_loom --test chunks_loom
    RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=$target/loom CARGO_PROFILE_RELEASE_LTO=off \
        cargo test --quiet --release --package taut-exec-models
}

sanitize() {
    local sources
    sources=$(rustc +nightly --print sysroot 2>/dev/null)/lib/rustlib/src/rust/library
    if [ ! -d "$sources" ]; then
        echo "test-mem: the $1 sanitizer needs nightly: rustup toolchain install nightly --component rust-src" >&2
        return 1
    fi
    RUSTFLAGS="-Zsanitizer=$1" CARGO_TARGET_DIR=$target/$1 \
        cargo +nightly test --quiet -Zbuild-std --target "$host" --package taut-mem --tests
}

[ $# -gt 0 ] || set -- loom thread address
for what in "$@"; do
    echo "test-mem: $what"
    case "$what" in
        loom) loom ;;
        thread | address) sanitize "$what" ;;
        *) echo "test-mem: there is no $what" >&2; exit 2 ;;
    esac
done
