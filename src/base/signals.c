/*
 * signals.c: see signals.h.
 */
#include "base/signals.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/defs.h"

#include "base/banned.h"

int signals_watch(void) {
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
    sigset_t set;

    (void)sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        (void)sigaddset(&set, numbers[i]);
    (void)signal(SIGPIPE, SIG_IGN);
    int r = pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (r)
        return -r;
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? -errno : fd;
}

int signals_status(int signal_fd) {
    struct signalfd_siginfo info;

    return read(signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info) ? 128 + (int)info.ssi_signo
                                                                         : 0;
}
