/*
 * fd.c: transfers that are whole or an error. Everything but file_read_all_at
 * runs on the caller's stack and on system calls alone, because the box's init,
 * cloned from a program that may have threads, can trust nothing else.
 */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/banned.h"

void fd_close(int *fd) {
    if (*fd < 0)
        return;
    int saved_errno = errno;
    /* Not repeated on EINTR: Linux has released the number by then, and it may be another's. */
    (void)close(*fd);
    *fd = -1;
    errno = saved_errno;
}

static ssize_t read_some(int fd, void *buf, size_t size) {
    for (;;) {
        ssize_t n = read(fd, buf, size);
        if (n >= 0)
            return n;
        if (errno != EINTR)
            return -errno;
    }
}

static ssize_t write_some(int fd, const void *buf, size_t len) {
    for (;;) {
        ssize_t n = write(fd, buf, len);
        if (n >= 0)
            return n;
        if (errno != EINTR)
            return -errno;
    }
}

static int open_at(int dirfd, const char *path, int flags) {
    for (;;) {
        int fd = openat(dirfd, path, flags | O_CLOEXEC | O_NOCTTY);
        if (fd >= 0)
            return fd;
        if (errno != EINTR)
            return -errno;
    }
}

ssize_t fd_read_full(int fd, void *buf, size_t size) {
    size_t done = 0;
    while (done < size) {
        ssize_t n = read_some(fd, (char *)buf + done, size - done);
        if (n < 0)
            return n;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

int fd_write_full(int fd, const void *buf, size_t len) {
    size_t done = 0;
    while (done < len) {
        ssize_t n = write_some(fd, (const char *)buf + done, len - done);
        if (n < 0)
            return (int)n;
        if (n == 0) /* some drivers do; trying again could go on for ever */
            return -EIO;
        done += (size_t)n;
    }
    return 0;
}

int file_write_at(int dirfd, const char *path, const char *text, size_t len) {
    _cleanup_fd_ int fd = open_at(dirfd, path, O_WRONLY);
    if (fd < 0)
        return fd;
    ssize_t n = write_some(fd, text, len);
    if (n < 0)
        return (int)n;
    return (size_t)n == len ? 0 : -EIO;
}

ssize_t file_read_at(int dirfd, const char *path, char *buf, size_t size) {
    _cleanup_fd_ int fd = open_at(dirfd, path, O_RDONLY);
    if (fd < 0)
        return fd;
    ssize_t n = fd_read_full(fd, buf, size);
    if (n < 0)
        return n;
    if ((size_t)n == size) /* no room for the NUL, and maybe more to come */
        return -E2BIG;
    if (n > 0 && buf[n - 1] == '\n')
        n--;
    buf[n] = '\0';
    return n;
}

/* Doubles, since a file of /proc does not tell its size; stops one byte above the limit, which is
 * enough to see that there is more. */
static size_t next_size(size_t have, size_t limit_bytes) {
    size_t want = have < 4096 ? 4096 : have > SIZE_MAX / 2 ? SIZE_MAX : have * 2;
    return MIN(want, limit_bytes == SIZE_MAX ? SIZE_MAX : limit_bytes + 1);
}

int file_read_all_at(int dirfd, const char *path, size_t limit_bytes, char **ret_text,
                     size_t *ret_len) {
    _cleanup_fd_ int fd = open_at(dirfd, path, O_RDONLY);
    if (fd < 0)
        return fd;
    _cleanup_free_ char *text = NULL;
    size_t len = 0, size = 0;
    for (;;) {
        size = next_size(size, limit_bytes);
        char *bigger = size < SIZE_MAX ? realloc(text, size + 1) : NULL; /* + 1: the NUL */
        if (!bigger)
            return -ENOMEM;
        text = bigger;
        ssize_t n = fd_read_full(fd, text + len, size - len);
        if (n < 0)
            return (int)n;
        len += (size_t)n;
        if (len > limit_bytes)
            return -EFBIG;
        if (len < size)
            break;
    }
    text[len] = '\0';
    *ret_text = TAKE_PTR(text);
    if (ret_len)
        *ret_len = len;
    return 0;
}

ssize_t fd_send(int sock, const void *data, size_t len, int fd, int flags) {
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec iov = {.iov_base = (void *)(uintptr_t)data, .iov_len = len};
    struct msghdr header = {.msg_iov = &iov, .msg_iovlen = len ? 1 : 0};
    ssize_t n;

    if (fd >= 0) {
        header.msg_control = control.bytes;
        header.msg_controllen = sizeof(control.bytes);
        struct cmsghdr *c = CMSG_FIRSTHDR(&header);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(fd));
        memcpy(CMSG_DATA(c), &fd, sizeof(fd));
    }
    do
        n = sendmsg(sock, &header, MSG_NOSIGNAL | flags);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

bool str_copy(char *dst, size_t size, const char *src) {
    if (size == 0)
        return false;
    size_t len = strnlen(src, size);
    bool whole = len < size;
    if (!whole)
        len = size - 1;
    memcpy(dst, src, len);
    dst[len] = '\0';
    return whole;
}
