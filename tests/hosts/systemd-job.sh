#!/bin/bash
# What the machine of `uml.sh --systemd` was booted for: runs the job's command as each of two users,
# in a login session (PAM), as from ssh or a terminal: in a scope of root's below the user's slice,
# beside the user's own manager. Prints the marks that uml.sh waits for.
#
# Environment of the command: MAYFLY_TEST_MODE=systemd, MAYFLY_BIN, MAYFLY_ROOTFS, and what pam_systemd
# sets. The working directory is /mnt/mayfly, the checkout.
# shellcheck disable=SC2154 # command: from the job
set -uo pipefail
# shellcheck source=/dev/null # written by uml.sh
. /etc/mayfly-job
echo "mayfly-uml: start"
status=0
echo 1 >/proc/sys/kernel/printk # the console is for the command
mount -t tmpfs -o mode=1777 tmpfs /tmp
{
    export -p | grep -E '^declare -x (MAYFLY|CMOCKA)_'
    echo 'export MAYFLY_TEST_HOST=uml MAYFLY_TEST_MODE=systemd HOME=/tmp LC_ALL=C.UTF-8'
    echo 'export MAYFLY_BIN=/mnt/mayfly/build/mayfly MAYFLY_ROOTFS=/mnt/rootfs'
    echo 'export PATH=/usr/local/bin:/usr/bin:/bin'
    echo 'cd /mnt/mayfly'
    printf 'exec'
    printf ' %q' "${command[@]}"
    echo
} >/run/mayfly-command
chmod 644 /run/mayfly-command
for user in ada ben; do
    systemd-run --quiet --collect --wait --unit="login-$user" -p User="$user" -p PAMName=mayfly-login \
        -p StandardOutput=file:/dev/console -p StandardError=inherit -p StandardInput=null \
        -- /bin/bash /run/mayfly-command || status=$?
done
echo "mayfly-uml: exit $status"
sleep 60
