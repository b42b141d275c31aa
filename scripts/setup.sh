#!/usr/bin/env bash
# Installs the distribution's packages that are missing, and says what it did.
#   scripts/setup.sh demo|test        install
#   scripts/setup.sh --missing test   only list what is missing
# Why each is needed stands in docs/dependencies.md. Rust crates come with cargo, Python packages with
# interop/build.sh.
set -euo pipefail
shopt -s inherit_errexit

packages_of() {
    case "$1" in
        demo) command -v cc >/dev/null || echo gcc libc6-dev ;;
        test)
            packages_of demo
            echo iproute2 util-linux nftables strace tshark valgrind \
                cyclonedds-dev cyclonedds-tools libfastrtps-dev fastdds-tools fastddsgen \
                libdpdk-dev pkg-config g++ cmake python3 python3-venv
            ;;
        *)
            echo "usage: scripts/setup.sh [--missing] demo|test" >&2
            return 2
            ;;
    esac
}

is_installed() {
    [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

missing_of() {
    local package packages
    packages=$(packages_of "$1")
    for package in $packages; do
        is_installed "$package" || printf '%s ' "$package"
    done
}

if [ "${1:-}" = --missing ]; then
    missing_of "${2:-}"
    exit
fi

missing=$(missing_of "${1:-}")
missing=${missing% }
if [ -z "$missing" ]; then
    echo "setup: all packages for make $1 are installed."
elif ! command -v apt-get >/dev/null; then
    echo "setup: this system has no apt-get; the tests that need these are left out: $missing."
elif [ "$(id -u)" != 0 ]; then
    echo "setup: not installed, as this needs root: $missing. Run: sudo scripts/setup.sh $1"
else
    echo "setup: installing $missing"
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing; } >/dev/null
    echo "setup: installed $missing."
fi
if ! command -v cc >/dev/null; then
    echo "setup: Rust needs a C compiler to link and there is none: install gcc." >&2
    exit 2
fi
