/*
 * seccomp_compile.c: see seccomp_compile.h.
 */
#include "control/seccomp_compile.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "control/seccomp_pack.h"
#include "linux/bpf.h"

#include "base/banned.h"

const char *seccomp_arch(void) {
#if defined(__x86_64__)
    return "amd64";
#elif defined(__aarch64__)
    return "arm64";
#else
    return "other";
#endif
}

static uint32_t action_of(enum profile_action action, int error) {
    switch (action) {
    case PROFILE_ALLOW:
        return SCMP_ACT_ALLOW;
    case PROFILE_LOG:
        return SCMP_ACT_LOG;
    case PROFILE_ERRNO:
        return SCMP_ACT_ERRNO((uint32_t)error);
    case PROFILE_TRAP:
        return SCMP_ACT_TRAP;
    case PROFILE_KILL_THREAD:
        return SCMP_ACT_KILL_THREAD;
    case PROFILE_KILL:
        break;
    }
    return SCMP_ACT_KILL_PROCESS;
}

static struct scmp_arg_cmp comparison(const struct profile_arg *arg) {
    static const enum scmp_compare ops[] = {SCMP_CMP_NE,       SCMP_CMP_LT, SCMP_CMP_LE,
                                            SCMP_CMP_EQ,       SCMP_CMP_GE, SCMP_CMP_GT,
                                            SCMP_CMP_MASKED_EQ};

    return (struct scmp_arg_cmp){
        .arg = arg->index, .op = ops[arg->op], .datum_a = arg->value, .datum_b = arg->value_two};
}

static bool repeats_an_index(const struct profile_rule *rule) {
    unsigned seen = 0;

    for (int i = 0; i < rule->n_args; i++) {
        if (seen & 1u << rule->args[i].index)
            return true;
        seen |= 1u << rule->args[i].index;
    }
    return false;
}

/* One call of one rule. Conditions on the same argument are alternatives in Docker's format;
 * libseccomp wants a rule for each. */
static int add_call(scmp_filter_ctx ctx, const struct profile_rule *rule, int nr, uint32_t action) {
    struct scmp_arg_cmp args[6];

    for (int i = 0; i < rule->n_args; i++)
        args[i] = comparison(&rule->args[i]);
    if (!repeats_an_index(rule))
        return seccomp_rule_add_array(ctx, action, nr, (unsigned)rule->n_args, args);
    int r = 0;
    for (int i = 0; i < rule->n_args && r == 0; i++)
        r = seccomp_rule_add_array(ctx, action, nr, 1, &args[i]);
    return r;
}

static int add_rules(scmp_filter_ctx ctx, const struct profile *profile, bool notify,
                     struct err *err) {
    uint32_t fallback = action_of(profile->default_action, profile->default_error);

    for (int i = 0; i < profile->n_rules; i++) {
        const struct profile_rule *rule = &profile->rules[i];
        uint32_t action = action_of(rule->action, rule->error);
        if (notify && action == SCMP_ACT_ERRNO(EPERM) && action != fallback)
            action = SCMP_ACT_NOTIFY;

        for (const char *const *name = rule->names; *name; name++) {
            int nr = seccomp_syscall_resolve_name(*name);
            if (nr == __NR_SCMP_ERROR || action == fallback)
                continue;
            int r = add_call(ctx, rule, nr, action);
            if (r < 0 && r != -EDOM) /* EDOM: not a call of this machine */
                return err_errno(err, ERR_USAGE, r, "seccomp", NULL, "seccomp profile: rule for %s",
                                 *name);
        }
    }
    return 0;
}

/* The program that libseccomp writes, read back. */
static int export(scmp_filter_ctx ctx, struct sock_filter **ret_code, unsigned short *ret_len,
                  struct err *err) {
    struct stat st;
    _cleanup_fd_ int fd = memfd_create("filter", MFD_CLOEXEC);

    if (fd < 0)
        return err_errno(err, ERR_INTERNAL, -errno, "seccomp", errno_remedy(errno, NULL),
                         "memfd_create");
    int r = seccomp_export_bpf(ctx, fd);
    if (r < 0)
        return err_errno(err, ERR_INTERNAL, r, "seccomp", NULL, "compiling the seccomp filter");
    if (fstat(fd, &st) < 0 || lseek(fd, 0, SEEK_SET) < 0)
        return err_errno(err, ERR_INTERNAL, -errno, "seccomp", NULL, "reading the filter back");
    size_t size = (size_t)st.st_size, n = size / sizeof(struct sock_filter);
    if (n == 0 || n > BPF_MAXINSNS)
        return err_set(err, ERR_USAGE, -E2BIG, "seccomp", "use fewer rules",
                       "seccomp profile: its filter has %zu instructions, the kernel takes %d", n,
                       BPF_MAXINSNS);
    struct sock_filter *code = malloc(size);
    if (!code)
        return err_oom(err);
    if (fd_read_full(fd, code, size) != (ssize_t)size) {
        free(code);
        return err_set(err, ERR_INTERNAL, -EIO, "seccomp", NULL, "reading the filter back");
    }
    *ret_code = code;
    *ret_len = (unsigned short)n;
    return 0;
}

static int fill(scmp_filter_ctx ctx, const struct profile *profile, bool notify, struct err *err) {
    /* A tree of comparisons instead of a list: about ten steps for any call. */
    int r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);

    if (r == 0)
        r = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH,
                             notify ? SCMP_ACT_NOTIFY : SCMP_ACT_KILL_PROCESS);
    if (r < 0)
        return err_errno(err, ERR_INTERNAL, r, "seccomp", NULL, "setting up libseccomp");
    return add_rules(ctx, profile, notify, err);
}

int seccomp_translate(const struct profile *profile, bool notify, struct sock_filter **ret_code,
                      unsigned short *ret_len, struct err *err) {
    scmp_filter_ctx ctx = seccomp_init(action_of(profile->default_action, profile->default_error));

    if (!ctx)
        return err_oom(err);
    int r = fill(ctx, profile, notify, err);
    if (r == 0)
        r = export(ctx, ret_code, ret_len, err);
    seccomp_release(ctx);
    return r;
}

int seccomp_compile(const struct profile *profile, bool notify, struct sock_filter **ret_code,
                    unsigned short *ret_len, struct err *err) {
    struct sock_filter *code = NULL;
    unsigned short len = 0;
    int r = seccomp_translate(profile, notify, &code, &len, err);

    if (r < 0)
        return r;
    if (seccomp_pack(SECCOMP_NATIVE_ARCH, code, &len) < 0) {
        free(code);
        return err_oom(err);
    }
    *ret_code = code;
    *ret_len = len;
    return 0;
}
