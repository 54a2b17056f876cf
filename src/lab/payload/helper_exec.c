/*
 * helper_exec.c: a program that looks at what executing it has changed.
 */
#include "lab/payload/helper.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/banned.h"

/* `error` need not be an errno's name. */
static int unchanged(void) {
    printf("STOPPED\texecve\tunchanged\t\n");
    return fflush(stdout) == 0 ? 0 : 1;
}

HELPER(other_uid) {
    (void)argc, (void)argv;
    if (geteuid() != getuid() || getegid() != getgid())
        return through("execve", "another id");
    return unchanged();
}

HELPER(more_capabilities) {
    char line[256];
    bool some = false;
    FILE *status = fopen("/proc/self/status", "re");

    (void)argc, (void)argv;
    while (status && fgets(line, sizeof(line), status))
        if (strncmp(line, "CapPrm:", 7) == 0)
            some = strspn(line + 7, " \t0\n") != strlen(line + 7);
    if (!status)
        return untestable("/proc/self/status cannot be read");
    (void)fclose(status);
    return some ? through("execve", "a capability") : unchanged();
}
