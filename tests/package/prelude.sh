#!/bin/bash
# Runs one function of a script of tests, and gives it
#
#   B, ROOTFS    the build's directory and a rootfs with Python
#   T            a directory of its own, removed afterwards
#
# A function fails by any command that fails, since it runs under `set -e`; with -x the last line
# shows which. It does so in the source's directory.
#
# Usage: tests/package/prelude.sh SCRIPT FUNCTION
set -euo pipefail
umask 022
export LC_ALL=C.UTF-8
shopt -s extglob

fail() { echo "$*" >&2 && exit 1; }
skip() { echo "skip: $1: $2" && exit 77; } # WHAT WHY
need() {
    local program
    for program; do
        command -v "$program" >/dev/null || skip "$program" "it is not installed"
    done
}
# What make was given for this build it hands on; that it has jobs to share is not so any more.
remake() { MAKEFLAGS=${MAKEFLAGS:+${MAKEFLAGS//--jobserver-+([^ ])/}} make -s B="$B" "$@"; }
same() { [ "$1" = "$2" ] || fail "$1"$'\n'"is not"$'\n'"$2"; }
has() { [[ $1 == *"$2"* ]] || fail "$1"$'\n'"does not hold"$'\n'"$2"; }

T=$(mktemp -d "${TMPDIR:-/tmp}/mayfly-package-XXXXXX")
trap 'rm -rf --one-file-system "$T"' EXIT
# shellcheck source=/dev/null
. "$1"
set -x
"$2"
