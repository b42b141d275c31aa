#!/bin/sh
# Builds the adapters into build/. Rebuilds only what is older than its sources.
#   build.sh              installs what is missing first
#   build.sh --installed  installs nothing: builds the adapters of what is there
#   build.sh --installed zeromq fastdds   only these sections
# An adapter that cannot be built is named at the end and stops no other; then the
# exit code is 1.
set -u
cd "$(dirname "$0")" || exit 2
mkdir -p build
if [ "${1:-}" = --installed ]; then
    shift
else
    sh ./setup.sh || exit 2
fi
only=" $* "
failed=""

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

# Runs the function build_$1, in a shell of its own that ends at the first error.
# It cannot stand in a condition: the shell would ignore `set -e` in it.
adapter() {
    # The kit always: an adapter over an old one would be up to date by its own sources.
    case $1$only in
        kit_c* | *"  " | *" $1 "*) ;;
        *) return ;;
    esac
    (
        set -eu
        "build_$1"
    )
    [ $? -eq 0 ] || failed="$failed $1"
}

# True when the header $1 is there; says what is left out otherwise.
has() {
    printf '#include <%s>\n' "$1" | gcc -E - >/dev/null 2>&1 && return 0
    echo "peers: $2 is not installed ($3)"
    return 1
}

c_flags="-O2 -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -pthread -Ikit-c"
kit=build/kit-c.a

build_kit_c() {
    stale $kit kit-c/*.c kit-c/*.h kit-c/test/*.c schedule.txt || return 0
    mkdir -p build/kit-c
    for source in kit-c/*.c; do
        gcc $c_flags -c "$source" -o "build/kit-c/$(basename "$source" .c).o"
    done
    rm -f $kit
    ar rc $kit build/kit-c/*.o
    # Every adapter's loss and order stand on the tally, its times on the schedule and on what is taken: no kit
    # without them.
    for test in tally schedule taken waited; do
        gcc $c_flags kit-c/test/$test.c $kit -o build/kit-c/test-$test
        build/kit-c/test-$test <schedule.txt || { rm -f $kit; return 1; }
    done
    echo "peers: built $kit"
}

# Puts $1 into build/ if it differs, in one step: a run may be using the old one.
install_program() {
    cmp -s "$1" "build/$(basename "$1")" && return 0
    cp "$1" "build/.$(basename "$1")"
    mv "build/.$(basename "$1")" "build/$(basename "$1")"
    echo "peers: built build/$(basename "$1")"
}

# Each package on its own: one that does not build stops no other.
build_rust() {
    manifest=rust/Cargo.toml
    [ -e $manifest ] || return 0
    target=${CARGO_TARGET_DIR:-rust/target}
    broken=""
    for package in rust/*/Cargo.toml; do
        name=$(sed -n 's/^name *= *"\(.*\)"/\1/p' "$package" | head -n 1)
        if cargo build --quiet --release --manifest-path $manifest --package "$name" --target-dir "$target"; then
            for program in "$target"/release/perf-peer-*; do
                case $program in *.d) continue ;; esac
                install_program "$program"
            done
        else
            broken="$broken $name"
        fi
    done
    [ -z "$broken" ] || { echo "peers: did not build:$broken" >&2; return 1; }
}

build_zeromq() {
    has zmq.h ZeroMQ libzmq3-dev || return 0
    stale build/perf-peer-zeromq zeromq/* $kit || return 0
    gcc $c_flags zeromq/peer.c $kit -lzmq -o build/.zeromq
    mv build/.zeromq build/perf-peer-zeromq
    echo "peers: built build/perf-peer-zeromq"
}

build_mqtt() {
    has mosquitto.h MQTT "libmosquitto-dev, mosquitto" || return 0
    stale build/perf-peer-mqtt mqtt/* $kit || return 0
    gcc $c_flags mqtt/peer.c $kit -lmosquitto -o build/.mqtt
    mv build/.mqtt build/perf-peer-mqtt
    echo "peers: built build/perf-peer-mqtt"
}

build_fastdds() {
    has fastrtps/config.h "Fast DDS" "libfastrtps-dev, libfastcdr-dev, fastddsgen" || return 0
    if ! command -v fastddsgen >/dev/null; then
        echo "peers: the generator of Fast DDS is not installed (fastddsgen)"
        return 0
    fi
    generated=build/gen-fastdds
    if stale $generated/typesPubSubTypes.cxx types.idl; then
        mkdir -p $generated
        (cd $generated && fastddsgen -cs -replace -d . ../../types.idl >fastddsgen.log)
    fi
    if stale $generated.a $generated/*.cxx; then
        for source in types typesPubSubTypes; do
            g++ -O2 -std=c++17 -w -c $generated/$source.cxx -o $generated/$source.o
        done
        rm -f $generated.a
        ar rc $generated.a $generated/types.o $generated/typesPubSubTypes.o
    fi
    stale build/perf-peer-fastdds fastdds/* kit-c/kit.h $kit $generated.a || return 0
    mkdir -p build/fastdds
    for source in fastdds/*.cpp; do
        g++ -O2 -std=c++17 -Wall -Wextra -Werror -Ikit-c -I$generated \
            -c "$source" -o "build/fastdds/$(basename "$source" .cpp).o"
    done
    g++ build/fastdds/*.o $generated.a $kit -lfastrtps -lfastcdr -pthread -o build/.fastdds
    mv build/.fastdds build/perf-peer-fastdds
    echo "peers: built build/perf-peer-fastdds"
}

# $1: idlc, $2: where its types go.
cyclone_types() {
    stale "$2/types.c" types.idl || return 0
    mkdir -p "$2"
    "$1" -l c -o "$2" types.idl
}

# $1: the name; then what finds headers and library.
cyclone_adapter() {
    name=$1
    shift
    stale "build/perf-peer-$name" cyclonedds/*.c cyclonedds/*.h $kit "build/gen-$name/types.c" || return 0
    gcc $c_flags "-Ibuild/gen-$name" -DPEER_NAME="\"$name\"" cyclonedds/*.c "build/gen-$name/types.c" $kit \
        "$@" -lddsc -o "build/.$name"
    mv "build/.$name" "build/perf-peer-$name"
    echo "peers: built build/perf-peer-$name"
}

build_cyclonedds() {
    has dds/dds.h "Cyclone DDS" "cyclonedds-dev, cyclonedds-tools" || return 0
    cyclone_types idlc build/gen-cyclonedds
    cyclone_adapter cyclonedds
}

# Built from its sources, which come with a crate: the library in the Python wheel
# has no headers. With shared memory if iceoryx is installed.
build_cyclonedds11() {
    install=$PWD/build/cyclonedds11
    if stale build/cyclonedds11/bin/idlc cyclonedds/source/Cargo.lock; then
        command -v cmake >/dev/null || { echo "peers: cmake is not installed"; return 0; }
        source=$(cargo metadata --quiet --locked --format-version 1 --manifest-path cyclonedds/source/Cargo.toml |
            grep -o '"manifest_path":"[^"]*/cyclors-[^"]*/Cargo.toml"' | cut -d '"' -f 4)
        cmake -S "$(dirname "$source")/cyclonedds" -B build/cyclonedds11-build -DCMAKE_BUILD_TYPE=Release \
            -DCMAKE_INSTALL_PREFIX="$install" -DCMAKE_INSTALL_LIBDIR=lib -DBUILD_DDSPERF=OFF -DBUILD_TESTING=OFF \
            -DENABLE_SSL=NO -DENABLE_SECURITY=NO >build/cyclonedds11.log 2>&1 &&
            cmake --build build/cyclonedds11-build --parallel 2 --target install >>build/cyclonedds11.log 2>&1 ||
            { tail -n 20 build/cyclonedds11.log; return 1; }
        touch build/cyclonedds11/bin/idlc
        echo "peers: built build/cyclonedds11"
    fi
    cyclone_types build/cyclonedds11/bin/idlc build/gen-cyclonedds11
    cyclone_adapter cyclonedds11 -isystem "$install/include" -L"$install/lib" \
        -Wl,-rpath,'$ORIGIN/cyclonedds11/lib'
}

adapter kit_c
adapter cyclonedds
adapter cyclonedds11
adapter zeromq
adapter mqtt
adapter fastdds
adapter rust

if [ -n "$failed" ]; then
    echo "peers: did not build:$failed" >&2
    exit 1
fi
echo "peers: adapters up to date"
