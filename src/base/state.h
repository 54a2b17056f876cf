/*
 * state.h: where the run log is when nobody says: for the programs that write it, and for mayfly, which sees first that
 * the code could not.
 */
#ifndef MAYFLY_BASE_STATE_H
#define MAYFLY_BASE_STATE_H

#include "base/defs.h"

/* $XDG_STATE_HOME/mayfly/runs.jsonl (~/.local/state), for root /var/log/mayfly. False: it cannot be told. */
bool state_log(char *ret, size_t size);
/* The file, or the socket, of what --log says: NULL and "" stand for the usual one, which is put into `usual`. NULL: none
 * that could be told, or the journal's own. */
const char *state_log_path(const char *target, char *usual, size_t size);

#endif
