/*
 * main.c: the program mayfly-fetch: the table of its commands.
 *
 * mayfly starts it for whatever writes an image store or speaks to a network, so that the program that boxes are
 * cloned from has none of the libraries for that in its memory. Its command line is mayfly's business and may change
 * with it.
 *
 * Usage: mayfly-fetch COMMAND [ARGUMENTS]
 * Exit status: 0 done · 69 no registry could be reached · 141 the reader of the output went away · 125 not done, and
 * one line on standard error says why.
 */
#include "fetch/commands.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/defs.h"

#include "base/banned.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"pull", fetch_pull},     {"images", fetch_images}, {"inspect", fetch_inspect},
    {"rmi", fetch_rmi},       {"prune", fetch_prune},   {"import", fetch_import},
    {"export", fetch_export}, {"build", fetch_build},   {NULL, NULL},
};

int main(int argc, char **argv) {
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN); /* the write fails, and is said */
    for (size_t i = 0; argc > 1 && commands[i].name; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    (void)fprintf(stderr, "usage: mayfly-fetch COMMAND … (mayfly starts it)\n");
    return EXIT_FETCH;
}
