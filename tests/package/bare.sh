#!/bin/bash
# The function of test_bare.c: a bare Debian on which the packages are installed.

# shellcheck source=tests/package/packages.sh
. tests/package/packages.sh

# bare SCRIPT: runs it as root in a new bare Debian, with namespaces of its own over the machine's
# /sys and /dev; /debs has the packages, and /var/lib/mayfly/rootfs is the rootfs if there is one.
bare() {
    mkdir -p "$T/bare/rootfs"
    # shellcheck disable=SC2016 # the inner shells expand
    unshare --mount --pid --kill-child --propagation=private bash -euc '
        mount --bind "$1" "$1"
        cd "$1"
        mount --rbind /sys sys
        mount --rbind /dev dev
        mount -t proc proc proc
        mount --bind "$2" rootfs
        mount --move . / # a mere chroot may make no user namespace
        exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
            DEBIAN_FRONTEND=noninteractive "$3" . bash -euo pipefail -xc "$4"
    ' - "$T/bare" "$ROOTFS" "$(command -v chroot)" "$1"
}

installed_in_a_bare_debian_it_works_and_purged_it_leaves_nothing() {
    local base=${ROOTFS%/*}/base.tar
    [ "$(id -u)" = 0 ] || skip root "chroot needs it"
    [ -e "build/base.tar" ] && base=build/base.tar
    [ -e "$base" ] || skip "a bare Debian" "there is no build/base.tar; scripts/base.sh makes it"
    packages
    mkdir "$T/bare"
    tar -C "$T/bare" -xf "$base"
    cp "$debs"/*.deb "$T/bare/debs/"
    # What dpkg, man-db and ldconfig keep of their own is not the package's.
    cat >"$T/bare/look" <<'END'
find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /debs -o -path /rootfs -o -path /var/lib/dpkg \
    -o -path /var/cache/man -o -path /var/cache/ldconfig -o -path /var/log -o -path /tmp -o -path /run \) -prune -o -print | sort
END
    # shellcheck disable=SC2016
    bare '
        sh /look >/tmp/before
        absent() { if "$@"; then echo "$* succeeded"; exit 1; fi; }
        absent command -v mayfly

        dpkg -i /debs/mayfly_*.deb
        mayfly version
        for page in mayfly mayfly-policy mayfly-result; do man -w $page; done
        man mayfly | grep "SECURITY CONSIDERATIONS"
        mayfly doctor >/tmp/doctor || tail -3 /tmp/doctor
        grep seccomp /tmp/doctor
        mkdir -p /var/lib/mayfly
        ln -s /rootfs /var/lib/mayfly/rootfs
        [ "$(mayfly python -c "print(6 * 7)")" = 42 ]
        [ "$(mayfly python --json -c "print(1)" | grep -c "\"outcome\":\"exited\"")" = 1 ]
        bash -c ". /usr/share/bash-completion/completions/mayfly && complete -p mayfly"

        # The library is refused without what it needs, by name, and is there with it.
        absent dpkg -i /debs/libmayfly0_*.deb 2>/tmp/refused
        grep "libmayfly0.* depends on libjansson4" /tmp/refused
        dpkg -i /debs/libjansson4_*.deb
        dpkg --configure -a
        ldconfig -p | grep libmayfly.so.0
        dpkg -s libmayfly0 | grep "^Status: install ok installed"

        rm -r /var/lib/mayfly
        dpkg --purge mayfly libmayfly0 libjansson4
        sh /look >/tmp/after
        diff /tmp/before /tmp/after
        absent grep -rl mayfly /var/lib/dpkg/info
        absent dpkg -s mayfly
    '
}
