/*
 * fuzz_turn.c: what a chat endpoint sends. The first byte says how: as a stream of events, where the second is how many
 * bytes come at a time and the events must be the same as all at once; or, from "w" on, as a whole completion. What was
 * understood is a message which, sent back in a completion, is understood as the same.
 */
#include "fuzz/target.h"

#include <errno.h>
#include <string.h>

#include "agent/sse.h"
#include "agent/turn.h"

#include "base/banned.h"

static int note(void *arg, const char *data, size_t len, struct err *err) {
    struct buf *b = arg;

    (void)err;
    fuzz_must(strlen(data) <= len, "no end");
    buf_puts(b, "event ");
    buf_add(b, data, len);
    return 0;
}

static int take(void *arg, const char *data, size_t len, struct err *err) {
    return turn_add_chunk(arg, data, len, err);
}

static int feed(const uint8_t *data, size_t size, size_t step, sse_event *on_event, void *arg,
                struct err *err) {
    struct sse s = {0};
    int r = 0;

    for (size_t i = 0; i < size && r == 0; i += step)
        r = sse_feed(&s, (const char *)data + i, MIN(step, size - i), on_event, arg, err);
    r = r ? r : sse_end(&s, on_event, arg, err);
    sse_done(&s);
    return r;
}

static void must_be_the_same_in_pieces(const uint8_t *data, size_t size, size_t step) {
    _cleanup_buf_ struct buf whole = {0}, pieces = {0};
    struct err err = {0};

    fuzz_must(feed(data, size, size + 1, note, &whole, &err) == 0, "%s", err.message);
    fuzz_must(feed(data, size, step, note, &pieces, &err) == 0, "%s", err.message);
    fuzz_must(whole.len == pieces.len &&
                  (!whole.len || memcmp(whole.data, pieces.data, whole.len) == 0),
              "%zu, %zu bytes", whole.len, pieces.len);
}

static bool same(const struct buf *a, const struct buf *b) {
    return a->len == b->len && (!a->len || memcmp(a->data, b->data, a->len) == 0);
}

static void must_be_understood_again(const struct turn *t) {
    json_t *body = json_pack("{s:[{s:o}]}", "choices", "message", turn_message(t));
    char *text = json_dumps(body, JSON_COMPACT);
    struct turn again = {0};
    struct err err = {0};

    fuzz_must(text && turn_add_whole(&again, text, strlen(text), &err) == 0, "%s: %s", text,
              err.message);
    fuzz_must(same(&again.text, &t->text) && again.n_calls == t->n_calls, "%s", text);
    for (size_t i = 0; i < t->n_calls; i++)
        fuzz_must(strcmp(again.calls[i].id, t->calls[i].id) == 0 &&
                      strcmp(again.calls[i].name, t->calls[i].name) == 0 &&
                      same(&again.calls[i].arguments, &t->calls[i].arguments),
                  "%s", text);
    turn_reset(&again);
    free(text);
    json_decref(body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct fuzz_input in = {data, size};
    bool whole = fuzz_byte(&in) >= 'w';
    size_t step = (size_t)fuzz_byte(&in) % 16 + 1;
    struct turn t = {0};
    struct err err = {0};
    int r;

    if (whole) {
        r = turn_add_whole(&t, (const char *)in.at, in.left, &err);
    } else {
        must_be_the_same_in_pieces(in.at, in.left, step);
        r = feed(in.at, in.left, step, take, &t, &err);
    }
    fuzz_must(r == 0 || r == -EPROTO || r == -EREMOTEIO || r == -EMSGSIZE, "%d: %s", r,
              err.message);
    if (r < 0)
        fuzz_one_line(err.message);
    fuzz_must(turn_complete(&t, 1, &(struct err){0}) == 0, "incomplete");
    must_be_understood_again(&t);
    turn_reset(&t);
    return 0;
}
