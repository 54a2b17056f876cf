/*
 * seccomp.c: which system calls the code may make at all.
 *
 * An allow-list: what it does not know does not exist (ENOSYS, so that programs
 * fall back), what it knowingly refuses is EPERM, and a call of a foreign
 * architecture ends the run. Everything that the kernel offers beyond files,
 * memory, processes, local sockets and time is attack surface; namespaces alone
 * leave it all open.
 *
 * The default filter is compiled when mayfly is built; a profile of the
 * operator's is compiled here, while planning.
 */
#include "control/all.h"
#include "control/seccomp_compile.h"
#include "seccomp_default.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/fd.h"
#include "linux/bpf.h"
#include "linux/ones.h"
#include "linux/procfs.h"

#include "base/banned.h"

static enum probe_answer probe(const struct policy *policy UNUSED, const struct host *host,
                               struct probe *why) {
    if (host->seccomp_filter)
        return PROBE_YES;
    (void)snprintf(why->why, sizeof(why->why), "this kernel has no seccomp filters");
    (void)snprintf(why->remedy, sizeof(why->remedy), "a kernel with CONFIG_SECCOMP_FILTER=y");
    return PROBE_NO;
}

/* As the code sees it: a refusal that is notified is answered with EPERM. */
static uint32_t answer(const struct filter *filter, int nr) {
    struct seccomp_data call = {.nr = nr, .arch = SECCOMP_NATIVE_ARCH};
    uint32_t a = bpf_run(filter->code, filter->len, &call);

    return a == SECCOMP_RET_USER_NOTIF ? SECCOMP_RET_ERRNO | EPERM : a;
}

/* LOG lets it through as well. */
static bool allows(const struct filter *filter, int nr) {
    uint32_t a = answer(filter, nr);

    return a == SECCOMP_RET_ALLOW || a == SECCOMP_RET_LOG;
}

/* After the filter is loaded the payload's process still has to report, wait and execute. */
static int check_usable(const struct filter *filter, const char *path, struct err *err) {
    static const struct {
        int nr;
        const char *name;
    } needed[] = {{SYS_read, "read"},
                  {SYS_write, "write"},
                  {SYS_execve, "execve"},
                  {SYS_close, "close"},
                  {SYS_exit_group, "exit_group"}};

    for (size_t i = 0; i < ARRAY_LEN(needed); i++)
        if (!allows(filter, needed[i].nr))
            return err_set(err, ERR_USAGE, -EINVAL, "seccomp", "allow it without conditions",
                           "seccomp profile %s: refuses %s, without which no command can start",
                           path, needed[i].name);
    return 0;
}

static int compile(const struct profile *profile, bool notify, struct plan *plan,
                   struct filter *filter, struct err *err) {
    struct sock_filter *code = NULL;
    unsigned short len = 0;
    int r = seccomp_compile(profile, notify, &code, &len, err);

    if (r < 0)
        return r;
    filter->code = arena_memdup(&plan->arena, code, len * sizeof(*code));
    filter->len = len;
    filter->notify = notify;
    free(code);
    return filter->code ? 0 : err_oom(err);
}

static int custom(const char *path, const struct host *host, struct plan *plan,
                  struct filter *filter, struct err *err) {
    struct profile profile = {0};
    char *text = NULL;
    size_t len = 0;
    int r = file_read_all_at(AT_FDCWD, path, 4 << 20, &text, &len);

    if (r < 0)
        return err_errno(err, ERR_USAGE, r, "seccomp", NULL, "seccomp profile %s", path);
    r = profile_from_json(text, len, seccomp_arch(), host->kernel, &profile, err);
    free(text);
    if (r < 0)
        return r;
    if (profile.default_action == PROFILE_ALLOW || profile.default_action == PROFILE_LOG)
        buf_puts(&plan->warnings, "seccomp: the profile's defaultAction allows, so it refuses only "
                                  "the calls that it names, "
                                  "and none that a newer kernel adds; a list of what is allowed, "
                                  "with SCMP_ACT_ERRNO for the rest, is "
                                  "safer\n");
    r = compile(&profile, true, plan, filter, err);
    /* The notification's descriptor is sent to the supervisor after the filter is loaded. */
    if (r == 0 && !allows(filter, SYS_sendmsg))
        r = compile(&profile, false, plan, filter, err);
    arena_done(&profile.arena);
    return r < 0 ? r : check_usable(filter, path, err);
}

/* What a call with arguments of all ones is answered. */
static uint32_t answer_to_ones(const struct filter *filter, int nr) {
    const uint64_t ones = UINT64_MAX;
    struct seccomp_data call = {
        .nr = nr, .arch = SECCOMP_NATIVE_ARCH, .args = {ones, ones, ones, ones, ones, ones}};

    return bpf_run(filter->code, filter->len, &call);
}

/* Attestation makes every call that the filter answers by itself, to see it answered. Should one get through, nothing has
 * happened: ones.h. */
static void choose_sample(struct filter *filter) {
    for (int nr = 0; nr < FILTER_SAMPLE; nr++)
        if (ones_do_nothing(nr) &&
            (answer_to_ones(filter, nr) & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO)
            filter->sample[nr / 64] |= BIT(nr % 64);
}

/* Where an image is made, netlink is answered as by a kernel that has none: then useradd and its like go on without the
 * audit log, while for EPERM they give up. What is let through stays the same. */
static int without_netlink(struct plan *plan, struct filter *filter, struct err *err) {
    const struct sock_filter head[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SECCOMP_NATIVE_ARCH, 0, 5),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)), /* low half */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
    };
    size_t len = ARRAY_LEN(head) + filter->len;
    struct sock_filter *code =
        len > BPF_MAXINSNS ? NULL : arena_alloc(&plan->arena, len * sizeof(*code));

    if (len > BPF_MAXINSNS)
        return 0; /* the profile is the operator's, and full */
    if (!code)
        return err_oom(err);
    memcpy(code, head, sizeof(head));
    memcpy(code + ARRAY_LEN(head), filter->code, filter->len * sizeof(*code));
    filter->code = code;
    filter->len = (unsigned short)len;
    return 0;
}

static int plan_seccomp(const struct policy *policy, const struct host *host, struct plan *plan,
                        struct err *err) {
    struct filter *filter = arena_alloc(&plan->arena, sizeof(*filter));
    int r = 0;

    if (!filter)
        return err_oom(err);
    if (policy->seccomp_profile)
        r = custom(policy->seccomp_profile, host, plan, filter, err);
    else
        *filter = (struct filter){
            .len = ARRAY_LEN(seccomp_default_code), .notify = true, .code = seccomp_default_code};
    if (r == 0 && policy->build)
        r = without_netlink(plan, filter, err);
    if (r < 0)
        return r;
    if (policy->attest)
        choose_sample(filter);
    plan_add(plan, (struct op){.stage = STAGE_SEAL,
                               .kind = OP_SECCOMP,
                               .control = CTL_SECCOMP,
                               .data = filter,
                               .why = "most of the kernel's calls are of no use to the code, and "
                                      "each is a way to a bug"});
    return 0;
}

/* -1: not shown (before Linux 5.9) */
static long filters_of(const char *status) {
    char value[16];

    return proc_field(status, "Seccomp_filters", value, sizeof(value)) ? strtol(value, NULL, 10)
                                                                       : -1;
}

static const struct filter *wanted_filter(const struct plan *plan) {
    for (size_t i = 0; i < plan->n_ops; i++)
        if (plan->ops[i].kind == OP_SECCOMP)
            return plan->ops[i].data;
    return NULL;
}

/* Where mayfly itself runs under a filter, as in a container, the mode is inherited and proves nothing:
 * then the payload must have more filters than we have. */
static bool is_filtered(const struct view *view, struct finding *finding) {
    char mode[16] = "not shown", own[4096] = "", own_mode[16] = "";
    long filters = filters_of(view->inside->status), inherited = 0;

    (void)proc_field(view->inside->status, "Seccomp", mode, sizeof(mode));
    if (file_read_at(AT_FDCWD, "/proc/thread-self/status", own, sizeof(own)) >= 0 &&
        proc_field(own, "Seccomp", own_mode, sizeof(own_mode)) && strcmp(own_mode, "2") == 0)
        inherited = filters_of(own);
    bool more = filters >= 0 ? filters > inherited : inherited == 0;
    finding_set(finding, strcmp(mode, "2") == 0 && more,
                "Seccomp: %s; Seccomp_filters: %ld, of which %ld inherited", mode, filters,
                inherited);
    return finding->in_force;
}

/* Each call of the sample was answered as the wanted filter answers it. Returns how many, or -1. */
static int answers(const struct view *view, const struct filter *wanted, struct finding *finding) {
    int n = 0;

    for (int nr = 0; nr < FILTER_SAMPLE; nr++) {
        if (!(wanted->sample[nr / 64] & BIT(nr % 64)))
            continue;
        int want = (int)(answer_to_ones(wanted, nr) & SECCOMP_RET_DATA);
        int found = view->inside->call[nr];
        if (found != want)
            return finding_set(finding, false, "system call %d: %s, not %s", nr,
                               found < 0    ? "its answer could not be had"
                               : found == 0 ? "it succeeded"
                                            : errno_words(-found),
                               errno_words(-want)),
                   -1;
        n++;
    }
    return n;
}

static void verify(const struct view *view, struct finding *finding) {
    const struct filter *wanted = wanted_filter(view->plan);
    size_t len = 0;

    if (!is_filtered(view, finding))
        return;
    if (!wanted)
        return finding_set(finding, false, "no filter was planned");
    if (view->filter &&
        (view->filter_len != wanted->len ||
         memcmp(view->filter, wanted->code, wanted->len * sizeof(wanted->code[0])) != 0))
        return finding_set(finding, false,
                           "the filter in the kernel, of %u instructions, is not ours",
                           view->filter_len);
    int n = answers(view, wanted, finding);
    if (n < 0)
        return;
    len = strlen(finding->evidence);
    (void)snprintf(finding->evidence + len, sizeof(finding->evidence) - len,
                   "; %s; %d calls refused when made",
                   view->filter ? "its instructions are ours" : "instructions not shown", n);
}

static void describe_filter(const struct filter *filter, struct buf *out) {
    int allowed = 0, refused = 0;

    for (int nr = 0; nr < 600; nr++) {
        allowed += allows(filter, nr);
        refused += answer(filter, nr) == (SECCOMP_RET_ERRNO | EPERM);
    }
    buf_printf(out,
               "with all arguments zero, %d system calls pass and %d are EPERM; foreign "
               "architectures %s",
               allowed, refused, filter->notify ? "end the run, named" : "are killed");
}

static void describe(const struct plan *plan, struct buf *out) {
    for (size_t i = 0; i < plan->n_ops; i++)
        if (plan->ops[i].kind == OP_SECCOMP)
            describe_filter(plan->ops[i].data, out);
}

const struct control control_seccomp = {
    .id = CTL_SECCOMP,
    .summary = "an allow-list of system calls; foreign architectures end the run",
    .source = "seccomp(2), Documentation/userspace-api/seccomp_filter.rst",
    .without =
        "With every namespace and no capability the code still reaches AF_VSOCK, AF_NETLINK, "
        "nested user namespaces, keyrings, io_uring, userfaultfd and memfds it can execute.",
    .probe = probe,
    .plan = plan_seccomp,
    .verify = verify,
    .describe = describe,
};
