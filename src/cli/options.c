/*
 * options.c: a command line as a request.
 *
 * The flags are the library's fields, so there is nothing here to keep in step;
 * what is added are the front end's own (--json, -c, …) and docker's flags that
 * a box cannot have, each refused with what to do instead.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/utf8.h"
#include "cli/cli.h"
#include "json/config_json.h"

#include "base/banned.h"

enum { MAX_CODE_BYTES = 64 << 20, MAX_POLICY_BYTES = 16 << 20, MAX_ENV_BYTES = 1 << 20 };

static const struct {
    const char *flag, *instead;
} refused[] = {
    {"--privileged",
     "a box has no privileges to give; run the command on the host if it needs them"},
    {"--cap-add", "a box never has capabilities"},
    {"--device", "a box has no devices but null, zero, full, random and urandom"},
    {"--gpus", "a box has no devices but null, zero, full, random and urandom"},
    {"--publish", "a box has no network; let the code print what it has to say"},
    {"-p", "a box has no network; let the code print what it has to say"},
    {"--tty", "a box has no terminal; -i passes standard input"},
    {"-t", "a box has no terminal; -i passes standard input"},
    {"-it", "a box has no terminal; -i alone passes standard input"},
    {"--detach", "a box lives as long as this command; put it in the background with &"},
    {"-ti", "a box has no terminal; -i alone passes standard input"},
    {"-d", "a box lives as long as this command; put it in the background with &"},
    {"--pid", "the pid namespace is always the box's own"},
    {"--ipc", "the ipc namespace is always the box's own"},
    {"--uts", "the uts namespace is always the box's own"},
    {"--userns", "the user namespace is always the box's own"},
    {"--cgroupns", "the cgroup namespace is always the box's own"},
    {"--restart", "a box runs once"},
    {"--net", "write --network none, which it always is"},
    {"--name", "a box has no name; it is gone when it ends"},
};

static int usage(struct mayfly_error *error, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static int usage(struct mayfly_error *error, const char *fmt, ...) {
    va_list ap;

    *error = (struct mayfly_error){.code = -EINVAL, .kind = MAYFLY_E_USAGE};
    va_start(ap, fmt);
    int n = vsnprintf(error->message, sizeof(error->message), fmt, ap);
    va_end(ap);
    /* Words of the command line are in it, and they can hold anything. */
    utf8_make_line(error->message, strlen(error->message), n >= (int)sizeof(error->message));
    return -EINVAL;
}

int no_such_flag(const char *flag, struct mayfly_error *error) {
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        size_t len = strlen(refused[i].flag);
        if (strncmp(flag, refused[i].flag, len) == 0 && (!flag[len] || flag[len] == '='))
            return usage(error, "%s: cannot be had; %s", refused[i].flag, refused[i].instead);
    }
    return usage(error, "%.64s: no such flag; see --help", flag);
}

/* Sets a field, and notes it where another program is to have it. */
static int set(struct request *rq, const char *name, const char *value,
               struct mayfly_error *error) {
    int r = mayfly_policy_set(rq->policy, name, value, error);

    if (r == 0 && rq->front)
        settings_add(&rq->settings, name, value);
    return r;
}

/* ------------------------------------------------------------------ where the rootfs is */

static bool try_rootfs(struct request *rq, const char *path) {
    struct mayfly_error ignored;
    char file[4200];

    if (snprintf(file, sizeof(file), "%s/usr", path) >= (int)sizeof(file) || access(file, F_OK) < 0)
        return false;
    return set(rq, "rootfs", path, &ignored) == 0;
}

int request_usual_rootfs(struct request *rq, struct mayfly_error *error) {
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    char path[4096], exe[4000];

    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    if (n > 0) {
        exe[n] = '\0';
        char *slash = strrchr(exe, '/');
        if (slash)
            *slash = '\0';
        (void)snprintf(path, sizeof(path), "%s/rootfs", exe);
        if (try_rootfs(rq, path))
            return 0;
    }
    if (data && *data)
        (void)snprintf(path, sizeof(path), "%s/mayfly/rootfs", data);
    else
        (void)snprintf(path, sizeof(path), "%s/.local/share/mayfly/rootfs", home ? home : "");
    if (try_rootfs(rq, path) || try_rootfs(rq, "/var/lib/mayfly/rootfs"))
        return 0;
    if (n < 0)
        return usage(
            error,
            "no rootfs: where the program lies, and what may be beside it, cannot be told without "
            "/proc (%s); mount -t proc proc /proc, or name a directory with --rootfs",
            errno_words(errno));
    (void)usage(error, "no root file system at the usual places");
    return -ENOENT;
}

static bool names_root(const struct request *rq) {
    return mayfly_policy_text(rq->policy, "rootfs") || mayfly_policy_text(rq->policy, "image");
}

static int take_pull(struct request *rq, const char *flag, const char *value,
                     struct mayfly_error *error) {
    static const char *const words[] = {
        [PULL_MISSING] = "missing", [PULL_ALWAYS] = "always", [PULL_NEVER] = "never"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(value, words[i]) == 0)
            return rq->pull = (enum pull)i, 0;
    return usage(error, "%s: \"%.64s\" is none of missing, always and never", flag, value);
}

/* Under what flags and a policy say: the environment, then the configuration, then what is usual. */
static int take_defaults(struct request *rq, const struct config *config,
                         struct mayfly_error *error) {
    const char *image = getenv("MAYFLY_IMAGE"), *rootfs = getenv("MAYFLY_ROOTFS");

    if (names_root(rq))
        return 0;
    if (rq->python && image && *image)
        return set(rq, "image", image, error);
    rq->env_root = rootfs && *rootfs;
    if (rq->env_root)
        return set(rq, "rootfs", rootfs, error);
    if (!rq->python)
        return 0;
    rq->default_image = !config->image[0];
    return set(rq, "image", config->image[0] ? config->image : "python:3.12-slim", error);
}

/* ------------------------------------------------------------------ files */

/* Standard input to its end. Not by way of /dev/stdin: that cannot be opened where it is a socket, and begins a file
 * anew of which something has been read. */
static int read_stdin(char **ret_text, size_t *ret_len) {
    _cleanup_buf_ struct buf text = {0};
    enum { STEP = 64 << 10 };

    for (;;) {
        char *to = buf_reserve(&text, STEP);
        if (!to)
            return -ENOMEM;
        ssize_t n = fd_read_full(STDIN_FILENO, to, STEP);
        if (n < 0)
            return (int)n;
        text.len += (size_t)n;
        if (text.len > MAX_CODE_BYTES)
            return -EFBIG;
        if (n < STEP)
            break;
    }
    *ret_len = text.len;
    *ret_text = buf_take(&text);
    return *ret_text ? 0 : -ENOMEM;
}

static int read_code(struct request *rq, const char *path, struct mayfly_error *error) {
    bool from_stdin = strcmp(path, "-") == 0;
    int r = from_stdin ? read_stdin(&rq->code, &rq->code_len)
                       : file_read_all_at(AT_FDCWD, path, MAX_CODE_BYTES, &rq->code, &rq->code_len);

    if (r == -EFBIG)
        return usage(
            error,
            "%s: code of more than 64 MiB, the most that is taken; hand it in with --volume and "
            "name it there: mayfly run … python3 -I /mnt/FILE",
            from_stdin ? "standard input" : path);
    if (r < 0)
        return usage(error, "%s: %s", from_stdin ? "standard input" : path, errno_words(r));
    return 0;
}

/* A file of settings. */
static int read_settings(const char *flag, const char *path, size_t most, char **ret_text,
                         size_t *ret_len, struct mayfly_error *error) {
    int r = file_read_all_at(AT_FDCWD, path, most, ret_text, ret_len);

    if (r == -EFBIG)
        return usage(error, "%s: %s: is over %zu MiB, the most that is taken", flag, path,
                     most >> 20);
    return r < 0 ? usage(error, "%s: %s: %s", flag, path, errno_words(r)) : 0;
}

/* "policy: memory: …" as "--policy: FILE: memory: …". */
static int in_file(const char *path, int code, struct mayfly_error *error) {
    char text[sizeof(error->message)];
    const char *what = text;

    (void)snprintf(text, sizeof(text), "%s", error->message);
    if (strncmp(text, "policy: ", 8) == 0)
        what += 8;
    (void)snprintf(error->message, sizeof(error->message), "--policy: %.200s: %.250s", path, what);
    return code;
}

static int read_policy(struct request *rq, const char *path, struct mayfly_error *error) {
    char *text = NULL;
    size_t len = 0;
    int r = read_settings("--policy", path, MAX_POLICY_BYTES, &text, &len, error);

    if (r < 0)
        return r;
    r = mayfly_policy_json(rq->policy, text, len, error);
    if (r == 0 && rq->front)
        settings_add_policy(&rq->settings, text);
    free(text);
    return r < 0 ? in_file(path, r, error) : 0;
}

static int set_env(struct request *rq, const char *value, struct mayfly_error *error);

/* Lines of NAME=VALUE, or NAME for the caller's value, as docker has them; blank ones and comments. */
static int read_env_file(struct request *rq, const char *path, struct mayfly_error *error) {
    char *text = NULL, *save = NULL;
    size_t len = 0;
    int r = read_settings("--env-file", path, MAX_ENV_BYTES, &text, &len, error);

    if (r < 0)
        return r;
    if (strlen(text) != len)
        r = usage(error, "--env-file: %s: holds a NUL byte", path);
    for (char *line = strtok_r(text, "\n", &save); line && r == 0;
         line = strtok_r(NULL, "\n", &save)) {
        line += strspn(line, " \t");
        line[strcspn(line, "\r")] = '\0';
        if (*line && *line != '#')
            r = set_env(rq, line, error);
    }
    free(text);
    return r;
}

/* -e NAME takes the caller's value; unset, it is left out, as docker does. */
static int set_env(struct request *rq, const char *value, struct mayfly_error *error) {
    _cleanup_buf_ struct buf entry = {0};
    const char *own;

    if (!*value || strchr(value, '='))
        return set(rq, "env", value, error);
    own = getenv(value);
    if (!own)
        return 0;
    buf_printf(&entry, "%s=%s", value, own);
    if (entry.failed)
        return usage(error, "out of memory");
    return set(rq, "env", entry.data, error);
}

/* ------------------------------------------------------------------ flags */

static bool find_field(const char *flag, size_t len, struct mayfly_field *ret) {
    for (size_t i = 0; mayfly_policy_field(i, ret) == 0; i++) {
        if (ret->flag && strlen(ret->flag) == len && strncmp(ret->flag, flag, len) == 0)
            return true;
        if (ret->letter && len == 2 && flag[0] == '-' && flag[1] == ret->letter)
            return true;
    }
    return false;
}

/* A policy's file lies under all flags, wherever among them it is named: it is read first. */
enum pass { PASS_POLICY, PASS_FLAGS };

static int set_field(struct request *rq, const struct mayfly_field *f, const char *value,
                     struct mayfly_error *error) {
    if (strcmp(f->name, "env") == 0)
        return set_env(rq, value, error);
    if (strcmp(f->name, "interactive") == 0)
        rq->keep_stdin = strcmp(value, "false") != 0;
    return set(rq, f->name, value, error);
}

/* Flags of the front end's own that take a value. */
static int own_flag(struct request *rq, enum pass pass, const char *flag, size_t len,
                    const char *value, struct mayfly_error *error) {
#define IS(word) (len == sizeof(word) - 1 && strncmp(flag, word, len) == 0)
    if (IS("--policy")) {
        if (!value)
            return usage(error, "--policy: wants a FILE");
        return pass == PASS_POLICY ? read_policy(rq, value, error) : 0;
    }
    if (IS("--env-file")) {
        if (!value)
            return usage(error, "--env-file: wants a FILE");
        return pass == PASS_FLAGS ? read_env_file(rq, value, error) : 0;
    }
    if (IS("--pull")) {
        if (!value)
            return usage(error, "--pull: wants missing, always or never");
        rq->pull_given = true;
        return pass == PASS_FLAGS ? take_pull(rq, "--pull", value, error) : 0;
    }
    const struct {
        const char *flag, **to;
    } logs[] = {{"--log", &rq->log_target},
                {"--log-code", &rq->log_code},
                {"--log-size", &rq->log_size},
                {"--log-keep", &rq->log_keep}};
    for (size_t i = 0; !rq->front && i < sizeof(logs) / sizeof(logs[0]); i++) {
        if (strlen(logs[i].flag) != len || strncmp(flag, logs[i].flag, len) != 0)
            continue;
        if (!value || !*value || strlen(value) > 4000)
            return usage(error, "%s: wants a value", logs[i].flag);
        *logs[i].to = value;
        return rq->log = true, 0;
    }
    if (IS("-c") && rq->python && !rq->front) {
        if (!value)
            return usage(error, "-c: wants the code");
        free(rq->code);
        rq->code = strdup(value);
        rq->code_len = strlen(value);
        return rq->code ? 0 : usage(error, "out of memory");
    }
#undef IS
    return 1;
}

static bool own_switch(struct request *rq, const char *flag) {
    if (strcmp(flag, "--json") == 0 && !rq->front)
        rq->json = true;
    else if (strcmp(flag, "--stats") == 0 && !rq->front)
        rq->stats = true;
    else if (strcmp(flag, "--log") == 0 && !rq->front) /* --log=FILE has a value */
        rq->log = true;
    else if (strcmp(flag, "--help") == 0 || strcmp(flag, "-h") == 0)
        rq->help = true;
    else
        return strcmp(flag, "--rm") == 0 || strcmp(flag, "--init") == 0; /* always so */
    return true;
}

/* A flag of the command's own at argv[*i], handed on with its value; 1: it is none. */
static int front_flag(struct request *rq, enum pass pass, int argc, char **argv, int *i,
                      struct mayfly_error *error) {
    const char *word = argv[*i], *eq = strchr(word, '=');
    size_t len = eq ? (size_t)(eq - word) : strlen(word);
    const struct front_flag *f = rq->front;

    while (f && f->flag && (strlen(f->flag) != len || strncmp(f->flag, word, len) != 0))
        f++;
    if (!f || !f->flag)
        return 1;
    bool optional = f->metavar && strncmp(f->metavar, "[=", 2) == 0;
    if (f->metavar ? !eq && !optional && *i + 1 >= argc : eq != NULL)
        return usage(error, "%s: wants %s", f->flag, f->metavar ? f->metavar : "no value");
    if (f->metavar && !eq && !optional)
        ++*i;
    if (pass == PASS_POLICY)
        return 0;
    if (rq->n_words + 2 > FRONT_WORDS)
        return usage(error, "%s: too many flags", f->flag);
    rq->words[rq->n_words++] = f->flag;
    if (f->metavar)
        rq->words[rq->n_words++] = eq ? eq + 1 : optional ? "" : argv[*i];
    return 0;
}

/* One flag at argv[*i]; moves *i on over its value. */
static int one_flag(struct request *rq, enum pass pass, int argc, char **argv, int *i,
                    struct mayfly_error *error) {
    const char *flag = argv[*i];
    bool is_long = flag[1] == '-';
    const char *eq = is_long ? strchr(flag, '=') : NULL;
    size_t len = eq ? (size_t)(eq - flag) : is_long ? strlen(flag) : 2;
    const char *value = eq ? eq + 1 : !is_long && flag[2] ? flag + 2 : NULL;
    struct mayfly_field f;

    if (own_switch(rq, flag))
        return 0;
    int front = front_flag(rq, pass, argc, argv, i, error);
    if (front != 1)
        return front;
    if (find_field(flag, len, &f)) {
        if (f.is_switch && !is_long && value)
            return no_such_flag(flag, error); /* -it and the like */
        if (f.is_switch && !value)
            value = "true";
        if (!value && *i + 1 >= argc)
            return usage(error, "%.*s: wants %s", (int)len, flag, f.metavar);
        if (!value)
            value = argv[++*i];
        return pass == PASS_FLAGS ? set_field(rq, &f, value, error) : 0;
    }
    const char *next = value ? value : *i + 1 < argc ? argv[*i + 1] : NULL;
    int r = own_flag(rq, pass, flag, len, next, error);
    if (r == 1)
        return no_such_flag(flag, error);
    if (!value)
        ++*i;
    return r;
}

/* ------------------------------------------------------------------ the whole line */

static int python_rest(struct request *rq, int argc, char **argv, int i,
                       struct mayfly_error *error) {
    if (!rq->code) {
        if (i >= argc)
            return usage(error, "python: what to run? -c CODE, a FILE, or - for standard input");
        int r = read_code(rq, argv[i], error);
        if (r < 0)
            return r;
        i++;
    }
    return mayfly_policy_python(rq->policy, (const char *const *)(uintptr_t)(argv + i), error);
}

static int run_rest(struct request *rq, int argc, char **argv, int i, struct mayfly_error *error) {
    if (!names_root(rq)) {
        if (i >= argc)
            return usage(error, "run: what? IMAGE [COMMAND…], or --rootfs DIR COMMAND…");
        int r = mayfly_policy_set(rq->policy, "image", argv[i++], error);
        if (r < 0)
            return r;
    }
    if (i < argc)
        rq->command = (const char *const *)(uintptr_t)(argv + i);
    if (i < argc)
        return mayfly_policy_command(rq->policy, (const char *const *)(uintptr_t)(argv + i), error);
    return mayfly_policy_text(rq->policy, "image") ? 0 : usage(error, "run: no command to run");
}

/* Takes the flags from argv[1] on; *ret_rest is the first word after them. */
static int take_flags(struct request *rq, enum pass pass, int argc, char **argv, int *ret_rest,
                      struct mayfly_error *error) {
    int i = 1;

    while (i < argc && argv[i][0] == '-' && argv[i][1]) {
        bool end = strcmp(argv[i], "--") == 0,
             code = rq->python && !rq->front && strncmp(argv[i], "-c", 2) == 0;
        int r = end ? 0 : one_flag(rq, pass, argc, argv, &i, error);

        if (r < 0)
            return r;
        i++;
        if (end || code || rq->help) /* like Python's own, -c ends the flags */
            break;
    }
    *ret_rest = i;
    return 0;
}

/* After a front's flags: nothing, or the one word that it takes. */
static int front_rest(struct request *rq, int argc, char **argv, int i,
                      struct mayfly_error *error) {
    const struct front_flag *f = rq->front;

    while (f->flag && strcmp(f->flag, FRONT_WORD) != 0)
        f++;
    if (!f->flag)
        return i < argc ? usage(error, "%.64s: only flags are wanted; see --help", argv[i]) : 0;
    if (i + 1 != argc)
        return usage(error, "wants one %s, %s", f->metavar,
                     i < argc ? "after the flags, and quoted where it has spaces"
                              : "and there is none; see --help");
    if (rq->n_words + 2 > FRONT_WORDS)
        return usage(error, "too many flags");
    rq->words[rq->n_words++] = "--question";
    rq->words[rq->n_words++] = argv[i];
    return 0;
}

/* Is a fault to be told as JSON, though the flag that says so may come after the one at fault? */
static bool wants_json(int argc, char **argv) {
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0 && strncmp(argv[i], "-c", 2) != 0; i++)
        if (strcmp(argv[i], "--json") == 0)
            return true;
    return false;
}

static int parse(struct request *rq, int argc, char **argv, struct mayfly_error *error) {
    int i = 1;

    if (!rq->policy)
        return usage(error, "out of memory");
    int r = take_flags(rq, PASS_POLICY, argc, argv, &i, error);
    if (r == 0 && !rq->help)
        r = take_flags(rq, PASS_FLAGS, argc, argv, &i, error);
    if (r < 0)
        rq->json = rq->json || wants_json(argc, argv);
    if (r < 0 || rq->help)
        return r;
    struct config config;
    r = config_read(&config, error);
    if (r == 0 && config.store[0] && !mayfly_policy_text(rq->policy, "store") &&
        !getenv("MAYFLY_STORE"))
        r = set(rq, "store", config.store, error);
    if (r == 0 && config.pull[0] && !rq->pull_given)
        r = take_pull(rq, "the configuration's pull", config.pull, error);
    r = r < 0 ? r : take_defaults(rq, &config, error);
    if (r < 0)
        return r;
    const char *out = mayfly_policy_text(rq->policy, "out");
    if (out && strcmp(out, "-") == 0 && !rq->json && !rq->front) /* a tool's result has a reader */
        return usage(error,
                     "--out: - puts the files into the result, which is printed with --json; "
                     "name a directory, or add --json");
    if (rq->front)
        return front_rest(rq, argc, argv, i, error);
    return rq->python ? python_rest(rq, argc, argv, i, error) : run_rest(rq, argc, argv, i, error);
}

int request_parse(struct request *rq, int argc, char **argv, struct mayfly_error *error) {
    *rq = (struct request){.policy = mayfly_policy_new(), .python = strcmp(argv[0], "python") == 0};
    return parse(rq, argc, argv, error);
}

int request_parse_front(struct request *rq, int argc, char **argv, const struct front_flag *front,
                        struct mayfly_error *error) {
    *rq = (struct request){.policy = mayfly_policy_new(), .python = true, .front = front};
    return parse(rq, argc, argv, error);
}

void request_done(struct request *rq) {
    mayfly_policy_free(rq->policy);
    free(rq->code);
    settings_done(&rq->settings);
    *rq = (struct request){0};
}
