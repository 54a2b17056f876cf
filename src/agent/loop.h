/*
 * loop.h: the loop itself: ask the model; run what it calls, each call in a box of its own; tell it what came of that;
 * until it answers without calling anything, or may not be asked again.
 */
#ifndef MAYFLY_AGENT_LOOP_H
#define MAYFLY_AGENT_LOOP_H

#include "agent/endpoint.h"
#include "agent/screen.h"
#include "tool/tool.h"

enum loop_outcome {
    LOOP_FAILED,      /* the error says why */
    LOOP_ANSWERED,    /* the last message is the answer */
    LOOP_INCOMPLETE,  /* the answer is cut short or withheld, as its finish reason says, or empty */
    LOOP_MAX_STEPS,   /* it still called tools in the last step that it was given */
    LOOP_INTERRUPTED, /* by a signal */
};
const char *loop_outcome_name(enum loop_outcome outcome);

struct loop_options {
    const char *system_text, *question;
    unsigned max_steps;
    int cancel_fd; /* becomes readable: end now, boxes too */
};

/* All that was said and done. */
struct loop {
    json_t *messages; /* the conversation, as it is sent */
    json_t *runs; /* a list: {"step", "callId", "tool", "isError", "wallMs", "filesIn", "result"} */
    unsigned steps;  /* answers of the model */
    bool has_tokens; /* of each of them */
    uint64_t prompt_tokens, completion_tokens;
    char finish[32], model[128];
};

enum loop_outcome loop_run(struct loop *l, const struct loop_options *o, struct endpoint *endpoint,
                           const struct tool_set *tools, struct screen *screen, struct err *err);
/* The answer; NULL: there is none. Valid while the loop is. */
const json_t *loop_answer(const struct loop *l);
void loop_done(struct loop *l);

#endif
