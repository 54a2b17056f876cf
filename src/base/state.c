/*
 * state.c: see state.h.
 */
#include "base/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/banned.h"

bool state_log(char *ret, size_t size) {
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int n;

    if (geteuid() == 0)
        n = snprintf(ret, size, "/var/log/mayfly/runs.jsonl");
    else if (state && *state == '/')
        n = snprintf(ret, size, "%s/mayfly/runs.jsonl", state);
    else if (home && *home == '/')
        n = snprintf(ret, size, "%s/.local/state/mayfly/runs.jsonl", home);
    else
        return false;
    return n > 0 && (size_t)n < size;
}

const char *state_log_path(const char *target, char *usual, size_t size) {
    static const char journald[] = "journald";
    size_t len = sizeof(journald) - 1;

    if (!target || !*target)
        return state_log(usual, size) ? usual : NULL;
    if (strncmp(target, journald, len) != 0 || (target[len] && target[len] != ':'))
        return target;
    return target[len] ? target + len + 1 : NULL;
}
