/*
 * tool.h: what a tool is to whoever offers it to a model: a name, a definition, and a function that is called with what
 * the model wrote and answers with what the model reads. The MCP server and the agent's loop offer the same tools.
 *
 * A call that the code made fail (a traceback, a time limit) is an answer like any other. Only what the model cannot
 * know from its own code is an error: arguments that do not fit, in words by which they can be mended, and a fault of
 * mayfly's or the host's.
 */
#ifndef MAYFLY_TOOL_TOOL_H
#define MAYFLY_TOOL_TOOL_H

#include <jansson.h>

#include "base/defs.h"

/* Syslog's, as MCP names them, from the least. */
enum tool_level {
    TOOL_DEBUG,
    TOOL_INFO,
    TOOL_NOTICE,
    TOOL_WARNING,
    TOOL_ERROR,
    TOOL_CRITICAL,
    TOOL_ALERT,
    TOOL_EMERGENCY,
};

/* One call, as its caller sees it. What the tool has to tell meanwhile is optional: the functions may be NULL. */
struct tool_run {
    int cancel_fd; /* becomes readable: end now; the answer will not be read */
    void (*progress)(const struct tool_run *run, double done, double total, const char *message);
    void (*log)(const struct tool_run *run, enum tool_level level, const char *text);
};

struct tool_answer {
    bool is_error;
    char *
        text; /* for the model; malloc'ed, UTF-8, in which there may be NULs. NULL: memory ran out */
    size_t len;
    char *structured; /* a JSON object by the definition's output schema; malloc'ed; NULL: none */
    char *
        kept; /* the directory of the host's in which the call's files are; malloc'ed; NULL: none */
    json_t *more; /* a list of MCP content blocks that follow the text; NULL: none */
};
void tool_answer_done(struct tool_answer *answer);

struct tool {
    const char *name;
    json_t *
        definition; /* as MCP lists it: name, title, description, inputSchema, outputSchema, annotations */
    /* `arguments` is an object. Any thread. */
    void (*call)(void *owner, const json_t *arguments, const struct tool_run *run,
                 struct tool_answer *ret);
};

/* What is offered. */
struct tool_set {
    const struct tool *list;
    size_t n;
    void *owner;
    const char *instructions; /* about all of them, for the model; NULL: none */
    double longest_s;         /* the most that a call can take; 0: not known */
};
const struct tool *tool_find(const struct tool_set *set, const char *name);

#endif
