/*
 * fuzz_options.c: a command line, a word a line, the first of them `python` or `run`. What stands
 * after an empty line is a file, whose name is the word "@": a policy, variables, or code.
 */
#include "fuzz/target.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/cli.h"
#include "fuzz/settings.h"
#include "lib/report.h"

#include "base/banned.h"

enum { WORDS = 64 };

static int as_file(const uint8_t *data, size_t size, char path[32]) {
    int fd = memfd_create("@", MFD_CLOEXEC);

    if (fd < 0 || (size && fd_write_full(fd, data, size) < 0))
        abort();
    (void)snprintf(path, 32, "/proc/self/fd/%d", fd);
    return fd;
}

static void must_parse(int argc, char **argv) {
    struct request rq;
    struct mayfly_error error = {0};
    int r = request_parse(&rq, argc, argv, &error);

    if (r < 0) {
        fuzz_must(error.code == r && error.kind != MAYFLY_E_NONE, "%d: %s", r, error.message);
        fuzz_one_line(error.message);
    } else {
        fuzz_must(error.code == 0, "taken, and yet: %s", error.message);
        const struct policy *p = policy_inner(rq.policy);
        fuzz_must(rq.help || p->rootfs || p->image, "no root");
        fuzz_must(rq.help || p->argv || p->image, "no command"); /* an image may have one */
        settings_must_survive(policy_inner(rq.policy));
    }
    request_done(&rq);
}

/* Words that name a device or a process would make a find depend on where it was made. */
static bool is_elsewhere(const char *word) {
    return strcmp(word, "-") == 0 || strstr(word, "dev/") || strstr(word, "proc/");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct fuzz_input in = {data, size};
    char path[32], *words[WORDS] = {0}, *argv[WORDS + 1] = {0};
    int argc = 0, fd = -1;
    bool here = true;

    while (argc < WORDS && in.left && *in.at != '\n') {
        words[argc] = fuzz_text(&in, '\n');
        here = here && !is_elsewhere(words[argc]);
        argc++;
    }
    (void)fuzz_byte(&in); /* the empty line's end */
    fd = as_file(in.at, in.left, path);
    for (int i = 0; i < argc; i++)
        argv[i] = strcmp(words[i], "@") == 0 ? path : words[i];
    (void)setenv("MAYFLY_ROOTFS", "/", 1); /* else the line's meaning is the host's */
    if (argc > 0 && here)
        must_parse(argc, argv);
    for (int i = 0; i < argc; i++)
        free(words[i]);
    (void)close(fd);
    return 0;
}
