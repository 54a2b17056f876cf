/*
 * transport.c: what both transports need.
 */
#include "mcp/transport.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include "base/banned.h"

int signal_status(int signal_fd) {
    struct signalfd_siginfo info;

    return read(signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info) ? 128 + (int)info.ssi_signo
                                                                         : 0;
}
