/*
 * call.c: the queue of calls, the threads that take from it, and the clock that tells clients how long it takes.
 *
 * A call is in its session's list until its answer is on the way, so whoever finds it there, under the lock, may still
 * send notes for it or cancel it: that is why no progress can come after an answer.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "mcp/internal.h"
#include "tool/word.h"

#include "base/banned.h"

enum { TICK_MS = 250 };
static const uint64_t PROGRESS_NS = 1000000000;

/* ------------------------------------------------------------------ notes */

static const char *const level_names[] = {
    [TOOL_DEBUG] = "debug",     [TOOL_INFO] = "info",          [TOOL_NOTICE] = "notice",
    [TOOL_WARNING] = "warning", [TOOL_ERROR] = "error",        [TOOL_CRITICAL] = "critical",
    [TOOL_ALERT] = "alert",     [TOOL_EMERGENCY] = "emergency"};

static void send_note(const struct call *c, const char *method, json_t *take_params) {
    char *text = rpc_notification(method, take_params);

    if (text)
        c->outlet->send(c->outlet, text, false);
}

static void send_progress(const struct call *c, double done, double total, const char *message) {
    if (!c->token)
        return;
    json_t *params = json_pack("{s:O,s:f,s:s*}", "progressToken", c->token, "progress", done,
                               "message", message);
    if (total > 0)
        (void)json_object_set_new(params, "total", json_real(total));
    send_note(c, "notifications/progress", params);
}

/* What the tool says, in its thread. Its call is `run`. */
static void tool_progress(const struct tool_run *run, double done, double total,
                          const char *message) {
    send_progress((const struct call *)run, done, total, message);
}

static void tool_log(const struct tool_run *run, enum tool_level level, const char *text) {
    const struct call *c = (const struct call *)run;

    (void)pthread_mutex_lock(&c->session->server->lock);
    bool wanted = level >= c->session->level;
    (void)pthread_mutex_unlock(&c->session->server->lock);
    if (wanted)
        send_note(c, "notifications/message",
                  json_pack("{s:s,s:s,s:s}", "level", level_names[level], "logger", "mayfly",
                            "data", text));
}

/* How long a call has taken, for those who asked. It is not known how much of it is done: what is told is time, which
 * grows, and against it the most that the run may take. */
static void tell_time(const struct server *s, struct call *c, uint64_t now) {
    double seconds = (double)(now - c->since_ns) / 1e9;
    char text[96];

    if (!c->token || c->cancelled || now - c->told_ns < PROGRESS_NS)
        return;
    c->told_ns = now;
    if (c->running)
        (void)snprintf(text, sizeof(text), "runs since %.0f s, of at most %g s", seconds,
                       s->tools->longest_s);
    else
        (void)snprintf(text, sizeof(text), "waits since %.0f s: %u others run", seconds, s->boxes);
    send_progress(c, seconds, c->running && seconds < s->tools->longest_s ? s->tools->longest_s : 0,
                  text);
}

/* ------------------------------------------------------------------ from its begin to its end */

static void call_free(struct call *c) {
    fd_close(&c->run.cancel_fd);
    json_decref(c->arguments);
    json_decref(c->message);
    free(c);
}

static void link_call(struct session *s, struct call *c) {
    struct server *server = s->server;

    c->next = s->calls;
    if (c->next)
        c->next->previous = c;
    s->calls = c;
    s->n_calls++;
    if (server->last_waiting)
        server->last_waiting->next_waiting = c;
    else
        server->first_waiting = c;
    server->last_waiting = c;
    server->n_waiting++;
    server->cost += c->cost;
}

static void session_drop(struct session *s) {
    struct server *server = s->server;

    if (!s->closed || s->n_calls > 0)
        return;
    if (s->previous)
        s->previous->next = s->next;
    else
        server->sessions = s->next;
    if (s->next)
        s->next->previous = s->previous;
    free(s);
}

static void unlink_call(struct call *c) {
    struct session *s = c->session;

    if (c->previous)
        c->previous->next = c->next;
    else
        s->calls = c->next;
    if (c->next)
        c->next->previous = c->previous;
    s->n_calls--;
    s->server->cost -= c->cost;
}

static struct call *take_first(struct server *s) {
    struct call *c = s->first_waiting;

    if (!c)
        return NULL;
    s->first_waiting = c->next_waiting;
    if (!s->first_waiting)
        s->last_waiting = NULL;
    s->n_waiting--;
    return c;
}

static void take_out(struct server *s, struct call *c) {
    struct call *before = NULL;

    for (struct call *i = s->first_waiting; i && i != c; i = i->next_waiting)
        before = i;
    if (before)
        before->next_waiting = c->next_waiting;
    else
        s->first_waiting = c->next_waiting;
    if (s->last_waiting == c)
        s->last_waiting = before;
    s->n_waiting--;
}

static char *result_text(const struct tool_answer *a) {
    _cleanup_buf_ struct buf b = {0};
    json_t *content = json_pack("[{s:s,s:s%}]", "type", "text", "text", a->text, a->len);

    if (a->more && json_array_extend(content, a->more) < 0) {
        json_decref(content);
        content = NULL;
    }
    char *text _cleanup_free_ = content ? json_dumps(content, JSON_COMPACT) : NULL;
    json_decref(content);
    if (!text)
        return NULL;
    buf_puts(&b, "{\"content\":");
    buf_puts(&b, text);
    if (a->structured) {
        buf_puts(&b, ",\"structuredContent\":");
        buf_puts(&b, a->structured);
    }
    buf_puts(&b, a->is_error ? ",\"isError\":true}" : ",\"isError\":false}");
    return b.failed ? NULL : buf_take(&b);
}

static char *answer_text(const struct call *c, const struct tool_answer *a) {
    char *result _cleanup_free_ = a->text ? result_text(a) : NULL;
    char *text = result ? rpc_result(c->id, result) : NULL;
    struct rpc_error error;

    if (text)
        return text;
    (void)rpc_fail(&error, RPC_INTERNAL, "out of memory");
    return rpc_failure(c->id, &error);
}

/* What is answered would only be kept for a client that does not read. */
static char *refuse_unread(const struct call *c) {
    const struct outlet *o = c->outlet;
    struct rpc_error error;

    while (o->to)
        o = o->to;
    if (!o->is_full || !o->is_full(o))
        return NULL;
    (void)rpc_fail(
        &error, RPC_BUSY,
        "nothing was run: the answers that wait to be read take too much memory already; "
        "read them, and call again");
    return rpc_failure(c->id, &error);
}

static char *run_tool(const struct server *s, struct call *c) {
    struct tool_answer answer = {0};

    c->tool->call(s->tools->owner, c->arguments, &c->run, &answer);
    char *text = answer_text(c, &answer);
    tool_answer_done(&answer);
    return text;
}

static void execute(struct server *s, struct call *c) {
    char *text = refuse_unread(c);

    if (!text)
        text = run_tool(s, c);
    (void)pthread_mutex_lock(&s->lock);
    bool cancelled = c->cancelled;
    unlink_call(c);
    session_drop(c->session);
    (void)pthread_mutex_unlock(&s->lock);
    if (cancelled) {
        free(text);
        text = NULL;
    }
    c->outlet->send(c->outlet, text, true);
    call_free(c);
}

static void *work(void *data) {
    struct server *s = data;

    (void)pthread_mutex_lock(&s->lock);
    while (!s->stop) {
        struct call *c = take_first(s);
        if (!c) {
            (void)pthread_cond_wait(&s->work, &s->lock);
            continue;
        }
        c->running = true;
        (void)pthread_mutex_unlock(&s->lock);
        execute(s, c);
        (void)pthread_mutex_lock(&s->lock);
    }
    (void)pthread_mutex_unlock(&s->lock);
    return NULL;
}

static void *keep_time(void *data) {
    struct server *s = data;

    (void)pthread_mutex_lock(&s->lock);
    while (!s->stop) {
        uint64_t now = now_ns(), until = now + TICK_MS * UINT64_C(1000000);
        struct timespec t = {.tv_sec = (time_t)(until / 1000000000),
                             .tv_nsec = (long)(until % 1000000000)};
        for (struct session *i = s->sessions; i; i = i->next)
            for (struct call *c = i->calls; c; c = c->next)
                tell_time(s, c, now);
        if (s->tick) {
            (void)pthread_mutex_unlock(&s->lock);
            s->tick(s->tick_data);
            (void)pthread_mutex_lock(&s->lock);
        }
        if (!s->stop && !s->tick && s->cost == 0) /* no calls: nothing to look at, so asleep */
            (void)pthread_cond_wait(&s->clock, &s->lock);
        else if (!s->stop)
            (void)pthread_cond_timedwait(&s->clock, &s->lock, &t);
    }
    (void)pthread_mutex_unlock(&s->lock);
    return NULL;
}

static struct call *find_call(const struct session *s, const json_t *id) {
    struct call *c = s->calls;

    while (c && (c->cancelled || !json_equal(c->id, id)))
        c = c->next;
    return c;
}

static int enqueue(struct session *s, struct call *c, struct rpc_error *error) {
    struct server *server = s->server;
    int r = 0;

    (void)pthread_mutex_lock(&server->lock);
    if (find_call(s, c->id))
        r = rpc_fail(error, RPC_INVALID, "the id is that of a request that still runs");
    else if (server->n_waiting >= SERVER_MAX_QUEUE || server->cost + c->cost > SERVER_MAX_BYTES)
        r = rpc_fail(error, RPC_BUSY, "%zu calls wait already; try again later", server->n_waiting);
    else
        link_call(s, c);
    (void)pthread_cond_signal(&server->work);
    (void)pthread_cond_signal(&server->clock);
    (void)pthread_mutex_unlock(&server->lock);
    return r;
}

static const json_t *progress_token(const json_t *params) {
    const json_t *token = json_object_get(json_object_get(params, "_meta"), "progressToken");

    return json_is_string(token) || json_is_integer(token) ? token : NULL;
}

int call_begin(struct session *session, json_t *take_message, const struct rpc_message *m,
               size_t cost, struct outlet *outlet, struct rpc_error *error) {
    const char *name = json_word(json_object_get(m->params, "name"));
    const json_t *arguments = json_object_get(m->params, "arguments");
    const struct tool *tool = name ? tool_find(session->server->tools, name) : NULL;

    if (!name)
        return rpc_fail(error, RPC_PARAMS, "\"name\" has to be a string, the tool's name");
    if (!tool)
        return rpc_fail(error, RPC_PARAMS, "there is no tool \"%.64s\"; see tools/list", name);
    if (arguments && !json_is_object(arguments))
        return rpc_fail(error, RPC_PARAMS, "\"arguments\" has to be an object");
    struct call *c = calloc(1, sizeof(*c));
    if (!c)
        return rpc_fail(error, RPC_INTERNAL, "out of memory");
    c->run = (struct tool_run){.cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                               .progress = tool_progress,
                               .log = tool_log};
    c->session = session;
    c->outlet = outlet;
    c->tool = tool;
    c->message = take_message;
    c->cost = cost;
    c->id = m->id;
    c->arguments = arguments ? json_incref((json_t *)(uintptr_t)arguments) : json_object();
    c->token = progress_token(m->params);
    c->since_ns = c->told_ns = now_ns();
    int r = !c->arguments          ? rpc_fail(error, RPC_INTERNAL, "out of memory")
            : c->run.cancel_fd < 0 ? rpc_fail(error, RPC_INTERNAL, "eventfd: %s", strerror(errno))
                                   : enqueue(session, c, error);
    if (r) {
        c->message = NULL; /* is the caller's still */
        call_free(c);
    }
    return r;
}

/* ------------------------------------------------------------------ cancelling */

/* Under the lock. True: it waited, and is the caller's now, to send that there is no answer. */
static bool cancel(struct server *s, struct call *c) {
    c->cancelled = true;
    if (c->running) {
        (void)eventfd_write(c->run.cancel_fd, 1);
        return false;
    }
    take_out(s, c);
    unlink_call(c);
    return true;
}

static void drop(struct call *list) {
    while (list) {
        struct call *c = list;
        list = c->next_waiting;
        c->outlet->send(c->outlet, NULL, true);
        call_free(c);
    }
}

/* Those of the session's that are meant, by one of the two; both NULL: all. */
static void cancel_those(struct session *session, const json_t *id, const struct outlet *outlet) {
    struct server *s = session->server;
    struct call *waited = NULL;

    (void)pthread_mutex_lock(&s->lock);
    for (struct call *c = session->calls, *next; c; c = next) {
        next = c->next;
        if ((id && !json_equal(c->id, id)) ||
            (outlet && c->outlet != outlet && c->outlet->to != outlet) || c->cancelled)
            continue;
        if (cancel(s, c)) {
            c->next_waiting = waited;
            waited = c;
        }
    }
    (void)pthread_mutex_unlock(&s->lock);
    drop(waited);
}

void call_cancel(struct session *session, const json_t *id) { cancel_those(session, id, NULL); }

void session_cancel_outlet(struct session *session, const struct outlet *outlet) {
    cancel_those(session, NULL, outlet);
}

void session_close(struct session *session) {
    struct server *s = session->server;

    cancel_those(session, NULL, NULL);
    (void)pthread_mutex_lock(&s->lock);
    session->closed = true;
    session_drop(session);
    (void)pthread_mutex_unlock(&s->lock);
}

/* ------------------------------------------------------------------ the server */

static char *list_tools(const struct tool_set *set) {
    json_t *list = json_array(), *result = json_pack("{s:o}", "tools", list);

    for (size_t i = 0; i < set->n; i++)
        if (json_array_append(list, set->list[i].definition) < 0) {
            json_decref(result);
            return NULL;
        }
    char *text = result ? json_dumps(result, JSON_COMPACT | JSON_REAL_PRECISION(12)) : NULL;
    json_decref(result);
    return text;
}

static int start(struct server *s) {
    pthread_condattr_t attr;

    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&s->lock, NULL);
    (void)pthread_cond_init(&s->work, NULL);
    (void)pthread_cond_init(&s->clock, &attr);
    (void)pthread_condattr_destroy(&attr);
    for (; s->n_threads <= s->boxes; s->n_threads++) {
        int r = pthread_create(&s->threads[s->n_threads], NULL,
                               s->n_threads < s->boxes ? work : keep_time, s);
        if (r)
            return -r;
    }
    return 0;
}

int server_new(const struct tool_set *tools, unsigned boxes, void (*tick)(void *data), void *data,
               struct server **ret) {
    struct server *s = calloc(1, sizeof(*s));

    if (!s)
        return -ENOMEM;
    s->tools = tools;
    s->boxes = boxes;
    s->tick = tick;
    s->tick_data = data;
    s->tool_list = list_tools(tools);
    s->threads = calloc(boxes + 1, sizeof(*s->threads));
    int r = s->tool_list && s->threads ? start(s) : -ENOMEM;
    if (r < 0)
        server_free(s);
    else
        *ret = s;
    return r;
}

void server_free(struct server *s) {
    (void)pthread_mutex_lock(&s->lock);
    s->stop = true;
    (void)pthread_cond_broadcast(&s->work);
    (void)pthread_cond_broadcast(&s->clock);
    (void)pthread_mutex_unlock(&s->lock);
    for (unsigned i = 0; i < s->n_threads; i++)
        (void)pthread_join(s->threads[i], NULL);
    free(s->threads);
    free(s->tool_list);
    free(s);
}
