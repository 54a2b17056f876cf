/*
 * credential.c: see credential.h. A helper is a program of the user's: it is started without a shell, gets the registry
 * on its standard input, and is given up on when it has not answered in time.
 */
#include "fetch/credential.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/base64.h"
#include "image/document.h"
#include "linux/sys.h"

#include "base/banned.h"

#define HUB_KEY "https://index.docker.io/v1/"
#define HELPER_PREFIX "docker-credential-"

enum {
    MAX_CONFIG_BYTES = 4 << 20,
    MAX_ANSWER_BYTES = 64 << 10,
    HELPER_MS = 30000,
    MAX_SECRET = 32 << 10
};

void credential_done(struct credential *c) {
    char *texts[] = {c->user, c->secret, c->identity, c->bearer};

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (texts[i])
            explicit_bzero(texts[i], strlen(texts[i]));
        free(texts[i]);
    }
    *c = (struct credential){0};
}

static bool copy(char **ret, const char *text) {
    if (text && *text) {
        free(*ret);
        *ret = strdup(text);
    }
    return !text || !*text || *ret;
}

/* ------------------------------------------------------------------ config.json */

/* False if there is no home to look in. */
static bool config_path(char *ret, size_t size) {
    const char *dir = getenv("DOCKER_CONFIG"), *home = getenv("HOME");
    int n = -1;

    if (dir && *dir)
        n = snprintf(ret, size, "%s/config.json", dir);
    else if (home && *home)
        n = snprintf(ret, size, "%s/.docker/config.json", home);
    return n > 0 && (size_t)n < size;
}

/* *ret stays NULL where there is no file, or none that is ours to read. */
static int config_load(json_t **ret, struct err *err) {
    char path[4096], *text _cleanup_free_ = NULL;
    size_t len = 0;

    if (!config_path(path, sizeof(path)))
        return 0;
    int r = file_read_all_at(AT_FDCWD, path, MAX_CONFIG_BYTES, &text, &len);
    if (r == -ENOENT || r == -ENOTDIR || r == -EACCES)
        return 0;
    if (r < 0)
        return err_errno(err, ERR_SETUP, r, "", "name another directory by DOCKER_CONFIG", "%s",
                         path);
    if (len == 0) /* Docker takes an empty one, too */
        return 0;
    return document_parse_or(text, len, path, "mend it, or name another directory by DOCKER_CONFIG",
                             ret, err);
}

/* "https://host:port/v1/" and "host:port" are the same registry. */
static void host_of(const char *key, char *out, size_t size) {
    const char *scheme = strstr(key, "://");

    (void)str_copy(out, size, scheme ? scheme + 3 : key);
    out[strcspn(out, "/")] = '\0';
}

static bool is_hub(const char *host) {
    return strcmp(host, "docker.io") == 0 || strcmp(host, "index.docker.io") == 0 ||
           strcmp(host, "registry-1.docker.io") == 0;
}

/* The member of a map that is keyed by registry. */
static const json_t *of_registry(const json_t *map, const char *domain) {
    const char *key;
    json_t *value;
    char host[264];

    json_object_foreach((json_t *)(uintptr_t)map, key, value) {
        host_of(key, host, sizeof(host));
        if (strcmp(host, domain) == 0 || (is_hub(host) && is_hub(domain)))
            return value;
    }
    return NULL;
}

static int bad_entry(struct err *err, const char *domain, const char *why) {
    return err_set(err, ERR_SETUP, -EBADMSG, "", "run docker login again",
                   "Docker's config.json: the entry for %.200s: %s", domain, why);
}

/* "auth": base64 of user:password. */
static int split_auth(const char *auth, const char *domain, struct credential *ret,
                      struct err *err) {
    struct buf plain _cleanup_buf_ = {0};

    if (base64_decode(&plain, auth) < 0 || !plain.len || strlen(plain.data) != plain.len)
        return bad_entry(err, domain, "its \"auth\" is no base64 of a text");
    char *colon = strchr(plain.data, ':');
    if (!colon)
        return bad_entry(err, domain, "its \"auth\" has no colon");
    *colon = '\0';
    bool whole = copy(&ret->user, plain.data) && copy(&ret->secret, colon + 1);
    explicit_bzero(plain.data, plain.len);
    return whole ? 0 : err_oom(err);
}

static int from_entry(const json_t *entry, const char *domain, struct credential *ret,
                      struct err *err) {
    const char *auth = document_text(entry, "auth", MAX_SECRET);
    int r = 0;

    if (auth && *auth)
        r = split_auth(auth, domain, ret, err);
    if (r < 0)
        return r;
    if (!copy(&ret->user, document_text(entry, "username", MAX_SECRET)) ||
        !copy(&ret->secret, document_text(entry, "password", MAX_SECRET)) ||
        !copy(&ret->identity, document_text(entry, "identitytoken", MAX_SECRET)) ||
        !copy(&ret->bearer, document_text(entry, "registrytoken", MAX_SECRET)))
        return err_oom(err);
    return 0;
}

/* ------------------------------------------------------------------ helpers */

struct helper {
    char program[128];
    pid_t pid;
    int in, out, pidfd;
};

static void close_helper(struct helper *h) {
    fd_close(&h->in);
    fd_close(&h->out);
    fd_close(&h->pidfd);
}

static int spawn(struct helper *h, int in, int out) {
    char *argv[] = {h->program, (char[]){"get"}, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t defaults;

    if (posix_spawn_file_actions_init(&files) != 0)
        return -ENOMEM;
    if (posix_spawnattr_init(&attr) != 0) {
        (void)posix_spawn_file_actions_destroy(&files);
        return -ENOMEM;
    }
    (void)sigemptyset(&defaults);
    (void)sigaddset(&defaults, SIGPIPE);
    int r = posix_spawnattr_setsigdefault(&attr, &defaults);
    r = r ? r : posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF);
    r = r ? r : posix_spawn_file_actions_adddup2(&files, in, 0);
    r = r ? r : posix_spawn_file_actions_adddup2(&files, out, 1);
    r = r ? r : posix_spawnp(&h->pid, h->program, &files, &attr, argv, environ);
    (void)posix_spawnattr_destroy(&attr);
    (void)posix_spawn_file_actions_destroy(&files);
    return -r;
}

static int start(struct helper *h, const char *server) {
    int in[2], out[2];

    if (pipe2(in, O_CLOEXEC) < 0)
        return -errno;
    int theirs_in _cleanup_fd_ = in[0];
    h->in = in[1];
    if (pipe2(out, O_CLOEXEC) < 0)
        return -errno;
    int theirs_out _cleanup_fd_ = out[1];
    h->out = out[0];
    int r = spawn(h, theirs_in, theirs_out);
    if (r < 0)
        return r;
    h->pidfd = sys_pidfd_open(h->pid);
    (void)fcntl(h->out, F_SETFL, O_NONBLOCK);
    (void)fd_write_full(h->in, server,
                        strlen(server)); /* fits a pipe; one that does not read it, knows */
    fd_close(&h->in);
    return 0;
}

/* What it has said so far. False at the end. */
static bool read_some(struct helper *h, struct buf *answer) {
    char chunk[4096];
    ssize_t n = read(h->out, chunk, sizeof(chunk));

    if (n > 0)
        buf_add(answer, chunk, (size_t)n);
    return (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR))) &&
           answer->len < MAX_ANSWER_BYTES;
}

/* Until it has ended: what it has started may hold the pipe open for ever. Its exit status, -ETIMEDOUT, or -EFBIG. */
static int await(struct helper *h, struct buf *answer) {
    uint64_t until = now_ns() + HELPER_MS * UINT64_C(1000000);
    struct pollfd p[] = {{.fd = h->out, .events = POLLIN}, {.fd = h->pidfd, .events = POLLIN}};
    int status = 0, r = -ETIMEDOUT;

    for (uint64_t now; r == -ETIMEDOUT && (now = now_ns()) < until;) {
        if (poll(p, 2, (int)((until - now) / 1000000u) + 1) < 0 && errno != EINTR)
            break;
        if (p[0].revents && !read_some(h, answer))
            p[0].fd = -1;
        if (answer->len >= MAX_ANSWER_BYTES)
            r = -EFBIG;
        else if (p[1].revents || (p[0].fd < 0 && h->pidfd < 0))
            r = 0;
    }
    if (r < 0)
        (void)kill(h->pid, SIGKILL);
    while (waitpid(h->pid, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    for (size_t had = SIZE_MAX; r == 0 && p[0].fd >= 0 && answer->len != had;) {
        had = answer->len;
        (void)read_some(h, answer);
    }
    return r < 0 ? r : WIFEXITED(status) ? WEXITSTATUS(status) : -ECHILD;
}

static bool is_helper_name(const char *name) {
    static const char chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

    return *name && strlen(name) < 100 && !name[strspn(name, chars)];
}

static int from_answer(const struct helper *h, const struct buf *answer, struct credential *ret,
                       struct err *note, struct err *err) {
    json_t *root _cleanup_json_ = NULL;

    if (document_parse_or(answer->len ? answer->data : "", answer->len, h->program,
                          "going on without credentials", &root, note) < 0)
        return 0;
    const char *user = document_text(root, "Username", MAX_SECRET),
               *secret = document_text(root, "Secret", MAX_SECRET);
    if (!user || !secret) {
        (void)err_set(note, ERR_SETUP, -EBADMSG, "", NULL,
                      "%s: its answer has no Username and Secret", h->program);
        return 0;
    }
    bool identity = strcmp(user, "<token>") == 0; /* the protocol's word for it */
    bool whole = identity ? copy(&ret->identity, secret)
                          : copy(&ret->user, user) && copy(&ret->secret, secret);
    return whole ? 0 : err_oom(err);
}

/* "credentials not found" is how it says that it has none. */
static const char *helper_words(int status, const struct buf *answer) {
    return status == -ETIMEDOUT ? "no answer in 30 s"
           : status == -EFBIG   ? "its answer has no end"
           : answer->len        ? answer->data
                                : "it failed";
}

static int ask_helper(const char *name, const char *domain, struct credential *ret,
                      struct err *note, struct err *err) {
    struct helper h __attribute__((cleanup(close_helper))) = {.in = -1, .out = -1, .pidfd = -1};
    struct buf answer _cleanup_buf_ = {0};

    if (!is_helper_name(name))
        return bad_entry(err, domain, "the credential helper's name is none");
    (void)snprintf(h.program, sizeof(h.program), HELPER_PREFIX "%s", name);
    int status = start(&h, is_hub(domain) ? HUB_KEY : domain);
    if (status < 0) {
        (void)err_errno(note, ERR_SETUP, status, "", "going on without credentials",
                        "%s cannot be started", h.program);
        return 0;
    }
    status = await(&h, &answer);
    int r = 0;
    if (status == 0)
        r = from_answer(&h, &answer, ret, note, err);
    else if (status < 0 || !answer.len || !strstr(answer.data, "credentials not found"))
        (void)err_set(note, ERR_SETUP, -EIO, "", "going on without credentials", "%s: %.*s",
                      h.program, (int)MIN(strcspn(helper_words(status, &answer), "\n"), 200u),
                      helper_words(status, &answer));
    if (answer.data)
        explicit_bzero(answer.data, answer.len);
    return r;
}

/* ------------------------------------------------------------------ the whole */

int credential_find(const char *domain, struct credential *ret, struct err *note, struct err *err) {
    struct credential found = {0};
    json_t *config _cleanup_json_ = NULL;
    int r = config_load(&config, err);

    if (r < 0 || !config)
        return r;
    const char *helper =
        json_string_value(of_registry(json_object_get(config, "credHelpers"), domain));
    helper = helper ? helper : document_text(config, "credsStore", 100);
    if (helper && *helper)
        r = ask_helper(helper, domain, &found, note, err);
    if (r == 0 && !found.user && !found.identity)
        r = from_entry(of_registry(json_object_get(config, "auths"), domain), domain, &found, err);
    if (r < 0) {
        credential_done(&found);
        return r;
    }
    *ret = found;
    return 0;
}
