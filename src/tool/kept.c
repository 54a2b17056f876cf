/*
 * kept.c: see kept.h. A number that is taken, by a program before or beside this one, is passed over.
 */
#include "tool/kept.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/defs.h"
#include "base/err.h"

#include "base/banned.h"

static int failed(struct mayfly_error *error, int code, const char *dir) {
    *error = (struct mayfly_error){.code = code, .kind = MAYFLY_E_SETUP};
    (void)snprintf(error->message, sizeof(error->message),
                   "--out: making a directory below %.300s: %s", dir, errno_words(code));
    return code;
}

int kept_begin(struct kept *k, mayfly_policy *policy, char **ret_path, struct mayfly_error *error) {
    char *path _cleanup_free_ = NULL;

    if (!k->dir)
        return 0;
    do {
        free(TAKE_PTR(path));
        if (asprintf(&path, "%s/%u", k->dir, atomic_fetch_add(&k->calls, 1) + 1) < 0) {
            path = NULL;
            return failed(error, -ENOMEM, k->dir);
        }
        errno = 0;
    } while (mkdir(path, 0777) < 0 && errno == EEXIST);
    if (errno)
        return failed(error, -errno, k->dir);
    int r = mayfly_policy_set(policy, "out", path, error);
    if (r < 0)
        (void)rmdir(path);
    else
        *ret_path = TAKE_PTR(path);
    return r;
}

void kept_end(char **path) {
    if (*path && rmdir(*path) == 0)
        free(TAKE_PTR(*path));
}
