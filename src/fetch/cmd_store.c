/*
 * cmd_store.c: the commands about what is in the store: images, inspect, rmi, prune.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "fetch/commands.h"
#include "fetch/facts.h"
#include "fetch/gc.h"
#include "fetch/options.h"

#include "base/banned.h"

enum { GC_WAIT_MS = 10000, RMI_WAIT_MS = 300 };

static int print_json(json_t *value) {
    char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;

    json_decref(value);
    if (!text)
        return complain_of(&(struct err){.message = "out of memory"});
    (void)puts(text);
    free(text);
    return finish_output();
}

/* The store and its index, to look at. */
static int open_index(const char *path, struct store **ret_store, json_t **ret_index,
                      struct err *err) {
    int r = store_open_reading(path, ret_store, err);

    r = r < 0 ? r : index_read((*ret_store)->dir, ret_index, err);
    if (r == -ENOENT && !err->code)
        r = err_set(err, ERR_USAGE, r, "",
                    "mayfly pull and mayfly import make one; --store names another",
                    "%.200s holds no image store", (*ret_store)->path);
    return r;
}

/* ------------------------------------------------------------------ images */

static const char *shorter(const char *name, char out[REFERENCE_SIZE]) {
    struct reference r;

    if (!*name)
        return "<none>";
    return reference_parse(name, &r, NULL) == 0 ? reference_short(&r, out) : name;
}

static uint64_t bytes_of(const json_t *facts) {
    const json_t *unpacked = json_object_get(json_object_get(facts, "unpacked"), "bytes");

    return (uint64_t)json_integer_value(
        json_is_integer(unpacked) ? unpacked : json_object_get(facts, "packedBytes"));
}

static void print_row(const struct image_facts *f, const json_t *json) {
    char name[REFERENCE_SIZE], size[32];

    (void)printf("%-40s %-12.12s  %-14s  %-10.10s  %10s%s\n", shorter(f->entry.name, name),
                 strchr(f->entry.digest, ':') ? strchr(f->entry.digest, ':') + 1 : "",
                 f->platform[0] ? f->platform : "-",
                 f->config.created && *f->config.created ? f->config.created : "-",
                 format_bytes(bytes_of(json), size, sizeof(size)),
                 !f->whole         ? "  not whole"
                 : f->closed       ? "  another user's"
                 : !f->unpacked[0] ? "  not unpacked"
                                   : "");
}

/* What takes room without being in the list. */
static void say_unneeded(const struct store *s, const json_t *index) {
    struct gc_report g = {0};
    char size[32];

    if (store_unneeded(s, index, &g) == 0 && g.unpacked)
        (void)fprintf(
            stderr,
            "mayfly: %llu root file system%s of images that are here no more: mayfly prune "
            "frees %s\n",
            (unsigned long long)g.unpacked, g.unpacked == 1 ? "" : "s",
            format_bytes(g.bytes, size, sizeof(size)));
}

static int list_images(const struct store *s, const json_t *index, bool json, bool quiet) {
    json_t *list = json_array();
    struct index_entry e;
    struct image_facts f;

    if (!json && !quiet)
        (void)printf("%-40s %-12s  %-14s  %-10s  %10s\n", "IMAGE", "DIGEST", "PLATFORM", "CREATED",
                     "SIZE");
    for (size_t i = 0; s && index_at(index, i, &e); i++) {
        (void)facts_read(s, &e, &f, NULL); /* of a damaged one there is less to say */
        json_t *facts = facts_json(s, &f, true);
        if (quiet)
            (void)puts(e.digest);
        else if (!json)
            print_row(&f, facts);
        (void)json_array_append_new(list, facts);
        facts_done(&f);
    }
    if (json)
        return print_json(list);
    json_decref(list);
    int status = finish_output();
    if (s && !quiet && status == 0)
        say_unneeded(s, index);
    return status;
}

int fetch_images(int argc, char **argv) {
    const char *path = NULL;
    bool json = false, quiet = false;
    const struct option_row rows[] = {{"--store", 0, NULL, &path},
                                      {"--json", 0, &json, NULL},
                                      {"--quiet", 'q', &quiet, NULL},
                                      {0}};
    struct err err = {0};
    struct store *s = NULL;
    json_t *index = NULL;
    int n = options_take(argc, argv, rows, &err);

    if (n > 0)
        n = err_set(&err, ERR_USAGE, -EINVAL, "", "mayfly inspect tells of one",
                    "images: takes no image (%.60s)", argv[0]);
    if (n < 0)
        return complain_of(&err);
    int r = open_index(path, &s, &index, &err), status;
    if (r == -ENOENT) /* no store holds no image */
        status = list_images(NULL, NULL, json, quiet);
    else
        status = r < 0 ? complain_of(&err) : list_images(s, index, json, quiet);
    json_decref(index);
    store_close(s);
    return status;
}

/* ------------------------------------------------------------------ inspect */

int fetch_inspect(int argc, char **argv) {
    const char *path = NULL;
    bool json = false; /* it prints nothing else */
    const struct option_row rows[] = {{"--store", 0, NULL, &path}, {"--json", 0, &json, NULL}, {0}};
    struct err err = {0};
    struct store *s = NULL;
    struct index_entry e;
    struct image_facts f = {0};
    json_t *index = NULL, *list = json_array();
    int n = options_take(argc, argv, rows, &err), r = n;

    if (n == 0)
        r = err_set(&err, ERR_USAGE, -EINVAL, "", "mayfly images lists them",
                    "inspect: no image is named");
    r = r < 0 ? r : open_index(path, &s, &index, &err);
    for (int i = 0; i < n && r >= 0; i++) {
        r = index_find(index, argv[i], &e, NULL, &err);
        if (r < 0)
            break;
        r = facts_read(s, &e, &f, &err);
        if (r == 0)
            (void)json_array_append_new(list, facts_json(s, &f, false));
        facts_done(&f);
    }
    json_decref(index);
    store_close(s);
    if (r >= 0)
        return print_json(list);
    json_decref(list);
    return complain_of(&err);
}

/* ------------------------------------------------------------------ rmi and prune */

static json_t *gc_json(const struct gc_report *g) {
    return json_pack("{sI sI sI sI}", "blobs", (json_int_t)g->blobs, "unpacked",
                     (json_int_t)g->unpacked, "bytes", (json_int_t)g->bytes, "inUse",
                     (json_int_t)g->in_use);
}

/* What nothing needs any more goes with the name, where nobody else is writing just now. */
static int collect(const char *path, unsigned wait_ms, bool partials_too, struct gc_report *ret,
                   struct err *err) {
    struct store *s = NULL;
    int r = store_open_alone(path, wait_ms, &s, err);

    r = r < 0 ? r : store_gc(s, partials_too, ret, err);
    store_close(s);
    return r;
}

static void say_in_use(const struct gc_report *g) {
    if (g->in_use)
        (void)fprintf(stderr,
                      "mayfly: boxes still run on %llu of the root file systems: they stay until "
                      "mayfly prune finds them unused\n",
                      (unsigned long long)g->in_use);
}

/* One that cannot be taken away is said, and is no reason to leave the others. *ret_status: 0, or the worst of them. */
static int untag_all(const char *path, char **images, int n, json_t *names, int *ret_status,
                     struct err *err) {
    struct store *s = NULL;
    int r = store_open_writable(path, &s, err);

    for (int i = 0; i < n && r == 0; i++) {
        struct index_entry e;
        struct err one = {0};
        if (store_untag(s, images[i], &e, &one) < 0)
            *ret_status = complain_of(&one);
        else
            (void)json_array_append_new(names, json_string(e.name[0] ? e.name : e.digest));
    }
    store_close(s);
    return r;
}

static int print_removed(const json_t *names, const struct gc_report *g) {
    char size[32];
    json_t *name;
    size_t i;

    json_array_foreach((json_t *)(uintptr_t)names, i, name)(void)
        printf("removed %s\n", json_string_value(name));
    (void)printf("%s freed\n", format_bytes(g->bytes, size, sizeof(size)));
    return finish_output();
}

int fetch_rmi(int argc, char **argv) {
    const char *path = NULL;
    bool json = false, force = false;
    const struct option_row rows[] = {{"--store", 0, NULL, &path},
                                      {"--json", 0, &json, NULL},
                                      {"--force", 'f', &force, NULL}, /* docker's: always so */
                                      {0}};
    struct gc_report g = {0};
    struct err err = {0};
    json_t *names = json_array();
    int n = options_take(argc, argv, rows, &err), r = n, status = 0;

    if (n == 0)
        r = err_set(&err, ERR_USAGE, -EINVAL, "", "mayfly images lists them",
                    "rmi: no image is named");
    r = r < 0 ? r : untag_all(path, argv, n, names, &status, &err);
    if (r == 0 && json_array_size(names) == 0) {
        json_decref(names);
        return status;
    }
    if (r == 0) {
        struct err later = {0};
        r = collect(path, RMI_WAIT_MS, false, &g, &later);
        if (r == -EBUSY) /* the names are gone, as was asked */
            r = 0, (void)fprintf(stderr, "mayfly: others are writing to the store: mayfly prune "
                                         "frees the space when they have ended\n");
        err = r < 0 ? later : err;
    }
    if (r < 0) {
        json_decref(names);
        return complain_of(&err);
    }
    say_in_use(&g);
    if (json) {
        int printed = print_json(json_pack("{so so}", "removed", names, "freed", gc_json(&g)));
        return status ? status : printed;
    }
    int printed = print_removed(names, &g);
    json_decref(names);
    return status ? status : printed;
}

int fetch_prune(int argc, char **argv) {
    const char *path = NULL;
    bool json = false, force = false;
    const struct option_row rows[] = {{"--store", 0, NULL, &path},
                                      {"--json", 0, &json, NULL},
                                      {"--force", 'f', &force, NULL},
                                      {0}};
    struct gc_report g = {0};
    struct err err = {0};
    char size[32];
    int n = options_take(argc, argv, rows, &err), r = n;

    if (n > 0)
        r = err_set(&err, ERR_USAGE, -EINVAL, "", "mayfly rmi removes an image",
                    "prune: takes no image (%.60s)", argv[0]);
    r = r < 0 ? r : collect(path, GC_WAIT_MS, true, &g, &err);
    if (r < 0)
        return complain_of(&err);
    say_in_use(&g);
    if (json)
        return print_json(gc_json(&g));
    (void)printf("%llu blobs and %llu root file systems removed, %s freed\n",
                 (unsigned long long)g.blobs, (unsigned long long)g.unpacked,
                 format_bytes(g.bytes, size, sizeof(size)));
    return finish_output();
}
