#!/usr/bin/env bash
# Has libFuzzer look for bytes that something of Taut cannot read, by what they reach of it.
#   scripts/fuzz.sh [SECONDS [TARGET...]]      each so long (default: 20), without names all
# What is found stays in fuzz/finds/TARGET, where `cargo test -p taut-fuzz` plays it; what has reached something new is kept in
# the target directory for the next time.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-$PWD/target}
seconds=${1:-20}
shift || true

# The flags that libFuzzer needs, of the stable compiler: no sanitizer, as it is safe code.
flags="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
for what in inline-8bit-counters pc-table trace-compares; do
    flags+=" -Cllvm-args=-sanitizer-coverage-$what"
done
host=$(rustc -vV | sed -n 's/^host: //p')
RUSTFLAGS="$flags -Cdebug-assertions=on -Coverflow-checks=on" CARGO_TARGET_DIR=$target/fuzz CARGO_PROFILE_RELEASE_LTO=off \
    CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_OPT_LEVEL=1 \
    cargo build --quiet --release --target "$host" --package taut-fuzz --features libfuzzer --bin taut-fuzz
fuzzer=$target/fuzz/$host/release/taut-fuzz
seeds() { cargo run --quiet --package taut-fuzz --bin taut-fuzz-seeds -- "$@"; }
[ $# -gt 0 ] || mapfile -t names < <(seeds)
for name in "${@:-${names[@]}}"; do
    corpus=$target/fuzz/corpus/$name finds=fuzz/finds/$name
    seeds "$name" "$corpus"
    mkdir -p "$finds"
    log=$(mktemp)
    if ! TAUT_FUZZ=$name "$fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 \
        -artifact_prefix="$finds/" "$corpus" "$finds" 2>"$log"; then
        tail -n 40 "$log" >&2
        rm -f "$log"
        echo "fuzz: $name: found; the bytes are in $finds" >&2
        exit 1
    fi
    rmdir --ignore-fail-on-non-empty "$finds"
    printf 'fuzz: %-10s %s\n' "$name" "$(sed -n 's/^Done \(.*\) in .*/\1/p' "$log"), $(grep -o 'cov: [0-9]*' "$log" | tail -n 1)"
    rm -f "$log"
done
