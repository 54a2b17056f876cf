/*
 * probes_calls.c: system calls that the code has no use for.
 *
 * Most go by number, as an attacker would: what the C library offers says nothing of what the kernel
 * does. A call that would change the machine if it went through is made with arguments that the
 * kernel refuses, but only after it has looked at the caller's rights: EINVAL instead of EPERM is
 * then the break-in (tried(), in lab.py).
 */
#include "lab/families.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "lab/inner.h"
#include "lab/rows.h"
#include "linux/bpf.h"
#include "linux/ones.h"

#include "base/banned.h"

/* Who has a capability over the machine: neither in a user namespace, nor as an ordinary user, nor without it. */
#define MACHINE "user identity caps seccomp"
/* A capability over the box's own namespaces is enough. */
#define OWN "identity caps seccomp"

/* Init is another user, of more rights, outside of the payload's Landlock domain, and not dumpable. */
#define INIT "user identity caps landlock seccomp"

/* SY13: in a cgroup of its own a box has no real-time budget where the kernel groups that too (CONFIG_RT_GROUP_SCHED). */

#define CALL .family = "calls", .kind = PAYLOAD_PYTHON

/* ------------------------------------------------------------------ all that there are */

static const struct filter *filter_of(const struct rows *rows) {
    for (size_t i = 0; rows->plan && i < rows->plan->n_ops; i++)
        if (rows->plan->ops[i].kind == OP_SECCOMP)
            return rows->plan->ops[i].data;
    return NULL;
}

/* What no program in a box has a use for, whatever the list says that the filter was made from: so that a slip in the list
 * is found as one in the filter is. What only the flags tell (clone, ioctl, prctl, socket) has probes of its own. */
static bool is_never_needed(int nr) {
    static const int never[] = {
        SYS_acct,
        SYS_add_key,
        SYS_bpf,
        SYS_clock_settime,
        SYS_delete_module,
        SYS_fanotify_init,
        SYS_finit_module,
        SYS_fsconfig,
        SYS_fsmount,
        SYS_fsopen,
        SYS_fspick,
        SYS_init_module,
        SYS_io_uring_enter,
        SYS_io_uring_register,
        SYS_io_uring_setup,
        SYS_kcmp,
        SYS_kexec_file_load,
        SYS_kexec_load,
        SYS_keyctl,
        SYS_lookup_dcookie,
        SYS_migrate_pages,
        SYS_mount,
        SYS_mount_setattr,
        SYS_move_mount,
        SYS_move_pages,
        SYS_name_to_handle_at,
        SYS_open_by_handle_at,
        SYS_open_tree,
        SYS_perf_event_open,
        SYS_pidfd_getfd,
        SYS_pivot_root,
        SYS_process_madvise,
        SYS_process_vm_readv,
        SYS_process_vm_writev,
        SYS_ptrace,
        SYS_quotactl,
        SYS_reboot,
        SYS_request_key,
        SYS_setns,
        SYS_settimeofday,
        SYS_swapoff,
        SYS_swapon,
        SYS_syslog,
        SYS_umount2,
        SYS_userfaultfd,
#ifdef __x86_64__
        SYS_ioperm,
        SYS_iopl,
        SYS_modify_ldt,
#endif
    };

    for (size_t i = 0; i < ARRAY_LEN(never); i++)
        if (never[i] == nr)
            return true;
    return false;
}

/* Those that the filter refuses, as digits for the payload, and what it answers where that is not the usual. */
static void calls_to_try(struct attempt *a, const struct filter *filter) {
    enum { CALLS = 600 };
    char digits[CALLS / 4 + 2] = "";
    _cleanup_buf_ struct buf odd = {0};

    for (int nr = 0, four = 0; nr < CALLS / 4 * 4 + 4; nr++) {
        const uint64_t ones = UINT64_MAX;
        struct seccomp_data call = {
            .nr = nr, .arch = SECCOMP_NATIVE_ARCH, .args = {ones, ones, ones, ones, ones, ones}};
        uint32_t answer = bpf_run(filter->code, filter->len, &call);
        bool refused = (answer & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO;
        int error = refused ? (int)(answer & SECCOMP_RET_DATA) : EPERM; /* or it is notified */

        refused = refused || (answer & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_USER_NOTIF;
        four |= ((refused || is_never_needed(nr)) && ones_do_nothing(nr)) << nr % 4;
        if (refused && error != EPERM && error != ENOSYS)
            buf_printf(&odd, "%d:%d,", nr, error);
        if (nr % 4 == 3) {
            digits[nr / 4] = "0123456789abcdef"[four];
            four = 0;
        }
    }
    lab_arg(a, "%s", digits);
    lab_arg(a, "%s", odd.data ? odd.data : "");
}

/* SY12: nothing comes of these calls, whatever is off: ones.h, which has what is left out and why. Those that the
 * declared list lets through with such arguments are left out too. */
static bool undeclared_calls(struct attempt *a, struct finding_of *f) {
    mayfly_policy *own = a->policy;
    const char *argv[] = {"true", NULL}, *rootfs = getenv("MAYFLY_ROOTFS");
    struct rows rows = {.use = {.lease.fd = -1}};
    struct mayfly_error e = {0};
    struct err err = {0};

    a->policy = mayfly_policy_new();
    if (!a->policy)
        return a->policy = own, lab_untestable(f, "out of memory");
    lab_set(a, "rootfs", "%s", rootfs ? rootfs : "");
    lab_set(a, "limits", "best-effort");
    int r = mayfly_policy_command(a->policy, argv, &e);
    r = r < 0 ? r : rows_plan(lab_inner(a->policy), &rows, &err);
    const struct filter *filter = r < 0 ? NULL : filter_of(&rows);
    if (filter)
        calls_to_try(a, filter);
    rows_done(&rows);
    mayfly_policy_free(a->policy);
    a->policy = own;
    return filter || lab_untestable(f, "no filter is planned here: %s", err.message);
}

/* ------------------------------------------------------------------ other interfaces */

#if defined(__x86_64__)
static long getpid_by_int80(void) {
    long r;

    __asm__ volatile("int $0x80" : "=a"(r) : "0"(20L) : "memory", "r8", "r9", "r10", "r11");
    return r;
}
#else
static long getpid_by_int80(void) { _exit(2); }
#endif

/* On some hypervisors, and where the kernel's 32-bit emulation is off, the instruction is a fault for everybody. */
static bool needs_int80(struct attempt *a, struct finding_of *f) {
    pid_t pid = fork();
    int status = 0;

    (void)a;
    if (pid == 0) {
        (void)signal(SIGSEGV, SIG_DFL);
        _exit(getpid_by_int80() == getpid() ? 0 : 1);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return lab_untestable(f, "no process to try it in");
    if (WIFSIGNALED(status))
        return lab_untestable(f, "int 0x80 is SIG%s on this host, outside of any box",
                              sigabbrev_np(WTERMSIG(status)));
    if (WEXITSTATUS(status) != 0)
        return lab_untestable(f, "this machine has no int 0x80");
    return true;
}

/* Being killed is half of it: whoever wrote the code has to be told by which call. */
static void named_in_hints(const struct attempt *a, struct finding_of *f, const char *word) {
    if (f->verdict != VERDICT_STOPPED || strcmp(f->error, "killed by SIGSYS") != 0)
        return;
    for (size_t i = 0; a->result && i < a->result->n_hints; i++)
        if (strstr(a->result->hints[i], word))
            return;
    lab_found(f, VERDICT_THROUGH, "hints", "", "the run was killed, but no hint names the call");
}

static void judge_int80(struct attempt *a, struct finding_of *f) {
    named_in_hints(a, f, "int 0x80");
}

static void judge_x32(struct attempt *a, struct finding_of *f) { named_in_hints(a, f, "x32"); }

/* The caller's own cgroup may have no real-time budget either; a child tries, and is gone with what it got. */
static bool has_real_time(struct attempt *a, struct finding_of *f) {
    const struct sched_param lowest = {.sched_priority = 1};
    int status = 0;

    if (!lab_off(a, "cpu") || !lab_off(a, "caps"))
        return true;
    pid_t pid = fork();
    if (pid == 0)
        _exit(sched_setscheduler(0, SCHED_FIFO, &lowest) == 0 ? 0 : 1);
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return lab_untestable(f, "no process to try it in");
    return status == 0 || lab_untestable(f, "the caller gets no real-time scheduling either");
}

static bool has_sys_resource(struct attempt *a, struct finding_of *f) {
    return lab_has_cap(a, f, 24, "CAP_SYS_RESOURCE");
}

const struct probe probes_calls[] = {
    {CALL, .id = "SY1", .title = "io_uring_setup", .stopped_by = "seccomp", .sees = "EPERM|ENOSYS",
     .echo = "CVE-2022-29582: an io_uring timeout was used after it was freed",
     .payload = "try:\n"
                "    off = int(open(PROC + '/sys/kernel/io_uring_disabled').read())\n"
                "except OSError:\n"
                "    off = 0\n"
                "if off and not filtered():\n"
                "    untestable('kernel.io_uring_disabled is %d' % off)\n"
                "tried('io_uring_setup', 1, room(120))\n"},
    {CALL, .id = "SY2", .title = "userfaultfd, user mode only", .stopped_by = "seccomp",
     .sees = "EPERM",
     .echo = "CVE-2021-26708: its exploit held kernel copies half done with userfaultfd",
     .payload = "tried('userfaultfd', 1)\n"},
    {CALL, .id = "SY3", .title = "add_key to its own process keyring", .stopped_by = "seccomp",
     .sees = "EPERM",
     .echo = "CVE-2017-15274: add_key with a length but no data crashed the kernel",
     .payload = "tried('add_key', b'user', b'mayfly-probe', b'x', 1, -2)\n"},
    {CALL, .id = "SY3b", .title = "keyctl", .stopped_by = "seccomp", .sees = "EPERM",
     .echo = "CVE-2016-0728: a keyring's reference count overflowed, and gave root",
     .payload = "tried('keyctl', 0, -1, 0, past='ENOKEY')\n"},
    {CALL, .id = "SY3c", .title = "request_key", .stopped_by = "seccomp", .sees = "EPERM",
     .echo = "CVE-2017-17807: request_key put keys where one might only search",
     .payload = "tried('request_key', b'user', b'mayfly-none', None, -2, past='ENOKEY')\n"},
    {CALL, .id = "SY4", .title = "bpf", .stopped_by = "seccomp", .sees = "EPERM",
     .echo = "CVE-2021-3490: the verifier misjudged 32-bit bounds, and gave root",
     .payload =
         "load()\n"
         "path = ctypes.create_string_buffer(b'/nonexistent')\n"
         "tried('bpf', 7, room(16, 'Q', ctypes.addressof(path)), 16, past='ENOENT EINVAL')\n"},
    {CALL, .id = "SY4b", .title = "perf_event_open on itself", .stopped_by = "seccomp",
     .sees = "EPERM", .echo = "CVE-2013-2094: an event's number, unchecked, gave root",
     .payload = "tried('perf_event_open', room(112, 'IIQQQQQ', 1, 112, 0, 0, 0, 0, 0x61),\n"
                "      0, -1, -1, 0, untestable_on='EACCES ENOENT')\n"},
    {CALL, .id = "SY5", .title = "ptrace of a child", .stopped_by = "seccomp", .sees = "EPERM",
     .echo = "CVE-2019-13272: PTRACE_TRACEME trusted the wrong credentials, and gave root",
     .payload = "r, w = os.pipe()\n"
                "pid = os.fork()\n"
                "if pid == 0:\n"
                "    os.close(w)\n"
                "    os.read(r, 1)  # until this one's end\n"
                "    os._exit(0)\n"
                "tried('ptrace', 0x4206, pid, 0, 0)\n"},
    {CALL, .id = "SY6", .title = "process_vm_readv on init", .stopped_by = INIT, .sees = "EPERM",
     .echo = "CVE-2025-30066: a CI action read secrets out of its runner's memory",
     .payload = "load()\n"
                "local = room(16, 'QQ', ctypes.addressof(room(1)), 1)\n"
                "far = room(16, 'QQ', 4096, 1)\n"
                "tried('process_vm_readv', os.getppid(), local, 1, far, 1, 0, past='EFAULT')\n"},
    {CALL, .id = "SY6b", .title = "pidfd_getfd on init", .stopped_by = INIT, .sees = "EPERM|ENOSYS",
     .echo = "CVE-2016-9962: a container took descriptors of runc's as it entered",
     .payload = "tried('pidfd_getfd', pidfd_of(os.getppid()), 9999, 0, past='EBADF')\n"},
    {CALL, .id = "SY6c", .title = "process_madvise on init", .stopped_by = MACHINE,
     .sees = "EPERM|ENOSYS",
     .payload = "far = room(16, 'QQ', 4096, 4096)\n"
                "tried('process_madvise', pidfd_of(os.getppid()), far, 1, 20, 0, "
                "past='ENOMEM EFAULT')\n"},
    {CALL, .id = "SY7", .title = "swapon", .stopped_by = MACHINE, .sees = "EPERM",
     .echo = "LXD issue 5562: a container's swap file stayed on, for the whole host",
     .payload = "tried('swapon', b'/nonexistent', 0, past='ENOENT')\n"},
    {CALL, .id = "SY7b", .title = "kexec_load", .stopped_by = MACHINE, .sees = "EPERM",
     .payload = "tried('kexec_load', 0, 0, 0, 0xff00, past='EINVAL')\n"},
    {CALL, .id = "SY7c", .title = "init_module", .stopped_by = MACHINE, .sees = "EPERM",
     .echo = "Play-with-Docker, 2019: a module loaded in a container ran on the host",
     .payload = "tried('init_module', 0, 0, b'', past='EFAULT ENOEXEC EINVAL')\n"},
    /* A pid namespace's own reboot ends that namespace alone, so who has the capability there may. */
    {CALL, .id = "SY7d", .title = "reboot", .stopped_by = OWN, .may_stop = "user", .sees = "EPERM",
     .echo = "RancherOS issue 2164: a reboot in a privileged container hung the host",
     .payload = "tried('reboot', 0, 0, 0, 0, past='EINVAL')\n"},
    {CALL, .id = "SY7e", .title = "acct", .stopped_by = MACHINE, .sees = "EPERM",
     .payload = "tried('acct', b'/nonexistent', past='ENOENT')\n"},
    {CALL, .id = "SY8", .title = "adjtimex", .stopped_by = MACHINE, .sees = "EPERM",
     .echo = "CVE-2018-11508: adjtimex let its caller read kernel memory",
     .payload = "tried('adjtimex', room(208, 'I', 0x4000), past='EINVAL')\n"},
    {CALL, .id = "SY8b", .title = "clock_adjtime", .stopped_by = MACHINE, .sees = "EPERM",
     .payload = "tried('clock_adjtime', 0, room(208, 'I', 0x4000), past='EINVAL')\n"},
    {CALL, .id = "SY8c", .title = "settimeofday, to nothing", .stopped_by = MACHINE,
     .sees = "EPERM", .echo = "moby issue 16369: the date, set in a container, was the host's",
     .payload = "tried('settimeofday', None, None)\n"},
    {CALL, .id = "SY9", .title = "a socket by int 0x80, past a 64-bit filter",
     .stopped_by = "seccomp", .sees = "killed by SIGSYS",
     .echo = "CVE-2009-0835: seccomp took a 32-bit call for a 64-bit one", .prepare = needs_int80,
     .judge = judge_int80,
     .payload = "import mmap\n"
                "load()\n"
                "page = mmap.mmap(-1, 4096, prot=7)\n"
                "page.write(bytes.fromhex('53b86701000089fb89f1cd8048985bc3'))\n"
                "where = ctypes.addressof(ctypes.c_char.from_buffer(page))\n"
                "make = ctypes.CFUNCTYPE(ctypes.c_long, *[ctypes.c_long] * 3)(where)\n"
                "r = make(16, 3, 0)  # AF_NETLINK, SOCK_RAW\n"
                "if r < 0:\n"
                "    stopped('int 0x80', -r)\n"
                "through('int 0x80', 'socket %d' % r)\n"},
    {CALL, .id = "SY10", .title = "a call with the x32 bit", .stopped_by = "seccomp",
     .sees = "killed by SIGSYS|ENOSYS",
     .echo = "CVE-2014-0038: recvmmsg of x32 trusted a pointer, and gave root", .judge = judge_x32,
     .payload = "if os.uname().machine != 'x86_64':\n"
                "    untestable('x32 is of x86-64')\n"
                "NR['getpid, x32'] = 0x40000000 | 39\n"
                "tried('getpid, x32')\n"},
    {CALL, .id = "SY11", .title = "TIOCSTI", .stopped_by = "seccomp", .sees = "EPERM",
     .echo = "CVE-2017-5226: code in bubblewrap typed into the caller's terminal",
     .payload = "tried('ioctl', 0, 0x5412, b'x', past='ENOTTY EIO')\n"},
    {CALL, .id = "SY11b", .title = "TIOCSTI with the high 32 bits set", .stopped_by = "seccomp",
     .sees = "EPERM", .echo = "CVE-2019-10063: Flatpak's filter compared 64 bits, the kernel 32",
     .payload = "tried('ioctl', 0, 0x5412 - (1 << 32), b'x', past='ENOTTY EIO')\n"},
    {CALL, .id = "SY11c", .title = "TIOCLINUX", .stopped_by = "seccomp", .sees = "EPERM",
     .echo = "CVE-2023-28100: code in Flatpak pasted into a virtual console",
     .payload = "tried('ioctl', 0, 0x541c, b'\\3', past='ENOTTY EIO')\n"},
    {.family = "calls",
     .id = "SY12",
     .title = "each system call from 0 to 600 that is not declared, or never may be",
     .stopped_by = "seccomp",
     .sees = "ENOSYS",
     .echo = "CVE-2021-41133: Flatpak's list of refused calls lacked the new ones",
     .kind = PAYLOAD_STATIC,
     .payload = "sweep_calls",
     .prepare = undeclared_calls},
    {CALL, .id = "SY13", .title = "sched_setscheduler: a real-time process", .stopped_by = MACHINE,
     .sees = "EPERM", .may_stop = "cpu", .prepare = has_real_time,
     .payload = "tried('sched_setscheduler', 0, 1, room(4, 'i', 1))\n"},
    {CALL, .id = "SY13b", .title = "sched_setattr: the same by structure", .stopped_by = MACHINE,
     .sees = "EPERM", .may_stop = "cpu", .prepare = has_real_time,
     .payload = "tried('sched_setattr', 0, room(48, 'IIQiI', 48, 1, 0, 0, 1), 0)\n"},
    {CALL, .id = "SY13c", .may_stop = "seccomp", .title = "a negative nice value",
     .stopped_by = "user identity caps", .sees = "EACCES|EPERM",
     .payload = "tried('setpriority', 0, 0, -20)\n"},
    {CALL, .id = "SY14", .title = "personality: no address randomization", .stopped_by = "seccomp",
     .sees = "EPERM",
     .echo = "CVE-2009-1895: set-user-id programs kept their caller's memory layout",
     .payload = "tried('personality', 0x40000)\n"},

    /* ---------------------------------------------------------------- not in the list of cases */

    /* Its own listener on top of the box's would be asked first, and could answer "go on". */
    {CALL, .id = "SY15", .title = "become the supervisor of its own filter",
     .stopped_by = "seccomp", .may_stop = "identity caps", .sees = "EBUSY|EPERM|ENOSYS|EINVAL",
     .payload = "tried('seccomp', 1, 8, allow_all())\n"},
    {CALL, .id = "SY16", .title = "load a filter that allows all, then io_uring_setup",
     .stopped_by = "seccomp", .sees = "EPERM|ENOSYS",
     .echo = "CVE-2022-30594: ptrace could suspend a seccomp filter",
     .payload = "try:\n"
                "    syscall(NR['seccomp'], 1, 0, allow_all())\n"
                "except OSError:\n"
                "    pass\n"
                "tried('io_uring_setup', 1, room(120))\n"},
    {CALL, .id = "SY17", .title = "memfd_secret", .stopped_by = "seccomp", .sees = "EPERM|ENOSYS",
     .payload = "tried('memfd_secret', 0)\n"},
    {CALL, .id = "SY18", .title = "fanotify_init, as anybody may", .stopped_by = "seccomp",
     .sees = "EPERM|ENOSYS",
     .echo = "CVE-2022-1998: a failed read of a fanotify event used freed memory",
     .payload = "tried('fanotify_init', 0x200, 0)\n"},
    {CALL, .id = "SY19", .title = "quotactl", .stopped_by = "seccomp", .sees = "EPERM|ENOSYS",
     .payload = "tried('quotactl', 0x80000400, b'/nonexistent', 0, room(8), past='ENOENT')\n"},
    {CALL, .id = "SY20", .title = "cachestat: which pages of a file others have read",
     .stopped_by = "seccomp", .sees = "EPERM|ENOSYS",
     .echo = "CVE-2025-21691: cachestat told of files that the caller cannot write",
     .payload = "fd = os.open(TMP + '/file', os.O_RDWR | os.O_CREAT)\n"
                "tried('cachestat', fd, room(16), room(40), 0)\n"},
    {CALL, .id = "SY20b", .title = "mincore: the same of a mapping", .stopped_by = "seccomp",
     .sees = "EPERM|ENOSYS", .echo = "CVE-2019-5489: mincore told what others had read",
     .payload = "import mmap\n"
                "load()\n"
                "page = mmap.mmap(-1, 4096)\n"
                "where = ctypes.addressof(ctypes.c_char.from_buffer(page))\n"
                "tried('mincore', where, 4096, room(1))\n"},
    {CALL, .id = "SY21", .title = "modify_ldt", .stopped_by = "seccomp", .sees = "EPERM|ENOSYS",
     .echo = "CVE-2017-17053: a failed copy of an LDT used freed memory",
     .payload = "tried('modify_ldt', 0, room(16), 16)\n"},
    {CALL, .id = "SY22", .title = "ioperm", .stopped_by = MACHINE, .sees = "EPERM|ENOSYS",
     .echo = "CVE-2020-15852: under Xen a task could have another's I/O ports",
     .payload = "tried('ioperm', 0x80, 1, 1)\n"},
    {CALL, .id = "SY22b", .title = "iopl", .stopped_by = MACHINE, .sees = "EPERM|ENOSYS",
     .echo = "CVE-2016-3157: Xen guests switched tasks, and left iopl as it was",
     .payload = "tried('iopl', 3)\n"},
    {CALL, .id = "SY23", .title = "kcmp", .stopped_by = "seccomp", .sees = "EPERM|ENOSYS",
     .payload = "tried('kcmp', os.getpid(), os.getpid(), 1, 0, 0)\n"},
    {CALL, .id = "SY24", .title = "mount_setattr", .stopped_by = OWN, .may_stop = "user",
     .sees = "EPERM|ENOSYS",
     .echo = "CVE-2021-41133: Flatpak's filter did not know the new mount calls",
     .payload = "tried('mount_setattr', -100, b'/nonexistent', 0, room(32, 'Q', 1), 32,\n"
                "      past='ENOENT')\n"},
    {CALL, .id = "SY24b", .title = "listmount", .stopped_by = "seccomp", .sees = "EPERM|ENOSYS",
     .payload =
         "tried('listmount', room(32, 'IIQQ', 24, 0, (1 << 64) - 1, 0), room(512), 64, 0)\n"},
    {CALL, .id = "SY25", .title = "sethostname", .stopped_by = OWN, .may_stop = "user",
     .sees = "EPERM", .echo = "LXC issue 2605: a privileged Kubernetes container renamed its host",
     .payload = "tried('sethostname', b'x', -1, past='EINVAL')\n"},
    {CALL, .id = "SY26", .may_stop = "seccomp",
     .title = "prctl(PR_SET_MM): another brk, argv, auxv", .stopped_by = "user identity caps",
     .sees = "EPERM", .prepare = has_sys_resource,
     .payload = "tried('prctl', 35, 6, 0, 0, 0, past='EINVAL')\n"},
    {CALL, .id = "SY27", .title = "move_pages", .stopped_by = "seccomp", .sees = "EPERM|ENOSYS",
     .echo = "CVE-2017-14140: move_pages told where a set-user-id program's memory lay",
     .payload = "tried('move_pages', 0, 0, None, None, None, 0)\n"},
    {CALL, .id = "SY28", .title = "vmsplice", .stopped_by = "seccomp",
     .sees = "EINVAL|EPERM|ENOSYS",
     .echo = "CVE-2008-0600: vmsplice trusted a pointer, and gave root",
     .payload = "r, w = os.pipe()\n"
                "byte = room(1)\n"
                "tried('vmsplice', w, room(16, 'QQ', ctypes.addressof(byte), 1), 1, 0)\n"},
    {CALL, .id = "SY29", .title = "sysfs(2), of another age", .stopped_by = "seccomp",
     .sees = "EPERM|ENOSYS", .payload = "tried('sysfs', 3)\n"},
    {CALL, .id = "SY30", .title = "name_to_handle_at", .stopped_by = "seccomp",
     .sees = "EPERM|ENOSYS",
     .echo = "Shocker, 2014: code in Docker opened host files by guessed handles",
     .payload = "tried('name_to_handle_at', -100, TMP.encode(), room(136, 'I', 128), room(8), 0,\n"
                "      untestable_on='EOPNOTSUPP ENOTSUP')\n"},
    {.id = NULL},
};
