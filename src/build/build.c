/*
 * build.c: see build.h.
 */
#include "build/build.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "fetch/layer.h"
#include "fetch/pull.h"
#include "fetch/tree.h"

#include "base/banned.h"

void build_say(const struct build *b, const char *fmt, ...) {
    va_list ap;

    if (b->quiet)
        return;
    va_start(ap, fmt);
    (void)vfprintf(stderr, fmt, ap);
    va_end(ap);
}

int build_at(const struct build *b, const struct docker_line *l, const struct err *inner,
             struct err *err) {
    bool full = inner->code == -ENOSPC && !strstr(inner->message, "make room");

    return err_set(err, inner->kind, inner->code, inner->control,
                   full ? "make room, with mayfly prune perhaps, or name another place with --store"
                        : NULL,
                   "%.100s:%d: %s: %.360s", b->file.name, l->line, docker_keyword_name(l->keyword),
                   inner->message);
}

/* ------------------------------------------------------------------ images to begin from */

/* In a process of its own, whose standard output is our standard error. What goes wrong is told by who asked. */
static void pull_there(const struct build *b, const char *name, int said) {
    struct pull_options o = {.store = b->store->path,
                             .image = name,
                             .mode = progress_mode_of_terminal(),
                             .untold = true,
                             .registry.retry = retry_default};
    struct err err = {0};

    platform_host(&o.platform);
    int r = dup2(STDERR_FILENO, STDOUT_FILENO) < 0 ? -errno : pull(&o, &err);
    if (r < 0)
        (void)fd_write_full(said, err.message, strlen(err.message));
    _exit(r < 0);
}

static int pull_image(const struct build *b, const char *name, struct err *err) {
    int ends[2], status = -1;
    char why[sizeof(err->message)];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_errno(err, ERR_SETUP, -errno, "", NULL, "a pipe for the pull");
    _cleanup_fd_ int in = ends[0], out = ends[1];
    pid_t pid = fork();
    if (pid < 0)
        return err_errno(err, ERR_SETUP, -errno, "", NULL, "a process for the pull");
    if (pid == 0)
        pull_there(b, name, out);
    fd_close(&out);
    ssize_t n = fd_read_full(in, why, sizeof(why) - 1);
    why[MAX(n, 0)] = '\0';
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            break;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    return err_set(err, ERR_SETUP, -EHOSTUNREACH, "", NULL,
                   "image %.100s could not be pulled%s%.300s", name, *why ? ": " : "", why);
}

int build_lease(struct build *b, const char *name, struct image_lease *ret, struct err *err) {
    struct err inner = {0};

    *ret = (struct image_lease){.fd = -1};
    if (b->pull == BUILD_PULL_ALWAYS && pull_image(b, name, err) < 0)
        return err->code;
    int r = image_lease(b->store->path, name, false, ret, &inner);
    if (r == -ENOENT && b->pull == BUILD_PULL_MISSING) {
        image_release(ret);
        err_clear(&inner);
        if (pull_image(b, name, err) < 0)
            return err->code;
        r = image_lease(b->store->path, name, false, ret, &inner);
    }
    return r < 0 ? err_set(err, inner.kind, r, "", NULL, "%.400s", inner.message) : 0;
}

/* ------------------------------------------------------------------ the tree */

/* What a box mounts something on: so it is no change that a step made. */
static int add_places(struct stage *s, struct err *err) {
    static const char *const places[] = {"dev", "proc"};
    struct unpack_summary sum = {0};
    struct tree tree;
    int r = worktree_open(&s->tree, &tree, &sum, err);

    if (r < 0)
        return r;
    for (size_t i = 0; i < ARRAY_LEN(places) && r == 0; i++)
        r = tree_need_dir(&tree, places[i], 0755, err);
    tree_done(&tree);
    return r;
}

static int fill_tree(struct stage *s, struct err *err) {
    bool link = s->build->storage != BUILD_STORAGE_COPY;
    _cleanup_fd_ int from = -1;
    int r;

    if (s->base_stage) {
        r = stage_tree(s->base_stage, err);
        r = r < 0 ? r : worktree_fill(&s->tree, s->base_stage->tree.root, link, err);
        return r < 0                                                      ? r
               : json_object_update(s->owners, s->base_stage->owners) < 0 ? err_oom(err)
                                                                          : 0;
    }
    if (s->base.fd < 0)
        return 0;
    from = open(s->base.root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (from < 0)
        return err_errno(err, ERR_SETUP, -errno, "", NULL, "%.200s", s->base.root);
    return worktree_fill(&s->tree, from, link, err);
}

/* An ordinary user's tree cannot have the owners that the layer has. */
static int note_owners(struct stage *s, int fd) {
    struct archive *a = archive_read_new();
    struct archive_entry *e = NULL;
    char plain[PATH_MAX];
    int r = a && lseek(fd, 0, SEEK_SET) == 0 ? 0 : -ENOMEM;

    if (r == 0 && (archive_read_support_filter_gzip(a) != ARCHIVE_OK ||
                   archive_read_support_format_tar(a) != ARCHIVE_OK ||
                   archive_read_open_fd(a, fd, 64 << 10) != ARCHIVE_OK))
        r = -EIO;
    while (r == 0 && archive_read_next_header(a, &e) == ARCHIVE_OK) {
        json_int_t uid = archive_entry_uid(e), gid = archive_entry_gid(e);
        if ((uid || gid) && archive_entry_pathname(e) &&
            path_plain(archive_entry_pathname(e), true, plain, sizeof(plain)))
            r = json_object_set_new(s->owners, plain, json_pack("[II]", uid, gid));
    }
    if (a)
        (void)archive_read_free(a);
    return r;
}

/* Layers that steps before made, at another time: so they are our own. */
static int apply_layers(struct stage *s, struct err *err) {
    struct layer_budget budget = LAYER_BUDGET(UINT64_C(1) << 40, 10000000);
    const json_t *ids = stage_content(s);
    struct unpack_summary sum = {0};
    struct tree tree;
    int r = worktree_open(&s->tree, &tree, &sum, err);

    if (r < 0)
        return r;
    for (; s->applied < json_array_size(s->image.layers) && r == 0; s->applied++) {
        const json_t *layer = json_array_get(s->image.layers, s->applied);
        const char *digest = json_string_value(json_object_get(layer, "digest"));
        _cleanup_fd_ int fd = blob_open(s->build->store, digest, err);
        r = fd < 0 ? fd
                   : layer_apply(&tree, fd, json_string_value(json_array_get(ids, s->applied)),
                                 &budget, err);
        if (r == 0 && geteuid() != 0 && note_owners(s, fd) < 0)
            r = err_oom(err);
    }
    r = r < 0 ? r : tree_finish(&tree, err);
    tree_done(&tree);
    return r;
}

int stage_tree(struct stage *s, struct err *err) {
    int r = 0;

    if (s->tree.entry.fd < 0) {
        r = worktree_make(s->build->store, &s->tree, err);
        r = r < 0 ? r : fill_tree(s, err);
        s->applied = s->base_layers;
        r = r < 0 ? r : add_places(s, err);
    }
    if (r == 0 && s->applied < json_array_size(s->image.layers)) {
        snapshot_done(&s->snapshot);
        r = apply_layers(s, err);
    }
    return r;
}

/* The stage that has files of its own, if one has. */
static struct stage *with_files(struct stage *s) {
    while (s->tree.entry.fd < 0 && s->base_stage &&
           json_array_size(s->image.layers) == s->base_layers)
        s = s->base_stage;
    return s;
}

int stage_lower(struct stage *s, char ret[static WORKTREE_PATH_SIZE], struct err *err) {
    struct stage *of = with_files(s);

    if (of->tree.entry.fd < 0 && of->base.fd >= 0 &&
        json_array_size(of->image.layers) == of->base_layers)
        return str_copy(ret, WORKTREE_PATH_SIZE, of->base.root)
                   ? 0
                   : err_errno(err, ERR_SETUP, -ENAMETOOLONG, "", NULL, "the base image");
    int r = stage_tree(of, err);
    if (r == 0 && worktree_path(&of->tree, ret) < 0)
        return err_errno(err, ERR_SETUP, -ENAMETOOLONG, "", NULL, "the work tree");
    return r;
}

char *stage_text(struct stage *s, const char *path) {
    char lower[WORKTREE_PATH_SIZE];
    _cleanup_fd_ int dir =
        stage_lower(s, lower, NULL) < 0 ? -1 : open(lower, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const struct source root = {.root = dir, .what = "the image", .is_root = true};
    _cleanup_fd_ int fd = dir < 0 ? -1 : source_open(&root, path, O_RDONLY, NULL);
    char name[40], *text = NULL;
    struct stat st;

    (void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    /* A FIFO would be waited for. */
    return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
                   file_read_all_at(AT_FDCWD, name, 4 << 20, &text, NULL) == 0
               ? text
               : NULL;
}

/* ------------------------------------------------------------------ stages */

/* What there is without an ARG, for FROM; an ARG without a value takes it up. */
static int set_platform_args(struct build *b) {
    static const char *const whose[] = {"TARGET", "BUILD"};
    char text[PLATFORM_TEXT_SIZE], name[32];
    const struct {
        const char *name, *value;
    } parts[] = {{"PLATFORM", platform_format(&b->platform, text)},
                 {"OS", b->platform.os},
                 {"ARCH", b->platform.arch},
                 {"VARIANT", b->platform.variant}};
    int r = 0;

    b->platform_args = json_object();
    for (size_t i = 0; i < ARRAY_LEN(whose); i++)
        for (size_t k = 0; k < ARRAY_LEN(parts); k++) {
            (void)snprintf(name, sizeof(name), "%s%s", whose[i], parts[k].name);
            r |= json_object_set_new(b->platform_args, name, json_string(parts[k].value));
        }
    return r;
}

static const char *lookup_global(const void *context, const char *name) {
    const struct build *b = context;
    const char *value = json_string_value(json_object_get(b->global_args, name));

    return value ? value : json_string_value(json_object_get(b->platform_args, name));
}

static const char *lookup(const void *context, const char *name) {
    const struct stage *s = context;
    const char *value = built_env(&s->image, name);

    return value ? value : json_string_value(json_object_get(s->args, name));
}

void stage_expand(const struct stage *s, struct expand *ret) {
    *ret = (struct expand){
        .escape = s->build->file.escape, .lookup = lookup, .context = s, .arena = &s->build->arena};
}

const char *stage_path(const struct stage *s, const char *path) {
    char plain[4096];
    const char *dir = built_text(&s->image, "WorkingDir");
    const char *whole = path[0] == '/' ? path : arena_printf(&s->build->arena, "%s/%s", dir, path);

    if (!whole || !path_plain(whole, true, plain, sizeof(plain)))
        return NULL;
    return arena_printf(&s->build->arena, "/%s", plain);
}

/* NAME, NAME=VALUE; more than one to a line. */
int step_arg(struct build *b, struct stage *s, const struct docker_line *l, struct err *err) {
    struct expand x = {
        .escape = b->file.escape, .lookup = lookup_global, .context = b, .arena = &b->arena};
    const char *const *words, *name, *value;
    struct err inner = {0};
    size_t n = 0;

    if (s)
        stage_expand(s, &x);
    int r = expand_split(&x, l->text, &words, &n, &inner);
    for (size_t i = 0; i < n && r == 0; i++) {
        const char *eq = strchr(words[i], '=');
        name = arena_strndup(&b->arena, words[i], eq ? (size_t)(eq - words[i]) : strlen(words[i]));
        if (!name)
            return err_oom(err);
        if (!*name ||
            strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") !=
                strlen(name))
            return docker_refuse(&b->file, l, err, NULL, "\"%.60s\" is no name", name);
        value = json_string_value(json_object_get(b->build_args, name));
        if (value)
            (void)json_object_set_new(b->used_args, name, json_true());
        else if (eq)
            r = expand_word(&x, eq + 1, &value, &inner);
        else if (s)
            value = lookup_global(b, name);
        if (r == 0 && value &&
            json_object_set_new(s ? s->args : b->global_args, name, json_string(value)) < 0)
            return err_oom(err);
    }
    return r < 0 ? build_at(b, l, &inner, err) : 0;
}

static int carry_line(struct stage *s, const struct docker_line *l, struct err *err) {
    switch (l->keyword) {
    case DOCKER_ARG:
        return step_arg(s->build, s, l, err);
    case DOCKER_ADD:
    case DOCKER_COPY:
        return step_copy(s, l, err);
    case DOCKER_RUN:
        return step_run(s, l, err);
    case DOCKER_WORKDIR:
        return step_workdir(s, l, err);
    default:
        return step_config(s, l, err);
    }
}

/* FROM [--platform=P] IMAGE [AS NAME], its words expanded. */
struct from {
    const char *image, *name;
};

static int parse_from(struct build *b, const struct docker_line *l, struct from *ret,
                      struct err *err) {
    const struct expand x = {
        .escape = b->file.escape, .lookup = lookup_global, .context = b, .arena = &b->arena};
    const char *platform = docker_flag(l, "platform"), *const * words;
    struct platform wanted;
    struct err inner = {0};
    size_t n = 0;
    int r = expand_split(&x, l->text, &words, &n, &inner);

    if (r == 0 && n != 1 && !(n == 3 && strcasecmp(words[1], "AS") == 0))
        return docker_refuse(&b->file, l, err, "write FROM IMAGE, or FROM IMAGE AS NAME",
                             "\"%.100s\" is not understood", l->text);
    r = r < 0 ? r : expand_word(&x, words[0], &ret->image, &inner);
    ret->name = n == 3 ? words[2] : "";
    if (r == 0 && platform) {
        r = expand_word(&x, platform, &platform, &inner);
        r = r < 0 ? r : platform_parse(platform, &wanted, &inner);
        if (r == 0 && platform_distance(&b->platform, &wanted) < 0)
            return docker_refuse(&b->file, l, err, "leave --platform out",
                                 "--platform=%.60s: this machine cannot run that", platform);
    }
    if (r < 0)
        return build_at(b, l, &inner, err);
    if (!*ret->image)
        return docker_refuse(&b->file, l, err, "give it a value with ARG or --build-arg",
                             "\"%.100s\" stands for nothing", l->text);
    for (const char *c = ret->name; *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.", *c) ||
            (c == ret->name && !strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", *c)))
            return docker_refuse(&b->file, l, err, NULL, "\"%.60s\" is no name for a stage",
                                 ret->name);
    return 0;
}

/* The base's SHELL, if it has one. */
static int take_shell(struct stage *s, struct err *err) {
    const json_t *list = json_object_get(s->image.config, "Shell"), *word;
    size_t n = json_array_size(list), i;
    const char **words = n ? arena_alloc(&s->build->arena, (n + 1) * sizeof(*words)) : NULL;

    if (!n)
        return 0;
    if (!words)
        return err_oom(err);
    json_array_foreach(list, i, word) {
        const char *text = json_string_value(word);
        words[i] = arena_strdup(&s->build->arena, text ? text : "");
        if (!words[i])
            return err_oom(err);
    }
    s->shell = words;
    return 0;
}

static int begin_stage(struct stage *s, const char *image, struct err *err) {
    struct build *b = s->build;
    struct err inner = {0};
    int r = build_stage(b, image, s->number, &s->base_stage, err);

    if (r < 0)
        return r;
    if (s->base_stage) {
        r = built_copy(&s->image, &s->base_stage->image, &inner);
    } else if (strcmp(image, "scratch") == 0) {
        r = built_scratch(&s->image, &b->platform, &inner);
    } else {
        r = build_lease(b, image, &s->base, &inner);
        r = r < 0 ? r : built_from(&s->image, b->store, s->base.digest, &inner);
    }
    s->base_layers = json_array_size(s->image.layers);
    if (r == 0 && json_array_size(json_object_get(s->image.config, "OnBuild")))
        r = err_set(
            &inner, ERR_UNSUPPORTED, -ENOTSUP, "", "write in this file what they say",
            "%.100s has ONBUILD instructions for who builds on it, which are not carried out",
            image);
    r = r < 0 ? r : take_shell(s, &inner);
    return r < 0 ? build_at(b, s->from, &inner, err) : 0;
}

static int make_stage(struct stage *s, struct err *err) {
    static const char *const shell[] = {"/bin/sh", "-c", NULL};
    struct from from = {"", ""};
    int r = s->made ? 0 : parse_from(s->build, s->from, &from, err);

    if (r < 0 || s->made)
        return r;
    s->made = true;
    s->shell = shell;
    s->args = json_object();
    s->owners = json_object();
    if (!s->args || !s->owners)
        return err_oom(err);
    build_say(s->build, "%s:%d: FROM %s\n", s->build->file.name, s->from->line, s->from->said);
    r = begin_stage(s, from.image, err);
    for (const struct docker_line *l = s->from + 1; l < s->end && r == 0; l++)
        r = carry_line(s, l, err);
    return r;
}

int build_stage(struct build *b, const char *name, int before, struct stage **ret,
                struct err *err) {
    *ret = NULL;
    for (int i = before - 1; i >= 0 && !*ret; i--) {
        char number[16];
        (void)snprintf(number, sizeof(number), "%d", i);
        if ((b->stages[i].name[0] && strcasecmp(b->stages[i].name, name) == 0) ||
            strcmp(number, name) == 0)
            *ret = &b->stages[i];
    }
    return *ret ? make_stage(*ret, err) : 0;
}

/* Where each stage is, and what it is called; global ARGs on the way. */
static int find_stages(struct build *b, struct err *err) {
    const struct docker_line *end = b->file.lines + b->file.n_lines;
    struct from from = {"", ""};
    int r = 0;

    for (const struct docker_line *l = b->file.lines; l < end && r == 0; l++) {
        if (l->keyword == DOCKER_ARG && b->n_stages == 0)
            r = step_arg(b, NULL, l, err);
        if (l->keyword == DOCKER_ONBUILD)
            return docker_refuse(&b->file, l, err, "leave the line out",
                                 "is not supported: an OCI image has no place for it");
        if (l->keyword != DOCKER_FROM)
            continue;
        if (b->n_stages == BUILD_STAGES)
            return docker_refuse(&b->file, l, err, NULL, "more than %d stages", BUILD_STAGES);
        if (b->n_stages)
            b->stages[b->n_stages - 1].end = l;
        r = r < 0 ? r : parse_from(b, l, &from, err);
        b->stages[b->n_stages] = (struct stage){.build = b,
                                                .from = l,
                                                .end = end,
                                                .name = r < 0 ? "" : from.name,
                                                .number = b->n_stages,
                                                .base.fd = -1,
                                                .tree.entry.fd = -1,
                                                .upper.entry.fd = -1};
        b->n_stages++;
    }
    return r;
}

int build_make(struct build *b, struct stage **ret_stage, struct err *err) {
    const char *name, *target = b->target;
    char last[16];
    json_t *value;

    b->global_args = json_object();
    b->used_args = json_object();
    if (!b->global_args || !b->used_args || set_platform_args(b) < 0)
        return err_oom(err);
    int r = find_stages(b, err);
    (void)snprintf(last, sizeof(last), "%d", b->n_stages - 1);
    r = r < 0 ? r : build_stage(b, target ? target : last, b->n_stages, ret_stage, err);
    if (r == 0 && !*ret_stage)
        return err_set(err, ERR_USAGE, -ENOENT, "", "name one of its stages by AS or number",
                       "--target: %.100s has no stage %.60s", b->file.name, target);
    json_object_foreach(b->build_args, name, value) {
        if (r == 0 && !json_object_get(b->used_args, name))
            build_say(b, "mayfly: warning: --build-arg %s: no ARG takes it\n", name);
    }
    return r;
}

void build_done(struct build *b) {
    for (int i = 0; i < b->n_stages; i++) {
        struct stage *s = &b->stages[i];
        worktree_drop(&s->tree);
        snapshot_done(&s->snapshot);
        image_release(&s->base);
        built_done(&s->image);
        json_decref(s->args);
        json_decref(s->owners);
    }
    json_decref(b->global_args);
    json_decref(b->used_args);
    json_decref(b->platform_args);
    json_decref(b->build_args);
    dockerfile_done(&b->file);
    arena_done(&b->arena);
}
