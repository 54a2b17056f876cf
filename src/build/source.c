/*
 * source.c: see source.h.
 */
#include "build/source.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "linux/sys.h"

#include "base/banned.h"

enum { MAX_ITEMS = 500000, MAX_MATCHES = 10000 };

static int failed(const struct source *s, int code, const char *path, struct err *err) {
    return err_errno(err, ERR_USAGE, code, "", NULL, "%.60s: %.200s", s->what, *path ? path : ".");
}

/* ------------------------------------------------------------------ opening */

/* Before Linux 5.6: a component at a time, and no link at all. */
static int open_plainly(int root, const char *path, int flags) {
    char part[NAME_MAX + 1];
    _cleanup_fd_ int dir = openat(root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);

    while (dir >= 0) {
        size_t len = strcspn(path, "/");
        if (len >= sizeof(part))
            return -ENAMETOOLONG;
        memcpy(part, path, len);
        part[len] = '\0';
        bool last = !path[len];
        int fd = openat(dir, len ? part : ".",
                        (last ? flags : O_PATH | O_DIRECTORY) | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || last)
            return fd < 0 ? -errno : fd;
        fd_close(&dir);
        dir = fd;
        path += len + 1;
    }
    return -errno;
}

int source_open(const struct source *s, const char *path, int flags, struct err *err) {
    /* openat2 takes nothing else with O_PATH. */
    int all = flags & O_PATH ? flags | O_CLOEXEC : flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    const struct open_how how = {.flags = (unsigned)all,
                                 .resolve = (s->is_root ? RESOLVE_IN_ROOT : RESOLVE_BENEATH) |
                                            RESOLVE_NO_MAGICLINKS};
    int fd = sys_openat2(s->root, *path ? path : ".", &how);

    if (fd < 0 && errno == ENOSYS) {
        fd = open_plainly(s->root, path, all);
        errno = fd < 0 ? -fd : 0;
    }
    if (fd >= 0)
        return fd;
    if (errno == EXDEV)
        return err_set(err, ERR_USAGE, -EXDEV, "", "copy what it leads to into the context",
                       "%.60s: %.200s: a link on the way leads out of it", s->what, path);
    return failed(s, -errno, path, err);
}

/* ------------------------------------------------------------------ what is there */

static struct source_item *new_item(struct source_list *list, struct err *err) {
    if (list->n_items == MAX_ITEMS)
        return (void)err_set(err, ERR_USAGE, -EFBIG, "", "name what is not needed in .dockerignore",
                             "more than %d files", MAX_ITEMS),
               NULL;
    if (list->n_items == list->cap_items) {
        size_t cap = list->cap_items ? 2 * list->cap_items : 256;
        struct source_item *items = reallocarray(list->items, cap, sizeof(*items));
        if (!items)
            return (void)err_oom(err), NULL;
        list->items = items;
        list->cap_items = cap;
    }
    struct source_item *item = &list->items[list->n_items++];
    *item = (struct source_item){0};
    return item;
}

static int digest_file(int fd, char ret[65]) {
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    unsigned char sum[EVP_MAX_MD_SIZE];
    _cleanup_free_ char *chunk = malloc(128 << 10);
    unsigned len = 0;
    ssize_t n = 0;
    bool good = md && chunk && EVP_DigestInit_ex(md, EVP_sha256(), NULL) == 1;

    while (good && (n = fd_read_full(fd, chunk, 128 << 10)) > 0)
        good = EVP_DigestUpdate(md, chunk, (size_t)n) == 1;
    good = good && n == 0 && EVP_DigestFinal_ex(md, sum, &len) == 1;
    EVP_MD_CTX_free(md);
    for (unsigned i = 0; good && i < 32; i++)
        (void)snprintf(ret + 2 * (size_t)i, 3, "%02x", sum[i]);
    return good ? 0 : n < 0 ? (int)n : -ENOMEM;
}

static int add_dir(const struct source *s, int dir, char *path, size_t len, size_t base,
                   struct source_list *list, struct err *err);

/* `fd` is what is at `path`, opened; -1: a link, or nothing that is copied. */
static int add_item(const struct source *s, int fd, const char *link, char *path, size_t len,
                    size_t base, const struct stat *st, struct source_list *list, struct err *err) {
    struct source_item *item = new_item(list, err);

    if (!item)
        return err && err->code ? err->code : -ENOMEM;
    item->from = arena_strdup(&list->arena, path);
    const char *to = path + MIN(base, len);
    item->to = arena_strdup(&list->arena, to + (*to == '/'));
    item->link = link ? arena_strdup(&list->arena, link) : NULL;
    item->mode = st->st_mode;
    item->uid = st->st_uid;
    item->gid = st->st_gid;
    item->size = S_ISREG(st->st_mode) ? st->st_size : 0;
    item->mtime = st->st_mtim;
    if (!item->from || !item->to || (link && !item->link))
        return err_oom(err);
    int r = S_ISREG(st->st_mode) ? digest_file(fd, item->digest) : 0;
    if (r < 0)
        return failed(s, r, path, err);
    return S_ISDIR(st->st_mode) ? add_dir(s, fd, path, len, base, list, err) : 0;
}

static int add_child(const struct source *s, int dir, const char *name, char *path, size_t len,
                     size_t base, struct source_list *list, struct err *err) {
    struct stat st;
    char link[PATH_MAX];
    _cleanup_fd_ int fd = -1;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return failed(s, -errno, path, err);
    bool ignored = s->ignore && ignore_has(s->ignore, path);
    if (ignored && !(S_ISDIR(st.st_mode) && s->ignore->any_keeps))
        return 0;
    if (S_ISLNK(st.st_mode)) {
        ssize_t n = readlinkat(dir, name, link, sizeof(link) - 1);
        if (n < 0)
            return failed(s, -errno, path, err);
        link[n] = '\0';
        return add_item(s, -1, link, path, len, base, &st, list, err);
    }
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return 0; /* sockets and the like: no layer holds them */
    fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return failed(s, -errno, path, err);
    /* An ignored directory is not there itself; what is kept below it makes it again. */
    return ignored ? add_dir(s, fd, path, len, base, list, err)
                   : add_item(s, fd, NULL, path, len, base, &st, list, err);
}

static int plain_name(const struct dirent *e) {
    return strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
}

static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Calls for each name, in order, with the path made longer by it. */
typedef int (*each_child)(const struct source *s, int dir, const char *name, char *path, size_t len,
                          size_t base, struct source_list *list, struct err *err);

static int for_children(const struct source *s, int dir, char *path, size_t len, size_t base,
                        struct source_list *list, each_child call, struct err *err) {
    struct dirent **names = NULL;
    int n = scandirat(dir, ".", &names, plain_name, by_name);
    int r = n < 0 ? failed(s, -errno, path, err) : 0;

    for (int i = 0; i < n; i++) {
        int more = snprintf(path + len, PATH_MAX - len, "%s%s", len ? "/" : "", names[i]->d_name);
        if (r == 0)
            r = more < (int)(PATH_MAX - len)
                    ? call(s, dir, names[i]->d_name, path, len + (size_t)more, base, list, err)
                    : failed(s, -ENAMETOOLONG, path, err);
        free(names[i]);
    }
    free((void *)names);
    path[len] = '\0';
    return r;
}

static int add_dir(const struct source *s, int dir, char *path, size_t len, size_t base,
                   struct source_list *list, struct err *err) {
    return for_children(s, dir, path, len, base, list, add_child, err);
}

/* ------------------------------------------------------------------ what a word stands for */

static int add_match(const struct source *s, const char *named, struct source_list *list,
                     struct err *err) {
    char path[PATH_MAX];
    struct stat st;
    _cleanup_fd_ int fd = source_open(s, named, O_RDONLY, err);

    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        return failed(s, -errno, named, err);
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return err_set(err, ERR_USAGE, -EINVAL, "", NULL,
                       "%.60s: %.200s: is neither a file nor a directory", s->what, named);
    if (list->n_matches == MAX_MATCHES || !str_copy(path, sizeof(path), named))
        return failed(s, -ENAMETOOLONG, named, err);
    struct source_match *m =
        reallocarray(list->matches, list->n_matches + 1, sizeof(*list->matches));
    if (!m)
        return err_oom(err);
    list->matches = m;
    m += list->n_matches++;
    *m = (struct source_match){.path = arena_strdup(&list->arena, named),
                               .is_dir = S_ISDIR(st.st_mode),
                               .first = list->n_items};
    if (!m->path)
        return err_oom(err);
    size_t len = strlen(path);
    int r = add_item(s, fd, NULL, path, len, len, &st, list, err);
    list->matches[list->n_matches - 1].n = list->n_items - list->matches[list->n_matches - 1].first;
    return r;
}

struct search {
    struct source source; /* first: what for_children hands on */
    const char *pattern;
    size_t depth; /* directories that the pattern goes down; SIZE_MAX with "**" */
};

static size_t slashes(const char *s) {
    size_t n = 0;

    for (; *s; s++)
        n += *s == '/';
    return n;
}

static int search_child(const struct source *s, int dir, const char *name, char *path, size_t len,
                        size_t base, struct source_list *list, struct err *err) {
    const struct search *search = (const struct search *)s;
    struct stat st;

    if (s->ignore && !s->ignore->any_keeps && ignore_has(s->ignore, path))
        return 0;
    if (pattern_matches(search->pattern, path) && !(s->ignore && ignore_has(s->ignore, path)))
        return add_match(s, path, list, err);
    if (slashes(path) >= search->depth || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
        !S_ISDIR(st.st_mode))
        return 0;
    _cleanup_fd_ int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return failed(s, -errno, path, err);
    return for_children(s, fd, path, len, base, list, search_child, err);
}

static int find_pattern(const struct source *s, const char *pattern, struct source_list *list,
                        struct err *err) {
    const struct search search = {
        .source = *s,
        .pattern = pattern,
        .depth = strstr(pattern, "**") ? SIZE_MAX : slashes(pattern),
    };
    char path[PATH_MAX] = "";
    size_t before = list->n_matches;

    if (!pattern_is_valid(pattern))
        return err_set(err, ERR_USAGE, -EINVAL, "", NULL, "\"%.100s\" is no pattern", pattern);
    int r = for_children(&search.source, s->root, path, 0, 0, list, search_child, err);
    if (r == 0 && list->n_matches == before)
        r = err_set(err, ERR_USAGE, -ENOENT, "", NULL, "nothing in %.60s matches %.200s", s->what,
                    pattern);
    return r;
}

/* Something below a directory that is left out may be kept; a file that is left out is left out. */
static bool is_left_out(const struct source *s, const char *path) {
    if (!*path || !s->ignore || !ignore_has(s->ignore, path))
        return false;
    if (!s->ignore->any_keeps)
        return true;
    _cleanup_fd_ int dir = source_open(s, path, O_PATH | O_DIRECTORY | O_NOFOLLOW, NULL);
    return dir < 0;
}

int source_find(const struct source *s, const char *word, struct source_list *list,
                struct err *err) {
    char path[PATH_MAX];

    if (!path_plain(word, s->is_root, path, sizeof(path)))
        return err_set(err, ERR_USAGE, -EINVAL, "", "copy it into the context first",
                       "%.60s: %.200s: lies outside of it", s->what, word);
    if (pattern_has_magic(path))
        return find_pattern(s, path, list, err);
    if (is_left_out(s, path))
        return err_set(err, ERR_USAGE, -ENOENT, "", NULL,
                       "%.60s: %.200s: .dockerignore leaves it out", s->what, path);
    return add_match(s, path, list, err);
}

void source_list_done(struct source_list *list) {
    free(list->items);
    free(list->matches);
    arena_done(&list->arena);
    *list = (struct source_list){0};
}
