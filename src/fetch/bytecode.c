/*
 * bytecode.c: see bytecode.h.
 */
#include "fetch/bytecode.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/helper.h"
#include "fetch/job.h"
#include "linux/sys.h"

#include "base/banned.h"

extern char **environ;

/* bytecode.py, which the box runs, as `script`. */
#include "bytecode_py.inc"

/* ------------------------------------------------------------------ is there anything to do */

static int open_inside(int root, const char *path) {
    const struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
                                 .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    int fd = sys_openat2(root, path, &how);

    return fd < 0 && errno == ENOSYS
               ? openat(root, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
               : fd;
}

static bool has_pyc(int dir) {
    int fd = openat(dir, "__pycache__", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *e;
    bool found = false;

    while (d && !found && (e = readdir(d)))
        found = strncmp(e->d_name, "os.cpython-", 11) == 0 && strstr(e->d_name, ".pyc");
    if (d)
        (void)closedir(d);
    else
        fd_close(&fd);
    return found;
}

/* A standard library of Python's without byte code. */
static bool lacks_bytecode(int fs) {
    static const char *const places[] = {"usr/local/lib", "usr/lib"};
    bool lacks = false;

    for (size_t i = 0; i < ARRAY_LEN(places) && !lacks; i++) {
        int fd = open_inside(fs, places[i]);
        DIR *d = fd < 0 ? NULL : fdopendir(fd);
        struct dirent *e;
        while (d && !lacks && (e = readdir(d))) {
            if (strncmp(e->d_name, "python3.", 8) != 0)
                continue;
            _cleanup_fd_ int lib =
                openat(fd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            lacks = lib >= 0 && faccessat(lib, "os.py", F_OK, 0) == 0 && !has_pyc(lib);
        }
        if (d)
            (void)closedir(d);
    }
    return lacks;
}

/* ------------------------------------------------------------------ the box */

static bool find_mayfly(char *path, size_t size) {
    const char *own = getenv("MAYFLY_PROGRAM");

    if (own && *own == '/' && access(own, X_OK) == 0)
        return str_copy(path, size, own);
    return helper_find("mayfly", path, size) || helper_find("../../bin/mayfly", path, size);
}

/* mayfly python … on the root that is being unpacked; its archive comes out of *ret_fd. */
static int start_box(const char *root, pid_t *ret_pid, int *ret_fd) {
    char program[4096];
    const char *argv[] = {program,
                          "python",
                          "--rootfs",
                          root,
                          "--limits=best-effort",
                          "--timeout=300s",
                          "--memory=1g",
                          "--cpus=2",
                          "--tmp-size=512m",
                          "--tmp-inodes=100000",
                          "--max-output=512m:kill",
                          "-c",
                          script,
                          NULL};
    posix_spawn_file_actions_t files;
    int ends[2];

    if (!find_mayfly(program, sizeof(program)))
        return -ENOENT;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    int r = posix_spawn_file_actions_init(&files);
    if (r == 0) {
        r = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
        r = r ? r : posix_spawn_file_actions_adddup2(&files, ends[1], 1);
        r = r ? r : posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
        r = r ? r
              : posix_spawn(ret_pid, program, &files, NULL, (char *const *)(uintptr_t)argv,
                            environ);
        (void)posix_spawn_file_actions_destroy(&files);
    }
    (void)close(ends[1]);
    if (r)
        (void)close(ends[0]);
    else
        *ret_fd = ends[0];
    return -r;
}

/* ------------------------------------------------------------------ the tree */

/* The archive that comes out of the box, put into a tree of its own. */
static int fill(int dir, int archive, struct unpack_summary *ret) {
    struct job_head head = {
        .kind = JOB_BYTECODE, .layers = 1, .max_bytes = UINT64_C(512) << 20, .max_entries = 100000};
    const struct job_layer layer = {.diff_id = ""};
    struct err err = {0};
    struct job job;
    int r = job_start(&job, dir, &head, &err);

    r = r < 0 ? r : job_layer(&job, &layer, archive, true, &err);
    r = r < 0 ? r : job_end(&job, ret, &err);
    job_drop(&job);
    return r;
}

/* The number of files of byte code, or -errno. */
static int64_t make(const struct store *s, int dir, const char *path) {
    char root[2 * STORE_PATH_SIZE];
    struct unpack_summary own = {0};
    int status = -1;
    pid_t pid = 0;
    _cleanup_fd_ int archive = -1;

    if (mkdirat(dir, JOB_PART, 0755) < 0 || mkdirat(dir, JOB_TRASH, 0700) < 0)
        return -EIO;
    (void)snprintf(root, sizeof(root), "%s/%s/" STORE_FS, s->path, path);
    int r = start_box(root, &pid, &archive);
    if (r < 0)
        return r;
    r = fill(dir, archive, &own);
    fd_close(&archive); /* ends the box, should it still write */
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return r < 0 ? r : status != 0 ? -EIO : (int64_t)own.files;
}

void bytecode_add(const struct store *s, int dir, const char *path, struct unpack_summary *sum) {
    _cleanup_fd_ int fs = openat(dir, STORE_FS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fs < 0 || !lacks_bytecode(fs))
        return;
    (void)tree_remove(dir, JOB_PART, NULL); /* of one who was killed */
    (void)tree_remove(dir, JOB_TRASH, NULL);
    int64_t n = make(s, dir, path);
    (void)tree_remove(dir, JOB_TRASH, NULL);
    if (n > 0 && (syncfs(dir) < 0 || renameat(dir, JOB_PART, dir, STORE_BYTECODE) < 0))
        n = -errno;
    if (n <= 0)
        (void)tree_remove(dir, JOB_PART, NULL);
    sum->bytecode = n > 0 ? (uint64_t)n : 0;
}
