/*
 * attempt.c: one attempt: the scratch directory, the policy, a run through the public interface, the
 * verdict, and the host before and after.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "lab/attempt.h"
#include "lab/beside.h"
#include "lab/host_watch.h"
#include "lab/payload.h"
#include "lab/probe.h"
#include "lab/scratch.h"

#include "base/banned.h"

/* ------------------------------------------------------------------ words for prepare() and judge() */

bool lab_word(const char *words, const char *word) {
    size_t len = strlen(word);

    for (const char *p = words; *p;) {
        size_t n = strcspn(p, " ");
        if (n == len && strncmp(p, word, n) == 0)
            return true;
        p += n + (p[n] == ' ');
    }
    return false;
}

bool lab_sees(const char *sees, const char *error) {
    size_t len = strlen(error);

    for (const char *p = sees ? sees : ""; *p;) {
        size_t n = strcspn(p, "|");
        if (n == len && strncmp(p, error, n) == 0)
            return true;
        p += n + (p[n] == '|');
    }
    return false;
}

bool lab_off(const struct attempt *a, const char *control) { return lab_word(a->without, control); }

double lab_slow(void) {
    const char *value = getenv("MAYFLY_TEST_SLOW");
    double slow = value ? strtod(value, NULL) : 1;

    return slow >= 1 ? slow : 1;
}

/* The first problem counts. */
static void problem(struct attempt *a, const char *what, const char *why) {
    if (!a->problem[0])
        (void)snprintf(a->problem, sizeof(a->problem), "%.40s: %.250s", what, why);
}

void lab_arg(struct attempt *a, const char *fmt, ...) {
    va_list ap;

    if (a->n_args == (int)ARRAY_LEN(a->arg))
        return problem(a, "lab_arg", "more arguments than an attempt takes");
    va_start(ap, fmt);
    (void)vsnprintf(a->arg[a->n_args], sizeof(a->arg[0]), fmt, ap);
    va_end(ap);
    a->n_args++;
}

void lab_set(struct attempt *a, const char *name, const char *fmt, ...) {
    char value[2 * PATH_MAX];
    struct mayfly_error e = {0};
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(value, sizeof(value), fmt, ap);
    va_end(ap);
    if (mayfly_policy_set(a->policy, name, value, &e) < 0)
        problem(a, name, e.message);
}

void lab_found(struct finding_of *f, enum verdict verdict, const char *call, const char *error,
               const char *detail) {
    f->verdict = verdict;
    (void)str_copy(f->call, sizeof(f->call), call);
    (void)str_copy(f->error, sizeof(f->error), error);
    (void)str_copy(f->detail, sizeof(f->detail), detail ? detail : "");
}

bool lab_untestable(struct finding_of *f, const char *fmt, ...) {
    va_list ap;

    lab_found(f, VERDICT_UNTESTABLE, "", "", NULL);
    va_start(ap, fmt);
    (void)vsnprintf(f->detail, sizeof(f->detail), fmt, ap);
    va_end(ap);
    return false;
}

/* ------------------------------------------------------------------ the policy */

/* Where no cgroup puts the limits in force (a user to whom none is delegated) they are best effort. */
static void fit_limits(struct attempt *a) {
    const char *argv[] = {"true", NULL};
    struct mayfly_error e = {0};
    char *text = NULL;

    if (mayfly_policy_command(a->policy, argv, &e) == 0 &&
        mayfly_plan_text(a->policy, &text, &e) < 0 && e.kind == MAYFLY_E_UNSUPPORTED &&
        lab_word("memory cpu pids", e.control))
        lab_set(a, "limits", "best-effort");
    free(text);
}

/* See probe.h: what stands in for what a control gave. */
void attempt_stand_in(struct attempt *a) {
    if (lab_off(a, "mount"))
        return;
    lab_set(a, "volume", "%s/box:/mnt:ro", a->dir);
    if (lab_off(a, "tmp"))
        lab_set(a, "volume", "%s:/tmp:rw", a->tmp_dir);
    if (lab_off(a, "proc")) {
        lab_set(a, "volume", "/proc:/srv:rw");
        lab_set(a, "env", "LAB_PROC=/srv");
    }
}

int attempt_policy(struct attempt *a) {
    const char *rootfs = getenv("MAYFLY_ROOTFS");

    a->policy = mayfly_policy_new();
    if (!a->policy)
        return -ENOMEM;
    lab_set(a, "rootfs", "%s", rootfs ? rootfs : "");
    lab_set(a, "timeout", "%d", (int)(10 * lab_slow()));
    lab_set(a, "workdir", "/tmp");
    for (const char *p = a->without; *p;) {
        size_t n = strcspn(p, " ");
        lab_set(a, "without", "%.*s", (int)n, p);
        p += n + (p[n] == ' ');
    }
    fit_limits(a);
    return 0;
}

/* ------------------------------------------------------------------ the payload */

int attempt_python(struct attempt *a, const char *name, const char *payload) {
    _cleanup_buf_ struct buf code = {0};

    buf_add(&code, lab_prelude, lab_prelude_len);
    buf_puts(&code, "\n");
    buf_puts(&code, payload);
    return code.failed ? -ENOMEM : scratch_file(a, name, code.data, code.len, 0644);
}

static int write_payload(struct attempt *a, const struct probe *probe) {
    int r = scratch_file(a, "helper", lab_helper, lab_helper_len, 0755);

    if (r < 0 || probe->kind != PAYLOAD_PYTHON)
        return r;
    return attempt_python(a, "probe.py", probe->payload);
}

static bool exists(const char *path) { return access(path, F_OK) == 0; }

/* With the host's tree in place of the rootfs, its Python may be another one or none: the rootfs's own is started by its
 * own loader. */
static size_t outer_python(char text[4][PATH_MAX], const char **argv) {
    static const struct {
        const char *loader, *libraries;
    } kinds[] = {{"lib64/ld-linux-x86-64.so.2", "usr/lib/x86_64-linux-gnu"},
                 {"lib/ld-linux-aarch64.so.1", "usr/lib/aarch64-linux-gnu"}};
    char root[PATH_MAX];
    const char *rootfs = getenv("MAYFLY_ROOTFS");

    if (!rootfs || !realpath(rootfs, root))
        return 0;
    (void)snprintf(text[2], PATH_MAX, "%.3000s/usr/bin/python3", root);
    if (!exists(text[2]))
        (void)snprintf(text[2], PATH_MAX, "%.3000s/usr/local/bin/python3", root);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        (void)snprintf(text[0], PATH_MAX, "%.3000s/%s", root, kinds[i].loader);
        (void)snprintf(text[1], PATH_MAX, "%.3000s/%s", root, kinds[i].libraries);
        if (!exists(text[0]))
            continue;
        argv[0] = text[0];
        argv[1] = "--library-path";
        argv[2] = text[1];
        argv[3] = text[2];
        return 4;
    }
    return 0;
}

void attempt_command(struct attempt *a, enum payload_kind kind, const char *name,
                     const char *const *args, int n_args) {
    char outer[4][PATH_MAX], file[PATH_MAX];
    const char *argv[16];
    struct mayfly_error e = {0};
    size_t n = 0;

    (void)snprintf(file, sizeof(file), "%s/%s", a->box, kind == PAYLOAD_PYTHON ? name : "helper");
    if (kind == PAYLOAD_PYTHON) {
        if (lab_off(a, "mount"))
            n = outer_python(outer, argv);
        else
            argv[n++] = "python3";
        argv[n++] = "-I";
        argv[n++] = "-u";
        argv[n++] = file;
    } else {
        argv[n++] = file;
        argv[n++] = name;
    }
    for (int i = 0; i < n_args; i++)
        argv[n++] = args[i];
    argv[n] = NULL;
    if (mayfly_policy_command(a->policy, argv, &e) < 0)
        problem(a, "command", e.message);
}

/* ------------------------------------------------------------------ the verdict */

/* The last line: fields between tabs. */
static bool read_verdict(const mayfly_result *result, struct finding_of *f) {
    static const char *const words[] = {"THROUGH", "STOPPED", "UNTESTABLE"};
    char line[512], *field[4] = {line, NULL, NULL, NULL};
    const char *end = result->out.data + result->out.len;

    while (end > result->out.data && end[-1] == '\n')
        end--;
    const char *begin = end;
    while (begin > result->out.data && begin[-1] != '\n')
        begin--;
    (void)snprintf(line, sizeof(line), "%.*s", (int)MIN(end - begin, 500), begin);
    for (int i = 1; i < 4; i++) {
        field[i] = strchr(field[i - 1], '\t');
        if (!field[i])
            return false;
        *field[i]++ = '\0';
    }
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strcmp(line, words[i]) == 0)
            return lab_found(f, (enum verdict)i, field[1], field[2], field[3]), true;
    return false;
}

static int default_verdict(const struct attempt *a, const struct probe *probe,
                           struct finding_of *f) {
    const mayfly_result *r = a->result;
    char error[40];

    if (a->refusal) {
        lab_found(f, VERDICT_STOPPED, "mayfly", "refused", a->refusal->message);
        return probe->judge ? 0 : a->refusal->code;
    }
    if (read_verdict(r, f))
        return 0;
    if (r->outcome == MAYFLY_EXITED || r->outcome == MAYFLY_SETUP_FAILED) {
        lab_found(f, VERDICT_STOPPED, "payload", "no verdict", NULL);
        (void)snprintf(f->detail, sizeof(f->detail), "exit %d: %.60s: %.100s", r->exit_code,
                       r->error.message,
                       r->err.len > 100 ? r->err.data + r->err.len - 100 : r->err.data);
        return probe->judge ? 0 : -EPROTO;
    }
    if (r->outcome == MAYFLY_SIGNALED)
        (void)snprintf(error, sizeof(error), "killed by SIG%s", sigabbrev_np(r->signal));
    else
        (void)snprintf(error, sizeof(error), "%s", mayfly_outcome_name(r->outcome));
    lab_found(f, VERDICT_STOPPED, "", error, r->n_hints ? r->hints[0] : "");
    return 0;
}

/* ------------------------------------------------------------------ one attempt */

static int run(struct attempt *a, const struct probe *probe, struct finding_of *f) {
    struct mayfly_error e = {0};
    mayfly_result *result = NULL;

    if (mayfly_run(a->policy, &a->input, &result, &e) < 0)
        a->refusal = &e;
    a->result = result;
    int r = default_verdict(a, probe, f);
    if (r == 0 && probe->judge)
        probe->judge(a, f);
    if (r == -EPROTO || a->refusal)
        (void)str_copy(a->problem, sizeof(a->problem), f->detail);
    a->refusal = NULL;
    a->result = NULL;
    mayfly_result_free(result);
    return r;
}

static int make(struct attempt *a, const struct probe *probe, struct finding_of *f) {
    const char *args[ARRAY_LEN(a->arg)];

    if (lab_off(a, "mount"))
        (void)snprintf(a->box, sizeof(a->box), "%.3800s/box", a->dir);
    else
        (void)str_copy(a->box, sizeof(a->box), "/mnt");
    int r = attempt_policy(a);
    if (r == 0)
        r = write_payload(a, probe);
    if (r < 0)
        return r;
    if (probe->prepare && !probe->prepare(a, f))
        return a->problem[0] ? -EINVAL : 0;
    if (probe->kind == PAYLOAD_HOST)
        return 0;
    attempt_stand_in(a);
    for (int i = 0; i < a->n_args; i++)
        args[i] = a->arg[i];
    attempt_command(a, probe->kind, probe->kind == PAYLOAD_PYTHON ? "probe.py" : probe->payload,
                    args, a->n_args);
    if (a->problem[0])
        return -EINVAL;
    return run(a, probe, f);
}

/* What prepare() made; and what outlived the box, which the comparison has to name. */
static void release(struct attempt *a) {
    if (a->beside)
        beside_end(a->beside);
    for (size_t i = 0; i < ARRAY_LEN(a->pid); i++)
        if (a->pid[i] > 0) {
            (void)kill(a->pid[i], SIGKILL);
            (void)waitpid(a->pid[i], NULL, __WALL);
        }
    for (size_t i = 0; i < ARRAY_LEN(a->fd); i++)
        fd_close(&a->fd[i]);
    free(a->state);
    mayfly_policy_free(a->policy);
    lab_reap_dead();
}

int lab_attempt(const struct probe *probe, const char *without, struct finding_of *ret) {
    struct attempt a = {.without = without, .fd = {-1, -1, -1, -1}};
    struct host_state before, after;
    char canary[PATH_MAX];

    *ret = (struct finding_of){.verdict = VERDICT_UNTESTABLE};
    int r = scratch_make(&a);
    if (r < 0) {
        (void)snprintf(ret->detail, sizeof(ret->detail), "scratch directory: %s", errno_words(r));
        scratch_remove(a.dir);
        return r;
    }
    (void)snprintf(canary, sizeof(canary), "%s/canary", a.dir);
    lab_host_look(canary, &before);
    r = make(&a, probe, ret);
    if (r < 0)
        (void)str_copy(ret->detail, sizeof(ret->detail), a.problem[0] ? a.problem : errno_words(r));
    release(&a);
    lab_host_look(canary, &after);
    if (!lab_host_same(&before, &after, ret->host, sizeof(ret->host)) &&
        strncmp(ret->host, "processes: new", 14) == 0)
        lab_kill_strays();
    lab_host_forget(&before);
    lab_host_forget(&after);
    scratch_remove(a.dir);
    if (strncmp(a.tmp_dir, a.dir, strlen(a.dir)) != 0)
        scratch_remove(a.tmp_dir);
    return r;
}
