/*
 * cgroup_v2.c: where in a v2 tree a box's cgroup may be made.
 *
 * Four rules of the kernel decide. A child has a controller only if its parent
 * lists it in cgroup.subtree_control. A cgroup that passes controllers on may
 * hold no processes of its own, the root excepted. Who is not root makes
 * children only in directories that are theirs (delegation). And a process is
 * put into a cgroup only by who may write cgroup.procs of the nearest common
 * ancestor, so the search goes from our own cgroup upwards and nowhere else.
 * Source: Documentation/admin-guide/cgroup-v2.rst.
 */
#include "linux/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "linux/cgroup_hier.h"

#include "base/banned.h"

enum members { MEMBERS_NONE, MEMBERS_SELF, MEMBERS_OTHERS };

/* One directory as the search sees it. */
struct place {
    char dir[CG_PATH];
    bool exists, top; /* top: the real root of the hierarchy */
    bool threaded;    /* only threads can be put into its children (cgroup.type) */
    int denied;       /* 0: children can be made and filled here; else -errno */
    int control;      /* 0: cgroup.subtree_control may be written; else -errno */
    enum members members;
    unsigned has, on; /* cgroup.controllers, cgroup.subtree_control */
    unsigned usable;  /* those that a child would have, or can be given */
};

static unsigned read_controllers(int dirfd, const char *file, struct cg_layout *l) {
    char text[512];
    ssize_t n = file_read_at(dirfd, file, text, sizeof(text));

    cg_unread(l, n < 0 ? (int)n : 0);
    return n < 0 ? 0 : cg_parse_controllers(text);
}

static enum members read_members(int dirfd, struct cg_layout *l) {
    char text[64], self[24];
    int fd _cleanup_fd_ = openat(dirfd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -errno : fd_read_full(fd, text, sizeof(text) - 1);

    cg_unread(l, n < 0 ? (int)n : 0);
    if (n == 0)
        return MEMBERS_NONE;
    if (n < 0)
        return MEMBERS_OTHERS; /* a threaded cgroup does not say; it can pass nothing on either */
    text[n] = '\0';
    (void)snprintf(self, sizeof(self), "%d\n", (int)getpid());
    return strcmp(text, self) ? MEMBERS_OTHERS : MEMBERS_SELF;
}

/* A child of a cgroup that is threaded, or the root of threaded ones, can hold no process: it would be
 * "domain invalid", and clone3 into it EOPNOTSUPP. */
static bool is_threaded(int dirfd, struct cg_layout *l) {
    char type[32];
    ssize_t n = file_read_at(dirfd, "cgroup.type", type, sizeof(type));

    cg_unread(l, n < 0 ? (int)n : 0); /* the root has none: ENOENT */
    return n > 0 && strcmp(type, "domain") != 0;
}

/* A slice, and a user manager's own cgroup, is systemd's to configure even where its files are the user's:
 * it takes controllers out of such a cgroup's subtree_control as soon as no unit asks for them, and the limits
 * of a box below would be gone in the middle of a run. What it leaves alone is a scope or service with Delegate=. */
static bool is_systemds(const char *dir) {
    const char *name = strrchr(dir, '/');
    size_t len = strlen(dir);

    name = name ? name + 1 : dir;
    return geteuid() != 0 && ((len > 6 && strcmp(dir + len - 6, ".slice") == 0) ||
                              strncmp(name, "user@", 5) == 0 || strcmp(name, "init.scope") == 0);
}

/* Looks at p->dir and fills the rest. */
static void look(struct place *p, unsigned want, struct cg_layout *l) {
    int fd _cleanup_fd_ = open(p->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

    p->exists = fd >= 0;
    p->denied = fd < 0 ? -errno : cg_access(fd, ".", W_OK | X_OK);
    if (p->denied == 0)
        p->denied = cg_access(fd, "cgroup.procs", W_OK);
    cg_unread(l, p->denied);
    if (fd < 0)
        return;
    if (p->denied == 0 && (p->threaded = is_threaded(fd, l)))
        p->denied = -EOPNOTSUPP;
    if (!want) /* only CPU time is asked for, as on a hybrid host: every v2 cgroup has that */
        return;
    p->has = read_controllers(fd, "cgroup.controllers", l);
    p->on = read_controllers(fd, "cgroup.subtree_control", l) & p->has;
    p->top = cg_access(fd, "cgroup.type", F_OK) == -ENOENT &&
             cg_access(fd, "cgroup.events", F_OK) == -ENOENT;
    if (p->denied)
        return;
    p->usable = p->on;
    if ((p->has & want & ~p->on) == 0)
        return;
    p->control = cg_access(fd, "cgroup.subtree_control", W_OK);
    cg_unread(l, p->control);
    p->members = p->top ? MEMBERS_NONE : read_members(fd, l);
    if (p->control == 0 && p->members == MEMBERS_NONE)
        p->usable = p->has;
}

static int score(unsigned controllers) { return __builtin_popcount(controllers); }

/* One directory up, not above `top`. */
static bool go_up(char *dir, const char *top) {
    char *slash = strrchr(dir, '/');

    if (strlen(dir) <= strlen(top) || !slash || (size_t)(slash - dir) < strlen(top))
        return false;
    *slash = '\0';
    return true;
}

/* What the search found. */
struct search {
    struct place near;   /* the nearest directory that exists: our own, as a rule */
    struct place best;   /* dir "": none */
    char giver[CG_PATH]; /* the nearest directory above `near` that has what `near` lacks */
    unsigned giver_has;
    unsigned top_has;
    bool top_is_root;
};

static void search_up(const char *root, const char *from, unsigned want, struct search *s,
                      struct cg_layout *l) {
    struct place p = {0};

    (void)str_copy(p.dir, sizeof(p.dir), from);
    do {
        char dir[CG_PATH];

        memcpy(dir, p.dir, sizeof(dir));
        p = (struct place){0};
        memcpy(p.dir, dir, sizeof(dir));
        look(&p, want, l);
        if (!p.exists)
            continue;
        if (!s->near.exists)
            s->near = p;
        if (!s->giver[0] && (p.has & want & ~s->near.has)) {
            (void)str_copy(s->giver, sizeof(s->giver), p.dir);
            s->giver_has = p.has;
        }
        if (p.denied == 0 && !is_systemds(p.dir) &&
            (!s->best.dir[0] || score(p.usable & want) > score(s->best.usable & want)))
            s->best = p;
        s->top_has = p.has;
        s->top_is_root = p.top;
    } while ((s->best.usable & want) != want && go_up(p.dir, root));
}

/* The nearest cgroup that is above both; to put a process from one into the other takes write
 * access to it. */
static int common_ancestor_denied(const char *root, const char *own_dir, const char *parent,
                                  char ret_dir[CG_PATH]) {
    size_t n = 0;

    for (size_t i = 0; own_dir[i] && own_dir[i] == parent[i]; i++)
        if ((own_dir[i + 1] == '/' || !own_dir[i + 1]) && (parent[i + 1] == '/' || !parent[i + 1]))
            n = i + 1;
    (void)snprintf(ret_dir, CG_PATH, "%.*s", (int)MAX(n, strlen(root)), own_dir);

    int fd _cleanup_fd_ = open(ret_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : cg_access(fd, "cgroup.procs", W_OK);
}

/* ------------------------------------------------------------------ reasons */

static void why_denied(enum cg_controller c, const struct search *s, const char *root,
                       struct cg_layout *ret) {
    const char *name = cg_uses[c], *dir = s->near.dir;

    if (!s->near.exists)
        cg_why(ret, c, "no cgroup directory %s; mount cgroup2 on %s", dir, root);
    else if (s->near.threaded)
        cg_why(ret, c,
               "cgroup %s is threaded, so no box, and no %s, can be below it; name another with "
               "--cgroup-parent, one whose cgroup.type is domain",
               dir, name);
    else if (s->near.denied == -EROFS)
        cg_why(ret, c,
               "%s is read-only, so no %s; in a container: --cgroupns=private and a "
               "writable %s",
               dir, name, root);
    else if (geteuid() == 0)
        cg_why(ret, c,
               "%s may not be written (%s), so no %s; mayfly needs a writable %s, and root "
               "CAP_DAC_OVERRIDE where modes forbid it",
               dir, errno_name(s->near.denied), name, root);
    else
        cg_why(ret, c,
               "cgroup %s is not yours, so no %s; run: systemd-run --user --scope -p "
               "Delegate=yes -- mayfly …",
               dir, name);
}

/* The cgroup is ours, but this controller cannot be had in a child of it. */
static void why_missing(enum cg_controller c, const struct search *s, const char *root,
                        struct cg_layout *ret) {
    const char *name = cg_controller_names[c], *dir = s->near.dir;
    bool user = geteuid() != 0;

    if (!(s->top_has & BIT(c)) && s->top_is_root)
        cg_why(ret, c, "this kernel offers no %s controller in %s; boot with cgroup_enable=%s",
               name, root, name);
    else if (!(s->top_has & BIT(c)))
        cg_why(ret, c,
               "no %s in %s/cgroup.controllers: what started this container must delegate it; "
               "--cgroupns=private and a writable %s",
               name, root, root);
    else if (s->near.denied == 0 && (s->near.has & BIT(c)) && s->near.members == MEMBERS_OTHERS)
        cg_why(ret, c,
               "other processes are in %s, so it cannot pass %s on; alone in one: systemd-run "
               "%s--scope -p Delegate=yes -- mayfly …",
               dir, name, user ? "--user " : "");
    else if (user && strstr(dir, "/user@"))
        cg_why(
            ret, c,
            "%s is not delegated to you in %s; as root: Delegate=cpu memory pids under [Service] "
            "in a drop-in (systemctl edit user@.service), then log in anew",
            name, dir);
    else if (user)
        cg_why(ret, c,
               "%s is not delegated to you in %s; run: systemd-run --user --scope -p Delegate=yes "
               "-- mayfly …",
               name, dir);
    else
        cg_why(ret, c, "%s is not passed on to %s; as root: echo +%s > %s/cgroup.subtree_control",
               name, dir, name, (s->giver_has & BIT(c)) ? s->giver : dir);
}

/* ------------------------------------------------------------------ detection */

/* --cgroup-parent: that directory or none. */
static bool search_given(const struct cg_mount *m, const char *own_dir, const char *parent,
                         unsigned want, struct search *s, struct cg_layout *ret) {
    char dir[CG_PATH];
    bool inside = cg_join_parent(m, parent, s->near.dir);

    if (inside) {
        look(&s->near, want, ret);
        s->top_has = s->near.has;
    }
    for (unsigned c = 0; c < CG__N; c++) {
        if (!(want & BIT(c)) && c != CG_ACCT)
            continue;
        if (!inside)
            cg_why(ret, (enum cg_controller)c, "--cgroup-parent %s is not a cgroup below %s",
                   parent, m->target);
        else if (!s->near.exists)
            cg_why(ret, (enum cg_controller)c, "--cgroup-parent %s: no directory %s; make it first",
                   parent, s->near.dir);
        else if (!s->near.denied && common_ancestor_denied(m->target, own_dir, s->near.dir, dir))
            cg_why(
                ret, (enum cg_controller)c,
                "--cgroup-parent %s: moving into it needs write access to %s/cgroup.procs, which "
                "is above both it and this process",
                parent, dir);
    }
    if (ret->why[CG_ACCT][0])
        return false;
    if (s->near.denied == 0)
        s->best = s->near;

    struct search up = {0}; /* for the words alone: who could pass the rest on */
    search_up(m->target, s->near.dir, want, &up, ret);
    (void)str_copy(s->giver, sizeof(s->giver), up.giver);
    s->giver_has = up.giver_has;
    s->top_has |= up.top_has;
    s->top_is_root = up.top_is_root;
    return true;
}

void cg_v2_detect(const struct cg_mount *m, const char *own, const char *parent, unsigned want,
                  struct cg_layout *ret) {
    unsigned limits = want & ~(unsigned)BIT(CG_ACCT); /* cpu.stat needs no controller */
    char own_dir[CG_PATH];
    struct search s = {0};

    if (!cg_join(m, own, own_dir))
        (void)str_copy(own_dir, sizeof(own_dir), m->target);
    if (!parent)
        search_up(m->target, own_dir, limits, &s, ret);
    else if (!search_given(m, own_dir, parent, limits, &s, ret))
        return;

    struct cg_hier h = {.version = 2};
    const struct place *best = s.best.dir[0] ? &s.best : NULL;
    unsigned got = best ? best->usable & limits : 0;

    /* Alone in our own cgroup, we can leave it for a leaf and so make it one that passes
     * controllers on. */
    if (s.near.denied == 0 && s.near.control == 0 && s.near.members == MEMBERS_SELF &&
        score(s.near.has & limits) > score(got)) {
        best = &s.near;
        got = s.near.has & limits;
        h.evacuate = true;
    }
    if (best) {
        h.controllers = got | (unsigned)BIT(CG_ACCT);
        h.enable = got & ~best->on;
        (void)str_copy(h.parent, sizeof(h.parent), best->dir);
        cg_place(ret, &h);
    }
    for (unsigned c = 0; c < CG__N; c++) {
        if (!(want & BIT(c)) || ret->where[c] >= 0)
            continue;
        /* A controller that was asked for but is nowhere below is the kernel's or the container's
         * doing. */
        if (best)
            why_missing((enum cg_controller)c, &s, m->target, ret);
        else
            why_denied((enum cg_controller)c, &s, m->target, ret);
    }
}

/* ------------------------------------------------------------------ settings and usage */

int cg_v2_settings(enum cg_controller c, const struct cg_limits *l,
                   struct cg_setting out[CG_SETTINGS]) {
    int n = 0;

    switch (c) {
    case CG_MEMORY:
        if (!l->memory_bytes)
            break;
        n += cg_set(&out[n], "memory.max", false, "%llu", (unsigned long long)l->memory_bytes);
        n += cg_set(&out[n], "memory.swap.max", !l->host_has_swap, "%llu",
                    (unsigned long long)l->swap_bytes);
        n += cg_set(&out[n], "memory.oom.group", false, "1");
        break;
    case CG_CPU:
        if (l->cpu_milli)
            n += cg_set(&out[n], "cpu.max", false, "%llu 100000", 100ULL * l->cpu_milli);
        break;
    case CG_PIDS:
        if (l->pids)
            n += cg_set(&out[n], "pids.max", false, "%u", l->pids);
        break;
    case CG_ACCT:
    case CG__N:
        break;
    }
    return n;
}

int cg_v2_read_cpu_usec(int dirfd, uint64_t *ret) {
    return cg_read_keyed(dirfd, "cpu.stat", "usage_usec", ret);
}

/* oom_kill counts processes, and where memory.oom.group ended the whole box the first victim twice;
 * oom_group_kill counts such a box once. A kernel may count either first, and any of them being
 * more than 0 means OOM, so the larger is taken. */
int cg_v2_read_oom_kills(int dirfd, uint64_t *ret) {
    char text[1024];
    ssize_t n = file_read_at(dirfd, "memory.events", text, sizeof(text));

    if (n < 0)
        return (int)n;
    uint64_t kills = cg_keyed(text, "oom_kill"), groups = cg_keyed(text, "oom_group_kill");
    if (kills == UINT64_MAX)
        return -ENODATA;
    *ret = groups == UINT64_MAX ? kills : MAX(kills, groups);
    return 0;
}

void cg_v2_read_usage(unsigned controllers, int dirfd, struct cg_usage *ret) {
    if (controllers & BIT(CG_MEMORY)) {
        ret->memory_peak_bytes = ret->oom_kills = UINT64_MAX;
        (void)cg_read_number(dirfd, "memory.peak", &ret->memory_peak_bytes); /* Linux 5.19 */
        (void)cg_v2_read_oom_kills(dirfd, &ret->oom_kills);
    }
    if (controllers & BIT(CG_PIDS)) {
        ret->pids_peak = ret->pids_refused = UINT64_MAX;
        (void)cg_read_number(dirfd, "pids.peak", &ret->pids_peak); /* Linux 6.6 */
        (void)cg_read_keyed(dirfd, "pids.events", "max", &ret->pids_refused);
    }
    if (controllers & BIT(CG_ACCT)) {
        ret->cpu_usec = UINT64_MAX;
        (void)cg_v2_read_cpu_usec(dirfd, &ret->cpu_usec);
    }
}
