/*
 * platform.c: see platform.h.
 */
#include "fetch/platform.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/utsname.h>

#include "base/fd.h"

#include "base/banned.h"

static const struct {
    const char *alias, *arch, *variant;
} aliases[] = {
    {"x86_64", "amd64", ""},   {"x86-64", "amd64", ""},    {"aarch64", "arm64", ""},
    {"i386", "386", ""},       {"i486", "386", ""},        {"i586", "386", ""},
    {"i686", "386", ""},       {"armhf", "arm", "v7"},     {"armel", "arm", "v6"},
    {"armv8l", "arm", "v8"},   {"armv7l", "arm", "v7"},    {"armv6l", "arm", "v6"},
    {"armv5tel", "arm", "v5"}, {"ppc64el", "ppc64le", ""}, {"loongarch64", "loong64", ""},
};

void platform_normalise(struct platform *p) {
    for (size_t i = 0; i < ARRAY_LEN(aliases); i++) {
        if (strcasecmp(p->arch, aliases[i].alias) != 0)
            continue;
        (void)str_copy(p->arch, sizeof(p->arch), aliases[i].arch);
        if (!p->variant[0])
            (void)str_copy(p->variant, sizeof(p->variant), aliases[i].variant);
        break;
    }
    if (strcmp(p->arch, "arm") == 0 && !p->variant[0])
        (void)str_copy(p->variant, sizeof(p->variant), "v7");
    /* The first variants, which it makes no difference to name. */
    if ((strcmp(p->arch, "arm64") == 0 && strcmp(p->variant, "v8") == 0) ||
        (strcmp(p->arch, "amd64") == 0 && strcmp(p->variant, "v1") == 0))
        p->variant[0] = '\0';
}

void platform_host(struct platform *ret) {
    struct utsname u;

    *ret = (struct platform){.os = "linux"};
    if (uname(&u) == 0)
        (void)str_copy(ret->arch, sizeof(ret->arch), u.machine);
    if (sizeof(void *) == 4 && strcmp(ret->arch, "x86_64") == 0) /* a 64-bit kernel below us */
        (void)str_copy(ret->arch, sizeof(ret->arch), "386");
    platform_normalise(ret);
}

static int bad(const char *text, struct err *err) {
    return err_set(err, ERR_USAGE, -EINVAL, "",
                   "write OS/ARCH[/VARIANT], like linux/amd64 or linux/arm/v7",
                   "platform \"%.100s\": is none", text);
}

static bool is_word(const char *s) {
    static const char chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

    return *s && !s[strspn(s, chars)];
}

static void lower(char *s) {
    for (; *s; s++)
        if (*s >= 'A' && *s <= 'Z')
            *s = (char)(*s - 'A' + 'a');
}

int platform_parse(const char *text, struct platform *ret, struct err *err) {
    struct platform p = {0}, host;
    char copy[PLATFORM_TEXT_SIZE], *part[3] = {copy, NULL, NULL};
    size_t n = 1;

    if (!str_copy(copy, sizeof(copy), text))
        return bad(text, err);
    lower(copy);
    for (char *slash = copy; (slash = strchr(slash, '/'));) {
        *slash++ = '\0';
        if (n == ARRAY_LEN(part))
            return bad(text, err);
        part[n++] = slash;
    }
    for (size_t i = 0; i < n; i++)
        if (!is_word(part[i]) || strlen(part[i]) >= sizeof(p.os))
            return bad(text, err);
    platform_host(&host);
    bool has_os = n > 1 || strcmp(part[0], "linux") == 0;
    (void)str_copy(p.os, sizeof(p.os), has_os ? part[0] : "linux");
    (void)str_copy(p.arch, sizeof(p.arch), n > 1 ? part[1] : has_os ? host.arch : part[0]);
    (void)str_copy(p.variant, sizeof(p.variant),
                   n > 2              ? part[2]
                   : n == 1 && has_os ? host.variant
                                      : "");
    platform_normalise(&p);
    if (strcmp(p.os, "linux") != 0)
        return err_set(err, ERR_USAGE, -EINVAL, "", "boxes are of Linux: name a linux/… platform",
                       "platform \"%.100s\": is not Linux", text);
    *ret = p;
    return 0;
}

/* "v7" 700, "v8.2" 802, "" 0: below all. -1: no number, which compares with its like only. */
static int variant_number(const char *v) {
    unsigned major = 0, minor = 0;
    int end = 0;

    if (!*v)
        return 0;
    if (sscanf(v, "v%2u%n", &major, &end) == 1 && !v[end])
        return (int)major * 100;
    if (sscanf(v, "v%2u.%2u%n", &major, &minor, &end) == 2 && !v[end])
        return (int)(major * 100 + minor);
    return -1;
}

int platform_distance(const struct platform *wanted, const struct platform *offered) {
    if (strcmp(wanted->os, offered->os) != 0 || strcmp(wanted->arch, offered->arch) != 0)
        return -1;
    if (strcmp(wanted->variant, offered->variant) == 0)
        return 0;
    int w = variant_number(wanted->variant), o = variant_number(offered->variant);
    return w < 0 || o < 0 || o > w ? -1 : w - o;
}

const char *platform_format(const struct platform *p, char *out) {
    (void)snprintf(out, PLATFORM_TEXT_SIZE, "%s/%s%s%s", p->os[0] ? p->os : "unknown",
                   p->arch[0] ? p->arch : "unknown", p->variant[0] ? "/" : "", p->variant);
    return out;
}
