/*
 * doctor.c: what this host can put in force, what is missing, what to do about it, and what it would
 * cost to go on without.
 *
 * The controls speak for themselves, from the host's facts, as they do before a run. What no fact
 * tells, the calls that a container's filter refuses, has been tried, and overrides them. From that a
 * report is made without another look at the host, so that a test can have a report on any host; the
 * trial, a real box, comes last and has the last word.
 */
#include "lib/doctor.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/helper.h"
#include "base/units.h"
#include "control/cgroup_limit.h"
#include "control/control.h"
#include "lib/attacks.h"
#include "lib/delegate.h"
#include "lib/report.h"

#include "base/banned.h"

/* The public struct first, so that one pointer serves both. */
struct full_report {
    struct mayfly_report pub;
    struct arena arena;
    bool starved; /* of memory: the trial's program, which takes none, would not notice */
};

void mayfly_report_free(struct mayfly_report *report) {
    if (!report)
        return;
    struct arena arena = ((struct full_report *)report)->arena;
    arena_done(&arena);
}

static void set(char *to, size_t size, const char *fmt, ...) PRINTF_LIKE(3, 4);
static void set(char *to, size_t size, const char *fmt, ...) {
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(to, size, fmt, ap);
    va_end(ap);
}
#define SET(field, ...) set(field, sizeof(field), __VA_ARGS__)

static void from_buf(struct buf *from, char *to, size_t size) {
    (void)str_copy(to, size, from->data ? from->data : "");
    buf_done(from);
}

/* ------------------------------------------------------------------ what was tried */

/* Which control falls with which call, and since when the kernel has it: then ENOSYS is a filter's. */
static const struct {
    enum try t;
    enum control_id control;
    unsigned since;
} needs[] = {
    {TRY_CLONE3, CTL_PID, KERNEL(5, 5)},
    {TRY_NS_USER, CTL_USER, 0},
    {TRY_NS_PID, CTL_PID, 0},
    {TRY_NS_MNT, CTL_MOUNT, 0},
    {TRY_NS_NET, CTL_NET, 0},
    {TRY_NS_IPC, CTL_IPC, 0},
    {TRY_NS_UTS, CTL_UTS, 0},
    {TRY_NS_CGROUP, CTL_CGROUPNS, 0},
    {TRY_PRIVATE, CTL_MOUNT, 0},
    {TRY_OPEN_TREE, CTL_MOUNT, KERNEL(5, 2)},
    {TRY_SETATTR, CTL_MOUNT, KERNEL(5, 12)},
    {TRY_TMPFS, CTL_TMP, KERNEL(5, 2)},
    {TRY_PROC, CTL_PROC, KERNEL(5, 2)},
    {TRY_MOVE_MOUNT, CTL_MOUNT, KERNEL(5, 2)},
    {TRY_PIVOT, CTL_MOUNT, 0},
    {TRY_SECCOMP, CTL_SECCOMP, 0},
};

static const char unconfined[] =
    "docker, podman: --security-opt seccomp=FILE with a profile that allows clone3, unshare, "
    "setns, mount, "
    "umount2, open_tree, move_mount, fsopen, fsconfig, fsmount, mount_setattr, pivot_root and "
    "seccomp, or "
    "seccomp=unconfined; Kubernetes: securityContext.seccompProfile.type: Unconfined";

/* As the kernel's sysctls name the kinds of namespaces: the one that this try makes. */
static const char *space_of(enum try t) {
    static const char *const names[TRY__N] = {
        [TRY_NS_USER] = "user",     [TRY_NS_PID] = "pid",   [TRY_NS_MNT] = "mnt",
        [TRY_NS_NET] = "net",       [TRY_NS_IPC] = "ipc",   [TRY_NS_UTS] = "uts",
        [TRY_NS_CGROUP] = "cgroup", [TRY_OPEN_TREE] = "mnt"};

    return names[t];
}

static void words_refused(enum try t, unsigned since, const struct tried *tried,
                          const struct host *host, char *why, size_t why_size, char *remedy,
                          size_t remedy_size) {
    int answer = tried->answer[t];
    const char *space = space_of(t);

    if (since && host->kernel < since && answer == -ENOSYS) {
        set(why, why_size, "%s needs Linux %u.%u; this is %s", try_name(t), since >> 16,
            since & 0xffff, host->release);
        set(remedy, remedy_size, "a kernel of %u.%u or later", since >> 16, since & 0xffff);
        return;
    }
    if (t == TRY_PROC) {
        set(why, why_size,
            "a new proc may not be mounted here (%s): parts of /proc are covered, or a security "
            "module forbids it",
            errno_name(answer));
        set(remedy, remedy_size,
            "in a container: --security-opt systempaths=unconfined (docker), --security-opt "
            "unmask=ALL "
            "(podman), procMount: Unmasked (Kubernetes)");
        return;
    }
    if (space && (answer == -ENOSPC || answer == -EUSERS)) {
        set(why, why_size, "no more %s namespaces may be made here (%s)", space,
            errno_name(answer));
        set(remedy, remedy_size,
            "as root, here or in the user namespace around this one: sysctl -w "
            "user.max_%s_namespaces=10000",
            space);
        return;
    }
    if (t == TRY_NS_USER && answer == -EPERM && tried->in_chroot) {
        set(why, why_size,
            "this process is in a chroot, where the kernel makes no user namespaces (EPERM, "
            "user_namespaces(7))");
        set(remedy, remedy_size,
            "run mayfly outside of it with --rootfs DIR, or enter the directory with pivot_root (a "
            "container, systemd-nspawn) rather than chroot");
        return;
    }
    if (answer == -EAGAIN || answer == -ENOMEM) {
        set(why, why_size, "%s: %s", try_name(t), errno_words(answer));
        set(remedy, remedy_size,
            "raise the limit of processes (ulimit -u, pids.max), or free memory");
        return;
    }
    set(why, why_size,
        "%s was tried and is refused (%s): by the seccomp filter of a container, or by a security "
        "module",
        try_name(t), errno_name(answer));
    set(remedy, remedy_size, "%s", unconfined);
}

/* A control that thinks it can be had, and whose calls are refused. */
static void override(struct mayfly_check *c, enum control_id id, const struct host *host,
                     const struct tried *tried) {
    for (size_t i = 0; i < ARRAY_LEN(needs) && c->answer != 0; i++) {
        int answer = tried->answer[needs[i].t];

        if (needs[i].control != id || answer >= 0)
            continue;
        c->answer = 0;
        words_refused(needs[i].t, needs[i].since, tried, host, c->why, sizeof(c->why), c->remedy,
                      sizeof(c->remedy));
    }
}

/* ------------------------------------------------------------------ the controls */

/* A cgroup's reason has its remedy behind it: "what; what to do". */
static void split_remedy(struct mayfly_check *c, enum control_id id) {
    char *semicolon = strstr(c->why, "; ");

    if (c->answer != 0 || !semicolon ||
        (id != CTL_MEMORY && id != CTL_CPU && id != CTL_PIDS && id != CTL_DEADLINE))
        return;
    *semicolon = '\0';
    SET(c->remedy, "%s", semicolon + 2);
}

/* The box's devices are the host's. */
static void need_devices(struct mayfly_check *c, enum control_id id,
                         const struct surroundings *around) {
    if (id != CTL_DEV || !around->no_device[0])
        return;
    c->answer = 0;
    SET(c->why, "the host has no %s, and a box's devices are the host's", around->no_device);
    SET(c->remedy, "as root: mount -t devtmpfs none /dev");
}

static void check(enum control_id id, const struct policy *policy, const struct host *host,
                  const struct tried *tried, const struct surroundings *around,
                  struct mayfly_check *ret) {
    const struct control *c = controls[id];
    struct buf how = {0}, effort = {0};
    struct probe probe = {0};
    enum probe_answer answer = c->probe ? c->probe(policy, host, &probe) : PROBE_YES;

    *ret = (struct mayfly_check){
        .control = control_id_name(id),
        .summary = c->summary,
        .source = c->source,
        .without = c->without,
        .answer = answer == PROBE_YES       ? 1
                  : answer == PROBE_COVERED ? 2
                                            : 0,
    };
    SET(ret->why, "%s", probe.why);
    SET(ret->remedy, "%s", probe.remedy);
    split_remedy(ret, id);
    override(ret, id, host, tried);
    need_devices(ret, id, around);
    doctor_how(id, policy, host, &how);
    from_buf(&how, ret->how, sizeof(ret->how));
    if (ret->answer == 0)
        doctor_best_effort(id, policy, host, &effort);
    from_buf(&effort, ret->best_effort, sizeof(ret->best_effort));
}

/* What gets through without this control, on a host that lacks all of `missing`. */
static bool cost(struct full_report *r, struct mayfly_check *c, uint64_t missing) {
    struct mayfly_attack *through = arena_alloc(&r->arena, n_attacks * sizeof(*through));
    struct mayfly_attack *thinner = arena_alloc(&r->arena, n_attacks * sizeof(*thinner));

    if (!through || !thinner)
        return false;
    for (size_t i = 0; i < n_attacks; i++) {
        const struct attack *a = &attacks[i];
        bool some = false;

        if (!attack_is_stopped_by(a, c->control))
            continue;
        if (attack_gets_through(a, missing, &some))
            through[c->n_through++] = (struct mayfly_attack){.id = a->id, .title = a->title};
        else if (some)
            thinner[c->n_thinner++] = (struct mayfly_attack){.id = a->id, .title = a->title};
    }
    c->through = through;
    c->thinner = thinner;
    return true;
}

static bool add_checks(struct full_report *r, const struct policy *policy, const struct host *host,
                       const struct tried *tried, const struct surroundings *around) {
    struct mayfly_check *checks = arena_alloc(&r->arena, CTL__N * sizeof(*checks));
    uint64_t missing = 0;

    if (!checks)
        return false;
    for (int i = 0; i < CTL__N; i++) {
        check((enum control_id)i, policy, host, tried, around, &checks[i]);
        if (checks[i].answer != 1)
            missing |= BIT(i);
    }
    for (int i = 0; i < CTL__N; i++)
        if (checks[i].answer != 1 && !cost(r, &checks[i], missing))
            return false;
    r->pub.checks = checks;
    r->pub.n_checks = CTL__N;
    return true;
}

/* ------------------------------------------------------------------ the kernel's age */

static const struct feature {
    const char *name, *without;
    unsigned since;
} features[] = {
    {"mount_setattr, recursive", "no box: a mount inside the rootfs would keep its own flags",
     KERNEL(5, 12)},
    {"clone3 into a cgroup (v2)", "no box where cgroups are v2", KERNEL(5, 7)},
    {"cgroup.kill (v2)", "a box is killed by its init's death alone", KERNEL(5, 14)},
    {"RLIMIT_NPROC per user namespace",
     "best effort cannot limit the processes of a user without subordinate ids", KERNEL(5, 14)},
    {"close_range", "no box: descriptors cannot all be closed", KERNEL(5, 9)},
    {"openat2", "no box: paths cannot be held below the root", KERNEL(5, 6)},
    {"overlayfs in a user namespace", "no --read-only=false", KERNEL(5, 11)},
    {"overlayfs on an id-mapped rootfs", "no --read-only=false as root", KERNEL(5, 19)},
    {"Landlock ABI 2", "no second wall", KERNEL(5, 19)},
    {"Landlock ABI 6", "the second wall is around files alone", KERNEL(6, 12)},
    {"memory.peak (v2)", "usage.memoryPeakBytes is null", KERNEL(5, 19)},
    {"pids.peak", "usage.pidsPeak is null", KERNEL(6, 6)},
};

static bool is_here(const struct feature *f, const struct host *host, const struct tried *tried) {
    if (strstr(f->name, "Landlock ABI"))
        return host->landlock_abi >= (f->since == KERNEL(6, 12) ? 6 : 2);
    if (f->since == KERNEL(5, 12) && tried->answer[TRY_SETATTR] <= 0) /* backported, it may be */
        return tried->answer[TRY_SETATTR] == 0;
    return host->kernel >= f->since;
}

static bool add_features(struct full_report *r, const struct host *host,
                         const struct tried *tried) {
    struct mayfly_feature *list = arena_alloc(&r->arena, ARRAY_LEN(features) * sizeof(*list));

    if (!list)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(features); i++) {
        char version[24];

        SET(version, "%u.%u", features[i].since >> 16, features[i].since & 0xffff);
        list[i] = (struct mayfly_feature){.name = features[i].name,
                                          .without = features[i].without,
                                          .since = arena_strdup(&r->arena, version),
                                          .here = is_here(&features[i], host, tried)};
        if (!list[i].since)
            return false;
    }
    r->pub.features = list;
    r->pub.n_features = ARRAY_LEN(features);
    return true;
}

/* ------------------------------------------------------------------ the rest */

static struct mayfly_look *look(struct full_report *r, const char *name, bool good) {
    struct mayfly_look *l = &r->pub.looks[r->pub.n_looks++];

    *l = (struct mayfly_look){.name = name, .good = good};
    return l;
}

static void look_at_ids(struct full_report *r, const struct host *host) {
    const struct idmap_facts *ids = &host->ids;
    struct mayfly_look *l = look(r, "subordinate ids", ids->kind != IDMAP_SINGLE);
    const char *semicolon = strstr(ids->why_single, "; ");

    if (host->proc_missing)
        SET(l->found, "cannot be told without /proc");
    else if (ids->kind == IDMAP_BLOCK)
        SET(l->found, "not needed: root has ids of its own for boxes");
    else if (ids->kind == IDMAP_SUBID)
        SET(l->found, "%u uids from %u, %u gids from %u", ids->sub_uid.count, ids->sub_uid.start,
            ids->sub_gid.count, ids->sub_gid.start);
    else if (semicolon) { /* what is wrong; what to do */
        SET(l->found, "%.*s", (int)(semicolon - ids->why_single), ids->why_single);
        SET(l->remedy, "%s", semicolon + 2);
    } else
        SET(l->found, "%s", ids->why_single);
}

static void look_at_delegation(struct full_report *r, const struct host *host,
                               const struct surroundings *around) {
    bool wanted = delegate_wanted(host);
    struct mayfly_look *l = look(r, "delegation", !wanted);

    if (!wanted) {
        SET(l->found,
            host->ids.uid == 0 ? "not needed: root" : "a cgroup with all limits is yours");
        return;
    }
    if (around->asked[0])
        SET(l->found, "%s", around->asked);
    else if (!around->has_bus)
        SET(l->found, "no cgroup with all limits is yours, and no systemd user manager is in sight "
                      "that could be asked for one");
    else
        SET(l->found, "no cgroup with all limits is yours; the systemd user manager %s",
            around->has_helper ? "gives one to a run" : "cannot be asked: no mayfly-delegate");
    SET(l->remedy,
        "%s; for a cgroup without a login: loginctl enable-linger USER (as root), XDG_RUNTIME_DIR="
        "/run/user/%u; all controllers for users: systemctl edit user@.service with [Service] "
        "Delegate=cpu memory pids (as root), then log in anew",
        around->has_helper ? "systemd-run --user --scope -p Delegate=yes -- mayfly …"
                           : "install mayfly-delegate, or: systemd-run --user --scope -p "
                             "Delegate=yes -- mayfly …",
        host->ids.uid);
}

static void look_at_calls(struct full_report *r, const struct host *host,
                          const struct tried *tried) {
    struct mayfly_look *l = NULL;

    for (size_t i = 0; i < ARRAY_LEN(needs); i++) {
        int answer = tried->answer[needs[i].t];
        if (answer >= 0)
            continue;
        l = look(r, try_name(needs[i].t), false);
        words_refused(needs[i].t, needs[i].since, tried, host, l->found, sizeof(l->found),
                      l->remedy, sizeof(l->remedy));
    }
    if (!l) {
        bool all = tried->answer[TRY_SECCOMP] == 0;
        l = look(r, "system calls", all);
        SET(l->found,
            all ? "all that a box is built with were tried, and work" : "could not all be tried");
    }
    int listener = tried->answer[TRY_LISTENER];
    if (tried->answer[TRY_SECCOMP] != 0 || listener >= 0)
        return;
    l = look(r, try_name(TRY_LISTENER), false);
    if (listener == -EBUSY) {
        SET(l->found,
            "a filter around this process notifies somebody already, and the kernel allows one "
            "such: refused calls are refused, but cannot be named");
        SET(l->remedy, "a container runtime without seccomp notification (no seccomp agent)");
    } else {
        SET(l->found, "refused calls cannot be named (%s)", errno_name(listener));
    }
}

static void look_at_limits(struct full_report *r, const struct host *host,
                           const struct surroundings *around) {
    enum { FILES = 64, PROCESSES = 64 };
    bool few_files = around->max_files < FILES;
    bool few = host->ids.uid != 0 && around->max_processes < PROCESSES;
    struct mayfly_look *l = look(r, "limits of this process", !few_files && !few);

    SET(l->found, "%llu open files%s, %llu processes%s", (unsigned long long)around->max_files,
        few_files ? " (a box takes about 30)" : "", (unsigned long long)around->max_processes,
        few ? " (all of yours count)" : "");
    if (around->max_processes == UINT64_MAX)
        SET(l->found, "%llu open files%s, processes without limit",
            (unsigned long long)around->max_files, few_files ? " (a box takes about 30)" : "");
    if (few_files || few)
        SET(l->remedy, "%s%s%s", few_files ? "ulimit -n 1024" : "", few_files && few ? "; " : "",
            few ? "ulimit -u 1024" : "");
}

/* Limits of memory that a box inherits; an interpreter that cannot map its libraries ends before it begins. */
static void look_at_memory(struct full_report *r, const struct policy *policy,
                           const struct surroundings *around) {
    const uint64_t least = UINT64_C(64) << 20;
    char space[32], data[32], none[] = "no limit";

    if (MIN(around->max_space, around->max_data) >= policy->memory_bytes)
        return;
    r->starved = MIN(around->max_space, around->max_data) < least;
    struct mayfly_look *l = look(r, "inherited limits of memory", false);
    SET(l->found, "address space %s, data %s for each process, which a box inherits%s",
        around->max_space == UINT64_MAX ? none
                                        : format_bytes(around->max_space, space, sizeof(space)),
        around->max_data == UINT64_MAX ? none : format_bytes(around->max_data, data, sizeof(data)),
        r->starved ? ": too little for an interpreter" : ": less than its own limit");
    SET(l->remedy, "ulimit -v unlimited; ulimit -d unlimited");
}

static void look_at_sys(struct full_report *r, const struct host *host) {
    if (!host->sys_hidden || host->proc_missing)
        return;
    struct mayfly_look *l = look(r, "/proc/sys", false);
    SET(l->found,
        "is covered, so settings cannot be read there: user namespaces were tried instead");
    SET(l->remedy, "umount /proc/sys, as root");
}

static bool add_looks(struct full_report *r, const struct policy *policy, const struct host *host,
                      const struct tried *tried, const struct surroundings *around) {
    r->pub.looks = arena_alloc(&r->arena, (TRY__N + 7) * sizeof(*r->pub.looks));
    if (!r->pub.looks)
        return false;
    look_at_ids(r, host);
    look_at_delegation(r, host, around);
    look_at_calls(r, host, tried);
    look_at_limits(r, host, around);
    look_at_memory(r, policy, around);
    look_at_sys(r, host);
    return true;
}

/* ------------------------------------------------------------------ all of it */

struct mayfly_report *doctor_report(const struct policy *policy, const struct host *host,
                                    const struct tried *tried, const struct surroundings *around) {
    struct arena arena = {0};
    struct full_report *r = arena_alloc(&arena, sizeof(*r));

    if (!r) {
        arena_done(&arena);
        return NULL;
    }
    *r = (struct full_report){.arena = arena, .pub = {.root = host->ids.uid == 0, .trial = -1}};
    SET(r->pub.kernel, "%s", host->release);
    if (!add_checks(r, policy, host, tried, around) || !add_features(r, host, tried) ||
        !add_looks(r, policy, host, tried, around)) {
        mayfly_report_free(&r->pub);
        return NULL;
    }
    return &r->pub;
}

void doctor_conclude(struct mayfly_report *report) {
    report->ready = report->trial != 0 && !((struct full_report *)report)->starved;
    for (size_t i = 0; i < report->n_checks; i++)
        report->ready = report->ready && report->checks[i].answer != 0;
}

static const char *const dev_names[] = {"null", "zero", "full", "random", "urandom"};

static void look_around(const char *asked, struct surroundings *ret) {
    char path[4096];
    struct rlimit files = {0}, processes = {0}, space = {0}, data = {0};

    (void)getrlimit(RLIMIT_NOFILE, &files);
    (void)getrlimit(RLIMIT_NPROC, &processes);
    (void)getrlimit(RLIMIT_AS, &space);
    (void)getrlimit(RLIMIT_DATA, &data);
    *ret = (struct surroundings){.has_bus = delegate_has_bus(),
                                 .has_helper = helper_find("mayfly-delegate", path, sizeof(path)),
                                 .max_files = files.rlim_cur,
                                 .max_processes = processes.rlim_cur,
                                 .max_space = space.rlim_cur,
                                 .max_data = data.rlim_cur};
    for (size_t i = 0; i < ARRAY_LEN(dev_names) && !ret->no_device[0]; i++)
        if (snprintf(path, sizeof(path), "/dev/%s", dev_names[i]) > 0 && access(path, F_OK) < 0)
            SET(ret->no_device, "%s", path);
    (void)str_copy(ret->asked, sizeof(ret->asked), asked);
}

int mayfly_doctor(const mayfly_policy *policy, int ask_manager, struct mayfly_report **ret_report,
                  struct mayfly_error *error) {
    _cleanup_free_ struct host *own = NULL;
    const struct host *host = NULL;
    struct mayfly_error refusal = {0};
    struct surroundings around;
    struct tried tried;
    struct err err = {0};

    if (ask_manager)
        (void)mayfly_delegate(policy, NULL, &refusal);
    int r = pick_host(policy_inner(policy), &host, &own, &err);
    if (r < 0)
        return export_error(error, &err), r;
    look_around(refusal.message, &around);
    host_try(&tried);
    struct mayfly_report *report = doctor_report(policy_inner(policy), host, &tried, &around);
    if (!report)
        return err_oom(&err), export_error(error, &err), -ENOMEM;
    doctor_trial(policy, report);
    doctor_conclude(report);
    *ret_report = report;
    return 0;
}
