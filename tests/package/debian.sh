#!/bin/bash
# The functions of test_debian.c: the Debian packages.

# shellcheck source=tests/package/packages.sh
. tests/package/packages.sh

the_packages_are_the_same_whoever_builds_them_and_when() {
    local deb
    packages
    (umask 077 && export TZ=Pacific/Auckland LANG=C && make_packages "$T/again")
    for deb in "$debs"/*.deb; do
        cmp "$deb" "$T/again/${deb##*/}"
    done
    # Nothing is newer than the changelog's last entry.
    same "$(dpkg-deb -c "$(deb mayfly)" | awk '{ print $4, $5 }' | sort -u)" \
        "$(date -u -d "$(sed -n 's/^ -- .*>  //p' packaging/debian/changelog | head -1)" '+%F %H:%M')"
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
    if [ -x "$B/mayfly-delegate" ]; then
        [ -x "$T/x/usr/libexec/mayfly/mayfly-delegate" ]
        has "$(dpkg-deb -f "$(deb mayfly)" Recommends)" libsystemd0
    fi
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
