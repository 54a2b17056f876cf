/*
 * run.c: RUN: a command in a box whose root is the work tree.
 *
 * The box is the one every run has, with two differences, which the policy's field `build` makes: what is written to the
 * root stays, and uid 0 has the rights over files that installing takes. Nothing of the context or the host is in it,
 * and there is no network, unless --network=host was asked for on the command line.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/units.h"
#include "build/build.h"
#include "build/names.h"
#include "build/quota.h"
#include "lib/building.h"
#include "mayfly.h"

#include "base/banned.h"

struct run {
    json_t *argv, *env; /* lists */
    const char
        *script; /* a here-document that names its interpreter, and is all of the command; NULL */
    const char *user, *workdir;
    bool network;
    int line;
};

/* ------------------------------------------------------------------ what is run */

/* A here-document that is all of the line is the script itself. */
static bool is_whole(const struct docker_line *l) {
    return l->n_heredocs == 1 && strncmp(l->text, "<<", 2) == 0 && !strpbrk(l->text, " \t");
}

/* The shell's argument: the line, and behind it its here-documents as the shell reads them. */
static const char *shell_text(const struct stage *s, const struct docker_line *l, struct err *err) {
    _cleanup_buf_ struct buf text = {0};
    bool whole = is_whole(l);

    if (!whole)
        buf_puts(&text, l->text);
    for (size_t i = 0; i < l->n_heredocs; i++)
        buf_printf(&text, "%s%s%s", whole ? "" : "\n", l->heredocs[i].body,
                   whole ? "" : l->heredocs[i].name);
    const char *ret =
        text.failed ? NULL : arena_strndup(&s->build->arena, text.data ? text.data : "", text.len);
    if (!ret)
        (void)err_oom(err);
    return ret;
}

static json_t *argv_of(const struct stage *s, const struct docker_line *l, struct err *err) {
    json_t *argv;

    if (l->json) {
        argv = l->json[0] ? built_list(l->json) : NULL;
        if (!argv)
            (void)docker_refuse(&s->build->file, l, err, NULL, "names no command");
        return argv;
    }
    const char *text = shell_text(s, l, err);
    argv = text ? built_list(s->shell) : NULL;
    if (argv && json_array_append_new(argv, json_string(text)) < 0) {
        json_decref(argv);
        argv = NULL;
    }
    if (!argv && !err->code)
        (void)err_oom(err);
    return argv;
}

/* ARG's values, and ENV's over them. */
static json_t *env_of(const struct stage *s) {
    json_t *list = json_array(), *e;
    _cleanup_buf_ struct buf text = {0};
    const char *name;
    int r = list ? 0 : -ENOMEM;
    size_t i;

    json_object_foreach(s->args, name, e) {
        if (built_env(&s->image, name))
            continue;
        text.len = 0;
        buf_printf(&text, "%s=%s", name, json_string_value(e));
        r |= text.failed ? -ENOMEM : json_array_append_new(list, json_string(text.data));
    }
    json_array_foreach(json_object_get(s->image.config, "Env"), i, e) {
        if (json_string_value(e) && strchr(json_string_value(e), '='))
            r |= json_array_append(list, e);
    }
    if (r < 0) {
        json_decref(list);
        return NULL;
    }
    return list;
}

/* ------------------------------------------------------------------ the policy */

static int set(mayfly_policy *p, const char *name, const char *value, struct err *err) {
    struct mayfly_error e = {0};

    return mayfly_policy_set(p, name, value, &e) < 0
               ? err_set(err, ERR_USAGE, e.code, e.control, NULL, "%s", e.message)
               : 0;
}

static int set_command(mayfly_policy *p, const struct run *run, struct err *err) {
    const char **argv = calloc(json_array_size(run->argv) + 1, sizeof(*argv));
    struct mayfly_error e = {0};
    const json_t *word;
    size_t i;

    if (!argv)
        return err_oom(err);
    json_array_foreach(run->argv, i, word) argv[i] = json_string_value(word);
    int r =
        run->script ? policy_run_script(p, run->script, &e) : mayfly_policy_command(p, argv, &e);
    free((void *)argv);
    return r < 0 ? err_set(err, ERR_USAGE, r, "", NULL, "%s", e.message) : 0;
}

/* The directory that passwd(5) has for the user, by name or number; "/" for who is not in it. */
static int set_home(mayfly_policy *p, struct stage *s, const char *user, struct err *err) {
    _cleanup_free_ char *passwd = stage_text(s, "etc/passwd");
    char *save = NULL, *fields[7], home[300];
    size_t len = strcspn(user, ":");

    bool root = (len == 1 && user[0] == '0') || (len == 4 && strncmp(user, "root", 4) == 0);

    (void)snprintf(home, sizeof(home), "HOME=%s", root ? "/root" : "/");
    for (char *line = passwd ? strtok_r(passwd, "\n", &save) : NULL; line;
         line = strtok_r(NULL, "\n", &save)) {
        size_t n = 0;
        for (char *f = strsep(&line, ":"); f && n < ARRAY_LEN(fields); f = strsep(&line, ":"))
            fields[n++] = f;
        bool found = false;
        for (size_t i = 0; n == ARRAY_LEN(fields) && i <= 2; i += 2) /* name, uid */
            found |= strlen(fields[i]) == len && strncmp(fields[i], user, len) == 0;
        if (found && fields[5][0] == '/') {
            (void)snprintf(home, sizeof(home), "HOME=%s", fields[5]);
            break;
        }
    }
    return set(p, "env", home, err);
}

/* Where the root is, and where what is written to it goes. */
static int set_root(mayfly_policy *p, struct stage *s, struct err *err) {
    char root[WORKTREE_PATH_SIZE], upper[WORKTREE_PATH_SIZE];
    struct mayfly_error e = {0};
    int r = stage_lower(s, root, err);

    r = r < 0 ? r : set(p, "build", "true", err);
    r = r < 0 ? r : set(p, "rootfs", root, err);
    if (r < 0 || s->upper.entry.fd < 0)
        return r;
    return upper_path(&s->upper, upper) < 0 || policy_write_to(p, upper, &e) < 0 ? err_oom(err) : 0;
}

/* What the command line says of proxies is for every RUN and for no image: Docker takes these names without an ARG. */
static int set_proxies(mayfly_policy *p, const struct build *b, struct err *err) {
    static const char *const names[] = {"HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY",   "NO_PROXY",
                                        "ALL_PROXY",  "http_proxy",  "https_proxy", "ftp_proxy",
                                        "no_proxy",   "all_proxy"};
    _cleanup_buf_ struct buf text = {0};
    int r = 0;

    for (size_t i = 0; i < ARRAY_LEN(names) && r == 0; i++) {
        const char *value = json_string_value(json_object_get(b->build_args, names[i]));
        if (!value)
            continue;
        text.len = 0;
        buf_printf(&text, "%s=%s", names[i], value);
        r = text.failed ? err_oom(err) : set(p, "env", text.data, err);
        (void)json_object_set_new(b->used_args, names[i], json_true());
    }
    return r;
}

static uint64_t disk_left(const struct build *b) {
    return b->disk_limit - MIN(b->disk_used, b->disk_limit);
}

/* What the kernel itself can hold: one file takes no more than all may. */
static int set_file_size(mayfly_policy *p, const struct build *b, struct err *err) {
    char limit[40];

    (void)snprintf(limit, sizeof(limit), "fsize=%llu", (unsigned long long)disk_left(b));
    return set(p, "ulimit", limit, err);
}

static int fill(mayfly_policy *p, struct stage *s, const struct run *run, struct err *err) {
    const struct build *b = s->build;
    char epoch[64];
    const json_t *e;
    size_t i;
    int r = set_root(p, s, err);

    r = r < 0 ? r : set(p, "user", run->user, err);
    r = r < 0 ? r : set(p, "workdir", run->workdir, err);
    for (int k = 0; k < b->n_limits && r == 0; k++)
        r = set(p, b->limits[k].field, b->limits[k].value, err);
    r = r < 0 ? r : set_file_size(p, b, err);
    /* What the image sets wins. */
    r = r < 0 ? r : set_home(p, s, run->user, err);
    r = r < 0 ? r : set_proxies(p, b, err);
    if (r == 0 && b->epoch >= 0) { /* so that Python's byte code goes by content, not by time */
        (void)snprintf(epoch, sizeof(epoch), "SOURCE_DATE_EPOCH=%lld", (long long)b->epoch);
        r = set(p, "env", epoch, err);
    }
    json_array_foreach(run->env, i, e) { r = r < 0 ? r : set(p, "env", json_string_value(e), err); }
    return r < 0 ? r : set_command(p, run, err);
}

/* ------------------------------------------------------------------ the run */

/* What the host could not do is the same for every RUN: said once. */
static void warn(struct build *b, const mayfly_result *result) {
    for (size_t i = 0; i < result->n_warnings && !b->warned; i++)
        build_say(b, "mayfly: warning: %s\n", result->warnings[i]);
    b->warned |= result->n_warnings > 0;
}

/* A line of ours begins at the margin, and what is not shown is said. */
static void end_output(struct build *b, const struct mayfly_stream *out) {
    char shown[32];

    if (b->quiet)
        return;
    if (out->len && out->data[out->len - 1] != '\n')
        build_say(b, "\n");
    if (out->truncated)
        build_say(b, "mayfly: warning: %s of RUN's output are not shown; --max-output takes more\n",
                  format_bytes(out->total - out->len, shown, sizeof(shown)));
}

static const char *limit_of(const struct build *b, const char *field) {
    for (int i = 0; i < b->n_limits; i++)
        if (strcmp(b->limits[i].field, field) == 0)
            return b->limits[i].value;
    return "?";
}

/* How a command that ran has failed. */
static int say_end(const struct build *b, const mayfly_result *result, struct err *err) {
    const char *hint = result->n_hints ? result->hints[0] : NULL, *name;

    switch (result->outcome) {
    case MAYFLY_EXITED:
        return err_set(err, ERR_USAGE, -ECANCELED, "", hint, "exited with %d", result->exit_code);
    case MAYFLY_SIGNALED:
        name = sigabbrev_np(result->signal);
        return err_set(err, ERR_USAGE, -ECANCELED, "", hint, "was ended by signal %d%s%s%s",
                       result->signal, name ? " (SIG" : "", name ? name : "", name ? ")" : "");
    case MAYFLY_TIMED_OUT:
        return err_set(err, ERR_USAGE, -ETIME, "", "give it more with --timeout",
                       "took longer than %s", limit_of(b, "timeout"));
    case MAYFLY_OOM_KILLED:
        return err_set(err, ERR_USAGE, -ENOMEM, "", "give it more with --memory",
                       "used more memory than %s", limit_of(b, "memory"));
    default:
        return err_set(err, ERR_USAGE, -ECANCELED, "", hint, "did not run to its end");
    }
}

static int judge(struct build *b, const mayfly_result *result, struct err *err) {
    if (result->outcome == MAYFLY_EXITED && result->exit_code == 0)
        return 0;
    if (result->outcome != MAYFLY_SETUP_FAILED || result->exit_code > 0)
        b->run_status = result->exit_code > 0 ? result->exit_code : 1;
    if (result->outcome == MAYFLY_SETUP_FAILED)
        return err_set(err, ERR_USAGE, -ENOENT, result->error.control, NULL, "%s",
                       result->error.message);
    return say_end(b, result, err);
}

/* The terminal's signals end the box first, and then us, so that nothing stays of either. */
static int watch_signals(sigset_t *ret_before) {
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &set, ret_before);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Of two descriptors, as one that is readable when either is. */
static int either(int a, int b) {
    struct epoll_event e = {.events = EPOLLIN};
    int fd = epoll_create1(EPOLL_CLOEXEC);

    if (fd >= 0 && ((a >= 0 && epoll_ctl(fd, EPOLL_CTL_ADD, a, &e) < 0) ||
                    (b >= 0 && epoll_ctl(fd, EPOLL_CTL_ADD, b, &e) < 0)))
        fd_close(&fd);
    return fd;
}

/* Ended by the limit of one file, or a shell tells of a command that was. */
static bool is_cut(const mayfly_result *result) {
    return (result->outcome == MAYFLY_SIGNALED && result->signal == SIGXFSZ) ||
           (result->outcome == MAYFLY_EXITED && result->exit_code == 128 + SIGXFSZ);
}

static int over_quota(struct build *b, struct err *err) {
    char limit[32];

    b->run_status = 1;
    return err_set(err, ERR_USAGE, -EDQUOT, "", "allow more with --max-disk",
                   "has written more to disk than the %s that all RUNs may together",
                   format_bytes(b->disk_limit, limit, sizeof(limit)));
}

/* `written`: where the files are that the box writes. */
static int run_box(struct build *b, const mayfly_policy *p, int written, struct err *err) {
    struct mayfly_error e = {0};
    mayfly_result *result = NULL;
    struct quota quota;
    sigset_t before;
    uint64_t bytes = 0;
    _cleanup_fd_ int signals = watch_signals(&before);
    int r = quota_begin(&quota, written, disk_left(b), err);
    _cleanup_fd_ int cancel = r < 0 ? -1 : either(signals, quota.full_fd);
    const struct mayfly_input input = {.stdout_fd = b->quiet ? 0 : STDERR_FILENO,
                                       .stderr_fd = b->quiet ? 0 : STDERR_FILENO,
                                       .cancel_fd = cancel};

    int code = r < 0 ? r : mayfly_run(p, &input, &result, &e);
    int over = r < 0 ? 0 : quota_end(&quota, &bytes);
    b->disk_used += bytes;
    if (r == 0 && code < 0) {
        r = err_set(err, (enum err_kind)e.kind, code, e.control, NULL, "%s", e.message);
    } else if (r == 0) {
        end_output(b, &result->out);
        end_output(b, &result->err);
        warn(b, result);
        r = over < 0 || is_cut(result) ? over_quota(b, err) : judge(b, result, err);
        if (r < 0 && b->quiet)
            (void)fprintf(stderr, "%s%s", result->out.data, result->err.data);
    }
    mayfly_result_free(result);
    struct signalfd_siginfo came;
    if (signals >= 0 && read(signals, &came, sizeof(came)) == (ssize_t)sizeof(came))
        b->signal = (int)came.ssi_signo; /* it acts when the work tree is gone */
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return r < 0 || !b->signal ? r : err_set(err, ERR_SETUP, -EINTR, "", NULL, "ended by a signal");
}

static int run_in(struct stage *s, const struct run *run, struct err *err) {
    bool over = s->upper.entry.fd >= 0;
    struct names names = {0};
    mayfly_policy *p = mayfly_policy_new();
    int r = p ? 0 : err_oom(err);

    if (r == 0 && run->network) {
        build_say(s->build, "%s:%d: with the host's network\n", s->build->file.name, run->line);
        policy_share_network(p);
        r = stage_tree(s, err);
        r = r < 0 ? r : names_put(&names, &s->tree, err);
        for (size_t i = 0; i < NAMES_FILES && r == 0; i++)
            if (names.volume[i])
                r = set(p, "volume", names.volume[i], err);
    }
    r = r < 0 ? r : fill(p, s, run, err);
    r = r < 0 ? r : run_box(s->build, p, over ? s->upper.root : s->tree.root, err);
    s->build->overlay_works |= over && (r == 0 || s->build->run_status);
    names_take(&names);
    mayfly_policy_free(p);
    return r;
}

static int carry_out(struct stage *s, void *context, struct err *err) {
    return run_in(s, context, err);
}

/* RUN's own word counts where the command line allows it. */
static int take_network(const struct stage *s, const struct docker_line *l, bool *ret,
                        struct err *err) {
    const char *asked = docker_flag(l, "network");
    bool allowed = s->build->network;

    *ret = allowed && (!asked || strcmp(asked, "none") != 0);
    if (!asked || strcmp(asked, "default") == 0 || strcmp(asked, "none") == 0 ||
        (allowed && strcmp(asked, "host") == 0))
        return 0;
    if (strcmp(asked, "host") == 0)
        return docker_refuse(
            &s->build->file, l, err,
            "build with --network=host, or fetch what it needs before, and COPY it",
            "--network=host: is not allowed by the command line");
    return docker_refuse(&s->build->file, l, err, NULL, "--network=%.40s: takes none or host",
                         asked);
}

/* USER's; "5:" is "5". */
static const char *user_of(const struct stage *s) {
    const char *user = built_text(&s->image, "User");
    size_t len = strlen(user);

    len -= len > 1 && user[len - 1] == ':';
    return len ? arena_strndup(&s->build->arena, user, len) : "0";
}

int step_run(struct stage *s, const struct docker_line *l, struct err *err) {
    const char *user = user_of(s), *dir = built_text(&s->image, "WorkingDir");
    struct err inner = {0};
    struct run run = {.user = user, .workdir = *dir == '/' ? dir : "/", .line = l->line};

    if (!user)
        return err_oom(err);
    if (take_network(s, l, &run.network, err) < 0)
        return err->code;
    if (is_whole(l) && strncmp(l->heredocs[0].body, "#!", 2) == 0)
        run.script = l->heredocs[0].body;
    run.argv = run.script ? json_array() : argv_of(s, l, &inner);
    run.env = run.argv ? env_of(s) : NULL;
    struct step step = {
        .line = l,
        .created_by = arena_printf(&s->build->arena, "RUN %s", l->said),
        .depends = run.env ? json_pack("{sO sO ss ss sb ss*}", "run", run.argv, "env", run.env,
                                       "user", run.user, "workdir", run.workdir, "network",
                                       run.network, "script", run.script)
                           : NULL,
        .carry_out = carry_out,
        .context = &run,
        .boxed = true,
    };
    int r = inner.code ? err_set(err, inner.kind, inner.code, "", NULL, "%s", inner.message)
            : step.depends && step.created_by ? stage_step(s, &step, err)
                                              : err_oom(err);
    json_decref(step.depends);
    json_decref(run.argv);
    json_decref(run.env);
    return r;
}
