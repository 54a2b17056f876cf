/*
 * toolbox.h: the tools that are boxes: run_python, and run_command where the operator allows it.
 *
 * The operator's settings are the box's, for each call anew. What the model may ask for is a shorter time, and nothing
 * else: there is no argument by which a limit could be raised.
 */
#ifndef MAYFLY_TOOL_TOOLBOX_H
#define MAYFLY_TOOL_TOOLBOX_H

#include "json/settings.h"
#include "mayfly.h"
#include "runlog/runlog.h"
#include "tool/tool.h"

struct toolbox;

struct toolbox_options {
    bool allow_run;                   /* run_command, too */
    const char *source;               /* who asks, in the run log: "mcp" */
    const struct runlog_options *log; /* where each call is logged; NULL: nowhere */
};

/* Makes one box, in which it asks the image's Python what it is and has, and from which it reads the limits that will
 * hold: so what the model is told is true, and a host on which no box can be made, or a log that cannot be written, is
 * found out before the first call. That one runs nothing of the model's, and is not logged. Takes the settings, also when
 * it fails; what the options point to is borrowed. */
int toolbox_new(struct settings *take_settings, const struct toolbox_options *options,
                struct toolbox **ret, struct mayfly_error *error);
void toolbox_free(struct toolbox *t); /* accepts NULL */

/* Valid until then. */
const struct tool_set *toolbox_tools(const struct toolbox *t);

#endif
