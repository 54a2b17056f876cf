/*
 * run.c: RUN: a command in a box whose root is the work tree.
 *
 * The box is the one every run has, with two differences, which the policy's field `build` makes: what is written to the
 * root stays, and uid 0 has the rights over files that installing takes. There is no network in it, and nothing of the
 * context or the host.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "build/build.h"
#include "mayfly.h"

#include "base/banned.h"

struct run {
    json_t *argv, *env; /* lists */
    const char *user, *workdir;
};

/* ------------------------------------------------------------------ what is run */

/* The shell's argument: the line, and behind it its here-documents as the shell reads them. One that is all of the line
 * is the script itself. */
static const char *script_of(const struct stage *s, const struct docker_line *l, struct err *err) {
    _cleanup_buf_ struct buf text = {0};
    bool whole = l->n_heredocs == 1 && strncmp(l->text, "<<", 2) == 0 && !strpbrk(l->text, " \t");

    if (whole && strncmp(l->heredocs[0].body, "#!", 2) == 0) {
        (void)docker_refuse(&s->build->file, l, err, "name the program: RUN python3 <<EOF",
                            "a script that begins with #! is not supported");
        return NULL;
    }
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
    const char *script = script_of(s, l, err);
    argv = script ? built_list(s->shell) : NULL;
    if (argv && json_array_append_new(argv, json_string(script)) < 0) {
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

static int set_command(mayfly_policy *p, const json_t *list, struct err *err) {
    const char **argv = calloc(json_array_size(list) + 1, sizeof(*argv));
    struct mayfly_error e = {0};
    const json_t *word;
    size_t i;

    if (!argv)
        return err_oom(err);
    json_array_foreach(list, i, word) argv[i] = json_string_value(word);
    int r = mayfly_policy_command(p, argv, &e);
    free((void *)argv);
    return r < 0 ? err_set(err, ERR_USAGE, r, "", NULL, "%s", e.message) : 0;
}

/* The directory that passwd(5) has for the user, by name or number; "/" for who is not in it. */
static int set_home(mayfly_policy *p, const struct stage *s, const char *user, struct err *err) {
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

static int fill(mayfly_policy *p, const struct stage *s, const struct run *run, struct err *err) {
    const struct build *b = s->build;
    char root[WORKTREE_PATH_SIZE], epoch[64];
    const json_t *e;
    size_t i;
    int r = worktree_path(&s->tree, root);

    r = r < 0 ? err_errno(err, ERR_SETUP, r, "", NULL, "the work tree")
              : set(p, "build", "true", err);
    r = r < 0 ? r : set(p, "rootfs", root, err);
    r = r < 0 ? r : set(p, "user", run->user, err);
    r = r < 0 ? r : set(p, "workdir", run->workdir, err);
    for (int k = 0; k < b->n_limits && r == 0; k++)
        r = set(p, b->limits[k].field, b->limits[k].value, err);
    /* What the image sets wins. */
    r = r < 0 ? r : set_home(p, s, run->user, err);
    if (r == 0 && b->epoch >= 0) { /* so that Python's byte code goes by content, not by time */
        (void)snprintf(epoch, sizeof(epoch), "SOURCE_DATE_EPOCH=%lld", (long long)b->epoch);
        r = set(p, "env", epoch, err);
    }
    json_array_foreach(run->env, i, e) { r = r < 0 ? r : set(p, "env", json_string_value(e), err); }
    return r < 0 ? r : set_command(p, run->argv, err);
}

/* ------------------------------------------------------------------ the run */

/* What the host could not do is the same for every RUN: said once. */
static void warn(struct build *b, const mayfly_result *result) {
    for (size_t i = 0; i < result->n_warnings && !b->warned; i++)
        build_say(b, "mayfly: warning: %s\n", result->warnings[i]);
    b->warned |= result->n_warnings > 0;
}

static int judge(struct build *b, const mayfly_result *result, struct err *err) {
    const char *hint = result->n_hints ? result->hints[0] : NULL;

    if (result->outcome == MAYFLY_EXITED && result->exit_code == 0)
        return 0;
    b->run_status = result->exit_code > 0 ? result->exit_code : 1;
    if (result->outcome == MAYFLY_SETUP_FAILED)
        return err_set(err, ERR_USAGE, -ENOENT, result->error.control, NULL, "%s",
                       result->error.message);
    if (result->outcome == MAYFLY_EXITED)
        return err_set(err, ERR_USAGE, -ECANCELED, "", hint, "exited with %d", result->exit_code);
    return err_set(err, ERR_USAGE, -ECANCELED, "", hint, "%s",
                   mayfly_outcome_name(result->outcome));
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

static int run_box(struct build *b, const mayfly_policy *p, struct err *err) {
    struct mayfly_error e = {0};
    mayfly_result *result = NULL;
    sigset_t before;
    _cleanup_fd_ int signals = watch_signals(&before);
    const struct mayfly_input input = {.stdout_fd = b->quiet ? 0 : STDERR_FILENO,
                                       .stderr_fd = b->quiet ? 0 : STDERR_FILENO,
                                       .cancel_fd = signals};
    int r = mayfly_run(p, &input, &result, &e);

    if (r < 0) {
        r = err_set(err, ERR_SETUP, r, e.control, NULL, "%s", e.message);
    } else {
        warn(b, result);
        r = judge(b, result, err);
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

static int carry_out(struct stage *s, void *context, struct err *err) {
    mayfly_policy *p = mayfly_policy_new();
    int r = p ? fill(p, s, context, err) : err_oom(err);

    r = r < 0 ? r : run_box(s->build, p, err);
    mayfly_policy_free(p);
    return r;
}

int step_run(struct stage *s, const struct docker_line *l, struct err *err) {
    const char *network = docker_flag(l, "network"), *user = built_text(&s->image, "User"),
               *dir = built_text(&s->image, "WorkingDir");
    struct err inner = {0};
    struct run run = {.user = *user ? user : "0", .workdir = *dir == '/' ? dir : "/"};

    if (network && strcmp(network, "none") != 0)
        return docker_refuse(&s->build->file, l, err,
                             "fetch what it needs before, and COPY it into the image",
                             "--network=%.40s: a box has no network", network);
    run.argv = argv_of(s, l, &inner);
    run.env = run.argv ? env_of(s) : NULL;
    struct step step = {
        .line = l,
        .created_by = arena_printf(&s->build->arena, "RUN %s", l->said),
        .depends = run.env ? json_pack("{sO sO ss ss}", "run", run.argv, "env", run.env, "user",
                                       run.user, "workdir", run.workdir)
                           : NULL,
        .carry_out = carry_out,
        .context = &run,
    };
    int r = inner.code ? err_set(err, inner.kind, inner.code, "", NULL, "%s", inner.message)
            : step.depends && step.created_by ? stage_step(s, &step, err)
                                              : err_oom(err);
    json_decref(step.depends);
    json_decref(run.argv);
    json_decref(run.env);
    return r;
}
