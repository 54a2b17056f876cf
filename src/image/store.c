/*
 * store.c: see store.h.
 */
#include "image/store.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/banned.h"

int store_path(const char *given, char ret[static STORE_PATH_SIZE], struct err *err) {
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME"),
               *own = getenv("MAYFLY_STORE");
    int n;

    if ((given && *given) || (own && *own))
        n = snprintf(ret, STORE_PATH_SIZE, "%s", given && *given ? given : own);
    else if (geteuid() == 0)
        n = snprintf(ret, STORE_PATH_SIZE, "/var/lib/mayfly");
    else if (data && *data == '/') /* the specification has a relative one ignored */
        n = snprintf(ret, STORE_PATH_SIZE, "%s/mayfly", data);
    else if (home && *home == '/')
        n = snprintf(ret, STORE_PATH_SIZE, "%s/.local/share/mayfly", home);
    else
        return err_set(err, ERR_USAGE, -ENOENT, "", "name one with --store DIR",
                       "the image store: neither XDG_DATA_HOME nor HOME is set");
    if (n >= STORE_PATH_SIZE - 256) /* room for what is below it */
        return err_set(err, ERR_USAGE, -ENAMETOOLONG, "", "name another with --store DIR",
                       "the image store: its path is too long");
    return 0;
}

const char *store_blob_path(const char *digest, char ret[static BLOB_PATH_SIZE]) {
    size_t algorithm = strcspn(digest, ":");

    (void)snprintf(ret, BLOB_PATH_SIZE, "blobs/%.*s/%.128s", (int)algorithm, digest,
                   digest + algorithm + 1);
    return ret;
}
