/*
 * trace.c: `mayfly lab trace`: one real run, row by row: when each row was executed and by whom, what it cost, what the
 * kernel said; then where the rest of the time went, and what each control took.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/complain.h"
#include "base/fd.h"
#include "base/signals.h"
#include "base/units.h"
#include "box/box.h"
#include "json/result_json.h"
#include "lab/lab.h"
#include "lab/options.h"
#include "lab/page.h"
#include "lab/rows.h"

#include "base/banned.h"

enum { ROUNDS_MAX = 5000, STEPS_MAX = 16 };

struct request {
    struct policy *policy;
    bool json;
    uint32_t rounds;
};

/* A stretch of the run: from the step before it to `end_us`. */
struct stretch {
    const char *name;
    double end_us;
};

/* ------------------------------------------------------------------ the command line */

static void help(void) {
    (void)printf("usage: mayfly lab trace [FLAGS] -- COMMAND [ARGS…]\n"
                 "Builds a box for the command, runs it there, and shows every row of the plan as "
                 "it was executed.\n"
                 "\n"
                 "    --rounds N   run it N times more, silently, and show medians\n"
                 "    --json       print one JSON object; what the command printed is in it\n"
                 "\n"
                 "and every flag of `mayfly run`, such as --rootfs DIR, --image NAME, --memory "
                 "SIZE.\n");
}

/* A field of the policy's by its flag; *i moves on over its value. 0; -ENOENT: there is no such flag; -EINVAL. */
static int policy_flag(struct policy *policy, int argc, char **argv, int *i, struct err *err) {
    char flag[64];
    const char *eq = strchr(argv[*i], '=');
    size_t len = eq ? (size_t)(eq - argv[*i]) : strlen(argv[*i]);

    (void)snprintf(flag, sizeof(flag), "%.*s", (int)MIN(len, sizeof(flag) - 1), argv[*i]);
    const struct policy_field *f = policy_find_flag(flag);
    if (!f)
        return -ENOENT;
    if (strcmp(f->name, "without") == 0) /* the lab's own attempts alone are made so */
        return err_set(err, ERR_USAGE, -EINVAL, "",
                       "`mayfly lab explain CONTROL` shows what it does",
                       "--without: no command of yours is run with a control off");
    const char *value = eq ? eq + 1 : f->metavar ? NULL : "true";
    if (!value && *i + 1 >= argc)
        return err_set(err, ERR_USAGE, -EINVAL, "", NULL, "%s: wants %s", flag, f->metavar);
    return policy_set(policy, f->name, value ? value : argv[++*i], err);
}

static int take_rounds(struct request *rq, const char *value, struct err *err) {
    if (!value || parse_u32(value, &rq->rounds) < 0 || rq->rounds < 1 || rq->rounds > ROUNDS_MAX)
        return err_set(err, ERR_USAGE, -EINVAL, "", NULL, "--rounds: wants a number from 1 to %d",
                       (int)ROUNDS_MAX);
    return 0;
}

/* argv[i]; *i moves on over what belongs to it. */
static int take_flag(struct request *rq, int argc, char **argv, int *i, struct err *err) {
    const char *word = argv[*i];

    if (strcmp(word, "--json") == 0)
        return rq->json = true, 0;
    if (strcmp(word, "--rounds") == 0)
        return take_rounds(rq, *i + 1 < argc ? argv[++*i] : NULL, err);
    if (strncmp(word, "--rounds=", 9) == 0)
        return take_rounds(rq, word + 9, err);
    int r = policy_flag(rq->policy, argc, argv, i, err);
    return r == -ENOENT ? err_set(err, ERR_USAGE, -EINVAL, "", "see mayfly lab trace --help",
                                  "%s: there is no such flag", word)
                        : r;
}

/* Where no flag names a root, the lab's. */
static int take_rootfs(struct policy *policy, struct err *err) {
    struct options usual = {0};

    if (policy->rootfs || policy->image)
        return 0;
    int r = options_rootfs(&usual, err);
    return r < 0 ? r : policy_set(policy, "rootfs", usual.rootfs, err);
}

static int take_words(struct request *rq, int argc, char **argv, struct err *err) {
    int i = 1, r = 0;

    for (; r == 0 && i < argc && argv[i][0] == '-' && strcmp(argv[i], "--") != 0; i++)
        r = take_flag(rq, argc, argv, &i, err);
    i += i < argc && strcmp(argv[i], "--") == 0;
    if (r == 0 && i >= argc)
        r = err_set(err, ERR_USAGE, -EINVAL, "", NULL,
                    "what to run? mayfly lab trace -- COMMAND [ARGS…]");
    if (r == 0 && (rq->policy->out || rq->policy->attest))
        r = err_set(err, ERR_USAGE, -EINVAL, "", "use mayfly run for that",
                    "--out and --attest: a trace has only the rows and the command");
    r = r < 0 ? r : take_rootfs(rq->policy, err);
    return r < 0
               ? r
               : policy_set_argv(rq->policy, (const char *const *)(uintptr_t)(argv + i), NULL, err);
}

/* ------------------------------------------------------------------ who, and when */

static const char *who(const struct op *op) {
    switch (op->stage) {
    case STAGE_HOST:
    case STAGE_CLONE:
    case STAGE_OUTSIDE:
        return "supervisor";
    case STAGE_SEAL:
        return "payload";
    default:
        return "init";
    }
}

/* The first begin or the last end of a stage's rows; -1: it has none that was executed. */
static double stage_us(const struct rows *rows, enum stage stage, bool end) {
    double found = -1;

    for (size_t i = 0; i < rows->n; i++) {
        const struct row_time *row = &rows->row[i];

        if (row->op->stage != stage || row->at_us < 0)
            continue;
        double at = row->at_us + (end ? MAX(row->us, 0) : 0);
        if (found < 0 || (end ? at > found : at < found))
            found = at;
    }
    return found;
}

/* In the order of the work; a step that was not reached, or that this plan has not, is left out. A step is over when the
 * next has begun, though who was waited for may hear of it later: init can be at work before clone3 returns here. */
static size_t stretches(const struct rows *rows, struct stretch out[STEPS_MAX]) {
    const double *mark = rows->mark_us;
    struct stretch all[] = {
        {"mayfly looks at the host and the rootfs, and plans", mark[MARK_PLANNED]},
        {"cgroups made and set, ids leased, the rootfs taken", stage_us(rows, STAGE_HOST, true)},
        {"pipes and channels", stage_us(rows, STAGE_CLONE, false)},
        {"clone3 of init", stage_us(rows, STAGE_CLONE, true)},
        {"init wakes, closes what it inherited", stage_us(rows, STAGE_APART, false)},
        {"init makes namespaces; beside it mayfly maps ids", stage_us(rows, STAGE_APART, true)},
        {"init hears that its ids are mapped", stage_us(rows, STAGE_INSIDE, false)},
        {"init makes the tree of files", stage_us(rows, STAGE_INSIDE, true)},
        {"init leaves the host's files and gives up its rights", stage_us(rows, STAGE_PIVOT, true)},
        {"vfork of the payload's process", stage_us(rows, STAGE_SEAL, false)},
        {"the payload gives up everything", stage_us(rows, STAGE_SEAL, true)},
        {"mayfly hears that it is sealed; execve", MAX(mark[MARK_EXECUTED], mark[MARK_GOING])},
        {"the command runs", mark[MARK_ENDED]},
        {"init exits; the kernel kills the rest, ends the namespaces", mark[MARK_DEAD]},
        {"init reaped, what was used is read, cgroups removed", mark[MARK_REMOVED]},
        {"descriptors closed", mark[MARK_CLOSED]},
    };
    _Static_assert(ARRAY_LEN(all) == STEPS_MAX, "room for each");
    double later = INFINITY;
    size_t n = 0;

    for (size_t i = ARRAY_LEN(all); i-- > 0;)
        if (all[i].end_us >= 0)
            later = all[i].end_us = MIN(all[i].end_us, later);
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (all[i].end_us >= 0)
            out[n++] = all[i];
    return n;
}

/* ------------------------------------------------------------------ the rows in the order in which they began */

static int by_begin(const void *a, const void *b) {
    const struct row_time *x = a, *y = b;

    if (x->at_us != y->at_us)
        return x->at_us < y->at_us ? -1 : 1;
    return (x->op > y->op) - (x->op < y->op);
}

/* Those that were executed; NULL: memory is out. What they point to is the rows'. */
static struct row_time *in_time(const struct rows *rows, size_t *ret_n) {
    struct row_time *list = calloc(rows->n + 1, sizeof(*list));

    *ret_n = 0;
    for (size_t i = 0; list && i < rows->n; i++)
        if (rows->row[i].at_us >= 0)
            list[(*ret_n)++] = rows->row[i];
    if (list)
        qsort(list, *ret_n, sizeof(*list), by_begin);
    return list;
}

/* In brackets: what the kernel said within a row that took it for an answer, such as that there is nothing to mask. */
static const char *answer(const struct row_time *row, char text[24]) {
    (void)snprintf(text, 24, row->code == 0 && row->noted ? "(%s)" : "%s",
                   row->us < 0               ? "?"
                   : row->code || row->noted ? errno_name(row->code ? row->code : row->noted)
                                             : "0");
    return text;
}

/* ------------------------------------------------------------------ as text */

static void print_row(const struct page *p, const struct row_time *row) {
    char text[24];

    int n = fprintf(p->out, "%8.0f %8.1f  %-8s %-10s %-7s %-10s  ", row->at_us, MAX(row->us, 0),
                    answer(row, text), who(row->op), stage_name(row->op->stage),
                    control_id_name(row->op->control));
    page_cut(p, (size_t)MAX(n, 0), row->call);
}

static void print_rows(const struct page *p, const struct rows *rows) {
    size_t n = 0;
    _cleanup_free_ struct row_time *list = in_time(rows, &n);

    page_heading(p, "   at µs  cost µs  answer   who        stage   control     call");
    bool noted = false;
    for (size_t i = 0; list && i < n; i++) {
        print_row(p, &list[i]);
        noted |= list[i].noted != 0;
    }
    if (noted)
        (void)fputs(
            "\nIn brackets: what a call in the row was answered, which takes nothing away.\n",
            p->out);
}

static void print_stretches(const struct page *p, const struct rows *rows) {
    struct stretch step[STEPS_MAX];
    size_t n = stretches(rows, step);
    double last = 0;

    page_heading(p, "   at µs  took µs  what the whole was spent on");
    for (size_t i = 0; i < n; i++) {
        (void)fprintf(p->out, "%8.0f %8.0f  %s\n", last, step[i].end_us - last, step[i].name);
        last = step[i].end_us;
    }
    (void)fprintf(p->out, "%8.0f           the end\n", last);
}

static unsigned rows_of(const struct rows *rows, enum control_id c) {
    unsigned n = 0;

    for (size_t i = 0; i < rows->n; i++)
        n += rows->row[i].op->control == c;
    return n;
}

static void print_controls(const struct page *p, const struct rows *rows) {
    double all = rows_all_us(rows);

    page_heading(p, "  all µs   share  rows  control");
    for (int c = 0; c < CTL__N; c++) {
        double us = rows_sum_us(rows, (enum control_id)c);
        unsigned n = rows_of(rows, (enum control_id)c);

        if (n)
            (void)fprintf(p->out, "%8.1f  %5.1f%%  %4u  %s\n", us, all > 0 ? us / all * 100 : 0, n,
                          control_id_name((enum control_id)c));
    }
    (void)fprintf(
        p->out, "%8.1f  %5.1f%%        the one clone3, which makes init in its first namespaces\n",
        rows_clone_us(rows), all > 0 ? rows_clone_us(rows) / all * 100 : 0);
    (void)fprintf(
        p->out,
        "%8.1f                together; init's and mayfly's rows of the stages apart and outside\n"
        "                        go on at the same time\n",
        all);
}

static void print_text(const struct request *rq, const struct rows *rows) {
    struct utsname name = {0};
    struct page page;

    page_init(&page, stdout);
    (void)uname(&name);
    (void)fprintf(page.out, "mayfly %s, Linux %s, %s: %s in %s", mayfly_version(), name.release,
                  geteuid() == 0 ? "root" : "a user", rows->plan->argv[0],
                  rows->use.policy->image ? rows->use.policy->image : rows->use.policy->rootfs);
    if (rq->rounds)
        (void)fprintf(page.out, "; medians of %u runs", rq->rounds);
    (void)fputc('\n', page.out);
    print_rows(&page, rows);
    print_stretches(&page, rows);
    print_controls(&page, rows);
}

/* ------------------------------------------------------------------ as JSON */

/* Tenths of a microsecond are what the clock is good for. */
static json_t *number(double us) { return us < 0 ? json_null() : json_real(round(us * 10) / 10); }

static json_t *row_json(const struct row_time *row) {
    return json_pack("{s:o, s:o, s:s, s:s, s:s, s:s, s:s, s:o, s:o}", "atUs", number(row->at_us),
                     "us", number(row->us), "who", who(row->op), "stage",
                     stage_name(row->op->stage), "control", control_id_name(row->op->control),
                     "call", row->call, "why", row->op->why ? row->op->why : "", "errno",
                     row->code < 0 ? json_string(errno_name(row->code)) : json_null(), "noted",
                     row->noted ? json_string(errno_name(row->noted)) : json_null());
}

static json_t *rows_json(const struct rows *rows) {
    json_t *list = json_array();
    size_t n = 0;
    _cleanup_free_ struct row_time *order = in_time(rows, &n);

    for (size_t i = 0; order && i < n; i++)
        (void)json_array_append_new(list, row_json(&order[i]));
    return list;
}

static json_t *steps_json(const struct rows *rows) {
    struct stretch step[STEPS_MAX];
    size_t n = stretches(rows, step);
    json_t *list = json_array();
    double last = 0;

    for (size_t i = 0; i < n; i++) {
        (void)json_array_append_new(list,
                                    json_pack("{s:s, s:o, s:o}", "name", step[i].name, "atUs",
                                              number(last), "us", number(step[i].end_us - last)));
        last = step[i].end_us;
    }
    return list;
}

static json_t *controls_json(const struct rows *rows) {
    json_t *list = json_array();

    for (int c = 0; c < CTL__N; c++)
        (void)json_array_append_new(list, json_pack("{s:s, s:i, s:o}", "name",
                                                    control_id_name((enum control_id)c), "rows",
                                                    (int)rows_of(rows, (enum control_id)c), "us",
                                                    number(rows_sum_us(rows, (enum control_id)c))));
    return list;
}

/* `error` NULL: the command ran, and `result` says how it ended. */
static int print_json(const struct request *rq, const struct rows *rows,
                      const mayfly_result *result, const struct err *error) {
    char *text = result ? result_to_json(result) : NULL;
    json_t *ended = text ? json_loads(text, 0, NULL) : json_null();
    json_t *all = json_pack("{s:s, s:s, s:i, s:o, s:o, s:o, s:o, s:o, s:o}", "format",
                            "mayfly-trace/1", "mayfly", mayfly_version(), "rounds", (int)rq->rounds,
                            "cloneUs", number(rows_clone_us(rows)), "rows", rows_json(rows),
                            "steps", steps_json(rows), "controls", controls_json(rows), "result",
                            ended, "error", error ? json_string(error->message) : json_null());
    int r = all ? json_dumpf(all, stdout, JSON_COMPACT | JSON_REAL_PRECISION(12)) : -1;

    (void)fputc('\n', stdout);
    json_decref(all);
    free(text);
    return r < 0 ? -1 : 0;
}

/* ------------------------------------------------------------------ the run */

static int finish(const struct request *rq, const struct rows *rows, const mayfly_result *result,
                  const struct err *error) {
    int printed = 0;

    if (rq->json)
        printed = print_json(rq, rows, result, error);
    else if (rows->row)
        print_text(rq, rows);
    if (fflush(stdout) != 0 || printed < 0)
        return errno == EPIPE
                   ? 0
                   : (complain("lab trace: standard output: %s", errno_words(errno)), -1);
    return 0;
}

/* The command's own, as a run of it would have; once it is over its output stays, whatever becomes of what is shown. */
static int status_of(const struct request *rq, const mayfly_result *result, int signal_fd) {
    if (result->outcome == MAYFLY_SETUP_FAILED)
        complain("%s", result->error.message);
    if (result->outcome == MAYFLY_CANCELLED) {
        int by_signal = signals_status(signal_fd);
        return by_signal ? by_signal : 128 + SIGPIPE; /* else it is our reader that went away */
    }
    return rq->json ? 0 : result->exit_code >= 0 ? result->exit_code : EXIT_LAB_TROUBLE;
}

static int trace(const struct request *rq, struct rows *rows, int signal_fd, struct err *err) {
    struct box_input input = {.stdin_fd = rq->policy->keep_stdin ? STDIN_FILENO : -1,
                              .stdout_fd = rq->json ? -1 : STDOUT_FILENO,
                              .stderr_fd = rq->json ? -1 : STDERR_FILENO,
                              .cancel_fd = signal_fd};
    mayfly_result *result = NULL;
    int r = rows_plan(rq->policy, rows, err);

    if (r < 0)
        return EXIT_LAB_TROUBLE;
    r = rows_run(rows, &input, &result, err);
    if (r < 0 || !result) /* shown as far as it got */
        return (void)finish(rq, rows, NULL, err), EXIT_LAB_TROUBLE;
    int status = status_of(rq, result, signal_fd);
    if (rq->rounds && result->outcome != MAYFLY_CANCELLED)
        r = rows_measure(rows, rq->rounds, signal_fd, err);
    if (r == 0 && finish(rq, rows, result, NULL) < 0)
        status = EXIT_LAB_TROUBLE;
    if (r < 0)
        status = r == -EINTR ? signals_status(signal_fd) : EXIT_LAB_TROUBLE;
    mayfly_result_free(result);
    return status;
}

int lab_trace_command(int argc, char **argv) {
    struct request rq = {.policy = policy_new()};
    struct rows rows = {.use.lease.fd = -1};
    struct err err = {0};
    int status = EXIT_LAB_TROUBLE;

    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        policy_free(rq.policy);
        help();
        return fflush(stdout) == 0 ? 0 : EXIT_LAB_TROUBLE;
    }
    if (!rq.policy)
        (void)err_oom(&err);
    else if (take_words(&rq, argc, argv, &err) < 0)
        status = EXIT_LAB_USAGE;
    else {
        _cleanup_fd_ int signal_fd = signals_watch();

        status = trace(&rq, &rows, signal_fd, &err);
    }
    if (err.code)
        complain("lab trace: %s", err.message);
    rows_done(&rows);
    policy_free(rq.policy);
    return status;
}
