/*
 * options.c: see options.h.
 */
#include "fetch/options.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fetch/commands.h"

#include "base/banned.h"

/* True if the word is that flag; *ret_value is what it has in the same word, or NULL. */
static bool is_flag(const char *name, char letter, const char *word, const char **ret_value) {
    size_t len = strcspn(word, "=");
    bool is_long = strncmp(name, word, len) == 0 && !name[len];

    *ret_value = NULL;
    if (!is_long && !(letter && word[1] == letter))
        return false;
    if (is_long && word[len])
        *ret_value = word + len + 1;
    else if (!is_long && word[2])
        *ret_value = word + 2;
    return true;
}

static const struct option_row *find(const struct option_row *rows, const char *word,
                                     const char **ret_value) {
    for (; rows->name; rows++)
        if (is_flag(rows->name, rows->letter, word, ret_value))
            return rows;
    return NULL;
}

static const struct option_list *find_list(const struct option_list *lists, const char *word,
                                           const char **ret_value) {
    for (; lists && lists->name; lists++)
        if (is_flag(lists->name, lists->letter, word, ret_value))
            return lists;
    return NULL;
}

static int bad(struct err *err, const char *command, const char *flag, const char *why) {
    return err_set(err, ERR_USAGE, -EINVAL, "", "see --help", "%s: %.60s: %s", command, flag, why);
}

int options_take(int argc, char **argv, const struct option_row *rows, struct err *err) {
    return options_take_lists(argc, argv, rows, NULL, err);
}

int options_take_lists(int argc, char **argv, const struct option_row *rows,
                       const struct option_list *lists, struct err *err) {
    const char *command = argv[0], *value;
    bool ended = false;
    int words = 0;

    for (int i = 1; i < argc; i++) {
        char *word = argv[i];
        if (ended || word[0] != '-' || !word[1]) {
            argv[words++] = word;
            continue;
        }
        ended = strcmp(word, "--") == 0;
        if (ended)
            continue;
        const struct option_list *list = find_list(lists, word, &value);
        if (list) {
            if (!value && ++i >= argc)
                return bad(err, command, word, "wants a value");
            if (*list->n == list->max)
                return bad(err, command, word, "is given too often");
            list->values[(*list->n)++] = value ? value : argv[i];
            continue;
        }
        const struct option_row *row = find(rows, word, &value);
        if (!row)
            return bad(err, command, word, "no such flag");
        if (row->is_set && value && strcmp(value, "true") != 0 && strcmp(value, "false") != 0)
            return bad(err, command, word, "takes no value");
        if (row->is_set) {
            *row->is_set = !value || strcmp(value, "true") == 0;
            continue;
        }
        if (!value && ++i >= argc)
            return bad(err, command, word, "wants a value");
        *row->value = value ? value : argv[i];
    }
    return words;
}

int finish_output(void) {
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};

    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    /* Which of the writes it was that failed, and why, is forgotten; a pipe without a reader tells it. */
    if (errno == EPIPE || (poll(&out, 1, 0) == 1 && out.revents & (POLLERR | POLLHUP)))
        return EXIT_READER_GONE;
    (void)fprintf(stderr, "mayfly: writing to standard output: %s\n",
                  errno_words(errno ? errno : EIO));
    return EXIT_FETCH;
}

int complain_of(const struct err *err) {
    (void)fprintf(stderr, "mayfly: %s\n", err->message);
    return EXIT_FETCH;
}
