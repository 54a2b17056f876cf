/*
 * answer.h: what came of a call, in the words that a model reads, with the result object beside them.
 */
#ifndef MAYFLY_TOOL_ANSWER_H
#define MAYFLY_TOOL_ANSWER_H

#include "mayfly.h"
#include "tool/tool.h"

/* Exit code or the reason of the end, both streams verbatim, hints. `take_kept`: the directory in which the call's files
 * were kept; NULL: none were. `code_is_ours`: what is executed is mayfly's choice,
 * so where it is not there the fault is not the model's. */
void answer_result(const mayfly_result *result, bool code_is_ours, char *take_kept,
                   struct tool_answer *ret);
/* No box could be made. */
void answer_failure(const struct mayfly_error *error, struct tool_answer *ret);
/* Over an answer: what was executed is not in the log, as it has to be. */
void answer_unlogged(const struct mayfly_error *error, struct tool_answer *answer);
/* The arguments do not fit, as the text says: it should say what would. */
void answer_mistake(struct tool_answer *ret, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
