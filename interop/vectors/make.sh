#!/bin/sh
# Makes crates/cdr/tests/vectors/*.hex again. Needs cyclonedds-dev, cyclonedds-tools, libfastrtps-dev,
# libfastcdr-dev, fastddsgen, and a Python with cyclonedds 11.0.1 (PYTHON=path chooses it).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$here/../../crates/cdr/tests/vectors
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
cd "$work"

mkdir c && cp "$here"/*.idl c && (cd c && idlc common.idl && mv common.c common_types.c && idlc cyclone.idl && mv cyclone.c cyclone_types.c)
cc -w -Ic -o cyclone "$here"/cyclone.c c/common_types.c c/cyclone_types.c -lddsc
# Both ends are in this process: nothing leaves the machine.
CYCLONEDDS_URI='<General><Interfaces><NetworkInterface name="lo" multicast="false"/></Interfaces></General>' \
  ./cyclone >"$out"/cyclonedds-c.hex

mkdir f && cp "$here"/common.idl "$here"/fast.idl f
(cd f && fastddsgen -replace common.idl && fastddsgen -replace fast.idl) >/dev/null 2>&1
c++ -w -std=c++14 -If -o fast "$here"/fastdds.cpp f/*.cxx -lfastrtps -lfastcdr
./fast >"$out"/fastdds.hex

"${PYTHON:-python3}" "$here"/cyclone.py >"$out"/cyclonedds-python.hex
wc -l "$out"/*.hex
