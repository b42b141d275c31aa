#!/bin/sh
# Installs what the interoperability matrix needs: the other vendors' packages
# and two Python environments. Does only what is missing and says what it did.
set -eu
cd "$(dirname "$0")"

packages="gcc g++ cyclonedds-dev cyclonedds-tools libfastrtps-dev libfastcdr-dev
fastdds-tools fastddsgen tshark nftables iproute2 python3 python3-venv"

missing=""
for package in $packages; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
if [ -n "$missing" ]; then
    if [ "$(id -u)" != 0 ]; then
        echo "interop: not installed:$missing; run this script as root, or apt-get install them" >&2
        exit 2
    fi
    apt-get update -qq
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
    echo "interop: installed$missing"
fi

# $1: directory, $2: requirements. The copy of the requirements marks success.
venv() {
    if cmp -s "$2" "$1/requirements.txt"; then
        return
    fi
    rm -rf "$1"
    /usr/bin/python3 -m venv "$1"
    "$1/bin/pip" install --quiet --disable-pip-version-check -r "$2"
    cp "$2" "$1/requirements.txt"
    echo "interop: made $1 from $2"
}

mkdir -p build
venv build/venv-cyclone requirements-cyclone.txt
venv build/venv-ros requirements-ros.txt
echo "interop: set up"
