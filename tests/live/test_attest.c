/*
 * test_attest.c: --attest cannot be fooled. A box is built from a plan that lacks something, or has it a
 * little weaker, while the policy says that it is on: it must be refused, by the control concerned. And what
 * is planted as a leftover of a run must be counted in its certificate.
 */
#include "live.h"

#include <linux/mount.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "box/box.h"
#include "box/evidence.h"
#include "control/control.h"
#include "lib/planning.h"
#include "lib/report.h"
#include "linux/bpf.h"

/* ------------------------------------------------------------------ plans, and how to weaken one */

static struct op *row(struct plan *p, enum control_id id, enum op_kind kind, const char *path) {
    for (size_t i = 0; i < p->n_ops; i++) {
        struct op *op = &p->ops[i];
        if (op->control == id && op->kind == kind &&
            (!path || (op->path && strcmp(op->path, path) == 0)))
            return op;
    }
    return NULL;
}

static bool drop(struct plan *p, struct op *op) {
    if (!op)
        return false;
    size_t i = (size_t)(op - p->ops);
    memmove(op, op + 1, (p->n_ops - i - 1) * sizeof(*op));
    p->n_ops--;
    return true;
}

static bool drop_all(struct plan *p, enum control_id id, enum op_kind kind) {
    bool any = false;

    for (struct op *op; (op = row(p, id, kind, NULL)); any = true)
        (void)drop(p, op);
    return any;
}

static bool set_value(struct op *op, const char *value) {
    if (op)
        op->value = value;
    return op != NULL;
}

/* Both names of a cgroup file: v2's and v1's. */
static struct op *setting(struct plan *p, enum control_id id, const char *v2, const char *v1) {
    struct op *op = row(p, id, OP_CGROUP_SET, v2);

    return op ? op : row(p, id, OP_CGROUP_SET, v1);
}

static bool memory_a_page_more(struct plan *p) {
    struct op *op = setting(p, CTL_MEMORY, "memory.max", "memory.limit_in_bytes");

    /* v1 refuses a memory limit above memory and swap: so a page less, as wrong as one more. */
    return op && set_value(op, plan_text(p, "%llu", strtoull(op->value, NULL, 10) - 4096));
}
static bool memory_with_swap(struct plan *p) {
    return drop(p, setting(p, CTL_MEMORY, "memory.swap.max", "memory.swappiness")) &&
           p->host->swap_bytes + (p->host->cg.hier[p->host->cg.where[CG_MEMORY]].version == 1) > 0;
}
static bool memory_without_group_kill(struct plan *p) {
    return drop(p, row(p, CTL_MEMORY, OP_CGROUP_SET, "memory.oom.group"));
}
static bool memory_not_joined(struct plan *p) {
    bool any = false;

    for (int i = 0; i < CTL__N; i++)
        any |= drop_all(p, (enum control_id)i, OP_CGROUP_JOIN);
    return any;
}
static bool cpu_a_little_more(struct plan *p) {
    return set_value(row(p, CTL_CPU, OP_CGROUP_SET, "cpu.max"), "100001 100000") ||
           set_value(row(p, CTL_CPU, OP_CGROUP_SET, "cpu.cfs_quota_us"), "100001");
}
static bool cpu_in_other_periods(struct plan *p) {
    return set_value(row(p, CTL_CPU, OP_CGROUP_SET, "cpu.max"), "100000 50000") ||
           set_value(row(p, CTL_CPU, OP_CGROUP_SET, "cpu.cfs_period_us"), "50000");
}
static bool pids_one_more(struct plan *p) {
    return set_value(row(p, CTL_PIDS, OP_CGROUP_SET, "pids.max"), "129");
}
static bool pids_unlimited(struct plan *p) {
    return drop(p, row(p, CTL_PIDS, OP_CGROUP_SET, "pids.max"));
}
static bool deadline_later(struct plan *p) { return p->wall_ms++ > 0; }
static bool deadline_none(struct plan *p) {
    p->wall_ms = 0;
    return true;
}
static bool cpu_time_later(struct plan *p) { return p->cpu_ms && p->cpu_ms++; }
static bool cpu_time_without_backstop(struct plan *p) {
    return drop(p, row(p, CTL_DEADLINE, OP_RLIMIT, NULL));
}
static bool user_namespaces_below(struct plan *p) {
    return drop(p, row(p, CTL_USER, OP_WRITE, "sys/user/max_user_namespaces"));
}
static bool pid_keeps_the_hosts_memory(struct plan *p) {
    return drop(p, row(p, CTL_PID, OP_SHED_HOST, NULL));
}
static bool no_namespace(struct plan *p, enum control_id id) {
    return drop(p, row(p, id, OP_NAMESPACE, NULL)) || drop(p, row(p, id, OP_UNSHARE, NULL));
}
static bool ipc_shared(struct plan *p) { return no_namespace(p, CTL_IPC); }
static bool uts_shared(struct plan *p) {
    return no_namespace(p, CTL_UTS) && drop(p, row(p, CTL_UTS, OP_HOSTNAME, NULL));
}
static bool uts_with_the_hosts_name(struct plan *p) {
    return drop(p, row(p, CTL_UTS, OP_HOSTNAME, NULL));
}
static bool cgroupns_shared(struct plan *p) { return no_namespace(p, CTL_CGROUPNS); }
static bool net_shared(struct plan *p) {
    return no_namespace(p, CTL_NET) && drop(p, row(p, CTL_NET, OP_LOOPBACK, NULL));
}
static bool net_without_loopback(struct plan *p) {
    return drop(p, row(p, CTL_NET, OP_LOOPBACK, NULL));
}
static bool without_flag(struct op *op, uint64_t flag) {
    if (op)
        op->flags &= ~flag;
    return op != NULL;
}
static bool mount_writable(struct plan *p) {
    return without_flag(row(p, CTL_MOUNT, OP_TREE_ATTR, NULL), MOUNT_ATTR_RDONLY);
}
static bool mount_with_setuid(struct plan *p) {
    return without_flag(row(p, CTL_MOUNT, OP_TREE_ATTR, NULL), MOUNT_ATTR_NOSUID);
}
static bool mount_with_devices(struct plan *p) {
    return without_flag(row(p, CTL_MOUNT, OP_TREE_ATTR, NULL), MOUNT_ATTR_NODEV);
}
static bool mount_without_pivot(struct plan *p) {
    return drop(p, row(p, CTL_IDENTITY, OP_CHDIR,
                       NULL)) && /* there is no such directory on the host */
           drop(p, row(p, CTL_MOUNT, OP_PIVOT, NULL));
}
static bool mount_one_more(struct plan *p) {
    plan_add(p, (struct op){.stage = STAGE_INSIDE,
                            .kind = OP_FS_NEW,
                            .control = CTL_BINDS,
                            .slot = SLOT_SCRATCH,
                            .path = "tmpfs",
                            .value = "size=4096",
                            .flags = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC});
    plan_add(p, (struct op){.stage = STAGE_INSIDE,
                            .kind = OP_TREE_ATTACH,
                            .control = CTL_BINDS,
                            .slot = SLOT_SCRATCH,
                            .slot2 = SLOT_ROOT,
                            .path = "usr"});
    return true;
}
static bool proc_writable(struct plan *p) { return drop(p, row(p, CTL_PROC, OP_TREE_ATTR, NULL)); }
static bool proc_with_suid(struct plan *p) {
    return without_flag(row(p, CTL_PROC, OP_FS_NEW, NULL), MOUNT_ATTR_NOSUID);
}
static bool proc_with_processes(struct plan *p) {
    return set_value(row(p, CTL_PROC, OP_FS_NEW, NULL), "hidepid=0");
}
static bool proc_one_mask_less(struct plan *p) {
    return drop(p, row(p, CTL_PROC, OP_MASK, "keys")) ||
           drop(p, row(p, CTL_PROC, OP_MASK, "kallsyms"));
}
static bool dev_writable(struct plan *p) { return drop(p, row(p, CTL_DEV, OP_TREE_ATTR, NULL)); }
static bool dev_with_another_device(struct plan *p) {
    struct op *op = row(p, CTL_DEV, OP_TREE_OPEN, "/dev/random");

    if (op)
        op->path = "/dev/zero";
    return op != NULL;
}
static bool dev_larger(struct plan *p) {
    return set_value(row(p, CTL_DEV, OP_FS_NEW, NULL), "mode=755,size=131072,nr_inodes=32");
}
static struct op *tmp_row(struct plan *p, int slot) {
    for (size_t i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == OP_FS_NEW && p->ops[i].control == CTL_TMP && p->ops[i].slot == slot)
            return &p->ops[i];
    return NULL;
}
static bool tmp_executable(struct plan *p) {
    return without_flag(tmp_row(p, SLOT_TMP), MOUNT_ATTR_NOEXEC);
}
static bool home_executable(struct plan *p) {
    return without_flag(tmp_row(p, SLOT_HOME), MOUNT_ATTR_NOEXEC);
}
static bool shm_with_devices(struct plan *p) {
    return without_flag(tmp_row(p, SLOT_SHM), MOUNT_ATTR_NODEV);
}
static bool tmp_a_page_larger(struct plan *p) {
    return set_value(tmp_row(p, SLOT_TMP), "size=67112960,nr_inodes=16384,mode=1777");
}
static bool tmp_with_more_inodes(struct plan *p) {
    return set_value(tmp_row(p, SLOT_TMP), "size=67108864,nr_inodes=16385,mode=1777");
}
static bool tmp_without_sticky_bit(struct plan *p) {
    return set_value(tmp_row(p, SLOT_TMP), "size=67108864,nr_inodes=16384,mode=777");
}
static bool bind_writable(struct plan *p) {
    return without_flag(row(p, CTL_BINDS, OP_TREE_ATTR, NULL), MOUNT_ATTR_RDONLY);
}
static bool bind_with_setuid(struct plan *p) {
    return without_flag(row(p, CTL_BINDS, OP_TREE_ATTR, NULL), MOUNT_ATTR_NOSUID);
}
static bool session_of_init(struct plan *p) {
    return drop(p, row(p, CTL_SESSION, OP_SESSION, NULL));
}
static bool session_with_a_mask(struct plan *p) {
    struct op *op = row(p, CTL_SESSION, OP_UMASK, NULL);

    if (op)
        op->a = 0;
    return op != NULL;
}
static struct op *rlimit_row(struct plan *p, int resource) {
    for (size_t i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == OP_RLIMIT && p->ops[i].a == (uint64_t)resource)
            return &p->ops[i];
    return NULL;
}
static bool rlimit_other(struct plan *p, int resource, uint64_t value) {
    struct op *op = rlimit_row(p, resource);

    if (op)
        op->b = op->c = value;
    return op != NULL;
}
static bool rlimits_one_file_less(struct plan *p) { return rlimit_other(p, RLIMIT_NOFILE, 1023); }
static bool rlimits_with_core(struct plan *p) { return rlimit_other(p, RLIMIT_CORE, 1 << 20); }
static bool rlimits_without_stack(struct plan *p) {
    return rlimit_other(p, RLIMIT_STACK, 8388608 - 4096);
}
static bool rlimits_without_sigpending(struct plan *p) {
    return drop(p, rlimit_row(p, RLIMIT_SIGPENDING));
}
static bool env_other(struct plan *p, const char *more) {
    size_t n = 0;

    while (p->envp[n])
        n++;
    const char **envp = arena_alloc(&p->arena, (n + 2) * sizeof(*envp));
    assert_non_null(envp);
    memcpy(envp, p->envp, n * sizeof(*envp));
    if (more)
        envp[n] = more;
    else
        envp[n - 1] = NULL;
    p->envp = envp;
    return true;
}
static bool env_with_a_secret(struct plan *p) { return env_other(p, "API_KEY=x"); }
static bool env_with_one_less(struct plan *p) { return env_other(p, NULL); }
static bool fds_all(struct plan *p) { return drop(p, row(p, CTL_FDS, OP_STDIO, NULL)); }
static bool fds_one_more(struct plan *p) {
    struct op *stdio = row(p, CTL_FDS, OP_STDIO, NULL);
    size_t at = stdio ? (size_t)(stdio - p->ops) + 1 : 0;

    if (!stdio)
        return false;
    plan_add(p, (struct op){.stage = STAGE_SEAL});
    memmove(&p->ops[at + 1], &p->ops[at], (p->n_ops - 1 - at) * sizeof(p->ops[0]));
    p->ops[at] = (struct op){.stage = STAGE_SEAL,
                             .kind = OP_TREE_OPEN,
                             .control = CTL_FDS,
                             .slot = SLOT_SCRATCH,
                             .path = "/tmp"};
    return true;
}
static bool identity_of_root(struct plan *p) {
    struct op *op = row(p, CTL_IDENTITY, OP_IDS, NULL);

    if (!op || p->host->ids.kind == IDMAP_SINGLE) /* there is one id only */
        return false;
    op->a = 0;
    return true;
}
static bool identity_with_another_group(struct plan *p) {
    struct op *op = row(p, CTL_IDENTITY, OP_IDS, NULL);

    if (!op || p->host->ids.kind == IDMAP_SINGLE)
        return false;
    op->b = 0;
    return true;
}
static bool caps_bounding_set(struct plan *p) {
    return drop(p, row(p, CTL_CAPS, OP_CAPS_BOUND, NULL));
}
static bool caps_one_kept(struct plan *p) {
    struct op *op = row(p, CTL_CAPS, OP_CAPS_BOUND, NULL);

    return op && op->a-- > 0;
}
static bool caps_of_root_kept(struct plan *p) { /* root's are not dropped by a change of id */
    struct op *ids = row(p, CTL_IDENTITY, OP_IDS, NULL);
    bool single = p->host->ids.kind == IDMAP_SINGLE;

    return (single || ids) && single && drop(p, row(p, CTL_CAPS, OP_CAPS_NONE, NULL));
}
static bool new_privs(struct plan *p) { /* without it no filter may be loaded */
    (void)drop(p, row(p, CTL_LANDLOCK, OP_LANDLOCK, NULL));
    return drop(p, row(p, CTL_SECCOMP, OP_SECCOMP, NULL)) &&
           drop(p, row(p, CTL_NONEWPRIVS, OP_PRCTL, NULL));
}
static bool landlock_none(struct plan *p) {
    return drop(p, row(p, CTL_LANDLOCK, OP_LANDLOCK, NULL));
}
static bool landlock_of_an_older_abi(struct plan *p) {
    struct op *op = row(p, CTL_LANDLOCK, OP_LANDLOCK, NULL);

    if (!op || p->host->landlock_abi < 3)
        return false;
    struct landlock_rules *rules = arena_memdup(&p->arena, op->data, sizeof(*rules));
    assert_non_null(rules);
    rules->abi = 2;
    op->data = rules;
    return true;
}
static bool landlock_without_scopes(struct plan *p) {
    struct op *op = row(p, CTL_LANDLOCK, OP_LANDLOCK, NULL);

    if (!op || p->host->landlock_abi < 6)
        return false;
    struct landlock_rules *rules = arena_memdup(&p->arena, op->data, sizeof(*rules));
    assert_non_null(rules);
    rules->abi = 5;
    op->data = rules;
    return true;
}
static bool seccomp_none(struct plan *p) { return drop(p, row(p, CTL_SECCOMP, OP_SECCOMP, NULL)); }

/* The same filter, but that one call has the answer `answer`. */
static bool seccomp_but(struct plan *p, unsigned nr, uint32_t answer) {
    const struct sock_filter head[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, answer),
    };
    struct op *op = row(p, CTL_SECCOMP, OP_SECCOMP, NULL);
    const struct filter *old = op->data;
    struct filter *new = arena_memdup(&p->arena, old, sizeof(*old));
    struct sock_filter *code =
        arena_alloc(&p->arena, sizeof(head) + old->len * sizeof(struct sock_filter));

    assert_true(new &&code);
    memcpy(code, head, sizeof(head));
    memcpy(code + 3, old->code, old->len * sizeof(*code));
    new->code = code;
    new->len = (unsigned short)(old->len + 3);
    op->data = new;
    return true;
}
static bool seccomp_with_one_call_more(struct plan *p) {
    return seccomp_but(p, SYS_mlockall, SECCOMP_RET_ALLOW);
}
static bool seccomp_with_another_answer(struct plan *p) {
    return seccomp_but(p, SYS_mlockall, SECCOMP_RET_ERRNO | EACCES);
}
/* No answer of the sample differs: only the instructions tell. */
static bool seccomp_with_one_call_less(struct plan *p) {
    return seccomp_but(p, SYS_getrusage, SECCOMP_RET_ERRNO | EPERM);
}
static bool capture_more(struct plan *p) { return p->output_bytes++ > 0; }
static bool capture_without_a_kill(struct plan *p) {
    p->output_kills = !p->output_kills;
    return true;
}

static const struct weakness {
    const char *name;
    enum control_id control;
    bool (*weaken)(struct plan *); /* false: there is no such thing on this host */
} weaknesses[] = {
    {"a page less of memory", CTL_MEMORY, memory_a_page_more},
    {"swap", CTL_MEMORY, memory_with_swap},
    {"no kill of the group", CTL_MEMORY, memory_without_group_kill},
    {"outside its v1 cgroups", CTL_MEMORY, memory_not_joined},
    {"a larger quota", CTL_CPU, cpu_a_little_more},
    {"another period", CTL_CPU, cpu_in_other_periods},
    {"one process more", CTL_PIDS, pids_one_more},
    {"processes without limit", CTL_PIDS, pids_unlimited},
    {"a millisecond more", CTL_DEADLINE, deadline_later},
    {"no deadline", CTL_DEADLINE, deadline_none},
    {"a millisecond more of CPU", CTL_DEADLINE, cpu_time_later},
    {"no RLIMIT_CPU", CTL_DEADLINE, cpu_time_without_backstop},
    {"nested user namespaces", CTL_USER, user_namespaces_below},
    {"mayfly's arguments in init", CTL_PID, pid_keeps_the_hosts_memory},
    {"the host's ipc namespace", CTL_IPC, ipc_shared},
    {"the host's uts namespace", CTL_UTS, uts_shared},
    {"the host's name", CTL_UTS, uts_with_the_hosts_name},
    {"the host's cgroup namespace", CTL_CGROUPNS, cgroupns_shared},
    {"the host's network", CTL_NET, net_shared},
    {"a loopback that is down", CTL_NET, net_without_loopback},
    {"a writable root", CTL_MOUNT, mount_writable},
    {"a root with setuid", CTL_MOUNT, mount_with_setuid},
    {"a root with devices", CTL_MOUNT, mount_with_devices},
    {"the host's root", CTL_MOUNT, mount_without_pivot},
    {"one mount more", CTL_MOUNT, mount_one_more},
    {"a writable /proc", CTL_PROC, proc_writable},
    {"a /proc with setuid", CTL_PROC, proc_with_suid},
    {"a /proc with all processes", CTL_PROC, proc_with_processes},
    {"one mask less", CTL_PROC, proc_one_mask_less},
    {"a writable /dev", CTL_DEV, dev_writable},
    {"another device", CTL_DEV, dev_with_another_device},
    {"a larger /dev", CTL_DEV, dev_larger},
    {"an executable /tmp", CTL_TMP, tmp_executable},
    {"an executable home", CTL_TMP, home_executable},
    {"/dev/shm with devices", CTL_TMP, shm_with_devices},
    {"a page more of /tmp", CTL_TMP, tmp_a_page_larger},
    {"an inode more", CTL_TMP, tmp_with_more_inodes},
    {"no sticky bit", CTL_TMP, tmp_without_sticky_bit},
    {"a writable bind", CTL_BINDS, bind_writable},
    {"a bind with setuid", CTL_BINDS, bind_with_setuid},
    {"init's session", CTL_SESSION, session_of_init},
    {"another umask", CTL_SESSION, session_with_a_mask},
    {"another number of files", CTL_RLIMITS, rlimits_one_file_less},
    {"core dumps", CTL_RLIMITS, rlimits_with_core},
    {"another stack", CTL_RLIMITS, rlimits_without_stack},
    {"no limit of signals", CTL_RLIMITS, rlimits_without_sigpending},
    {"a secret", CTL_ENV, env_with_a_secret},
    {"a variable less", CTL_ENV, env_with_one_less},
    {"mayfly's descriptors", CTL_FDS, fds_all},
    {"one descriptor more", CTL_FDS, fds_one_more},
    {"the box's root", CTL_IDENTITY, identity_of_root},
    {"root's group", CTL_IDENTITY, identity_with_another_group},
    {"a full bounding set", CTL_CAPS, caps_bounding_set},
    {"one capability in the bounding set", CTL_CAPS, caps_one_kept},
    {"init's capabilities", CTL_CAPS, caps_of_root_kept},
    {"new privileges", CTL_NONEWPRIVS, new_privs},
    {"no Landlock", CTL_LANDLOCK, landlock_none},
    {"Landlock of ABI 2", CTL_LANDLOCK, landlock_of_an_older_abi},
    {"Landlock without scopes", CTL_LANDLOCK, landlock_without_scopes},
    {"no filter", CTL_SECCOMP, seccomp_none},
    {"one call more", CTL_SECCOMP, seccomp_with_one_call_more},
    {"another answer", CTL_SECCOMP, seccomp_with_another_answer},
    {"one call less", CTL_SECCOMP, seccomp_with_one_call_less},
    {"a byte more of output", CTL_CAPTURE, capture_more},
    {"another end at the limit", CTL_CAPTURE, capture_without_a_kill},
};

/* ------------------------------------------------------------------ */

static struct policy *attest_policy(void) {
    const char *const argv[] = {"true", NULL};
    struct err err = {0};
    struct policy *p = policy_new();

    assert_non_null(p);
    if (policy_set(p, "rootfs", live_env("MAYFLY_ROOTFS"), &err) < 0 ||
        policy_set(p, "attest", "true", &err) < 0 ||
        policy_set(p, "volume", "/etc:/tmp/etc", &err) < 0 ||
        policy_set_argv(p, argv, NULL, &err) < 0)
        fail_msg("%s", err.message);
    if (live_has_cgroups() && policy_set(p, "cpu-time", "5s", &err) < 0)
        fail_msg("%s", err.message);
    if (!live_has_cgroups() && policy_set(p, "limits", "best-effort", &err) < 0)
        fail_msg("%s", err.message);
    return p;
}

static struct plan *plan_of(const struct policy *policy) {
    struct plan_image image = {0};
    struct plan *plan = NULL;
    struct err err = {0};

    if (image_look(policy, &image, &err) < 0 ||
        plan_make(policy, host_facts(), &image, &plan, &err) < 0)
        fail_msg("%s", err.message);
    return plan;
}

/* Builds what `built` says and asks whether it is what `wanted` says. `blind`: the filter's instructions are not
 * shown, as to a user. Returns an error, or 1 where they were shown, 0 where not. */
static int check(const struct plan *built, const struct plan *wanted, bool blind, struct err *err) {
    bool shown = false;
    struct mayfly_result *result = NULL;
    struct evidence_host host;
    struct view view;
    struct box *box = NULL;

    if (report_new(wanted, &result, err) < 0)
        return err->code;
    int r = box_open(built, &box, err);
    if (r == 0) {
        evidence_view(box, wanted, &host, &view);
        shown = view.filter != NULL;
        if (blind)
            view.filter = NULL;
        r = report_controls(result, wanted, &view, err);
        evidence_host_done(&host);
    }
    box_close(box);
    mayfly_result_free(result);
    return r < 0 ? r : shown;
}

static void what_was_wanted_is_in_force(void **state) {
    struct policy *policy = attest_policy();
    struct plan *plan = plan_of(policy);
    struct err err = {0};

    (void)state;
    if (check(plan, plan, false, &err) < 0 || check(plan, plan, true, &err) < 0)
        fail_msg("%s", err.message);
    plan_free(plan);
    policy_free(policy);
}

static bool refused_by(const struct err *err, enum control_id control) {
    return err->code == -ENOTRECOVERABLE && strcmp(err->control, control_id_name(control)) == 0;
}

/* One at a time, each is refused by its control; every control has at least one that was tried here or a reason. */
static void what_is_weaker_than_wanted_is_refused_by_its_control(void **state) {
    struct policy *policy = attest_policy();
    struct plan *wanted = plan_of(policy);
    int tried[CTL__N] = {0}, wrong = 0;
    struct err none = {0};
    bool shown = check(wanted, wanted, false, &none) == 1;

    (void)state;
    if (!shown)
        print_message("this kernel, or being no root, keeps filters to itself: seen by effect\n");
    for (size_t i = 0; i < sizeof(weaknesses) / sizeof(weaknesses[0]); i++) {
        const struct weakness *w = &weaknesses[i];
        struct plan *plan = plan_of(policy);
        struct err err = {0};

        bool hidden = w->weaken == seccomp_with_one_call_less && !shown;
        if (wanted->covered[w->control] || hidden || !w->weaken(plan)) {
            plan_free(plan);
            continue;
        }
        tried[w->control]++;
        bool filter = w->control == CTL_SECCOMP && w->weaken != seccomp_with_one_call_less;
        if (check(plan, wanted, false, &err) >= 0 || !refused_by(&err, w->control)) {
            print_message("%s: %s\n", w->name, err.code ? err.message : "not refused");
            wrong++;
        }
        err = (struct err){0};
        if (filter && (check(plan, wanted, true, &err) >= 0 || !refused_by(&err, w->control))) {
            print_message("%s, seen by its effect: %s\n", w->name,
                          err.code ? err.message : "not refused");
            wrong++;
        }
        plan_free(plan);
    }
    for (int i = 0; i < CTL__N; i++)
        if (!tried[i] && !wanted->covered[i] && !(i == CTL_IDENTITY && !wanted->host->privileged)) {
            print_message("%s: nothing was tried\n", control_id_name((enum control_id)i));
            wrong++;
        }
    assert_int_equal(wrong, 0);
    plan_free(wanted);
    policy_free(policy);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_wanted_is_in_force),
        cmocka_unit_test(what_is_weaker_than_wanted_is_refused_by_its_control),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
