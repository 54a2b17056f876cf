/*
 * test_attest.c: --attest cannot be fooled. A box is built from a plan that lacks something, or has it a
 * little weaker, while the policy says that it is on: it must be refused, by the control concerned. And what
 * is planted as a leftover of a run must be counted in its certificate.
 */
#include "live_box.h"

#include <linux/mount.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/shm.h>
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
    for (size_t i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == OP_SESSION && p->ops[i].stage == STAGE_SEAL)
            return drop(p, &p->ops[i]);
    return false;
}
static bool session_of_the_caller(struct plan *p) {
    return session_of_init(p) && drop(p, row(p, CTL_SESSION, OP_SESSION, NULL));
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
    {"the caller's session", CTL_SESSION, session_of_the_caller},
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
    int r = box_open(built, NULL, &box, err);
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

        /* A slow host takes one for each control that asks it nothing of its own. */
        if (live_slow() > 1 && w->control > CTL_USER && tried[w->control]) {
            plan_free(plan);
            continue;
        }
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

/* ------------------------------------------------------------------ the certificate */

/* A parked box, and what a test has to know of it to leave something behind. */
struct left {
    struct live_box live;
    pid_t init;
    uint32_t uid;      /* host id of the payload's */
    char cgroup[1024]; /* a directory of the box's */
    char scratch[64];  /* on a tmpfs of the test's own */
    mayfly_result *result;
};

static pid_t only_child(void) {
    char path[64], text[64] = "";

    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)getpid(), (int)getpid());
    FILE *f = fopen(path, "re");
    if (f) {
        text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
        (void)fclose(f);
    }
    return (pid_t)strtol(text, NULL, 10);
}

static void find_cgroup(struct left *l) {
    const struct host *host = host_facts();

    for (int i = 0; i < host->cg.n && !l->cgroup[0]; i++) {
        DIR *dir = opendir(host->cg.hier[i].parent);
        const struct dirent *e;
        struct cg_owner owner;

        assert_non_null(dir);
        while ((e = readdir(dir)))
            if (cg_parse_name(e->d_name, &owner) && owner.pid == getpid() &&
                !strstr(e->d_name, "-0"))
                (void)snprintf(l->cgroup, sizeof(l->cgroup), "%s/%s", host->cg.hier[i].parent,
                               e->d_name);
        (void)closedir(dir);
    }
    assert_true(l->cgroup[0] != '\0');
}

static int open_box(void **state) {
    struct left *l = calloc(1, sizeof(*l));
    char path[64], text[256] = "";
    unsigned inside, outside;

    assert_non_null(l);
    *state = l;
    if (geteuid() != 0)
        return 0;
    l->live = live_open_sh("true", "attest", "true", NULL);
    l->init = only_child();
    assert_true(l->init > 0);
    (void)snprintf(path, sizeof(path), "/proc/%d/uid_map", (int)l->init);
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
    (void)fclose(f);
    assert_int_equal(sscanf(text, "%u %u", &inside, &outside), 2);
    l->uid = outside;
    find_cgroup(l);
    return 0;
}

static int close_box(void **state) {
    struct left *l = *state;

    if (l->result)
        mayfly_result_free(l->result);
    live_close(&l->live);
    free(l);
    return 0;
}

/* Needs a box that root made: what is planted takes its rights. */
static struct left *root_box(void **state) {
    if (geteuid() != 0)
        live_skip("root", "what is left behind has to be planted with root's rights");
    return *state;
}

static const struct mayfly_certificate *end_with_leftover(struct left *l, const char *what) {
    struct mayfly_error e = {0};
    bool said = false;

    live_start(&l->live, NULL);
    if (mayfly_wait(l->live.box, &l->result, &e) < 0)
        fail_msg("%s", e.message);
    live_expect(l->result, MAYFLY_EXITED, 0);
    assert_non_null(l->result->certificate);
    for (size_t i = 0; i < l->result->n_warnings; i++)
        said |= strstr(l->result->warnings[i], what) != NULL;
    if (!said)
        fail_msg("no warning speaks of %s", what);
    return l->result->certificate;
}

static pid_t helper(void (*work)(const struct left *), const struct left *l) {
    int ready[2];
    char c = 0;

    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        /* What a copy of this process has open would count as held. */
        (void)dup2(ready[1], 3);
        (void)syscall(SYS_close_range, 4, ~0u, 0);
        work(l);
        (void)!write(3, "x", 1);
        (void)close(3);
        (void)pause();
        _exit(0);
    }
    (void)close(ready[1]);
    assert_int_equal(read(ready[0], &c, 1), 1);
    (void)close(ready[0]);
    return pid;
}

static void end_helper(pid_t pid) {
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

static void assert_all_zero_but(const struct mayfly_certificate *c,
                                const struct mayfly_certificate *want) {
    if (memcmp(c, want, sizeof(*c)) != 0)
        fail_msg(
            "processes %llu cgroups %llu mounts %llu ipc %llu namespaces %llu bytes %llu fds %llu",
            (unsigned long long)c->processes, (unsigned long long)c->cgroups,
            (unsigned long long)c->mounts, (unsigned long long)c->ipc_objects,
            (unsigned long long)c->namespaces, (unsigned long long)c->temp_bytes,
            (unsigned long long)c->fds);
}

static void a_run_leaves_nothing_however_it_ends(void **state) {
    static const struct mayfly_certificate none;
    static const char *const codes[] = {
        "print(1)",
        "import os, time\nif os.fork(): time.sleep(0.01)\nelse: os.setsid(); time.sleep(99)",
        "import os; os.kill(os.getpid(), 9)",
        "while True: pass",
        "from multiprocessing.shared_memory import SharedMemory as S\nS('x', True, 9); 1/0",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        mayfly_result *r = live_python(codes[i], "attest", "true", "timeout",
                                       live_slow() > 1 ? "5s" : "500ms", NULL);
        assert_non_null(r->certificate);
        assert_all_zero_but(r->certificate, &none);
        for (size_t w = 0; w < r->n_warnings; w++)
            assert_null(strstr(r->warnings[w], "certificate"));
        mayfly_result_free(r);
    }
    mayfly_result *r = live_sh("true", NULL);
    assert_null(r->certificate);
    mayfly_result_free(r);
}

static void take_the_boxs_id(const struct left *l) {
    if (setresuid(l->uid, l->uid, l->uid) < 0)
        _exit(1);
}

static void a_process_that_is_left_is_counted(void **state) {
    struct left *l = root_box(state);
    pid_t pid = helper(take_the_boxs_id, l);

    assert_all_zero_but(end_with_leftover(l, "1 processes"),
                        &(struct mayfly_certificate){.processes = 1});
    end_helper(pid);
}

static void a_cgroup_that_is_left_is_counted(void **state) {
    struct left *l = root_box(state);

    /* A mount point cannot be removed. The mount is in a namespace of this test program's own. */
    if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("none", l->cgroup, "tmpfs", 0, NULL) < 0)
        live_skip("root", "nothing can be mounted on a cgroup here");
    const struct mayfly_certificate *c = end_with_leftover(l, "1 cgroups");
    assert_int_equal(umount(l->cgroup), 0);
    assert_int_equal(rmdir(l->cgroup), 0);
    assert_all_zero_but(c, &(struct mayfly_certificate){.cgroups = 1});
}

static void a_mounted_namespace_that_is_left_is_counted(void **state) {
    struct left *l = root_box(state);
    char source[64], target[] = "/tmp/mayfly-attest-XXXXXX";
    int fd = mkstemp(target);

    assert_true(fd >= 0);
    (void)close(fd);
    (void)snprintf(source, sizeof(source), "/proc/%d/ns/uts", (int)l->init);
    if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount(source, target, NULL, MS_BIND, NULL) < 0) {
        (void)unlink(target);
        live_skip("root", "nothing can be mounted here");
    }
    const struct mayfly_certificate *c = end_with_leftover(l, "1 mounts");
    assert_int_equal(umount(target), 0);
    assert_int_equal(unlink(target), 0);
    assert_all_zero_but(c, &(struct mayfly_certificate){.mounts = 1, .namespaces = 1});
}

static void hold_the_network(const struct left *l) {
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)l->init);
    if (open(path, O_RDONLY | O_CLOEXEC) < 0)
        _exit(1);
}

static void a_namespace_that_is_left_is_counted(void **state) {
    struct left *l = root_box(state);
    pid_t pid = helper(hold_the_network, l);

    assert_all_zero_but(end_with_leftover(l, "1 namespaces"),
                        &(struct mayfly_certificate){.namespaces = 1});
    end_helper(pid);
}

static void leave_shared_memory(const struct left *l) {
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%d/ns/ipc", (int)l->init);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || setns(fd, CLONE_NEWIPC) < 0 || shmget(IPC_PRIVATE, 4096, 0600) < 0)
        _exit(1);
}

static void an_ipc_object_in_a_namespace_that_lives_on_is_counted(void **state) {
    struct left *l = root_box(state);
    pid_t pid = helper(leave_shared_memory, l);

    assert_all_zero_but(end_with_leftover(l, "1 IPC objects"),
                        &(struct mayfly_certificate){.ipc_objects = 1, .namespaces = 1});
    end_helper(pid);
}

static void an_ipc_object_of_the_boxs_id_on_the_host_is_counted(void **state) {
    struct left *l = root_box(state);

    assert_int_equal(seteuid(l->uid), 0);
    int shared_id = shmget(IPC_PRIVATE, 4096, 0600);
    assert_int_equal(seteuid(0), 0);
    assert_true(shared_id >= 0);
    const struct mayfly_certificate *c = end_with_leftover(l, "1 IPC objects");
    assert_int_equal(shmctl(shared_id, IPC_RMID, NULL), 0);
    assert_all_zero_but(c, &(struct mayfly_certificate){.ipc_objects = 1});
}

static void a_temporary_file_that_is_left_is_counted(void **state) {
    struct left *l = root_box(state);
    char path[256];

    (void)snprintf(path, sizeof(path), "%s/test-%d", host_facts()->ids.lock_dir, (int)getpid());
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_int_equal(fputs("seven b", f) >= 0 && fclose(f) == 0, 1);
    const struct mayfly_certificate *c = end_with_leftover(l, "7 bytes");
    assert_int_equal(unlink(path), 0);
    assert_all_zero_but(c, &(struct mayfly_certificate){.temp_bytes = 7});
}

static void a_descriptor_that_is_left_is_counted(void **state) {
    struct left *l = root_box(state);
    char link[64];
    int copy = -1;

    for (int fd = 3; fd < 256 && copy < 0; fd++) {
        char path[64];
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        ssize_t n = readlink(path, link, sizeof(link) - 1);
        link[n > 0 ? n : 0] = '\0';
        if (strncmp(link, "pipe:", 5) == 0)
            copy = fcntl(fd, F_DUPFD_CLOEXEC, 256);
    }
    assert_true(copy >= 0);
    const struct mayfly_certificate *c = end_with_leftover(l, "1 descriptors");
    (void)close(copy);
    assert_all_zero_but(c, &(struct mayfly_certificate){.fds = 1});
}

#define WITH_BOX(test) cmocka_unit_test_setup_teardown(test, open_box, close_box)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_wanted_is_in_force),
        cmocka_unit_test(what_is_weaker_than_wanted_is_refused_by_its_control),
        cmocka_unit_test(a_run_leaves_nothing_however_it_ends),
        WITH_BOX(a_process_that_is_left_is_counted),
        WITH_BOX(a_cgroup_that_is_left_is_counted),
        WITH_BOX(a_mounted_namespace_that_is_left_is_counted),
        WITH_BOX(a_namespace_that_is_left_is_counted),
        WITH_BOX(an_ipc_object_in_a_namespace_that_lives_on_is_counted),
        WITH_BOX(an_ipc_object_of_the_boxs_id_on_the_host_is_counted),
        WITH_BOX(a_temporary_file_that_is_left_is_counted),
        WITH_BOX(a_descriptor_that_is_left_is_counted),
    };

    return cmocka_run_group_tests(tests, live_first_run, NULL);
}
