/*
 * test_seccomp.c: what the filters say, call by call, asked through the interpreter.
 *
 * Three views of the default filter: the reviewed list (tests/golden/seccomp_default.txt), the profile
 * it was made from (a second evaluation of the rules, independent of libseccomp), and the intentions
 * (which call with which arguments must never pass). MAYFLY_UPDATE_GOLDEN=1 writes the list anew; read
 * the difference before you commit it. Run from the top of the source.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "control/control.h"
#include "control/seccomp_compile.h"
#include "linux/bpf.h"
#include "linux/procfs.h"
#include "profile_model.h"

#include "base/banned.h"

#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#define FOREIGN AUDIT_ARCH_I386
#elif defined(__aarch64__)
#define NATIVE AUDIT_ARCH_AARCH64
#define FOREIGN AUDIT_ARCH_ARM
#endif

enum { LAST = 600 };
#define ERRNO(e) (SECCOMP_RET_ERRNO | (uint32_t)(e))
#define PROFILE "src/control/seccomp_default.json"
#define PACKAGED "/usr/share/containers/seccomp.json"
#define HIGH_BITS UINT64_C(0xdeadbeef00000000)

/* ------------------------------------------------------------------ asking */

static uint32_t ask_arch(const struct filter *f, uint32_t arch, int nr, const uint64_t args[6]) {
    struct seccomp_data call = {.nr = nr, .arch = arch};

    memcpy(call.args, args, sizeof(call.args));
    uint32_t answer = bpf_run(f->code, f->len, &call);
    /* What is notified is answered by the supervisor: this is what the code sees. */
    return answer == SECCOMP_RET_USER_NOTIF && seccomp_is_native(&call) ? ERRNO(EPERM) : answer;
}

#define ASK(filter, nr, ...) ask_arch(filter, NATIVE, (int)(nr), (const uint64_t[6]){__VA_ARGS__})

static const char *words(uint32_t answer, char *text, size_t size) {
    if ((answer & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO)
        return errno_name((int)(answer & SECCOMP_RET_DATA));
    if (answer == SECCOMP_RET_ALLOW)
        return "allow";
    (void)snprintf(text, size, "0x%x", answer);
    return text;
}

static void expect(uint32_t got, uint32_t want, const char *what) {
    char a[16], b[16];

    if (got != want)
        fail_msg("%s: %s, not %s", what, words(got, a, sizeof(a)), words(want, b, sizeof(b)));
}
#define EXPECT(want, filter, nr, ...)                                                              \
    expect(ASK(filter, nr, __VA_ARGS__), want, #nr " " #__VA_ARGS__)

/* The control's plan under a profile (NULL: the default), and the filter of its row. */
struct planned {
    struct policy *policy;
    struct host *host;
    struct plan *plan;
    const struct filter *filter;
};

static int plan_with(struct planned *p, const char *path, struct err *err) {
    const struct control *control = control_find("seccomp");

    *p = (struct planned){.policy = policy_new(), .host = calloc(1, sizeof(*p->host))};
    assert_non_null(control);
    assert_non_null(p->policy);
    assert_non_null(p->host);
    p->policy->seccomp_profile = path;
    p->host->kernel = KERNEL(6, 1);
    p->host->seccomp_filter = true;
    p->plan = plan_alloc(p->policy, p->host);
    assert_non_null(p->plan);
    int r = control->plan(p->policy, p->host, p->plan, err);
    if (r < 0)
        return r;
    assert_int_equal(p->plan->n_ops, 1);
    assert_int_equal(p->plan->ops[0].kind, OP_SECCOMP);
    assert_int_equal(p->plan->ops[0].stage, STAGE_SEAL);
    p->filter = p->plan->ops[0].data;
    return 0;
}

static void planned_done(struct planned *p) {
    plan_free(p->plan);
    policy_free(p->policy);
    free(p->host);
}

static int set_up(void **state) {
    struct planned *p = malloc(sizeof(*p));
    struct err err = {0};

    assert_non_null(p);
    if (plan_with(p, NULL, &err) < 0)
        fail_msg("%s", err.message);
    *state = p;
    return 0;
}

static int tear_down(void **state) {
    planned_done(*state);
    free(*state);
    return 0;
}

static const struct filter *default_filter(void **state) {
    return ((struct planned *)*state)->filter;
}

/* ------------------------------------------------------------------ the rules, evaluated once more */

static struct profile read_profile(const char *path, unsigned kernel) {
    struct profile profile = {0};
    struct err err = {0};
    char *text = NULL;
    size_t len = 0;

    if (file_read_all_at(AT_FDCWD, path, 4 << 20, &text, &len) < 0)
        fail_msg("cannot read %s; run from the top of the source", path);
    if (profile_from_json(text, len, seccomp_arch(), kernel, &profile, &err) < 0)
        fail_msg("%s: %s", path, err.message);
    free(text);
    return profile;
}

static bool rule_names(const struct profile_rule *rule, const char *name) {
    for (const char *const *n = rule->names; *n; n++)
        if (strcmp(*n, name) == 0)
            return true;
    return false;
}

/* Whether the profile's rules allow for this answer: it is a matching rule's, or the default where none
 * matches. (Where several match, any of theirs.) */
static bool explained(const struct profile *p, const char *name, const uint64_t args[6],
                      uint32_t got) {
    bool matched = false;

    for (int i = 0; name && i < p->n_rules; i++) {
        const struct profile_rule *rule = &p->rules[i];
        if (!rule_names(rule, name) || !model_rule_matches(rule, args))
            continue;
        matched = true;
        if (got == model_answer(rule->action, rule->error))
            return true;
    }
    return !matched && got == model_answer(p->default_action, p->default_error);
}

/* Values of an argument at which the rules for `name` could change their mind. */
struct values {
    uint64_t v[1024];
    size_t n;
};

static void add_value(struct values *values, uint64_t v) {
    for (size_t i = 0; i < values->n; i++)
        if (values->v[i] == v)
            return;
    assert_true(values->n < ARRAY_LEN(values->v));
    values->v[values->n++] = v;
}

static void values_of(const struct profile *p, const char *name, unsigned index,
                      struct values *ret) {
    ret->n = 0;
    add_value(ret, 0);
    for (int i = 0; name && i < p->n_rules; i++) {
        const struct profile_rule *rule = &p->rules[i];
        for (int k = 0; k < rule->n_args && rule_names(rule, name); k++) {
            const struct profile_arg *a = &rule->args[k];
            bool masked = a->op == PROFILE_MASKED_EQ;
            uint64_t x = masked ? a->value_two : a->value;
            if (a->index != index)
                continue;
            add_value(ret, x);
            add_value(ret, x + 1);
            add_value(ret, x - 1);
            add_value(ret, x | HIGH_BITS);
            add_value(ret, masked ? x | ~a->value : x ^ 0x100);
            add_value(ret, masked ? x ^ a->value : ~x);
        }
    }
    add_value(ret, UINT64_MAX);
}

/* Every combination of such values: 0 where one answer fits all, else 1; *ret_answer is the last one.
 * Fails where an answer is not explained by the rules. */
static bool sweep(const struct filter *f, const struct profile *p, int nr, const char *name,
                  uint32_t *ret_answer) {
    static struct values values[6];
    uint64_t args[6];
    size_t at[6] = {0};
    bool varies = false, first = true;
    char text[16];

    for (unsigned i = 0; i < 6; i++)
        values_of(p, name, i, &values[i]);
    for (;;) {
        for (int i = 0; i < 6; i++)
            args[i] = values[i].v[at[i]];
        uint32_t got = ask_arch(f, NATIVE, nr, args);
        if (!explained(p, name, args, got))
            fail_msg("%s (%d) with %#llx, %#llx, %#llx: %s is not what the profile says",
                     name ? name : "?", nr, (unsigned long long)args[0],
                     (unsigned long long)args[1], (unsigned long long)args[2],
                     words(got, text, sizeof(text)));
        varies |= !first && got != *ret_answer;
        first = false;
        *ret_answer = got;
        int i = 0;
        while (i < 6 && ++at[i] == values[i].n)
            at[i++] = 0;
        if (i == 6)
            return varies;
    }
}

static char *name_of(int nr) { return seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, nr); }

/* ------------------------------------------------------------------ the default filter */

static void every_number_is_answered_as_the_profile_says(void **state) {
    struct profile p = read_profile(PROFILE, ~0u);
    uint32_t answer = 0;

    for (int nr = 0; nr <= LAST; nr++) {
        char *name = name_of(nr);
        (void)sweep(default_filter(state), &p, nr, name, &answer);
        free(name);
    }
    arena_done(&p.arena);
}

/* Up to the last call that the oldest libseccomp we build with knows; later ones depend on its version. */
static void the_list_is_the_reviewed_one(void **state) {
#if defined(__x86_64__)
    const char *dir = getenv("MAYFLY_GOLDEN");
    struct profile p = read_profile(PROFILE, ~0u);
    struct buf list = {0};
    char path[512], other[16], *want = NULL;
    uint32_t answer = 0;

    for (int nr = 0; nr <= 450; nr++) {
        char *name = name_of(nr);
        bool varies = sweep(default_filter(state), &p, nr, name, &answer);
        if (name)
            buf_printf(&list, "%s %s\n", name,
                       varies ? "args" : words(answer, other, sizeof(other)));
        free(name);
    }
    arena_done(&p.arena);
    (void)snprintf(path, sizeof(path), "%s/seccomp_default.txt", dir ? dir : "tests/golden");
    if (getenv("MAYFLY_UPDATE_GOLDEN")) {
        FILE *f = fopen(path, "we");
        assert_non_null(f);
        (void)fputs(list.data, f);
        assert_int_equal(fclose(f), 0);
    } else if (file_read_all_at(AT_FDCWD, path, 1 << 20, &want, NULL) < 0) {
        fail_msg("%s is missing; MAYFLY_UPDATE_GOLDEN=1 makes it", path);
    } else if (strcmp(want, list.data) != 0) {
        fail_msg("%s differs from the filter; see `MAYFLY_UPDATE_GOLDEN=1 make unit` and git diff",
                 path);
    }
    free(want);
    buf_done(&list);
#else
    (void)state;
    print_message("SKIPPED: the reviewed list is of x86-64\n");
    skip();
#endif
}

static void calls_that_nobody_knows_do_not_exist(void **state) {
    static const int unknown[] = {400, 500, 600, 9999, 0x3fffffff, -1};
    const struct filter *f = default_filter(state);

    for (size_t i = 0; i < ARRAY_LEN(unknown); i++)
        EXPECT(ERRNO(ENOSYS), f, unknown[i], 0);
    EXPECT(ERRNO(ENOSYS), f, SYS_clone3, 0);
    EXPECT(ERRNO(ENOSYS), f, SYS_execveat, 0);
}

static void foreign_architectures_are_notified_whatever_they_call(void **state) {
    static const uint32_t foreign[] = {FOREIGN, AUDIT_ARCH_S390X, AUDIT_ARCH_RISCV64,
                                       0,       NATIVE ^ 1,       UINT32_MAX};
    static const uint64_t none[6];
    const struct filter *f = default_filter(state);

    assert_true(f->notify);
    for (size_t i = 0; i < ARRAY_LEN(foreign); i++)
        for (int nr = -1; nr <= LAST; nr++)
            expect(ask_arch(f, foreign[i], nr, none), SECCOMP_RET_USER_NOTIF, "foreign");
}

static void x32_is_foreign(void **state) {
#if defined(__x86_64__)
    const struct filter *f = default_filter(state);

    for (int nr = 0; nr <= LAST; nr++)
        EXPECT(SECCOMP_RET_USER_NOTIF, f, nr | 0x40000000, 0);
    EXPECT(SECCOMP_RET_USER_NOTIF, f, 0x7fffffff, 0);
    EXPECT(SECCOMP_RET_USER_NOTIF, f, -2, 0);
#else
    (void)state;
    print_message("SKIPPED: only x86-64 has x32\n");
    skip();
#endif
}

/* A notified call blocks until the supervisor ends the run: no native one may. */
static void no_native_call_is_notified_or_killed(void **state) {
    const struct filter *f = default_filter(state);

    for (int nr = 0; nr <= LAST; nr++) {
        uint32_t got = ASK(f, nr, 0) & SECCOMP_RET_ACTION_FULL;
        if (got != SECCOMP_RET_ALLOW && got != SECCOMP_RET_ERRNO)
            fail_msg("call %d: 0x%x", nr, got);
    }
}

static void sockets_are_local_or_ip_and_never_raw(void **state) {
    const struct filter *f = default_filter(state);

    for (uint64_t family = 0; family <= 256; family++) {
        bool ip = family == AF_INET || family == AF_INET6;
        for (uint64_t type = 0; type < 16; type++) {
            static const uint64_t flags[] = {0, SOCK_CLOEXEC, SOCK_CLOEXEC | SOCK_NONBLOCK};
            bool pass = (type == SOCK_STREAM || type == SOCK_DGRAM)
                            ? ip || family == AF_UNIX
                            : type == SOCK_SEQPACKET && family == AF_UNIX;
            for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
                uint32_t got = ASK(f, SYS_socket, family, type | flags[i], 0);
                if ((got == SECCOMP_RET_ALLOW) != pass)
                    fail_msg("socket(%llu, %llu)", (unsigned long long)family,
                             (unsigned long long)type);
                /* The kernel reads 32 bits. */
                got = ASK(f, SYS_socket, family | HIGH_BITS, (type | flags[i]) | HIGH_BITS, 0);
                if (got == SECCOMP_RET_ALLOW && !pass)
                    fail_msg("socket(%llu, %llu) with high bits", (unsigned long long)family,
                             (unsigned long long)type);
            }
        }
        if (family != AF_UNIX && !ip) /* programs tell a missing family from a refusal */
            EXPECT(ERRNO(EPERM), f, SYS_socket, family, SOCK_DGRAM, 0);
        EXPECT(family == AF_UNIX ? SECCOMP_RET_ALLOW : ERRNO(ENOSYS), f, SYS_socketpair, family,
               SOCK_STREAM);
    }
    EXPECT(ERRNO(EPERM), f, SYS_socket, AF_INET, SOCK_RAW, 1);
    EXPECT(ERRNO(EPERM), f, SYS_socket, AF_INET6, SOCK_RAW | SOCK_CLOEXEC, 58);
}

/* SCTP, DCCP, MPTCP, UDP-Lite: a socket of such a protocol would load its module. */
static void of_the_internet_protocols_there_are_tcp_and_udp(void **state) {
    const struct filter *f = default_filter(state);
    const uint64_t families[] = {AF_INET, AF_INET6};

    for (size_t i = 0; i < ARRAY_LEN(families); i++)
        for (uint64_t protocol = 0; protocol < 1024; protocol++) {
            bool tcp = ASK(f, SYS_socket, families[i], SOCK_STREAM | SOCK_CLOEXEC, protocol) ==
                       SECCOMP_RET_ALLOW;
            bool udp = ASK(f, SYS_socket, families[i], SOCK_DGRAM, protocol) == SECCOMP_RET_ALLOW;
            if (tcp != (protocol == 0 || protocol == IPPROTO_TCP) ||
                udp != (protocol == 0 || protocol == IPPROTO_UDP))
                fail_msg("family %llu, protocol %llu", (unsigned long long)families[i],
                         (unsigned long long)protocol);
        }
    EXPECT(ERRNO(EPROTONOSUPPORT), f, SYS_socket, AF_INET, SOCK_STREAM, 132);
    EXPECT(ERRNO(EPROTONOSUPPORT), f, SYS_socket, AF_INET6, SOCK_STREAM, 262);
    EXPECT(ERRNO(EPROTONOSUPPORT), f, SYS_socket, AF_INET, SOCK_DGRAM, 136);
    assert_true(ASK(f, SYS_socket, AF_INET, SOCK_STREAM, 132 | HIGH_BITS) != SECCOMP_RET_ALLOW);
    EXPECT(SECCOMP_RET_ALLOW, f, SYS_socket, AF_UNIX, SOCK_STREAM, 0);
}

static void no_ioctl_types_into_a_terminal(void **state) {
    static const uint64_t requests[] = {0x5412 /* TIOCSTI */, 0x541c /* TIOCLINUX */,
                                        0x5423 /* TIOCSETD */, 0x540e /* TIOCSCTTY */};
    const struct filter *f = default_filter(state);

    for (size_t i = 0; i < ARRAY_LEN(requests); i++)
        for (int bit = 31; bit < 64; bit++)
            EXPECT(ERRNO(EPERM), f, SYS_ioctl, 0, requests[i] | (bit > 31 ? BIT(bit) : 0));
    EXPECT(SECCOMP_RET_ALLOW, f, SYS_ioctl, 0, 0x5401);     /* TCGETS: isatty */
    EXPECT(SECCOMP_RET_ALLOW, f, SYS_ioctl, 99, 0x5413);    /* TIOCGWINSZ */
    EXPECT(SECCOMP_RET_ALLOW, f, SYS_ioctl, 3, 0x40049409); /* FICLONE */
    EXPECT(SECCOMP_RET_ALLOW, f, SYS_ioctl, 3,
           0x5401 | HIGH_BITS);                     /* the same call to the kernel */
    EXPECT(ERRNO(ENOSYS), f, SYS_ioctl, 3, 0xae80); /* KVM_RUN */
}

static void no_clone_makes_a_namespace(void **state) {
    static const uint64_t spaces[] = {CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
                                      CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET};
    const uint64_t thread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                            CLONE_SYSVSEM | CLONE_SETTLS | CLONE_PARENT_SETTID |
                            CLONE_CHILD_CLEARTID;
    const struct filter *f = default_filter(state);

    for (unsigned set = 1; set < 1u << ARRAY_LEN(spaces); set++) {
        uint64_t flags = 17;
        for (size_t i = 0; i < ARRAY_LEN(spaces); i++)
            flags |= set & 1u << i ? spaces[i] : 0;
        EXPECT(ERRNO(EPERM), f, SYS_clone, flags);
        EXPECT(ERRNO(EPERM), f, SYS_clone, flags | HIGH_BITS);
        EXPECT(ERRNO(EPERM), f, SYS_clone, flags | thread);
    }
    EXPECT(SECCOMP_RET_ALLOW, f, SYS_clone, 17);
    EXPECT(SECCOMP_RET_ALLOW, f, SYS_clone, thread);
    EXPECT(SECCOMP_RET_ALLOW, f, SYS_clone, CLONE_VM | CLONE_VFORK | 17);
    EXPECT(SECCOMP_RET_ALLOW, f, SYS_clone, CLONE_PIDFD | CLONE_CHILD_SETTID | 17);
    EXPECT(ERRNO(EPERM), f, SYS_unshare, CLONE_NEWUSER);
    EXPECT(ERRNO(EPERM), f, SYS_unshare, 0x80); /* CLONE_NEWTIME */
    EXPECT(ERRNO(EPERM), f, SYS_setns, 3, 0);
}

/* Each is the only wall, or the second one, before something in cases of attack: none may depend on its arguments. */
static void what_is_knowingly_refused_is_eperm(void **state) {
    static const int refused[] = {
        SYS_mount,
        SYS_umount2,
        SYS_pivot_root,
        SYS_chroot,
        SYS_open_tree,
        SYS_move_mount,
        SYS_fsopen,
        SYS_fsconfig,
        SYS_fsmount,
        SYS_fspick,
        SYS_mount_setattr,
        SYS_ptrace,
        SYS_process_vm_readv,
        SYS_process_vm_writev,
        SYS_process_madvise,
        SYS_kcmp,
        SYS_pidfd_getfd,
        SYS_bpf,
        SYS_perf_event_open,
        SYS_userfaultfd,
        SYS_io_uring_setup,
        SYS_io_uring_enter,
        SYS_io_uring_register,
        SYS_add_key,
        SYS_keyctl,
        SYS_request_key,
        SYS_memfd_create,
        SYS_memfd_secret,
        SYS_name_to_handle_at,
        SYS_open_by_handle_at,
        SYS_init_module,
        SYS_finit_module,
        SYS_delete_module,
        SYS_kexec_load,
        SYS_reboot,
        SYS_swapon,
        SYS_swapoff,
        SYS_acct,
        SYS_quotactl,
        SYS_syslog,
        SYS_clock_settime,
        SYS_settimeofday,
        SYS_adjtimex,
        SYS_clock_adjtime,
        SYS_sethostname,
        SYS_setdomainname,
        SYS_sched_setattr,
        SYS_fanotify_init,
        SYS_fanotify_mark,
        SYS_vhangup,
#if defined(__x86_64__)
        SYS_kexec_file_load,
        SYS_iopl,
        SYS_ioperm,
        SYS_modify_ldt,
        SYS_uselib,
        SYS_ustat,
        SYS_sysfs,
#endif
    };
    const struct filter *f = default_filter(state);

    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        for (uint64_t v = 0; v < 64; v++) {
            char what[32];
            (void)snprintf(what, sizeof(what), "call %d", refused[i]);
            expect(ASK(f, refused[i], BIT(v), BIT(v), BIT(v), BIT(v), BIT(v), BIT(v)), ERRNO(EPERM),
                   what);
        }
    /* The one answer that both cp -a and Python's shutil pass over. */
    EXPECT(ERRNO(ENOTSUP), f, SYS_setxattr, 0);
    EXPECT(ERRNO(ENOTSUP), f, SYS_lsetxattr, 0);
    EXPECT(ERRNO(ENOTSUP), f, SYS_fsetxattr, 0);
}

static void nodes_are_files_fifos_and_sockets(void **state) {
    static const struct {
        uint64_t type;
        bool pass;
    } types[] = {{0, true},        {S_IFREG, true},  {S_IFIFO, true},  {S_IFSOCK, true},
                 {S_IFCHR, false}, {S_IFBLK, false}, {S_IFDIR, false}, {S_IFLNK, false}};
    const struct filter *f = default_filter(state);

    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        for (uint64_t mode = 0; mode < 010000; mode += 0111) {
            uint64_t m = types[i].type | mode;
            bool pass = types[i].pass && !(mode & 06000); /* nor setuid files */
            assert_int_equal(ASK(f, SYS_mknodat, 0, 0, m, 0x103) == SECCOMP_RET_ALLOW, pass);
            if (!types[i].pass)
                assert_int_not_equal(ASK(f, SYS_mknodat, 0, 0, m | HIGH_BITS, 0x103),
                                     SECCOMP_RET_ALLOW);
#ifdef SYS_mknod
            assert_int_equal(ASK(f, SYS_mknod, 0, m, 0x103) == SECCOMP_RET_ALLOW, pass);
#endif
        }
    EXPECT(ERRNO(EPERM), f, SYS_mknodat, 0, 0, S_IFCHR | 0666, 0x103);
    EXPECT(ERRNO(EPERM), f, SYS_mknodat, 0, 0, S_IFBLK | 0666, 0x103);
}

static void no_personality_can_be_had(void **state) {
    const struct filter *f = default_filter(state);

    EXPECT(ERRNO(EPERM), f, SYS_personality, 0);
    EXPECT(ERRNO(EPERM), f, SYS_personality, 0xffffffff);
    for (int bit = 0; bit < 64; bit++)
        EXPECT(ERRNO(EPERM), f, SYS_personality, BIT(bit));
}

static void no_other_scheduling_class_can_be_had(void **state) {
    const struct filter *f = default_filter(state);

    for (uint64_t policy = 0; policy < 16; policy++) {
        EXPECT(ERRNO(EPERM), f, SYS_sched_setscheduler, 0, policy, 0);
        EXPECT(ERRNO(EPERM), f, SYS_sched_setscheduler, 0, policy | HIGH_BITS, 0);
    }
    EXPECT(ERRNO(EPERM), f, SYS_sched_setparam, 0, 0);
    EXPECT(ERRNO(EPERM), f, SYS_sched_setattr, 0, 0, 0);
}

/* Whatever lies in the half of the register that the kernel does not read. */
#define EITHER(want, nr, a, b, c, d, e)                                                            \
    do {                                                                                           \
        EXPECT(want, f, nr, a, b, c, d, e);                                                        \
        EXPECT(want, f, nr, (a) | HIGH_BITS, (b) | HIGH_BITS, (c) | HIGH_BITS, d,                  \
               (e) | HIGH_BITS);                                                                   \
    } while (0)
#define PASSES SECCOMP_RET_ALLOW

static void fcntl_locks_and_duplicates_and_sends_no_signals(void **state) {
    static const uint64_t pass[] = {0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1030, 1031, 1032, 1034};
    static const uint64_t refuse[] = {8, 10, 15, 1024, 1026};
    const struct filter *f = default_filter(state);

    for (size_t i = 0; i < ARRAY_LEN(pass); i++)
        EITHER(PASSES, SYS_fcntl, 0, pass[i], 0, 0, 0);
    for (size_t i = 0; i < ARRAY_LEN(refuse); i++)
        EITHER(ERRNO(EPERM), SYS_fcntl, 0, refuse[i], 0, 0, 0);
    EITHER(ERRNO(ENOSYS), SYS_fcntl, 0, 1033, 0, 0, 0); /* F_ADD_SEALS: of memfds */
}

static void prctl_does_what_threads_and_supervisors_need(void **state) {
    static const uint64_t pass[] = {1,  2,  3,  4,  15, 16, 21, 23,
                                    29, 30, 36, 37, 38, 39, 40, 0x53564d41};
    static const uint64_t refuse[] = {22 /* SET_SECCOMP */, 35 /* SET_MM */, 47 /* CAP_AMBIENT */,
                                      67};
    static const uint64_t absent[] = {8 /* KEEPCAPS */,
                                      24 /* CAPBSET_DROP */,
                                      28 /* SECUREBITS */,
                                      33 /* MCE_KILL */,
                                      59 /* USER_DISPATCH */,
                                      62 /* SCHED_CORE */,
                                      0x59616d61 /* SET_PTRACER */,
                                      UINT32_MAX};
    const struct filter *f = default_filter(state);

    for (size_t i = 0; i < ARRAY_LEN(pass); i++)
        EITHER(PASSES, SYS_prctl, pass[i], 0, 0, 0, 0);
    for (size_t i = 0; i < ARRAY_LEN(refuse); i++)
        EITHER(ERRNO(EPERM), SYS_prctl, refuse[i], 0, 0, 0, 0);
    for (size_t i = 0; i < ARRAY_LEN(absent); i++)
        EITHER(ERRNO(ENOSYS), SYS_prctl, absent[i], 0, 0, 0, 0);
}

static void madvise_touches_no_memory_but_the_callers_own(void **state) {
    static const uint64_t refuse[] = {12 /* MERGEABLE */, 13, 20 /* COLD */, 21 /* PAGEOUT */};
    const struct filter *f = default_filter(state);

    for (uint64_t advice = 0; advice < 26; advice++) {
        bool named = false;
        for (size_t i = 0; i < ARRAY_LEN(refuse); i++)
            named |= advice == refuse[i];
        EITHER(named ? ERRNO(EINVAL) : PASSES, SYS_madvise, 0, 0, advice, 0, 0);
    }
    EITHER(ERRNO(EPERM), SYS_madvise, 0, 0, 100, 0, 0); /* HWPOISON */
    EITHER(ERRNO(EPERM), SYS_madvise, 0, 0, 101, 0, 0);
    EITHER(PASSES, SYS_madvise, 0, 0, 102, 0, 0); /* GUARD_INSTALL */
}

static void socket_options_attach_no_filter_and_no_protocol(void **state) {
    static const struct {
        uint64_t level, option;
        bool pass;
    } table[] = {
        {1, 2, true},     {1, 9, true},    {1, 20, true},   {1, 29, true},         {1, 26, false},
        {1, 27, false},   {1, 32, false},  {1, 36, false},  {1, 50, false},        {1, 51, false},
        {1, 52, false},   {6, 1, true},    {6, 4, true},    {6, 12, true},         {6, 18, true},
        {6, 13, false},   {6, 14, false},  {6, 19, false},  {6, 31, false},        {0, 1, true},
        {0, 8, true},     {0, 35, true},   {0, 4, false},   {0, 16, false},        {0, 64, false},
        {41, 20, true},   {41, 26, true},  {41, 50, true},  {41, 32, false},       {41, 64, false},
        {17, 100, false}, {132, 0, false}, {270, 1, false}, {UINT32_MAX, 2, false}};
    const struct filter *f = default_filter(state);

    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        for (int high = 0; high < 2; high++) {
            uint64_t h = high ? HIGH_BITS : 0;
            uint32_t got = ASK(f, SYS_setsockopt, 3, table[i].level | h, table[i].option | h, 0, 0);
            if ((got == SECCOMP_RET_ALLOW) != table[i].pass)
                fail_msg("setsockopt level %llu option %llu", (unsigned long long)table[i].level,
                         (unsigned long long)table[i].option);
        }
}

static void a_rename_leaves_no_device_node(void **state) {
    const struct filter *f = default_filter(state);

    for (uint64_t flags = 0; flags < 4; flags++)
        EITHER(PASSES, SYS_renameat2, 0, 0, 0, 0, flags);
    EITHER(ERRNO(EPERM), SYS_renameat2, 0, 0, 0, 0, 4);
    EITHER(ERRNO(EPERM), SYS_renameat2, 0, 0, 0, 0, 5);
}

/* Python's start, threads, processes, asyncio, copying and timing would not work without one of these. */
/* On a writable volume they would be the host's. */
static void setuid_and_setgid_bits_cannot_be_set(void **state) {
    const struct filter *f = default_filter(state);

    for (uint64_t bits = 0; bits < 8; bits++) {
        uint64_t mode = bits << 9 | 0755, high = mode | HIGH_BITS;
        uint32_t want = bits & 6 ? ERRNO(EPERM) : SECCOMP_RET_ALLOW;

        EXPECT(want, f, SYS_fchmodat, 0, 0, mode);
        EXPECT(want, f, SYS_fchmod, 0, mode);
        EXPECT(want, f, SYS_openat, 0, 0, O_CREAT | O_WRONLY, mode);
        EXPECT(want, f, SYS_openat, 0, 0, O_TMPFILE | O_RDWR, mode);
        EXPECT(want, f, SYS_openat, 0, 0, O_CREAT | O_WRONLY, high);
        /* What is not made has no mode, whatever lies in the register. */
        EXPECT(SECCOMP_RET_ALLOW, f, SYS_openat, 0, 0, O_RDONLY | O_DIRECTORY, mode);
#ifdef SYS_chmod
        EXPECT(want, f, SYS_chmod, 0, mode);
        EXPECT(want, f, SYS_creat, 0, mode);
        EXPECT(want, f, SYS_open, 0, O_CREAT, mode);
        EXPECT(SECCOMP_RET_ALLOW, f, SYS_open, 0, O_RDONLY, mode);
#endif
    }
    EXPECT(ERRNO(ENOSYS), f, SYS_openat2, 0, 0, 0, 24);
}

/* Else init's could be set, where it has the payload's host id. */
static void limits_of_another_process_can_only_be_asked_for(void **state) {
    const struct filter *f = default_filter(state);

    EXPECT(SECCOMP_RET_ALLOW, f, SYS_prlimit64, 0, 7, 0x1000, 0);
    EXPECT(SECCOMP_RET_ALLOW, f, SYS_prlimit64, 1, 7, 0, 0x1000);
    EXPECT(ERRNO(EPERM), f, SYS_prlimit64, 1, 0, 0x1000, 0);
    EXPECT(ERRNO(EPERM), f, SYS_prlimit64, 1 | HIGH_BITS, 0, 0x1000, 0);
}

static void what_programs_need_is_allowed(void **state) {
    static const int needed[] = {
        SYS_read,
        SYS_write,
        SYS_close,
        SYS_newfstatat,
        SYS_statx,
        SYS_lseek,
        SYS_mmap,
        SYS_mprotect,
        SYS_munmap,
        SYS_brk,
        SYS_mremap,
        SYS_rt_sigaction,
        SYS_rt_sigprocmask,
        SYS_rt_sigreturn,
        SYS_pread64,
        SYS_getdents64,
        SYS_getcwd,
        SYS_readlinkat,
        SYS_futex,
        SYS_set_robust_list,
        SYS_rseq,
        SYS_set_tid_address,
        SYS_execve,
        SYS_wait4,
        SYS_waitid,
        SYS_exit,
        SYS_exit_group,
        SYS_pipe2,
        SYS_dup3,
        SYS_ppoll,
        SYS_epoll_create1,
        SYS_epoll_ctl,
        SYS_epoll_pwait,
        SYS_eventfd2,
        SYS_getrandom,
        SYS_clock_gettime,
        SYS_clock_nanosleep,
        SYS_sched_yield,
        SYS_sched_getaffinity,
        SYS_sendfile,
        SYS_close_range,
        SYS_faccessat2,
        SYS_restart_syscall,
        SYS_sendmsg,
        SYS_recvmsg,
        SYS_accept4,
        SYS_shutdown,
        SYS_tgkill,
        SYS_setsid,
        SYS_uname,
        SYS_sysinfo,
        SYS_getrusage,
#if defined(__x86_64__)
        SYS_arch_prctl,
        SYS_fork,
        SYS_vfork,
        SYS_poll,
        SYS_select,
        SYS_dup2,
#endif
    };
    const struct filter *f = default_filter(state);

    for (size_t i = 0; i < ARRAY_LEN(needed); i++) {
        char what[32];
        (void)snprintf(what, sizeof(what), "call %d", needed[i]);
        expect(ASK(f, needed[i], UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
                   UINT64_MAX),
               SECCOMP_RET_ALLOW, what);
    }
}

static void every_refusal_says_why(void **state) {
    char *text = NULL, *at;
    size_t rules = 0, reasons = 0;

    (void)state;
    assert_int_equal(file_read_all_at(AT_FDCWD, PROFILE, 4 << 20, &text, NULL), 0);
    for (at = text; (at = strstr(at, "\"action\"")); at++)
        rules++;
    for (at = text; (at = strstr(at, "  {\"comment\": \"")); at++)
        reasons += at[15] != '"';
    free(text);
    assert_true(rules > 50);
    assert_int_equal(reasons, rules);
}

/* ------------------------------------------------------------------ profiles of the operator's */

static void write_profile(const char *text, char path[32]) {
    (void)str_copy(path, 32, "/tmp/mayfly-profile-XXXXXX");
    int fd = mkostemp(path, O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_full(fd, text, strlen(text)), 0);
    (void)close(fd);
}

static void with_profile(struct planned *p, const char *text) {
    struct err err = {0};
    char path[32];

    write_profile(text, path);
    int r = plan_with(p, path, &err);
    (void)unlink(path);
    if (r < 0) {
        fail_msg("%s", err.message);
        abort(); /* never reached, but fail_msg does not say so to an analyzer */
    }
}

static void profile_refused(const char *text, const char *why) {
    struct planned p;
    struct err err = {0};
    char path[32];

    write_profile(text, path);
    int r = plan_with(&p, path, &err);
    (void)unlink(path);
    planned_done(&p);
    if (r == 0)
        fail_msg("taken, although: %s", why);
    assert_int_equal(err.kind, ERR_USAGE);
    if (!strstr(err.message, why))
        fail_msg("\"%s\" does not say \"%s\"", err.message, why);
}

#define STARTS "\"read\", \"write\", \"close\", \"execve\", \"exit_group\""
#define ALL_OF(names) "{\"names\": [" names "], \"action\": \"SCMP_ACT_ALLOW\"}"
#define REFUSES(rules) "{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"syscalls\": [" rules "]}"

/* The constructs of Docker's own profile, each once. */
static const char docker_like[] =
    "{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"defaultErrnoRet\": 1,"
    " \"archMap\": [{\"architecture\": \"SCMP_ARCH_X86_64\","
    "  \"subArchitectures\": [\"SCMP_ARCH_X86\", \"SCMP_ARCH_X32\"]},"
    "  {\"architecture\": \"SCMP_ARCH_AARCH64\", \"subArchitectures\": [\"SCMP_ARCH_ARM\"]}],"
    " \"syscalls\": ["
    "  {\"names\": [" STARTS ", \"sendmsg\", \"fstat64\", \"socketcall\", \"set_tls\","
    "   \"a_call_of_the_future\", \"sigreturn\"], \"action\": \"SCMP_ACT_ALLOW\"},"
    "  {\"names\": [\"process_vm_readv\", \"ptrace\"], \"action\": \"SCMP_ACT_ALLOW\","
    "   \"includes\": {\"minKernel\": \"4.8\"}},"
    "  {\"names\": [\"kcmp\"], \"action\": \"SCMP_ACT_ALLOW\", \"includes\": {\"minKernel\": "
    "\"9.0\"}},"
    "  {\"names\": [\"socket\"], \"action\": \"SCMP_ACT_ALLOW\","
    "   \"args\": [{\"index\": 0, \"value\": 40, \"op\": \"SCMP_CMP_NE\"}]},"
    "  {\"names\": [\"personality\"], \"action\": \"SCMP_ACT_ALLOW\","
    "   \"args\": [{\"index\": 0, \"value\": 0, \"op\": \"SCMP_CMP_EQ\"}]},"
    "  {\"names\": [\"personality\"], \"action\": \"SCMP_ACT_ALLOW\","
    "   \"args\": [{\"index\": 0, \"value\": 4294967295, \"op\": \"SCMP_CMP_EQ\"}]},"
    "  {\"names\": [\"bpf\", \"clone\", \"mount\"], \"action\": \"SCMP_ACT_ALLOW\","
    "   \"includes\": {\"caps\": [\"CAP_SYS_ADMIN\"]}},"
    "  {\"names\": [\"clone\"], \"action\": \"SCMP_ACT_ALLOW\","
    "   \"args\": [{\"index\": 0, \"value\": 2114060288, \"op\": \"SCMP_CMP_MASKED_EQ\"}],"
    "   \"excludes\": {\"caps\": [\"CAP_SYS_ADMIN\"], \"arches\": [\"s390\", \"s390x\"]}},"
    "  {\"names\": [\"clone\"], \"action\": \"SCMP_ACT_ALLOW\","
    "   \"args\": [{\"index\": 1, \"value\": 2114060288, \"op\": \"SCMP_CMP_MASKED_EQ\"}],"
    "   \"comment\": \"there the arguments are swapped\","
    "   \"includes\": {\"arches\": [\"s390\", \"s390x\"]},"
    "   \"excludes\": {\"caps\": [\"CAP_SYS_ADMIN\"]}},"
    "  {\"names\": [\"clone3\"], \"action\": \"SCMP_ACT_ERRNO\", \"errnoRet\": 38,"
    "   \"excludes\": {\"caps\": [\"CAP_SYS_ADMIN\"]}}"
    " ]}";

static void dockers_constructs_mean_here_what_they_mean_there(void **state) {
    struct planned p;

    (void)state;
    with_profile(&p, docker_like);
    const struct filter *f = p.filter;
    EXPECT(SECCOMP_RET_ALLOW, f, SYS_read, 0);
    EXPECT(SECCOMP_RET_ALLOW, f, SYS_ptrace, 0);
    EXPECT(ERRNO(EPERM), f, SYS_kcmp, 0);
    EXPECT(ERRNO(EPERM), f, SYS_bpf, 0);
    EXPECT(ERRNO(EPERM), f, SYS_mount, 0);
    EXPECT(SECCOMP_RET_ALLOW, f, SYS_clone, 17);
    EXPECT(ERRNO(EPERM), f, SYS_clone, CLONE_NEWUSER | 17, 0);
    EXPECT(ERRNO(ENOSYS), f, SYS_clone3, 0);
    EXPECT(ERRNO(EPERM), f, SYS_socket, 40);
    EXPECT(SECCOMP_RET_ALLOW, f, SYS_socket, 16);
    EXPECT(SECCOMP_RET_ALLOW, f, SYS_personality, 0xffffffff);
    EXPECT(ERRNO(EPERM), f, SYS_personality, 0x40000);
    EXPECT(ERRNO(EPERM), f, 9999, 0);
    /* Its sub-architectures are not taken over. */
    assert_true(f->notify);
    expect(ask_arch(f, FOREIGN, 3, (const uint64_t[6]){0}), SECCOMP_RET_USER_NOTIF, "foreign");
    planned_done(&p);
}

/* $MAYFLY_TEST_PROFILE or the one that Debian's golang-github-containers-common installs. */
static void a_profile_of_the_wild_is_compiled_as_it_says(void **state) {
    const char *path = getenv("MAYFLY_TEST_PROFILE");
    struct planned p;
    struct err err = {0};
    uint32_t answer = 0;

    (void)state;
    if (!path)
        path = PACKAGED;
    if (access(path, R_OK) < 0) {
        print_message("SKIPPED: there is no %s\n", path);
        skip();
    }
    if (plan_with(&p, path, &err) < 0)
        fail_msg("%s: %s", path, err.message);
    struct profile profile = read_profile(path, KERNEL(6, 1));
    for (int nr = 0; nr <= LAST; nr++) {
        char *name = name_of(nr);
        (void)sweep(p.filter, &profile, nr, name, &answer);
        free(name);
    }
    arena_done(&profile.arena);
    planned_done(&p);
}

static void every_action_and_comparison_is_compiled(void **state) {
    struct planned p;
    static const char text[] = REFUSES(ALL_OF(
        STARTS ", \"sendmsg\"") ","
                                "{\"name\": \"getpid\", \"action\": \"SCMP_ACT_LOG\"},"
                                "{\"name\": \"getuid\", \"action\": \"SCMP_ACT_TRAP\"},"
                                "{\"name\": \"getgid\", \"action\": \"SCMP_ACT_KILL\"},"
                                "{\"name\": \"geteuid\", \"action\": \"SCMP_ACT_KILL_PROCESS\"},"
                                "{\"name\": \"kill\", \"action\": \"SCMP_ACT_ALLOW\", \"args\": ["
                                " {\"index\": 0, \"value\": 4294967296, \"op\": \"SCMP_CMP_GE\"},"
                                " {\"index\": 1, \"value\": 10, \"op\": \"SCMP_CMP_LT\"}]},"
                                "{\"name\": \"tkill\", \"action\": \"SCMP_ACT_ALLOW\", \"args\": ["
                                " {\"index\": 0, \"value\": 4294967296, \"op\": \"SCMP_CMP_LE\"},"
                                " {\"index\": 1, \"value\": 4294967306, \"op\": \"SCMP_CMP_GT\"}]},"
                                "{\"name\": \"dup3\", \"action\": \"SCMP_ACT_ERRNO\", "
                                "\"errnoRet\": 9, \"args\": ["
                                " {\"index\": 2, \"value\": 7, \"op\": \"SCMP_CMP_EQ\"},"
                                " {\"index\": 2, \"value\": 9, \"op\": \"SCMP_CMP_EQ\"}]}");
    char path[32];
    uint32_t answer = 0;

    (void)state;
    with_profile(&p, text);
    EXPECT(SECCOMP_RET_LOG, p.filter, SYS_getpid, 0);
    EXPECT(SECCOMP_RET_TRAP, p.filter, SYS_getuid, 0);
    EXPECT(SECCOMP_RET_KILL_THREAD, p.filter, SYS_getgid, 0);
    EXPECT(SECCOMP_RET_KILL_PROCESS, p.filter, SYS_geteuid, 0);
    EXPECT(ERRNO(9), p.filter, SYS_dup3, 0, 0, 7); /* the same argument twice: either will do */
    EXPECT(ERRNO(9), p.filter, SYS_dup3, 0, 0, 9);
    EXPECT(ERRNO(EPERM), p.filter, SYS_dup3, 0, 0, 8);
    write_profile(text, path);
    struct profile profile = read_profile(path, KERNEL(6, 1));
    (void)unlink(path);
    for (int nr = 0; nr <= LAST; nr++) {
        char *name = name_of(nr);
        (void)sweep(p.filter, &profile, nr, name, &answer);
        free(name);
    }
    arena_done(&profile.arena);
    planned_done(&p);
}

static void a_rule_may_be_given_twice(void **state) {
    struct planned p;

    (void)state;
    with_profile(&p, REFUSES(ALL_OF(STARTS) "," ALL_OF(STARTS ", \"sendmsg\"")));
    EXPECT(SECCOMP_RET_ALLOW, p.filter, SYS_read, 0);
    planned_done(&p);
}

static void without_sendmsg_foreign_calls_are_killed(void **state) {
    struct planned p;

    (void)state;
    with_profile(&p, REFUSES(ALL_OF(STARTS)));
    assert_false(p.filter->notify);
    expect(ask_arch(p.filter, FOREIGN, 3, (const uint64_t[6]){0}), SECCOMP_RET_KILL_PROCESS,
           "foreign");
#if defined(__x86_64__)
    EXPECT(SECCOMP_RET_KILL_PROCESS, p.filter, SYS_read | 0x40000000, 0);
#endif
    planned_done(&p);
}

static void a_profile_that_only_logs_or_allows_all_is_usable(void **state) {
    struct planned p;

    (void)state;
    with_profile(&p, "{\"defaultAction\": \"SCMP_ACT_LOG\"}");
    EXPECT(SECCOMP_RET_LOG, p.filter, SYS_read, 0);
    assert_true(p.filter->notify);
    planned_done(&p);
    with_profile(&p, "{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"syscalls\": ["
                     "{\"names\": [\"mount\"], \"action\": \"SCMP_ACT_ERRNO\"}]}");
    EXPECT(ERRNO(EPERM), p.filter, SYS_mount, 0);
    EXPECT(SECCOMP_RET_ALLOW, p.filter, 9999, 0);
    expect(ask_arch(p.filter, FOREIGN, 3, (const uint64_t[6]){0}), SECCOMP_RET_USER_NOTIF,
           "foreign");
    planned_done(&p);
}

static void a_profile_under_which_nothing_starts_is_refused(void **state) {
    (void)state;
    profile_refused(REFUSES(""), "refuses read");
    profile_refused(REFUSES(ALL_OF("\"read\", \"close\", \"execve\", \"exit_group\"")),
                    "refuses write");
    profile_refused(REFUSES(ALL_OF("\"read\", \"write\", \"close\", \"exit_group\"")),
                    "refuses execve");
    profile_refused(REFUSES(ALL_OF("\"read\", \"write\", \"execve\", \"exit_group\"")),
                    "refuses close");
    profile_refused(REFUSES(ALL_OF("\"read\", \"write\", \"execve\", \"close\"")),
                    "refuses exit_group");
}

static void a_profile_that_cannot_be_read_is_refused_by_name(void **state) {
    struct planned p;
    struct err err = {0};

    (void)state;
    assert_int_equal(plan_with(&p, "/nonexistent/profile.json", &err), -ENOENT);
    assert_int_equal(err.kind, ERR_USAGE);
    assert_non_null(strstr(err.message, "/nonexistent/profile.json"));
    planned_done(&p);
    profile_refused("{}", "defaultAction");
    profile_refused("{\"defaultAction\": \"SCMP_ACT_NOTIFY\"}", "NOTIFY");
}

static void a_filter_too_long_for_the_kernel_is_refused(void **state) {
    struct buf text = {0};

    (void)state;
    buf_puts(&text, "{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"syscalls\": [" ALL_OF(STARTS));
    for (int i = 0; i < 3000; i++) /* each its own two words of 64 bits */
        buf_printf(&text,
                   ",{\"name\": \"ioctl\", \"action\": \"SCMP_ACT_ALLOW\", \"args\": ["
                   "{\"index\": 1, \"value\": %lld, \"op\": \"SCMP_CMP_EQ\"}]}",
                   (1LL << 32) * i + 1000 + 2 * i);
    buf_puts(&text, "]}");
    profile_refused(text.data, "instructions");
    buf_done(&text);
}

/* ------------------------------------------------------------------ the rest of the control */

/* Compiles a rule under a limit of this process's, which takes it away from libseccomp too. */
static int compile_under(int resource, rlim_t limit, struct err *err) {
    static const char *const names[] = {"read", NULL};
    struct profile_rule rule = {.names = names, .action = PROFILE_ALLOW};
    const struct profile profile = {
        .default_action = PROFILE_ERRNO, .default_error = 1, .n_rules = 1, .rules = &rule};
    struct sock_filter *code = NULL;
    unsigned short len = 0;
    struct rlimit was, less;

    assert_int_equal(getrlimit((__rlimit_resource_t)resource, &was), 0);
    less = (struct rlimit){limit, was.rlim_max};
    assert_int_equal(setrlimit((__rlimit_resource_t)resource, &less), 0);
    int r = seccomp_compile(&profile, false, &code, &len, err);
    assert_int_equal(setrlimit((__rlimit_resource_t)resource, &was), 0);
    assert_null(code);
    return r;
}

static void limits_of_our_own_that_leave_no_room_for_a_filter_are_named(void **unused) {
    (void)unused;
    struct err err = {0};

    assert_int_equal(compile_under(RLIMIT_NOFILE, 3, &err), -EMFILE);
    if (!strstr(err.message, "memfd_create") || !strstr(err.message, "ulimit -n"))
        fail_msg("%s", err.message);
    err_clear(&err);
    assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    assert_true(compile_under(RLIMIT_FSIZE, 0, &err) < 0);
    assert_true(signal(SIGXFSZ, SIG_DFL) != SIG_ERR);
    assert_non_null(strstr(err.message, "compiling the seccomp filter"));
}

static void a_host_without_filters_is_refused(void **state) {
    const struct control *control = control_find("seccomp");
    struct planned *p = *state;
    struct probe why = {0};

    assert_int_equal(control->probe(p->policy, p->host, &why), PROBE_YES);
    p->host->seccomp_filter = false;
    assert_int_equal(control->probe(p->policy, p->host, &why), PROBE_NO);
    assert_non_null(strstr(why.why, "seccomp"));
    assert_non_null(strstr(why.remedy, "CONFIG_SECCOMP_FILTER"));
    p->host->seccomp_filter = true;
}

static bool in_force(const struct plan *plan, const char *status, char evidence[160]) {
    struct evidence *inside = calloc(1, sizeof(*inside));
    struct view view = {.inside = inside, .plan = plan};
    struct finding finding = {.in_force = false};

    assert_non_null(inside);
    (void)str_copy(inside->status, sizeof(inside->status), status);
    control_find("seccomp")->verify(&view, &finding);
    free(inside);
    (void)str_copy(evidence, 160, finding.evidence);
    return finding.in_force;
}

/* Under a filter of the test's own surroundings, the payload has to have one more. */
static void only_a_filter_that_was_added_counts(void **state) {
    char own[4096] = "", mode[16] = "", count[16] = "0", status[128], evidence[160];
    const struct planned *p = *state;
    long inherited = 0;

    assert_true(file_read_at(AT_FDCWD, "/proc/self/status", own, sizeof(own)) > 0);
    if (proc_field(own, "Seccomp", mode, sizeof(mode)) && strcmp(mode, "2") == 0 &&
        proc_field(own, "Seccomp_filters", count, sizeof(count)))
        inherited = strtol(count, NULL, 10);
    (void)snprintf(status, sizeof(status), "Seccomp:\t2\nSeccomp_filters:\t%ld\n", inherited + 1);
    assert_true(in_force(p->plan, status, evidence));
    assert_non_null(strstr(evidence, "Seccomp: 2"));
    (void)snprintf(status, sizeof(status), "Seccomp:\t2\nSeccomp_filters:\t%ld\n", inherited);
    assert_false(in_force(p->plan, status, evidence));
    assert_false(in_force(p->plan, "Seccomp:\t0\nSeccomp_filters:\t0\n", evidence));
    assert_false(in_force(p->plan, "Seccomp:\t1\nSeccomp_filters:\t9\n", evidence));
    assert_false(in_force(p->plan, "", evidence));
    assert_non_null(strstr(evidence, "not shown"));
}

static void the_description_counts_what_passes(void **state) {
    struct planned *p = *state;
    struct buf out = {0};
    int allowed = 0;
    char want[64];

    for (int nr = 0; nr < 600; nr++)
        allowed += ASK(p->filter, nr, 0) == SECCOMP_RET_ALLOW;
    control_find("seccomp")->describe(p->plan, &out);
    (void)snprintf(want, sizeof(want), "%d system calls pass", allowed);
    assert_non_null(out.data);
    if (!strstr(out.data, want))
        fail_msg("\"%s\" does not say \"%s\"", out.data, want);
    buf_done(&out);
}

#define OF_DEFAULT(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        OF_DEFAULT(every_number_is_answered_as_the_profile_says),
        OF_DEFAULT(the_list_is_the_reviewed_one),
        OF_DEFAULT(calls_that_nobody_knows_do_not_exist),
        OF_DEFAULT(foreign_architectures_are_notified_whatever_they_call),
        OF_DEFAULT(x32_is_foreign),
        OF_DEFAULT(no_native_call_is_notified_or_killed),
        OF_DEFAULT(sockets_are_local_or_ip_and_never_raw),
        OF_DEFAULT(of_the_internet_protocols_there_are_tcp_and_udp),
        OF_DEFAULT(no_ioctl_types_into_a_terminal),
        OF_DEFAULT(no_clone_makes_a_namespace),
        OF_DEFAULT(what_is_knowingly_refused_is_eperm),
        OF_DEFAULT(nodes_are_files_fifos_and_sockets),
        OF_DEFAULT(no_personality_can_be_had),
        OF_DEFAULT(no_other_scheduling_class_can_be_had),
        OF_DEFAULT(fcntl_locks_and_duplicates_and_sends_no_signals),
        OF_DEFAULT(prctl_does_what_threads_and_supervisors_need),
        OF_DEFAULT(madvise_touches_no_memory_but_the_callers_own),
        OF_DEFAULT(socket_options_attach_no_filter_and_no_protocol),
        OF_DEFAULT(a_rename_leaves_no_device_node),
        OF_DEFAULT(setuid_and_setgid_bits_cannot_be_set),
        OF_DEFAULT(limits_of_another_process_can_only_be_asked_for),
        OF_DEFAULT(what_programs_need_is_allowed),
        OF_DEFAULT(limits_of_our_own_that_leave_no_room_for_a_filter_are_named),
        OF_DEFAULT(a_host_without_filters_is_refused),
        OF_DEFAULT(the_description_counts_what_passes),
        cmocka_unit_test(every_refusal_says_why),
        cmocka_unit_test(dockers_constructs_mean_here_what_they_mean_there),
        cmocka_unit_test(a_profile_of_the_wild_is_compiled_as_it_says),
        cmocka_unit_test(every_action_and_comparison_is_compiled),
        cmocka_unit_test(a_rule_may_be_given_twice),
        cmocka_unit_test(without_sendmsg_foreign_calls_are_killed),
        cmocka_unit_test(a_profile_that_only_logs_or_allows_all_is_usable),
        cmocka_unit_test(a_profile_under_which_nothing_starts_is_refused),
        cmocka_unit_test(a_profile_that_cannot_be_read_is_refused_by_name),
        cmocka_unit_test(a_filter_too_long_for_the_kernel_is_refused),
        OF_DEFAULT(only_a_filter_that_was_added_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
