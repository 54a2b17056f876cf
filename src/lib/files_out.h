/*
 * files_out.h: what the code left in /out, as files in a directory of the caller's or as part of the result.
 *
 * Everything about these files is the code's choice: names, kinds, sizes, numbers. A regular file under a plain name is
 * brought back as a new file that nobody may execute; nothing that is there already is replaced or entered, and whatever
 * is not brought back is told with the reason.
 */
#ifndef MAYFLY_LIB_FILES_OUT_H
#define MAYFLY_LIB_FILES_OUT_H

#include "box/box.h"
#include "mayfly.h"

/* The directory that the policy names with "out", made if it is not there; -1 where it names none. Before the run, so
 * that no run is lost to a directory that cannot be written. */
int files_out_open(const struct policy *policy, int *ret_dir, struct err *err);

/* After box_reap: into `dir`, or, where that is -1, into the result. Not to be able to is said in the result. */
int files_out_bring(struct box *box, int dir, struct mayfly_result *result, struct err *err);

#endif
