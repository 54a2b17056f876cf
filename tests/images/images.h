/*
 * images.h: what the tests of images share: a store in a directory of its own, and programs run in words.
 */
#ifndef MAYFLY_TESTS_IMAGES_H
#define MAYFLY_TESTS_IMAGES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fetch/blobs.h"
#include "fetch/index.h"
#include "base/fd.h"
#include "fetch/tmp.h"

#define IMAGES_UNUSED __attribute__((unused))

/* Fails with the library's own words. */
#define assert_ok(call, err)                                                                       \
    do {                                                                                           \
        if ((call) < 0)                                                                            \
            fail_msg("%s: %s", #call, (err).message);                                              \
    } while (0)

struct place {
    char dir[64], store[96];
};

IMAGES_UNUSED static int set_place_in(void **state, const char *where) {
    struct place *p = calloc(1, sizeof(*p));

    if (!p)
        return -1;
    (void)snprintf(p->dir, sizeof(p->dir), "%s/mayfly-images-XXXXXX", where);
    if (!mkdtemp(p->dir))
        return -1;
    (void)snprintf(p->store, sizeof(p->store), "%s/store", p->dir);
    *state = p;
    return 0;
}

IMAGES_UNUSED static int set_place(void **state) { return set_place_in(state, "/tmp"); }

/* Where fsync is free: for tests of many small stores, in which nothing is executed. */
IMAGES_UNUSED static int set_fast_place(void **state) {
    return set_place_in(state, access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
}

IMAGES_UNUSED static int drop_place(void **state) {
    struct place *p = *state;
    int r = tree_remove(AT_FDCWD, p->dir, NULL);

    free(p);
    return r;
}

IMAGES_UNUSED static struct store *open_place(const struct place *p) {
    struct err err = {0};
    struct store *s = NULL;

    assert_ok(store_open_writable(p->store, &s, &err), err);
    return s;
}

IMAGES_UNUSED static int count_in(int dir, const char *name) {
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC), n = 0;
    DIR *d = fdopendir(fd);

    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.';
    (void)closedir(d);
    return n;
}

#endif
