/*
 * turn.h: what a model said in one turn: text, and the tools it calls. From a whole chat completion, or put together from
 * the chunks of a streamed one, in which a call's arguments come in pieces, those of several calls mixed.
 *
 * Endpoints differ in what they leave out: a call without an id or an index, arguments as an object, content as a list of
 * parts. What can be understood in one way only is taken.
 */
#ifndef MAYFLY_AGENT_TURN_H
#define MAYFLY_AGENT_TURN_H

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"

enum { TURN_MAX_CALLS = 32, TURN_MAX_BYTES = 16 << 20 /* of text and arguments */ };

struct turn_call {
    char *id, *name; /* NULL: not said */
    struct buf arguments;
    json_int_t index; /* the endpoint's; -1: not said */
};

/* Zeroed but for on_text and key: nothing was said yet. */
struct turn {
    /* Blotted out of text and arguments: an endpoint that repeats it would have it on the screen, in a box, in the log.
     * Borrowed; NULL: there is none. */
    const char *key;
    /* What comes of the text, as it comes; NULL: nobody listens. */
    void (*on_text)(void *arg, const char *text, size_t len);
    void *arg;

    struct buf text;
    size_t shown; /* bytes of it that on_text got */
    struct turn_call calls[TURN_MAX_CALLS];
    size_t n_calls;
    char finish[32]; /* "stop", "tool_calls", "length", …; "": not said yet */
    char model[128]; /* the one that answered */
    bool has_tokens;
    uint64_t prompt_tokens, completion_tokens;
};

/* One chunk of a stream, or a whole completion. -EPROTO: it is neither; -EREMOTEIO: it is the endpoint's error, whose
 * words are the message; -EMSGSIZE: it is too much. */
int turn_add_chunk(struct turn *t, const char *json, size_t len, struct err *err);
int turn_add_whole(struct turn *t, const char *json, size_t len, struct err *err);
/* All of it came: shows the rest, and sees to it that each call has an id of its own and a name, as the answers need. */
int turn_complete(struct turn *t, unsigned step, struct err *err);
/* The message by which it stays in the conversation; NULL: memory ran out. */
json_t *turn_message(const struct turn *t);
/* Back to where nothing was said; on_text and key stay. */
void turn_reset(struct turn *t);

/* The length of a key that is to stay secret; 0: none, or so short that it is a word to please an endpoint which asks for
 * none ("ollama", "none"), and which may stand in any text. */
size_t key_secret(const char *key);
/* Blots the key out of a text, in place. Returns the text. */
char *key_blot(char *text, size_t len, const char *key);
/* Out of all strings in a value, but not out of names. */
void key_blot_json(json_t *value, const char *key);

/* The words of an error in a body: {"error": {"message": "…"}} and its like. NULL: there are none. */
const char *turn_error_words(const json_t *body);

#endif
