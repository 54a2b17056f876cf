/*
 * hostile.c: see hostile.h. No library writes these archives: none would write what they are to have in them.
 */
#include "lab/hostile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/helper.h"
#include "base/spawn.h"

#include "base/banned.h"

extern char **environ;

enum { BLOCK = 512, HEX = 2 * 32 + 1, ENTRY_TIME = 1000000000 };

/* ------------------------------------------------------------------ archives */

static void octal(char *field, size_t size, unsigned long long value) {
    for (size_t i = size - 1; i-- > 0; value >>= 3)
        field[i] = (char)('0' + (value & 7));
}

static void add_padded(struct buf *b, const void *data, size_t len) {
    static const char zeros[BLOCK];

    buf_add(b, data, len);
    buf_add(b, zeros, (BLOCK - len % BLOCK) % BLOCK);
}

static void add_header(struct buf *b, const struct image_entry *e, size_t len) {
    char h[BLOCK] = "";
    unsigned sum = 0;

    (void)str_copy(h, 101, e->name);
    octal(h + 100, 8, e->mode ? e->mode : e->type == '5' ? 0755 : 0644);
    octal(h + 108, 8, 0);
    octal(h + 116, 8, 0);
    octal(h + 124, 12, len);
    octal(h + 136, 12, ENTRY_TIME);
    memset(h + 148, ' ', 8);
    h[156] = e->type;
    (void)str_copy(h + 157, 101, e->link ? e->link : "");
    static const char magic[8] = {'u', 's', 't', 'a', 'r', '\0', '0', '0'};
    memcpy(h + 257, magic, sizeof(magic));
    for (size_t i = 0; i < sizeof(h); i++)
        sum += (unsigned char)h[i];
    (void)snprintf(h + 148, 8, "%06o", sum);
    buf_add(b, h, sizeof(h));
}

static void add_entry(struct buf *b, const struct image_entry *e) {
    size_t len = e->len ? e->len : e->text ? strlen(e->text) : 0;

    add_header(b, e, len);
    if (len)
        add_padded(b, e->text, len);
}

/* A record of a pax header has its own length before it. */
static void add_attribute(struct buf *b, const struct image_entry *e) {
    size_t body = strlen(e->name) + strlen(e->text) + 3, len = body + 1;
    char record[256];

    while ((size_t)snprintf(NULL, 0, "%zu", len) + body != len)
        len++;
    (void)snprintf(record, sizeof(record), "%zu %s=%s\n", len, e->name, e->text);
    add_entry(b, &(struct image_entry){'x', "pax", .text = record});
}

static void add_layer(struct buf *b, const struct image_entry *e) {
    static const char end[2 * BLOCK];

    for (; e->type; e++)
        if (e->type == 'x')
            add_attribute(b, e);
        else
            add_entry(b, e);
    buf_add(b, end, sizeof(end));
}

/* ------------------------------------------------------------------ images */

static void hash(struct buf *of, char hex[HEX]) {
    unsigned char md[EVP_MAX_MD_SIZE];
    unsigned n = 0;

    hex[0] = '\0';
    if (of->failed || EVP_Digest(of->data, of->len, md, &n, EVP_sha256(), NULL) != 1)
        of->failed = true;
    for (unsigned i = 0; i < n; i++)
        (void)snprintf(hex + 2 * i, 3, "%02x", md[i]);
}

void hostile_add(struct hostile *h, const char *name, const char *config,
                 const struct image_entry *const *layers) {
    _cleanup_buf_ struct buf ids = {0}, files = {0}, text = {0};
    char hex[HEX], file[HEX + 16];

    for (size_t i = 0; layers[i]; i++) {
        _cleanup_buf_ struct buf layer = {0};
        add_layer(&layer, layers[i]);
        hash(&layer, hex);
        (void)snprintf(file, sizeof(file), "%s/layer.tar", hex);
        add_entry(&h->archive,
                  &(struct image_entry){'0', file, .text = layer.data, .len = layer.len});
        buf_printf(&ids, "%s\"sha256:%s\"", i ? "," : "", hex);
        buf_printf(&files, "%s\"%s\"", i ? "," : "", file);
        h->archive.failed |= layer.failed;
    }
    buf_printf(
        &text,
        "{\"os\":\"linux\",\"config\":{%s},\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[%s]}}",
        config, ids.data ? ids.data : "");
    hash(&text, hex);
    (void)snprintf(file, sizeof(file), "%s.json", hex);
    add_entry(&h->archive, &(struct image_entry){'0', file, .text = text.data, .len = text.len});
    buf_printf(&h->names, "%s{\"Config\":\"%s\",\"RepoTags\":[\"%s\"],\"Layers\":[%s]}",
               h->names.len ? "," : "[", file, name, files.data ? files.data : "");
    h->archive.failed |= ids.failed || files.failed || text.failed;
}

void hostile_done(struct hostile *h) {
    buf_done(&h->archive);
    buf_done(&h->names);
}

static int write_archive(struct hostile *h, const char *path) {
    static const char end[2 * BLOCK];

    buf_puts(&h->names, "]");
    if (h->names.failed)
        return -ENOMEM;
    add_entry(&h->archive, &(struct image_entry){'0', "manifest.json", .text = h->names.data});
    buf_add(&h->archive, end, sizeof(end));
    if (h->archive.failed)
        return -ENOMEM;
    _cleanup_fd_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    return fd < 0 ? -errno : fd_write_full(fd, h->archive.data, h->archive.len);
}

/* ------------------------------------------------------------------ the real program */

/* Until all who have the other end are gone. False: they are not, in good time. */
static bool read_words(int from, char *words, size_t size) {
    uint64_t end = now_ns() + (uint64_t)(20e9 * lab_slow());
    struct pollfd p = {.fd = from, .events = POLLIN};
    size_t len = 0;

    for (;;) {
        char more[512];
        uint64_t now = now_ns();
        int left_ms = now < end ? (int)((end - now) / 1000000) : 0;
        if (left_ms <= 0 || poll(&p, 1, left_ms) <= 0)
            return false;
        ssize_t n = read(from, more, sizeof(more));
        if (n <= 0)
            break;
        size_t fits = MIN((size_t)n, size - 1 - len);
        memcpy(words + len, more, fits);
        len += fits;
    }
    words[len] = '\0';
    words[strcspn(words, "\n")] = '\0';
    return true;
}

static int run_import(const char *program, const char *store, const char *archive, char *words,
                      size_t size) {
    const char *argv[] = {program, "import", "--no-bytecode", "--store", store, archive, NULL};
    int ends[2], status = 0;
    pid_t pid = -1;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    _cleanup_fd_ int from = ends[0];
    int r = spawn_helper(program, argv, (const char *const *)environ, ends[1], &pid);
    (void)close(ends[1]);
    if (r < 0)
        return r;
    bool ended = read_words(from, words, size);
    if (!ended)
        (void)kill(pid, SIGKILL);
    while ((r = waitpid(pid, &status, 0)) < 0 && errno == EINTR)
        ;
    if (!ended || r < 0)
        return -ETIME;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

const char *hostile_program(void) {
    static char path[PATH_MAX];
    char found[PATH_MAX];

    if (!path[0] && (helper_find("mayfly-fetch", found, sizeof(found)) ||
                     helper_find("../../mayfly-fetch", found, sizeof(found)))) /* of the tests */
        (void)(realpath(found, path) || (path[0] = '\0'));
    return path[0] ? path : NULL;
}

int hostile_import(struct attempt *a, struct hostile *h, char *words, size_t size) {
    char store[PATH_MAX], archive[PATH_MAX];
    const char *program = hostile_program();

    words[0] = '\0';
    if (!program)
        return -ENOENT;
    (void)snprintf(store, sizeof(store), "%s/" HOSTILE_STORE, a->dir);
    (void)snprintf(archive, sizeof(archive), "%s/image.tar", a->dir);
    int r = write_archive(h, archive);
    return r < 0 ? r : run_import(program, store, archive, words, size);
}

bool hostile_has(const struct attempt *a, const char *path) {
    char dir[PATH_MAX], file[2 * PATH_MAX];
    const struct dirent *e;
    bool has = false;

    (void)snprintf(dir, sizeof(dir), "%s/" HOSTILE_STORE "/unpacked", a->dir);
    DIR *d = opendir(dir);
    while (d && !has && (e = readdir(d))) {
        (void)snprintf(file, sizeof(file), "%s/%s/fs/%s", dir, e->d_name, path);
        has = e->d_name[0] != '.' && faccessat(AT_FDCWD, file, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    }
    if (d)
        (void)closedir(d);
    return has;
}
