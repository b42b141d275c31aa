#!/usr/bin/env bash
# A little of every workload of taut perf, and whether each of these peers was measured at all: one line of
# another vendor may fail on a busy machine, all of them mean that its adapter or the driver is broken.
#   scripts/perf-smoke.sh [PEER...]
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- taut floor cyclonedds fastdds

peers/build.sh --installed kit_c cyclonedds fastdds
lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
"${CARGO_TARGET_DIR:-target}/release/taut" perf smoke --save "$lines"
scripts/measured.sh "$lines" "$*"
