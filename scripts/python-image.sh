#!/bin/bash
# Sees to it that the store has an image with Python, and prints its name.
#
# That is python:3.12-slim (or $MAYFLY_IMAGE), pulled once. Where no registry gives it, the root file system of
# rootfs/ is built and imported instead, once for each version of its recipe. Which one it is, and why, is said on
# standard error.
#
# Usage: scripts/python-image.sh BUILD-DIRECTORY
set -euo pipefail
cd "$(dirname "$0")/.."
mayfly=$1/mayfly
image=${MAYFLY_IMAGE:-python:3.12-slim}

say() { printf 'python: %s\n' "$*" >&2; }
has() { "$mayfly" inspect "$1" >/dev/null 2>&1; }
recipe() { sed -n 's/^recipe=\(.\{12\}\).*/\1/p' build/rootfs/etc/mayfly-rootfs 2>/dev/null || true; }

use() {
    say "$2"
    printf '%s\n' "$1"
    exit 0
}

! has "$image" || use "$image" "$image, from the store"
own=localhost/mayfly/rootfs:$(recipe)
[ "$own" = localhost/mayfly/rootfs: ] || ! has "$own" ||
    use "$own" "the root file system of rootfs/, from the store; mayfly pull $image gets the image instead"

# Its progress is for the terminal, its last line for the reason.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if "$mayfly" pull "$image" 2> >(tee "$log" >&2) >&2; then
    use "$image" "$image, pulled just now"
fi
wait
why=$(tail -1 "$log" | sed 's/^mayfly: //')
say "$image cannot be had (${why:-no word of why}), so the root file system of rootfs/ is taken instead"
rootfs/build.sh build/rootfs
own=localhost/mayfly/rootfs:$(recipe)
has "$own" || "$mayfly" import --tag "$own" build/rootfs >&2
use "$own" "the root file system of rootfs/, imported just now"
