/*
 * helper_exec.c: a program that looks at what executing it has changed, and one for a rootfs without any other.
 */
#include "lab/payload/helper.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
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

/* The first of its arguments that opens. */
HELPER(open_one) {
    int error = 0;

    for (int i = 1; i < argc; i++) {
        int fd = open(argv[i], O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd >= 0)
            return through("open", argv[i]);
        error = errno;
    }
    return stopped("open", error, "");
}

/* -1: that cannot be read. In a box without a /proc the host's is elsewhere: probe.h. */
static int has_capabilities(void) {
    const char *proc = getenv("LAB_PROC");
    char path[256], line[256];
    int some = -1;

    (void)snprintf(path, sizeof(path), "%.200s/self/status", proc ? proc : "/proc");
    FILE *status = fopen(path, "re");
    while (status && fgets(line, sizeof(line), status))
        if (strncmp(line, "CapPrm:", 7) == 0)
            some = strspn(line + 7, " \t0\n") != strlen(line + 7);
    if (status)
        (void)fclose(status);
    return some;
}

static int capability_after(void) {
    switch (has_capabilities()) {
    case 0:
        return unchanged();
    case 1:
        return through("execve", "a capability");
    default:
        return untestable("/proc/self/status cannot be read");
    }
}

/* Root has capabilities already, and gives them up first: argv[1] is this program, and is executed again. Anybody else had
 * none before he executed it. */
HELPER(gain_capability) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {0};
    enum { SOMEBODY = 1000 };

    if (argc == 1 || geteuid() != 0)
        return capability_after();
    if (setresgid(SOMEBODY, SOMEBODY, SOMEBODY) == 0)
        (void)setresuid(SOMEBODY, SOMEBODY, SOMEBODY);
    if (has_capabilities() != 0 && syscall(SYS_capset, &header, none) < 0)
        return untestable("it has capabilities, and cannot give them up to gain one");
    (void)execl(argv[1], argv[1], "gain_capability", (char *)NULL);
    return stopped("execve", errno, "");
}
