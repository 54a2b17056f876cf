/*
 * endpoint.h: an OpenAI-compatible endpoint, POST BASE/chat/completions, asked until it answers or it is clear that it
 * will not.
 *
 * What a moment's trouble can be (429, 5xx, a stream that is cut) is asked again, after the time that the endpoint names
 * or one that doubles, and a bounded number of times. What is the operator's to mend (the key, the model's name, the
 * URL) is an error at once, of one line. Parameters that an older endpoint does not know are left out, once it has said
 * so.
 *
 * The key goes to the base URL's host and nowhere else: no redirect is followed, plain HTTP is for this machine unless
 * the operator asks for it, and then no proxy of the environment's stands between. It is in no error: where an endpoint
 * repeats it, it is blotted out.
 *
 * Source: OpenAI API reference, Chat Completions; RFC 9110 10.2.3 (Retry-After).
 */
#ifndef MAYFLY_AGENT_ENDPOINT_H
#define MAYFLY_AGENT_ENDPOINT_H

#include "agent/turn.h"

struct endpoint;

struct endpoint_options {
    const char *base_url;
    const char *
        key; /* NULL: none is shown. Of visible ASCII; valid while the endpoint lives, as all texts here */
    const char *model;
    uint32_t max_tokens; /* 0: the endpoint's own limit */
    uint32_t retries, request_ms;
    bool plain_http, no_stream;
    int wake_fd; /* becomes readable: give up now */
};

/* What is to be told while it is asked; `note` is a line about why and when it is asked again. */
struct endpoint_listener {
    void (*text)(void *arg, const char *text, size_t len);
    void (*note)(void *arg, const char *line);
    void *arg;
};

int endpoint_new(const struct endpoint_options *o, struct endpoint **ret, struct err *err);
void endpoint_free(struct endpoint *e); /* accepts NULL */

/* One turn. *turn is zeroed or was reset before, and filled. -EINTR: it was woken. */
int endpoint_ask(struct endpoint *e, const json_t *messages, const json_t *tools,
                 const struct endpoint_listener *l, struct turn *turn, struct err *err);
/* How often it had to be asked again, in all. */
unsigned endpoint_retries(const struct endpoint *e);

#endif
