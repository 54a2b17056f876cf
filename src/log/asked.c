/*
 * asked.c: the command line of `mayfly log`.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/state.h"
#include "base/units.h"
#include "log/log.h"

#include "base/banned.h"

static int bad(struct err *err, const char *flag, const char *value, const char *why) {
    return err_set(err, ERR_USAGE, -EINVAL, "", NULL, "%s: \"%.100s\" %s", flag, value, why);
}

/* "2h", "3d", "2026-11-30", "2026-11-30T12:00:00Z", and with milliseconds. */
static int parse_when(const char *flag, const char *value, int64_t now_ms, int64_t *ret,
                      struct err *err) {
    size_t len = strlen(value);
    char text[64];
    uint64_t ago = 0;

    if (len > 1 && len < 12 && value[len - 1] == 'd') {
        (void)snprintf(text, sizeof(text), "%.*s", (int)len - 1, value);
        uint64_t days = 0;
        if (parse_u64(text, &days) == 0 && days < 100000)
            return *ret = now_ms - (int64_t)days * 86400000, 0;
    }
    if (!strchr(value, '-') && parse_duration_ms(value, &ago) == 0 && ago < INT64_MAX / 2)
        return *ret = now_ms - (int64_t)ago, 0;
    static const char rest[] = "T00:00:00.000Z";
    size_t from = len == 10 ? 0 : len == 20 ? 9 : strlen(rest);
    (void)snprintf(text, sizeof(text), "%.*s%s", (int)MIN(len == 20 ? len - 1 : len, 40u), value,
                   rest + from);
    if (time_parse(text, ret) == 0)
        return 0;
    return bad(err, flag, value, "is no time; write 2h, 3d, 2026-11-30 or 2026-11-30T12:00:00Z");
}

/* mayfly_outcome_name()'s, whose library is not linked for them; and a run's that nobody lived to tell of. */
const char *const asked_outcomes[] = {
    "exited",       "signaled",  "timed_out",    "cpu_limit", "oom_killed",
    "output_limit", "cancelled", "setup_failed", "lost",      NULL};

/* What would match no record is told: a slip of the pen is not to look like a quiet night. */
static int take_outcome(struct asked *a, const char *value, struct err *err) {
    char names[200] = "";

    for (size_t i = 0; asked_outcomes[i]; i++) {
        size_t n = strlen(names);
        if (strcmp(asked_outcomes[i], value) == 0)
            return a->outcome = value, 0;
        (void)snprintf(names + n, sizeof(names) - n, "%s%s", i ? ", " : "it is one of ",
                       asked_outcomes[i]);
    }
    return err_set(err, ERR_USAGE, -EINVAL, "", names, "--outcome: no run ends as \"%.40s\"",
                   value);
}

static int take_source(struct asked *a, const char *value, struct err *err) {
    static const char *const names[] = {"run", "python", "mcp", "agent"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(names[i], value) == 0)
            return a->source = value, 0;
    return bad(err, "--source", value, "logs nothing; it is run, python, mcp or agent");
}

static int take_value(struct asked *a, const char *flag, const char *value, int64_t now_ms,
                      struct err *err) {
    if (strcmp(flag, "--since") == 0)
        return parse_when(flag, value, now_ms, &a->since, err);
    if (strcmp(flag, "--until") == 0)
        return parse_when(flag, value, now_ms, &a->until, err);
    if (strcmp(flag, "--outcome") == 0)
        return take_outcome(a, value, err);
    if (strcmp(flag, "--source") == 0)
        return take_source(a, value, err);
    if (strcmp(flag, "--id") == 0)
        a->id = value;
    else if (strcmp(flag, "--log") == 0) {
        if (strcmp(value, "journald") == 0)
            return bad(err, flag, value, "is read with journalctl -t mayfly -o verbose");
        if (!*value || !str_copy(a->file, sizeof(a->file), value))
            return bad(err, flag, value, "is no file's name");
    } else if (parse_u64(value, &a->last) < 0 || a->last < 1 || a->last > 1000000)
        return bad(err, flag, value, "is not a number from 1 to 1000000");
    return 0;
}

static const char *const with_value[] = {"--since",  "--until", "--outcome", "--id",
                                         "--source", "--log",   "--lines"};

static int one_flag(struct asked *a, int argc, char **argv, int *i, int64_t now_ms,
                    struct err *err) {
    const struct {
        const char *name;
        bool *is_set;
    } switches[] = {{"--follow", &a->follow}, {"-f", &a->follow},
                    {"--json", &a->json},     {"--stats", &a->stats},
                    {"--failed", &a->failed}, {"--prometheus", &a->prometheus},
                    {"--help", &a->help},     {"-h", &a->help}};
    const char *word = argv[*i];

    for (size_t s = 0; s < ARRAY_LEN(switches); s++)
        if (strcmp(word, switches[s].name) == 0)
            return *switches[s].is_set = true, 0;
    if (strcmp(word, "-n") == 0)
        word = "--lines";
    for (size_t f = 0; f < ARRAY_LEN(with_value); f++) {
        size_t len = strlen(with_value[f]);

        if (strncmp(word, with_value[f], len) != 0 || (word[len] && word[len] != '='))
            continue;
        if (!word[len] && *i + 1 >= argc)
            return err_set(err, ERR_USAGE, -EINVAL, "", NULL, "%s: wants a value", with_value[f]);
        return take_value(a, with_value[f], word[len] ? word + len + 1 : argv[++*i], now_ms, err);
    }
    return err_set(err, ERR_USAGE, -EINVAL, "", NULL, "%.64s: no such flag; see --help", word);
}

int asked_parse(struct asked *a, int argc, char **argv, int64_t now_ms, struct err *err) {
    *a = (struct asked){.since = INT64_MIN, .until = INT64_MAX};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "verify") == 0) {
            a->verify = true;
            continue;
        }
        if (argv[i][0] != '-')
            return err_set(err, ERR_USAGE, -EINVAL, "", NULL,
                           "%.64s: what is that? The one word that it takes is verify", argv[i]);
        int r = one_flag(a, argc, argv, &i, now_ms, err);
        if (r < 0)
            return r;
    }
    if (a->follow + a->stats + a->prometheus + a->verify > 1)
        return err_set(err, ERR_USAGE, -EINVAL, "", NULL,
                       "verify, --follow, --stats and --prometheus are one at a time");
    if (!a->file[0] && !a->help && !state_log(a->file, sizeof(a->file)))
        return err_set(err, ERR_USAGE, -EINVAL, "", "name it with --log=FILE",
                       "where the run log is cannot be told without HOME");
    return 0;
}

bool asked_wants(const struct asked *a, const struct record *r) {
    return r->time_ms >= a->since && r->time_ms < a->until && (!a->failed || record_failed(r)) &&
           (!a->outcome || strcmp(a->outcome, r->outcome) == 0) &&
           (!a->id || strcmp(a->id, r->id) == 0) &&
           (!a->source || strcmp(a->source, r->source) == 0);
}

bool asked_filters(const struct asked *a) {
    return a->since != INT64_MIN || a->until != INT64_MAX || a->failed || a->outcome || a->id ||
           a->source;
}

void asked_help(void) {
    (void)fputs(
        "mayfly log [verify] [FLAGS]\n"
        "\n"
        "Shows the run log, sums it up, or looks whether it is whole. Flags:\n"
        "\n"
        "      --log=FILE        the log (for root /var/log/mayfly/runs.jsonl, else\n"
        "                        ~/.local/state/mayfly/runs.jsonl)\n"
        "  -f, --follow          go on as records come\n"
        "  -n, --lines N         the last N of those that are asked for\n"
        "      --since WHEN      from then on: 2h, 3d, 2026-11-30, 2026-11-30T12:00:00Z\n"
        "      --until WHEN      before then\n"
        "      --failed          runs that did not exit with 0\n"
        "      --outcome NAME    runs that ended so: exited, timed_out, oom_killed, lost, …\n"
        "      --source NAME     runs of run, python, mcp or agent\n"
        "      --id ID           that run\n"
        "      --json            the records as they are in the log; with verify and --stats an "
        "object\n"
        "      --stats           shares of time-outs, failures and walls met, by the hour, "
        "against\n"
        "                        the seven days before; what is far above is marked as a spike\n"
        "      --prometheus      counters in Prometheus's text format\n"
        "\n"
        "Exit status: of verify 1 when the log is not whole; 125 for mayfly's own failure.\n",
        stdout);
}
