/*
 * bench.c: what a run costs, beside the bare program and beside its peers.
 *
 * Timings on a shared machine wander by more than what is to be measured. So all candidates are run
 * in turn, round after round, and what is compared are the medians of one session, as ratios to the
 * same program in a bare chroot in the same rounds. Two sessions: back to back, and with an idle gap
 * before every run, which is how a tool is used, and where moving a process into a cgroup waits for a
 * grace period of 10 to 20 ms.
 *
 * A peer gets its nearest equal isolation; what it then lacks beside mayfly is said in its row. One
 * that is not installed is left out; one that does not run here is named with its own words.
 *
 *   bench [--rounds N] [--idle MS] [--json FILE] [--rows-only]     MAYFLY_BIN, MAYFLY_FLOOR, MAYFLY_ROOTFS
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "lab/rows.h"

#include "base/banned.h"

enum { MAX_ARGS = 48, MAX_ROUNDS = 5000, WARM_UP = 3 };

struct peer {
    const char *name;
    const char *program; /* found in PATH; NULL: mayfly itself, or bare */
    const char *lacks;
    /* {R} the rootfs, {M} mayfly, {F} floor.c's program, {B} a bundle's directory, {N} a name that is new each time, {C} the command's arguments */
    const char *const *argv;
};

#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

static const struct peer peers[] = {
    {"bare", NULL, "everything: a chroot", ARGS("/usr/sbin/chroot", "{R}", "{C}")},
    {"mayfly", NULL, "nothing: every control and limit",
     ARGS("{M}", "run", "--rootfs", "{R}", "{C}")},
    {"mayfly --attest", NULL, "nothing; every control is read back before the run",
     ARGS("{M}", "run", "--attest", "--rootfs", "{R}", "{C}")},
    {"kernel alone", NULL,
     "Landlock, policy, deadline, captured output, result: the calls alone (floor.c)",
     ARGS("{F}", "{R}", "{C}")},
    {"bubblewrap", "bwrap", "limits, seccomp, Landlock, noexec /tmp, deadline, captured output",
     ARGS("bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL",
          "--ro-bind", "{R}", "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "{C}")},
    {"crun", "crun", "user namespace, seccomp, Landlock, deadline, captured output",
     ARGS("crun", "run", "--bundle", "{B}", "{N}")},
    {"runc", "runc", "user namespace, seccomp, Landlock, deadline, captured output",
     ARGS("runc", "run", "--bundle", "{B}", "{N}")},
    {"runsc", "runsc", "user namespace, deadline, captured output; has a kernel of its own",
     ARGS("runsc", "--network=none", "--platform=ptrace", "run", "--bundle", "{B}", "{N}")},
    {"nsjail", "nsjail", "cgroup limits, seccomp, Landlock, captured output",
     ARGS("nsjail", "-q", "-Mo", "--chroot", "{R}", "-T", "/tmp", "--", "{C}")},
    {"firejail", "firejail",
     "a root of its own, cgroup limits, Landlock, deadline, captured output",
     ARGS("firejail", "--quiet", "--noprofile", "--net=none", "--caps.drop=all", "--nonewprivs",
          "--seccomp", "--private-tmp", "--ipc-namespace", "--", "{C}")},
    {"systemd-nspawn", "systemd-nspawn",
     "cgroup limits, Landlock, no capabilities, deadline, captured output",
     ARGS("systemd-nspawn", "-q", "-D", "{R}", "--register=no", "--keep-unit", "--private-network",
          "--read-only", "--private-users=pick", "--pipe", "{C}")},
    {"podman", "podman", "user namespace, Landlock, deadline, captured output",
     ARGS("podman", "run", "--rm", "--network=none", "--read-only", "--cap-drop=all",
          "--security-opt=no-new-privileges", "--memory=256m", "--cpus=1", "--pids-limit=128",
          "--rootfs", "{R}", "{C}")},
};

struct workload {
    const char *name;
    const char *const *argv;
};
static const struct workload workloads[] = {
    {"true", ARGS("/bin/true")},
    {"python3 -I -c 'print(1)'", ARGS("/usr/bin/python3", "-I", "-c", "print(1)")},
};

struct candidate {
    const struct peer *peer;
    char *argv[MAX_ARGS];
    size_t name_at; /* of {N} in argv; 0: none */
    double *ms;
    size_t n;
    double median;
    char fault[200]; /* why it is left out */
};

struct session {
    const struct workload *workload;
    double idle_ms;
    size_t rounds;
    struct candidate c[ARRAY_LEN(peers)];
    size_t n;
};

static const char *mayfly, *kernels_part, *rootfs;
static char bundle[PATH_MAX];

static _Noreturn void die(const char *what) {
    (void)fprintf(stderr, "bench: %s: %s\n", what, strerror(errno));
    exit(1);
}

static char *keep(const char *text) {
    char *copy = strdup(text);

    if (!copy)
        die("out of memory");
    return copy;
}

static void wait_ms(double ms) {
    struct timespec t = {(time_t)(ms / 1e3), (long)(fmod(ms, 1e3) * 1e6)};

    if (ms > 0)
        (void)nanosleep(&t, NULL);
}

/* ------------------------------------------------------------------ what is run */

/* An OCI bundle with mayfly's limits, for the runtimes that want one. */
static void write_bundle(const struct workload *w) {
    char path[PATH_MAX + 16];

    (void)snprintf(path, sizeof(path), "%s/config.json", bundle);
    FILE *f = fopen(path, "we");
    if (!f)
        die(path);
    (void)fprintf(f, "{\"ociVersion\":\"1.0.2\",\"process\":{\"terminal\":false,"
                     "\"user\":{\"uid\":1000,\"gid\":1000},\"cwd\":\"/\","
                     "\"env\":[\"PATH=/usr/bin:/bin\"],\"noNewPrivileges\":true,\"args\":[");
    for (const char *const *a = w->argv; *a; a++)
        (void)fprintf(f, "%s\"%s\"", a == w->argv ? "" : ",", *a);
    (void)fprintf(f,
                  "]},\"root\":{\"path\":\"%s\",\"readonly\":true},\"mounts\":["
                  "{\"destination\":\"/proc\",\"type\":\"proc\",\"source\":\"proc\"},"
                  "{\"destination\":\"/dev\",\"type\":\"tmpfs\",\"source\":\"tmpfs\"},"
                  "{\"destination\":\"/tmp\",\"type\":\"tmpfs\",\"source\":\"tmpfs\","
                  "\"options\":[\"nosuid\",\"noexec\",\"nodev\",\"size=64m\"]}],"
                  "\"linux\":{\"resources\":{\"memory\":{\"limit\":268435456},"
                  "\"cpu\":{\"quota\":100000,\"period\":100000},\"pids\":{\"limit\":128}},"
                  "\"namespaces\":[{\"type\":\"pid\"},{\"type\":\"network\"},{\"type\":\"ipc\"},"
                  "{\"type\":\"uts\"},{\"type\":\"mount\"},{\"type\":\"cgroup\"}]}}\n",
                  rootfs);
    if (fclose(f) != 0)
        die(path);
}

static void fill_argv(struct candidate *c, const struct workload *w) {
    size_t n = 0;

    for (const char *const *a = c->peer->argv; *a; a++) {
        if (strcmp(*a, "{C}") == 0) {
            for (const char *const *word = w->argv; *word; word++)
                c->argv[n++] = keep(*word);
            continue;
        }
        if (strcmp(*a, "{N}") == 0)
            c->name_at = n;
        c->argv[n++] = keep(strcmp(*a, "{R}") == 0   ? rootfs
                            : strcmp(*a, "{M}") == 0 ? mayfly
                            : strcmp(*a, "{F}") == 0 ? kernels_part
                            : strcmp(*a, "{B}") == 0 ? bundle
                                                     : *a);
    }
    c->argv[n] = NULL;
}

static bool in_path(const char *program) {
    const char *path = getenv("PATH");
    char full[PATH_MAX];

    for (const char *p = path; p && *p;) {
        const char *end = strchrnul(p, ':');
        (void)snprintf(full, sizeof(full), "%.*s/%s", (int)(end - p), p, program);
        if (access(full, X_OK) == 0)
            return true;
        p = *end ? end + 1 : end;
    }
    return false;
}

/* Starts the candidate; its output goes nowhere, or its stderr to `err_fd`. */
static pid_t start(struct candidate *c, int err_fd) {
    extern char **environ;
    static unsigned serial;
    static int null = -1;
    posix_spawn_file_actions_t files;
    pid_t pid = -1;

    if (null < 0)
        null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (c->name_at) {
        char name[64];
        (void)snprintf(name, sizeof(name), "mayfly-bench-%d-%u", (int)getpid(), serial++);
        free(c->argv[c->name_at]);
        c->argv[c->name_at] = keep(name);
    }
    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawn_file_actions_adddup2(&files, null, 0);
    (void)posix_spawn_file_actions_adddup2(&files, null, 1);
    (void)posix_spawn_file_actions_adddup2(&files, err_fd >= 0 ? err_fd : null, 2);
    int r = posix_spawnp(&pid, c->argv[0], &files, NULL, c->argv, environ);
    (void)posix_spawn_file_actions_destroy(&files);
    if (r != 0) {
        errno = r;
        return -1;
    }
    return pid;
}

/* Once, looked at: a candidate that fails is left out with its own words. */
static bool works(struct candidate *c) {
    FILE *words = tmpfile();
    int status = -1;

    if (!words)
        die("tmpfile");
    pid_t pid = start(c, fileno(words));
    if (pid > 0)
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
    bool fine = pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!fine) {
        rewind(words);
        if (!fgets(c->fault, sizeof(c->fault), words))
            (void)snprintf(c->fault, sizeof(c->fault), "status 0x%x, without a word", status);
        c->fault[strcspn(c->fault, "\n")] = '\0';
    }
    (void)fclose(words);
    return fine;
}

static double run_once(struct candidate *c) {
    uint64_t begin = now_ns();
    int status;
    pid_t pid = start(c, -1);

    if (pid < 0)
        die(c->argv[0]);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return (double)(now_ns() - begin) / 1e6;
}

/* ------------------------------------------------------------------ sessions */

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *v, size_t n) {
    qsort(v, n, sizeof(*v), by_value);
    return n == 0 ? NAN : n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static struct session *run_session(const struct workload *w, double idle_ms, size_t rounds) {
    struct session *s = calloc(1, sizeof(*s));

    if (!s)
        die("out of memory");
    *s = (struct session){.workload = w, .idle_ms = idle_ms, .rounds = rounds};
    write_bundle(w);
    for (size_t i = 0; i < ARRAY_LEN(peers); i++) {
        struct candidate *c = &s->c[s->n];
        *c = (struct candidate){.peer = &peers[i], .ms = calloc(rounds, sizeof(double))};
        if (!c->ms)
            die("out of memory");
        if (peers[i].program && !in_path(peers[i].program))
            continue;
        fill_argv(c, w);
        s->n++;
        (void)works(c);
    }
    for (size_t round = 0; round < rounds + WARM_UP; round++)
        for (size_t i = 0; i < s->n; i++) {
            if (s->c[i].fault[0])
                continue;
            wait_ms(idle_ms);
            double ms = run_once(&s->c[i]);
            if (round >= WARM_UP)
                s->c[i].ms[s->c[i].n++] = ms;
        }
    for (size_t i = 0; i < s->n; i++)
        s->c[i].median = median(s->c[i].ms, s->c[i].n);
    return s;
}

static void print_session(const struct session *s) {
    (void)printf("\n%s, %zu rounds, %s%.0f%s\n", s->workload->name, s->rounds,
                 s->idle_ms > 0 ? "each run after " : "back to back (", s->idle_ms,
                 s->idle_ms > 0 ? " ms idle" : " ms idle)");
    (void)printf("  %-16s %9s %9s %9s %7s   %s\n", "", "median", "fastest", "over bare", "ratio",
                 "lacks beside mayfly");
    for (size_t i = 0; i < s->n; i++) {
        const struct candidate *c = &s->c[i];
        if (c->fault[0])
            (void)printf("  %-16s does not run here: %.100s\n", c->peer->name, c->fault);
        else
            (void)printf("  %-16s %6.2f ms %6.2f ms %6.2f ms %6.2fx   %s\n", c->peer->name,
                         c->median, c->ms[0], c->median - s->c[0].median,
                         c->median / s->c[0].median, c->peer->lacks);
    }
}

/* ------------------------------------------------------------------ many at once, and memory */

struct load {
    unsigned at_once;
    double per_second;
    long peak_kib; /* of the largest mayfly */
};

/* Keeps `at_once` runs going until `total` are done. */
static struct load run_load(unsigned at_once, unsigned total) {
    struct candidate c = {.peer = &peers[1]};
    struct load load = {.at_once = at_once};
    struct rusage usage;
    unsigned started = 0, ended = 0;
    int status;

    fill_argv(&c, &workloads[0]);
    uint64_t begin = now_ns();
    while (ended < total) {
        while (started < total && started - ended < at_once) {
            if (start(&c, -1) < 0)
                die(c.argv[0]);
            started++;
        }
        if (wait4(-1, &status, 0, &usage) < 0)
            die("wait4");
        ended++;
        if (usage.ru_maxrss > load.peak_kib)
            load.peak_kib = usage.ru_maxrss;
    }
    load.per_second = total / ((double)(now_ns() - begin) / 1e9);
    return load;
}

/* ------------------------------------------------------------------ row by row */

/* The medians of every row of a plan. */
static void time_rows(size_t rounds, struct rows *ret) {
    struct err err = {0};
    struct policy *policy = policy_new(); /* the rows', until the end of the program */
    int r = policy ? policy_set(policy, "rootfs", rootfs, &err) : -ENOMEM;

    r = r < 0 ? r : policy_set_argv(policy, ARGS("/bin/true"), NULL, &err);
    r = r < 0 ? r : rows_plan(policy, ret, &err);
    r = r < 0 ? r : rows_measure(ret, rounds, -1, &err);
    if (r < 0) {
        (void)fprintf(stderr, "bench: %s\n", err.message);
        exit(1);
    }
}

static void print_rows(const struct rows *rows) {
    double total = 0;

    (void)printf("\nrow by row, median µs (the first pid, user rows are one clone3; apart and "
                 "outside go on at the same time)\n");
    for (size_t i = 0; i < rows->n; i++) {
        const struct row_time *row = &rows->row[i];

        (void)printf("  %8.1f  %-8s %-11s %.90s\n", row->us, stage_name(row->op->stage),
                     control_id_name(row->op->control), row->call);
        total += row->us;
    }
    (void)printf("  %8.1f  all rows together\n", total);
}

/* ------------------------------------------------------------------ json */

static void json_text(FILE *f, const char *text) {
    (void)fputc('"', f);
    for (; text && *text; text++) {
        if (*text == '"' || *text == '\\')
            (void)fputc('\\', f);
        if ((unsigned char)*text >= ' ')
            (void)fputc(*text, f);
    }
    (void)fputc('"', f);
}

static void write_json(const char *path, struct session *const *sessions, size_t n_sessions,
                       const struct load *loads, size_t n_loads, const struct rows *rows) {
    FILE *f = fopen(path, "we");

    if (!f)
        die(path);
    (void)fprintf(f, "{\"sessions\":[");
    for (size_t k = 0; k < n_sessions; k++) {
        const struct session *s = sessions[k];
        (void)fprintf(f, "%s{\"workload\":", k ? "," : "");
        json_text(f, s->workload->name);
        (void)fprintf(f, ",\"idleMs\":%.0f,\"rounds\":%zu,\"candidates\":[", s->idle_ms, s->rounds);
        for (size_t i = 0; i < s->n; i++) {
            const struct candidate *c = &s->c[i];
            (void)fprintf(f, "%s{\"name\":\"%s\",\"lacks\":", i ? "," : "", c->peer->name);
            json_text(f, c->peer->lacks);
            if (c->fault[0]) {
                (void)fprintf(f, ",\"fault\":");
                json_text(f, c->fault);
                (void)fputc('}', f);
            } else {
                (void)fprintf(f, ",\"medianMs\":%.3f,\"fastestMs\":%.3f,\"ratio\":%.3f}", c->median,
                              c->ms[0], c->median / s->c[0].median);
            }
        }
        (void)fprintf(f, "]}");
    }
    (void)fprintf(f, "],\"throughput\":[");
    for (size_t i = 0; i < n_loads; i++)
        (void)fprintf(f, "%s{\"atOnce\":%u,\"perSecond\":%.1f,\"peakRssKib\":%ld}", i ? "," : "",
                      loads[i].at_once, loads[i].per_second, loads[i].peak_kib);
    (void)fprintf(f, "],\"rows\":[");
    for (size_t i = 0; i < rows->n; i++) {
        const struct row_time *row = &rows->row[i];

        (void)fprintf(f,
                      "%s{\"stage\":\"%s\",\"control\":\"%s\",\"us\":%.1f,\"call\":", i ? "," : "",
                      stage_name(row->op->stage), control_id_name(row->op->control), row->us);
        json_text(f, row->call);
        (void)fputc('}', f);
    }
    (void)fprintf(f, "]}\n");
    if (fclose(f) != 0)
        die(path);
}

/* ------------------------------------------------------------------ */

static const char *needed(const char *name) {
    const char *value = getenv(name);

    if (value && *value)
        return value;
    (void)fprintf(stderr, "bench: %s is not set; run it with `make bench`\n", name);
    exit(2);
}

int main(int argc, char **argv) {
    static const unsigned at_once[] = {1, 2, 4, 8};
    struct session *sessions[4];
    struct load loads[ARRAY_LEN(at_once)];
    struct rows rows;
    const char *json = NULL;
    size_t rounds = 200, n_sessions = 0, n_loads = 0;
    double idle_ms = 40;
    bool rows_only = false;

    for (int i = 1; i < argc; i++) {
        bool value = i + 1 < argc;
        if (strcmp(argv[i], "--rows-only") == 0)
            rows_only = true;
        else if (strcmp(argv[i], "--json") == 0 && value)
            json = argv[++i];
        else if (strcmp(argv[i], "--idle") == 0 && value)
            idle_ms = strtod(argv[++i], NULL);
        else if (strcmp(argv[i], "--rounds") == 0 && value)
            rounds = (size_t)strtoul(argv[++i], NULL, 10);
        else
            rounds = 0;
    }
    if (rounds == 0 || rounds > MAX_ROUNDS) {
        (void)fprintf(stderr,
                      "usage: bench [--rounds 1…%d] [--idle MS] [--json FILE] "
                      "[--rows-only]\n",
                      MAX_ROUNDS);
        return 2;
    }
    mayfly = needed("MAYFLY_BIN");
    kernels_part = needed("MAYFLY_FLOOR");
    rootfs = needed("MAYFLY_ROOTFS");
    (void)snprintf(bundle, sizeof(bundle), "/tmp/mayfly-bench-XXXXXX");
    if (!mkdtemp(bundle))
        die(bundle);
    for (size_t w = 0; w < ARRAY_LEN(workloads) && !rows_only; w++)
        for (int idle = 0; idle < 2; idle++) {
            sessions[n_sessions] =
                run_session(&workloads[w], idle ? idle_ms : 0, idle ? (rounds + 2) / 3 : rounds);
            print_session(sessions[n_sessions++]);
        }
    if (!rows_only)
        (void)printf("\nruns of true a second, and the most memory one mayfly had\n");
    for (; n_loads < ARRAY_LEN(at_once) && !rows_only; n_loads++) {
        loads[n_loads] = run_load(at_once[n_loads], (unsigned)rounds * 2);
        (void)printf("  %u at once: %7.1f/s   %ld KiB\n", at_once[n_loads],
                     loads[n_loads].per_second, loads[n_loads].peak_kib);
    }
    time_rows(rounds, &rows);
    print_rows(&rows);
    if (json)
        write_json(json, sessions, n_sessions, loads, n_loads, &rows);
    (void)snprintf(bundle + strlen(bundle), 16, "/config.json");
    (void)unlink(bundle);
    *strrchr(bundle, '/') = '\0';
    (void)rmdir(bundle);
    return fflush(stdout) == 0 ? 0 : 1;
}
