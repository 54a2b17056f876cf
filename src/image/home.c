/*
 * home.c: see home.h.
 */
#include "image/home.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/banned.h"

bool home_is_free(int dir, const char *path) {
    int fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *e;
    bool is_free = d;

    while (d && is_free && (e = readdir(d)))
        is_free = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
                  strcmp(e->d_name, "box") == 0;
    if (d)
        (void)closedir(d);
    else
        fd_close(&fd);
    return is_free;
}
