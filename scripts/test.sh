#!/bin/bash
# Runs the test programs that `make` built, each suite on every host it is meant for.
#
#   unit, golden, fault   here, as they are
#   fuzz                  a short session of each fuzz target, where clang has libFuzzer
#   live                  here as root, as a user without and with subordinate ids;
#                         or, called by a user, as that user
#   images                here: stores, registries and unpacking, in directories of their own; in part as a user too
#   mcp                   here: the tool of language models, called by others' clients too
#   agent                 here: the loop, against endpoints that play a script
#   package               here: what is installed, and as Debian packages in a bare Debian (root)
#   hosts                 the live tests again on a pure cgroup v2 kernel: as root, as a user
#                         with a delegated subtree, as a user without; and, on a Debian that
#                         systemd has booted, as two users who are logged in
#
# MAYFLY_MUST_RUN=root,userns,cgroup1,cgroup2,npm,browser names what must not be skipped: where a laptop may
# lack a kind of host, in CI its absence is a failure. The tests read the variable as well, less
# what the host that they run on is not.
#
# The last line is the sum over all: "N passed, N failed, N skipped".
#
# Usage: scripts/test.sh SUITE...
set -uo pipefail
cd "$(dirname "$0")/.." || exit

build=${MAYFLY_BUILD:-build}
export MAYFLY_BIN=$PWD/$build/mayfly MAYFLY_ROOTFS=$PWD/build/rootfs
export MAYFLY_TEST_HOST=machine MAYFLY_TEST_SLOW=1
passed=0 failed=0 skipped=0 only=

must() { [[ ",${MAYFLY_MUST_RUN:-}," == *",$1,"* ]]; }

# programs SUITE: the built programs of the sources that exist (not of those that did once)
programs() {
    local source
    for source in tests/"$1"/test_*.c; do
        [ -e "$source" ] || continue
        [[ " ${only:-${source##*/}} " == *" ${source##*/} "* ]] || continue
        echo "$build/${source%.c}"
    done
}

# on TITLE SUITE HAS [WRAPPER...]: one suite, on one host; HAS is what of MAYFLY_MUST_RUN it can run
on() {
    local title=$1 list line has word p=0 f=0 s=0 a b c times=0
    mapfile -t list < <(programs "$2")
    [ ${#list[@]} -gt 0 ] || return
    for word in $3; do
        if must "$word"; then has=${has:+$has,}$word; fi
    done
    shift 3
    echo "$title"
    while IFS= read -r line; do
        case $line in
            "tests "*)
                read -r _ a b c <<<"$line"
                p=$((p + a)) f=$((f + b)) s=$((s + c)) times=$((times + 1))
                ;;
            *) printf '%s\n' "$line" ;;
        esac
    done < <(MAYFLY_MUST_RUN=${has:-} "$@" scripts/run-programs.sh "${list[@]}" 2>&1)
    [ $times = "${users:-1}" ] || f=$((f + 1)) # silence is not success
    echo "$title: $p passed, $f failed, $s skipped"
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
}

# lacking TITLE NEED WHY: a host that cannot be had
lacking() {
    if must "$2"; then
        echo "$1: FAILED: $3, and MAYFLY_MUST_RUN has $2"
        failed=$((failed + 1))
    else
        echo "$1: skipped: $3"
        skipped=$((skipped + 1))
    fi
}

# Always the same inputs at first, and then as many as the time allows; all that was ever found is in the unit tests.
fuzz() {
    local text status p f s
    text=$(nice scripts/fuzz.sh --seconds 1 --seed 1 2>&1)
    status=$?
    if [ $status = 77 ]; then
        lacking fuzz fuzz "no clang with libFuzzer (packages clang, libclang-rt-dev)"
        return
    fi
    read -r _ p f s <<<"$(tail -n 1 <<<"$text")"
    printf 'fuzz\n%s\nfuzz: %s passed, %s failed, %s skipped\n' "$(head -n -1 <<<"$text")" "$p" "$f" "$s"
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
}

live() {
    local as=tests/hosts/as-user.sh cgroup=cgroup1
    [ "$(stat -f -c %T /sys/fs/cgroup 2>/dev/null)" != cgroup2fs ] || cgroup=cgroup2
    [ $cgroup = cgroup1 ] || ! must cgroup1 || lacking "live on cgroup v1" cgroup1 "no cgroup v1 here"

    if [ "$(id -u)" != 0 ]; then
        lacking "live as root" root "not called by root"
        on "live as $(id -un 2>/dev/null)" live userns
        return
    fi
    on "live as root" live "root userns $cgroup"
    if ! $as -- true; then
        lacking "live as a user" userns "no mount namespace can be made"
        return
    fi
    # What root has done a thousand times need not be done as often by others.
    export MAYFLY_TEST_LESS=10
    on "live as a user" live userns $as --
    if command -v newuidmap >/dev/null; then
        only="test_first.c test_exit.c test_view.c test_binds.c test_hosts.c"
        on "live as a user with subordinate ids" live userns $as --subids --
        only=
    else
        lacking "live as a user with subordinate ids" userns "no newuidmap (package uidmap)"
    fi
    export MAYFLY_TEST_LESS=1
}

# What differs for a user: owners, his own namespaces, where things are.
images() {
    if ! command -v docker-registry >/dev/null && tests/images/get-registry.sh build/registry; then
        PATH=$PATH:$PWD/build/registry/usr/bin
    fi
    on "images" images "root userns"
    [ "$(id -u)" = 0 ] && tests/hosts/as-user.sh -- true || return
    only="test_run_image.c test_unpack.c"
    on "images as a user" images userns tests/hosts/as-user.sh --
    only=
}

uml=tests/hosts/uml.sh

uml_on() {
    MAYFLY_TEST_HOST=uml MAYFLY_TEST_SLOW=8 on "$@"
}

on_every_uml() {
    # Only what cgroups and the kernel's age change: pipes, threads and the C compiler are the same
    # under either, and take minutes there. MAYFLY_TEST_FULL=1 runs them all the same.
    only="test_binds.c test_cgroup_live.c test_first.c test_hints.c test_hosts.c test_leftovers.c"
    only+=" test_limits.c test_probes.c test_time.c test_view.c"
    [ -z "${MAYFLY_TEST_FULL:-}" ] || only=
    uml_on "live on cgroup v2 as root" live "root userns cgroup2" $uml --root --
    # What a delegated subtree changes: limits, ids, who may do what. The rest is as for root.
    only="test_cgroup_live.c test_first.c test_hosts.c test_limits.c"
    [ -z "${MAYFLY_TEST_FULL:-}" ] || only+=" test_exit.c test_view.c"
    uml_on "live on cgroup v2 as a user, delegated" live "userns cgroup2" $uml --delegated --subids --
    only="test_hosts.c"
    [ -z "${MAYFLY_TEST_FULL:-}" ] || only+=" test_first.c"
    uml_on "live on cgroup v2 as a user, not delegated" live userns $uml --undelegated --
    only="test_delegate.c"
    if [ ! -x "$build/mayfly-delegate" ]; then
        lacking "live on systemd" systemd "no mayfly-delegate was built (package libsystemd-dev)"
    elif ! tests/hosts/systemd-rootfs.sh build/systemd/rootfs.tar; then
        lacking "live on systemd" systemd "the archive of a Debian with systemd could not be made"
    else
        users=2 UML_TIMEOUT_S=400 uml_on "live on systemd as two users" live "systemd userns" $uml --systemd --
    fi
}

hosts() {
    [ -n "$(programs live)" ] || return
    if ! command -v linux.uml >/dev/null || ! $uml -- true; then
        lacking "live on cgroup v2" cgroup2 "no linux.uml that boots (package user-mode-linux)"
        return
    fi
    on_every_uml
}

# The pure cgroup v2 kernel runs on one CPU and mostly waits for it, and fuzzing touches nothing of the host: in the
# background, beside whatever else there is to do. What counts the host's cgroups and mounts is not.
declare -A beside=() pids=()

# begin FUNCTION
begin() {
    local dir
    dir=$(mktemp -d)
    beside[$1]=$dir
    # shellcheck disable=SC2030,SC2031 # the sums come back by a file
    (
        passed=0 failed=0 skipped=0
        "$1"
        echo "$passed $failed $skipped" >"$dir/sum"
    ) >"$dir/output" 2>&1 &
    pids[$1]=$!
}

# end FUNCTION: its output, and its sums
end() {
    local p=0 f=1 s=0 dir=${beside[$1]}
    wait "${pids[$1]}"
    cat "$dir/output"
    read -r p f s <"$dir/sum"
    # shellcheck disable=SC2031 # these are this shell's own
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    rm -rf "$dir"
}

[[ " $* " != *" hosts "* ]] || begin hosts
for suite in "$@"; do
    case $suite in
        unit | golden | fault | package) on "$suite" "$suite" "root userns" ;;
        images) images ;;
        mcp | agent | lab) on "$suite" "$suite" "root userns npm browser" ;;
        live) live ;;
        fuzz) begin fuzz ;; # from here on: faults count the milliseconds until all is gone
        hosts) ;;
        *) echo "test.sh: no suite called $suite" >&2 && exit 2 ;;
    esac
done
for suite in fuzz hosts; do
    [ -z "${pids[$suite]:-}" ] || end "$suite"
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
