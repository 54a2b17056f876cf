/*
 * fuzz.c: see fuzz.h.
 */
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/utf8.h"

#include "base/banned.h"

struct fuzz_target *fuzz_targets;

void fuzz_register(struct fuzz_target *target, const char *file, fuzz_run *run) {
    static const char prefix[] = "fuzz_";
    const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;

    (void)str_copy(target->name, sizeof(target->name), name + strlen(prefix));
    target->name[strcspn(target->name, ".")] = '\0';
    target->run = run;
    target->next = fuzz_targets;
    fuzz_targets = target;
}

void fuzz_broken(const char *file, int line, const char *condition, const char *fmt, ...) {
    va_list ap;

    (void)fprintf(stderr, "%s:%d: does not hold: %s: ", file, line, condition);
    va_start(ap, fmt);
    (void)vfprintf(stderr, fmt, ap);
    va_end(ap);
    (void)fputc('\n', stderr);
    abort();
}

uint8_t fuzz_byte(struct fuzz_input *in) { return (uint8_t)fuzz_number(in, 1); }

uint64_t fuzz_number(struct fuzz_input *in, size_t bytes) {
    uint64_t value = 0;

    for (size_t i = 0; i < bytes && in->left; i++, in->at++, in->left--)
        value |= (uint64_t)*in->at << 8 * i;
    return value;
}

char *fuzz_text(struct fuzz_input *in, int stop) {
    const uint8_t *end = stop >= 0 && in->left ? memchr(in->at, stop, in->left) : NULL;
    size_t len = end ? (size_t)(end - in->at) : in->left, used = len + (end ? 1 : 0);
    char *text = malloc(len + 1);

    if (!text)
        abort();
    if (len)
        memcpy(text, in->at, len);
    text[len] = '\0';
    in->at += used;
    in->left -= used;
    return text;
}

void fuzz_one_line(const char *text) {
    size_t len = strlen(text);

    fuzz_must(len > 0, "an empty message");
    fuzz_must(utf8_valid(text, len), "%s", text);
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        bool c1 = c == 0xc2 && (unsigned char)text[i + 1] < 0xa0; /* U+0080 to U+009F */
        fuzz_must(c >= 0x20 && c != 0x7f && !c1, "byte %zu of: %s", i, text);
    }
}

void fuzz_refusal(const struct err *err, int r, const char *begin) {
    fuzz_must(r < 0 && err->code == r, "%d with an error of %d", r, err->code);
    fuzz_must(err->kind != ERR_NONE, "%s", err->message);
    fuzz_one_line(err->message);
    fuzz_must(strncmp(err->message, begin, strlen(begin)) == 0, "not \"%s\": %s", begin,
              err->message);
}
