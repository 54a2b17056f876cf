#!/bin/bash
# Runs a command as a user who owns nothing, from the root of this checkout.
#
# Such a user needs an account to have subordinate ids, a way into the checkout, wherever that is,
# and a /tmp that is no one else's; the machine should not notice. All three are mounted in a mount
# namespace of the command's own, so nothing of it is left afterwards.
#
# The checkout is the working directory, /mnt/mayfly.
#
# Usage: tests/hosts/as-user.sh [--root] [--subids] [--cgroup DIR] -- COMMAND...      (as root)
#   --root     stay root: only the mounts
#   --subids   the user has 65536 subordinate ids, as useradd would give
#   --cgroup   enter this cgroup first
set -euo pipefail

uid=61234
if [ "${MAYFLY_IN_NAMESPACE:-}" != yes ]; then
    cd "$(dirname "$0")/../.."
    MAYFLY_IN_NAMESPACE=yes exec unshare --mount --propagation private tests/hosts/as-user.sh "$@"
fi
unset MAYFLY_IN_NAMESPACE

root=no subids=no cgroup=
while [ "${1:-}" != -- ]; do
    case ${1:-} in
        --root) root=yes && shift ;;
        --subids) subids=yes && shift ;;
        --cgroup) cgroup=$2 && shift 2 ;;
        *) echo "usage: $0 [--root] [--subids] [--cgroup DIR] -- COMMAND..." >&2 && exit 2 ;;
    esac
done
shift

# By the working directory, not by its path: that may be below /mnt or /tmp, which are covered.
mount -t tmpfs -o mode=755 tmpfs /mnt
mkdir /mnt/mayfly
mount --no-canonicalize --rbind . /mnt/mayfly
mount -t tmpfs -o mode=1777 tmpfs /tmp
cd /mnt/mayfly

if [ $subids = yes ]; then
    for file in passwd subuid subgid; do
        line=mayfly-test:1000000:65536
        [ $file != passwd ] || line=mayfly-test:x:$uid:$uid::/tmp:/bin/sh
        [ -e "/etc/$file" ] || touch "/etc/$file" # so without the package uidmap
        { cat "/etc/$file" && echo "$line"; } >"/mnt/$file"
        mount --bind "/mnt/$file" "/etc/$file"
    done
fi

[ -z "$cgroup" ] || echo $$ >"$cgroup/cgroup.procs"
export MAYFLY_BIN=$PWD/build/mayfly MAYFLY_ROOTFS=$PWD/build/rootfs HOME=/tmp
[ $root = no ] || exec "$@"
unset XDG_RUNTIME_DIR XDG_DATA_HOME
exec setpriv --reuid=$uid --regid=$uid --clear-groups -- env USER=mayfly-test LOGNAME=mayfly-test "$@"
