/*
 * cgroup.c: the half of cgroup.h that is the same for both versions: which
 * mounts there are and who drives what, names, and removal. A controller is
 * bound to one hierarchy of the whole host, so "v1 or v2?" is asked per
 * controller, never per host.
 */
#include "linux/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/units.h"
#include "linux/cgroup_hier.h"
#include "linux/procfs.h"
#include "linux/sys.h"

#include "base/banned.h"

const char *const cg_controller_names[CG__N] = {
    [CG_MEMORY] = "memory",
    [CG_CPU] = "cpu",
    [CG_PIDS] = "pids",
    [CG_ACCT] = "cpuacct",
};

const char *const cg_uses[CG__N] = {
    [CG_MEMORY] = "memory limit",
    [CG_CPU] = "cpu limit",
    [CG_PIDS] = "pids limit",
    [CG_ACCT] = "count of CPU time",
};

enum { PROC_TEXT_LIMIT_BYTES = 16 << 20 }; /* a host with many containers has thousands of mounts */
static const char separators[] = ", \t\n";

/* ------------------------------------------------------------------ reading text */

unsigned cg_parse_controllers(const char *text) {
    unsigned ret = 0;

    while (*(text += strspn(text, separators))) {
        size_t len = strcspn(text, separators);
        for (unsigned c = 0; c < CG__N; c++)
            if (strlen(cg_controller_names[c]) == len && !memcmp(text, cg_controller_names[c], len))
                ret |= (unsigned)BIT(c);
        text += len;
    }
    return ret;
}

/* True if the comma list text[0..len) holds `word`; the empty word only matches the empty list,
 * which is v2's. */
static bool list_has(const char *text, size_t len, const char *word) {
    size_t want = strlen(word);

    for (const char *p = text, *end = text + len;; p++) {
        const char *comma = memchr(p, ',', (size_t)(end - p));
        size_t n = (size_t)((comma ? comma : end) - p);
        if (n == want && !memcmp(p, word, n))
            return true;
        if (!comma)
            return false;
        p = comma;
    }
}

bool cg_own_path(const char *self_cgroup, const char *controller, char ret[CG_PATH]) {
    static const char deleted[] = " (deleted)";

    for (const char *line = self_cgroup; *line;) {
        const char *end = strchrnul(line, '\n');
        const char *list = memchr(line, ':', (size_t)(end - line));
        const char *path = list ? memchr(list + 1, ':', (size_t)(end - list - 1)) : NULL;

        if (path && list_has(list + 1, (size_t)(path - list - 1), controller)) {
            size_t len = (size_t)(end - ++path);
            if (len > strlen(deleted) && !memcmp(end - strlen(deleted), deleted, strlen(deleted)))
                len -= strlen(deleted);
            if (len >= CG_PATH || path[0] != '/')
                return false;
            memcpy(ret, path, len);
            ret[len] = '\0';
            return true;
        }
        line = *end ? end + 1 : end;
    }
    return false;
}

/* UINT64_MAX where there is none, or one that is too large: a count that wrapped would be a small one. */
static uint64_t leading_number(const char *s) {
    uint64_t value = 0;
    const char *p = s;

    for (; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(value, UINT64_C(10), &value) ||
            __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
            return UINT64_MAX;
    return p == s ? UINT64_MAX : value;
}

uint64_t cg_keyed(const char *text, const char *key) {
    size_t len = strlen(key);

    for (const char *line = text; *line;) {
        const char *end = strchrnul(line, '\n');
        if (!strncmp(line, key, len) && line[len] == ' ') {
            return leading_number(line + len + 1);
        }
        line = *end ? end + 1 : end;
    }
    return UINT64_MAX;
}

int cg_read_keyed(int dirfd, const char *file, const char *key, uint64_t *ret) {
    char text[2048];
    ssize_t n = file_read_at(dirfd, file, text, sizeof(text));

    if (n < 0)
        return (int)n;
    uint64_t value = cg_keyed(text, key);
    if (value == UINT64_MAX)
        return -ENODATA;
    *ret = value;
    return 0;
}

int cg_read_number(int dirfd, const char *file, uint64_t *ret) {
    char text[32];
    ssize_t n = file_read_at(dirfd, file, text, sizeof(text));

    if (n < 0)
        return (int)n;
    return parse_u64(text, ret) < 0 ? -ENODATA : 0;
}

/* ------------------------------------------------------------------ paths */

/* What of `path` lies below `top`: "" or "/rest"; NULL if it is elsewhere. */
static const char *below(const char *path, const char *top) {
    size_t len = strlen(top);

    while (len && top[len - 1] == '/')
        len--;
    if (strncmp(path, top, len) || (path[len] && path[len] != '/'))
        return NULL;
    return strcmp(path + len, "/") ? path + len : "";
}

static bool has_dotdot(const char *path) {
    for (const char *p = path; (p = strstr(p, "/..")); p += 3)
        if (p[3] == '\0' || p[3] == '/')
            return true;
    return false;
}

bool cg_join(const struct cg_mount *m, const char *path, char ret[CG_PATH]) {
    const char *rest = path && !has_dotdot(path) ? below(path, m->root) : NULL;
    int n = snprintf(ret, CG_PATH, "%s%s", m->target, rest ? rest : "");

    return n > 0 && n < CG_PATH;
}

bool cg_join_parent(const struct cg_mount *m, const char *parent, char ret[CG_PATH]) {
    if (parent[0] != '/' || has_dotdot(parent))
        return false;
    if (below(parent, m->target)) {
        size_t len = strlen(parent);
        while (len > 1 && parent[len - 1] == '/')
            len--;
        if (len >= CG_PATH)
            return false;
        memcpy(ret, parent, len);
        ret[len] = '\0';
        return true;
    }
    return below(parent, m->root) && cg_join(m, parent, ret);
}

int cg_access(int dirfd, const char *path, int mode) {
    return faccessat(dirfd, path, mode, AT_EACCESS) < 0 ? -errno : 0;
}

/* ------------------------------------------------------------------ the layout */

void cg_place(struct cg_layout *l, const struct cg_hier *h) {
    int i = 0;

    while (i < l->n && (l->hier[i].version != h->version || strcmp(l->hier[i].parent, h->parent)))
        i++;
    if (i == CG_HIERS)
        return;
    if (i == l->n) {
        l->n++;
        l->hier[i] = *h;
    } else {
        l->hier[i].controllers |= h->controllers;
    }
    for (int c = 0; c < CG__N; c++)
        if (h->controllers & BIT(c)) {
            l->where[c] = i;
            l->why[c][0] = '\0';
        }
}

void cg_unread(struct cg_layout *l, int code) {
    if (!l->unread && err_is_passing(code))
        l->unread = code;
}

void cg_why(struct cg_layout *l, enum cg_controller c, const char *fmt, ...) {
    va_list ap;

    if (l->why[c][0])
        return;
    va_start(ap, fmt);
    (void)vsnprintf(l->why[c], sizeof(l->why[c]), fmt, ap);
    va_end(ap);
}

/* The mounts of a hybrid host. */
struct mounts {
    struct cg_mount v2, v1[CG__N];
};

/* Containers and chroots mount hierarchies in other places too: the one below fs_root is preferred,
 * then the first. */
static void mount_take(struct cg_mount *m, const struct mount_info *info, const char *fs_root) {
    bool better = !m->target[0] || (!below(m->target, fs_root) && below(info->target, fs_root));

    if (better && info->target[0] == '/' && !has_dotdot(info->target) &&
        strlen(info->target) < CG_PATH && strlen(info->root) < CG_PATH) {
        (void)str_copy(m->target, sizeof(m->target), info->target);
        (void)str_copy(m->root, sizeof(m->root), info->root);
    }
}

static void mounts_find(const char *mountinfo, const char *fs_root, struct mounts *ret) {
    char line[4096];
    struct mount_info info;

    for (const char *p = mountinfo; *p;) {
        const char *end = strchrnul(p, '\n');
        size_t len = (size_t)(end - p);
        const char *text = p;

        p = *end ? end + 1 : end;
        if (len >= sizeof(line) || !memmem(text, len, " cgroup", strlen(" cgroup")))
            continue;
        memcpy(line, text, len);
        line[len] = '\0';
        if (proc_parse_mount(line, &info) < 0)
            continue;
        if (!strcmp(info.fstype, "cgroup2"))
            mount_take(&ret->v2, &info, fs_root);
        if (strcmp(info.fstype, "cgroup") != 0)
            continue;
        for (int c = 0; c < CG__N; c++)
            if (mount_has_option(info.super_options, cg_controller_names[c]))
                mount_take(&ret->v1[c], &info, fs_root);
    }
}

/* Where distributions mount them, the kernel tells of these mounts alone: of all mounts it would take a tenth of a
 * millisecond, and more on a host with containers. False: to be looked for in mountinfo. */
static bool mounts_at_usual(const char *fs_root, struct mounts *ret) {
    _Alignas(uint64_t) char buf[4096];

    for (int c = CG_ACCT; c >= 0; c--) {
        bool v2 = c == CG_ACCT; /* whose place is taken by the tree that counts CPU time */
        struct cg_mount *m = v2 ? &ret->v2 : &ret->v1[c];
        struct sys_mount found;
        int n = snprintf(m->target, sizeof(m->target), "%s/%s", fs_root,
                         v2 ? "unified" : cg_controller_names[c]);
        bool is = n > 0 && (size_t)n < sizeof(m->target) &&
                  sys_mount_of(m->target, buf, sizeof(buf), &found) == 0 &&
                  strcmp(found.type, v2 ? "cgroup2" : "cgroup") == 0 &&
                  (v2 || mount_has_option(found.options, cg_controller_names[c])) &&
                  strlen(found.root) < sizeof(m->root);
        if (!is)
            return false;
        (void)str_copy(m->root, sizeof(m->root), found.root);
    }
    return true;
}

/* A directory names a cgroup of one hierarchy; the others are searched as ever. A cgroup path is
 * for all of them. */
static const char *parent_in(const struct cg_mount *m, const char *parent, const char *fs_root) {
    bool directory = parent && below(parent, fs_root);

    return directory && !below(parent, m->target) ? NULL : parent;
}

/* A directory beside the hierarchies, a misspelt one say, would be searched past in each of them. */
static bool is_in_some(const struct mounts *m, const char *parent) {
    bool in = m->v2.target[0] && below(parent, m->v2.target);

    for (int c = 0; c < CG__N; c++)
        in = in || (m->v1[c].target[0] && below(parent, m->v1[c].target));
    return in && !has_dotdot(parent);
}

static void detect_hybrid(const struct cg_source *src, const char *fs_root, const char *self_cgroup,
                          struct cg_layout *ret) {
    struct mounts *m _cleanup_free_ = calloc(1, sizeof(*m));
    char *read_here _cleanup_free_ = NULL;
    const char *mountinfo = src->mountinfo;
    char own[CG_PATH];
    unsigned on_v2 = BIT(CG_ACCT);

    if (!m) {
        cg_unread(ret, -ENOMEM);
        return;
    }
    /* With a parent all mounts are needed, by the names that mountinfo has for them. */
    bool usual = !mountinfo && !src->parent && mounts_at_usual(fs_root, m);
    if (!usual && !mountinfo) {
        cg_unread(ret, file_read_all_at(AT_FDCWD, "/proc/self/mountinfo", PROC_TEXT_LIMIT_BYTES,
                                        &read_here, NULL));
        mountinfo = read_here ? read_here : "";
    }
    if (!usual) {
        *m = (struct mounts){0};
        mounts_find(mountinfo, fs_root, m);
    }
    if (src->parent && below(src->parent, fs_root) && !is_in_some(m, src->parent)) {
        for (int c = 0; c < CG__N; c++)
            cg_why(ret, (enum cg_controller)c, "%s is in no cgroup file system", src->parent);
        return;
    }
    for (int c = 0; c < CG_ACCT; c++)
        if (!m->v1[c].target[0])
            on_v2 |= (unsigned)BIT(c);
    if (m->v2.target[0])
        cg_v2_detect(&m->v2, cg_own_path(self_cgroup, "", own) ? own : NULL,
                     parent_in(&m->v2, src->parent, fs_root), on_v2, ret);
    for (int c = 0; c < CG__N; c++) {
        bool known = cg_own_path(self_cgroup, cg_controller_names[c], own);
        if (ret->where[c] < 0 && m->v1[c].target[0])
            cg_v1_detect(&m->v1[c], known ? own : NULL, parent_in(&m->v1[c], src->parent, fs_root),
                         (enum cg_controller)c, ret);
        else if (ret->where[c] < 0 && mountinfo && !*mountinfo)
            cg_why(ret, (enum cg_controller)c,
                   "cgroups cannot be found without /proc/self/mountinfo; as root: mount -t proc "
                   "proc /proc");
        else if (ret->where[c] < 0)
            cg_why(ret, (enum cg_controller)c,
                   "no cgroup file system with the %s controller is mounted; as root: mount -t "
                   "cgroup2 none %s; in a container: --cgroupns=private with a writable %s",
                   cg_controller_names[c], fs_root, fs_root);
    }
}

void cg_detect(const struct cg_source *src, struct cg_layout *ret) {
    char *self_cgroup _cleanup_free_ = NULL;
    const char *fs_root = src->fs_root ? src->fs_root : "/sys/fs/cgroup";
    bool v2 = src->assume_v2 > 0;
    struct statfs fs;

    memset(ret, 0, sizeof(*ret));
    for (int c = 0; c < CG__N; c++)
        ret->where[c] = -1;
    if (!src->self_cgroup)
        cg_unread(ret, file_read_all_at(AT_FDCWD, "/proc/self/cgroup", PROC_TEXT_LIMIT_BYTES,
                                        &self_cgroup, NULL));
    if (src->assume_v2 < 0) {
        int r = statfs(fs_root, &fs) < 0 ? -errno : 0;
        v2 = r == 0 && fs.f_type == CGROUP2_SUPER_MAGIC;
        cg_unread(ret, r);
    }

    const char *own_text = src->self_cgroup ? src->self_cgroup : self_cgroup ? self_cgroup : "";
    if (v2) {
        struct cg_mount m = {.root = "/"};
        char own[CG_PATH];

        (void)str_copy(m.target, sizeof(m.target), fs_root);
        cg_v2_detect(&m, cg_own_path(own_text, "", own) ? own : NULL, src->parent,
                     BIT(CG_MEMORY) | BIT(CG_CPU) | BIT(CG_PIDS) | BIT(CG_ACCT), ret);
    } else {
        detect_hybrid(src, fs_root, own_text, ret);
    }
    for (int c = 0; c < CG__N; c++)
        if (ret->where[c] < 0)
            cg_why(ret, (enum cg_controller)c, "the %s controller could not be looked for",
                   cg_controller_names[c]);
}

/* ------------------------------------------------------------------ settings and usage */

int cg_set(struct cg_setting *s, const char *file, bool optional, const char *fmt, ...) {
    va_list ap;

    (void)str_copy(s->file, sizeof(s->file), file);
    s->optional = optional;
    va_start(ap, fmt);
    (void)vsnprintf(s->value, sizeof(s->value), fmt, ap);
    va_end(ap);
    return 1;
}

int cg_settings(int version, enum cg_controller c, const struct cg_limits *l,
                struct cg_setting out[CG_SETTINGS]) {
    return version == 2 ? cg_v2_settings(c, l, out) : cg_v1_settings(c, l, out);
}

void cg_read_usage(int version, unsigned controllers, int dirfd, struct cg_usage *ret) {
    if (version == 2)
        cg_v2_read_usage(controllers, dirfd, ret);
    else
        cg_v1_read_usage(controllers, dirfd, ret);
}

int cg_read_cpu_usec(int version, int dirfd, uint64_t *ret) {
    return version == 2 ? cg_v2_read_cpu_usec(dirfd, ret) : cg_v1_read_cpu_usec(dirfd, ret);
}

int cg_read_oom_kills(int version, int dirfd, uint64_t *ret) {
    return version == 2 ? cg_v2_read_oom_kills(dirfd, ret) : cg_v1_read_oom_kills(dirfd, ret);
}

/* ------------------------------------------------------------------ names */

static const char name_prefix[] = "mayfly-";
static const char digits[] = "0123456789abcdef";

/* No stdio: names are also made where it may not be used. */
static char *put_number(char *p, uint64_t n, unsigned base) {
    char tmp[24];
    size_t len = 0;

    do
        tmp[len++] = digits[n % base];
    while (n /= base);
    while (len)
        *p++ = tmp[--len];
    return p;
}

void cg_name(const struct cg_owner *owner, uint32_t random, char name[CG_NAME]) {
    _Static_assert(sizeof(name_prefix) + 16 + 1 + 10 + 1 + 20 + 1 + 8 <= CG_NAME, "longest name");
    char *p = mempcpy(name, name_prefix, strlen(name_prefix));

    p = put_number(p, owner->pidns, 16);
    *p++ = '-';
    p = put_number(p, (uint64_t)owner->pid, 10);
    *p++ = '-';
    p = put_number(p, owner->start_time, 10);
    *p++ = '-';
    p = put_number(p, random, 16);
    *p = '\0';
}

/* Digits up to `stop`, which is skipped; refuses an empty number, a leading zero and what exceeds
 * `max`. */
static const char *take_number(const char *p, unsigned base, char stop, uint64_t max,
                               uint64_t *ret) {
    const char *start = p, *digit;
    uint64_t n = 0;

    for (; *p && (digit = memchr(digits, *p, base)); p++) {
        uint64_t d = (uint64_t)(digit - digits);
        if (n > (max - d) / base)
            return NULL;
        n = n * base + d;
    }
    if (p == start || (p - start > 1 && *start == '0') || *p != stop)
        return NULL;
    *ret = n;
    return stop ? p + 1 : p;
}

bool cg_parse_name(const char *name, struct cg_owner *ret) {
    uint64_t pidns, pid, start_time, random;

    if (strncmp(name, name_prefix, strlen(name_prefix)) != 0)
        return false;
    const char *p = take_number(name + strlen(name_prefix), 16, '-', UINT64_MAX, &pidns);
    p = p ? take_number(p, 10, '-', INT_MAX, &pid) : NULL;
    p = p ? take_number(p, 10, '-', UINT64_MAX, &start_time) : NULL;
    p = p ? take_number(p, 16, '\0', UINT32_MAX, &random) : NULL;
    if (!p || pid == 0)
        return false;
    if (ret)
        *ret = (struct cg_owner){.pidns = pidns, .pid = (pid_t)pid, .start_time = start_time};
    return true;
}
