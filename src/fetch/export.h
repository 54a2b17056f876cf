/*
 * export.h: images as one archive, which skopeo, podman, containerd and Docker read: an OCI image layout, with the
 * manifest.json of docker save beside it. The same images give the same bytes.
 */
#ifndef MAYFLY_FETCH_EXPORT_H
#define MAYFLY_FETCH_EXPORT_H

#include "fetch/blobs.h"

/* Images by name or digest, to `fd`. */
int store_export(const struct store *s, char *const *images, int n, int fd, struct err *err);

#endif
