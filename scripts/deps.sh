#!/bin/bash
# Sees to it that the Debian packages of the named sets are there.
#
# What is missing is installed when that needs no question answered: as root, or by sudo without
# a password. Otherwise the one command that helps is printed, and the status is 1. With nothing
# missing this takes some milliseconds and touches nothing.
#
# Usage: scripts/deps.sh SET...      sets: build, test, package, lint, fuzz, npm, browser
# shellcheck disable=SC2034,SC2086 # sets are looked up by name, and are lists of words
set -euo pipefail

# The rootfs needs no set of its own: rootfs/build.sh gets by on apt, dpkg and tar.
build="gcc libarchive-dev libc6-dev libcurl4-openssl-dev libjansson-dev libmicrohttpd-dev libseccomp-dev libssl-dev musl-dev"
test="bubblewrap buildah bzip2 curl gcc iproute2 libc6-dev libcmocka-dev libsystemd-dev openssl procps python3 runc skopeo strace uidmap umoci user-mode-linux xz-utils zstd"
package="binutils dpkg-dev g++ mmdebstrap pkg-config"
fuzz="clang libclang-rt-dev"
npm="npm" # where it is not there from elsewhere
browser="chromium"
lint="clang clang-format clang-tidy cppcheck mandoc shellcheck"

# Optional where Debian has it: what undoes gzip some times as fast.
case $(dpkg --print-architecture 2>/dev/null || echo none) in
    amd64 | arm64) build+=" libisal-dev" ;;
esac
case $(dpkg --print-architecture 2>/dev/null || echo none) in
    none) echo "deps: not a Debian system; the packages are named in $0" >&2 && exit 0 ;;
    amd64) ;;
    *) test=${test/user-mode-linux/} ;; # Debian builds it for no other 64-bit architecture
esac

wanted=
for set in "$@"; do
    case $set in
        build | test | package | lint | fuzz | npm | browser) wanted+=" ${!set}" ;;
        *) echo "deps: no set called $set" >&2 && exit 2 ;;
    esac
done

missing=()
for package in $(printf '%s\n' $wanted | sort -u); do
    state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$state" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

install="apt-get install -y --no-install-recommends ${missing[*]}"
if [ "$(id -u)" = 0 ]; then
    sudo=
elif sudo -n true 2>/dev/null; then
    sudo="sudo -n"
else
    echo "deps: packages are missing; please run" >&2
    echo "    sudo apt-get update && sudo $install" >&2
    exit 1
fi

echo "deps: installing ${missing[*]}" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() { $sudo env DEBIAN_FRONTEND=noninteractive "$@"; }
# Package lists that are there and fresh serve; the slow update is made only when they do not.
if ! apt $install >"$log" 2>&1; then
    if ! { apt apt-get update && apt $install; } >>"$log" 2>&1; then
        cat "$log" >&2
        exit 1
    fi
fi
