/*
 * files.h: what a program left in /out, as a model sees it: pictures as pictures, texts as texts.
 */
#ifndef MAYFLY_TOOL_FILES_H
#define MAYFLY_TOOL_FILES_H

#include "base/buf.h"
#include "mayfly.h"
#include "tool/tool.h"

/* The files' names, and what was not brought back and why, for the answer's text. */
void files_name(const mayfly_result *r, struct buf *b);
/* MCP's content blocks, in the same order; NULL: there are none, or memory is out. */
json_t *files_content(const mayfly_result *r);

#endif
