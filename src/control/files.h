/*
 * files.h: what the mount, binds and tmp controls share: the places /in and /out.
 */
#ifndef MAYFLY_CONTROL_FILES_H
#define MAYFLY_CONTROL_FILES_H

#include "plan/plan.h"

/* Names of the directories that the rootfs does not have and the box needs to mount on: NULL-terminated; NULL: none. */
const char *const *files_places(struct plan *plan);
/* Rows of /in with the files that are handed in by content, if there are any. */
void files_in_rows(struct plan *plan);
/* Rows of the script that a build's box executes, if there is one. */
void script_rows(struct plan *plan);
/* Rows of /out, if it is wanted. */
void files_out_rows(struct plan *plan);

#endif
