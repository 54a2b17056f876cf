/*
 * screen.h: what a person sees of a conversation. The answer goes to standard output, what is done for it to standard
 * error, a line a step. On a terminal the model's words appear as they come, and the code that it runs with them; else
 * the answer is printed when it is whole, so that what a pipe gets is the answer and nothing besides.
 *
 * Whatever a model or a program says, a terminal only shows it: control characters are left out.
 */
#ifndef MAYFLY_AGENT_SCREEN_H
#define MAYFLY_AGENT_SCREEN_H

#include <jansson.h>

#include "base/defs.h"
#include "tool/tool.h"

struct screen {
    bool live;     /* standard output is a terminal */
    bool detailed; /* standard error is */
    bool quiet;    /* nothing on standard error but errors */
    bool json;     /* nothing at all: the caller prints one object at the end */
    bool in_line;  /* text stands on the terminal's last line */
    int error;     /* -errno: standard output takes no more */
};

void screen_init(struct screen *s, bool quiet, bool json);
/* Of the model's text, as it comes. */
void screen_text(struct screen *s, const char *text, size_t len);
/* A whole answer; on a terminal it is there already. */
void screen_answer(struct screen *s, const char *text, size_t len);
/* A line of mayfly's own on standard error. */
void screen_note(struct screen *s, const char *line);
void screen_call(struct screen *s, unsigned step, const char *tool, const json_t *arguments);
void screen_result(struct screen *s, const char *tool, const struct tool_answer *answer);
/* A result's "files" and "filesSkipped": what the code left in /out, and what was not brought back. `kept`: where the
 * files are; NULL: in the result. */
void screen_files(struct screen *s, const char *tool, const json_t *result, const char *kept);

#endif
