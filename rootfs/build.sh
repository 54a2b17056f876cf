#!/bin/bash
# Builds the Python rootfs that boxes run in, out of Debian packages.
#
# No chroot, no mount, no maintainer script: apt resolves and downloads (debs.sh), tar unpacks, and what scripts would have made (links, users,
# caches) is written here. So it works alike as root and as an ordinary user, with or without
# subordinate ids, in a container, and gives the same bytes for the same packages.
#
# The result appears under its name only when complete. It carries the digest of this recipe in
# /etc/mayfly-rootfs; with that digest in place a second call does nothing.
#
# Usage: rootfs/build.sh DEST       (downloads are kept in the directory debs beside DEST)
set -euo pipefail
umask 022
export LC_ALL=C

say() { printf 'rootfs: %s\n' "$*" >&2; }
[ $# = 1 ] || { say "usage: $0 DEST"; exit 2; }

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=rootfs/debs.sh
. "$here/debs.sh"
mkdir -p "$(dirname "$1")"
dest=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
tmp=$dest.tmp
debs=$(dirname "$dest")/debs
recipe=$(cd "$here" && cat build.sh debs.sh packages exclude | sha256sum | cut -c1-64)

up_to_date() { grep -qsx "recipe=$recipe" "$dest/etc/mayfly-rootfs"; }

up_to_date && exit 0
exec 9>"$dest.lock"
flock 9
up_to_date && exit 0 # another build was at it
chmod -R u+w "$tmp" 2>/dev/null || true
rm -rf "$tmp"
trap 'rm -rf "$tmp"' EXIT

# ---------------------------------------------------------------------------- which packages

asked=$(grep -v -e '^#' -e '^-' "$here/packages")
dropped=$(sed -n 's/^-//p' "$here/packages" | tr '\n' ' ')

say "downloading packages"
# shellcheck disable=SC2086 # a list of names
fetch_debs "$debs" $asked

# ---------------------------------------------------------------------------- unpacking

say "unpacking $(wc -l <"$debs/apt/closure") packages"
mkdir "$tmp"
for dir in bin sbin lib lib64; do # merged /usr, which packages expect to find
    mkdir -p "$tmp/usr/$dir"
    ln -s "usr/$dir" "$tmp/$dir"
done
packages=
while read -r deb; do
    name=${deb%%_*}
    case " $dropped" in *" $name "*) continue ;; esac
    packages+="${deb%.deb}"$'\n'
    dpkg-deb --fsys-tarfile "$debs/$deb" |
        tar -C "$tmp" -xpf - --no-same-owner --keep-directory-symlink --wildcards \
            --exclude-from="$here/exclude"
done <"$debs/apt/closure"
# The newest date in the packages is the date of all that is made below.
epoch=${SOURCE_DATE_EPOCH:-$(find "$tmp" -type f -printf '%T@\n' | sort -n | tail -1 | cut -d. -f1)}

# ---------------------------------------------------------------------------- what scripts would do

cd "$tmp"
put() { mkdir -p "$(dirname "$1")" && cat >"$1"; }
put etc/passwd <<'END'
root:x:0:0:root:/root:/bin/bash
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
box:x:1000:1000:box:/home/box:/bin/bash
END
put etc/group <<'END'
root:x:0:
nogroup:x:65534:
box:x:1000:
END
put etc/hosts <<'END'
127.0.0.1 localhost
::1 localhost ip6-localhost
END
put etc/nsswitch.conf <<'END'
passwd: files
group: files
shadow: files
hosts: files dns
services: files
protocols: files
networks: files
END
put etc/hostname <<<box
# No name server: the resolver then asks 127.0.0.1 and fails at once, with no time-out.
put etc/resolv.conf </dev/null
put etc/ssl/certs/ca-certificates.crt < <(find usr/share/ca-certificates -name '*.crt' | sort | xargs cat)
rm -rf usr/share/ca-certificates
mkdir -p usr/lib/ssl
ln -sfn /etc/ssl/certs usr/lib/ssl/certs
ln -sf certs/ca-certificates.crt usr/lib/ssl/cert.pem
ln -sf mawk usr/bin/awk
ln -sf python3 usr/bin/python
ln -sf /usr/share/zoneinfo/Etc/UTC etc/localtime
put etc/timezone <<<Etc/UTC
mkdir -p proc sys dev tmp run root home/box mnt opt srv var/tmp work data out in
rmdir var/run var/lock
ln -s /run var/run
ln -s /run/lock var/lock
ln -sfn /proc/self/mounts etc/mtab

# Run by the new root's own loader, so that no chroot and no privilege is needed.
libs=$(dirname "$(find usr/lib -name libc.so.6)")
loader=$(find usr/lib64 usr/lib -name 'ld-linux*.so.*' | head -1)
python=$(readlink usr/bin/python3)
in_root() { env -i PATH=/usr/bin:/bin PYTHONHOME="$tmp/usr" PYTHONHASHSEED=0 \
    PYTHONDONTWRITEBYTECODE=1 "$tmp/$loader" --library-path "$tmp/$libs" "$tmp/usr/bin/$python" "$@"; }

# Byte code once here, or else every run on a read-only root would compile its imports again.
# Valid without a look at the source's date, so the bytes are the same in every build.
say "compiling the standard library"
in_root -m compileall -q -j0 --invalidation-mode unchecked-hash -s "$tmp" -p / "usr/lib/$python"
usr/sbin/ldconfig -r "$tmp" -X
rm -rf var/cache

# ---------------------------------------------------------------------------- finish

version=$(in_root -c 'import platform; print(platform.python_version())')
# shellcheck disable=SC1091
debian=$(. ./etc/os-release && echo "$ID-$VERSION_ID")
find . -perm /6000 -exec chmod ug-s {} +
chmod -R a+rX,u+w,go-w .
chmod 1777 tmp var/tmp
put etc/mayfly-rootfs <<END
name=$debian-python${version%.*}
python=$version
recipe=$recipe
$(printf '%s' "$packages" | sed 's/^/package=/')
END
find . -depth -newermt "@$epoch" -exec touch -h -d "@$epoch" {} +
digest=$(tar -cf - --sort=name --owner=0 --group=0 --numeric-owner --format=gnu . |
    sha256sum | cut -c1-64)
size=$(du -sm . | cut -f1)
cd /

chmod -R u+w "$dest.old" 2>/dev/null || true
rm -rf "$dest.old"
[ ! -e "$dest" ] || mv "$dest" "$dest.old"
mv "$tmp" "$dest"
rm -rf "$dest.old"
say "$dest: $debian, Python $version, $size MiB, digest sha256:$digest"
