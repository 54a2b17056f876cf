/*
 * delegate.h: what mayfly_delegate() and the doctor share.
 */
#ifndef MAYFLY_LIB_DELEGATE_H
#define MAYFLY_LIB_DELEGATE_H

#include "base/err.h"
#include "linux/host.h"

/* A user who lacks a controller: one who asks his manager may get it. */
bool delegate_wanted(const struct host *host);
/* The user manager's socket is in sight. */
bool delegate_has_bus(void);
/* Asks by the program `helper` (NULL: looked for), and waits: 0 when this process is in its scope. The host's facts are then other ones. */
int delegate_ask(const char *helper, struct err *err);

#endif
