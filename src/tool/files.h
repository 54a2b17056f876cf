/*
 * files.h: what a program left in /out, as a model sees it: pictures as pictures, texts as texts.
 */
#ifndef MAYFLY_TOOL_FILES_H
#define MAYFLY_TOOL_FILES_H

#include "base/buf.h"
#include "mayfly.h"
#include "tool/tool.h"

/* The files' names, and what was not brought back and why, for the answer's text. `kept`: the name of the directory where
 * the user has them; NULL: they come along. */
void files_name(const mayfly_result *r, const char *kept, struct buf *b);
/* MCP's content blocks, in the same order; NULL: there are none, or memory is out. */
json_t *files_content(const mayfly_result *r);

#endif
