/*
 * helper_namespaces.c: calls whose child goes on in the middle of the caller, which Python does not survive.
 */
#include "lab/payload/helper.h"

#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/banned.h"

HELPER(clone3_namespace) {
    struct clone_args args = {.flags = CLONE_NEWUTS, .exit_signal = SIGCHLD};

    (void)argc, (void)argv;
    long pid = syscall(SYS_clone3, &args, sizeof(args));
    if (pid == 0)
        _exit(0);
    if (pid < 0)
        return stopped("clone3", errno, "");
    (void)waitpid((pid_t)pid, NULL, 0);
    return through("clone3", "");
}
