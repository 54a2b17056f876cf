#!/bin/bash
# Installs what was built, or removes it again: both go through one table, so that neither can
# forget what the other does. `list` prints the table's places.
#
# Takes the places from the environment, as `make install` sets them: B, DESTDIR, PREFIX, BINDIR,
# LIBDIR, LIBEXECDIR, INCLUDEDIR, MANDIR, DOCDIR, PKGCONFIGDIR, BASHCOMPDIR, ZSHCOMPDIR,
# FISHCOMPDIR; and HELPERS, the programs for LIBEXECDIR/mayfly.
#
# Usage: scripts/install.sh install|uninstall|list
set -euo pipefail
umask 022
cd "$(dirname "$0")/.."
version=$(sed -n 's/^#define MAYFLY_VERSION "\(.*\)"/\1/p' include/mayfly.h)
DESTDIR=${DESTDIR:-}
soname=libmayfly.so.0

# file MODE SOURCE PLACE, link TARGET PLACE, config SOURCE PLACE
table() {
    local page helper
    file 755 "$B/mayfly" "$BINDIR/mayfly"
    for helper in ${HELPERS:-}; do
        file 755 "$helper" "$LIBEXECDIR/mayfly/${helper##*/}"
    done
    file 644 include/mayfly.h "$INCLUDEDIR/mayfly.h"
    file 644 "$B/public/libmayfly.a" "$LIBDIR/libmayfly.a"
    file 644 "$B/$soname" "$LIBDIR/libmayfly.so.$version"
    link "libmayfly.so.$version" "$LIBDIR/$soname"
    link $soname "$LIBDIR/libmayfly.so"
    config packaging/mayfly.pc.in "$PKGCONFIGDIR/mayfly.pc"
    for page in man/*.[1-8]; do
        file 644 "$page" "$MANDIR/man${page##*.}/${page##*/}"
    done
    file 644 packaging/completion/mayfly.bash "$BASHCOMPDIR/mayfly"
    file 644 packaging/completion/mayfly.zsh "$ZSHCOMPDIR/_mayfly"
    file 644 packaging/completion/mayfly.fish "$FISHCOMPDIR/mayfly.fish"
    for page in LICENSE README.md CHANGELOG.md; do
        file 644 $page "$DOCDIR/$page"
    done
    file 644 tests/live/example.c "$DOCDIR/examples/example.c"
    for page in judge.sh parked.c model.mjs package.json; do
        file 644 tests/examples/$page "$DOCDIR/examples/$page"
    done
}

install_() {
    file() { install -D -m "$1" "$2" "$DESTDIR$3"; }
    link() { mkdir -p "$DESTDIR${2%/*}" && ln -sfn "$1" "$DESTDIR$2"; }
    config() {
        mkdir -p "$DESTDIR${2%/*}"
        # What is below the prefix is named by it, so that pkg-config can be told of another.
        sed -e "s,@PREFIX@,$PREFIX,; s,@INCLUDEDIR@,$INCLUDEDIR,; s,@LIBDIR@,$LIBDIR,; s,@VERSION@,$version," \
            -e "s,^\([a-z]*dir=\)$PREFIX/,\1\${prefix}/," "$1" >"$DESTDIR$2"
        chmod 644 "$DESTDIR$2"
    }
    table
}

# The directories that only we use go as well, when nothing else is in them.
uninstall_() {
    local dir
    file() { rm -f "$DESTDIR$3"; }
    link() { rm -f "$DESTDIR$2"; }
    config() { rm -f "$DESTDIR$2"; }
    table
    for dir in "$DOCDIR/examples" "$DOCDIR" "$LIBEXECDIR/mayfly"; do
        [ ! -d "$DESTDIR$dir" ] || rmdir --ignore-fail-on-non-empty "$DESTDIR$dir"
    done
}

list_() {
    file() { echo "$3"; }
    link() { echo "$2"; }
    config() { echo "$2"; }
    table
}

case ${1:-} in
    install | uninstall | list) "$1"_ ;;
    *) echo "usage: $0 install|uninstall|list" >&2 && exit 2 ;;
esac
