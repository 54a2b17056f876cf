/*
 * cmd_mcp.c: `mayfly mcp`. The command line is read here, as any run's, and the image is found or pulled; then this
 * process becomes mayfly-mcp, which has the libraries that a run is to do without. What it needs to know goes along in a
 * file that has no name (json/settings.h).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/helper.h"
#include "cli/cli.h"

#include "base/banned.h"

static const struct front_flag flags[] = {
    {"--http", "[ADDRESS:]PORT", "serve many clients by HTTP instead of one on standard input"},
    {"--token-file", "FILE", "the bearer token that HTTP clients have to show"},
    {"--allow-host", "NAME", "a name that HTTP clients may ask for it by, besides localhost"},
    {"--allow-origin", "ORIGIN", "a web page that may ask, besides those of this machine's"},
    {"--allow-run", NULL, "offer the tool run_command, too: any program of the image"},
    LOG_FLAGS,
    {"--max-boxes", "N", "boxes at once; other calls wait (4)"},
    {NULL, NULL, NULL},
};

void front_help(const struct command *self, const struct front_flag *front) {
    char flag[64];

    (void)printf("mayfly %s %s\n\n%s. Flags, with their defaults; limits hold for each call:\n\n",
                 self->name, self->usage, self->summary);
    help_fields();
    (void)printf("\nthe program's own:\n");
    help_sources();
    for (const struct front_flag *f = front; f->flag; f++) {
        if (!*f->flag)
            continue;
        (void)snprintf(flag, sizeof(flag), "    %s", f->flag);
        help_line(flag, f->metavar, f->help);
    }
}

void help_mcp(const struct command *self) {
    front_help(self, flags);
    (void)printf("\nFor a client's configuration: {\"mcpServers\": {\"mayfly\": {\"command\": "
                 "\"mayfly\", \"args\": [\"mcp\"]}}}\n");
}

/* This process becomes the program; returns only if that fails. */
static void become(const char *name, const struct request *rq, struct mayfly_error *error) {
    char path[4200], number[16];
    const char *words[4 + FRONT_WORDS] = {path, "--settings-fd", number};
    int fd = settings_write(&rq->settings);

    *error = (struct mayfly_error){.code = fd, .kind = MAYFLY_E_INTERNAL};
    (void)snprintf(number, sizeof(number), "%d", fd);
    for (size_t i = 0; i < rq->n_words; i++)
        words[3 + i] = rq->words[i];
    if (fd < 0) {
        (void)snprintf(error->message, sizeof(error->message), "the settings: %s",
                       strerrordesc_np(-fd));
    } else if (!helper_find(name, path, sizeof(path))) {
        (void)snprintf(error->message, sizeof(error->message),
                       "the program %s is nowhere: it is built and installed with mayfly", name);
    } else {
        (void)execv(path, (char *const *)(uintptr_t)words);
        (void)snprintf(error->message, sizeof(error->message), "%.200s: %s", path,
                       strerrordesc_np(errno));
    }
    if (fd >= 0)
        (void)close(fd);
}

/* A fault that was found before the program was there to tell of it, where that is to be done as JSON. */
static void become_to_tell(const struct front_flag *front, const char *program, struct request *rq,
                           const struct mayfly_error *fault) {
    struct mayfly_error ignored;
    bool json = rq->json;

    for (size_t i = 0; i < rq->n_words && !json; i++)
        json = strcmp(rq->words[i], "--json") == 0;
    while (front->flag && strcmp(front->flag, "--json") != 0)
        front++;
    if (!json || !front->flag)
        return;
    rq->n_words = 0;
    rq->words[rq->n_words++] = "--json";
    rq->words[rq->n_words++] = "--failed";
    rq->words[rq->n_words++] = fault->message;
    become(program, rq, &ignored);
}

int front_command(const struct command *self, int argc, char **argv, const struct front_flag *front,
                  const char *program) {
    struct mayfly_error error = {0};
    struct request rq;
    int r = request_parse_front(&rq, argc, argv, front, &error);

    if (r == 0 && rq.help) {
        self->help(self);
    } else if (output_is_gone()) {
        r = EXIT_MAYFLY;
    } else {
        if (r == 0 && request_root(&rq, &error) == 0)
            become(program, &rq, &error);
        become_to_tell(front, program, &rq, &error);
        complain("%s: %s", self->name, error.message);
        r = EXIT_MAYFLY;
    }
    request_done(&rq);
    return r;
}

int cmd_mcp(const struct command *self, int argc, char **argv) {
    return front_command(self, argc, argv, flags, "mayfly-mcp");
}
