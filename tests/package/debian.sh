#!/bin/bash
# The functions of test_debian.c: the Debian packages, and what becomes of a bare Debian on which
# they are installed.

# Made once for all tests of this file, unless something that goes into them is newer.
packages() {
    need dpkg-deb dpkg-shlibdeps strip
    debs=$B/test-debs
    if [ ! -e "$debs/made" ] ||
        [ -n "$(find man packaging scripts include README.md "$B/mayfly" "$B/libmayfly.so.0" -newer "$debs/made")" ]; then
        rm -rf "$debs"
        B="$B" scripts/deb.sh "$debs"
        touch "$debs/made"
    fi
    arch=$(dpkg --print-architecture)
    version=$("$B/mayfly" version | cut -d' ' -f2)
}
deb() { echo "$debs/$1_${version}_$arch.deb"; }

the_packages_are_the_same_whoever_builds_them_and_when() {
    local deb
    packages
    (umask 077 && TZ=Pacific/Auckland LANG=C B="$B" scripts/deb.sh "$T/again")
    for deb in "$debs"/*.deb; do
        cmp "$deb" "$T/again/${deb##*/}"
    done
    SOURCE_DATE_EPOCH=1000000000 B="$B" scripts/deb.sh "$T/dated"
    has "$(dpkg-deb -c "$T/dated/mayfly_${version}_$arch.deb" | grep bin/mayfly)" 2001-09-09
}

the_packages_hold_what_install_puts_and_say_what_they_need() {
    local places
    packages
    dpkg-deb -x "$(deb mayfly)" "$T/x"
    dpkg-deb -x "$(deb libmayfly0)" "$T/x"
    dpkg-deb -x "$(deb libmayfly-dev)" "$T/x"
    for places in usr/bin/mayfly usr/include/mayfly.h usr/share/man/man1/mayfly.1.gz \
        usr/share/man/man3/libmayfly.3.gz usr/share/man/man5/mayfly-policy.5.gz \
        usr/share/bash-completion/completions/mayfly usr/share/zsh/vendor-completions/_mayfly \
        usr/share/fish/vendor_completions.d/mayfly.fish usr/share/doc/mayfly/copyright; do
        [ -s "$T/x/$places" ] || fail "$places is in none of them"
    done
    [ "$(find "$T/x" -name 'libmayfly.*' | wc -l)" = 5 ] # .a .so .so.0 .so.0.1.0 .3.gz
    same "$(dpkg-deb -f "$(deb mayfly)" Depends)" ""
    has "$(dpkg-deb -f "$(deb mayfly)" Built-Using)" "libseccomp (="
    has "$(dpkg-deb -f "$(deb libmayfly0)" Depends)" libjansson4
    has "$(dpkg-deb -f "$(deb libmayfly0)" Depends)" libseccomp2
    has "$(dpkg-deb -f "$(deb libmayfly-dev)" Depends)" "libmayfly0 (= $version)"
    # What other packages are told of the library is what the library exports.
    same "$(dpkg-deb -I "$(deb libmayfly0)" symbols | awk '/^ mayfly_/ { sub(/@.*/, "", $1); print $1 }' | sort)" \
        "$(nm -D --defined-only --format=posix "$B/libmayfly.so.0" | awk '$2 == "T" { sub(/@.*/, "", $1); print $1 }' | sort)"
}

lintian_has_nothing_to_say() {
    need lintian
    packages
    same "$(lintian --fail-on none "$debs"/*.deb 2>/dev/null)" ""
}

# ---------------------------------------------------------------------------- in a bare Debian

# bare SCRIPT: runs it as root in a new bare Debian, with namespaces of its own over the machine's
# /sys and /dev; /debs has the packages, and /var/lib/mayfly/rootfs is the rootfs if there is one.
bare() {
    mkdir -p "$T/bare/rootfs"
    # shellcheck disable=SC2016 # the inner shells expand
    unshare --mount --pid --fork --propagation=private bash -euc '
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
        ! command -v mayfly

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
        ! dpkg -i /debs/libmayfly0_*.deb 2>/tmp/refused
        grep "libmayfly0.* depends on libjansson4" /tmp/refused
        dpkg -i /debs/libjansson4_*.deb
        dpkg --configure -a
        ldconfig -p | grep libmayfly.so.0
        dpkg -s libmayfly0 | grep "^Status: install ok installed"

        rm -r /var/lib/mayfly
        dpkg --purge mayfly libmayfly0 libjansson4
        sh /look >/tmp/after
        diff /tmp/before /tmp/after
        ! grep -rl mayfly /var/lib/dpkg/info
        ! dpkg -s mayfly
    '
}
