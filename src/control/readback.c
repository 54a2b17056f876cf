/*
 * readback.c: see readback.h.
 *
 * The rows of the wanted plan are followed on paper, without a system call, to
 * what they must have led to; the kernel's tables are then compared with that.
 */
#include "control/readback.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/banned.h"

/* ------------------------------------------------------------------ the mounts that were wanted */

enum { TARGET = 640 };

struct wanted {
    char target[TARGET];
    enum control_id control;
    const char *fstype, *options; /* fstype NULL: a tree of the host's */
    uint64_t attrs;               /* MOUNT_ATTR_* */
    bool mask;
};
struct place { /* a slot of the plan */
    const char *fstype, *options;
    uint64_t attrs;
    char path[TARGET];
    bool attached;
};
struct wanted_mounts {
    struct place slot[OP_SLOTS];
    struct wanted at[VIEW_MOUNTS];
    size_t n;
};

/* True if `path` is `top` or lies below it. */
static bool lies_in(const char *path, const char *top) {
    size_t len = strcmp(top, "/") == 0 ? 0 : strlen(top);

    return strncmp(path, top, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

static struct wanted *want(struct wanted_mounts *w, const struct op *op, const struct place *p) {
    if (w->n == VIEW_MOUNTS)
        return NULL; /* then the kernel's list is longer than evidence has room for, and says so */
    w->at[w->n] = (struct wanted){
        .control = op->control, .fstype = p->fstype, .options = p->options, .attrs = p->attrs};
    return &w->at[w->n++];
}

static void path_below(const struct wanted_mounts *w, int slot, const char *name,
                       char ret[TARGET]) {
    const char *top = w->slot[slot].path;

    (void)snprintf(ret, TARGET, "%s/%s", strcmp(top, "/") == 0 ? "" : top, name);
}

static void want_attached(struct wanted_mounts *w, const struct op *op) {
    struct place *p = &w->slot[op->slot];
    char path[TARGET] = "/";

    if (op->slot2 != OP_AT_ROOT)
        path_below(w, op->slot2, op->path, path);
    (void)str_copy(p->path, sizeof(p->path), path);
    p->attached = true;
    struct wanted *m = want(w, op, p);
    if (m)
        (void)str_copy(m->target, sizeof(m->target), p->path);
}

static void want_attributes(struct wanted_mounts *w, const struct op *op) {
    struct place *p = &w->slot[op->slot];

    p->attrs |= op->flags;
    for (size_t i = 0; p->attached && i < w->n; i++)
        if (lies_in(w->at[i].target, p->path))
            w->at[i].attrs |= op->flags;
}

static void want_overlay(struct wanted_mounts *w, const struct op *op) {
    for (size_t i = 0; i < w->n; i++)
        if (strcmp(w->at[i].target, "/") == 0) {
            w->at[i].fstype = "overlay";
            w->at[i].attrs = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | op->flags;
        }
}

static struct wanted_mounts *wanted_mounts(const struct plan *plan) {
    struct wanted_mounts *w = calloc(1, sizeof(*w));

    for (size_t i = 0; w && i < plan->n_ops; i++) {
        const struct op *op = &plan->ops[i];

        if (op->kind == OP_TREE_OPEN)
            w->slot[op->slot] = (struct place){.path = "/"};
        else if (op->kind == OP_FS_NEW)
            w->slot[op->slot] = (struct place){
                .fstype = op->path, .options = op->value, .attrs = op->flags, .path = "/"};
        else if (op->kind == OP_TREE_ATTR)
            want_attributes(w, op);
        else if (op->kind == OP_TREE_ATTACH)
            want_attached(w, op);
        else if (op->kind == OP_OVERLAY)
            want_overlay(w, op);
        else if (op->kind == OP_MASK) {
            struct wanted *m = want(w, op, &(struct place){.fstype = NULL});
            if (!m)
                continue;
            m->mask = true;
            path_below(w, op->slot, op->path, m->target);
        }
    }
    return w;
}

/* ------------------------------------------------------------------ and those that are there */

static const struct {
    uint64_t attr;
    const char *word;
} attr_words[] = {{MOUNT_ATTR_RDONLY, "ro"},
                  {MOUNT_ATTR_NOSUID, "nosuid"},
                  {MOUNT_ATTR_NODEV, "nodev"},
                  {MOUNT_ATTR_NOEXEC, "noexec"}};

/* The first flag that is wanted and not there; NULL: none. */
static const char *missing_flag(uint64_t attrs, const char *options) {
    for (size_t i = 0; i < ARRAY_LEN(attr_words); i++)
        if (attrs & attr_words[i].attr && !mount_has_option(options, attr_words[i].word))
            return attr_words[i].word;
    return NULL;
}

/* The `nth` (from 0) mount at `target`. */
static bool nth_mount(const struct view *view, const char *target, size_t nth, char line[2048],
                      struct mount_info *ret, struct view_mount *ret_seen) {
    const char *text = view->inside->mountinfo;

    for (uint32_t i = 0; i < view->inside->n_mounts && proc_next_mount(&text, line, 2048, ret); i++)
        if (strcmp(ret->target, target) == 0 && nth-- == 0) {
            *ret_seen = view->inside->mount[i];
            return true;
        }
    return false;
}

bool readback_mount_at(const struct view *view, const char *target, char line[2048],
                       struct mount_info *ret, struct view_mount *ret_seen) {
    return nth_mount(view, target, 0, line, ret, ret_seen);
}

static bool option_number(const char *options, const char *key, int base, uint64_t *ret) {
    const char *at = options ? strstr(options, key) : NULL;

    if (!at || (at != options && at[-1] != ','))
        return false;
    *ret = strtoull(at + strlen(key), NULL, base);
    return true;
}

/* Size, inodes and mode of a file system that was made for the box. */
static bool right_size(const struct wanted *w, const struct view_mount *seen,
                       struct finding *finding) {
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), number;

    if (option_number(w->options, "size=", 10, &number) &&
        seen->bytes != (number + page - 1) / page * page)
        return finding_set(finding, false, "%s: has %llu bytes, not %llu", w->target,
                           (unsigned long long)seen->bytes, (unsigned long long)number),
               false;
    if (option_number(w->options, "nr_inodes=", 10, &number) && seen->inodes != number)
        return finding_set(finding, false, "%s: has %llu inodes, not %llu", w->target,
                           (unsigned long long)seen->inodes, (unsigned long long)number),
               false;
    if (option_number(w->options, "mode=", 8, &number) && seen->mode != number)
        return finding_set(finding, false, "%s: has mode %o, not %o", w->target, seen->mode,
                           (unsigned)number),
               false;
    return true;
}

/* What hides a path of /proc is the null device, or a directory with nothing in it. */
static bool right_mask(const struct mount_info *m, const struct view_mount *seen) {
    bool null = seen->is_char && seen->major == 1 && seen->minor == 3;
    bool empty = strcmp(m->fstype, "tmpfs") == 0 && seen->inodes == 2 &&
                 !missing_flag(MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC, m->options);

    return null || empty;
}

/* `nth` of those at its path. `covered`: another hides it, so only mountinfo tells of it. */
static bool right_mount(const struct view *view, const struct wanted *w, size_t nth, bool covered,
                        struct finding *finding) {
    char line[2048];
    struct mount_info m;
    struct view_mount seen;
    const char *flag;

    if (!nth_mount(view, w->target, nth, line, &m, &seen))
        return finding_set(finding, false, "nothing is mounted at %s", w->target), false;
    if (w->fstype && strcmp(m.fstype, w->fstype) != 0)
        return finding_set(finding, false, "%s: is a %s, not a %s", w->target, m.fstype, w->fstype),
               false;
    flag = missing_flag(w->attrs, m.options);
    if (flag)
        return finding_set(finding, false, "%s: is mounted %s, without %s", w->target, m.options,
                           flag),
               false;
    if (covered || seen.error == EACCES) /* what cannot be entered cannot be filled either */
        return true;
    if (seen.error)
        return finding_set(finding, false, "%s: %s", w->target, errno_words(-seen.error)), false;
    if (seen.id && seen.id != (uint64_t)m.id)
        return finding_set(finding, false, "%s: another mount lies over it", w->target), false;
    if (w->mask && !right_mask(&m, &seen))
        return finding_set(finding, false, "%s: is a %s, which hides nothing", w->target, m.fstype),
               false;
    return !w->fstype || right_size(w, &seen, finding);
}

/* Something that the plan mounts later hides this one. */
static bool is_covered(const struct wanted_mounts *w, size_t i) {
    for (size_t j = i + 1; j < w->n; j++)
        if (strcmp(w->at[j].target, "/") != 0 && lies_in(w->at[i].target, w->at[j].target))
            return true;
    return false;
}

/* Absent files of /proc need no mask. Its files are the kernel's, the same in every proc. */
static bool nothing_to_mask(const struct wanted *w) {
    return w->mask && faccessat(AT_FDCWD, w->target, F_OK, AT_SYMLINK_NOFOLLOW) < 0 &&
           errno == ENOENT;
}

/* The tree that a mount which was not wanted by itself is part of: the last that was put above it. */
static const struct wanted *tree_of(const struct wanted_mounts *w, const char *target) {
    for (size_t i = w->n; i-- > 0;)
        if (!w->at[i].mask && lies_in(target, w->at[i].target))
            return w->at[i].fstype && strcmp(w->at[i].fstype, "overlay") != 0 ? NULL : &w->at[i];
    return NULL;
}

static size_t times_wanted(const struct wanted_mounts *w, const char *target) {
    size_t n = 0;

    for (size_t i = 0; i < w->n; i++)
        n += strcmp(w->at[i].target, target) == 0;
    return n;
}

/* What was mounted inside a tree of the host's came with it, and has its flags. */
static bool right_trees(const struct view *view, const struct wanted_mounts *w, enum control_id id,
                        struct finding *finding) {
    const char *text = view->inside->mountinfo, *flag;
    char line[2048];
    struct mount_info m;

    while (proc_next_mount(&text, line, sizeof(line), &m)) {
        const struct wanted *tree = times_wanted(w, m.target) ? NULL : tree_of(w, m.target);

        flag = tree && tree->control == id ? missing_flag(tree->attrs, m.options) : NULL;
        if (flag)
            return finding_set(finding, false, "%s: is mounted %s, without %s", m.target, m.options,
                               flag),
                   false;
    }
    return true;
}

bool readback_mounts(const struct view *view, enum control_id id, struct finding *finding) {
    struct wanted_mounts *w _cleanup_free_ = wanted_mounts(view->plan);

    if (!w)
        return finding_set(finding, false, "out of memory"), finding->unread = true, false;
    for (size_t i = 0; i < w->n; i++) {
        size_t nth = 0;

        if (w->at[i].control != id || nothing_to_mask(&w->at[i]))
            continue;
        for (size_t j = 0; j < i; j++)
            nth += strcmp(w->at[j].target, w->at[i].target) == 0;
        if (!right_mount(view, &w->at[i], nth, is_covered(w, i), finding))
            return false;
    }
    return right_trees(view, w, id, finding);
}

/* A mount inside the rootfs on the host is part of the tree that was shown. */
static bool is_of_rootfs(const struct view *view, const char *target) {
    char *text _cleanup_free_ = NULL,
               *top _cleanup_free_ = realpath(view->plan->policy->rootfs, NULL);
    char line[2048], path[TARGET * 2];
    struct mount_info m;

    if (!top || file_read_all_at(AT_FDCWD, "/proc/self/mountinfo", 16 << 20, &text, NULL) < 0)
        return false;
    (void)snprintf(path, sizeof(path), "%s%s", top, target);
    for (const char *p = text; proc_next_mount(&p, line, sizeof(line), &m);)
        if (strcmp(m.target, path) == 0)
            return true;
    return false;
}

bool readback_no_other_mount(const struct view *view, struct finding *finding) {
    struct wanted_mounts *w _cleanup_free_ = wanted_mounts(view->plan);
    const char *text = view->inside->mountinfo;
    char line[2048], again[2048];
    struct mount_info m, same;
    struct view_mount seen;
    uint32_t lines = 0;

    if (!w)
        return finding_set(finding, false, "out of memory"), finding->unread = true, false;
    for (; proc_next_mount(&text, line, sizeof(line), &m); lines++) {
        size_t wanted = times_wanted(w, m.target);
        const struct wanted *tree = wanted ? NULL : tree_of(w, m.target);
        bool one_too_many = wanted && nth_mount(view, m.target, wanted, again, &same, &seen);
        bool foreign =
            !wanted && (!tree || (strcmp(tree->target, "/") == 0 && !is_of_rootfs(view, m.target)));

        if (one_too_many || foreign)
            return finding_set(finding, false, "%s: a %s is mounted that nobody asked for",
                               m.target, m.fstype),
                   false;
    }
    if (lines == 0 || lines != view->inside->n_mounts)
        return finding_set(finding, false, "mountinfo could not be read whole: %u mounts", lines),
               false;
    return true;
}

/* ------------------------------------------------------------------ rlimits */

static const char *const limit_names[RLIM_NLIMITS] = {
    [RLIMIT_CPU] = "Max cpu time",
    [RLIMIT_FSIZE] = "Max file size",
    [RLIMIT_DATA] = "Max data size",
    [RLIMIT_STACK] = "Max stack size",
    [RLIMIT_CORE] = "Max core file size",
    [RLIMIT_RSS] = "Max resident set",
    [RLIMIT_NPROC] = "Max processes",
    [RLIMIT_NOFILE] = "Max open files",
    [RLIMIT_MEMLOCK] = "Max locked memory",
    [RLIMIT_AS] = "Max address space",
    [RLIMIT_LOCKS] = "Max file locks",
    [RLIMIT_SIGPENDING] = "Max pending signals",
    [RLIMIT_MSGQUEUE] = "Max msgqueue size",
    [RLIMIT_NICE] = "Max nice priority",
    [RLIMIT_RTPRIO] = "Max realtime priority",
    [RLIMIT_RTTIME] = "Max realtime timeout",
};

static const char *limit_value(const char *text, uint64_t *ret) {
    static const char unlimited[] = "unlimited";
    char *end = NULL;

    text += strspn(text, " ");
    if (strncmp(text, unlimited, strlen(unlimited)) == 0)
        return *ret = UINT64_MAX, text + strlen(unlimited);
    *ret = strtoull(text, &end, 10);
    return end == text ? NULL : end;
}

bool readback_rlimit(const struct view *view, int resource, uint64_t *ret_soft,
                     uint64_t *ret_hard) {
    const char *name = resource < (int)RLIM_NLIMITS ? limit_names[resource] : NULL;
    const char *at = name ? strstr(view->inside->limits, name) : NULL;

    at = at ? limit_value(at + strlen(name), ret_soft) : NULL;
    return at && limit_value(at, ret_hard);
}

/* What all rows for a resource leave, starting from our own limits: each only lowers. */
static void wanted_rlimit(const struct plan *plan, int resource, struct rlimit *ret) {
    if (getrlimit((__rlimit_resource_t)resource, ret) < 0)
        *ret = (struct rlimit){RLIM_INFINITY, RLIM_INFINITY};
    for (size_t i = 0; i < plan->n_ops; i++) {
        const struct op *op = &plan->ops[i];

        if (op->kind != OP_RLIMIT || op->a != (uint64_t)resource)
            continue;
        ret->rlim_max = MIN(ret->rlim_max, op->c);
        ret->rlim_cur = MIN(op->b, ret->rlim_max);
    }
}

bool readback_rlimits(const struct view *view, enum control_id id, struct finding *finding) {
    for (size_t i = 0; i < view->plan->n_ops; i++) {
        const struct op *op = &view->plan->ops[i];
        struct rlimit want;
        uint64_t soft = 0, hard = 0;
        int resource = (int)op->a;

        if (op->kind != OP_RLIMIT || op->control != id)
            continue;
        wanted_rlimit(view->plan, resource, &want);
        if (!readback_rlimit(view, resource, &soft, &hard))
            return finding_set(finding, false, "no line for %s in /proc/self/limits",
                               limit_names[resource]),
                   false;
        if (soft != want.rlim_cur || hard != want.rlim_max)
            return finding_set(finding, false, "%s %llu %llu, not %llu %llu", limit_names[resource],
                               (unsigned long long)soft, (unsigned long long)hard,
                               (unsigned long long)want.rlim_cur,
                               (unsigned long long)want.rlim_max),
                   false;
    }
    return true;
}

/* ------------------------------------------------------------------ namespaces, cgroups */

const char *readback_ns_name(enum view_ns ns) {
    static const char *const names[NS__N] = {"user", "pid", "mnt", "net", "ipc", "uts", "cgroup"};

    return names[ns];
}

bool readback_namespace(const struct view *view, enum view_ns ns, struct finding *finding) {
    uint64_t own = view->inside->ns[ns];

    if (own && view->host_ns[ns] && own != view->host_ns[ns])
        return true;
    return finding_set(finding, false, "%s:[%llu], host %s:[%llu]", readback_ns_name(ns),
                       (unsigned long long)own, readback_ns_name(ns),
                       (unsigned long long)view->host_ns[ns]),
           false;
}

bool readback_members(const struct view *view, int hier, struct finding *finding) {
    char text[256], *rest = text, *word;
    bool init = false, payload = view->payload == 0;
    ssize_t n = view->cgroup_fd[hier] < 0
                    ? -ENOENT
                    : file_read_at(view->cgroup_fd[hier], "cgroup.procs", text, sizeof(text));

    while (n > 0 && (word = strsep(&rest, "\n"))) {
        pid_t pid = (pid_t)strtol(word, NULL, 10);
        init |= pid == view->init;
        payload |= pid == view->payload;
    }
    if (init && payload)
        return true;
    return finding_set(finding, false, "the box is not in its cgroup: cgroup.procs %s",
                       n < 0 ? errno_words((int)n) : "lists other processes"),
           false;
}
