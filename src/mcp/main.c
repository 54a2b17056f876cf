/*
 * main.c: mayfly-mcp, which `mayfly mcp` becomes once it knows what the operator wants and where the image is. It is a
 * program of its own so that a single run loads no HTTP library.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/units.h"
#include "base/utf8.h"
#include "mcp/server.h"
#include "mcp/transport.h"
#include "base/signals.h"
#include "tool/toolbox.h"

#include "base/banned.h"

enum { EXIT_MAYFLY = 125, DEFAULT_BOXES = 4, MIN_TOKEN = 16 };

struct options {
    uint32_t settings_fd, boxes;
    bool allow_run, no_log, log_given;
    struct runlog_options log;
    struct http_options http; /* address NULL: standard input and output */
};

static int usage(struct mayfly_error *error, const char *fmt, ...) PRINTF_LIKE(2, 3);
static int usage(struct mayfly_error *error, const char *fmt, ...) {
    va_list ap;

    *error = (struct mayfly_error){.code = -EINVAL, .kind = MAYFLY_E_USAGE};
    va_start(ap, fmt);
    (void)vsnprintf(error->message, sizeof(error->message), fmt, ap);
    va_end(ap);
    return -EINVAL;
}

static int add_name(const char **list, const char *flag, const char *value,
                    struct mayfly_error *error) {
    size_t n = 0;

    while (list[n])
        n++;
    if (n == TRANSPORT_NAMES)
        return usage(error, "%s: can be given %d times", flag, TRANSPORT_NAMES);
    list[n] = value;
    return 0;
}

/* Whoever may go through all directories on the way and read the file. Where secrets are mounted they may have to be so,
 * and then be alone in a container of their own: it is told, and no more. */
static bool others_reach(const char *path) {
    char *real _cleanup_free_ = realpath(path, NULL);
    struct stat st;

    if (!real || stat(real, &st) < 0 || !(st.st_mode & (S_IROTH | S_IWOTH)))
        return false;
    for (char *slash; (slash = strrchr(real, '/')) && slash != real;) {
        *slash = '\0';
        if (stat(real, &st) < 0 || !(st.st_mode & S_IXOTH))
            return false;
    }
    return true;
}

/* From a file, since a command line can be read by everybody. */
static int read_token(struct http_options *o, const char *path, struct mayfly_error *error) {
    ssize_t n = file_read_at(AT_FDCWD, path, o->token, sizeof(o->token));

    if (n < 0)
        return usage(error, "--token-file: %.200s: %s", path, strerrordesc_np((int)-n));
    for (const char *c = o->token; *c; c++)
        if (*c <= ' ' || *c > '~')
            return usage(error, "--token-file: %.200s: holds more than a token of visible ASCII",
                         path);
    if (n < MIN_TOKEN || strlen(o->token) != (size_t)n)
        return usage(error, "--token-file: %.200s: a token has to have %d characters at least",
                     path, MIN_TOKEN);
    if (others_reach(path))
        (void)fprintf(stderr,
                      "mayfly: mcp: warning: --token-file: %.200s: every user of this machine may "
                      "read or change it; chmod 600 it\n",
                      path);
    return 0;
}

static int take_flag(struct options *o, const char *flag, const char *value,
                     struct mayfly_error *error) {
    if (strcmp(flag, "--http") == 0)
        o->http.address = value;
    else if (strcmp(flag, "--token-file") == 0)
        return read_token(&o->http, value, error);
    else if (strcmp(flag, "--allow-host") == 0)
        return add_name(o->http.hosts, flag, value, error);
    else if (strcmp(flag, "--allow-origin") == 0)
        return add_name(o->http.origins, flag, value, error);
    else if (strcmp(flag, "--max-boxes") == 0) {
        if (parse_u32(value, &o->boxes) < 0 || o->boxes == 0 || o->boxes > SERVER_MAX_BOXES)
            return usage(error, "--max-boxes: \"%.64s\" is not 1 to %d", value, SERVER_MAX_BOXES);
    } else if (strncmp(flag, "--log", strlen("--log")) == 0) {
        const char *wrong = runlog_take_flag(&o->log, flag, strlen(flag), value);
        if (wrong)
            return usage(error, "%.64s: \"%.100s\" is not %s", flag, value, wrong);
        o->log_given = true;
    } else if (strcmp(flag, "--settings-fd") != 0 || parse_u32(value, &o->settings_fd) < 0)
        return usage(error, "%.64s: no such flag; this program is for mayfly to start: mayfly mcp",
                     flag);
    return 0;
}

static int parse(int argc, char **argv, struct options *o, struct mayfly_error *error) {
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--allow-run") == 0 || strcmp(argv[i], "--no-log") == 0) {
            *(argv[i][2] == 'a' ? &o->allow_run : &o->no_log) = true;
            continue;
        }
        if (i + 1 >= argc)
            return usage(error, "%.64s: wants a value", argv[i]);
        int r = take_flag(o, argv[i], argv[i + 1], error);
        if (r < 0)
            return r;
        i++;
    }
    if (!o->http.address && (*o->http.token || o->http.hosts[0] || o->http.origins[0]))
        return usage(error, "--token-file, --allow-host and --allow-origin are for --http");
    if (o->no_log && o->log_given)
        return usage(error, "--no-log: and --log, or what it should hold, cannot both be had");
    return 0;
}

/* Each box and each connection takes some. */
static void allow_files(void) {
    struct rlimit l;

    if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < 16384) {
        l.rlim_cur = MIN(l.rlim_max, (rlim_t)16384);
        (void)setrlimit(RLIMIT_NOFILE, &l);
    }
}

static int serve(const struct options *o, int signal_fd, struct mayfly_error *error) {
    struct settings settings = {0};
    struct toolbox *tools = NULL;
    const struct toolbox_options options = {
        .allow_run = o->allow_run, .source = "mcp", .log = o->no_log ? NULL : &o->log};
    int r = settings_read((int)o->settings_fd, &settings, error);

    if (r == 0)
        r = toolbox_new(&settings, &options, &tools, error);
    if (r < 0)
        return r;
    if (o->http.address)
        r = serve_http(toolbox_tools(tools), o->boxes, signal_fd, &o->http, error);
    else
        r = serve_stdio(toolbox_tools(tools), o->boxes, signal_fd);
    if (r == -ENOMEM && !error->code)
        (void)usage(error, "out of memory");
    toolbox_free(tools);
    return r;
}

int main(int argc, char **argv) {
    struct options o = {.settings_fd = UINT32_MAX, .boxes = DEFAULT_BOXES};
    struct mayfly_error error = {0};
    int signal_fd = signals_watch();

    (void)mallopt(M_ARENA_MAX, 2); /* the peak of one thread is then room for another */
    allow_files();
    json_object_seed(0); /* before there are threads */
    int status = signal_fd < 0 ? usage(&error, "signalfd: %s", strerrordesc_np(-signal_fd))
                               : parse(argc, argv, &o, &error);
    if (status == 0)
        status = serve(&o, signal_fd, &error);
    if (status >= 0)
        return status;
    size_t len = strlen(error.message);
    utf8_make_line(error.message, len, len == sizeof(error.message) - 1);
    (void)fprintf(stderr, "mayfly: mcp: %s\n", error.message);
    return EXIT_MAYFLY;
}
