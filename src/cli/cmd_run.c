/*
 * cmd_run.c: `mayfly python` and `mayfly run`.
 *
 * The output of the code goes to our own stdout and stderr as it comes, and
 * nothing else does, but for lines that begin with "mayfly: ". With --json there
 * is one object on stdout instead.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/cli.h"
#include "json/result_json.h"

#include "base/banned.h"

/* ------------------------------------------------------------------ help */

static const char examples[] =
    "examples:\n"
    "  mayfly python -c 'print(sum(range(1_000_000)))'\n"
    "  echo 'print(input())' > t.py; echo hello | mayfly python -i t.py\n"
    "  mayfly python --timeout 2s --memory 64m --json script.py arg\n"
    "  mayfly python -v ./data:/data -c 'print(open(\"/data/x\").read())'\n"
    "  mayfly run alpine:3 sh -c 'id; cat /proc/self/status'\n"
    "  mayfly run --rootfs build/rootfs sh -c 'id; ls /'\n";
static const char statuses[] =
    "exit status:\n"
    "  the program's own; 128+N if signal N ended it; 124 time limit; 137 out of memory;\n"
    "  125 mayfly's own failure; 126 not executable; 127 not found; 130, 143 interrupted.\n"
    "  With --json: 0 whenever there is a result, 125 otherwise.\n";

void help_line(const char *flag, const char *metavar, const char *help) {
    char left[96];

    (void)snprintf(left, sizeof(left), "%s %s", flag, metavar ? metavar : "");
    if (strlen(left) >= 34)
        (void)printf("  %s\n  %-34s%s\n", left, "", help);
    else
        (void)printf("  %-34s%s\n", left, help);
}

/* The field that a group of flags begins with. */
static const struct {
    const char *first, *heading;
} groups[] = {
    {"memory", "limits"},
    {"rootfs",
     "files (a volume is read-only unless it says rw; in docker it is the other way round)"},
    {"env", "the code's surroundings"},
    {"network", "for docker's sake"},
};

static void help_heading(const char *name) {
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
        if (strcmp(groups[i].first, name) == 0)
            (void)printf("%s%s:\n", i ? "\n" : "", groups[i].heading);
}

void help_fields(void) {
    struct mayfly_field f;

    for (size_t i = 0; mayfly_policy_field(i, &f) == 0; i++) {
        char flag[64];
        help_heading(f.name);
        if (!f.flag)
            continue;
        if (f.letter)
            (void)snprintf(flag, sizeof(flag), "-%c, %s", f.letter, f.flag);
        else
            (void)snprintf(flag, sizeof(flag), "    %s", f.flag);
        help_line(flag, f.metavar, f.help);
    }
}

void help_sources(void) {
    help_line("    --env-file", "FILE", "variables, a NAME=VALUE on each line");
    help_line("    --policy", "FILE", "fields as a JSON object; flags win over it");
    help_line("    --pull", "missing|always|never",
              "when to get the image from its registry (missing)");
}

void help_run(const struct command *self) {
    (void)printf("mayfly %s %s\n\n%s. Flags, with their defaults:\n\n", self->name, self->usage,
                 self->summary);
    help_fields();
    (void)printf("\nthe program's own:\n");
    help_sources();
    help_line("    --log", "[=FILE|=journald]",
              "log this run; one that cannot be logged is not made");
    help_line("    --log-code", "full|digest|none", "what the log has of the code (full)");
    help_line("    --log-size", "SIZE", "a log that would grow beyond is rotated (64m)");
    help_line("    --log-keep", "N", "rotated logs that are kept (10)");
    help_line("    --json", NULL, "print the result as one JSON object");
    help_line("    --stats", NULL, "print what the run used, on standard error");
    help_line("    --init, --rm", NULL, "accepted for docker's sake: both are always so");
    (void)printf("\n%s\n%s", examples, statuses);
}

/* ------------------------------------------------------------------ printing */

/* The terminal's own signals end the box, and then us; what is left of their default action is the exit status. */
static int watch_signals(void) {
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGHUP);
    (void)sigaddset(&set, SIGQUIT);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return -1;
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* 128+N for the signal that came, 128+SIGPIPE if it was our reader that went away. */
static int cancelled_status(int fd) {
    struct signalfd_siginfo info;

    if (fd >= 0 && read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        return 128 + (int)info.ssi_signo;
    return 128 + SIGPIPE;
}

static void print_stream_note(const char *name, const struct mayfly_stream *s) {
    if (s->truncated)
        complain("%s: only the first %zu of %llu bytes are shown; --max-output raises that", name,
                 s->len, (unsigned long long)s->total);
}

/* "exited 0 · 12.3 ms wall · 9.1 ms CPU · 9.4 MiB memory · 1 pid"; what is not known is left out. */
static void print_stats(const mayfly_result *r) {
    char status[16] = "", cpu[40] = "", memory[56] = "", pids[40] = "", size[32];

    if (r->exit_code >= 0)
        (void)snprintf(status, sizeof(status), " %d", r->exit_code);
    if (r->cpu_ms >= 0)
        (void)snprintf(cpu, sizeof(cpu), " · %.1f ms CPU", r->cpu_ms);
    if (r->memory_peak_bytes != UINT64_MAX)
        (void)snprintf(memory, sizeof(memory), " · %s memory",
                       format_bytes(r->memory_peak_bytes, size, sizeof(size)));
    if (r->pids_peak != UINT64_MAX)
        (void)snprintf(pids, sizeof(pids), " · %llu pid%s", (unsigned long long)r->pids_peak,
                       r->pids_peak == 1 ? "" : "s");
    complain("%s%s · %.1f ms wall%s%s%s", mayfly_outcome_name(r->outcome), status, r->wall_ms, cpu,
             memory, pids);
}

/* How it ended, where that is not for the program to say: for the operator, so with the flag. The hints are for whoever
 * wrote the code. */
static void print_ending(const mayfly_result *r) {
    char time[32];

    switch (r->outcome) {
    case MAYFLY_TIMED_OUT:
        complain("killed after %s (wall clock limit; --timeout raises it)",
                 format_ms((uint64_t)r->wall_ms, time, sizeof(time)));
        break;
    case MAYFLY_CPU_LIMIT:
        complain("killed after %s of CPU time (--cpu-time raises the limit)",
                 format_ms(r->cpu_ms < 0 ? 0 : (uint64_t)r->cpu_ms, time, sizeof(time)));
        break;
    case MAYFLY_OOM_KILLED:
        complain("killed: out of memory (--memory raises the limit)");
        break;
    case MAYFLY_OUTPUT_LIMIT:
        complain("killed at its output limit (--max-output raises it)");
        break;
    case MAYFLY_SIGNALED:
        complain("ended by signal %d (SIG%s)", r->signal,
                 sigabbrev_np(r->signal) ? sigabbrev_np(r->signal) : "?");
        break;
    case MAYFLY_SETUP_FAILED:
        complain("%s", r->error.message);
        break;
    default:
        break;
    }
}

/* Our lines are not to run on from the code's last, if that has no end: they would be taken for its own. */
static void end_line(const mayfly_result *r, const struct request *rq) {
    bool says = r->out.truncated || r->err.truncated || r->n_warnings || r->n_hints || rq->stats ||
                r->n_skipped || r->outcome != MAYFLY_EXITED;

    if (says && r->err.len && r->err.data[r->err.len - 1] != '\n')
        (void)fputc('\n', stderr);
}

/* At most so many: all of them are in --json. */
enum { SKIPPED_SHOWN = 10 };

static void print_skipped(const mayfly_result *r) {
    for (size_t i = 0; i < r->n_skipped && i < SKIPPED_SHOWN; i++)
        complain("not brought back: /out%s%.300s: %s", r->skipped[i].name[0] ? "/" : "",
                 r->skipped[i].name, r->skipped[i].reason);
    if (r->skipped_total > SKIPPED_SHOWN)
        complain("not brought back: %llu more",
                 (unsigned long long)(r->skipped_total - SKIPPED_SHOWN));
}

static void print_text(const mayfly_result *r, const struct request *rq) {
    end_line(r, rq);
    print_stream_note("stdout", &r->out);
    print_stream_note("stderr", &r->err);
    print_ending(r);
    print_skipped(r);
    if (r->outcome == MAYFLY_SETUP_FAILED && r->exit_code == 127 && rq->env_root && !rq->python)
        complain(
            "MAYFLY_ROOTFS names the root, so the first word is the command; for an image unset "
            "it, or write --image NAME");
    for (size_t i = 0; i < r->n_warnings; i++)
        complain("warning: %s", r->warnings[i]);
    for (size_t i = 0; i < r->n_hints; i++)
        complain("hint: %s", r->hints[i]);
    if (rq->stats)
        print_stats(r);
}

static int print_json(const mayfly_result *r) {
    if (result_print_json(r, stdout) == -ENOMEM) {
        complain("out of memory");
        return EXIT_MAYFLY;
    }
    (void)putchar('\n');
    return flush_output();
}

static int fail(const struct request *rq, const struct mayfly_error *error) {
    char *text = rq->json ? error_to_json(error) : NULL;

    if (text)
        (void)printf("%s\n", text);
    free(text);
    bool printed = text && flush_output() != EXIT_MAYFLY; /* else at least in words */
    if (!printed && error->message[0])
        complain("%s", error->message);
    return EXIT_MAYFLY;
}

static int exit_status(const mayfly_result *r, int signal_fd) {
    if (r->outcome == MAYFLY_CANCELLED)
        return cancelled_status(signal_fd);
    return r->exit_code >= 0 ? r->exit_code : EXIT_MAYFLY;
}

/* Where a limit cannot be had for want of a cgroup, why asking for one did not help belongs to the answer. */
static void add_refusal(struct mayfly_error *error, const struct mayfly_error *refusal) {
    const char *const limits[] = {"memory", "cpu", "pids"};
    size_t len = strlen(error->message);

    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
        if (refusal->code && error->kind == MAYFLY_E_UNSUPPORTED &&
            strcmp(error->control, limits[i]) == 0)
            (void)snprintf(error->message + len, sizeof(error->message) - len, " (%.200s)",
                           refusal->message);
}

static int run_delegated(const mayfly_policy *policy, const struct mayfly_input *input,
                         mayfly_result **ret_result, struct mayfly_error *error) {
    struct mayfly_error refusal = {0};

    (void)mayfly_delegate(policy, NULL, &refusal);
    int r = mayfly_run(policy, input, ret_result, error);
    if (r < 0)
        add_refusal(error, &refusal);
    return r;
}

static bool is_of_image(const struct mayfly_error *error) {
    return strcmp(error->control, "image") == 0;
}

/* 0: try again. What is not here, or not unpacked, a pull may mend; where nobody asked for an image, any root will do. */
static int find_root(struct request *rq, struct mayfly_error *error) {
    struct mayfly_error no_usual;
    int r = rq->default_image ? request_usual_rootfs(rq, &no_usual) : -ENOENT;

    if (r == 0)
        return 0;
    if (r != -ENOENT)
        *error = no_usual;
    if (rq->pull == PULL_NEVER || error->code != -ENOENT)
        return error->code;
    return fetch_image(rq->policy, rq->json, true, error);
}

/* --pull=always goes before all else. */
static int pull_first(const struct request *rq, struct mayfly_error *error) {
    if (rq->pull != PULL_ALWAYS || !mayfly_policy_text(rq->policy, "image"))
        return 0;
    return fetch_image(rq->policy, rq->json, false, error);
}

static int run_found(struct request *rq, const struct mayfly_input *input,
                     mayfly_result **ret_result, struct mayfly_error *error) {
    int r = pull_first(rq, error);

    if (r < 0)
        return r;
    r = run_delegated(rq->policy, input, ret_result, error);
    if (r < 0 && is_of_image(error) && find_root(rq, error) == 0)
        r = run_delegated(rq->policy, input, ret_result, error);
    return r;
}

/* What happened is in the log before it is told. */
static int log_end(struct logging *l, const mayfly_result *result,
                   const struct mayfly_error *failure, struct mayfly_error *error) {
    char *facts = l->in < 0 ? NULL : result ? result_facts_json(result) : error_to_json(failure);
    int r = logging_finish(l, facts, error);

    free(facts);
    return r;
}

static int execute_logged(struct request *rq, struct logging *l) {
    int signals = watch_signals();
    struct mayfly_input input = {.code = rq->code,
                                 .code_len = rq->code_len,
                                 .stdin_fd = rq->keep_stdin ? MAYFLY_STDIN_INHERIT : 0,
                                 .stdout_fd = rq->json ? 0 : STDOUT_FILENO,
                                 .stderr_fd = rq->json ? 0 : STDERR_FILENO,
                                 .cancel_fd = signals};
    struct mayfly_error error = {0};
    mayfly_result *result = NULL;

    struct mayfly_error unlogged = {0};
    int made = run_found(rq, &input, &result, &error);
    int logged = log_end(l, result, &error, &unlogged);

    if (made < 0) {
        if (logged < 0)
            complain("%s", unlogged.message);
        return fail(rq, &error);
    }
    int status = exit_status(result, signals);
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL); /* a reader that stalls now is no reason to stay */
    if (rq->json) {
        int printed = print_json(result);
        bool own = result->outcome == MAYFLY_CANCELLED ||
                   (result->outcome == MAYFLY_SETUP_FAILED && result->exit_code < 0);
        status = printed ? printed : own ? status : 0;
    } else {
        print_text(result, rq);
    }
    mayfly_result_free(result);
    if (logged < 0) { /* the run was made, and is not where it should be */
        complain("%s", unlogged.message);
        status = EXIT_MAYFLY;
    }
    return status;
}

static int execute(struct request *rq) {
    struct mayfly_error error = {0};
    struct logging l;
    int status = logging_start(&l, rq, &error) < 0 ? fail(rq, &error) : execute_logged(rq, &l);

    logging_done(&l);
    return status;
}

int cmd_run(const struct command *self, int argc, char **argv) {
    struct mayfly_error error = {0};
    struct request rq;
    int status;

    if (request_parse(&rq, argc, argv, &error) < 0) {
        status = fail(&rq, &error);
    } else if (rq.help) {
        self->help(self);
        status = 0;
    } else {
        status = execute(&rq);
    }
    request_done(&rq);
    return status;
}

/* The plan of such a run, which finds its root. */
static int plan_found(struct request *rq, char **ret_text, struct mayfly_error *error) {
    (void)mayfly_delegate(rq->policy, NULL, NULL); /* as the run would */
    int r = mayfly_plan_text(rq->policy, ret_text, error);
    if (r < 0 && is_of_image(error) && find_root(rq, error) == 0)
        r = mayfly_plan_text(rq->policy, ret_text, error);
    return r;
}

int request_root(struct request *rq, struct mayfly_error *error) {
    const char *const argv[] = {"true", NULL};
    char *text = NULL;
    int r = mayfly_policy_command(rq->policy, argv, error); /* any: a plan has one */

    r = r < 0 ? r : pull_first(rq, error);
    r = r < 0 ? r : plan_found(rq, &text, error);
    free(text);
    return r;
}

int cmd_plan(const struct command *self, int argc, char **argv) {
    struct mayfly_error error = {0};
    struct request rq;
    char *text = NULL;

    if (argc < 2 || (strcmp(argv[1], "python") != 0 && strcmp(argv[1], "run") != 0)) {
        complain("plan: of what? write mayfly plan python -c CODE, or mayfly plan run …");
        return EXIT_MAYFLY;
    }
    int r = request_parse(&rq, argc - 1, argv + 1, &error);
    if (r == 0 && rq.help)
        self->help(self);
    else if (r == 0)
        r = plan_found(&rq, &text, &error);
    if (r < 0 && error.message[0])
        complain("%s", error.message);
    else if (text)
        (void)fputs(text, stdout);
    free(text);
    request_done(&rq);
    return r < 0 ? EXIT_MAYFLY : 0;
}
