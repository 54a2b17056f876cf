/*
 * image_use.c: see image_use.h.
 */
#include "lib/image_use.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/units.h"
#include "linux/sys.h"

#include "base/banned.h"

enum { MAX_PASSWD_BYTES = 4 << 20, MAX_WORKDIR = 1024 };

/* ------------------------------------------------------------------ users */

/* The n-th of a line's fields between colons; false if it has not so many, or the field does not fit. */
static bool field(const char *line, size_t line_len, int n, char *out, size_t size) {
    const char *end = line + line_len;

    for (; n > 0 && line < end; n--) {
        const char *colon = memchr(line, ':', (size_t)(end - line));
        if (!colon)
            return false;
        line = colon + 1;
    }
    const char *colon = memchr(line, ':', (size_t)(end - line));
    size_t len = (size_t)((colon ? colon : end) - line);
    if (len >= size)
        return false;
    memcpy(out, line, len);
    out[len] = '\0';
    return true;
}

/* The first line from `line` on whose field `by` is `value`; NULL: none. */
static const char *find_line(const char *line, int by, const char *value, size_t *ret_len) {
    char has[256];

    for (; line && *line; line += *ret_len + (line[*ret_len] == '\n')) {
        *ret_len = strcspn(line, "\n");
        if (field(line, *ret_len, by, has, sizeof(has)) && strcmp(has, value) == 0)
            return line;
    }
    return NULL;
}

/* Of the first such line that has one there, the number in its field `want`. */
static bool find_number(const char *text, int by, const char *value, int want, uint32_t *ret) {
    char number[16];
    size_t len = 0;

    while ((text = find_line(text, by, value, &len))) {
        if (field(text, len, want, number, sizeof(number)) && parse_u32(number, ret) == 0)
            return true;
        text += len + (text[len] == '\n');
    }
    return false;
}

static int unknown(const char *kind, const char *name, struct err *err) {
    return err_set(err, ERR_USAGE, -EINVAL, "identity", "write it as a number with --user",
                   "the image knows no %s \"%.100s\"", kind, name);
}

enum { PASSWD_NAME = 0, PASSWD_UID = 2, PASSWD_GID = 3, PASSWD_HOME = 5 };
enum { GROUP_NAME = 0, GROUP_GID = 2 };

int user_lookup(const char *user, const char *passwd, const char *group, uint32_t *ret_uid,
                uint32_t *ret_gid, struct err *err) {
    char name[256];
    uint32_t uid = 0, gid = 0;

    if (!str_copy(name, sizeof(name), user) || !name[0])
        return unknown("user", user, err);
    char *wanted_group = strchr(name, ':');
    if (wanted_group)
        *wanted_group++ = '\0';
    if (wanted_group && !*wanted_group) /* "5:" is "5" */
        wanted_group = NULL;
    if (!name[0])
        return unknown("user", user, err);
    if (parse_u32(name, &uid) == 0)
        (void)find_number(passwd, PASSWD_UID, name, PASSWD_GID, &gid);
    else if (!find_number(passwd, PASSWD_NAME, name, PASSWD_UID, &uid) ||
             !find_number(passwd, PASSWD_NAME, name, PASSWD_GID, &gid))
        return unknown("user", name, err);
    if (wanted_group && parse_u32(wanted_group, &gid) < 0 &&
        !find_number(group, GROUP_NAME, wanted_group, GROUP_GID, &gid))
        return unknown("group", wanted_group, err);
    if (uid > 4000000000u || gid > 4000000000u)
        return unknown("user", user, err);
    *ret_uid = uid;
    *ret_gid = gid;
    return 0;
}

/* A file of the root's, by no way that leads out of it. NULL where there is none. */
static char *read_inside(int root, const char *path) {
    const struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
                                 .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    _cleanup_fd_ int fd = sys_openat2(root, path, &how);
    char name[32], *text = NULL;

    (void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    if (fd < 0 || file_read_all_at(AT_FDCWD, name, MAX_PASSWD_BYTES, &text, NULL) < 0)
        return NULL;
    return text;
}

static bool is_numbers(const char *user) { return !user[strspn(user, "0123456789:")]; }

void user_login(const char *user, const char *passwd, struct user_login *ret) {
    char name[256];
    uint32_t uid = 0;
    size_t len = 0;

    *ret = (struct user_login){.home = "/"};
    if (!str_copy(name, sizeof(name), user))
        return;
    name[strcspn(name, ":")] = '\0';
    bool is_number = parse_u32(name, &uid) == 0;
    const char *line = find_line(passwd, is_number ? PASSWD_UID : PASSWD_NAME, name, &len);
    if (!line || !field(line, len, PASSWD_NAME, ret->name, sizeof(ret->name)) || !ret->name[0])
        (void)str_copy(ret->name, sizeof(ret->name), name);
    if (!line || !field(line, len, PASSWD_HOME, ret->home, sizeof(ret->home)) ||
        ret->home[0] != '/')
        (void)str_copy(ret->home, sizeof(ret->home), "/");
}

/* The code of `python` keeps the home that is made for it, in which it may write. */
static int set_login(struct image_use *u, const char *user, const char *passwd, struct err *err) {
    struct user_login login;

    user_login(user, passwd, &login);
    u->login[0] = arena_printf(&u->arena, "USER=%s", login.name);
    u->login[1] = arena_printf(&u->arena, "LOGNAME=%s", login.name);
    u->n_login = 2;
    if (!u->own.takes_code)
        u->login[u->n_login++] = arena_printf(&u->arena, "HOME=%s", login.home);
    for (size_t i = 0; i < u->n_login; i++)
        if (!u->login[i])
            return err_oom(err);
    return 0;
}

/* Numbers of --user are as they are, also to a group; an image's bring the group that passwd has for them. */
static int set_user(struct image_use *u, const char *user, bool as_given, struct err *err) {
    _cleanup_fd_ int root = open(u->own.rootfs, O_PATH | O_DIRECTORY | O_CLOEXEC);
    _cleanup_free_ char *passwd = root < 0 ? NULL : read_inside(root, "etc/passwd");
    _cleanup_free_ char *group = root < 0 ? NULL : read_inside(root, "etc/group");
    int r = as_given ? 0 : user_lookup(user, passwd, group, &u->own.uid, &u->own.gid, err);

    return r < 0 || u->lease.fd < 0 ? r : set_login(u, user, passwd, err);
}

/* ------------------------------------------------------------------ the command and what is around it */

static size_t count(const char *const *list) {
    size_t n = 0;

    while (list && list[n])
        n++;
    return n;
}

/* ENTRYPOINT and CMD as Docker joins them: a command that is given stands for CMD, an entrypoint that is given for
 * both. */
static int set_command(struct image_use *u, const struct policy *asked, struct err *err) {
    const struct image_config *c = &u->lease.config;
    const char *own[] = {asked->entrypoint && *asked->entrypoint ? asked->entrypoint : NULL, NULL};
    const char *const *head = asked->entrypoint ? own : c->entrypoint;
    const char *const *tail = asked->argv ? asked->argv : asked->entrypoint ? NULL : c->cmd;
    size_t n = count(head), m = count(tail);

    if (n + m == 0)
        return err_set(err, ERR_USAGE, -EINVAL, "image", "write one after the image's name",
                       "the image names no command to run");
    const char **argv = arena_alloc(&u->arena, (n + m + 1) * sizeof(*argv));
    if (!argv)
        return err_oom(err);
    for (size_t i = 0; i < n; i++)
        argv[i] = head[i];
    for (size_t i = 0; tail && i < m; i++)
        argv[n + i] = tail[i];
    if (!argv[0][0])
        return err_set(err, ERR_USAGE, -EINVAL, "image", "write one after the image's name",
                       "the image's command is empty");
    u->own.argv = argv;
    return 0;
}

static int add_env(struct image_use *u, const char *entry, struct err *err) {
    if (u->own.n_env == POLICY_ENV)
        return err_set(err, ERR_USAGE, -EINVAL, "env", "leave some of --env out",
                       "the image and --env together set more than %d variables", POLICY_ENV);
    u->own.env[u->own.n_env++] = entry;
    return 0;
}

/* What passwd says of the user, the image's own, and what was asked for: a later one of a name wins. */
static int set_env(struct image_use *u, const struct policy *asked, struct err *err) {
    const struct image_config *c = &u->lease.config;
    int r = 0;

    u->own.n_env = 0;
    for (size_t i = 0; i < u->n_login && r == 0; i++)
        r = add_env(u, u->login[i], err);
    for (size_t i = 0; i < c->n_env && r == 0; i++)
        if (c->env[i][0] != '=' && strchr(c->env[i], '=')) /* or it is no variable at all */
            r = add_env(u, c->env[i], err);
    for (int i = 0; i < asked->n_env && r == 0; i++)
        r = add_env(u, asked->env[i], err);
    return r;
}

/* WORKDIR, written plainly and from the root, which it also is where there is none. The code of `python` has its own
 * place, in which it may write. */
static int set_workdir(struct image_use *u, const struct policy *asked, struct err *err) {
    const char *dir = u->lease.config.workdir;
    char plain[MAX_WORKDIR + 1] = "/";

    if (asked->workdir || asked->takes_code)
        return 0;
    if (!path_plain(dir, true, plain + 1, sizeof(plain) - 1))
        return err_set(err, ERR_USAGE, -ENAMETOOLONG, "image", "name another with --workdir",
                       "the image's working directory has too long a name");
    u->own.workdir = arena_strdup(&u->arena, plain);
    return u->own.workdir ? 0 : err_oom(err);
}

static int use_image(struct image_use *u, const struct policy *asked, struct err *err) {
    int r = image_lease(asked->store, asked->image, true, &u->lease, err);

    if (r < 0)
        return r;
    u->own.rootfs = u->lease.root;
    const char *user = asked->user ? asked->user : u->lease.config.user;
    if (*user)
        r = set_user(u, user, asked->user && is_numbers(user), err);
    r = r < 0 ? r : set_env(u, asked, err);
    r = r < 0 ? r : set_workdir(u, asked, err);
    return r < 0 || asked->takes_code ? r : set_command(u, asked, err);
}

int image_use(const struct policy *asked, struct image_use *ret, struct err *err) {
    bool by_name = asked->user && !is_numbers(asked->user);

    *ret = (struct image_use){.policy = asked, .lease.fd = -1};
    if (!asked->image && !by_name && !asked->entrypoint)
        return 0;
    ret->own = *asked;
    ret->policy = &ret->own;
    int r = asked->image ? use_image(ret, asked, err) : 0;
    if (r == 0 && !asked->image && asked->entrypoint && !asked->takes_code && asked->rootfs)
        r = set_command(ret, asked, err);
    if (r == 0 && !asked->image && by_name && ret->own.rootfs)
        r = set_user(ret, asked->user, false, err);
    return r;
}

void image_use_done(struct image_use *u) {
    image_release(&u->lease);
    arena_done(&u->arena);
    u->policy = NULL;
}
