/*
 * cmd_log.c: `mayfly log`, which is another program: it has the library for digests.
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

int cmd_log(const struct command *self, int argc, char **argv) {
    char path[4200], **words = NULL;

    (void)self;
    if (output_is_gone())
        return EXIT_MAYFLY;
    words = calloc((size_t)argc + 2, sizeof(*words));
    if (!words) {
        complain("out of memory");
        return EXIT_MAYFLY;
    }
    if (!helper_find("mayfly-log", path, sizeof(path))) {
        complain("the program mayfly-log is nowhere: it is built and installed with mayfly, and "
                 "does what concerns the run log");
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

void help_log(const struct command *self) {
    char log[] = "log", help[] = "--help", *argv[] = {log, help, NULL};

    (void)cmd_log(self, 2, argv); /* which says it itself */
}
