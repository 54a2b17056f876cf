#!/bin/bash
# Puts Debian's docker-registry into a directory: unpacked, since installed it starts a service.
#
# Usage: tests/images/get-registry.sh DIR      (the program is DIR/usr/bin/docker-registry)
set -euo pipefail

dir=$1
[ ! -x "$dir/usr/bin/docker-registry" ] || exit 0
mkdir -p "$dir/new"
cd "$dir"
log=$(apt-get -q -o APT::Sandbox::User= download docker-registry 2>&1) || { echo "$log" >&2 && exit 1; }
dpkg-deb -x docker-registry_*.deb new
mkdir -p usr/bin
mv new/usr/bin/docker-registry usr/bin/
rm -rf new
