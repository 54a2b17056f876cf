/*
 * procfs_pidns.c: which pid namespaces have a process.
 *
 * Apart from procfs.c, since listing a directory allocates, and that file is for the cloned child too.
 */
#include "linux/procfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/banned.h"

/* PROC_PID_INIT_INO of the kernel: this number since Linux 3.8. */
static bool sees_all_pids(void) {
    struct stat st;
    char self[16], *end;
    ssize_t n = readlink("/proc/self", self, sizeof(self) - 1);

    self[n > 0 ? n : 0] = '\0';
    return stat("/proc/self/ns/pid", &st) == 0 && st.st_ino == 0xEFFFFFFC &&
           strtol(self, &end, 10) == getpid(); /* and this /proc is of that namespace */
}

int proc_pidns_alive(uint64_t pidns) {
    DIR *dir = sees_all_pids() ? opendir("/proc") : NULL;
    const struct dirent *entry;
    int answer = dir ? 0 : -EPERM;

    while (answer == 0 && (entry = readdir(dir))) {
        char path[64];
        struct stat st;

        if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
            continue;
        (void)snprintf(path, sizeof(path), "%.20s/ns/pid", entry->d_name);
        if (fstatat(dirfd(dir), path, &st, 0) == 0)
            answer = st.st_ino == pidns;
        else if (errno != ENOENT && errno != ESRCH) /* else it is gone, or a zombie */
            answer = -errno;
    }
    if (dir)
        (void)closedir(dir);
    return answer;
}
