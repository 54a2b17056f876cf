#!/bin/bash
# Runs stress-ng's classes of stressors in boxes, and looks whether the host is as before.
#
# stress-ng is Debian's, unpacked with the libraries it needs into a copy of the rootfs
# (build/stress/root); it is never installed, and never run outside a box. Each stressor has a
# second in a box of its own with the default limits. One that is refused what it asks for (exit 2
# to 4), or killed by a limit, is the box's right outcome. What may not be: a run that mayfly itself
# fails, one that does not end, and anything that differs on the host afterwards.
#
# Usage: scripts/stress.sh [--short | CLASS...]     (default: all classes)
#   --short   some stressors of each kind, half a minute in all
# Exit status: 0 unharmed; 1 something differs; 77 it cannot be run here, said in words.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

build=${MAYFLY_BUILD:-build}
mayfly=${MAYFLY_BIN:-$PWD/$build/mayfly}
rootfs=${MAYFLY_ROOTFS:-$PWD/build/rootfs}
place=$PWD/build/stress
root=$place/root
slow=${MAYFLY_TEST_SLOW:-1}
classes="cpu cpu-cache device filesystem interrupt io memory network os pipe scheduler security vm"
short=(cpu fork clone daemon zombie kill pipe sock sockfd udp vm stack malloc mmapfork fault
    dentry dir iomix sysinval enosys procfs userfaultfd io-uring key)

cannot() { echo "stress: skipped: $1" && exit 77; }

# In a mount namespace of its own, so that nobody else's mounts are taken for a box's.
if [ "${MAYFLY_IN_NAMESPACE:-}" != yes ]; then
    [ "$(id -u)" = 0 ] || cannot "it compares the host as root sees it"
    MAYFLY_IN_NAMESPACE=yes exec unshare --mount --propagation private scripts/stress.sh "$@"
fi
unset MAYFLY_IN_NAMESPACE

# shellcheck source=rootfs/debs.sh
. rootfs/debs.sh

# What the rootfs has is left out.
prepare() {
    local deb list=$place/list
    [ -r "$rootfs/etc/mayfly-rootfs" ] || cannot "no rootfs that rootfs/build.sh made at $rootfs"
    cmp -s "$rootfs/etc/mayfly-rootfs" "$place/complete" && return
    command -v apt-get >/dev/null || cannot "no apt-get to fetch Debian's stress-ng"
    chmod -R u+w "$root" 2>/dev/null
    rm -rf "$root" "$place/complete"
    mkdir -p "$root"
    fetch_debs "$place/debs" stress-ng 2>"$place/log" ||
        cannot "apt-get could not fetch stress-ng: $(tail -1 "$place/log")"
    cp -a "$rootfs/." "$root/"
    sed -n 's/^package=\([^_]*\)_.*/\1/p' "$rootfs/etc/mayfly-rootfs" >"$list"
    for deb in "$place"/debs/*.deb; do
        deb=${deb##*/}
        case ${deb%%_*} in # programs and data that only maintainer scripts want
            *-common | *-data | *-config | perl* | debconf | dpkg | init-system-helpers) continue ;;
        esac
        grep -qxF "${deb%%_*}" "$list" || dpkg-deb --fsys-tarfile "$place/debs/$deb" |
            tar -C "$root" -xf - --no-same-owner --keep-directory-symlink
    done || cannot "the packages could not be unpacked"
    "$mayfly" run --limits best-effort --rootfs "$root" --timeout $((20 * slow))s \
        stress-ng --version >/dev/null || cannot "stress-ng does not start in its rootfs"
    cp "$rootfs/etc/mayfly-rootfs" "$place/complete"
}

# host: what a box must not change. Figures that move by themselves are left out.
host() {
    echo "stress-ng processes: $(grep -lsx 'stress-ng.*' /proc/[0-9]*/comm | wc -l)"
    sed 's/^[0-9]* [0-9]* /mount: /' /proc/self/mountinfo
    for f in shm sem msg; do echo "$f: $(($(wc -l <"/proc/sysvipc/$f") - 1))"; done
    echo "taint: $(cat /proc/sys/kernel/tainted)"
    echo "swap: $(wc -l </proc/swaps)"
    echo "modules: $(cut -d' ' -f1 /proc/modules 2>/dev/null | sort | cksum)"
    echo "interfaces: $(cut -d: -f1 /proc/net/dev | tail -n +3 | sort | tr -d ' \n')"
    echo "name: $(uname -n)"
    echo "rootfs: $(find "$root" -printf '%P %s %m %T@\n' | sort | cksum)"
    find /proc/sys -type f -perm -004 ! -path '*/net/*' 2>/dev/null | grep -v -e '/random/' \
        -e dentry-state -e inode- -e file-nr -e aio-nr -e ns_last_pid -e pty/nr -e nr_open \
        -e numa -e /fs/quota/ -e binfmt_misc | sort | while read -r f; do
        echo "$f: $(tr '\n' ' ' <"$f" 2>/dev/null)"
    done
}

# An OOM kill's trace is none, since the box's limits are there to be met.
complaints() { dmesg 2>/dev/null | grep -cE 'BUG:|Oops|WARNING:|panic|soft lockup|hung task'; }

failed=0 pids=()
# field NAME: of the result on standard input
field() { sed -n "s/.*\"$1\":\"*\([^\",]*\).*/\1/p"; }

# box STRESSOR: a second of it. Sets outcome.
box() {
    local out
    # shellcheck disable=SC2016 # the inner shell's own number, which mayfly then has
    out=$(bash -c 'echo $$ >"$0" && exec "$@"' "$place/pid" "$mayfly" run --json \
        --rootfs "$root" --timeout "$((20 * slow))s" stress-ng --temp-path /tmp --timeout 1s \
        --no-rand-seed "--$1" 1 2>"$place/err" </dev/null 9>&-)
    outcome=$(field outcome <<<"$out")
    pids+=("$(cat "$place/pid")")
    case $outcome in
        exited) outcome="exit $(field exitCode <<<"$out")" && return ;;
        signaled | oom_killed | timed_out) return ;;
    esac
    echo "$1: ${outcome:-no result}: $(head -1 "$place/err") $(field message <<<"$out")"
    outcome=none
    failed=1
}

# class NAME STRESSOR...
class() {
    local -A count=()
    local stressor
    for stressor in "${@:2}"; do
        box "$stressor"
        count[$outcome]=$((${count[$outcome]:-0} + 1))
    done
    printf '%s: %d stressors:' "$1" $(($# - 1))
    for outcome in "${!count[@]}"; do
        printf ' %s: %d;' "$outcome" "${count[$outcome]}"
    done
    echo
}

# of CLASS: its stressors
of() {
    "$mayfly" run --rootfs "$root" --timeout "$((20 * slow))s" stress-ng --class "$1?" 2>/dev/null |
        sed -n "s/^class '[^']*' stressors: //p"
}

mkdir -p "$place"
exec 9>"$place/lock" && flock 9 # another run's boxes would be taken for this one's leftovers
prepare
touch "$place/started"
[ $# -gt 0 ] || read -ra classes <<<"$classes"
before=$(host) said=$(complaints) load=$(cut -d' ' -f1 /proc/loadavg)
if [ "${1:-}" = --short ]; then
    class "a selection" "${short[@]}"
else
    for name in "${@:-${classes[@]}}"; do
        read -ra stressors <<<"$(of "$name")"
        [ ${#stressors[@]} -gt 0 ] || { echo "stress: no class $name" && exit 2; }
        class "$name" "${stressors[@]}"
    done
fi
after=$(host)
if [ "$before" != "$after" ]; then
    diff <(echo "$before") <(echo "$after") | sed -n 's/^[<>]/the host differs: &/p'
    failed=1
fi
left=$(find /sys/fs/cgroup -type d -name 'mayfly-*' -newer "$place/started" -printf '%f\n')
for pid in "${pids[@]}"; do
    grep -q "^mayfly-[0-9a-f]*-$pid-" <<<"$left" || continue
    echo "a cgroup of box $pid is left"
    failed=1
done
[ "$said" = "$(complaints)" ] || { echo "the kernel complained: see dmesg" && failed=1; }
echo "load $load before, $(cut -d' ' -f1 /proc/loadavg) after"
[ $failed = 0 ] && echo "the host is unharmed"
exit $failed
