/*
 * witness.c: see witness.h. What is under way is told over a socket, and the end of file is the end of the teller: the
 * kernel closes it for one that was killed. Where that happens between a call's line and witness_end(), the call has two
 * lines, of which one says that it was lost; the other order would leave one without any.
 */
#include "tool/witness.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"

#include "base/banned.h"

struct witness {
    pthread_mutex_t lock;
    uint64_t last_ticket;
    int fd;
    pid_t pid;
};

/* Before each run's texts: its code, its policy, its files, its words; each but the code with a NUL. */
struct head {
    uint64_t ticket;
    struct timespec start;
    uint64_t code_len, policy_len, files_len, words_len; /* with their NULs; 0: there is none */
    uint32_t n_words;
    bool ends, has_code; /* `ends`: this is witness_end */
    char source[16];
};

/* ------------------------------------------------------------------ the witness itself */

struct open_run {
    struct open_run *next;
    struct head head;
    char text[];
};

/* One that ends is taken off, one that begins is put on. False: that was the last. */
static bool hear(int fd, struct open_run **list) {
    struct head head;

    if (fd_read_full(fd, &head, sizeof(head)) != (ssize_t)sizeof(head))
        return false;
    if (head.ends) {
        for (struct open_run **at = list; *at; at = &(*at)->next)
            if ((*at)->head.ticket == head.ticket) {
                struct open_run *gone = *at;
                *at = gone->next;
                free(gone);
                break;
            }
        return true;
    }
    size_t len = (size_t)(head.code_len + head.policy_len + head.files_len + head.words_len);
    struct open_run *run = malloc(sizeof(*run) + len + 1);
    if (!run)
        return false; /* the teller gets EPIPE, and executes nothing more */
    run->head = head;
    if (fd_read_full(fd, run->text, len) != (ssize_t)len)
        return free(run), false; /* it was not let go before it was told whole */
    run->next = *list;
    *list = run;
    return true;
}

static int log_lost(struct runlog *log, const struct open_run *o) {
    const char *policy = o->text + o->head.code_len, *files = policy + o->head.policy_len,
               *word = files + o->head.files_len;
    const char **words = calloc((size_t)o->head.n_words + 1, sizeof(*words));
    char note[256];

    if (!words)
        return -ENOMEM;
    for (uint32_t i = 0; i < o->head.n_words; i++) {
        words[i] = word;
        word += strlen(word) + 1;
    }
    const struct runlog_run run = {.source = o->head.source,
                                   .start = o->head.start,
                                   .code = o->head.has_code ? o->text : NULL,
                                   .code_len = (size_t)o->head.code_len,
                                   .command = o->head.n_words ? words : NULL,
                                   .files = o->head.files_len ? files : NULL,
                                   .policy = o->head.policy_len ? policy : NULL};
    struct err err = {0};
    int r = runlog_write(log, &run, note, &err);
    free(words);
    return r;
}

static _Noreturn void watch(int fd, const struct runlog_options *options) {
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXFSZ};
    struct open_run *list = NULL;
    struct runlog *log = NULL;
    int status = 0;

    for (size_t i = 0; i < ARRAY_LEN(ignored); i++)
        (void)signal(ignored[i], SIG_IGN);
    (void)prctl(PR_SET_NAME, "mayfly-witness");
    /* Of the descriptors none is kept whose end of file somebody waits for. */
    (void)close(STDIN_FILENO);
    (void)close(STDOUT_FILENO);
    if (dup3(fd, STDIN_FILENO, 0) < 0 || close_range(STDERR_FILENO + 1, ~0u, 0) < 0)
        _exit(1);
    while (hear(STDIN_FILENO, &list))
        continue;
    if (list && runlog_open(options, &log, NULL) < 0)
        _exit(1);
    for (const struct open_run *o = list; o; o = o->next)
        if (log_lost(log, o) < 0)
            status = 1;
    _exit(status);
}

/* ------------------------------------------------------------------ this side */

int witness_new(const struct runlog_options *options, struct witness **ret,
                struct mayfly_error *error) {
    struct witness *w = calloc(1, sizeof(*w));
    int pair[2] = {-1, -1}, r = 0;

    if (!w)
        r = -ENOMEM;
    else if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0 || (w->pid = fork()) < 0)
        r = -errno;
    if (r == 0 && w->pid == 0)
        watch(pair[1], options);
    fd_close(&pair[1]);
    if (r == 0) {
        w->fd = pair[0];
        (void)pthread_mutex_init(&w->lock, NULL);
        *ret = w;
        return 0;
    }
    fd_close(&pair[0]);
    free(w);
    *error = (struct mayfly_error){.code = r, .kind = MAYFLY_E_INTERNAL};
    (void)snprintf(error->message, sizeof(error->message),
                   "the process that logs what is lost if this one is killed: %s; log nothing "
                   "with --no-log, or allow more processes",
                   errno_words(r));
    return r;
}

void witness_free(struct witness *w) {
    if (!w)
        return;
    (void)close(w->fd);
    while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    (void)pthread_mutex_destroy(&w->lock);
    free(w);
}

/* Whole, and not among another thread's. */
static int tell(struct witness *w, struct head *head, const struct buf *text) {
    (void)pthread_mutex_lock(&w->lock);
    if (!head->ends)
        head->ticket = ++w->last_ticket;
    int r = 0;
    const void *parts[] = {head, text ? text->data : NULL};
    size_t len[] = {sizeof(*head), text ? text->len : 0};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        for (size_t at = 0; r == 0 && at < len[i];) {
            ssize_t n = fd_send(w->fd, (const char *)parts[i] + at, len[i] - at, -1, 0);
            if (n >= 0)
                at += (size_t)n;
            else if (n != -EINTR)
                r = (int)n;
        }
    (void)pthread_mutex_unlock(&w->lock);
    return r;
}

int witness_begin(struct witness *w, const struct runlog_run *run, uint64_t *ret_ticket) {
    _cleanup_buf_ struct buf text = {0};
    struct head head = {
        .start = run->start, .code_len = run->code_len, .has_code = run->code != NULL};

    (void)str_copy(head.source, sizeof(head.source), run->source);
    buf_add(&text, run->code ? run->code : "", run->code_len);
    if (run->policy) {
        head.policy_len = strlen(run->policy) + 1;
        buf_add(&text, run->policy, head.policy_len);
    }
    if (run->files) {
        head.files_len = strlen(run->files) + 1;
        buf_add(&text, run->files, head.files_len);
    }
    for (; run->command && run->command[head.n_words]; head.n_words++) {
        size_t len = strlen(run->command[head.n_words]) + 1;
        buf_add(&text, run->command[head.n_words], len);
        head.words_len += len;
    }
    if (text.failed)
        return -ENOMEM;
    int r = tell(w, &head, &text);
    *ret_ticket = head.ticket;
    return r;
}

void witness_end(struct witness *w, uint64_t ticket) {
    struct head head = {.ticket = ticket, .ends = true};

    (void)tell(w, &head, NULL); /* one that is gone is found by the next witness_begin */
}
