/*
 * files_in.h: files that a model hands in with its call: "files", a list of names with what is in them.
 */
#ifndef MAYFLY_TOOL_FILES_IN_H
#define MAYFLY_TOOL_FILES_IN_H

#include "mayfly.h"
#include "tool/tool.h"

/* The argument's schema; NULL when memory is out. */
json_t *files_in_schema(void);
/* `list` NULL: there are none. False: the answer says, for the model, what is wrong with which. *ret_logged: what the log
 * says of them, the caller's to free; NULL where there are none. */
bool files_in_add(const char *tool, const json_t *list, mayfly_policy *policy, char **ret_logged,
                  struct tool_answer *answer);

#endif
