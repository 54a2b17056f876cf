/*
 * helper.c: finds the payload that is named, and prints what it found.
 */
#include "lab/payload/helper.h"

#include <stdio.h>
#include <string.h>

#include "base/banned.h"

extern const struct helper *const __start_helpers[];
extern const struct helper *const __stop_helpers[];

static int say(const char *verdict, const char *call, const char *error, const char *detail) {
    printf("%s\t%s\t%s\t%s\n", verdict, call, error, detail ? detail : "");
    return fflush(stdout) == 0 ? 0 : 1;
}

int through(const char *call, const char *detail) { return say("THROUGH", call, "", detail); }

int stopped(const char *call, int error, const char *detail) {
    return say("STOPPED", call, error ? strerrorname_np(error) : "", detail);
}

int untestable(const char *why) { return say("UNTESTABLE", "", "", why); }

/* The least a payload can do: a box that lets it has been built and entered. */
HELPER(nothing) {
    (void)argc, (void)argv;
    return through("execve", "");
}

int main(int argc, char **argv) {
    // cppcheck-suppress comparePointers
    for (const struct helper *const *h = __start_helpers; argc > 1 && h < __stop_helpers; h++)
        if (strcmp((*h)->name, argv[1]) == 0)
            return (*h)->run(argc - 1, argv + 1);
    return 99;
}
