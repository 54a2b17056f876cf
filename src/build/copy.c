/*
 * copy.c: COPY and ADD: files of the context, of another stage or of another image, put into the work tree.
 *
 * The tree's own functions put them there, the ones that hostile layers go through: no link in the image leads a write
 * out of it. ADD unpacks archives (see extract.h); its URLs are refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "build/build.h"
#include "build/extract.h"
#include "fetch/tree.h"
#include "lib/image_use.h"
#include "linux/sys.h"

#include "base/banned.h"

struct copy {
    const struct docker_line *line;
    struct stage *other; /* that is copied from; or NULL */
    struct source source;
    struct source_list list;
    const char **words; /* sources, as they are written; ended by NULL */
    size_t n_words;
    const char *to; /* below the root, plainly written; "": the root */
    bool to_dir;    /* it ends with a slash */
    const char *chown;
    int chmod; /* -1: as they are */
};

/* ------------------------------------------------------------------ into the tree */

static int owner_of(struct stage *s, const struct copy *c, struct tree_owner *ret,
                    struct err *err) {
    uint32_t uid = 0, gid = 0;

    *ret = (struct tree_owner){0};
    if (!c->chown)
        return 0;
    _cleanup_free_ char *passwd = stage_text(s, "etc/passwd"), *group = stage_text(s, "etc/group");
    /* A number alone is the group's too, as Docker has it for COPY. */
    const char *both = !c->chown[strspn(c->chown, "0123456789")]
                           ? arena_printf(&s->build->arena, "%s:%s", c->chown, c->chown)
                           : c->chown;
    int r = both ? user_lookup(both, passwd, group, &uid, &gid, err) : err_oom(err);
    ret->uid = uid;
    ret->gid = gid;
    return r;
}

/* `flags`: 0, or O_NOFOLLOW: not where it is a link to one. */
static bool is_dir_inside(const struct stage *s, const char *path, int flags) {
    const struct source root = {.root = s->tree.root, .what = "", .is_root = true};
    _cleanup_fd_ int fd = source_open(&root, path, O_PATH | O_DIRECTORY | flags, NULL);

    return fd >= 0;
}

int stage_need_dirs(const struct stage *s, const char *path, bool last, struct err *err) {
    const struct source root = {.root = s->tree.root, .what = "", .is_root = true};
    char at[PATH_MAX];

    if (!str_copy(at, sizeof(at), path))
        return err_set(err, ERR_USAGE, -ENAMETOOLONG, "", NULL, "%.100s… is too long", path);
    for (char *end = strchrnul(at, '/'); *path; end = strchrnul(end + 1, '/')) {
        bool whole = !*end;
        struct stat st;

        if (whole && !last)
            break;
        *end = '\0';
        _cleanup_fd_ int fd = source_open(&root, at, O_PATH, NULL);
        if (fd < 0)
            break; /* from here on they are made */
        if (fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode))
            return err_set(err, ERR_USAGE, -ENOTDIR, "", "name another place, or remove it first",
                           "/%.200s is there and no directory", at);
        if (whole)
            break;
        *end = '/';
    }
    return 0;
}

struct put {
    struct stage *stage;
    const struct copy *copy;
    struct tree tree;
    struct tree_owner owner;
    struct unpack_summary sum;
};

/* The context's files are the image's root's; those of an image stay whose they are. An ordinary user's tree has owners
 * on the side. */
static struct tree_owner owner_for(const struct put *p, const struct source_item *i) {
    const struct copy *c = p->copy;
    struct tree_owner owner = {p->owner.uid, p->owner.gid, i->mtime};

    if (c->chown || !c->source.is_root)
        return owner;
    if (geteuid() == 0) {
        owner.uid = i->uid;
        owner.gid = i->gid;
    } else if (c->other) {
        const json_t *noted = json_object_get(c->other->owners, i->from);
        owner.uid = json_integer_value(json_array_get(noted, 0));
        owner.gid = json_integer_value(json_array_get(noted, 1));
    }
    return owner;
}

/* What an ordinary user's files cannot have goes into the layer all the same. */
static int note_owner(struct put *p, const char *path, const struct tree_owner *owner,
                      struct err *err) {
    char plain[PATH_MAX];

    if (geteuid() == 0 || (owner->uid == 0 && owner->gid == 0))
        return 0;
    if (!path_plain(path, true, plain, sizeof(plain)))
        return err_set(err, ERR_USAGE, -ENAMETOOLONG, "", NULL, "%.200s: too long", path);
    return json_object_set_new(p->stage->owners, plain,
                               json_pack("[II]", (json_int_t)owner->uid, (json_int_t)owner->gid)) <
                   0
               ? err_oom(err)
               : 0;
}

static mode_t mode_of(const struct put *p, mode_t mode) {
    return p->copy->chmod >= 0 ? (mode_t)p->copy->chmod : mode & 07777;
}

static int put_bytes(const char *path, int from, int to, int64_t *ret_size, struct err *err) {
    char chunk[64 << 10];
    ssize_t n = 0;
    int r = 0;

    while (r == 0 && (n = fd_read_full(from, chunk, sizeof(chunk))) > 0) {
        r = fd_write_full(to, chunk, (size_t)n);
        *ret_size += n;
    }
    r = n < 0 ? (int)n : r;
    return r < 0 ? err_errno(err, ERR_SETUP, r, "", NULL, "%.200s", path) : 0;
}

static int put_file(struct put *p, const struct source_item *i, const char *to, struct err *err) {
    _cleanup_fd_ int in = source_open(&p->copy->source, i->from, O_RDONLY, err), out = -1;
    const struct tree_owner owner = owner_for(p, i);
    int64_t size = 0;
    int r = in < 0 ? in : tree_file_begin(&p->tree, to, &out, err);

    r = r < 0 ? r : put_bytes(to, in, out, &size, err);
    return r < 0 ? r : tree_file_end(&p->tree, to, out, size, mode_of(p, i->mode), &owner, err);
}

/* The directory that a source's content goes into is made if it is not there; what is, stays as it is. Directories below
 * it become the source's, but no link to one is replaced. */
static bool leave_dir(const struct put *p, const struct source_item *i, const char *to) {
    return is_dir_inside(p->stage, to, 0) && (!*i->to || !is_dir_inside(p->stage, to, O_NOFOLLOW));
}

static int put_item(struct put *p, const struct source_item *i, const char *to, struct err *err) {
    const struct tree_owner owner = owner_for(p, i);
    int r;

    if (S_ISDIR(i->mode) && leave_dir(p, i, to))
        return 0;
    if (S_ISDIR(i->mode))
        r = tree_dir(&p->tree, to, mode_of(p, i->mode), &owner, err);
    else if (S_ISLNK(i->mode))
        r = tree_symlink(&p->tree, to, i->link, &owner, err);
    else
        r = put_file(p, i, to, err);
    return r < 0 ? r : note_owner(p, to, &owner, err);
}

/* `a`, and below it `b`; either may be empty. */
static int join(const char *a, const char *b, char ret[PATH_MAX], struct err *err) {
    return snprintf(ret, PATH_MAX, "%s%s%s", a, *a && *b ? "/" : "", b) < PATH_MAX
               ? 0
               : err_set(err, ERR_USAGE, -ENAMETOOLONG, "", NULL, "%.200s: too long", b);
}

/* What an archive has that no image gets is told. */
static void say_left_out(const struct build *b, const char *name,
                         const struct unpack_summary *sum) {
    if (sum->devices || sum->setid || sum->filecaps)
        build_say(b,
                  "mayfly: warning: %s: left out: %llu device files, %llu setuid and setgid bits, "
                  "%llu file "
                  "capabilities\n",
                  name, (unsigned long long)sum->devices, (unsigned long long)sum->setid,
                  (unsigned long long)sum->filecaps);
}

/* 1: it was an archive. The tree is handed to another process meanwhile: what this one remembers of it is old then. */
static int put_archive(struct put *p, const struct source_match *m, struct err *err) {
    const struct copy *c = p->copy;
    struct build *b = p->stage->build;
    const struct extract x = {.to = c->to,
                              .owner = c->chown ? &p->owner : NULL,
                              .limit_bytes = b->disk_limit,
                              .owners = p->stage->owners};
    struct unpack_summary sum = {0};
    _cleanup_fd_ int fd = source_open(&c->source, c->list.items[m->first].from, O_RDONLY, err);

    if (fd < 0 || !extract_is_candidate(fd))
        return fd < 0 ? fd : 0;
    int r = stage_need_dirs(p->stage, c->to, true, err);
    r = r < 0 ? r : tree_finish(&p->tree, err);
    tree_done(&p->tree);
    r = r < 0 ? r : extract(&p->stage->tree, fd, &x, &sum, err);
    if (r == 1 && c->chmod >= 0)
        r = err_set(err, ERR_USAGE, -EINVAL, "", "leave it out",
                    "--chmod: an archive has modes of its own");
    if (r == 1)
        say_left_out(b, m->path, &sum);
    int again = worktree_open(&p->stage->tree, &p->tree, &p->sum, r < 0 ? NULL : err);
    return r < 0 ? r : again < 0 ? again : r;
}

static int put_match(struct put *p, const struct source_match *m, bool into_dir, struct err *err) {
    const struct copy *c = p->copy;
    const char *slash = strrchr(m->path, '/'), *name = slash ? slash + 1 : m->path;
    char base[PATH_MAX], to[PATH_MAX];
    int r = c->line->keyword == DOCKER_ADD && !m->is_dir ? put_archive(p, m, err) : 0;

    if (r != 0)
        return r < 0 ? r : 0;
    r = join(c->to, into_dir && !m->is_dir ? name : "", base, err);

    for (size_t k = m->first; k < m->first + m->n && r == 0; k++) {
        const struct source_item *i = &c->list.items[k];
        r = join(base, i->to, to, err);
        r = r < 0 ? r : put_item(p, i, to, err);
    }
    return r;
}

static int put_heredoc(struct put *p, const struct docker_heredoc *h, const char *body,
                       bool into_dir, struct err *err) {
    char to[PATH_MAX];
    _cleanup_fd_ int out = -1;

    int r = join(p->copy->to, into_dir ? h->name : "", to, err);
    r = r < 0 ? r : tree_file_begin(&p->tree, to, &out, err);
    int code = r < 0 ? 0 : fd_write_full(out, body, strlen(body));
    if (code < 0)
        r = err_errno(err, ERR_SETUP, code, "", NULL, "%.200s", to);
    r = r < 0 ? r
              : tree_file_end(&p->tree, to, out, (int64_t)strlen(body), mode_of(p, 0644), &p->owner,
                              err);
    return r < 0 ? r : note_owner(p, to, &p->owner, err);
}

/* Of whom what is put there is. */
static int make_destination(struct put *p, struct err *err) {
    const char *to = p->copy->to;

    if (!*to || is_dir_inside(p->stage, to, 0))
        return 0;
    int r = tree_dir(&p->tree, to, 0755, &p->owner, err);
    return r < 0 ? r : note_owner(p, to, &p->owner, err);
}

static int put_all(struct put *p, struct err *err) {
    const struct copy *c = p->copy;
    bool into_dir = c->to_dir || is_dir_inside(p->stage, c->to, 0);
    struct expand x;
    bool into_file = !into_dir;
    for (size_t i = 0; i < c->list.n_matches; i++)
        into_file &= !c->list.matches[i].is_dir;
    int r = stage_need_dirs(p->stage, c->to, !into_file, err);
    r = r == 0 && into_dir ? make_destination(p, err) : r;

    stage_expand(p->stage, &x);
    for (size_t i = 0; i < c->list.n_matches && r == 0; i++)
        r = put_match(p, &c->list.matches[i], into_dir, err);
    for (size_t i = 0; i < c->line->n_heredocs && r == 0; i++) {
        const struct docker_heredoc *h = &c->line->heredocs[i];
        const char *body = h->body;
        r = h->expand ? expand_text(&x, h->body, &body, err) : 0;
        r = r < 0 ? r : put_heredoc(p, h, body, into_dir, err);
    }
    return r < 0 ? r : tree_finish(&p->tree, err);
}

static int find_files(struct copy *c, struct err *err) {
    int r = 0;

    for (size_t i = 0; i < c->n_words && r == 0; i++)
        r = source_find(&c->source, c->words[i], &c->list, err);
    if (r == 0 && c->list.n_matches > 1 && !c->to_dir)
        return err_set(err, ERR_USAGE, -EINVAL, "", "end the destination with a slash",
                       "%zu files match, and /%.100s says nothing of a directory",
                       c->list.n_matches, c->to);
    return r;
}

static int carry_out(struct stage *s, void *context, struct err *err) {
    struct copy *c = context;
    struct put p = {.stage = s, .copy = c};
    int r = owner_of(s, c, &p.owner, err);

    if (r == 0 && c->other) { /* whose files are looked at only now that they are needed */
        r = stage_tree(c->other, err);
        c->source.root = c->other->tree.root;
    }
    if (r == 0 && c->source.is_root)
        r = find_files(c, err);
    r = r < 0 ? r : worktree_open(&s->tree, &p.tree, &p.sum, err);
    if (r < 0)
        return r;
    r = put_all(&p, err);
    tree_done(&p.tree);
    return r;
}

/* ------------------------------------------------------------------ the instruction */

static int check_word(const struct stage *s, const struct docker_line *l, const char *word,
                      struct err *err) {
    const struct dockerfile *d = &s->build->file;

    if (strstr(word, "://") || strncmp(word, "git@", 4) == 0)
        return docker_refuse(d, l, err, "download it first, and COPY it",
                             "%.100s: only local files are supported", word);
    return 0;
}

static int take_words(const struct stage *s, struct copy *c, struct err *err) {
    const struct docker_line *l = c->line;
    const char *const *raw = l->json, *word;
    struct err inner = {0};
    struct expand x;
    size_t n = 0;
    int r = 0;

    stage_expand(s, &x);
    if (!raw)
        r = expand_split(&x, l->text, &raw, &n, &inner);
    for (n = 0; r == 0 && raw[n];)
        n++;
    c->words = arena_alloc(&s->build->arena, (n + 1) * sizeof(*c->words));
    if (!c->words)
        return err_oom(err);
    for (size_t i = 0; i < n && r == 0; i++) {
        if (i + 1 < n && !l->json && strncmp(raw[i], "<<", 2) == 0 && l->n_heredocs)
            continue;
        r = expand_word(&x, raw[i], &word, &inner);
        if (r == 0 && i + 1 < n) {
            r = check_word(s, l, word, err);
            if (r < 0)
                return r;
        }
        if (r == 0)
            c->words[c->n_words++] = word;
    }
    if (r < 0)
        return build_at(s->build, l, &inner, err);
    if (c->n_words + l->n_heredocs < 2)
        return docker_refuse(&s->build->file, l, err, "write COPY SOURCE… DESTINATION",
                             "wants a source and a destination");
    const char *to = c->words[--c->n_words];
    size_t len = strlen(to);
    c->words[c->n_words] = NULL;
    c->to_dir = !len || to[len - 1] == '/' || strcmp(to, ".") == 0;
    if (!c->to_dir && c->n_words + l->n_heredocs > 1)
        return docker_refuse(&s->build->file, l, err, "end the destination with a slash",
                             "%zu sources go into a directory, and %.100s says nothing of one",
                             c->n_words + l->n_heredocs, to);
    to = stage_path(s, to);
    c->to = to ? to + 1 : NULL;
    return c->to ? 0 : docker_refuse(&s->build->file, l, err, NULL, "the destination is too long");
}

static int take_flags(const struct stage *s, struct copy *c, struct err *err) {
    const char *chmod = docker_flag(c->line, "chmod");
    struct err inner = {0};
    struct expand x;
    int r = 0;

    stage_expand(s, &x);
    c->chown = docker_flag(c->line, "chown");
    c->chmod = -1;
    if (c->chown)
        r = expand_word(&x, c->chown, &c->chown, &inner);
    if (r == 0 && chmod)
        r = expand_word(&x, chmod, &chmod, &inner);
    if (r < 0)
        return build_at(s->build, c->line, &inner, err);
    if (chmod) {
        char *end = NULL;
        unsigned long mode = strtoul(chmod, &end, 8);
        if (!*chmod || *end || mode > 01777 || strspn(chmod, "01234567") != strlen(chmod))
            return docker_refuse(&s->build->file, c->line, err, "write it like 644 or 0755",
                                 "--chmod=%.40s is no mode", chmod);
        c->chmod = (int)mode;
    }
    return 0;
}

/* Everything of the context's files that the layer gets but their times, which a fresh checkout changes. */
static json_t *files_of(const struct copy *c) {
    json_t *files = json_array();
    int r = files ? 0 : -ENOMEM;

    for (size_t m = 0; m < c->list.n_matches && r == 0; m++) {
        const struct source_match *match = &c->list.matches[m];
        for (size_t k = match->first; k < match->first + match->n && r == 0; k++) {
            const struct source_item *i = &c->list.items[k];
            r = json_array_append_new(files, json_pack("[s s s s i I]", match->path, i->to,
                                                       i->digest, i->link ? i->link : "",
                                                       (int)i->mode, (json_int_t)i->size));
        }
    }
    if (r < 0) {
        json_decref(files);
        return NULL;
    }
    return files;
}

static json_t *bodies_of(const struct stage *s, const struct docker_line *l) {
    json_t *bodies = json_array();
    struct expand x;

    stage_expand(s, &x);
    for (size_t i = 0; bodies && i < l->n_heredocs; i++) {
        const char *body = l->heredocs[i].body;
        if (l->heredocs[i].expand && expand_text(&x, body, &body, NULL) < 0)
            continue; /* carrying it out says what is wrong, since what failed is in no cache */
        (void)json_array_append_new(bodies, json_pack("[s s]", l->heredocs[i].name, body));
    }
    return bodies;
}

/* `files` says what the files are; it is taken. */
static int make_step(struct stage *s, struct copy *c, json_t *files, struct err *err) {
    struct step step = {
        .line = c->line,
        .created_by = arena_printf(&s->build->arena, "%s %s", docker_keyword_name(c->line->keyword),
                                   c->line->said),
        .depends = json_pack("{ss sb sb ss si so so so}", "copy", c->to, "add",
                             c->line->keyword == DOCKER_ADD, "dir", c->to_dir, "chown",
                             c->chown ? c->chown : "", "chmod", c->chmod, "words",
                             built_list(c->words), "files", files, "bodies", bodies_of(s, c->line)),
        .carry_out = carry_out,
        .context = c,
    };
    int r = step.created_by && step.depends ? stage_step(s, &step, err) : err_oom(err);

    json_decref(step.depends);
    return r;
}

static int copy_context(struct stage *s, struct copy *c, struct err *err) {
    struct err inner = {0};

    c->source = s->build->context;
    int r = find_files(c, &inner);
    return r < 0 ? build_at(s->build, c->line, &inner, err) : make_step(s, c, files_of(c), err);
}

/* Of --from: a stage by name or number, else an image. What its files are, their layers' digests say. */
static int copy_other(struct stage *s, struct copy *c, const char *from, struct err *err) {
    struct image_lease lease = {.fd = -1};
    struct err inner = {0};
    _cleanup_fd_ int root = -1;
    int r = build_stage(s->build, from, s->number, &c->other, err);

    if (r < 0)
        return r;
    c->source = (struct source){.root = -1, .what = from, .is_root = true};
    if (c->other)
        return make_step(s, c, json_deep_copy(stage_content(c->other)), err);
    /* A stage that is not made yet is no reason to look for a stranger's image of that name. */
    for (int i = s->number; i < s->build->n_stages; i++)
        if (strcasecmp(s->build->stages[i].name, from) == 0)
            return docker_refuse(&s->build->file, c->line, err, "copy from a stage further up",
                                 "--from=%.100s: that stage is %s", from,
                                 i == s->number ? "this one" : "further down");
    r = build_lease(s->build, from, &lease, &inner);
    root = r < 0 ? -1 : open(lease.root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r == 0 && root < 0)
        r = err_errno(&inner, ERR_SETUP, -errno, "", NULL, "%.200s", lease.root);
    c->source.root = root;
    r = r < 0 ? build_at(s->build, c->line, &inner, err)
              : make_step(s, c, json_string(lease.digest), err);
    image_release(&lease);
    return r;
}

int step_copy(struct stage *s, const struct docker_line *l, struct err *err) {
    struct copy c = {.line = l};
    const char *from = docker_flag(l, "from");
    int r = take_flags(s, &c, err);

    r = r < 0 ? r : take_words(s, &c, err);
    if (r == 0)
        r = from && *from ? copy_other(s, &c, from, err) : copy_context(s, &c, err);
    source_list_done(&c.list);
    return r;
}
