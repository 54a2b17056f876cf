/*
 * probes_host.c: a host that lacks what a box needs: mayfly must refuse, never go on without.
 *
 * The lesser host is made in a child, by a filter that answers as a kernel would that lacks the call.
 */
#include "lab/families.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "policy/policy.h"

#include "base/banned.h"

/* From then on, in this process and its children, the call answers `error`. */
static bool without_call(unsigned nr, unsigned error) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog prog = {.len = ARRAY_LEN(code), .filter = code};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) == 0;
}

static bool no_seccomp(struct attempt *a UNUSED) { return without_call(SYS_seccomp, ENOSYS); }
static bool no_new_namespaces(struct attempt *a UNUSED) { return without_call(SYS_clone3, EPERM); }
static bool no_mounts(struct attempt *a UNUSED) { return without_call(SYS_move_mount, EPERM); }

static bool no_controller(struct attempt *a) {
    lab_set(a, "limits", "strict");
    lab_set(a, "cgroup-parent", "%s/canary", a->dir);
    return a->problem[0] == '\0';
}

/* What the child says by the pipe: whether there was a run, and mayfly's words if there was none. */
static _Noreturn void try_to_run(struct attempt *a, bool (*make)(struct attempt *), int out) {
    const char *argv[] = {"true", NULL};
    struct mayfly_error e = {0};
    mayfly_result *result = NULL;

    if (!make(a) || mayfly_policy_command(a->policy, argv, &e) < 0)
        (void)fd_write_full(out, "?", 1);
    else if (mayfly_run(a->policy, NULL, &result, &e) < 0)
        (void)fd_write_full(out, e.message, strlen(e.message));
    else
        (void)fd_write_full(out, "!", 1);
    _exit(0);
}

/* `for_whom`: the controls that need it. */
static bool refuses(struct attempt *a, struct finding_of *f, const char *what, const char *for_whom,
                    bool (*make)(struct attempt *)) {
    char text[256];
    int ends[2];

    for (int i = 0; i < CTL__N; i++)
        if (lab_word(for_whom, control_id_name((enum control_id)i)) &&
            lab_off(a, control_id_name((enum control_id)i)))
            return lab_untestable(f, "%s is off: there is nothing to refuse",
                                  control_id_name((enum control_id)i));

    if (pipe2(ends, O_CLOEXEC) < 0)
        return lab_untestable(f, "pipe: errno %d", errno);
    a->fd[0] = ends[0];
    a->fd[1] = ends[1];
    pid_t pid = fork();
    if (pid < 0)
        return lab_untestable(f, "fork: errno %d", errno);
    if (pid == 0)
        try_to_run(a, make, ends[1]);
    fd_close(&a->fd[1]);
    ssize_t n = fd_read_full(ends[0], text, sizeof(text) - 1);
    (void)waitpid(pid, NULL, 0);
    text[n > 0 ? n : 0] = '\0';
    if (strcmp(text, "?") == 0)
        return lab_untestable(f, "such a host cannot be made here");
    if (strcmp(text, "!") == 0 || !text[0])
        lab_found(f, VERDICT_THROUGH, what, "", text[0] ? "the code ran" : "no answer");
    else
        lab_found(f, VERDICT_STOPPED, what, "refused", text);
    return true;
}

static bool seccomp(struct attempt *a, struct finding_of *f) {
    return refuses(a, f, "no seccomp", "seccomp", no_seccomp);
}
static bool namespaces(struct attempt *a, struct finding_of *f) {
    return refuses(a, f, "no namespaces", "user pid", no_new_namespaces);
}
static bool mounts(struct attempt *a, struct finding_of *f) {
    return refuses(a, f, "no mounts", "mount", no_mounts);
}
static bool controller(struct attempt *a, struct finding_of *f) {
    return refuses(a, f, "no controller", "memory cpu pids", no_controller);
}

#define REFUSED                                                                                    \
    .family = "host", .stopped_by = "", .sees = "refused", .kind = PAYLOAD_HOST, .payload = ""

const struct probe probes_host[] = {
    {.id = "PO1",
     .title = "a host without seccomp",
     .echo = "CVE-2023-2431: kubelet ran pods without the seccomp they asked for",
     REFUSED,
     .prepare = seccomp},
    {.id = "PO1b", .title = "a host that gives no namespaces", REFUSED, .prepare = namespaces},
    {.id = "PO1c", .title = "a host that lets nothing be mounted", REFUSED, .prepare = mounts},
    {.id = "PO1d",
     .title = "a host without the controllers",
     .echo = "activepieces pull 14454: a sandbox's memory limit did nothing",
     REFUSED,
     .prepare = controller},
    {.id = NULL},
};
