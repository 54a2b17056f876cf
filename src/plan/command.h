/*
 * command.h: what will be executed, and where things are in the box.
 */
#ifndef MAYFLY_PLAN_COMMAND_H
#define MAYFLY_PLAN_COMMAND_H

#include "plan/plan.h"

/* Home and code path; before the controls are planned, which refer to them. */
int plan_places(struct plan *plan, struct err *err);
/* argv and the candidates for execve, from the environment's PATH; after. */
int plan_command(struct plan *plan, struct err *err);

#endif
