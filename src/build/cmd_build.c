/*
 * cmd_build.c: the command build.
 *
 * What is said on the way goes to standard error, with what RUN's commands print; standard output has the image alone.
 * The exit status is 1 where a RUN failed, and 125 for everything else that went wrong.
 */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/units.h"
#include "build/build.h"
#include "fetch/commands.h"
#include "fetch/error_json.h"
#include "fetch/index.h"
#include "fetch/options.h"
#include "fetch/unpack.h"
#include "linux/host.h"
#include "mayfly.h"

#include "base/banned.h"

enum { MAX_TAGS = 32, EXIT_RUN = 1 };

struct request {
    const char *store, *file, *target, *platform, *pull, *network;
    const char *memory, *cpus, *timeout, *pids, *limits, *max_output, *max_disk, *storage;
    const char *tags[MAX_TAGS], *args[BUILD_ARGS];
    int n_tags, n_args;
    char names[MAX_TAGS][REFERENCE_SIZE]; /* the tags in full */
    char unnamed[MAX_TAGS][DIGEST_SIZE];  /* the images whose last name each was; "" */
    bool no_cache, quiet, json, no_bytecode;
};

/* ------------------------------------------------------------------ what is asked for */

static int take_tags(struct request *q, struct err *err) {
    struct reference r;

    for (int i = 0; i < q->n_tags; i++) {
        int code = reference_parse(q->tags[i], &r, err);
        if (code < 0)
            return code;
        if (r.digest[0])
            return err_set(err, ERR_USAGE, -EINVAL, "", "leave the digest out",
                           "build: --tag: a digest is what the content says, and cannot be chosen");
        (void)reference_full(&r, q->names[i]);
    }
    return 0;
}

static int take_args(const struct request *q, struct build *b, struct err *err) {
    b->build_args = json_object();
    for (int i = 0; i < q->n_args; i++) {
        const char *eq = strchr(q->args[i], '=');
        char name[256];
        size_t len = eq ? (size_t)(eq - q->args[i]) : strlen(q->args[i]);
        if (!len || len >= sizeof(name))
            return err_set(err, ERR_USAGE, -EINVAL, "", "write NAME=VALUE",
                           "build: --build-arg: \"%.60s\" names nothing", q->args[i]);
        memcpy(name, q->args[i], len);
        name[len] = '\0';
        const char *value = eq ? eq + 1 : getenv(name); /* as docker has it */
        if (value && json_object_set_new(b->build_args, name, json_string(value)) < 0)
            return err_set(err, ERR_USAGE, -EINVAL, "", NULL,
                           "build: --build-arg: %s: its value is no text in UTF-8", name);
    }
    return b->build_args ? 0 : err_oom(err);
}

static int take_epoch(struct build *b, struct err *err) {
    const char *text = getenv("SOURCE_DATE_EPOCH");
    uint64_t epoch = 0;

    b->epoch = -1;
    if (!text || !*text)
        return 0;
    if (parse_u64(text, &epoch) < 0 || epoch > UINT64_C(253402300799)) /* the year 9999's end */
        return err_set(err, ERR_USAGE, -EINVAL, "", "write seconds since 1970, or unset it",
                       "SOURCE_DATE_EPOCH: \"%.60s\" is no time", text);
    b->epoch = (int64_t)epoch;
    return 0;
}

/* More than a run has by default: what is built here is the operator's own. */
static int take_limits(const struct request *q, struct build *b, struct err *err) {
    const struct build_limit limits[] = {
        {"memory", q->memory ? q->memory : "2g"},
        {"cpus", q->cpus ? q->cpus : "2"},
        {"pids-limit", q->pids ? q->pids : "1024"},
        {"timeout", q->timeout ? q->timeout : "1h"},
        {"limits", q->limits ? q->limits : "strict"},
        {"max-output", q->max_output ? q->max_output : "16m"},
    };
    mayfly_policy *tried = mayfly_policy_new(); /* so that what is wrong is said at once */
    struct mayfly_error e = {0};
    int r = tried ? 0 : err_oom(err);

    for (size_t i = 0; i < ARRAY_LEN(limits) && r == 0; i++) {
        b->limits[b->n_limits++] = limits[i];
        if (mayfly_policy_set(tried, limits[i].field, limits[i].value, &e) < 0)
            r = err_set(err, ERR_USAGE, e.code, "", NULL, "build: %s", e.message);
    }
    mayfly_policy_free(tried);
    return r;
}

static int take_storage(const struct request *q, struct build *b, struct err *err) {
    static const char *const names[] = {"auto", "overlay", "copy"};
    const char *disk = q->max_disk ? q->max_disk : "10g",
               *storage = q->storage ? q->storage : "auto";
    size_t i = 0;

    if (parse_bytes(disk, &b->disk_limit) < 0 || !b->disk_limit)
        return err_set(err, ERR_USAGE, -EINVAL, "", "write it like 500m or 10g",
                       "build: --max-disk: \"%.40s\" is no size", disk);
    while (i < ARRAY_LEN(names) && strcmp(names[i], storage) != 0)
        i++;
    if (i == ARRAY_LEN(names))
        return err_set(err, ERR_USAGE, -EINVAL, "", "write auto, overlay or copy",
                       "build: --storage: \"%.40s\" is none of these", storage);
    b->storage = (enum build_storage)i;
    return 0;
}

static int take_request(struct request *q, struct build *b, struct err *err) {
    int r = take_tags(q, err);

    r = r < 0 ? r : take_args(q, b, err);
    r = r < 0 ? r : take_epoch(b, err);
    platform_host(&b->platform);
    if (r == 0 && q->platform) {
        struct platform wanted;
        r = platform_parse(q->platform, &wanted, err);
        if (r == 0 && platform_distance(&b->platform, &wanted) < 0)
            r = err_set(err, ERR_UNSUPPORTED, -ENOTSUP, "", "leave it out",
                        "build: --platform: this machine cannot run %.60s", q->platform);
    }
    b->network = q->network && strcmp(q->network, "host") == 0;
    if (r == 0 && q->network && !b->network && strcmp(q->network, "none") != 0)
        r = err_set(err, ERR_USAGE, -EINVAL, "", "write none, which is the default, or host",
                    "build: --network: \"%.40s\" is neither", q->network);
    r = r < 0 ? r : take_storage(q, b, err);
    if (r == 0 && q->pull && strcmp(q->pull, "missing") != 0 && strcmp(q->pull, "always") != 0 &&
        strcmp(q->pull, "never") != 0)
        r = err_set(err, ERR_USAGE, -EINVAL, "", "write missing, always or never",
                    "build: --pull: \"%.40s\" is none of these", q->pull);
    b->pull = q->pull && q->pull[0] == 'a'   ? BUILD_PULL_ALWAYS
              : q->pull && q->pull[0] == 'n' ? BUILD_PULL_NEVER
                                             : BUILD_PULL_MISSING;
    b->target = q->target;
    b->no_cache = q->no_cache;
    b->quiet = q->quiet;
    return r < 0 ? r : take_limits(q, b, err);
}

/* ------------------------------------------------------------------ the context */

static int read_dockerfile(struct build *b, const char *file, struct err *err) {
    char *text = NULL, name[40];
    size_t len = 0;
    struct err inner = {0};
    int fd = file && strcmp(file, "-") == 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
             : file                         ? open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY)
                    : source_open(&b->context, "Dockerfile", O_RDONLY, &inner);
    const char *what = !file ? "Dockerfile" : strcmp(file, "-") == 0 ? "standard input" : file;

    if (fd < 0 && inner.code)
        return err_set(err, ERR_USAGE, inner.code, "", "name it with -f", "build: %.300s",
                       inner.message);
    if (fd < 0)
        return err_errno(err, ERR_USAGE, -errno, "", NULL, "build: --file: %.200s", what);
    (void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    int r = file_read_all_at(AT_FDCWD, name, DOCKER_BYTES + 1, &text, &len);
    (void)close(fd);
    if (r < 0)
        return err_errno(err, ERR_USAGE, r, "", NULL, "build: %.200s", what);
    r = dockerfile_parse(text, len, what, &b->file, err);
    free(text);
    return r;
}

/* NAME.dockerignore of the Dockerfile's own name comes first. */
static int read_ignore(struct build *b, const char *file, struct ignore *ret, struct err *err) {
    const char *slash = file ? strrchr(file, '/') : NULL, *base = slash ? slash + 1 : file;
    char own[300], *text = NULL;
    size_t len = 0;

    (void)snprintf(own, sizeof(own), "%.250s.dockerignore", base ? base : "Dockerfile");
    const char *names[] = {own, ".dockerignore"};
    int r = -ENOENT;
    for (size_t i = 0; i < ARRAY_LEN(names) && r == -ENOENT; i++) {
        r = file_read_all_at(b->context.root, names[i], 1 << 20, &text, &len);
        if (r == 0) {
            r = ignore_parse(text, len, names[i], ret, err);
            free(text);
            b->context.ignore = ret;
            return r;
        }
        if (r != -ENOENT)
            return err_errno(err, ERR_USAGE, r, "", NULL, "build: %.200s", names[i]);
    }
    return 0;
}

static int open_context(struct build *b, const char *dir, struct err *err) {
    if (strcmp(dir, "-") == 0)
        return err_set(err, ERR_UNSUPPORTED, -ENOTSUP, "",
                       "unpack it, and name the directory; -f - reads a Dockerfile from there",
                       "build: a context on standard input is not supported");
    b->context.what = "the context";
    b->context.root = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return b->context.root < 0
               ? err_errno(err, ERR_USAGE, -errno, "",
                           "name the directory that holds what COPY takes", "build: %.200s", dir)
               : 0;
}

/* ------------------------------------------------------------------ the image */

static int name_image(struct build *b, struct request *q, const struct stage *s,
                      char digest[DIGEST_SIZE], struct err *err) {
    int64_t size = 0;
    int r = built_commit(&s->image, b->store, digest, &size, err);

    r = r < 0 ? r
              : store_unpack(b->store, digest, q->no_bytecode ? UNPACK_NO_BYTECODE : 0, NULL, err);
    if (r == 0 && q->n_tags == 0)
        r = store_tag(b->store, NULL, BUILT_MANIFEST_TYPE, digest, size, err);
    for (int i = 0; i < q->n_tags && r == 0; i++)
        r = store_name(b->store, q->names[i], BUILT_MANIFEST_TYPE, digest, size, q->unnamed[i],
                       err);
    return r;
}

static int print_image(const struct build *b, const struct request *q, const struct stage *s,
                       const char *digest) {
    size_t layers = json_array_size(s->image.layers);

    if (q->json) {
        json_t *names = json_array(), *unnamed = json_array();
        for (int i = 0; i < q->n_tags; i++) {
            (void)json_array_append_new(names, json_string(q->names[i]));
            if (q->unnamed[i][0])
                (void)json_array_append_new(unnamed, json_string(q->unnamed[i]));
        }
        json_t *o = json_pack("{ss so so sI sI sI}", "digest", digest, "names", names, "unnamed",
                              unnamed, "layers", (json_int_t)layers, "steps", (json_int_t)b->steps,
                              "cached", (json_int_t)b->cached);
        _cleanup_free_ char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;
        (void)puts(text ? text : "{}");
        json_decref(o);
    } else if (q->quiet) {
        (void)puts(digest);
    } else {
        for (int i = 0; i < MAX(q->n_tags, 1); i++) {
            (void)printf("%s %s: %zu layers, %u of %u steps cached\n",
                         q->n_tags ? q->names[i] : "(no name)", digest, layers, b->cached,
                         b->steps);
            if (q->unnamed[i][0])
                (void)printf("  " UNNAMED_NOTE "\n", q->unnamed[i]);
        }
    }
    return fflush(stdout) == 0 ? 0 : EXIT_FETCH;
}

/* For who reads JSON: what went wrong is there too. */
static void print_error(const struct err *err) {
    json_t *o = json_pack("{so}", "error", error_json(err));
    _cleanup_free_ char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;

    if (text)
        (void)puts(text);
    (void)fflush(stdout);
    json_decref(o);
}

static int make(struct build *b, struct request *q, const char *dir, struct err *err) {
    struct ignore ignore = {0};
    struct stage *stage = NULL;
    char digest[DIGEST_SIZE];
    int r = open_context(b, dir, err);

    r = r < 0 ? r : read_ignore(b, q->file, &ignore, err);
    r = r < 0 ? r : read_dockerfile(b, q->file, err);
    r = r < 0 ? r : store_open_writable(q->store, &b->store, err);
    r = r < 0 ? r : build_make(b, &stage, err);
    r = r < 0 ? r : name_image(b, q, stage, digest, err);
    if (r == 0 && print_image(b, q, stage, digest) != 0)
        r = err_errno(err, ERR_SETUP, -EIO, "", NULL, "writing to standard output");
    build_done(b);
    ignore_done(&ignore);
    fd_close(&b->context.root);
    store_close(b->store);
    return r;
}

/* A user namespace with one id, the caller's own: in it a user has root's rights over his own files, whatever mode a RUN
 * gave them. Where there is none to be had there is no box either, which says more of it. */
static int own_namespace(struct err *err) {
    unsigned uid = geteuid(), gid = getegid();
    char uids[40], gids[40];

    (void)snprintf(uids, sizeof(uids), "%u %u 1", uid, uid);
    (void)snprintf(gids, sizeof(gids), "%u %u 1", gid, gid);
    if (unshare(CLONE_NEWUSER) < 0)
        return 0;
    int r = file_write_at(AT_FDCWD, "/proc/self/setgroups", "deny", 4);
    r = r < 0 && r != -ENOENT ? r
                              : file_write_at(AT_FDCWD, "/proc/self/uid_map", uids, strlen(uids));
    r = r < 0 ? r : file_write_at(AT_FDCWD, "/proc/self/gid_map", gids, strlen(gids));
    return r < 0 ? err_errno(err, ERR_SETUP, r, "user", NULL, "build: a user namespace") : 0;
}

/* As a user, what limits take is asked of systemd, as for any run; and the box's ids are one, the caller's own, whose
 * files the work tree's are: newuidmap is not to be used, which no_new_privs sees to. What mayfly_delegate has found of
 * the host was true before both; believed any longer, it would have each RUN fail on newuidmap. */
static int prepare(struct err *err) {
    (void)setlocale(LC_CTYPE, "C.UTF-8"); /* or libarchive finds no text in names that are UTF-8 */
    if (geteuid() == 0)
        return 0;
    (void)mayfly_delegate(NULL, NULL, NULL);
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    int r = own_namespace(err);
    host_forget();
    return r;
}

int fetch_build(int argc, char **argv) {
    struct request *q = calloc(1, sizeof(*q));
    struct build *b = calloc(1, sizeof(*b));
    struct err err = {0};

    if (!q || !b) {
        free(q);
        free(b);
        (void)err_oom(&err);
        return complain_of(&err);
    }
    const struct option_row rows[] = {{"--store", 0, NULL, &q->store},
                                      {"--file", 'f', NULL, &q->file},
                                      {"--target", 0, NULL, &q->target},
                                      {"--platform", 0, NULL, &q->platform},
                                      {"--pull", 0, NULL, &q->pull},
                                      {"--network", 0, NULL, &q->network},
                                      {"--memory", 'm', NULL, &q->memory},
                                      {"--cpus", 0, NULL, &q->cpus},
                                      {"--timeout", 0, NULL, &q->timeout},
                                      {"--pids-limit", 0, NULL, &q->pids},
                                      {"--limits", 0, NULL, &q->limits},
                                      {"--max-output", 0, NULL, &q->max_output},
                                      {"--max-disk", 0, NULL, &q->max_disk},
                                      {"--storage", 0, NULL, &q->storage},
                                      {"--no-cache", 0, &q->no_cache, NULL},
                                      {"--quiet", 'q', &q->quiet, NULL},
                                      {"--json", 0, &q->json, NULL},
                                      {"--no-bytecode", 0, &q->no_bytecode, NULL},
                                      {0}};
    const struct option_list lists[] = {{"--tag", 't', q->tags, &q->n_tags, MAX_TAGS},
                                        {"--build-arg", 0, q->args, &q->n_args, BUILD_ARGS},
                                        {0}};
    b->context.root = -1;
    int n = options_take_lists(argc, argv, rows, lists, &err), r = n < 0 ? n : 0;

    if (r == 0 && n != 1)
        r = err_set(&err, ERR_USAGE, -EINVAL, "", NULL,
                    n ? "build: one directory at a time"
                      : "build: from what? name the directory of the Dockerfile, such as .");
    r = r < 0 ? r : take_request(q, b, &err);
    if (r == 0) {
        r = prepare(&err);
        r = r < 0 ? r : make(b, q, argv[0], &err);
    } else {
        json_decref(b->build_args);
    }
    int status = r == 0 ? 0 : complain_of(&err);
    if (r < 0 && q->json)
        print_error(&err);
    if (b->run_status)
        status = EXIT_RUN;
    if (b->signal) {
        (void)signal(b->signal, SIG_DFL);
        (void)raise(b->signal);
    }
    free(q);
    free(b);
    return status;
}
