#!/bin/sh
# Builds the peers into build/. Rebuilds only what is older than its sources.
set -eu
cd "$(dirname "$0")"
sh ./setup.sh
mkdir -p build

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

if stale build/gen-cyclone/types.c types.idl; then
    mkdir -p build/gen-cyclone
    idlc -l c -o build/gen-cyclone types.idl
    echo "interop: generated build/gen-cyclone"
fi
if stale build/gen-fastdds/typesPubSubTypes.cxx types.idl; then
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
if stale build/peer-cyclone cyclone/* build/common.a build/gen-cyclone/types.c; then
    gcc $c_flags -Ibuild/gen-cyclone cyclone/peer.c build/gen-cyclone/types.c build/common.a \
        -lddsc -lm -o build/peer-cyclone
    echo "interop: built build/peer-cyclone"
fi
if stale build/fastdds-types.a build/gen-fastdds/*.cxx; then
    for source in types typesPubSubTypes; do
        g++ -O1 -std=c++17 -w -c "build/gen-fastdds/$source.cxx" -o "build/gen-fastdds/$source.o"
    done
    rm -f build/fastdds-types.a
    ar rc build/fastdds-types.a build/gen-fastdds/types.o build/gen-fastdds/typesPubSubTypes.o
    echo "interop: built build/fastdds-types.a"
fi
if stale build/peer-fastdds fastdds/* build/common.a build/fastdds-types.a; then
    g++ -O1 -std=c++17 -Wall -Wextra -Icommon -Ibuild/gen-fastdds fastdds/peer.cpp \
        build/fastdds-types.a build/common.a -lfastrtps -lfastcdr -o build/peer-fastdds
    echo "interop: built build/peer-fastdds"
fi
echo "interop: peers up to date"
