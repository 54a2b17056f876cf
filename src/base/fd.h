/*
 * fd.h: file descriptors. They start at -1, are always close-on-exec, and are
 * closed once. Reads and writes are whole: EINTR and short transfers are dealt
 * with here and nowhere else. No function here allocates, so the code in the
 * child may use them.
 */
#ifndef MAYFLY_BASE_FD_H
#define MAYFLY_BASE_FD_H

#include "base/defs.h"

/* Closes *fd if it is open, sets it to -1, keeps errno. */
void fd_close(int *fd);
#define _cleanup_fd_ __attribute__((cleanup(fd_close)))

/* Reads until EOF or `size` bytes. Returns the number read or -errno. */
ssize_t fd_read_full(int fd, void *buf, size_t size);
/* Writes all of it. Returns 0 or -errno. */
int fd_write_full(int fd, const void *buf, size_t len);

/* Sends one message over a Unix socket, and with it a descriptor unless `fd` is -1 (unix(7), SCM_RIGHTS); `flags` beside
 * MSG_NOSIGNAL. Returns the bytes sent or -errno. */
ssize_t fd_send(int sock, const void *data, size_t len, int fd, int flags);

/* Opens `path` below `dirfd`, writes `text` in ONE write(2) (kernel files take their value whole), closes.
 * 0 or -errno. */
int file_write_at(int dirfd, const char *path, const char *text, size_t len);
/* Reads a small file whole into `buf`, NUL-terminated, the trailing newline cut. Returns the length or
 * -errno; -E2BIG if it does not fit. */
ssize_t file_read_at(int dirfd, const char *path, char *buf, size_t size);
/* Reads a file of unknown size into a malloc'ed, NUL-terminated buffer. `limit_bytes`: -EFBIG above it. Owned by the
 * caller. */
int file_read_all_at(int dirfd, const char *path, size_t limit_bytes, char **ret_text,
                     size_t *ret_len);

/* Copies with NUL, cutting at the size. Returns false if it was cut. */
bool str_copy(char *dst, size_t size, const char *src);

#endif
