/*
 * matrix.c: `mayfly lab`: the study is made inside (outer.h), comes back as JSON, and is shown.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/complain.h"
#include "base/fd.h"
#include "lab/kernel.h"
#include "lab/lab.h"
#include "lab/options.h"
#include "lab/outer.h"
#include "lab/peer.h"
#include "lab/progress.h"
#include "lab/show.h"

#include "base/banned.h"

/* ------------------------------------------------------------------ inside */

static void tell_peer(void *data, const char *peer, const char *probe, size_t done, size_t n) {
    char what[64];

    (void)snprintf(what, sizeof(what), "%.16s in %.24s", probe ? probe : "", peer);
    progress_tick(data, done, n, what);
}

/* Each that differs has its reason, or that is a fault. */
static void add_peer_faults(const json_t *peer, json_t *faults) {
    json_t *cells = json_object_get(peer, "cells"), *cell;
    const char *id;

    json_object_foreach(cells, id, cell) {
        if (json_object_get(cell, "fault"))
            (void)json_array_append(faults, json_object_get(cell, "fault"));
    }
}

static int add_peers(const struct question *q, json_t *lab, struct err *err) {
    json_t *on = json_object(), *peers = NULL, *p;
    struct progress progress;
    size_t i;

    json_array_foreach(json_object_get(lab, "probes"), i, p) {
        (void)json_object_set(on, json_string_value(json_object_get(p, "id")),
                              json_object_get(json_object_get(p, "cells"), "allOn"));
    }
    progress_begin(&progress, q->quiet);
    int r = lab_peers(q->probe, q->n_probes, q->peers, on, tell_peer, &progress, &peers, err);
    progress_end(&progress);
    json_decref(on);
    if (r < 0)
        return r;
    json_array_foreach(peers, i, p) { add_peer_faults(p, json_object_get(lab, "faults")); }
    return json_object_set_new(lab, "peers", peers) < 0 ? err_oom(err) : 0;
}

static int make_study(const struct question *q, int stop, json_t **ret, struct err *err) {
    struct study *s = NULL;
    int r = study_make(q, stop, &s, err);

    if (r == 0 && !q->no_price)
        r = study_price(s, stop, err);
    if (r == 0) {
        *ret = study_json(s, err);
        r = *ret ? 0 : -ENOMEM;
    }
    study_free(s);
    return r == 0 && q->peers ? add_peers(q, *ret, err) : r;
}

static int send_json(const json_t *lab, int out, struct err *err) {
    return json_dumpfd(lab, out, JSON_COMPACT | JSON_REAL_PRECISION(6)) < 0
               ? err_set(err, ERR_INTERNAL, -EIO, "", NULL,
                         "what the lab found could not be handed on")
               : 0;
}

static _Noreturn void inside(const struct question *q, int stop, int out) {
    struct err err = {0};
    json_t *lab = NULL;
    int r = setenv("MAYFLY_ROOTFS", q->rootfs, 1) < 0 ? err_oom(&err) : 0;

    if (r == 0)
        r = make_study(q, stop, &lab, &err);
    if (r == 0)
        r = send_json(lab, out, &err);
    if (r < 0 && r != -EINTR)
        complain("%s", err.message);
    _exit(r < 0 ? EXIT_LAB_TROUBLE : 0);
}

/* ------------------------------------------------------------------ outside */

void lab_catch_signals(sigset_t *set, sigset_t *old) {
    (void)sigemptyset(set);
    (void)sigaddset(set, SIGINT);
    (void)sigaddset(set, SIGTERM);
    (void)sigaddset(set, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, set, old);
}

/* Reads until the other end is closed. The signal that came instead, 0, or -errno. */
static int read_answer(int from, int signals, struct buf *ret) {
    struct pollfd p[] = {{.fd = from, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
    struct signalfd_siginfo info;

    for (;;) {
        if (poll(p, 2, -1) < 0 && errno != EINTR)
            return -errno;
        if (p[1].revents && read(signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
            return (int)info.ssi_signo;
        if (!p[0].revents)
            continue;
        char *room = buf_reserve(ret, 1 << 16);
        ssize_t n = room ? read(from, room, 1 << 16) : -1;
        if (n < 0)
            return room ? -errno : -ENOMEM;
        if (n == 0)
            return 0;
        ret->len += (size_t)n;
    }
}

/* The command's exit status where there is nothing to show; else -1 and *ret. */
static int finish(struct outer *o, int answer, const struct buf *text, json_t **ret,
                  struct err *err) {
    int status = answer == 0 ? outer_wait(o) : outer_end(o);

    if (answer > 0) {
        if (isatty(STDERR_FILENO)) /* whoever drew the bar is dead */
            (void)fd_write_full(STDERR_FILENO, "\r\033[K", 4);
        return 128 + answer;
    }
    if (answer < 0) {
        complain("what the lab found: %s", errno_words(answer));
        return EXIT_LAB_TROUBLE;
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || !text->data) {
        if (WIFSIGNALED(status))
            complain("the lab was killed by signal %d", WTERMSIG(status));
        return EXIT_LAB_TROUBLE;
    }
    if (lab_parse(text->data, text->len, "what the lab found", ret, err) < 0) {
        complain("%s", err->message);
        return EXIT_LAB_TROUBLE;
    }
    return -1;
}

static int study_in(const struct question *q, json_t **ret, struct err *err) {
    struct outer outer = OUTER_NONE;
    struct buf text _cleanup_buf_ = {0};
    int ends[2], stop = -1;
    sigset_t set, old;

    if (pipe2(ends, O_CLOEXEC) < 0) {
        complain("a pipe: %s", errno_words(errno));
        return EXIT_LAB_TROUBLE;
    }
    lab_catch_signals(&set, &old);
    int signals _cleanup_fd_ = signalfd(-1, &set, SFD_CLOEXEC);
    int r = outer_start(q->where, q->rootfs, &outer, &stop, err);
    if (r != 0)
        (void)sigprocmask(SIG_SETMASK, &old, NULL);
    if (r == 1)
        inside(q, stop, ends[1]);
    if (r < 0) {
        complain("%s", err->message);
        _exit(EXIT_LAB_TROUBLE); /* on either side of the fork */
    }
    fd_close(&ends[1]);
    r = finish(&outer, read_answer(ends[0], signals, &text), &text, ret, err);
    fd_close(&ends[0]);
    (void)sigprocmask(SIG_SETMASK, &old, NULL);
    return r;
}

static int get_study(struct options *o, json_t **ret, struct err *err) {
    int r = o->from ? lab_load(o->from, ret, err) : options_rootfs(o, err);

    if (r < 0) {
        complain("%s", err->message);
        return EXIT_LAB_TROUBLE;
    }
    if (o->from)
        return -1;
    /* Elsewhere it is the other kernel that has them. */
    if (o->question.peers && strcmp(o->question.where, "kernel") != 0 &&
        lab_peers_check(o->question.peers, err) < 0) {
        complain("%s", err->message);
        return EXIT_LAB_TROUBLE;
    }
    if (strcmp(o->question.where, "kernel") == 0)
        return kernel_study(&o->question, ret, err);
    if (strcmp(o->question.where, "host") == 0)
        complain("lab: on the bare host: controls are off on purpose, and only that the probes are "
                 "harmless protects this machine");
    return study_in(&o->question, ret, err);
}

/* ------------------------------------------------------------------ showing */

typedef int show_fn(const json_t *lab, FILE *out, struct err *err);

static int show_json(const json_t *lab, FILE *out, struct err *err) {
    if (json_dumpf(lab, out, JSON_INDENT(1) | JSON_REAL_PRECISION(6)) < 0 ||
        fputc('\n', out) == EOF)
        return err_errno(err, ERR_SETUP, errno ? -errno : -EIO, "", NULL, "writing JSON");
    return 0;
}

static int close_whole(FILE *f, int r, const char *path, struct err *err) {
    bool bad = fflush(f) != 0 || ferror(f);
    int code = errno ? -errno : -EIO;

    return r == 0 && bad ? err_errno(err, ERR_SETUP, code, "", NULL, "%.300s", path) : r;
}

static int show_and_close(FILE *f, const char *path, show_fn *show, const json_t *lab,
                          struct err *err) {
    int r = close_whole(f, show(lab, f, err), path, err);

    if (fclose(f) != 0 && r == 0)
        r = err_errno(err, ERR_SETUP, -errno, "", NULL, "%.300s", path);
    return r;
}

/* A device, a pipe, or by a link: what is there stays, and is written to. */
static int show_in_place(const char *path, show_fn *show, const json_t *lab, struct err *err) {
    FILE *f = fopen(path, "we");

    return f ? show_and_close(f, path, show, lab, err)
             : err_errno(err, ERR_SETUP, -errno, "", NULL, "%.300s", path);
}

/* A file is there whole or not at all. */
static int show_in(const char *path, show_fn *show, const json_t *lab, struct err *err) {
    char tmp[4200];
    struct stat st;

    if (strcmp(path, "-") == 0)
        return close_whole(stdout, show(lab, stdout, err), "standard output", err);
    if (lstat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return show_in_place(path, show, lab, err);
    (void)snprintf(tmp, sizeof(tmp), "%.4000s.XXXXXX", path);
    int fd = mkostemp(tmp, O_CLOEXEC);
    FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!f) {
        int code = -errno;
        fd_close(&fd);
        return err_errno(err, ERR_SETUP, code, "", NULL, "%.300s", path);
    }
    mode_t mask = umask(0);
    (void)umask(mask);
    (void)fchmod(fd, 0666 & ~mask);
    int r = show_and_close(f, path, show, lab, err);
    if (r == 0 && rename(tmp, path) < 0)
        r = err_errno(err, ERR_SETUP, -errno, "", NULL, "%.300s", path);
    if (r < 0)
        (void)unlink(tmp);
    return r;
}

static int show_all(const struct options *o, const json_t *lab, struct err *err) {
    const struct {
        const char *path;
        show_fn *show;
    } wanted[] = {{o->json, show_json}, {o->html, lab_html}, {o->markdown, lab_markdown}};
    bool on_stdout = false;
    int r = 0;

    for (size_t i = 0; r == 0 && i < ARRAY_LEN(wanted); i++)
        if (wanted[i].path) {
            on_stdout = on_stdout || strcmp(wanted[i].path, "-") == 0;
            r = show_in(wanted[i].path, wanted[i].show, lab, err);
        }
    return r == 0 && !on_stdout ? lab_screen(lab, stdout, err) : r;
}

int lab_matrix_command(int argc, char **argv) {
    struct options o;
    struct err err = {0};
    json_t *lab = NULL;

    if (options_parse(&o, argc, argv, &err) < 0) {
        complain("%s", err.message);
        return EXIT_LAB_TROUBLE;
    }
    if (o.help) {
        options_help(stdout);
        return 0;
    }
    int status = get_study(&o, &lab, &err);
    if (status >= 0)
        return status;
    int r = show_all(&o, lab, &err);
    if (r < 0)
        complain("%s", err.message);
    size_t faults = o.check ? lab_faults(lab) : 0;
    json_decref(lab);
    return r < 0 ? EXIT_LAB_TROUBLE : faults ? EXIT_LAB_FAULT : 0;
}
