#!/bin/bash
# Makes the archive of a small Debian with systemd, D-Bus and PAM, which tests/hosts/systemd.sh boots.
#
# As the Python rootfs is made: apt resolves and downloads into a private directory, tar unpacks, and
# what maintainer scripts would have done that matters here is written by hand. No root, no chroot.
# With the archive of this very script in place a second call does nothing.
#
# Usage: tests/hosts/systemd-rootfs.sh DEST.tar      (packages are kept in DEST.tar.debs)
set -euo pipefail
umask 022
export LC_ALL=C

[ $# = 1 ] || { echo "usage: $0 DEST.tar" >&2 && exit 2; }
# shellcheck source=rootfs/debs.sh
. "$(dirname "$0")/../../rootfs/debs.sh"
recipe=$(sha256sum <"$0" | cut -c1-64)
mkdir -p "$(dirname "$1")"
dest=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
debs=$dest.debs

up_to_date() { [ -s "$dest" ] && grep -qsx "$recipe" "$dest.recipe"; }
up_to_date && exit 0
exec 9>"$dest.lock"
flock 9
up_to_date && exit 0
command -v apt-get dpkg-deb >/dev/null || { echo "systemd-rootfs: no apt-get here" >&2 && exit 1; }

asked="systemd systemd-sysv dbus dbus-user-session libpam-systemd libpam-modules libpam-runtime login
passwd bash coreutils util-linux mount sed grep findutils procps iproute2 uidmap hostname tar
libcmocka0 libjansson4 libseccomp2 libsystemd0 libc-bin"

# shellcheck disable=SC2086 # a list of names
fetch_debs "$debs" $asked

root=$(mktemp -d "$dest.XXXXXX")
trap 'chmod -R u+w "$root"; rm -rf "$root"' EXIT
for dir in bin sbin lib lib64; do
    mkdir -p "$root/usr/$dir"
    ln -s "usr/$dir" "$root/$dir"
done
while read -r deb; do
    dpkg-deb --fsys-tarfile "$debs/$deb" |
        tar -C "$root" -xpf - --no-same-owner --keep-directory-symlink --wildcards \
            --exclude=./usr/share/{doc,man,locale,info,lintian,bash-completion,perl5,i18n}'/*' \
            --exclude=./usr/share/{perl,zoneinfo,X11}'/*' --exclude='*/libperl.so*' \
            --exclude='./usr/lib/*/perl*' --exclude='./usr/lib/*/gconv/*' --exclude='./usr/bin/perl*' \
            --exclude='./lib/udev/hwdb.d/*' --exclude=./lib/systemd/system-generators \
            --exclude='./lib/systemd/system/modprobe@*' --exclude='./lib/systemd/system/sys-*.mount' \
            --exclude='./lib/systemd/system/*crypt*' --exclude='./lib/systemd/systemd-networkd'
done <"$debs/apt/closure"

cd "$root"
put() { mkdir -p "$(dirname "$1")" && cat >"$1"; }
put etc/passwd <<'END'
root:x:0:0:root:/root:/bin/bash
messagebus:x:100:100::/nonexistent:/usr/sbin/nologin
systemd-network:x:998:998::/:/usr/sbin/nologin
ada:x:1000:1000:a user with subordinate ids:/home/ada:/bin/bash
ben:x:1001:1001:a user without:/home/ben:/bin/bash
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
END
put etc/group <<'END'
root:x:0:
tty:x:5:
messagebus:x:100:
systemd-journal:x:999:
systemd-network:x:998:
ada:x:1000:
ben:x:1001:
nogroup:x:65534:
END
put etc/subuid <<<ada:100000:65536
put etc/subgid <<<ada:100000:65536
put etc/nsswitch.conf <<<$'passwd: files\ngroup: files\nshadow: files\nhosts: files'
put etc/hostname <<<systemd
put etc/machine-id <<<0123456789abcdef0123456789abcdef
put etc/fstab </dev/null
for service in common-auth common-account common-password; do
    put etc/pam.d/$service <<<"${service#common-} required pam_permit.so"
done
# pam_systemd is what a login is: a session, a user manager, XDG_RUNTIME_DIR.
for service in common-session common-session-noninteractive; do
    put etc/pam.d/$service <<<$'session required pam_permit.so\nsession required pam_systemd.so'
done
put etc/pam.d/mayfly-login <<'END'
auth required pam_permit.so
account required pam_permit.so
session required pam_permit.so
session required pam_systemd.so
END
mkdir -p home/ada home/ben root proc sys dev tmp run mnt var/log var/tmp var/lib/systemd
rm -rf var/run var/lock
ln -s /run var/run
ln -s /run/lock var/lock
# What takes time at boot and nobody here asks for.
for unit in systemd-journal-catalog-update systemd-update-done systemd-sysctl systemd-timesyncd \
    systemd-random-seed systemd-machine-id-commit systemd-pcrphase systemd-pcrphase-sysinit \
    systemd-networkd systemd-networkd-wait-online getty@tty1 systemd-firstboot systemd-binfmt \
    systemd-journal-flush systemd-journald systemd-sysusers systemd-tmpfiles-setup \
    systemd-tmpfiles-setup-dev systemd-update-utmp systemd-remount-fs systemd-modules-load; do
    mkdir -p etc/systemd/system
    ln -sfn /dev/null "etc/systemd/system/$unit.service"
done
for unit in systemd-journald.socket systemd-journald-dev-log.socket systemd-journald-audit.socket \
    systemd-initctl.socket systemd-tmpfiles-clean.timer dev-mqueue.mount \
    systemd-ask-password-console.path; do
    ln -sfn /dev/null "etc/systemd/system/$unit"
done
# There is no journal: what a service prints is nobody's.
for manager in system user; do
    put etc/systemd/$manager.conf.d/quiet.conf <<<$'[Manager]\nDefaultStandardOutput=null'
done
put etc/systemd/system/mayfly-test.target <<'END'
[Unit]
Requires=basic.target
Wants=dbus.socket systemd-logind.service mayfly-test.service
After=basic.target
AllowIsolate=yes
END
put etc/systemd/system/mayfly-test.service <<'END'
[Unit]
Description=the command that this machine was booted for
After=basic.target dbus.socket systemd-logind.service systemd-user-sessions.service
[Service]
Type=oneshot
ExecStart=/bin/bash /mnt/mayfly/tests/hosts/systemd-job.sh
StandardInput=null
StandardOutput=file:/dev/console
StandardError=inherit
END
usr/sbin/ldconfig -r "$root" -X 2>/dev/null || /sbin/ldconfig -r "$root" -X
rm -rf var/cache
tar -cf "$dest.new" --sort=name --owner=0 --group=0 --numeric-owner .
cd /
mv "$dest.new" "$dest"
echo "$recipe" >"$dest.recipe"
echo "systemd-rootfs: $dest: $(wc -l <"$debs/apt/closure") packages, $(du -m "$dest" | cut -f1) MiB" >&2
