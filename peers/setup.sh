#!/bin/sh
# Installs what the adapters are built against: the other middlewares' packages.
# Does only what is missing and says what it did.
set -eu
cd "$(dirname "$0")"

packages="gcc g++ cmake cyclonedds-dev cyclonedds-tools iceoryx libiceoryx-posh-dev libfastrtps-dev
libfastcdr-dev fastdds-tools fastddsgen libzmq3-dev libmosquitto-dev mosquitto"

missing=""
for package in $packages; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
if [ -n "$missing" ]; then
    if [ "$(id -u)" != 0 ]; then
        echo "peers: not installed:$missing; run this script as root, or apt-get install them" >&2
        exit 2
    fi
    apt-get update -qq
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
    echo "peers: installed$missing"
fi
echo "peers: set up"
