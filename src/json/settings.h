/*
 * settings.h: an operator's settings, handed from the program that read his command line to one that makes many boxes
 * with them: what was chosen, in its order, so that any number of policies can be made as he wants them.
 *
 * They travel in a file without a name, by its descriptor: a command line is for everybody on the host to read, and
 * there can be keys in them ("env"). A value is any bytes, so they are names and values with NULs between, not JSON.
 */
#ifndef MAYFLY_JSON_SETTINGS_H
#define MAYFLY_JSON_SETTINGS_H

#include "base/buf.h"
#include "mayfly.h"

/* Zeroed: nothing was chosen. */
struct settings {
    struct buf text;
};

void settings_add(struct settings *s, const char *name, const char *value);
/* A policy's file, which has been taken already, so that there is no NUL in it. */
void settings_add_policy(struct settings *s, const char *text);
/* Whether the field was given a value; "": whether a policy's file was. */
bool settings_have(const struct settings *s, const char *name);
void settings_done(struct settings *s);

/* Into a file that a program executed from here inherits: its descriptor, or -errno. And back, which closes it. */
int settings_write(const struct settings *s);
int settings_read(int take_fd, struct settings *ret, struct mayfly_error *error);

/* All of it over the policy. Any thread. */
int settings_apply(const struct settings *s, mayfly_policy *policy, struct mayfly_error *error);

#endif
