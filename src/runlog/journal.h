/*
 * journal.h: the run log in systemd's journal, by its own protocol: a datagram of fields, or, where that is too large, a
 * sealed memory file with them. The journal has order and sealing of its own, so these records are not chained.
 */
#ifndef MAYFLY_RUNLOG_JOURNAL_H
#define MAYFLY_RUNLOG_JOURNAL_H

#include "runlog/runlog.h"

#define JOURNAL_SOCKET "/run/systemd/journal/socket"

int journal_check(const char *path, struct err *err);
int journal_send(const char *path, const json_t *record, struct err *err);

#endif
