/*
 * loop.c: see loop.h. Calls of one turn run beside each other, some at a time; what they print is put together in the
 * order in which they were called, whichever ends first.
 */
#include "agent/loop.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "agent/turn.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/utf8.h"
#include "tool/answer.h"

#include "base/banned.h"

enum {
    AT_ONCE = 4, /* boxes */
    MAX_RESULT_BYTES =
        48 << 10 /* of a tool's answer that a model is given: it has to read it all */
};

/* What a model is told unless the operator says otherwise. */
static const char usual_system[] =
    "You answer questions with the help of code that you run in a sandbox. Run code rather than "
    "guess wherever "
    "something can be computed or tried. When code fails, read the traceback, correct it and run "
    "it again. When you "
    "know the answer, give it in plain text, without calling a tool.";

static const char *const outcome_names[] = {[LOOP_FAILED] = "failed",
                                            [LOOP_ANSWERED] = "answered",
                                            [LOOP_INCOMPLETE] = "incomplete",
                                            [LOOP_MAX_STEPS] = "max_steps",
                                            [LOOP_INTERRUPTED] = "interrupted"};
const char *loop_outcome_name(enum loop_outcome outcome) { return outcome_names[outcome]; }

/* ------------------------------------------------------------------ one call */

struct one_call {
    const struct turn_call *asked;
    json_t *arguments; /* NULL: they are no object; `why` says what they are */
    char why[160];
    struct tool_answer answer;
    double wall_ms;
};

struct batch {
    const struct tool_set *tools;
    struct one_call calls[TURN_MAX_CALLS];
    size_t n;
    atomic_size_t next;
    int cancel_fd;
};

static void no_such_tool(const struct tool_set *tools, const char *name, struct tool_answer *ret) {
    _cleanup_buf_ struct buf names = {0};

    for (size_t i = 0; i < tools->n; i++)
        buf_printf(&names, "%s%s", i ? ", " : "", tools->list[i].name);
    answer_mistake(ret, "There is no tool \"%.64s\". There is: %s.", name,
                   names.len ? names.data : "none");
}

static void execute(const struct batch *b, struct one_call *c) {
    const struct tool *tool = tool_find(b->tools, c->asked->name);
    const struct tool_run run = {.cancel_fd = b->cancel_fd};
    uint64_t since = now_ns();

    if (!tool)
        no_such_tool(b->tools, c->asked->name, &c->answer);
    else if (!c->arguments)
        answer_mistake(&c->answer,
                       "%s: the arguments have to be one JSON object by the tool's schema, and are "
                       "not: %s. Nothing was run; call it again.",
                       tool->name, c->why);
    else
        tool->call(b->tools->owner, c->arguments, &run, &c->answer);
    c->wall_ms = (double)(now_ns() - since) / 1e6;
}

static void *work(void *data) {
    struct batch *b = data;

    for (size_t i; (i = atomic_fetch_add(&b->next, 1)) < b->n;)
        execute(b, &b->calls[i]);
    return NULL;
}

/* In this thread and some more; if there can be no more, in this one alone. */
static void execute_all(struct batch *b) {
    pthread_t threads[AT_ONCE - 1];
    size_t n = 0;

    while (n < AT_ONCE - 1 && n + 1 < b->n && pthread_create(&threads[n], NULL, work, b) == 0)
        n++;
    (void)work(b);
    while (n > 0)
        (void)pthread_join(threads[--n], NULL);
}

/* ------------------------------------------------------------------ what becomes of it */

static size_t whole_characters(const char *text, size_t len) {
    while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80)
        len--;
    return len;
}

/* A tool's answer as a message; of a very long one the begin and the end. */
static json_t *tool_message(const struct one_call *c) {
    const char *text = c->answer.text;
    size_t len = c->answer.len;
    _cleanup_buf_ struct buf b = {0};

    if (!text)
        return NULL;
    if (len > MAX_RESULT_BYTES) {
        size_t head = whole_characters(text, MAX_RESULT_BYTES / 4 * 3);
        size_t tail = whole_characters(text, len - MAX_RESULT_BYTES / 4);
        buf_add(&b, text, head);
        buf_printf(&b, "\n[mayfly: %zu bytes are left out here; print less]\n", tail - head);
        buf_add(&b, text + tail, len - tail);
        if (b.failed)
            return NULL;
        text = b.data;
        len = b.len;
    }
    return json_pack("{s:s,s:s,s:s%}", "role", "tool", "tool_call_id", c->asked->id, "content",
                     text, len);
}

static json_t *run_record(unsigned step, const struct one_call *c) {
    json_t *result =
        c->answer.structured ? json_loads(c->answer.structured, JSON_ALLOW_NUL, NULL) : json_null();

    return json_pack("{s:i,s:s,s:s,s:b,s:f,s:s?,s:o}", "step", (int)step, "callId", c->asked->id,
                     "tool", c->asked->name, "isError", c->answer.is_error, "wallMs", c->wall_ms,
                     "filesIn", c->answer.kept, "result", result);
}

static bool is_cancelled(int fd) {
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, 0) > 0;
}

static int append(json_t *list, json_t *take_value, struct err *err) {
    return json_array_append_new(list, take_value) < 0 ? err_oom(err) : 0;
}

/* After an earlier error: drops it. */
static int append_or_drop(json_t *list, json_t *take_value, int r, struct err *err) {
    if (r == 0)
        return append(list, take_value, err);
    json_decref(take_value);
    return r;
}

static int run_calls(struct loop *l, const struct turn *turn, const struct tool_set *tools,
                     int cancel_fd, struct screen *screen, struct err *err) {
    struct batch *b = calloc(1, sizeof(*b));
    json_error_t why;
    int r = 0;

    if (!b)
        return err_oom(err);
    b->tools = tools;
    b->cancel_fd = cancel_fd;
    for (b->n = 0; b->n < turn->n_calls; b->n++) {
        const struct turn_call *asked = &turn->calls[b->n];
        struct one_call *c = &b->calls[b->n];
        c->asked = asked;
        c->arguments = json_loadb(asked->arguments.data, asked->arguments.len,
                                  JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &why);
        if (!c->arguments)
            (void)snprintf(c->why, sizeof(c->why), "%.100s (line %d, column %d)", why.text,
                           why.line, why.column);
        if (c->arguments && !json_is_object(c->arguments)) {
            json_decref(TAKE_PTR(c->arguments));
            (void)str_copy(c->why, sizeof(c->why), "they are no object");
        }
        screen_call(screen, l->steps, asked->name, c->arguments);
    }
    execute_all(b);
    for (size_t i = 0; i < b->n; i++) {
        struct one_call *c = &b->calls[i];
        screen_result(screen, c->asked->name, &c->answer);
        json_t *record = run_record(l->steps, c);
        screen_files(screen, c->asked->name, json_object_get(record, "result"), c->answer.kept);
        r = r ? r : append(l->messages, tool_message(c), err);
        r = append_or_drop(l->runs, record, r, err);
        json_decref(c->arguments);
        tool_answer_done(&c->answer);
    }
    free(b);
    return r;
}

/* ------------------------------------------------------------------ the loop */

/* The tools as functions. */
static json_t *functions(const struct tool_set *tools) {
    json_t *list = json_array();

    for (size_t i = 0; i < tools->n; i++) {
        const json_t *d = tools->list[i].definition;
        (void)json_array_append_new(list,
                                    json_pack("{s:s,s:{s:O,s:O,s:O}}", "type", "function",
                                              "function", "name", json_object_get(d, "name"),
                                              "description", json_object_get(d, "description"),
                                              "parameters", json_object_get(d, "inputSchema")));
    }
    if (json_array_size(list) == tools->n)
        return list;
    json_decref(list);
    return NULL;
}

static int begin(struct loop *l, const struct loop_options *o, struct err *err) {
    l->runs = json_array();
    l->messages = json_array();
    l->has_tokens = true;
    const char *first = o->system_text ? o->system_text : usual_system;
    int r = 0;

    if (*first)
        r = append(l->messages, json_pack("{s:s,s:s}", "role", "system", "content", first), err);
    r = r ? r
          : append(l->messages, json_pack("{s:s,s:s}", "role", "user", "content", o->question),
                   err);
    return r == 0 && !l->runs ? err_oom(err) : r;
}

static void text_comes(void *arg, const char *text, size_t len) { screen_text(arg, text, len); }
static void note_comes(void *arg, const char *line) { screen_note(arg, line); }

static int take_turn(struct loop *l, struct turn *turn, struct err *err) {
    l->steps++;
    int r = turn_complete(turn, l->steps, err);

    r = r ? r : append(l->messages, turn_message(turn), err);
    l->has_tokens = l->has_tokens && turn->has_tokens;
    l->prompt_tokens += turn->prompt_tokens;
    l->completion_tokens += turn->completion_tokens;
    (void)str_copy(l->finish, sizeof(l->finish), turn->finish);
    (void)str_copy(l->model, sizeof(l->model), turn->model);
    return r;
}

/* LOOP_FAILED without an error: it goes on. */
static enum loop_outcome step(struct loop *l, const struct loop_options *o, const struct turn *turn,
                              const struct tool_set *tools, struct screen *screen,
                              struct err *err) {
    if (turn->n_calls == 0) {
        screen_answer(screen, turn->text.len ? turn->text.data : "", turn->text.len);
        return turn->text.len && strcmp(turn->finish, "length") != 0 &&
                       strcmp(turn->finish, "content_filter") != 0
                   ? LOOP_ANSWERED
                   : LOOP_INCOMPLETE;
    }
    if (l->steps >= o->max_steps)
        return LOOP_MAX_STEPS;
    (void)run_calls(l, turn, tools, o->cancel_fd, screen, err);
    return is_cancelled(o->cancel_fd) ? LOOP_INTERRUPTED : LOOP_FAILED;
}

static enum loop_outcome converse(struct loop *l, const struct loop_options *o,
                                  struct endpoint *endpoint, const json_t *offered,
                                  const struct tool_set *tools, struct screen *screen,
                                  struct turn *turn, struct err *err) {
    const struct endpoint_listener listener = {
        .text = text_comes, .note = note_comes, .arg = screen};
    enum loop_outcome outcome = LOOP_FAILED;
    int r = begin(l, o, err);

    while (r == 0 && outcome == LOOP_FAILED) {
        r = endpoint_ask(endpoint, l->messages, offered, &listener, turn, err);
        if (r == -EINTR)
            outcome = LOOP_INTERRUPTED;
        r = r ? r : take_turn(l, turn, err);
        if (r == 0)
            outcome = step(l, o, turn, tools, screen, err);
        r = r ? r : err->code;
        turn_reset(turn);
    }
    return outcome;
}

enum loop_outcome loop_run(struct loop *l, const struct loop_options *o, struct endpoint *endpoint,
                           const struct tool_set *tools, struct screen *screen, struct err *err) {
    json_t *offered = functions(tools);
    struct turn *turn = calloc(1, sizeof(*turn));
    enum loop_outcome outcome = LOOP_FAILED;

    if (turn && offered)
        outcome = converse(l, o, endpoint, offered, tools, screen, turn, err);
    else
        (void)err_oom(err);
    free(turn);
    json_decref(offered);
    return outcome;
}

const json_t *loop_answer(const struct loop *l) {
    const json_t *last = json_array_get(l->messages, json_array_size(l->messages) - 1);
    const char *role = json_string_value(json_object_get(last, "role"));

    if (!role || strcmp(role, "assistant") != 0 || json_object_get(last, "tool_calls"))
        return NULL;
    const json_t *text = json_object_get(last, "content");
    return json_is_string(text) ? text : NULL;
}

void loop_done(struct loop *l) {
    json_decref(l->messages);
    json_decref(l->runs);
    *l = (struct loop){0};
}
