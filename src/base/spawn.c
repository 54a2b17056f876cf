/*
 * spawn.c: see spawn.h.
 */
#include "base/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>

#include "base/banned.h"

static int fill_attributes(posix_spawnattr_t *attr) {
    sigset_t none, defaults;

    (void)sigemptyset(&none);
    (void)sigemptyset(&defaults);
    (void)sigaddset(&defaults, SIGCHLD);
    (void)sigaddset(&defaults, SIGPIPE);
    int r = posix_spawnattr_setsigmask(attr, &none);
    r = r ? r : posix_spawnattr_setsigdefault(attr, &defaults);
    return r ? r : posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

static int fill_files(posix_spawn_file_actions_t *files, int stderr_fd) {
    int r = posix_spawn_file_actions_addopen(files, 0, "/dev/null", O_RDONLY, 0);

    r = r ? r : posix_spawn_file_actions_addopen(files, 1, "/dev/null", O_WRONLY, 0);
    return r ? r : posix_spawn_file_actions_adddup2(files, stderr_fd, 2);
}

int spawn_helper(const char *path, const char *const *argv, const char *const *env, int stderr_fd,
                 pid_t *ret_pid) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;

    *ret_pid = -1;
    if (posix_spawn_file_actions_init(&files) != 0)
        return -ENOMEM;
    if (posix_spawnattr_init(&attr) != 0) {
        (void)posix_spawn_file_actions_destroy(&files);
        return -ENOMEM;
    }
    int r = fill_attributes(&attr);
    r = r ? r : fill_files(&files, stderr_fd);
    r = r ? r
          : posix_spawn(ret_pid, path, &files, &attr, (char *const *)(uintptr_t)argv,
                        (char *const *)(uintptr_t)env);
    if (r)
        *ret_pid = -1;
    (void)posix_spawnattr_destroy(&attr);
    (void)posix_spawn_file_actions_destroy(&files);
    return -r;
}
