#!/bin/bash
# Runs a command on a pure cgroup v2 kernel: Debian's user-mode Linux, which is a program.
#
# It sees this machine's file system through hostfs, so the checkout and its rootfs are simply
# there; /tmp, /run and /dev are its own. What it prints comes back as it is printed. Its exit
# status is lost with the kernel, so the init program (uml-init.sh) prints one, after which the
# kernel has nothing left to do and is killed, as it is when the time is up.
#
# Usage: tests/hosts/uml.sh [--root|--delegated|--undelegated|--systemd] [--subids] -- COMMAND...
#   --root         as root, in the root cgroup (default)
#   --delegated    as a user, in a cgroup of a subtree that the user owns, controllers switched on
#   --undelegated  as a user, in a cgroup of root's
#   --systemd      on a Debian that systemd has booted (systemd-rootfs.sh makes it), as two users, one
#                  with subordinate ids, each logged in
#   --subids       the user has subordinate ids
# The working directory is the checkout. Limits: $UML_TIMEOUT_S (600), $UML_MEM_MB (1536).
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
checkout=$(cd "$here/../.." && pwd)
mode=root
subids=
while [ "${1:-}" != -- ]; do
    case ${1:-} in
        --root | --delegated | --undelegated | --systemd) mode=${1#--} ;;
        --user) mode=undelegated ;;
        --subids) subids=$1 ;;
        *) echo "usage: $0 [--root|--delegated|--undelegated|--systemd] [--subids] -- COMMAND..." >&2 && exit 2 ;;
    esac
    shift
done
shift
uml=$(command -v linux.uml) || { echo "uml: no linux.uml; the package is user-mode-linux" >&2 && exit 2; }

init="uml-init.sh"
[ "$mode" != systemd ] || init="systemd-init.sh"
mem_mb=${UML_MEM_MB:-1536}
dir=$(mktemp -d)
pid=
# shellcheck disable=SC2317 # called by the trap
stop() {
    trap '' INT TERM HUP
    # At SIGTERM the kernel reaps its own processes; what does not go that way is killed.
    if [ -n "$pid" ]; then
        kill -TERM "$pid" 2>/dev/null || true
        for _ in 1 2 3 4 5; do kill -0 "$pid" 2>/dev/null && sleep 0.1; done
        kill -KILL -- "-$pid" 2>/dev/null || true
    fi
    rm -rf "$dir"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# The kernel's memory is a file: in /dev/shm if that is large enough (a container's often is not).
export TMPDIR=$dir
[ "$(df --output=avail -m /dev/shm 2>/dev/null | tail -1 || echo 0)" -lt "$mem_mb" ] || TMPDIR=/dev/shm

{
    export -p | grep -E '^declare -x (MAYFLY|CMOCKA)_' || true
    printf 'mode=%q subids=%q checkout=%q\n' "$mode" "$subids" "$checkout"
    printf 'command=('
    printf '%q ' "$@"
    printf ')\n'
} >"$dir/job"

mkfifo "$dir/out"
# A session of its own: the kernel's threads are processes, and are found by their group.
setsid setpriv --pdeathsig KILL -- "$uml" rootfstype=hostfs rootflags=/ rw "mem=${mem_mb}M" quiet \
    loglevel=3 random.trust_cpu=on "uml_dir=$dir" umid=mayfly "init=$here/$init" con0=null,fd:1 con=null \
    "MAYFLY_UML_JOB=$dir/job" </dev/null >"$dir/out" 2>&1 &
pid=$!
disown

exec 3<"$dir/out"
deadline=$((SECONDS + ${UML_TIMEOUT_S:-600}))
began=no
while left=$((deadline - SECONDS)) && [ $left -gt 0 ] && IFS= read -r -t $left -u 3 line; do
    line=${line%$'\r'}
    case $line in
        "mayfly-uml: start") began=yes ;;
        "mayfly-uml: exit "*) exit "${line##* }" ;;
        *) [ $began = no ] && echo "$line" >>"$dir/boot" || printf '%s\n' "$line" ;;
    esac
done
[ $began = yes ] || cat "$dir/boot" >&2
[ $SECONDS -lt $deadline ] && echo "uml: the kernel ended before the command did" >&2 && exit 125
echo "uml: timed out" >&2
exit 124
