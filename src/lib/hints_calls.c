/*
 * hints_calls.c: what a refused system call means to the writer of the code.
 *
 * That the filter refused a call is a fact, but not always the reason of a
 * failure: the C library asks netlink for its addresses and does without, and
 * some runtimes try io_uring first. So each call has a weight: how much more
 * than the fact it takes to say so.
 */
#include "lib/hints_inner.h"

#include <linux/sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/banned.h"

enum weight {
    BY_ITSELF, /* nothing makes this call but code that means it */
    IF_FAILED, /* a program may try it, and go on without */
    IF_SAID,   /* libraries do, unasked: only where the failure's last words are EPERM's */
};

static const struct group {
    enum weight weight;
    const char *why, *instead;
} mounts = {BY_ITSELF, "mounts and roots cannot be changed in a box",
            "use plain directories below /tmp, and have files handed in with --volume"},
  spaces = {BY_ITSELF, "a box makes and enters no further namespaces",
            "run the program directly, the box isolates it already"},
  others = {BY_ITSELF, "other processes cannot be traced or read into",
            "debug from inside the program: pdb, faulthandler, logging"},
  kernel = {BY_ITSELF, "this part of the kernel is closed to a box",
            "measure and filter in the program itself"},
  rings = {IF_FAILED, "io_uring is closed to a box",
           "use ordinary reads and writes, threads or epoll (asyncio's default)"},
  keys = {BY_ITSELF, "kernel keyrings are not the box's own", "keep secrets in memory or a file"},
  memory = {IF_FAILED, "a file in memory could be executed",
            "use a file in /tmp or /dev/shm, or anonymous mmap"},
  handles = {IF_FAILED, "files are not opened by handle", "open them by path"},
  machine = {BY_ITSELF, "the machine, its clock and its name are not the box's to change",
             "leave that to whoever runs the host"},
  watching = {BY_ITSELF, "whole file systems cannot be watched",
              "use inotify on single directories, or poll"},
  bits = {IF_FAILED, "setuid and setgid bits cannot be set",
          "use a mode of 0777 or less: everything runs as one user anyway"},
  nodes = {BY_ITSELF, "device nodes cannot be made",
           "use /dev/null, /dev/zero or /dev/urandom, or a FIFO or file for a pipe or disk"},
  limits = {IF_FAILED, "limits of other processes cannot be changed",
            "set them in the process itself, or in the child before it executes"},
  schedule = {IF_FAILED, "real-time scheduling is not allowed", "use nice, or no priority at all"},
  odd = {IF_FAILED, "it weakens the protection of memory", "go without it"},
  identity = {IF_SAID, "the code cannot become another user and has no capabilities",
              "stay who you are, and leave files to their owner, which is the code itself"},
  filters = {IF_FAILED, "a box takes no socket filters", "look at what is received in the program"},
  options = {IF_SAID, "this is closed to a box", "go without it"},
  obsolete = {IF_FAILED, "this call is obsolete", "use what replaced it"},
  terminal = {IF_SAID, "terminals are not the box's to command",
              "read standard input and write standard output as pipes"},
  sockets = {BY_ITSELF, "there are only local, TCP and UDP sockets",
             "use AF_UNIX, or AF_INET on 127.0.0.1"},
  quiet = {IF_SAID, "there are only local, TCP and UDP sockets",
           "use AF_UNIX, or AF_INET on 127.0.0.1, and read /proc/net for addresses"},
  unknown = {IF_FAILED, "seccomp does not allow it", "do it by other means, or go without"};

static const struct call {
    int nr;
    const char *name;
    const struct group *group;
} calls[] = {
#define CALL(name, group)                                                                          \
    { SYS_##name, #name, &(group) }
    CALL(mount, mounts),
    CALL(umount2, mounts),
    CALL(pivot_root, mounts),
    CALL(chroot, mounts),
    CALL(fsopen, mounts),
    CALL(fsconfig, mounts),
    CALL(fsmount, mounts),
    CALL(fspick, mounts),
    CALL(move_mount, mounts),
    CALL(open_tree, mounts),
    CALL(mount_setattr, mounts),
    {457, "statmount", &mounts},
    {458, "listmount", &mounts},
    {467, "open_tree_attr", &mounts},
    CALL(unshare, spaces),
    CALL(setns, spaces),
    CALL(clone, spaces),
    CALL(ptrace, others),
    CALL(process_vm_readv, others),
    CALL(process_vm_writev, others),
    CALL(pidfd_getfd, others),
    CALL(kcmp, others),
    CALL(process_madvise, others),
#ifdef SYS_process_mrelease
    CALL(process_mrelease, others),
#endif
    CALL(bpf, kernel),
    CALL(perf_event_open, kernel),
    CALL(userfaultfd, kernel),
    CALL(io_uring_setup, rings),
    CALL(io_uring_enter, rings),
    CALL(io_uring_register, rings),
    CALL(add_key, keys),
    CALL(request_key, keys),
    CALL(keyctl, keys),
    CALL(memfd_create, memory),
#ifdef SYS_memfd_secret
    CALL(memfd_secret, memory),
#endif
    CALL(name_to_handle_at, handles),
    CALL(open_by_handle_at, handles),
    CALL(reboot, machine),
    CALL(syslog, machine),
    CALL(swapon, machine),
    CALL(swapoff, machine),
    CALL(acct, machine),
    CALL(quotactl, machine),
    CALL(init_module, machine),
    CALL(finit_module, machine),
    CALL(delete_module, machine),
    CALL(kexec_load, machine),
    CALL(kexec_file_load, machine),
    CALL(quotactl_fd, machine),
    CALL(vhangup, machine),
    CALL(sethostname, machine),
    CALL(setdomainname, machine),
    CALL(settimeofday, machine),
    CALL(clock_settime, machine),
    CALL(adjtimex, machine),
    CALL(clock_adjtime, machine),
#ifdef SYS_iopl
    CALL(iopl, machine),
    CALL(ioperm, machine),
    CALL(modify_ldt, odd),
#endif
    CALL(fanotify_init, watching),
    CALL(fanotify_mark, watching),
#ifdef SYS_chmod
    CALL(chmod, bits),
    CALL(creat, bits),
    CALL(open, bits),
    CALL(mknod, nodes),
#endif
    CALL(fchmod, bits),
    CALL(fchmodat, bits),
    {452, "fchmodat2",
     &bits}, /* these numbers are newer than some headers, and the same everywhere */
    CALL(openat, bits),
    CALL(mknodat, nodes),
    CALL(prlimit64, limits),
    CALL(sched_setscheduler, schedule),
    CALL(sched_setattr, schedule),
    CALL(sched_setparam, schedule),
    CALL(personality, odd),
    CALL(setuid, identity),
    CALL(setgid, identity),
    CALL(setgroups, identity),
    CALL(setreuid, identity),
    CALL(setregid, identity),
    CALL(setresuid, identity),
    CALL(setresgid, identity),
    CALL(setfsuid, identity),
    CALL(setfsgid, identity),
    CALL(capset, identity),
    CALL(prctl, options),
    CALL(fcntl, options),
    CALL(madvise, machine),
    CALL(renameat2, nodes),
    CALL(setsockopt, filters),
    CALL(ioctl, terminal),
    CALL(socket, sockets),
    CALL(socketpair, sockets),
#ifdef SYS_ustat
    CALL(ustat, obsolete),
    CALL(sysfs, obsolete),
    CALL(uselib, obsolete),
    CALL(_sysctl, obsolete),
#endif
    CALL(nfsservctl, obsolete),
#ifdef SYS_lookup_dcookie
    CALL(lookup_dcookie, obsolete),
#endif
#undef CALL
};

/* ------------------------------------------------------------------ names of arguments */

struct name {
    uint64_t value;
    const char *name;
};

static const char *name_of(const struct name *names, size_t n, uint64_t value) {
    for (size_t i = 0; i < n; i++)
        if (names[i].value == value)
            return names[i].name;
    return NULL;
}

static void socket_name(const struct refused_call *c, const char *call, char *out, size_t size) {
#define AF(name)                                                                                   \
    { AF_##name, #name }
    static const struct name families[] = {
        AF(UNSPEC), AF(INET),   AF(INET6), AF(AX25),      AF(IPX),   AF(APPLETALK), AF(NETROM),
        AF(BRIDGE), AF(ATMPVC), AF(X25),   AF(ROSE),      AF(KEY),   AF(NETLINK),   AF(PACKET),
        AF(RDS),    AF(LLC),    AF(CAN),   AF(TIPC),      AF(RXRPC), AF(BLUETOOTH), AF(PPPOX),
        AF(PHONET), AF(NFC),    AF(ALG),   AF(VSOCK),     AF(KCM),   AF(QIPCRTR),   AF(SMC),
        AF(XDP),    AF(IB),     AF(MPLS),  AF(IEEE802154)};
#undef AF
    unsigned family = (unsigned)c->args[0];
    const char *name = name_of(families, ARRAY_LEN(families), family);
    bool raw = (family == AF_INET || family == AF_INET6) && (c->args[1] & 15) == SOCK_RAW;

    if (name)
        (void)snprintf(out, size, "%s(AF_%s%s)", call, name, raw ? ", SOCK_RAW" : "");
    else
        (void)snprintf(out, size, "%s with address family %u", call, family);
}

static void clone_name(const struct refused_call *c, char *out, size_t size) {
    static const struct name flags[] = {{CLONE_NEWUSER, "USER"},    {CLONE_NEWNS, "NS"},
                                        {CLONE_NEWNET, "NET"},      {CLONE_NEWPID, "PID"},
                                        {CLONE_NEWIPC, "IPC"},      {CLONE_NEWUTS, "UTS"},
                                        {CLONE_NEWCGROUP, "CGROUP"}};

    for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
        if (c->args[0] & flags[i].value) {
            (void)snprintf(out, size, "clone(CLONE_NEW%s)", flags[i].name);
            return;
        }
    }
}

static void ioctl_name(const struct refused_call *c, char *out, size_t size) {
    static const struct name requests[] = {{TIOCSTI, "TIOCSTI"},
                                           {TIOCLINUX, "TIOCLINUX"},
                                           {TIOCSETD, "TIOCSETD"},
                                           {TIOCSCTTY, "TIOCSCTTY"}};
    const char *name = name_of(requests, ARRAY_LEN(requests), (uint32_t)c->args[1]);

    if (name)
        (void)snprintf(out, size, "ioctl(%s)", name);
    else
        (void)snprintf(out, size, "ioctl 0x%x", (unsigned)c->args[1]);
}

static void prctl_name(const struct refused_call *c, char *out, size_t size) {
    static const struct name options_[] = {{PR_SET_SECCOMP, "PR_SET_SECCOMP"},
                                           {PR_SET_MM, "PR_SET_MM"},
                                           {PR_CAP_AMBIENT, "PR_CAP_AMBIENT"}};
    const char *name = name_of(options_, ARRAY_LEN(options_), (uint32_t)c->args[0]);

    if (name)
        (void)snprintf(out, size, "prctl(%s)", name);
}

static void call_name(const struct refused_call *c, const struct call *known, char *out,
                      size_t size) {
    if (!known)
        (void)snprintf(out, size, "system call %d", c->nr);
    else
        (void)snprintf(out, size, "%s", known->name);
    if (!known)
        return;
    if (known->group == &sockets)
        socket_name(c, known->name, out, size);
    else if (known->group == &terminal)
        ioctl_name(c, out, size);
    else if (c->nr == SYS_prctl)
        prctl_name(c, out, size);
    else if (c->nr == SYS_clone)
        clone_name(c, out, size);
    else if (known->group == &bits)
        (void)snprintf(out, size, "%s with a setuid or setgid bit", known->name);
}

/* ------------------------------------------------------------------ */

static const struct call *find(int nr) {
    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        if (calls[i].nr == nr)
            return &calls[i];
    return NULL;
}

/* What libraries open unasked: netlink for getaddrinfo and getifaddrs, alg for OpenSSL. */
static const struct group *group_of(const struct refused_call *c, const struct call *known) {
    if (!known)
        return &unknown;
    if (known->group == &sockets && (c->args[0] == AF_NETLINK || c->args[0] == AF_ALG))
        return &quiet;
    return known->group;
}

/* The failure's last line is EPERM's, and about a socket where it is one that was refused. */
static bool said(const struct hint_source *s, const struct group *group) {
    struct traceback t;
    struct span text = s->err, line = last_line(&text);

    if (s->err_cut || !hint_failed(s))
        return false;
    bool python = last_traceback(s->err, &t);
    if (python ? t.number != 1 : !span_ends(line, "Operation not permitted"))
        return false;
    return group != &quiet || span_holds(python ? t.source : line, "socket");
}

/* libuv looks for io_uring at every start, and does without. */
static bool of_node(const struct hint_source *s) {
    struct span text = s->err, line = last_line(&text);

    return span_begins(line, "Node.js v");
}

static bool weighs(const struct hint_source *s, const struct group *group) {
    if (group == &rings && of_node(s))
        return false;
    return group->weight == BY_ITSELF || (group->weight == IF_FAILED && hint_failed(s)) ||
           said(s, group);
}

void hints_of_calls(const struct hint_source *s, struct hints *h) {
    const struct group *given[FACTS_REFUSED] = {0};
    const unsigned n = MIN(s->facts->n_refused, (unsigned)FACTS_REFUSED);

    for (unsigned i = 0; i < n; i++) {
        const struct refused_call *c = &s->facts->refused[i];
        const struct call *known = find(c->nr);
        const struct group *group = group_of(c, known);
        char name[64];
        bool again = false;

        /* fsopen after mount, io_uring_enter after _setup: one hint says it all. But sockets differ. */
        for (unsigned j = 0; j < i; j++)
            again |= given[j] == group && group != &sockets;
        if (again || !weighs(s, group))
            continue;
        given[i] = group;
        call_name(c, known, name, sizeof(name));
        hint_add(h, CTL_SECCOMP, group->instead, "%s was refused: %s", name, group->why);
    }
}
