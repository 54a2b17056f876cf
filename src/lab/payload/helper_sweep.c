/*
 * helper_sweep.c: what of the kernel can be reached at all, found by trying.
 */
#include "lab/payload/helper.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/banned.h"

enum { CALLS = 601, RETURNS = 255 };

static int is_refusal(int error) { return error == EPERM || error == ENOSYS; }

/* ------------------------------------------------------------------ system calls by number */

/* In a process of its own, which a call may end: the error it gives, -SIGNAL, or RETURNS. What waits is ended. */
static int answer(long nr) {
    const long ones = -1;
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        const struct rlimit no_core = {1, 1}; /* 0 would still feed a core_pattern that is a pipe */

        (void)setrlimit(RLIMIT_CORE, &no_core);
        (void)signal(SIGALRM, SIG_DFL);
        (void)alarm(1);
        long r = syscall(nr, ones, ones, ones, ones, ones, ones);
        _exit(r == -1 ? errno : RETURNS);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return -SIGKILL;
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/* Of a list "NUMBER:ERROR,": the error that a filter gives that call in place of the usual; 0: none. */
static int odd_refusal(const char *list, long nr) {
    char *end;

    for (const char *p = list; *p; p = end + (*end == ',')) {
        long number = strtol(p, &end, 10), error = *end == ':' ? strtol(end + 1, &end, 10) : 0;
        if (end == p)
            break;
        if (number == nr)
            return (int)error;
    }
    return 0;
}

/* argv[1]: those to try, a hexadecimal digit for four of them, the first four first; argv[2]: odd_refusal(). */
HELPER(sweep_calls) {
    const char *digits = argc == 3 ? argv[1] : "", *odd = argc == 3 ? argv[2] : "";
    int n = 0, reached = 0, first = -1;
    char text[120];

    for (long nr = 0; nr < CALLS && digits[nr / 4]; nr++) {
        const char digit[2] = {digits[nr / 4], '\0'};
        if (!(strtol(digit, NULL, 16) >> nr % 4 & 1))
            continue;
        int a = answer(nr);
        n++;
        if (a == -SIGSYS || (a > 0 && (is_refusal(a) || a == odd_refusal(odd, nr))))
            continue;
        if (!reached++)
            first = (int)nr;
    }
    (void)snprintf(text, sizeof(text), "%d of %d calls reach the kernel, number %d first", reached,
                   n, first);
    if (reached)
        return through("syscall", text);
    (void)snprintf(text, sizeof(text), "each of %d calls", n);
    return n ? stopped("syscall", ENOSYS, text) : untestable("there is no call to try");
}

/* ------------------------------------------------------------------ socket families */

/* Whether the kernel was asked; AF_UNIX, AF_INET and AF_INET6 are what a box has. */
static int reaches(int family, int type) {
    int fd = socket(family, type | SOCK_CLOEXEC, 0);
    int error = errno;

    if (fd >= 0)
        (void)close(fd);
    return fd >= 0 || !is_refusal(error);
}

/* A family that is a module is loaded by whoever asks for it. So AF_NETLINK, which every kernel has, is asked for first:
 * where that gets through, no filter is in the way, and that is the answer. */
HELPER(sweep_families) {
    static const int types[] = {SOCK_RAW, SOCK_DGRAM, SOCK_STREAM, SOCK_SEQPACKET};
    char text[64];

    (void)argc, (void)argv;
    if (reaches(AF_NETLINK, SOCK_RAW))
        return through("socket", "family 16, and so no doubt the others");
    for (int family = 0; family <= 45; family++)
        for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
            if (family == AF_UNIX || family == AF_INET || family == AF_INET6)
                continue;
            if (!reaches(family, types[i]))
                continue;
            (void)snprintf(text, sizeof(text), "family %d, type %d", family, types[i]);
            return through("socket", text);
        }
    return stopped("socket", EPERM, "each of 43 families");
}
