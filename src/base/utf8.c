/*
 * utf8.c: one table of lead bytes says how long a sequence is and which second
 * byte it may have; that alone rules out overlong forms, surrogates and values
 * beyond U+10FFFF, so no code point is ever computed.
 */
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

struct lead {
    unsigned char first, last; /* the range of lead bytes */
    unsigned char tail;        /* continuation bytes that follow */
    unsigned char low, high;   /* what the first of them may be */
};

static const struct lead leads[] = {
    {0x00, 0x7f, 0, 0x00, 0x00}, {0xc2, 0xdf, 1, 0x80, 0xbf},
    {0xe0, 0xe0, 2, 0xa0, 0xbf},                              /* below: overlong */
    {0xe1, 0xec, 2, 0x80, 0xbf}, {0xed, 0xed, 2, 0x80, 0x9f}, /* above: surrogates */
    {0xee, 0xef, 2, 0x80, 0xbf}, {0xf0, 0xf0, 3, 0x90, 0xbf}, /* below: overlong */
    {0xf1, 0xf3, 3, 0x80, 0xbf}, {0xf4, 0xf4, 3, 0x80, 0x8f}, /* above: beyond U+10FFFF */
};

static const struct lead *find_lead(unsigned char byte) {
    for (size_t i = 0; i < ARRAY_LEN(leads); i++) {
        if (byte >= leads[i].first && byte <= leads[i].last)
            return &leads[i];
    }
    return NULL;
}

size_t utf8_step(const char *s, size_t len, bool *ret_valid) {
    const struct lead *lead = find_lead((unsigned char)s[0]);
    *ret_valid = false;
    if (!lead)
        return 1;
    unsigned char low = lead->low, high = lead->high;
    for (size_t i = 1; i <= lead->tail; i++) {
        if (i >= len || (unsigned char)s[i] < low || (unsigned char)s[i] > high)
            return i;
        low = 0x80;
        high = 0xbf;
    }
    *ret_valid = true;
    return (size_t)lead->tail + 1;
}

/* Length of the plain ASCII run at `s`: nearly all output is, and megabytes of it are checked. */
static size_t ascii_run(const char *s, size_t len) {
    size_t i = 0;
    for (uint64_t word; len - i >= sizeof(word); i += sizeof(word)) {
        memcpy(&word, s + i, sizeof(word));
        if (word & UINT64_C(0x8080808080808080))
            break;
    }
    while (i < len && (unsigned char)s[i] < 0x80)
        i++;
    return i;
}

bool utf8_valid(const char *s, size_t len) {
    for (size_t i = 0; (i += ascii_run(s + i, len - i)) < len;) {
        bool valid;
        i += utf8_step(s + i, len - i, &valid);
        if (!valid)
            return false;
    }
    return true;
}

size_t utf8_repair(const char *in, size_t len, char *out) {
    static const char replacement[] = {'\xef', '\xbf', '\xbd'};
    size_t used = 0;
    for (size_t i = 0; i < len;) {
        bool valid;
        size_t n = utf8_step(in + i, len - i, &valid);
        const char *from = valid ? in + i : replacement;
        size_t add = valid ? n : sizeof(replacement);
        memcpy(out + used, from, add);
        used += add;
        i += n;
    }
    return used;
}

/* U+0080 to U+009F: a terminal takes some of them (CSI) for the start of a command. */
static bool is_c1_control(const char *s, size_t len) {
    return len == 2 && s[0] == '\xc2' && (unsigned char)s[1] < 0xa0;
}

/* The value of an escape \uXXXX at i; -1: there is none. */
static long escape_at(const char *text, size_t i, size_t len) {
    char digits[5];

    if (len - i < 6 || text[i] != '\\' || text[i + 1] != 'u')
        return -1;
    memcpy(digits, text + i + 2, 4);
    digits[4] = '\0';
    return strspn(digits, "0123456789abcdefABCDEF") == 4 ? strtol(digits, NULL, 16) : -1;
}

static bool is_high(long code) { return code >= 0xd800 && code < 0xdc00; }
static bool is_low(long code) { return code >= 0xdc00 && code < 0xe000; }

/* What JSON.stringify writes of a text that was cut within a character, as U+FFFD. */
static void repair_surrogates(char *text, size_t len) {
    for (size_t i = 0; i < len;) {
        long code = escape_at(text, i, len);
        if (is_high(code) && is_low(escape_at(text, i + 6, len))) {
            i += 12;
            continue;
        }
        if (is_high(code) || is_low(code))
            memcpy(text + i + 2, (const char[]){'f', 'f', 'f', 'd'}, 4);
        i += code >= 0 ? 6 : text[i] == '\\' ? 2 : 1;
    }
}

size_t utf8_repair_json(const char *in, size_t len, char *out) {
    size_t n = utf8_repair(in, len, out);

    repair_surrogates(out, n);
    return n;
}

static bool is_c0_control(const char *s, size_t len) {
    return len == 1 && ((unsigned char)s[0] < 0x20 || s[0] == 0x7f);
}

void utf8_make_line(char *text, size_t len, bool cut) {
    for (size_t i = 0, n; i < len; i += n) {
        bool valid;
        n = utf8_step(text + i, len - i, &valid);
        if (!valid && cut && i + n == len)
            memset(text + i, '\0', n);
        else if (!valid)
            memset(text + i, '?', n);
        else if (is_c0_control(text + i, n) || is_c1_control(text + i, n))
            memset(text + i, ' ', n);
    }
}
