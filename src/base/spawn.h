/*
 * spawn.h: a helper program, started with nothing of ours but its words.
 *
 * posix_spawn(3) rather than fork: the caller may be a program with threads.
 */
#ifndef MAYFLY_BASE_SPAWN_H
#define MAYFLY_BASE_SPAWN_H

#include <sys/types.h>

/* Starts path with argv and env, no signal blocked, SIGCHLD and SIGPIPE at their defaults (a caller that ignores them
 * would pass that on); stdin and stdout are /dev/null, stderr is stderr_fd (above 2). 0, or -errno and *ret_pid is -1.
 * The caller waits for it. */
int spawn_helper(const char *path, const char *const *argv, const char *const *env, int stderr_fd,
                 pid_t *ret_pid);

#endif
