#!/bin/sh
# Builds the peers into build/. Rebuilds only what is older than its sources.
#   build.sh              installs what is missing first
#   build.sh --installed  installs nothing: builds the peers of those vendors that are there
#   build.sh rust         builds the peers of vendors in Rust alone, which the default leaves out: it takes minutes
set -eu
cd "$(dirname "$0")"
mkdir -p build
if [ "${1:-}" = rust ]; then
    target=${CARGO_TARGET_DIR:-rust/target}
    cargo build --quiet --release --locked --manifest-path rust/Cargo.toml --target-dir "$target"
    for peer in peer-rustdds peer-dust_dds; do
        cp "$target/release/$peer" build/
    done
    echo "interop: peers in Rust up to date"
    exit 0
fi
if [ "${1:-}" = --installed ]; then
    has_cyclone=$(command -v idlc || true)
    has_fastdds=$(command -v fastddsgen || true)
    [ -n "$has_cyclone" ] || echo "interop: Cyclone DDS is not installed (cyclonedds-dev, cyclonedds-tools)"
    [ -n "$has_fastdds" ] || echo "interop: Fast DDS is not installed (libfastrtps-dev, fastddsgen)"
    [ -n "$has_cyclone$has_fastdds" ] || exit 0
else
    sh ./setup.sh
    has_cyclone=yes
    has_fastdds=yes
fi

# True when $1 is missing or older than one of the files that follow.
stale() {
    target=$1
    shift
    [ -e "$target" ] || return 0
    for source in "$@"; do
        [ "$source" -nt "$target" ] && return 0
    done
    return 1
}

c_flags="-O2 -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -Icommon"

if [ -n "$has_cyclone" ] && stale build/gen-cyclone/types.c types.idl; then
    mkdir -p build/gen-cyclone
    idlc -l c -o build/gen-cyclone types.idl
    echo "interop: generated build/gen-cyclone"
fi
if [ -n "$has_fastdds" ] && stale build/gen-fastdds/typesPubSubTypes.cxx types.idl; then
    mkdir -p build/gen-fastdds
    (cd build/gen-fastdds && fastddsgen -cs -replace -d . ../../types.idl >fastddsgen.log)
    echo "interop: generated build/gen-fastdds"
fi

if stale build/common.a common/*; then
    for source in options tally; do
        gcc $c_flags -c "common/$source.c" -o "build/$source.o"
    done
    rm -f build/common.a
    ar rc build/common.a build/options.o build/tally.o
    echo "interop: built build/common.a"
fi
if [ -n "$has_cyclone" ] && stale build/peer-cyclone cyclone/* build/common.a build/gen-cyclone/types.c; then
    gcc $c_flags -Ibuild/gen-cyclone cyclone/peer.c build/gen-cyclone/types.c build/common.a \
        -lddsc -lm -o build/peer-cyclone
    echo "interop: built build/peer-cyclone"
fi
if [ -n "$has_fastdds" ] && stale build/fastdds-types.a build/gen-fastdds/*.cxx; then
    for source in types typesPubSubTypes; do
        g++ -O1 -std=c++17 -w -c "build/gen-fastdds/$source.cxx" -o "build/gen-fastdds/$source.o"
    done
    rm -f build/fastdds-types.a
    ar rc build/fastdds-types.a build/gen-fastdds/types.o build/gen-fastdds/typesPubSubTypes.o
    echo "interop: built build/fastdds-types.a"
fi
if [ -n "$has_fastdds" ] && stale build/peer-fastdds fastdds/* build/common.a build/fastdds-types.a; then
    g++ -O1 -std=c++17 -Wall -Wextra -Icommon -Ibuild/gen-fastdds fastdds/peer.cpp \
        build/fastdds-types.a build/common.a -lfastrtps -lfastcdr -o build/peer-fastdds
    echo "interop: built build/peer-fastdds"
fi
echo "interop: peers up to date"
