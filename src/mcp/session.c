/*
 * session.c: the protocol: what each method means, and when it may be called.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "mayfly.h"
#include "mcp/internal.h"
#include "tool/word.h"

#include "base/banned.h"

/* The revisions that are spoken, the newest first. Batches were in one of them only. */
static const char *const versions[] = {"2025-11-25", "2025-06-18", "2025-03-26"};
static const char batch_version[] = "2025-03-26";

bool version_is_known(const char *version) {
    for (size_t i = 0; i < ARRAY_LEN(versions); i++)
        if (strcmp(versions[i], version) == 0)
            return true;
    return false;
}

struct session *session_new(struct server *server) {
    struct session *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->server = server;
    s->level = TOOL_WARNING;
    (void)pthread_mutex_lock(&server->lock);
    s->next = server->sessions;
    if (s->next)
        s->next->previous = s;
    server->sessions = s;
    (void)pthread_mutex_unlock(&server->lock);
    return s;
}

const char *session_version(struct session *session) {
    (void)pthread_mutex_lock(&session->server->lock);
    const char *version = session->version;
    (void)pthread_mutex_unlock(&session->server->lock);
    return version;
}

/* ------------------------------------------------------------------ methods */

/* A method answers with the text of its result, malloc'ed; or NULL, and *error. */
typedef char *method_function(struct session *s, const json_t *params, struct rpc_error *error);

static char *refuse(struct rpc_error *error, enum rpc_code code, const char *why) {
    (void)rpc_fail(error, code, "%s", why);
    return NULL;
}

/* The client's revision if it is spoken here, else the newest: then it is for the client to go or to stay. */
static const char *agreed(const char *wanted) {
    for (size_t i = 0; i < ARRAY_LEN(versions); i++)
        if (strcmp(versions[i], wanted) == 0)
            return versions[i];
    return versions[0];
}

static char *initialize(struct session *s, const json_t *params, struct rpc_error *error) {
    const char *wanted = json_word(json_object_get(params, "protocolVersion"));

    if (!wanted)
        return refuse(error, RPC_PARAMS, "\"protocolVersion\" has to be a string");
    (void)pthread_mutex_lock(&s->server->lock);
    bool again = s->version != NULL;
    if (!again)
        s->version = agreed(wanted);
    (void)pthread_mutex_unlock(&s->server->lock);
    if (again)
        return refuse(error, RPC_INVALID, "this session is initialized already");
    json_t *o = json_pack("{s:s,s:{s:{s:b},s:{}},s:{s:s,s:s,s:s},s:s*}", "protocolVersion",
                          agreed(wanted), "capabilities", "tools", "listChanged", 0, "logging",
                          "serverInfo", "name", "mayfly", "title", "mayfly", "version",
                          mayfly_version(), "instructions", s->server->tools->instructions);
    char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;
    json_decref(o);
    return text;
}

static char *ping(struct session *s, const json_t *params, struct rpc_error *error) {
    (void)s, (void)params, (void)error;
    return strdup("{}");
}

static char *list_tools(struct session *s, const json_t *params, struct rpc_error *error) {
    const json_t *cursor = json_object_get(params, "cursor");

    if (cursor && !json_is_null(cursor))
        return refuse(error, RPC_PARAMS, "\"cursor\" is none of ours: all tools are on one page");
    return strdup(s->server->tool_list);
}

static char *set_level(struct session *s, const json_t *params, struct rpc_error *error) {
    static const char *const names[] = {"debug", "info",     "notice", "warning",
                                        "error", "critical", "alert",  "emergency"};
    const char *name = json_word(json_object_get(params, "level"));

    for (size_t i = 0; name && i < ARRAY_LEN(names); i++) {
        if (strcmp(names[i], name) != 0)
            continue;
        (void)pthread_mutex_lock(&s->server->lock);
        s->level = (enum tool_level)i;
        (void)pthread_mutex_unlock(&s->server->lock);
        return strdup("{}");
    }
    return refuse(error, RPC_PARAMS,
                  "\"level\" has to be debug, info, notice, warning, error, critical, alert or "
                  "emergency");
}

static const struct {
    const char *name;
    method_function *function; /* NULL: it is answered later */
    bool early;                /* also before `initialize` */
} methods[] = {
    {"initialize", initialize, true},       {"ping", ping, true},
    {"tools/list", list_tools, false},      {"tools/call", NULL, false},
    {"logging/setLevel", set_level, false},
};

static void answer(struct outlet *outlet, const json_t *id, char *take_result,
                   const struct rpc_error *error) {
    struct rpc_error none = {.code = RPC_INTERNAL, .message = "out of memory"};
    char *text =
        take_result ? rpc_result(id, take_result) : rpc_failure(id, error->code ? error : &none);

    free(take_result);
    outlet->send(outlet, text, true);
}

static void fail(struct outlet *outlet, const json_t *id, const struct rpc_error *error) {
    answer(outlet, id, NULL, error);
}

/* Takes the message. An answer goes to the outlet, at once or later. */
static void request(struct session *s, json_t *take_message, const struct rpc_message *m,
                    size_t cost, struct outlet *outlet) {
    struct rpc_error error = {0};
    char *result = NULL;
    size_t i = 0;

    while (i < ARRAY_LEN(methods) && strcmp(methods[i].name, m->method) != 0)
        i++;
    if (i == ARRAY_LEN(methods)) {
        (void)rpc_fail(&error, RPC_NO_METHOD, "there is no method \"%.64s\" here", m->method);
    } else if (!methods[i].early && !session_version(s)) {
        (void)rpc_fail(&error, RPC_INVALID, "%s before initialize", m->method);
    } else if (methods[i].function) {
        result = methods[i].function(s, m->params, &error);
    } else if (call_begin(s, take_message, m, cost, outlet, &error) == 0) {
        return;
    }
    /* Where the id is another request's, an answer that names it would be taken for that one's. */
    bool taken =
        error.code == RPC_INVALID && strcmp(m->method, "tools/call") == 0 && session_version(s);
    answer(outlet, taken ? NULL : m->id, result, &error);
    json_decref(take_message);
}

static void notification(struct session *s, const struct rpc_message *m) {
    const json_t *id = json_object_get(m->params, "requestId");

    if (strcmp(m->method, "notifications/cancelled") == 0 && id)
        call_cancel(s, id);
}

/* Takes one message. True: there is or will be an answer. */
static bool one(struct session *s, json_t *take_value, bool in_batch, size_t cost,
                struct outlet *outlet) {
    struct rpc_error error = {0};
    struct rpc_message m;
    bool answers = true;

    if (rpc_read(take_value, &m, &error)) {
        fail(outlet, m.id, &error);
    } else if (in_batch && m.method && strcmp(m.method, "initialize") == 0) {
        (void)rpc_fail(&error, RPC_INVALID, "initialize cannot be part of a batch");
        fail(outlet, m.id, &error);
    } else if (m.kind == RPC_REQUEST) {
        request(s, take_value, &m, cost, outlet);
        return true;
    } else {
        answers = false;
        if (m.kind == RPC_NOTIFICATION)
            notification(s, &m);
    }
    json_decref(take_value);
    return answers;
}

/* ------------------------------------------------------------------ batches */

/* Gathers the answers of a batch, and sends them as one when there are all. */
struct batch {
    struct outlet outlet; /* first: by it the messages find the batch */
    pthread_mutex_t lock;
    size_t missing;
    struct buf text;
};

static void batch_send(struct outlet *outlet, char *take_text, bool is_answer) {
    struct batch *b = (struct batch *)outlet;

    if (!is_answer) {
        outlet->to->send(outlet->to, take_text, false);
        return;
    }
    (void)pthread_mutex_lock(&b->lock);
    if (take_text) {
        buf_puts(&b->text, b->text.len ? "," : "[");
        buf_puts(&b->text, take_text);
        free(take_text);
    }
    bool last = --b->missing == 0;
    (void)pthread_mutex_unlock(&b->lock);
    if (!last)
        return;
    if (b->text.len)
        buf_puts(&b->text, "]");
    outlet->to->send(outlet->to, b->text.len && !b->text.failed ? buf_take(&b->text) : NULL, true);
    buf_done(&b->text);
    (void)pthread_mutex_destroy(&b->lock);
    free(b);
}

static bool batch_has_requests(const json_t *list) {
    struct rpc_error ignored;
    struct rpc_message m;
    size_t i;
    json_t *value;

    json_array_foreach(list, i, value) if (rpc_read(value, &m, &ignored) ||
                                           m.kind == RPC_REQUEST) return true;
    return false;
}

/* Takes the list. Each of its values is then held by one thread alone, as jansson wants it. */
static bool batch(struct session *s, json_t *take_list, size_t cost, struct outlet *outlet) {
    json_t *values[RPC_MAX_BATCH], *list = take_list;
    size_t n = json_array_size(list);
    struct batch *b = batch_has_requests(list) ? calloc(1, sizeof(*b)) : NULL;

    for (size_t i = 0; i < n; i++)
        values[i] = json_incref(json_array_get(list, i));
    json_decref(list);
    if (b) {
        b->outlet = (struct outlet){.send = batch_send, .to = outlet};
        (void)pthread_mutex_init(&b->lock, NULL);
        b->missing = n + 1; /* until all are handed in */
    }
    for (size_t i = 0; i < n; i++) {
        bool answers = one(s, values[i], true, cost, b ? &b->outlet : outlet);
        if (b && !answers)
            batch_send(&b->outlet, NULL, true);
    }
    if (b)
        batch_send(&b->outlet, NULL, true);
    return b != NULL;
}

/* ------------------------------------------------------------------ texts */

bool session_take(struct session *s, const char *text, size_t len, struct outlet *outlet) {
    struct rpc_error error = {0};
    const char *version = session_version(s);
    json_t *value = NULL;
    size_t cost = 0;

    if (rpc_parse(text, len, &value, &cost, &error)) {
        fail(outlet, value, &error);
        json_decref(value);
        return true;
    }
    if (!json_is_array(value))
        return one(s, value, false, cost, outlet);
    size_t n = json_array_size(value);
    if (!version || strcmp(version, batch_version) != 0)
        (void)rpc_fail(&error, RPC_INVALID, "batches are not part of this revision of MCP");
    else if (n == 0 || n > RPC_MAX_BATCH)
        (void)rpc_fail(&error, RPC_INVALID, "a batch has to have 1 to %d messages", RPC_MAX_BATCH);
    if (!error.code)
        return batch(s, value, cost, outlet);
    fail(outlet, NULL, &error);
    json_decref(value);
    return true;
}
