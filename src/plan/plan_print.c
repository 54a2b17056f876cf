/*
 * plan_print.c: a plan as the system calls it is.
 *
 * For people: `mayfly plan` and the golden tests. A slot prints as the name of
 * what it holds, a flag word as the kernel's own names; a bit without a name is
 * printed in hex rather than left out.
 */
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "linux/sys.h"
#include "plan/plan.h"

#include "base/banned.h"

static const char *const stage_names[STAGE__N] = {"host",   "clone", "apart", "outside",
                                                  "inside", "pivot", "seal"};
static const char *const stage_what[STAGE__N] = {
    "mayfly, outside, before the box exists",
    "the one clone3 that makes the box's init",
    "init, while mayfly does what is next",
    "mayfly, outside, at the same time",
    "init, inside its namespaces, the host's files still there",
    "init, leaves the host's files for good",
    "the payload's process gives up everything, then executes",
};

const char *stage_name(enum stage s) { return s < STAGE__N ? stage_names[s] : "?"; }

static const char *const op_names[OP__N] = {
    [OP_CGROUP_ENABLE] = "cgroup-enable",
    [OP_CGROUP_LEAF] = "cgroup-leaf",
    [OP_CGROUP_MAKE] = "cgroup-make",
    [OP_CGROUP_SET] = "cgroup-set",
    [OP_CGROUP_WATCH] = "cgroup-watch",
    [OP_ID_LEASE] = "id-lease",
    [OP_NAMESPACE] = "namespace",
    [OP_ID_MAP] = "id-map",
    [OP_TREE_IDMAP] = "tree-idmap",
    [OP_USERNS_KEEP] = "userns-keep",
    [OP_CGROUP_JOIN] = "cgroup-join",
    [OP_UNSHARE] = "unshare",
    [OP_BECOME] = "become",
    [OP_PRIVATE] = "private",
    [OP_TREE_OPEN] = "tree-open",
    [OP_TREE_ATTR] = "tree-attr",
    [OP_TREE_ATTACH] = "tree-attach",
    [OP_FS_NEW] = "fs-new",
    [OP_MKDIR] = "mkdir",
    [OP_MKFILE] = "mkfile",
    [OP_SYMLINK] = "symlink",
    [OP_WRITE] = "write",
    [OP_MASK] = "mask",
    [OP_OVERLAY] = "overlay",
    [OP_FILE] = "file",
    [OP_TREE_SEND] = "tree-send",
    [OP_CODE_FILE] = "code-file",
    [OP_PIVOT] = "pivot",
    [OP_HOSTNAME] = "hostname",
    [OP_LOOPBACK] = "loopback",
    [OP_CAPS_BOUND] = "caps-bound",
    [OP_SHED_HOST] = "shed-host",
    [OP_SESSION] = "session",
    [OP_UMASK] = "umask",
    [OP_RLIMIT] = "rlimit",
    [OP_CHDIR] = "chdir",
    [OP_STDIO] = "stdio",
    [OP_GROUPS] = "groups",
    [OP_IDS] = "ids",
    [OP_CAPS_NONE] = "caps-none",
    [OP_PRCTL] = "prctl",
    [OP_LANDLOCK] = "landlock",
    [OP_SECCOMP] = "seccomp",
};

const char *op_name(enum op_kind k) { return k < OP__N && op_names[k] ? op_names[k] : "?"; }

struct word {
    uint64_t bit;
    const char *name;
};

/* The bits of `flags` by name, "0" for none. */
static void add_flags(struct buf *out, uint64_t flags, const struct word *words, size_t n) {
    const char *sep = "";

    for (size_t i = 0; i < n; i++) {
        if ((flags & words[i].bit) != words[i].bit)
            continue;
        buf_printf(out, "%s%s", sep, words[i].name);
        flags &= ~words[i].bit;
        sep = "|";
    }
    if (flags)
        buf_printf(out, "%s0x%llx", sep, (unsigned long long)flags);
    else if (!*sep)
        buf_puts(out, "0");
}

static const struct word ns_words[] = {
    {CLONE_NEWUSER, "CLONE_NEWUSER"},     {CLONE_NEWPID, "CLONE_NEWPID"},
    {CLONE_NEWNS, "CLONE_NEWNS"},         {CLONE_NEWNET, "CLONE_NEWNET"},
    {CLONE_NEWIPC, "CLONE_NEWIPC"},       {CLONE_NEWUTS, "CLONE_NEWUTS"},
    {CLONE_NEWCGROUP, "CLONE_NEWCGROUP"},
};
static const struct word attr_words[] = {
    {MOUNT_ATTR_RDONLY, "MOUNT_ATTR_RDONLY"},
    {MOUNT_ATTR_NOSUID, "MOUNT_ATTR_NOSUID"},
    {MOUNT_ATTR_NODEV, "MOUNT_ATTR_NODEV"},
    {MOUNT_ATTR_NOEXEC, "MOUNT_ATTR_NOEXEC"},
    {MOUNT_ATTR_NOSYMFOLLOW, "MOUNT_ATTR_NOSYMFOLLOW"},
};

static const char *slot_text(int slot, char text[24]) {
    static const char *const names[] = {"root", "proc",    "dev",  "tmp", "home",
                                        "shm",  "scratch", "mask", "in",  "out"};

    if (slot == OP_AT_ROOT)
        return "/";
    if (slot >= 0 && slot < (int)ARRAY_LEN(names))
        return names[slot];
    (void)snprintf(text, 24, slot >= SLOT_BIND ? "bind%d" : "tmpfs%d",
                   slot >= SLOT_BIND ? slot - SLOT_BIND : slot - SLOT_TMPFS);
    return text;
}

static const char *rlimit_text(uint64_t resource) {
    static const char *const names[] = {
        [RLIMIT_CPU] = "CPU",           [RLIMIT_FSIZE] = "FSIZE",
        [RLIMIT_DATA] = "DATA",         [RLIMIT_STACK] = "STACK",
        [RLIMIT_CORE] = "CORE",         [RLIMIT_RSS] = "RSS",
        [RLIMIT_NPROC] = "NPROC",       [RLIMIT_NOFILE] = "NOFILE",
        [RLIMIT_MEMLOCK] = "MEMLOCK",   [RLIMIT_AS] = "AS",
        [RLIMIT_LOCKS] = "LOCKS",       [RLIMIT_SIGPENDING] = "SIGPENDING",
        [RLIMIT_MSGQUEUE] = "MSGQUEUE", [RLIMIT_NICE] = "NICE",
        [RLIMIT_RTPRIO] = "RTPRIO",     [RLIMIT_RTTIME] = "RTTIME",
    };
    return resource < ARRAY_LEN(names) && names[resource] ? names[resource] : "?";
}

static const char *limit_text(uint64_t value, char text[24]) {
    if (value == UINT64_MAX)
        return "RLIM_INFINITY";
    (void)snprintf(text, 24, "%llu", (unsigned long long)value);
    return text;
}

static void print_prctl(const struct op *op, struct buf *out) {
    switch ((int)op->a) {
    case PR_SET_NO_NEW_PRIVS:
        buf_printf(out, "prctl(PR_SET_NO_NEW_PRIVS, %d)", (int)op->b);
        break;
    case PR_SET_DUMPABLE:
        buf_printf(out, "prctl(PR_SET_DUMPABLE, %d)", (int)op->b);
        break;
    default:
        buf_printf(out, "prctl(%d, %llu, %llu)", (int)op->a, (unsigned long long)op->b,
                   (unsigned long long)op->c);
    }
}

/* Rows about the box's cgroup; `{box}` is its name, chosen when the box is opened. */
static bool print_cgroup_op(const struct op *op, struct buf *out) {
    switch (op->kind) {
    case OP_CGROUP_ENABLE:
        buf_printf(out, "write(\"%s/cgroup.subtree_control\", \"%s\")", op->path, op->value);
        return true;
    case OP_CGROUP_LEAF:
        buf_printf(out, "mkdir(\"%s/{leaf}\"), write(\"…/cgroup.procs\", \"0\")", op->path);
        return true;
    case OP_CGROUP_MAKE:
        buf_printf(out, "mkdir(\"%s/{box}\", 0755)", op->path);
        return true;
    case OP_CGROUP_SET:
        buf_printf(out, "write(\"{box}/%s\", \"%s\")", op->path, op->value);
        return true;
    case OP_CGROUP_WATCH:
        buf_puts(out, "write(\"{box}/cgroup.event_control\", \"{eventfd} {memory.oom_control}\")");
        return true;
    case OP_CGROUP_JOIN:
        buf_printf(out, "write(\"{box%d}/tasks\", \"0\")", op->slot);
        return true;
    default:
        return false;
    }
}

/* Rows about mounts and files. */
static bool print_mount_op(const struct op *op, struct buf *out) {
    char s1[24], s2[24];
    const char *slot = slot_text(op->slot, s1);

    switch (op->kind) {
    case OP_PRIVATE:
        buf_printf(out, "mount(NULL, \"%s\", NULL, MS_REC|MS_PRIVATE)", op->path);
        return true;
    case OP_TREE_OPEN:
        buf_printf(out, "open_tree(AT_FDCWD, \"%s\", OPEN_TREE_CLONE|AT_RECURSIVE) = %s", op->path,
                   slot);
        return true;
    case OP_TREE_ATTR:
        buf_printf(out, "mount_setattr(%s, AT_RECURSIVE, ", slot);
        add_flags(out, op->flags, attr_words, ARRAY_LEN(attr_words));
        buf_puts(out, ", MS_PRIVATE)");
        return true;
    case OP_TREE_IDMAP:
        buf_printf(out,
                   "mount_setattr(%s, AT_RECURSIVE, MOUNT_ATTR_IDMAP, {init's user namespace})",
                   slot);
        return true;
    case OP_TREE_ATTACH:
        if (op->slot2 == OP_AT_ROOT)
            buf_printf(out, "move_mount(%s, AT_FDCWD, \"%s\")", slot, op->path);
        else
            buf_printf(out, "move_mount(%s, %s, \"%s\")", slot, slot_text(op->slot2, s2), op->path);
        return true;
    case OP_FS_NEW:
        buf_printf(out, "fsopen(\"%s\"), fsconfig(\"%s\"), fsmount(", op->path,
                   op->value ? op->value : "");
        add_flags(out, op->flags, attr_words, ARRAY_LEN(attr_words));
        buf_printf(out, ") = %s", slot);
        return true;
    case OP_MKDIR:
        buf_printf(out, "mkdirat(%s, \"%s\", 0%o)", slot, op->path, (unsigned)op->a);
        break;
    case OP_MKFILE:
        buf_printf(out, "openat(%s, \"%s\", O_CREAT|O_EXCL, 0%o)", slot, op->path, (unsigned)op->a);
        break;
    case OP_CODE_FILE:
        buf_printf(out,
                   "openat(%s, \"%s\", O_CREAT|O_EXCL, 0%o), sendmsg({supervisor}, SCM_RIGHTS)",
                   slot, op->path, (unsigned)op->a);
        break;
    case OP_SYMLINK:
        buf_printf(out, "symlinkat(\"%s\", %s, \"%s\")", op->value, slot, op->path);
        return true;
    case OP_WRITE:
        buf_printf(out, "write(%s \"%s\", \"%s\")", slot, op->path, op->value);
        return true;
    case OP_MASK:
        buf_printf(out, "open_tree(\"/dev/null\") or fsmount({empty tmpfs}), move_mount(%s \"%s\")",
                   slot, op->path);
        return true;
    case OP_OVERLAY:
        if (op->value)
            buf_printf(out, "fsopen(\"tmpfs\") with \"%s\", ", op->value);
        buf_printf(out, "fsopen(\"overlay\") with lowerdir=%s, move_mount(\"/\") = %s", slot, slot);
        for (const char *const *name = op->data; name && *name; name++)
            buf_printf(out, ", mkdir(\"%s\")", *name);
        return true;
    case OP_FILE:
        buf_printf(out, "openat(%s, \"%s\", O_CREAT|O_EXCL, 0%o), write({%llu bytes})", slot,
                   op->path, (unsigned)op->a, (unsigned long long)op->b);
        return true;
    case OP_TREE_SEND:
        buf_printf(out, "sendmsg({supervisor}, SCM_RIGHTS, %s)", slot);
        return true;
    case OP_USERNS_KEEP:
        buf_puts(out, "openat(\"/proc/{init}/ns/user\")");
        return true;
    case OP_PIVOT:
        buf_printf(out, "fchdir(%s), pivot_root(\".\", \".\"), umount2(\".\", MNT_DETACH)", slot);
        return true;
    default:
        return false;
    }
    if (op->b != OP_NO_OWNER)
        buf_printf(out, ", fchown(%llu)", (unsigned long long)op->b);
    return true;
}

void plan_print_op(const struct op *op, struct buf *out) {
    char t1[24], t2[24];

    if (print_cgroup_op(op, out) || print_mount_op(op, out))
        return;
    switch (op->kind) {
    case OP_ID_LEASE:
        buf_puts(out, "fcntl({ids.lock}, F_OFD_SETLK, {slot})");
        break;
    case OP_NAMESPACE:
        buf_puts(out, "clone3(… | ");
        add_flags(out, op->flags, ns_words, ARRAY_LEN(ns_words));
        buf_puts(out, ")");
        break;
    case OP_UNSHARE:
        buf_puts(out, "unshare(");
        add_flags(out, op->flags, ns_words, ARRAY_LEN(ns_words));
        buf_puts(out, ")");
        break;
    case OP_ID_MAP:
        buf_printf(out, "write(\"/proc/{init}/uid_map\", \"%s\"), and gid_map", op->value);
        break;
    case OP_BECOME:
    case OP_IDS:
        buf_printf(out, "setresgid(%llu ×3), setresuid(%llu ×3)", (unsigned long long)op->b,
                   (unsigned long long)op->a);
        break;
    case OP_HOSTNAME:
        buf_printf(out, "sethostname(\"%s\")", op->value);
        break;
    case OP_LOOPBACK:
        buf_puts(out, "ioctl(SIOCSIFFLAGS, \"lo\", IFF_UP)");
        break;
    case OP_CAPS_BOUND:
        buf_printf(out, "prctl(PR_CAPBSET_DROP, 0…%llu", (unsigned long long)op->a);
        if (op->b)
            buf_printf(out, " but %#llx", (unsigned long long)op->b);
        buf_printf(out, "), prctl(PR_SET_SECUREBITS, {all%s, locked})", op->b ? " but NOROOT" : "");
        break;
    case OP_SHED_HOST:
        buf_puts(out, "prctl(PR_SET_DUMPABLE, 0), memset({argv, environment}), "
                      "madvise({heap}, MADV_DONTNEED), prctl(PR_SET_NAME, \"mayfly-init\")");
        break;
    case OP_SESSION:
        buf_puts(out, "setsid()");
        break;
    case OP_UMASK:
        buf_printf(out, "umask(0%o)", (unsigned)op->a);
        break;
    case OP_RLIMIT:
        buf_printf(out, "prlimit(RLIMIT_%s, %s, %s)", rlimit_text(op->a), limit_text(op->b, t1),
                   limit_text(op->c, t2));
        break;
    case OP_CHDIR:
        buf_printf(out, "openat2(\"%s\", O_PATH|O_DIRECTORY, RESOLVE_NO_MAGICLINKS), fchdir()",
                   op->path);
        break;
    case OP_STDIO:
        buf_puts(out, op->flags2 & OP_F_KEEP
                          ? "dup2({pipes}, 0…2)"
                          : "dup2({pipes}, 0…2), close_range(3, …) but the report channel");
        break;
    case OP_GROUPS:
        buf_puts(out, "setgroups(0, NULL)");
        break;
    case OP_CAPS_NONE:
        buf_printf(out, "prctl(PR_CAP_AMBIENT_CLEAR_ALL), capset({%#llx, %#llx, 0})",
                   (unsigned long long)op->a, (unsigned long long)op->a);
        break;
    case OP_PRCTL:
        print_prctl(op, out);
        break;
    case OP_LANDLOCK: {
        const struct landlock_rules *rules = op->data;
        buf_printf(out, "landlock_restrict_self(read, execute below /; write below");
        for (int i = 0; i < rules->n_write; i++)
            buf_printf(out, " %s", rules->write[i]);
        buf_printf(out, "; ABI %d)", rules->abi);
        break;
    }
    case OP_SECCOMP: {
        const struct filter *filter = op->data;
        buf_printf(out, "seccomp(SECCOMP_SET_MODE_FILTER, %s, {filter})",
                   filter->notify ? "SECCOMP_FILTER_FLAG_NEW_LISTENER" : "0");
        break;
    }
    default:
        buf_printf(out, "%s(?)", op_name(op->kind));
    }
}

/* One clone3 makes all namespaces, so its rows are printed as the one call they become. */
static void print_clone(const struct plan *plan, struct buf *out) {
    uint64_t flags = 0;
    bool v2 = plan->host->cg.n > 0 && plan->host->cg.hier[0].version == 2;

    for (size_t i = 0; i < plan->n_ops; i++)
        if (plan->ops[i].kind == OP_NAMESPACE)
            flags |= plan->ops[i].flags;
    buf_puts(out, "  clone3(CLONE_PIDFD|");
    if (v2)
        buf_puts(out, "CLONE_INTO_CGROUP|");
    add_flags(out, flags, ns_words, ARRAY_LEN(ns_words));
    buf_puts(out, ")\n");
}

void plan_print(const struct plan *plan, struct buf *out) {
    for (int s = 0; s < STAGE__N; s++) {
        buf_printf(out, "%s%s: %s\n", s ? "\n" : "", stage_names[s], stage_what[s]);
        if (s == STAGE_CLONE)
            print_clone(plan, out);
        for (size_t i = 0; i < plan->n_ops; i++) {
            const struct op *op = &plan->ops[i];
            if ((int)op->stage != s)
                continue;
            buf_puts(out, "  ");
            if (s == STAGE_CLONE) {
                buf_puts(out, "  ");
                add_flags(out, op->flags, ns_words, ARRAY_LEN(ns_words));
            } else {
                plan_print_op(op, out);
            }
            buf_printf(out, "\n      # %s: %s\n", control_id_name(op->control),
                       op->why ? op->why : "");
        }
    }
    buf_puts(out, "\nthen, when told to go:\n");
    for (const char *const *p = plan->exec_paths; p && *p; p++) {
        buf_printf(out, "  execve(\"%s\", [", *p);
        for (const char *const *a = plan->argv; a && *a; a++)
            buf_printf(out, "%s\"%s\"", a == plan->argv ? "" : ", ", *a);
        buf_printf(out, "])%s\n", p[1] ? "  # or, if it is not there:" : "");
    }
}
