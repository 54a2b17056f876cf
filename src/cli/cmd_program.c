/*
 * cmd_program.c: the commands that are programs of their own, since what they link would be read at every run's start:
 * `mayfly log` (the library for digests) and `mayfly lab` (the probes, and a build in which controls can be off).
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/helper.h"
#include "cli/cli.h"

#include "base/banned.h"

/* This process becomes the program, which gets the words as they are. Returns only if that fails. */
static int become(const char *program, int argc, char **argv) {
    char path[4200], **words = NULL;

    if (output_is_gone())
        return EXIT_MAYFLY;
    words = calloc((size_t)argc + 2, sizeof(*words));
    if (!words) {
        complain("out of memory");
        return EXIT_MAYFLY;
    }
    if (!helper_find(program, path, sizeof(path))) {
        complain("the program %s is nowhere: it is built and installed with mayfly, and does what "
                 "`mayfly %s` is to do",
                 program, argv[0]);
    } else {
        words[0] = path;
        for (int i = 0; i < argc; i++)
            words[i + 1] = argv[i];
        (void)signal(SIGPIPE, SIG_DFL);
        (void)execv(path, words);
        complain("%s: %s", path, errno_words(-errno));
    }
    free(words);
    return EXIT_MAYFLY;
}

int cmd_program(const struct command *self, int argc, char **argv) {
    char program[64];

    (void)snprintf(program, sizeof(program), "mayfly-%s", self->name);
    return become(program, argc, argv);
}

/* The program says it itself. */
void help_program(const struct command *self) {
    char name[32], help[] = "--help", *argv[] = {name, help, NULL};

    (void)snprintf(name, sizeof(name), "%s", self->name);
    (void)cmd_program(self, 2, argv);
}
