/*
 * probes_proc.c: /proc and /sys: the kernel's own files, through which hosts have been taken over.
 *
 * Files are opened for writing and nothing is written. They belong to the host's root, so what tries
 * to write is uid 0 in the box.
 */
#include "lab/families.h"

#include <unistd.h>

#include "base/banned.h"

static bool as_root(struct attempt *a, struct finding_of *f UNUSED) {
    lab_set(a, "user", "0");
    return true;
}

static bool has_binfmt(struct attempt *a, struct finding_of *f) {
    if (lab_off(a, "mount") && access("/proc/sys/fs/binfmt_misc/register", F_OK) < 0)
        return lab_untestable(f, "this host has no binfmt_misc");
    return as_root(a, f);
}

static bool has_sys_resource(struct attempt *a, struct finding_of *f) {
    return lab_has_cap(a, f, 24, "CAP_SYS_RESOURCE");
}

#define OPEN_ONE_OF                                                                                \
    "def open_one_of(*patterns, flags=os.O_WRONLY):\n"                                             \
    "    found = [p for x in patterns for p in expand(PROC + '/' + x)]\n"                          \
    "    found = found or [PROC + '/' + patterns[0]]\n"                                            \
    "    first_through([('open ' + p, lambda p=p: os.close(os.open(p, flags))) for p in found])\n"

const struct probe probes_proc[] = {
    {
        .id = "PR1",
        .title = "open core_pattern or modprobe for writing: a program that the host runs as root",
        .family = "proc",
        .stopped_by = "user proc",
        .sees = "EACCES|EROFS",
        .echo = "CVE-2022-0811: CRI-O let a pod set kernel.core_pattern",
        .kind = PAYLOAD_PYTHON,
        .payload = OPEN_ONE_OF "open_one_of('sys/kernel/core_pattern', 'sys/kernel/modprobe')\n",
        .prepare = as_root,
    },
    {
        .id = "PR2",
        .title = "open sysrq-trigger, an interrupt's affinity or a bus for writing",
        .family = "proc",
        .stopped_by = "user proc",
        .sees = "EACCES|EROFS|ENOENT",
        .echo = "CVE-2025-52881: runc's writes could be led to sysrq-trigger",
        .kind = PAYLOAD_PYTHON,
        .payload = OPEN_ONE_OF
        "open_one_of('sysrq-trigger', 'irq/default_smp_affinity', 'irq/*/smp_affinity',\n"
        "            'sys/kernel/sysrq', 'bus/pci/*/*')\n",
        .prepare = as_root,
    },
    {
        .id = "PR3",
        .title = "read what tells of the kernel and of the host's other users",
        .family = "proc",
        .stopped_by = "proc",
        .sees = "empty|EACCES|ENOENT",
        .echo = "CVE-2017-5967: /proc/timer_list told process ids of the host's",
        .kind = PAYLOAD_PYTHON,
        .payload =
            "last = 'ENOENT'\n"
            "for file in ('kcore', 'keys', 'key-users', 'timer_list', 'kallsyms', 'interrupts',\n"
            "             'latency_stats', 'sched_debug', 'timer_stats'):\n"
            "    try:\n"
            "        fd = os.open(PROC + '/' + file, os.O_RDONLY)\n"
            "        if os.read(fd, 64):\n"
            "            through('read ' + file)\n"
            "        last = 'empty'\n"
            "    except OSError as e:\n"
            "        last = e\n"
            "for dir in ('acpi', 'asound', 'scsi'):\n"
            "    try:\n"
            "        if os.listdir(PROC + '/' + dir):\n"
            "            through('list ' + dir)\n"
            "    except OSError as e:\n"
            "        last = e\n"
            "stopped('read', last)\n",
    },
    {
        .id = "PR4",
        .title = "read /sys: the machine's make, firmware, devices",
        .family = "proc",
        .stopped_by = "mount",
        .sees = "ENOENT",
        .echo = "CVE-2020-8694: PLATYPUS took keys from power readings in /sys",
        .kind = PAYLOAD_PYTHON,
        .payload =
            "files = ('class/dmi/id/sys_vendor', 'firmware/memmap/0/type', "
            "'kernel/uevent_seqnum',\n"
            "         'devices/system/cpu/online', 'kernel/profiling')\n"
            "first_through([('read ' + f, lambda f=f: open('/sys/' + f).read()) for f in files])\n",
    },
    {
        .id = "PR5",
        .title = "the kernel's log",
        .family = "proc",
        .stopped_by = "user caps identity seccomp",
        .sees = "EPERM",
        .echo = "CVE-2021-26708: its exploit found addresses in the kernel's log",
        .kind = PAYLOAD_PYTHON,
        .payload = "SIZE_UNREAD = 9\n"
                   "attempt('syslog', syscall, NR['syslog'], SIZE_UNREAD, None, 0)\n",
    },
    {
        .id = "PR6",
        .title = "put itself out of the OOM killer's reach",
        .family = "proc",
        .stopped_by = "proc user caps identity",
        .sees = "EROFS|EACCES",
        .echo = "Podman issue 20765: a container at -1000 could not be OOM-killed",
        .prepare = has_sys_resource,
        .kind = PAYLOAD_PYTHON,
        .payload = "def lower():\n"
                   "    fd = os.open(PROC + '/self/oom_score_adj', os.O_WRONLY)\n"
                   "    os.write(fd, b'-1000')\n"
                   "attempt('write oom_score_adj', lower)\n",
    },
    {
        .id = "PR7",
        .title = "init's environment, memory and descriptors",
        .family = "proc",
        .stopped_by = "", /* init is not dumpable and another uid's */
        .sees = "EACCES|EPERM|ENOENT|empty",
        .echo = "CVE-2019-5736: runc was overwritten by way of /proc/self/exe",
        .kind = PAYLOAD_PYTHON,
        .payload =
            "init = '%s/%d/' % (PROC, own_init())\n"
            "def read(file):\n"
            "    def inner():\n"
            "        if not open(init + file, 'rb').read(1):\n"
            "            raise OSError(errno.ENOENT, 'empty')\n"
            "    return inner\n"
            "tries = [('read ' + f, read(f)) for f in ('environ', 'maps', 'cmdline', 'auxv')]\n"
            "tries += [('list ' + d, lambda d=d: os.listdir(init + d))\n"
            "          for d in ('fd', 'map_files', 'root')]\n"
            "tries += [('open mem', lambda: os.open(init + 'mem', os.O_RDWR))]\n"
            "first_through(tries)\n",
    },
    {
        .id = "PR8",
        .title = "register a handler for binaries, which the kernel then runs for everyone",
        .family = "proc",
        .stopped_by = "mount user",
        .sees = "ENOENT",
        .kind = PAYLOAD_PYTHON,
        .payload = "attempt('open binfmt_misc/register', os.open,\n"
                   "        '/proc/sys/fs/binfmt_misc/register', os.O_WRONLY)\n",
        .prepare = has_binfmt,
    },
    {
        .id = "PR9",
        .title = "write id maps with the host's root in them",
        .family = "proc",
        .stopped_by = "user caps seccomp",
        .may_stop = "proc", /* a user's box: max_user_namespaces is written there */
        .sees = "EROFS|EPERM|EACCES|ENOSPC",
        .echo = "CVE-2018-18955: nested id maps gave rights over the host's files",
        .kind = PAYLOAD_PYTHON,
        /* Its own map can be written once, and was. That of a namespace of its own: with the same root in it. */
        .payload = "def write(file, text):\n"
                   "    os.write(os.open(PROC + '/self/' + file, os.O_WRONLY), text)\n"
                   "def nested():\n"
                   "    rows = [row.split() for row in open(PROC + '/self/uid_map')]\n"
                   "    if not any(int(r[0]) == int(r[1]) == 0 for r in rows):\n"
                   "        raise OSError(errno.EPERM, 'the outer root is not the host\\'s')\n"
                   "    syscall(NR['unshare'], 0x10000000)\n"
                   "    write('uid_map', b'0 0 1')\n"
                   "first_through([('write uid_map', lambda: write('uid_map', b'0 0 1')),\n"
                   "               ('write gid_map', lambda: write('gid_map', b'0 0 1')),\n"
                   "               ('write uid_map of a new namespace', nested)])\n",
        .prepare = as_root,
    },
    {
        .id = "PR10",
        .title = "read of itself in /proc",
        .family = "proc",
        .stopped_by = "",
        .must_pass = true, /* Python's multiprocessing does, and much else */
        .kind = PAYLOAD_PYTHON,
        .payload = "attempt('read /proc/self/status', lambda: open('/proc/self/status').read(4))\n",
    },
    {.id = NULL},
};
