#!/bin/bash
# Makes build/base.tar: a bare Debian 12, as the machine that the package's tests install on.
#
# It is a minbase with man-db, and beside it, in /debs, the packages that ours depend on and a
# minbase lacks, so that a test needs no network. The tests unpack it anew each time. It is made
# once (a minute or two) and kept; the tar appears under its name only when it is complete, and
# beside it lies the digest of the recipe that made it.
#
# Usage: scripts/base.sh build/base.tar
# shellcheck disable=SC2016 # apt and mmdebstrap expand what is quoted here
set -euo pipefail
umask 022
export LC_ALL=C

say() { printf 'base: %s\n' "$*" >&2; }
[ $# = 1 ] || { say "usage: $0 FILE.tar"; exit 2; }
tar=$1
recipe=$(sha256sum "$0" | cut -c1-64)
up_to_date() { [ -e "$tar" ] && [ "$(cat "$tar.recipe" 2>/dev/null)" = "$recipe" ]; }

up_to_date && exit 0
if [ "$(id -u)" != 0 ]; then
    say "only root can make it; the package is not tested in a bare Debian"
    exit 0
fi
if ! command -v mmdebstrap >/dev/null; then
    say "no mmdebstrap here; the package is not tested in a bare Debian"
    exit 0
fi
mkdir -p "$(dirname "$tar")"
exec 9>"$tar.lock"
flock 9
up_to_date && exit 0 # another build was at it

# The mirror that this machine's apt uses for Debian, and no other of its sources; where apt names
# none, mmdebstrap has a default.
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Codename: bookworm' \
    'Component: main' 2>/dev/null | grep -m1 -v security || true)

say "making a bare Debian 12 from ${mirror:-the default mirror}"
log=$(mktemp)
trap 'rm -f "$log" "$tar.tmp.tar"' EXIT
# Written out on its own: the tests' root must hold no trace of the machine that made it.
hook='cd "$1" && mkdir debs && chroot "$1" sh -c "cd /debs && apt-get -q download libjansson4"'
if ! mmdebstrap --mode=root --variant=minbase --include=man-db --format=tar \
    --aptopt='Acquire::Retries "3"' \
    --customize-hook="$hook" \
    --customize-hook='rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/*.bin' \
    --customize-hook='rm -rf "$1"/usr/share/locale/* "$1"/usr/share/man/* "$1"/usr/share/doc/*' \
    bookworm "$tar.tmp.tar" ${mirror:+"$mirror"} >"$log" 2>&1; then
    cat "$log" >&2
    exit 1
fi
mv "$tar.tmp.tar" "$tar"
echo "$recipe" >"$tar.recipe"
say "$tar: $(du -m "$tar" | cut -f1) MiB"
