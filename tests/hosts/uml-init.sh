#!/bin/bash
# PID 1 of the user-mode kernel that uml.sh boots: makes the file systems of a small cgroup v2
# machine, runs the job's command where it belongs, and prints the command's exit status.
# shellcheck disable=SC2154 # checkout, mode, subids, command: from the job
set -uo pipefail
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8
unset TERM

# shellcheck source=/dev/null # written by uml.sh; read before /tmp is covered
. "$MAYFLY_UML_JOB"
unset MAYFLY_UML_JOB mem uml_dir umid
cd "$checkout" || exit

# The checkout may be below any of the directories that are covered now; as-user.sh finds it by
# the working directory, and is read from there too.
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
ln -sfn /proc/self/fd /dev/fd
mount -t tmpfs -o mode=755 tmpfs /run
ip link set lo up
hostname uml

cgroup=/sys/fs/cgroup
echo "+memory +cpu +pids" >$cgroup/cgroup.subtree_control
case $mode in
    root) set -- --root ;;
    delegated)
        mkdir -p $cgroup/delegated/shell
        echo "+memory +cpu +pids" >$cgroup/delegated/cgroup.subtree_control
        for dir in $cgroup/delegated $cgroup/delegated/shell; do
            (cd "$dir" && chown 61234:61234 . cgroup.procs cgroup.threads cgroup.subtree_control)
        done
        set -- --cgroup $cgroup/delegated/shell
        ;;
    undelegated)
        mkdir $cgroup/users
        set -- --cgroup $cgroup/users
        ;;
esac

echo "mayfly-uml: start"
MAYFLY_TEST_HOST=uml MAYFLY_TEST_MODE=$mode \
    tests/hosts/as-user.sh "$@" ${subids:+"$subids"} -- "${command[@]}" </dev/null
echo "mayfly-uml: exit $?"
sleep 60
