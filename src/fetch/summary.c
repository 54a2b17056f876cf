/*
 * summary.c: see summary.h. One table for both directions.
 */
#include "fetch/summary.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/banned.h"

#define AT(member) offsetof(struct unpack_summary, member)
static const struct {
    const char *name;
    size_t offset;
} counts[] = {
    {"layers", AT(layers)},
    {"entries", AT(entries)},
    {"files", AT(files)},
    {"directories", AT(directories)},
    {"symlinks", AT(symlinks)},
    {"hardlinks", AT(hardlinks)},
    {"whiteouts", AT(whiteouts)},
    {"bytes", AT(bytes)},
    {"devicesSkipped", AT(devices)},
    {"setidDropped", AT(setid)},
    {"fileCapabilitiesDropped", AT(filecaps)},
    {"xattrsDropped", AT(xattrs)},
    {"ownersNotGiven", AT(owners)},
    {"modesChanged", AT(modes)},
    {"directoriesMade", AT(made)},
    {"bytecodeFiles", AT(bytecode)},
};

json_t *summary_json(const struct unpack_summary *sum) {
    json_t *object = json_pack("{ss ss}", "chainId", sum->chain, "unpackedIn", sum->boxed);

    for (size_t i = 0; object && i < ARRAY_LEN(counts); i++) {
        uint64_t n;
        memcpy(&n, (const char *)sum + counts[i].offset, sizeof(n));
        if (json_object_set_new(object, counts[i].name, json_integer((json_int_t)n)) < 0) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

static const char part[] = STORE_SUMMARY ".part";

int summary_write(int dir, const struct unpack_summary *sum) {
    json_t *object = summary_json(sum);
    _cleanup_free_ char *text = object ? json_dumps(object, JSON_INDENT(1)) : NULL;
    _cleanup_fd_ int fd =
        openat(dir, part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    int r = !text ? -ENOMEM : fd < 0 ? -errno : fd_write_full(fd, text, strlen(text));

    if (r == 0 && renameat(dir, part, dir, STORE_SUMMARY) < 0)
        r = -errno;

    json_decref(object);
    return r;
}

void summary_read(int dir, const char *path, struct unpack_summary *ret) {
    char name[STORE_PATH_SIZE];
    _cleanup_free_ char *text = NULL;
    size_t len = 0;

    (void)snprintf(name, sizeof(name), "%s/" STORE_SUMMARY, path);
    if (file_read_all_at(dir, name, 1 << 20, &text, &len) < 0)
        return;
    json_t *object = json_loadb(text, len, 0, NULL);
    const char *boxed = json_string_value(json_object_get(object, "unpackedIn"));
    (void)str_copy(ret->boxed, sizeof(ret->boxed), boxed ? boxed : "");
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        uint64_t n = (uint64_t)json_integer_value(json_object_get(object, counts[i].name));
        memcpy((char *)ret + counts[i].offset, &n, sizeof(n));
    }
    json_decref(object);
}
