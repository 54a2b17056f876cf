/*
 * servers.h: servers for a program's tests. They die with it, however it ends; what they say is in a file.
 */
#ifndef MAYFLY_TESTS_SERVERS_H
#define MAYFLY_TESTS_SERVERS_H

#include "package/package.h"

#include <sys/prctl.h>

enum { SERVERS_MAX = 8 };

/* The directory of all that they share, in $SERVERS for the scripts. */
LIVE_UNUSED static char servers_dir[64];
static pid_t servers[SERVERS_MAX];
static size_t n_servers;

LIVE_UNUSED static const char *in_dir(const char *name) {
    static char paths[16][128];
    static unsigned next;
    char *path = paths[next++ % 16];

    (void)snprintf(path, sizeof(paths[0]), "%s/%s", servers_dir, name);
    return path;
}

LIVE_UNUSED static void start_server(const char *const argv[], const char *log_name) {
    pid_t parent = getpid(), pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        int log = open(in_dir(log_name), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent || log < 0)
            _exit(126);
        (void)dup2(log, 1);
        (void)dup2(log, 2);
        (void)execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    assert_true(n_servers < SERVERS_MAX);
    servers[n_servers++] = pid;
}

/* Until the file holds what `pattern` (an awk program that prints it) looks for; it then is in the environment. */
LIVE_UNUSED static void await_in_file(const char *file, const char *awk, const char *variable) {
    char command[512], value[256] = "";

    for (int i = 0; i < 1000 * (int)live_slow() && !value[0]; i++) {
        int ends[2], status;
        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        (void)snprintf(command, sizeof(command), "%s", in_dir(file));
        pid_t pid = fork();
        if (pid == 0) {
            (void)dup2(ends[1], 1);
            (void)close(2);
            (void)execlp("awk", "awk", awk, command, (char *)NULL);
            _exit(127);
        }
        (void)close(ends[1]);
        ssize_t n = read(ends[0], value, sizeof(value) - 1);
        value[n > 0 ? n : 0] = '\0';
        value[strcspn(value, "\n")] = '\0';
        (void)close(ends[0]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (!value[0])
            (void)usleep(20000);
    }
    if (!value[0])
        fail_msg("%s never said where it listens", file);
    (void)setenv(variable, value, 1);
}

LIVE_UNUSED static void servers_begin(void) {
    (void)snprintf(servers_dir, sizeof(servers_dir), "/tmp/mayfly-servers-XXXXXX");
    assert_non_null(mkdtemp(servers_dir));
    (void)setenv("SERVERS", servers_dir, 1);
}

LIVE_UNUSED static int servers_end(void **state) {
    pid_t pid = -1;

    (void)state;
    for (size_t i = 0; i < n_servers; i++) {
        (void)kill(servers[i], SIGKILL);
        (void)waitpid(servers[i], NULL, 0);
    }
    if (servers_dir[0] && (pid = fork()) == 0) {
        (void)execlp("rm", "rm", "-rf", "--one-file-system", servers_dir, (char *)NULL);
        _exit(127);
    }
    if (pid > 0)
        (void)waitpid(pid, NULL, 0);
    return 0;
}

#endif
