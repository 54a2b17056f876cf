/*
 * options.c: see options.h.
 */
#include "lab/options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/units.h"
#include "lab/families.h"

#include "base/banned.h"

enum { JOBS_MAX = 64 };

static int usage(struct err *err, const char *flag, const char *why) {
    return err_set(err, ERR_USAGE, -EINVAL, "", "see mayfly help lab", "%.64s: %s", flag, why);
}

/* ------------------------------------------------------------------ lists of names */

typedef int take_fn(struct options *o, const char *name, struct err *err);

/* Between commas. */
static int each_name(struct options *o, const char *list, take_fn *take, struct err *err) {
    char name[64];
    int r = 0;

    if (!list[strspn(list, ",")])
        return err_set(err, ERR_USAGE, -EINVAL, "", "leave it out for all", "\"%s\" names nothing",
                       list);

    for (const char *p = list; r == 0 && *p;) {
        size_t n = strcspn(p, ",");
        (void)snprintf(name, sizeof(name), "%.*s", (int)MIN(n, sizeof(name) - 1), p);
        if (n)
            r = take(o, name, err);
        p += n + (p[n] == ',');
    }
    return r;
}

static bool is_chosen(const struct question *q, const struct probe *p) {
    for (size_t i = 0; i < q->n_probes; i++)
        if (q->probe[i] == p)
            return true;
    return false;
}

static bool add_probe(struct question *q, const struct probe *p) {
    if (is_chosen(q, p))
        return true;
    if (q->n_probes == PROBES_MAX)
        return false;
    q->probe[q->n_probes++] = p;
    return true;
}

static int no_such_probe(const char *name, struct err *err) {
    return err_set(err, ERR_USAGE, -EINVAL, "", "`mayfly lab explain` lists them",
                   "--probe: no probe %s", name);
}

static int take_probe(struct options *o, const char *name, struct err *err) {
    const struct probe *p = probe_find(name);

    if (!p)
        return no_such_probe(name, err);
    return add_probe(&o->question, p) ? 0 : err_oom(err);
}

static int take_family(struct options *o, const char *name, struct err *err) {
    struct buf known _cleanup_buf_ = {0};
    bool some = false;

    for (const struct probe *const *family = probe_families; *family; family++)
        for (const struct probe *p = *family; p->id; p++)
            if (strcmp(p->family, name) == 0)
                some = add_probe(&o->question, p);
    if (some)
        return 0;
    for (size_t i = 0; lab_families[i].name; i++)
        buf_printf(&known, " %s", lab_families[i].name);
    return err_set(err, ERR_USAGE, -EINVAL, "", NULL, "--family: no family %s; there are%s", name,
                   known.data ? known.data : "");
}

static int take_control(struct options *o, const char *name, struct err *err) {
    struct buf known _cleanup_buf_ = {0};
    uint64_t set = strchr(name, ' ') ? 0 : controls_of(name);

    o->question.controls |= set;
    if (set)
        return 0;
    controls_print(UINT64_MAX, " ", &known);
    return err_set(err, ERR_USAGE, -EINVAL, "", NULL, "no control %s; there are %s", name,
                   known.data ? known.data : "");
}

/* ------------------------------------------------------------------ the table */

static int set_probe(struct options *o, const char *v, struct err *err) {
    return each_name(o, v, take_probe, err);
}
static int set_family(struct options *o, const char *v, struct err *err) {
    return each_name(o, v, take_family, err);
}
static int set_control(struct options *o, const char *v, struct err *err) {
    return each_name(o, v, take_control, err);
}
static int take_lacked(struct options *o, const char *name, struct err *err) {
    uint64_t others = o->question.controls;

    o->question.controls = 0;
    int r = take_control(o, name, err);
    o->question.lacks |= o->question.controls;
    o->question.controls = others;
    return r;
}
static int set_lacks(struct options *o, const char *v, struct err *err) {
    o->question.lacking = true;
    return strcmp(v, "-") == 0 ? 0 : each_name(o, v, take_lacked, err);
}
static int set_check(struct options *o, const char *v UNUSED, struct err *err UNUSED) {
    o->check = true;
    return 0;
}
static int set_json(struct options *o, const char *v, struct err *err UNUSED) {
    o->json = v;
    return 0;
}
static int set_html(struct options *o, const char *v, struct err *err UNUSED) {
    o->html = v;
    return 0;
}
static int set_markdown(struct options *o, const char *v, struct err *err UNUSED) {
    o->markdown = v;
    return 0;
}
static int set_from(struct options *o, const char *v, struct err *err UNUSED) {
    o->from = v;
    return 0;
}
static int set_peers(struct options *o, const char *v, struct err *err UNUSED) {
    o->question.peers = v;
    return 0;
}
static int set_where(struct options *o, const char *v, struct err *err) {
    if (strcmp(v, "box") != 0 && strcmp(v, "kernel") != 0 && strcmp(v, "host") != 0)
        return usage(err, "--where", "it takes box, kernel or host");
    o->question.where = v;
    return 0;
}
static int set_jobs(struct options *o, const char *v, struct err *err) {
    uint32_t jobs = 0;

    if (parse_u32(v, &jobs) < 0 || jobs < 1 || jobs > JOBS_MAX)
        return usage(err, "--jobs", "it takes a number from 1 to 64");
    o->question.jobs = jobs;
    return 0;
}
static int set_rootfs(struct options *o, const char *v, struct err *err UNUSED) {
    o->question.rootfs = v;
    return 0;
}
static int set_no_price(struct options *o, const char *v UNUSED, struct err *err UNUSED) {
    o->question.no_price = true;
    return 0;
}
static int set_quiet(struct options *o, const char *v UNUSED, struct err *err UNUSED) {
    o->question.quiet = true;
    return 0;
}
static int set_help(struct options *o, const char *v UNUSED, struct err *err UNUSED) {
    o->help = true;
    return 0;
}

static const struct flag {
    const char *name, *metavar; /* metavar NULL: a switch; in brackets: it may be left out */
    int (*set)(struct options *, const char *value, struct err *);
    const char *help;
} flags[] = {
    {"--probe", "IDS", set_probe, "these probes only: FS1,NS3 (all)"},
    {"--family", "NAMES", set_family, "the probes of these families, too: files,sockets (all)"},
    {"--control", "NAMES", set_control, "these controls only: net,user (all)"},
    {"--lacks", "[NAMES]", set_lacks,
     "only what gets through without these (without what this host lacks)"},
    {"--check", NULL, set_check, "exit with 1 where something is not as the table of probes says"},
    {"--json", "[FILE]", set_json, "all that was found, as mayfly-lab(5) says (standard output)"},
    {"--html", "FILE", set_html, "a page that needs no network"},
    {"--markdown", "FILE", set_markdown, "tables for a text"},
    {"--from", "FILE", set_from, "show what --json saved, and try nothing"},
    {"--with", "PEERS", set_peers,
     "try the same probes inside bwrap,crun,runc,runsc,podman,docker,firejail"},
    {"--where", "PLACE", set_where,
     "box, around the lab's boxes; kernel, a user-mode one; host, the bare one (box)"},
    {"--jobs", "N", set_jobs, "attempts at a time (one a CPU)"},
    {"--rootfs", "DIR", set_rootfs, "of the boxes (MAYFLY_ROOTFS, or one at the usual places)"},
    {"--no-price", NULL, set_no_price, "do not measure what each control costs"},
    {"--quiet", NULL, set_quiet, "no progress"},
    {"--help", NULL, set_help, "this"},
};

void options_help(FILE *to) {
    (void)fputs(
        "mayfly lab [FLAGS]\n"
        "mayfly lab explain CONTROL|PROBE\n"
        "mayfly lab trace [FLAGS] -- COMMAND…\n\n"
        "Tries known attacks with everything on, with everything off, with each control off "
        "and with each\nalone on, and shows what each control really stops. Then what it "
        "costs.\n\n",
        to);
    for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
        char left[40];
        (void)snprintf(left, sizeof(left), "%s %s", flags[i].name,
                       flags[i].metavar ? flags[i].metavar : "");
        (void)fprintf(to, "      %-20s %s\n", left, flags[i].help);
    }
    (void)fputs("\nExit status: 0; 1 where --check finds a fault; 125 where the lab could not be "
                "run.\n",
                to);
}

/* ------------------------------------------------------------------ parsing */

static const struct flag *find_flag(const char *word) {
    size_t n = strcspn(word, "=");

    if (strcmp(word, "-h") == 0)
        word = "--help", n = 6;
    for (size_t i = 0; i < ARRAY_LEN(flags); i++)
        if (strlen(flags[i].name) == n && strncmp(flags[i].name, word, n) == 0)
            return &flags[i];
    return NULL;
}

static int parse_one(struct options *o, int argc, char **argv, int *i, struct err *err) {
    const char *word = argv[*i], *value = strchr(word, '=');
    const struct flag *f = find_flag(word);

    if (!f)
        return usage(err, word, word[0] == '-' ? "no such flag" : "it takes no words but flags");
    if (!f->metavar && value)
        return usage(err, f->name, "it takes no value");
    if (!f->metavar)
        return f->set(o, NULL, err);
    if (value)
        value++;
    else if (*i + 1 < argc && (argv[*i + 1][0] != '-' || strcmp(argv[*i + 1], "-") == 0))
        value = argv[++*i];
    else if (f->metavar[0] == '[')
        value = "-";
    if (!value || !*value)
        return usage(err, f->name, "it takes a value");
    return f->set(o, value, err);
}

/* What would be passed over in silence. */
static int find_contradiction(const struct options *o, struct err *err) {
    const struct question *q = &o->question;

    if (o->from && (q->n_probes || q->controls || q->lacking || q->peers || q->jobs || q->where))
        return usage(err, "--from",
                     "it shows what was found, and no probe, control, peer or place "
                     "can be chosen any more");
    if (q->lacking && (q->controls || q->peers))
        return usage(err, "--lacks",
                     "it asks what gets through without some controls: neither "
                     "--control nor --with goes with it");
    return 0;
}

/* In the table's order, whatever they were named in; none named: all. */
static void sort_probes(struct question *q) {
    const struct question named = *q;

    q->n_probes = 0;
    for (const struct probe *const *family = probe_families; *family; family++)
        for (const struct probe *p = *family; p->id; p++)
            if (named.n_probes == 0 || is_chosen(&named, p))
                (void)add_probe(q, p);
}

int options_parse(struct options *o, int argc, char **argv, struct err *err) {
    int r = 0;

    *o = (struct options){0};
    for (int i = 1; r == 0 && i < argc && !o->help; i++)
        r = parse_one(o, argc, argv, &i, err);
    if (r == 0 && !o->help)
        r = find_contradiction(o, err);
    if (!o->question.where)
        o->question.where = "box";
    if (r == 0)
        sort_probes(&o->question);
    return r;
}

/* ------------------------------------------------------------------ the root file system */

static bool try_rootfs(struct options *o, const char *path) {
    char shell[PATH_MAX];

    if (!path || !*path || !realpath(path, o->rootfs))
        return false;
    (void)snprintf(shell, sizeof(shell), "%.4000s/usr", o->rootfs);
    if (access(shell, F_OK) < 0)
        return false;
    o->question.rootfs = o->rootfs;
    return true;
}

static bool try_beside_program(struct options *o) {
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 16);

    path[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(path, '/');
    if (!slash)
        return false;
    (void)str_copy(slash, 8, "/rootfs");
    return try_rootfs(o, path);
}

int options_rootfs(struct options *o, struct err *err) {
    const char *named = o->question.rootfs, *env = getenv("MAYFLY_ROOTFS");
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    char path[PATH_MAX];

    if (!named && env && *env)
        named = env;
    if (named)
        return try_rootfs(o, named) ? 0
                                    : err_set(err, ERR_USAGE, -ENOENT, "", NULL,
                                              "rootfs %.300s: no root file system is there", named);
    (void)snprintf(path, sizeof(path), "%.2000s%s/mayfly/rootfs",
                   data && *data ? data
                   : home        ? home
                                 : "",
                   data && *data ? "" : "/.local/share");
    if (try_beside_program(o) || try_rootfs(o, path) || try_rootfs(o, "/var/lib/mayfly/rootfs"))
        return 0;
    return err_set(err, ERR_USAGE, -ENOENT, "",
                   "name a directory that holds one with Python in it: --rootfs DIR",
                   "the lab's boxes need a root file system, and none is at the usual places");
}
