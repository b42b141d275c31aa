#!/usr/bin/env bash
# Stops with one sentence if there is no Rust toolchain, or one older than Cargo.toml asks for.
set -euo pipefail
cd "$(dirname "$0")/.."

wanted=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
remedy="install Rust $wanted or newer from https://rustup.rs, with rustfmt and clippy"

if ! command -v cargo >/dev/null || ! command -v rustc >/dev/null; then
    echo "Taut needs a Rust toolchain and finds no cargo: $remedy." >&2
    exit 2
fi
found=$(rustc --version | cut -d ' ' -f 2 | cut -d - -f 1)
if [ "$(printf '%s\n%s\n' "$wanted" "$found" | sort --version-sort | head -n 1)" != "$wanted" ]; then
    echo "Taut needs Rust $wanted or newer and finds $found: $remedy." >&2
    exit 2
fi
