#!/bin/bash
# PID 1 of the user-mode kernel that `uml.sh --systemd` boots, until it hands over to systemd: puts the
# archive of systemd-rootfs.sh into memory, the checkout at /mnt/mayfly below it, and goes there.
#
# In memory, since the machine's own files are seen through hostfs and must not be written; and as
# root's, whoever unpacks: so the machine is the same whoever made the archive.
# shellcheck disable=SC2154 # checkout: from the job
set -euo pipefail
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8

# shellcheck source=/dev/null # written by uml.sh
. "$MAYFLY_UML_JOB"
job=$(<"$MAYFLY_UML_JOB")
cd "$checkout"
mount -t tmpfs -o mode=755,size=400m,nr_inodes=0 tmpfs /mnt
tar -C /mnt -xpf build/systemd/rootfs.tar --same-owner
mkdir -p /mnt/mnt/mayfly /mnt/mnt/rootfs /mnt/old
mount --no-canonicalize --bind . /mnt/mnt/mayfly
mount --bind "$(realpath build/rootfs)" /mnt/mnt/rootfs
printf '%s\n' "$job" >/mnt/etc/mayfly-job
chown 1000:1000 /mnt/home/ada
chown 1001:1001 /mnt/home/ben
mount -t proc proc /mnt/proc
mount -t devtmpfs devtmpfs /mnt/dev
cd /mnt
# Not switch_root, which would empty the root that it leaves.
pivot_root . old
umount -l /old
unset MAYFLY_UML_JOB
exec /usr/sbin/chroot . /lib/systemd/systemd --system --unit=mayfly-test.target --log-target=kmsg \
    --log-level="${MAYFLY_SYSTEMD_LOG:-err}" --show-status=no </dev/null
