/*
 * unpack_main.c: the program mayfly-unpack, which reads hostile archives and fills a tree with what is in them. mayfly-fetch starts
 * it, says what to do (job.h), and gives it all it has: a socket, a directory, descriptors of archives. Before it reads
 * any it gives up the rest (confine.h).
 *
 * Exit status: 0, whatever came of it: that it says in its verdict. 2 where nobody is there to hear it.
 */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "fetch/confine.h"
#include "fetch/job.h"
#include "fetch/layer.h"
#include "mayfly.h"

#include "base/banned.h"

/* ------------------------------------------------------------------ what comes */

static int hear_head(struct job_head *head) {
    ssize_t n = recv(JOB_SOCKET, head, sizeof(*head), MSG_TRUNC);

    if (n != (ssize_t)sizeof(*head) || head->size != sizeof(*head) ||
        strncmp(head->version, MAYFLY_VERSION, sizeof(head->version)) != 0)
        return -EPROTO;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    return getppid() == head->parent ? 0 : -ESRCH; /* it died before that */
}

/* The archive's descriptor, or -errno. */
static int hear_layer(struct job_layer *ret) {
    union {
        char space[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    struct iovec data = {.iov_base = ret, .iov_len = sizeof(*ret)};
    struct msghdr m = {.msg_iov = &data,
                       .msg_iovlen = 1,
                       .msg_control = control.space,
                       .msg_controllen = sizeof(control.space)};
    ssize_t n;
    int fd = -1;

    while ((n = recvmsg(JOB_SOCKET, &m, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
        ;
    const struct cmsghdr *c = n < 0 ? NULL : CMSG_FIRSTHDR(&m);
    if (n != (ssize_t)sizeof(*ret) || !c || c->cmsg_type != SCM_RIGHTS)
        return -EPROTO;
    memcpy(&fd, CMSG_DATA(c), sizeof(fd));
    return fd;
}

/* ------------------------------------------------------------------ what a box needs */

/* What a box mounts something on, and what the image's own config wants to start in: other runtimes make them at each
 * run, which a root that is read-only does not let us. */
static int add_needed(struct tree *t, const char *workdir, struct err *err) {
    static const struct {
        const char *path;
        mode_t mode;
    } needed[] = {{"dev", 0755}, {"proc", 0755}, {"tmp", 01777}};
    int r = 0;

    for (size_t i = 0; i < ARRAY_LEN(needed) && r == 0; i++)
        r = tree_need_dir(t, needed[i].path, needed[i].mode, err);
    return r < 0 ? r : tree_need_workdir(t, workdir, err);
}

/* ------------------------------------------------------------------ the two jobs */

static int add_layers(struct tree *t, const struct job_head *head, struct err *err) {
    struct layer_budget budget = LAYER_BUDGET(head->max_bytes, head->max_entries);
    int r = 0;

    for (uint32_t i = 0; i < head->layers && r == 0; i++) {
        struct job_layer layer;
        struct err inner = {0};
        _cleanup_fd_ int fd = hear_layer(&layer);
        if (fd < 0)
            return err_set(err, ERR_INTERNAL, fd, "", NULL, "what should come did not");
        r = layer_apply(t, fd, layer.diff_id[0] ? layer.diff_id : NULL, &budget, &inner);
        if (r < 0 && head->kind == JOB_LAYERS)
            r = err_set(err, inner.kind, r, "", NULL, "layer %u of %u (%.19s…): %.360s", i + 1,
                        head->layers, layer.digest, inner.message);
    }
    return r;
}

/* DIRECTORY/__pycache__/NAME.pyc and nothing else: whatever the image's Python prints, no file of the image's is
 * another's then. */
static bool is_pyc(const char *path) {
    static const char dir[] = "/__pycache__";
    const char *slash = strrchr(path, '/');
    size_t len = strlen(path);

    return len > 4 && strcmp(path + len - 4, ".pyc") == 0 && slash &&
           (size_t)(slash - path) > sizeof(dir) &&
           strncmp(slash - (sizeof(dir) - 1), dir, sizeof(dir) - 1) == 0 &&
           strncmp(slash, "/.wh.", 5) != 0;
}

static int fill(struct tree *t, const struct job_head *head, struct err *err) {
    int r = 0;

    if (head->kind == JOB_BYTECODE) {
        _cleanup_fd_ int from =
            openat(JOB_DIR, STORE_FS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        t->only = is_pyc;
        r = tree_clone(t, from, err);
    }
    r = r < 0 ? r : add_layers(t, head, err);
    if (r == 0 && head->kind == JOB_LAYERS)
        r = add_needed(t, head->workdir, err);
    return r < 0 ? r : tree_finish(t, err);
}

static int work(const struct job_head *head, struct unpack_summary *sum, struct err *err) {
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    _cleanup_fd_ int root =
        openat(JOB_DIR, head->kind == JOB_BYTECODE ? JOB_PART : STORE_FS, flags);
    _cleanup_fd_ int trash = openat(JOB_DIR, JOB_TRASH, flags);
    struct tree tree;
    int r = root < 0 || trash < 0 ? -errno : tree_init(&tree, root, trash, sum);

    if (r < 0)
        return err_errno(err, ERR_SETUP, r, "", NULL, "starting to unpack");
    r = fill(&tree, head, err);
    tree_done(&tree);
    return r;
}

int main(void) {
    static struct job_head head;
    struct job_verdict v = {0};
    struct err err = {0};

    if (hear_head(&head) < 0) {
        static const char usage[] = "usage: mayfly-fetch starts it, of the same version\n";
        (void)fd_write_full(2, usage, sizeof(usage) - 1);
        return 2;
    }
    (void)signal(SIGXFSZ, SIG_IGN); /* the write fails, and is said */
    (void)umask(0);
    (void)setlocale(LC_CTYPE, "C.UTF-8"); /* or libarchive finds no text in names that are UTF-8 */
    head.workdir[sizeof(head.workdir) - 1] = '\0';
    v.code = confine(JOB_DIR, v.sum.boxed, &err);
    if (v.code == 0)
        v.code = work(&head, &v.sum, &err);
    (void)str_copy(v.message, sizeof(v.message), err.message);
    /* There is nothing to tidy up, and for sanitizers no way to. */
    _exit(fd_write_full(JOB_SOCKET, &v, sizeof(v)) < 0 ? 2 : 0);
}
