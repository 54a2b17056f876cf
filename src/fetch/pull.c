/*
 * pull.c: see pull.h. Of several processes that want the same image at once one pulls; the others wait for it (a lock on
 * one byte of a file, which the kernel takes back from the dead) and then find everything there.
 */
#include "fetch/pull.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/units.h"
#include "fetch/download.h"
#include "fetch/facts.h"
#include "fetch/index.h"

#include "base/banned.h"

#define PULL_LOCK "pull.lock"
#define PULL_FAILED "pull.failed"

enum {
    AT_ONCE = 4,   /* downloads; a connection each, which is what registries are used to */
    MAX_DEPTH = 4, /* an index may name an index */
    TICK_MS = 50,
    WAIT_FOR_OTHER_MS =
        30 * 60 * 1000, /* then it is on its own: a stopped process holds its lock, too */
    SPARE_BYTES = 1 << 20,
};

struct pull {
    const struct pull_options *o;
    struct reference reference;
    char full[REFERENCE_SIZE], brief[REFERENCE_SIZE];
    struct store *store;
    struct registry *registry;
    struct progress progress;
    int lock;
    uint64_t waited_from_ns; /* for another's pull; 0: it did not have to */

    bool platform_known;  /* an index has said it; else the configuration does */
    struct served served; /* the manifest's text */
    struct manifest manifest;
    struct download *downloads; /* one for each blob that is missing */
    size_t n_downloads;
    uint64_t missing_bytes;
    size_t layers_here; /* from the bottom up, none missing between */
    bool unpacks;       /* it is unpacked meanwhile, or there is no need to */
    struct unpacking *unpacking;
};

/* ------------------------------------------------------------------ one at a time */

static off_t
byte_of(const char *name) { /* FNV-1a; two images that meet in it wait in vain, and no worse */
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    return (off_t)(h >> 2);
}

static int take_turn(struct pull *p, struct err *err) {
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte_of(p->full), .l_len = 1};

    p->lock = openat(p->store->dir, PULL_LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (p->lock < 0)
        return store_failed(p->store, -errno, PULL_LOCK, err);
    for (int waited = 0; fcntl(p->lock, F_OFD_SETLK, &lock) < 0; waited += TICK_MS) {
        if (errno != EAGAIN && errno != EACCES && errno != EINTR)
            return store_failed(p->store, -errno, "locking " PULL_LOCK, err);
        if (waited == 0)
            p->waited_from_ns = now_ns();
        if (waited == 0)
            progress_note(&p->progress, "another process is pulling this image; waiting for it");
        if (waited >= WAIT_FOR_OTHER_MS)
            return 0;
        (void)nanosleep(&(struct timespec){.tv_nsec = TICK_MS * 1000000}, NULL);
    }
    return 0;
}

/* Whoever waited for a pull that found no registry need not find out for himself: twenty that start at once would take
 * the time of twenty. What the file says counts only if it came while we waited. */
static void leave_word(const struct pull *p, const struct err *why) {
    struct buf b _cleanup_buf_ = {0};

    buf_printf(&b, "%llu %s\n%s\n", (unsigned long long)now_ns(), p->full, why->message);
    int fd _cleanup_fd_ = openat(p->store->dir, PULL_FAILED,
                                 O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd >= 0 && !b.failed)
        (void)fd_write_full(fd, b.data, b.len);
}

static int read_word(const struct pull *p, struct err *err) {
    char text[4096], *name = NULL, *message;
    ssize_t n =
        p->waited_from_ns ? file_read_at(p->store->dir, PULL_FAILED, text, sizeof(text)) : 0;
    unsigned long long then = n > 0 ? strtoull(text, &name, 10) : 0;

    if (!name || *name++ != ' ' || !(message = strchr(name, '\n')) || then < p->waited_from_ns)
        return 0;
    *message++ = '\0';
    if (strcmp(name, p->full) != 0)
        return 0;
    return err_set(err, ERR_SETUP, -EHOSTUNREACH, "", NULL, "%s", message);
}

/* ------------------------------------------------------------------ what is to be got */

static int ask_manifest(struct pull *p, const char *by, int64_t size, struct err *err) {
    char what[EXCHANGE_WHAT_SIZE];

    buf_done(&p->served.text);
    manifest_done(&p->manifest);
    int r = registry_manifest(p->registry, by, &p->served, err);
    if (r < 0)
        return r;
    (void)snprintf(what, sizeof(what), "the manifest %.80s of %.200s", by, p->brief);
    if (size >= 0 && (uint64_t)size != p->served.text.len)
        return err_set(err, ERR_SETUP, -EBADMSG, "",
                       "have it pushed again, or take another registry or mirror",
                       "%s: it has %zu bytes, where the index says %lld", what, p->served.text.len,
                       (long long)size);
    return manifest_parse(p->served.text.data, p->served.text.len, p->served.type, what,
                          &p->manifest, err);
}

static int resolve(struct pull *p, struct err *err) {
    const struct reference *ref = &p->reference;
    int r = ask_manifest(p, ref->digest[0] ? ref->digest : ref->tag, -1, err);

    for (int depth = 0; r == 0 && p->manifest.is_index; depth++) {
        const struct index_item *item =
            manifest_choose(&p->manifest, &p->o->platform, p->brief, err);
        if (!item)
            return err->code;
        if (depth == MAX_DEPTH)
            return err_set(err, ERR_SETUP, -ELOOP, "", "name the image by its own digest",
                           "%.200s: an index in an index, deeper than makes sense", p->brief);
        const struct descriptor next = item->manifest;
        p->platform_known = item->has_platform;
        r = ask_manifest(p, next.digest, next.size, err);
    }
    return r;
}

/* What the configuration says it is for, once that is there. */
static int check_platform(const struct pull *p, struct err *err) {
    return facts_check_platform(p->store, p->manifest.config.digest, &p->o->platform,
                                p->o->platform_given, p->brief, err);
}

static bool is_listed(const struct pull *p, const char *digest) {
    for (size_t i = 0; i < p->n_downloads; i++)
        if (strcmp(p->downloads[i].blob->digest, digest) == 0)
            return true;
    return false;
}

static void note_damaged(struct pull *p, const char *digest) {
    char note[160];

    (void)snprintf(note, sizeof(note), "the store's copy of %.19s… is damaged: getting it anew",
                   digest);
    progress_note(&p->progress, note);
}

static void add_blob(struct pull *p, const struct descriptor *d) {
    if (is_listed(p, d->digest))
        return;
    if (blob_exists(p->store, d->digest, d->size)) {
        if (blob_is_good(p->store, d->digest, d->size)) {
            progress_blob(&p->progress, d, true);
            return;
        }
        note_damaged(p, d->digest);
    }
    p->downloads[p->n_downloads++] =
        (struct download){.registry = p->registry, .store = p->store, .blob = d};
    p->missing_bytes += (uint64_t)d->size;
}

/* The smallest that is needed before anything is unpacked; so a size that is a lie fills no disk. */
static int check_room(const struct pull *p, struct err *err) {
    struct statvfs v;
    char need[32], have[32];

    if (fstatvfs(p->store->dir, &v) < 0 || !p->missing_bytes)
        return 0;
    uint64_t room = (uint64_t)v.f_bavail * v.f_frsize;
    if (p->missing_bytes <= room && room - p->missing_bytes >= SPARE_BYTES)
        return 0;
    return err_set(err, ERR_SETUP, -ENOSPC, "",
                   "make room, with mayfly prune perhaps, or name another place with --store",
                   "%.150s: its layers take %s, and %s is free in %.100s", p->brief,
                   format_bytes(p->missing_bytes, need, sizeof(need)),
                   format_bytes(room, have, sizeof(have)), p->store->path);
}

static int list_blobs(struct pull *p, struct err *err) {
    char platform[PLATFORM_TEXT_SIZE];

    p->downloads = calloc(p->manifest.n_layers + 1, sizeof(*p->downloads));
    if (!p->downloads)
        return err_oom(err);
    p->n_downloads = 0;
    add_blob(p,
             &p->manifest.config); /* first: it may say that all the rest is for another machine */
    for (size_t i = 0; i < p->manifest.n_layers; i++)
        add_blob(p, &p->manifest.layers[i]);
    progress_resolved(&p->progress, p->full, p->served.digest,
                      platform_format(&p->o->platform, platform), p->manifest.n_layers,
                      p->missing_bytes);
    return check_room(p, err);
}

/* ------------------------------------------------------------------ getting it */

static uint64_t bytes_here(const struct pull *p) {
    uint64_t n = 0;

    for (size_t i = 0; i < p->n_downloads; i++)
        n += p->downloads[i].have;
    return n;
}

static bool is_config(const struct pull *p, const struct download *d) {
    return d->blob == &p->manifest.config;
}

static int begin_some(struct pull *p, size_t busy, struct err *err) {
    for (size_t i = 0; i < p->n_downloads && busy < AT_ONCE; i++) {
        /* For all we know it is for another machine, and no layer is wanted. */
        if (i > 0 && !p->platform_known && is_config(p, &p->downloads[0]) &&
            p->downloads[0].state != DOWNLOAD_DONE)
            break;
        if (p->downloads[i].state != DOWNLOAD_IDLE)
            continue;
        int r = download_begin(&p->downloads[i], err);
        if (r < 0)
            return r;
        busy++;
    }
    return 0;
}

/* The number of those under way, or -errno. */
static int look_at_all(struct pull *p, struct err *err) {
    int busy = 0;

    for (size_t i = 0; i < p->n_downloads; i++) {
        struct download *d = &p->downloads[i];
        if (d->state != DOWNLOAD_BUSY)
            continue;
        int r = download_look(d, err);
        if (r > 0) {
            progress_blob(&p->progress, d->blob, false);
            r = is_config(p, d) ? check_platform(p, err) : 0;
        } else if (r == 0) {
            busy++;
        }
        if (r < 0)
            return r;
    }
    return busy;
}

static int put_manifest(struct pull *p, struct err *err) {
    const struct buf *text = &p->served.text;
    struct blob_writer *w = NULL;
    uint64_t have = 0;

    if (blob_is_good(p->store, p->served.digest, (int64_t)text->len))
        return 0;
    if (blob_exists(p->store, p->served.digest, -1))
        note_damaged(p, p->served.digest);
    int r = blob_begin(p->store, p->served.digest, (int64_t)text->len, &w, &have, err);
    if (r < 0)
        return r;
    r = have ? blob_restart(w, err) : 0;
    r = r < 0 ? r : blob_write(w, text->data, text->len, err);
    if (r < 0)
        blob_abandon(w, false);
    return r < 0 ? r : blob_commit(w, err);
}

static const struct download *download_of(const struct pull *p, const char *digest) {
    for (size_t i = 0; i < p->n_downloads; i++)
        if (strcmp(p->downloads[i].blob->digest, digest) == 0)
            return &p->downloads[i];
    return NULL;
}

/* What is wrong is the image's, not the machine's. */
static bool is_its_own(int code) {
    static const int its_own[] = {EBADMSG, EINVAL,    E2BIG,        EFBIG,  ENOTSUP, ELOOP,
                                  ENOTDIR, EOVERFLOW, ENAMETOOLONG, ENOENT, EISDIR,  ENOMEM};

    for (size_t i = 0; i < ARRAY_LEN(its_own); i++)
        if (its_own[i] == -code)
            return true;
    return false;
}

static int not_unpacked(const struct pull *p, int code, const struct err *why, struct err *err) {
    const char *remedy = is_its_own(code)
                             ? "have it built again, or take another image"
                             : "see whether this machine has run out of something, and try again";

    return err_set(err, why->kind, code, "", strstr(why->message, "; ") ? NULL : remedy,
                   "%.120s: %s", p->brief, why->message);
}

/* Each layer as soon as it is here: what takes longest after the network is done by the time that the last one comes. */
static int unpack_meanwhile(struct pull *p, struct err *err) {
    const struct download *d = &p->downloads[0];
    struct err why = {0};
    int r = 0;

    if (!p->unpacks && (p->n_downloads == 0 || !is_config(p, d) || d->state == DOWNLOAD_DONE)) {
        p->unpacks = true;
        r = unpack_begin(p->store, p->served.digest, p->o->unpack_flags, &p->unpacking, &why);
    }
    for (; p->layers_here < p->manifest.n_layers; p->layers_here++) {
        d = download_of(p, p->manifest.layers[p->layers_here].digest);
        if (d && d->state != DOWNLOAD_DONE)
            break;
    }
    if (r == 0 && p->unpacking)
        r = unpack_more(p->unpacking, p->layers_here, &why);
    return r < 0 ? not_unpacked(p, r, &why, err) : 0;
}

static int download_all(struct pull *p, struct err *err) {
    size_t done = 0;
    int busy = 0;

    if (p->n_downloads == 0 || !is_config(p, &p->downloads[0])) {
        int r = check_platform(p, err);
        if (r < 0)
            return r;
    }
    while (done < p->n_downloads) {
        int r = begin_some(p, (size_t)busy, err);
        r = r < 0 ? r : exchange_wait(&p->registry->exchanger, TICK_MS, err);
        r = r < 0 ? r : (busy = look_at_all(p, err));
        r = r < 0 ? r : unpack_meanwhile(p, err);
        if (r < 0)
            return r;
        progress_tick(&p->progress, bytes_here(p));
        done = 0;
        for (size_t i = 0; i < p->n_downloads; i++)
            done += p->downloads[i].state == DOWNLOAD_DONE;
    }
    return 0;
}

/* ------------------------------------------------------------------ the whole */

/* True if the store has an image of that name; *ret tells of it. */
static bool is_known(const struct pull *p, struct index_entry *ret) {
    json_t *index = NULL;

    if (index_read(p->store->dir, &index, NULL) < 0)
        return false;
    bool known = index_find(index, p->full, ret, NULL, NULL) == 0;
    json_decref(index);
    return known;
}

static int unpack(struct pull *p, const char *digest, struct unpack_summary *ret, struct err *err) {
    struct err why = {0};

    progress_unpacking(&p->progress);
    int r = p->unpacking ? unpack_end(TAKE_PTR(p->unpacking), digest, ret, &why)
                         : store_unpack(p->store, digest, p->o->unpack_flags, ret, &why);
    return r < 0 ? not_unpacked(p, r, &why, err) : 0;
}

static int use_what_is_here(struct pull *p, const char *digest, struct err *err) {
    struct unpack_summary summary = {0};
    int r = unpack(p, digest, &summary, err);

    if (r == 0 && p->progress.mode != PROGRESS_JSON)
        p->progress.mode = PROGRESS_QUIET; /* nothing has happened */
    if (r == 0)
        progress_done(&p->progress, p->full, digest, true, &summary);
    return r;
}

/* Unpacked before it is named: what cannot be unpacked is not to take the place of what could. */
static int pull_from_registry(struct pull *p, struct err *err) {
    struct unpack_summary summary = {0};
    struct index_entry known = {0};
    char unnamed[DIGEST_SIZE] = "", note[160];
    const char *digest = p->served.digest;
    int r = registry_open(&p->reference, &p->o->registry, &p->registry, err);

    r = r < 0 ? r : resolve(p, err);
    r = r < 0 ? r : list_blobs(p, err);
    r = r < 0 ? r : put_manifest(p, err);
    r = r < 0 ? r : download_all(p, err);
    r = r < 0 ? r : unpack(p, digest, &summary, err);
    if (r < 0)
        return r;
    bool was_here = is_known(p, &known) && strcmp(known.digest, digest) == 0 &&
                    strcmp(known.name, p->full) == 0;
    if (!was_here)
        r = store_name(p->store, p->full, p->manifest.media_type, digest,
                       (int64_t)p->served.text.len, unnamed, err);
    if (unnamed[0]) {
        (void)snprintf(note, sizeof(note), UNNAMED_NOTE, unnamed);
        progress_note(&p->progress, note);
    }
    if (r == 0)
        progress_done(&p->progress, p->full, digest, was_here, &summary);
    return r;
}

/* It could be unpacked when it got its name; so it is the store that is damaged, and the registry's copy is good. */
static int pull_anew(struct pull *p, const struct err *why, struct err *err) {
    progress_note(&p->progress, why->message);
    return pull_from_registry(p, err);
}

static int pull_known(struct pull *p, const char *digest, struct err *err) {
    struct err why = {0};
    int r = use_what_is_here(p, digest, &why);

    if (r < 0 && is_its_own(r))
        return pull_anew(p, &why, err);
    if (r < 0)
        *err = why;
    return r;
}

static void done(struct pull *p) {
    unpack_drop(p->unpacking);
    for (size_t i = 0; i < p->n_downloads; i++)
        download_drop(&p->downloads[i]);
    free(p->downloads);
    manifest_done(&p->manifest);
    buf_done(&p->served.text);
    registry_close(p->registry);
    fd_close(&p->lock);
    store_close(p->store);
}

static void on_note(void *arg, const char *line) { progress_note(arg, line); }

static void on_waiting(void *arg, const struct exchange *e, int64_t ms, const char *why) {
    progress_waiting(arg, e->what, ms, why);
}

int pull(const struct pull_options *options, struct err *err) {
    struct pull_options o = *options;
    struct pull p = {.o = &o, .lock = -1, .progress = {.mode = o.mode, .name = p.brief}};
    struct index_entry known = {0};
    int r = reference_parse(o.image, &p.reference, err);

    if (r == 0) {
        (void)reference_full(&p.reference, p.full);
        (void)reference_short(&p.reference, p.brief);
        o.registry.watcher =
            (struct watcher){.note = on_note, .waiting = on_waiting, .arg = &p.progress};
        r = store_open_writable(o.store, &p.store, err);
    }
    r = r < 0 ? r : take_turn(&p, err);
    r = r < 0 ? r : read_word(&p, err);
    if (r == 0)
        r = o.only_missing && is_known(&p, &known) ? pull_known(&p, known.digest, err)
                                                   : pull_from_registry(&p, err);
    if (r == -EHOSTUNREACH && p.registry)
        leave_word(&p, err);
    if (r < 0 && !o.untold)
        progress_failed(&p.progress, err);
    done(&p);
    return r;
}
