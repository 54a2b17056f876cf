#!/bin/bash
# Makes build/dist/mayfly-VERSION-linux-ARCH.tar.gz: what a host without the libraries needs.
#
# It holds the static program, the manual pages, the completion, the licence and the README, laid
# out as below a prefix, with SHA256SUMS; its own checksum lies beside it. To install:
#
#   tar -C /usr/local --strip-components=1 --exclude=SHA256SUMS -xzf FILE
#
# Usage: scripts/dist.sh [DIRECTORY]     (B is the build's directory, HELPERS as for install.sh)
set -euo pipefail
umask 022
export LC_ALL=C TZ=UTC
cd "$(dirname "$0")/.."
export B=${B:-build}
out=${1:-$B/dist}
version=$(sed -n 's/^#define MAYFLY_VERSION "\(.*\)"/\1/p' include/mayfly.h)
name=mayfly-$version-linux-$(uname -m)
date=$(sed -n 's/^ -- .*>  //p' packaging/debian/changelog | head -1)
epoch=${SOURCE_DATE_EPOCH:-$(date -d "$date" +%s)}

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
root=$stage/$name
# The library and what belongs to it go below a directory that is left out.
env DESTDIR="$root" PREFIX= BINDIR=/bin LIBEXECDIR=/libexec MANDIR=/share/man \
    DOCDIR=/share/doc/mayfly BASHCOMPDIR=/share/bash-completion/completions \
    ZSHCOMPDIR=/share/zsh/site-functions FISHCOMPDIR=/share/fish/vendor_completions.d \
    LIBDIR=/library INCLUDEDIR=/library PKGCONFIGDIR=/library HELPERS="${HELPERS:-}" \
    scripts/install.sh install
rm -rf "$root/library" "$root/share/man/man3" "$root/share/doc/mayfly/examples"
# What the program holds of others, and under what terms, where Debian keeps that.
for library in libc6-dev libjansson-dev libseccomp-dev; do
    [ ! -e /usr/share/doc/$library/copyright ] ||
        install -D -m 644 /usr/share/doc/$library/copyright "$root/share/doc/mayfly/licenses/${library%-dev}"
done
[ ! -e /usr/share/common-licenses/LGPL-2.1 ] ||
    install -D -m 644 /usr/share/common-licenses/LGPL-2.1 "$root/share/doc/mayfly/licenses/LGPL-2.1"
strip --strip-unneeded --remove-section=.comment --remove-section=.note "$root/bin/mayfly"
[ ! -d "$root/libexec" ] || strip --strip-unneeded "$root"/libexec/mayfly/*
(cd "$root" && find . -type f ! -name SHA256SUMS -printf '%P\0' | sort -z | xargs -0 sha256sum >"$stage/sums")
mv "$stage/sums" "$root/SHA256SUMS"
chmod -R u=rwX,go=rX "$root"

mkdir -p "$out"
tar -C "$stage" --sort=name --owner=0 --group=0 --numeric-owner --format=gnu --mtime="@$epoch" \
    -cf - "$name" | gzip -9n >"$out/$name.tar.gz"
(cd "$out" && sha256sum "$name.tar.gz" >"$name.tar.gz.sha256")
echo "  DIST   $out/$name.tar.gz"
