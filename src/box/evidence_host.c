/*
 * evidence_host.c: what attestation reads from outside.
 *
 * The one thing that a process cannot read of itself is its seccomp filter.
 * ptrace(2) gives it back, instruction by instruction, to who has CAP_SYS_ADMIN
 * and no filter of its own. A process of our own does that and is gone: a tracer
 * is told of its tracees by SIGCHLD and wait(2), and both belong to the caller's
 * program.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/box.h"
#include "box/evidence.h"
#include "linux/procfs.h"
#include "linux/sys.h"

#include "base/banned.h"

/* ------------------------------------------------------------------ the filter */

struct reading {
    int len; /* instructions, or -errno */
    struct sock_filter code[BPF_MAXINSNS];
};

/* In a child of a program that may have threads: no malloc, no stdio. */
static _Noreturn void read_filter(pid_t pid, struct reading *to) {
    siginfo_t info;
    long n = -1;

    to->len = -EPERM;
    if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0 || ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) < 0)
        _exit(0);
    if (waitid(P_PID, (id_t)pid, &info, WSTOPPED | WEXITED | __WALL) < 0)
        _exit(0);
    /* Numbered from the oldest; ours is the newest. */
    for (unsigned long i = 0;; i++) {
        long length = ptrace(PTRACE_SECCOMP_GET_FILTER, pid, (void *)i, NULL); // NOLINT
        if (length < 0 || length > BPF_MAXINSNS)
            break;
        n = ptrace(PTRACE_SECCOMP_GET_FILTER, pid, (void *)i, to->code); // NOLINT
    }
    to->len = n > 0 ? (int)n : -errno;
    (void)ptrace(PTRACE_DETACH, pid, NULL, NULL);
    _exit(0);
}

static void filter_of(pid_t payload, struct evidence_host *host) {
    struct clone_args args = {.flags = CLONE_CLEAR_SIGHAND};
    struct reading *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (shared == MAP_FAILED)
        return;
    pid_t pid = sys_clone3(&args, sizeof(args));
    if (pid == 0)
        read_filter(payload, shared);
    while (pid > 0 && waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
        ;
    if (pid > 0 && shared->len > 0 && shared->len <= BPF_MAXINSNS) {
        size_t size = (size_t)shared->len * sizeof(shared->code[0]);
        host->code = malloc(size);
        if (host->code) {
            memcpy(host->code, shared->code, size);
            host->len = (unsigned)shared->len;
        }
    }
    (void)munmap(shared, sizeof(*shared));
}

/* ------------------------------------------------------------------ the rest */

static pid_t child_by_scan(pid_t parent) {
    DIR *dir = opendir("/proc");
    const struct dirent *entry;
    pid_t found = 0;

    while (dir && !found && (entry = readdir(dir))) {
        struct proc_stat st;
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid > 0 && proc_read_stat(pid, &st) == 0 && st.ppid == parent)
            found = pid;
    }
    if (dir)
        (void)closedir(dir);
    return found;
}

/* init's only child. */
static pid_t find_payload(pid_t init) {
    char path[64], text[64];

    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)init, (int)init);
    if (file_read_at(AT_FDCWD, path, text, sizeof(text)) > 0)
        return (pid_t)strtol(text, NULL, 10);
    return child_by_scan(init); /* the kernel was built without that file */
}

void evidence_view(const struct box *box, const struct plan *wanted, struct evidence_host *host,
                   struct view *ret) {
    const int ends[3] = {box->in, box->out, box->err};

    *host = (struct evidence_host){.code = NULL};
    *ret = (struct view){.inside = box->evidence,
                         .cgroup_fd = host->cgroup_fd,
                         .init = box->ctx.init,
                         .payload = find_payload(box->ctx.init),
                         .lease = box->ctx.lease,
                         .wall_ms = box->plan->wall_ms,
                         .cpu_ms = box->plan->cpu_ms,
                         .output_bytes = box->plan->output_bytes,
                         .output_kills = box->plan->output_kills,
                         .plan = wanted};
    for (int i = 0; i < CG_HIERS; i++)
        host->cgroup_fd[i] = box->ctx.cgroup[i].dir;
    for (int i = 0; i < 3; i++) {
        struct stat st;
        ret->pipe_ino[i] = fstat(ends[i], &st) == 0 ? st.st_ino : 0;
    }
    evidence_namespaces(ret->host_ns);
    if (wanted->host->privileged && ret->payload)
        filter_of(ret->payload, host);
    ret->filter = host->code;
    ret->filter_len = host->len;
}

void evidence_host_done(struct evidence_host *host) { free(host->code); }
