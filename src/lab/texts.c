/*
 * texts.c: see texts.h. A page begins with lines "Probes: …" and "See: …"; its parts begin with "# TITLE".
 */
#include "lab/texts.h"

#include <stdio.h>
#include <string.h>

#include "base/banned.h"

static const struct {
    const char *name;
    const unsigned char *text;
} texts[] = {
#include "lab_texts.inc"
};

static const struct control_source sources[] = {
#include "lab_sources.inc"
};

const char *const page_part_titles[PART__N] = {
    [PART_KERNEL] = "What the kernel does",
    [PART_BREAKS] = "What stops working for honest code",
    [PART_LEAVES] = "What it does not stop",
};

const char *lab_text(const char *name) {
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (strcmp(texts[i].name, name) == 0)
            return (const char *)texts[i].text;
    return NULL;
}

const struct control_source *control_source(const char *control) {
    for (size_t i = 0; i < ARRAY_LEN(sources); i++)
        if (strcmp(sources[i].control, control) == 0)
            return &sources[i];
    return NULL;
}

/* The rest of the line that begins with `key`. */
static void take_head(const char *text, const char *key, char *out, size_t size) {
    const char *at = strstr(text, key);

    out[0] = '\0';
    if (!at || (at > text && at[-1] != '\n'))
        return;
    at += strlen(key);
    at += strspn(at, " ");
    (void)snprintf(out, size, "%.*s", (int)strcspn(at, "\n"), at);
}

/* From the line behind the part's title to the next part, without empty lines around it. */
static bool take_part(const char *text, const char *title, struct page_part_of *ret) {
    char line[80];

    (void)snprintf(line, sizeof(line), "\n# %s\n", title);
    const char *at = strstr(text, line);
    if (!at)
        return false;
    at += strlen(line);
    at += strspn(at, "\n");
    const char *end = strstr(at, "\n# ");
    size_t len = end ? (size_t)(end - at) : strlen(at);
    while (len > 0 && at[len - 1] == '\n')
        len--;
    *ret = (struct page_part_of){at, len};
    return len > 0;
}

bool control_page(const char *control, struct control_page *ret) {
    char name[40];
    bool whole = true;

    (void)snprintf(name, sizeof(name), "%.30s.txt", control);
    const char *text = lab_text(name);
    *ret = (struct control_page){0};
    if (!text)
        return false;
    take_head(text, "Probes:", ret->probes, sizeof(ret->probes));
    take_head(text, "See:", ret->see, sizeof(ret->see));
    for (int i = 0; i < PART__N; i++)
        whole &= take_part(text, page_part_titles[i], &ret->part[i]);
    return whole;
}

size_t helper_source(const char *name, const char **ret_at) {
    char head[80];

    (void)snprintf(head, sizeof(head), "HELPER(%.60s)", name);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        const char *at = strstr((const char *)texts[i].text, head);
        const char *end = at ? strstr(at, "\n}\n") : NULL;

        if (!end)
            continue;
        *ret_at = at;
        return (size_t)(end - at) + 2;
    }
    return 0;
}
