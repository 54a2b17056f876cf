/*
 * helper.h: the static program for what Python cannot do: `helper NAME ARGS…`.
 *
 * Each file beside it may define any number of payloads with HELPER(name) { … };
 * a payload says its verdict with the functions below, as its last act.
 */
#ifndef MAYFLY_LAB_HELPER_H
#define MAYFLY_LAB_HELPER_H

#include <errno.h>
#include <stddef.h>

struct helper {
    const char *name;
    int (*run)(int argc, char **argv); /* argv[0] is the name */
};

#define HELPER(ident)                                                                              \
    static int helper_##ident(int argc, char **argv);                                              \
    static const struct helper entry_##ident = {#ident, helper_##ident};                           \
    __attribute__((used, section("helpers"))) static const struct helper *const listed_##ident =   \
        &entry_##ident;                                                                            \
    static int helper_##ident(int argc, char **argv)

int through(const char *call, const char *detail);
int stopped(const char *call, int error, const char *detail); /* errno, or 0 */
int untestable(const char *why);

#endif
