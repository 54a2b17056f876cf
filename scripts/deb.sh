#!/bin/bash
# Makes Debian packages of what `make` built: mayfly, libmayfly0, libmayfly-dev, in build/deb.
#
# All files are those that `make install` would put, and are then dealt out. Nothing depends on
# who builds, when, or where: owners are root, times are the changelog's (or SOURCE_DATE_EPOCH's),
# and the same build gives the same bytes.
#
# Usage: scripts/deb.sh [DIRECTORY]     (B is the build's directory, HELPERS as for install.sh)
set -euo pipefail
umask 022
export LC_ALL=C TZ=UTC
cd "$(dirname "$0")/.."
export B=${B:-build}
out=${1:-$B/deb}
source=packaging/debian
version=$(sed -n 's/^#define MAYFLY_VERSION "\(.*\)"/\1/p' include/mayfly.h)
arch=$(dpkg --print-architecture)
libdir=usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)
date=$(sed -n 's/^ -- .*>  //p' $source/changelog | head -1)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(date -d "$date" +%s)}
export SOURCE_DATE_EPOCH

head -1 $source/changelog | grep -q "^mayfly ($version) " ||
    { echo "deb: $source/changelog does not begin with version $version" >&2 && exit 1; }
mkdir -p "$out"
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
all=$stage/all

env DESTDIR="$all" PREFIX=/usr BINDIR=/usr/bin LIBDIR="/$libdir" LIBEXECDIR=/usr/libexec \
    INCLUDEDIR=/usr/include MANDIR=/usr/share/man DOCDIR=/usr/share/doc/mayfly \
    PKGCONFIGDIR="/$libdir/pkgconfig" BASHCOMPDIR=/usr/share/bash-completion/completions \
    ZSHCOMPDIR=/usr/share/zsh/vendor-completions FISHCOMPDIR=/usr/share/fish/vendor_completions.d \
    HELPERS="${HELPERS:-}" scripts/install.sh install

# ---------------------------------------------------------------------------- which file is whose

# take PACKAGE PATH...: moves them out of what was installed
take() {
    local package=$1 path
    shift
    for path in "$@"; do
        mkdir -p "$stage/$package/$(dirname "$path")"
        mv "$all/$path" "$stage/$package/$path"
    done
}
cd "$all"
take libmayfly0 "$libdir"/libmayfly.so.*
take libmayfly-dev usr/include "$libdir" usr/share/man/man3 usr/share/doc/mayfly/examples
cd - >/dev/null
rm -f "$all/usr/share/doc/mayfly/"{LICENSE,CHANGELOG.md} # copyright and changelog are instead
mv "$all" "$stage/mayfly"
mkdir -p "$stage/libmayfly-dev/usr/share/doc/libmayfly-dev"
mv "$stage/libmayfly-dev/usr/share/doc/mayfly/examples" "$stage/libmayfly-dev/usr/share/doc/libmayfly-dev/"
rmdir "$stage/libmayfly-dev/usr/share/doc/mayfly"
sed -i 's|/usr/share/doc/mayfly/examples|/usr/share/doc/libmayfly-dev/examples|' \
    "$stage/libmayfly-dev/usr/share/man/man3/libmayfly.3"
find "$stage" -type d -empty -delete

# ---------------------------------------------------------------------------- what else Debian wants

find "$stage"/*/usr -path '*/man/*' -type f -exec gzip -9n {} +
strip --strip-unneeded --remove-section=.comment --remove-section=.note "$stage"/mayfly/usr/bin/* \
    "$stage/libmayfly0/$libdir/libmayfly.so.$version"
[ ! -d "$stage/mayfly/usr/libexec" ] || strip --strip-unneeded "$stage"/mayfly/usr/libexec/mayfly/*
strip --strip-debug --enable-deterministic-archives "$stage/libmayfly-dev/$libdir/libmayfly.a"

# The source packages of the libraries that the static program holds, with their versions.
built_using=$(dpkg-query -W -f '${source:Package} (= ${source:Version})\n' \
    libc6-dev libjansson-dev libseccomp-dev | sort -u | paste -sd, | sed 's/,/, /g')
mkdir "$stage/debian" # dpkg-shlibdeps looks into a source tree
sed '/@/d' $source/control.in >"$stage/debian/control"
needs() { # FILE...
    (cd "$stage" && dpkg-shlibdeps -O "$@" 2>/dev/null) | sed -n 's/^shlibs:Depends=//p'
}
shlibs=$(needs "$PWD/$B/libmayfly.so.0")
# A helper that does not start is as one that is not there: what it needs is recommended.
helpers=
[ ! -d "$stage/mayfly/usr/libexec" ] || helpers=", $(needs "$stage"/mayfly/usr/libexec/mayfly/*)"
[ -n "$shlibs" ] || { echo "deb: the library's dependencies are not found" >&2 && exit 1; }

mkdir -p "$stage/mayfly/usr/share/lintian/overrides"
cat >"$stage/mayfly/usr/share/lintian/overrides/mayfly" <<'END'
# It runs where nothing else is, and the loader would cost each run a millisecond.
mayfly: shared-library-lacks-prerequisites [usr/bin/mayfly]
END
[ -z "$helpers" ] || cat >>"$stage/mayfly/usr/share/lintian/overrides/mayfly" <<'END'
# Only the helper needs them, and mayfly does without it: they are recommended.
mayfly: undeclared-elf-prerequisites *
END

symbols() {
    echo "libmayfly.so.0 libmayfly0 #MINVER#"
    echo " MAYFLY_0@MAYFLY_0 0.1.0"
    sed -n '/^global:/,/^local:/s/^ *\([a-z_0-9]*\);/ \1@MAYFLY_0 0.1.0/p' src/lib/libmayfly.map
}

pack() {
    local package=$1 root=$stage/$1 doc
    doc=$root/usr/share/doc/$package
    mkdir -p "$doc" "$root/DEBIAN"
    cp $source/copyright "$doc/copyright"
    gzip -9n <$source/changelog >"$doc/changelog.gz"
    if [ "$package" = libmayfly0 ]; then
        symbols >"$root/DEBIAN/symbols"
        echo "libmayfly 0 libmayfly0 (>= 0.1.0)" >"$root/DEBIAN/shlibs"
        echo "activate-noawait ldconfig" >"$root/DEBIAN/triggers"
    fi
    find "$root" -mindepth 1 -type d -exec chmod 755 {} +
    (cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
    {
        echo "Package: $package"
        echo "Source: mayfly"
        echo "Version: $version"
        echo "Installed-Size: $(du -k --apparent-size -s "$root/usr" | cut -f1)"
        awk -v package="$package" 'BEGIN { RS = ""; FS = "\n" } $1 == "Package: " package' $source/control.in |
            sed -e 1d -e "s/^Architecture: any/Architecture: $arch/" -e "s|@SHLIBS@|$shlibs|" \
                -e "s|@HELPERS@|$helpers|" -e "s|@BUILT_USING@|$built_using|" -e "s|@VERSION@|$version|" \
                -e "s|^Section|$(sed -n '/^Maintainer/p' $source/control.in)\nPriority: optional\nSection|"
    } | grep -v -e "^Source: $package$" >"$root/DEBIAN/control"
    find "$root" -newermt "@$SOURCE_DATE_EPOCH" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
    dpkg-deb --root-owner-group -Zxz --build "$root" "$out/${package}_${version}_$arch.deb" >/dev/null
    echo "  DEB    $out/${package}_${version}_$arch.deb"
}
for package in mayfly libmayfly0 libmayfly-dev; do
    pack $package
done
