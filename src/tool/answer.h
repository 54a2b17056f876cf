/*
 * answer.h: what came of a call, in the words that a model reads, with the result object beside them.
 */
#ifndef MAYFLY_TOOL_ANSWER_H
#define MAYFLY_TOOL_ANSWER_H

#include "mayfly.h"
#include "tool/tool.h"

/* Exit code or the reason of the end, both streams verbatim, hints. `code_is_ours`: what is executed is mayfly's choice,
 * so where it is not there the fault is not the model's. */
void answer_result(const mayfly_result *result, bool code_is_ours, struct tool_answer *ret);
/* No box could be made. */
void answer_failure(const struct mayfly_error *error, struct tool_answer *ret);
/* The arguments do not fit, as the text says: it should say what would. */
void answer_mistake(struct tool_answer *ret, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
