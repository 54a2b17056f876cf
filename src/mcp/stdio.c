/*
 * stdio.c: one client, on standard input and output: a message a line.
 *
 * Three parties: this thread reads; the server's threads answer; one thread writes, so that nobody else ever waits for
 * a client that does not read, but for those whose answers it leaves unread. The client is gone when nothing reads our
 * output any more, and then its boxes are killed at once. The end of our input alone is not that: what was asked before
 * is still answered, as `printf … | mayfly mcp` wants it.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "mcp/jsonrpc.h"
#include "mcp/server.h"
#include "mcp/transport.h"
#include "base/signals.h"

#include "base/banned.h"

enum { UNREAD_BYTES = 16 << 20, READ_BYTES = 64 << 10, KEEP_BYTES = 1 << 20 };

struct line {
    struct line *next;
    char *text;
    size_t len; /* the end of the line stands in place of the NUL */
};

struct stdio {
    struct outlet outlet; /* first */
    struct session *session;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct line *first, *last;
    size_t unread_bytes;
    long missing; /* answers; may be below 0, as one can come before it is counted */
    bool dead, stop;
    int news; /* an eventfd: something was written, or cannot be */
    struct buf in;
    size_t searched; /* so far there is no end of a line */
    bool skipping;   /* the rest of a line that was too long */
};

/* ------------------------------------------------------------------ writing */

static bool write_all(const char *text, size_t len) {
    struct pollfd p = {.fd = STDOUT_FILENO, .events = POLLOUT};

    while (len > 0) {
        ssize_t n = write(STDOUT_FILENO, text, len);
        if (n < 0 && errno == EAGAIN)
            (void)poll(&p, 1, -1);
        else if (n < 0 && errno != EINTR)
            return false;
        text += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

static void drop_lines(struct stdio *s) {
    for (struct line *l = s->first, *next; l; l = next) {
        next = l->next;
        free(l->text);
        free(l);
    }
    s->first = s->last = NULL;
    s->unread_bytes = 0;
}

static void *write_lines(void *data) {
    struct stdio *s = data;

    (void)pthread_mutex_lock(&s->lock);
    while (!s->stop) {
        struct line *l = s->first;
        if (!l) {
            (void)pthread_cond_wait(&s->changed, &s->lock);
            continue;
        }
        (void)pthread_mutex_unlock(&s->lock);
        bool written = write_all(l->text, l->len);
        (void)pthread_mutex_lock(&s->lock);
        if (written) {
            s->first = l->next;
            s->last = s->first ? s->last : NULL;
            s->unread_bytes -= l->len;
            free(l->text);
            free(l);
        } else {
            s->dead = true;
            drop_lines(s);
        }
        (void)pthread_cond_broadcast(&s->changed);
        (void)eventfd_write(s->news, 1);
    }
    drop_lines(s);
    (void)pthread_mutex_unlock(&s->lock);
    return NULL;
}

static void send_line(struct outlet *outlet, char *take_text, bool is_answer) {
    struct stdio *s = (struct stdio *)outlet;
    struct line *l = take_text ? calloc(1, sizeof(*l)) : NULL;

    (void)pthread_mutex_lock(&s->lock);
    while (l && is_answer && s->unread_bytes > UNREAD_BYTES && !s->dead && !s->stop)
        (void)pthread_cond_wait(&s->changed, &s->lock);
    if (l && !s->dead && !s->stop && s->unread_bytes <= UNREAD_BYTES) {
        *l = (struct line){.text = take_text, .len = strlen(take_text) + 1};
        take_text[l->len - 1] = '\n';
        if (s->last)
            s->last->next = l;
        else
            s->first = l;
        s->last = l;
        s->unread_bytes += l->len;
        l = NULL;
        take_text = NULL;
    }
    s->missing -= is_answer;
    (void)pthread_cond_broadcast(&s->changed);
    (void)eventfd_write(s->news, 1);
    (void)pthread_mutex_unlock(&s->lock);
    free(l);
    free(take_text);
}

/* ------------------------------------------------------------------ reading */

static void count_answer(struct stdio *s) {
    (void)pthread_mutex_lock(&s->lock);
    s->missing++;
    (void)pthread_mutex_unlock(&s->lock);
}

static void take_line(struct stdio *s, const char *text, size_t len) {
    while (len > 0 && (text[len - 1] == ' ' || text[len - 1] == '\t' || text[len - 1] == '\r'))
        len--;
    if (len > 0 && session_take(s->session, text, len, &s->outlet))
        count_answer(s);
}

static void refuse_line(struct stdio *s) {
    struct rpc_error error;

    (void)rpc_fail(&error, RPC_INVALID, "a message of more than %d MiB", RPC_MAX_BYTES >> 20);
    send_line(&s->outlet, rpc_failure(NULL, &error), true);
    count_answer(s);
}

/* The lines that are whole. What begins a line that is too long is thrown away as it comes. */
static void take_lines(struct stdio *s) {
    size_t done = 0;
    const char *end;

    while (s->searched < s->in.len &&
           (end = memchr(s->in.data + s->searched, '\n', s->in.len - s->searched))) {
        size_t at = (size_t)(end - s->in.data);
        if (s->skipping)
            refuse_line(s);
        else
            take_line(s, s->in.data + done, at - done);
        s->skipping = false;
        done = s->searched = at + 1;
    }
    s->in.len -= done;
    if (done && s->in.len)
        memmove(s->in.data, s->in.data + done, s->in.len);
    s->skipping = s->skipping || s->in.len > RPC_MAX_BYTES;
    if (s->skipping)
        s->in.len = 0;
    if (s->in.len == 0 && s->in.cap > KEEP_BYTES)
        buf_done(&s->in);
    s->searched = s->in.len;
}

/* False: there is nothing more to come. */
static bool read_some(struct stdio *s) {
    char *to = buf_reserve(&s->in, READ_BYTES);
    ssize_t n = to ? read(STDIN_FILENO, to, READ_BYTES) : 0;

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n <= 0) { /* what was begun may be whole without its end */
        if (s->skipping)
            refuse_line(s);
        else
            take_line(s, s->in.len ? s->in.data : "", s->in.len);
        return false;
    }
    s->in.len += (size_t)n;
    take_lines(s);
    return true;
}

static bool is_over(struct stdio *s, bool reading) {
    (void)pthread_mutex_lock(&s->lock);
    bool over = s->dead || (!reading && s->missing == 0 && !s->first);
    (void)pthread_mutex_unlock(&s->lock);
    return over;
}

static int serve(struct stdio *s, int signal_fd) {
    struct pollfd p[] = {{.fd = signal_fd, .events = POLLIN},
                         {.fd = STDOUT_FILENO}, /* only for its end */
                         {.fd = s->news, .events = POLLIN},
                         {.fd = STDIN_FILENO, .events = POLLIN}};
    eventfd_t news;

    while (!is_over(s, p[3].fd >= 0)) {
        if (poll(p, ARRAY_LEN(p), -1) < 0)
            continue;
        if (p[0].revents)
            return signals_status(signal_fd);
        if (p[1].revents & (POLLERR | POLLHUP | POLLNVAL))
            return 128 + SIGPIPE;
        if (p[2].revents)
            (void)eventfd_read(s->news, &news);
        if (p[3].fd >= 0 && p[3].revents && !read_some(s))
            p[3].fd = -1;
    }
    return s->dead ? 128 + SIGPIPE : 0;
}

int serve_stdio(const struct tool_set *tools, unsigned boxes, int signal_fd) {
    struct stdio *s = calloc(1, sizeof(*s));
    struct server *server = NULL;
    pthread_t writer;

    if (!s)
        return -ENOMEM;
    s->outlet.send = send_line;
    s->news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    (void)pthread_mutex_init(&s->lock, NULL);
    (void)pthread_cond_init(&s->changed, NULL);
    if (s->news < 0 || server_new(tools, boxes, NULL, NULL, &server) < 0)
        return -ENOMEM;
    s->session = session_new(server);
    if (!s->session || pthread_create(&writer, NULL, write_lines, s) != 0)
        return -ENOMEM;
    (void)pthread_detach(writer); /* it may hang in a pipe that nobody empties */
    int status = serve(s, signal_fd);
    (void)pthread_mutex_lock(&s->lock);
    s->stop = true; /* nobody waits any longer for the client to read */
    (void)pthread_cond_broadcast(&s->changed);
    (void)pthread_mutex_unlock(&s->lock);
    session_close(s->session);
    server_free(server);
    buf_done(&s->in);
    /* The rest is the writer's, which ends with the process. */
    return status; // NOLINT(clang-analyzer-unix.Malloc)
}
