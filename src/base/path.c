/*
 * path.c: see path.h.
 */
#include "base/path.h"

#include <string.h>

#include "base/banned.h"

bool path_plain(const char *path, bool clamp, char *ret, size_t size) {
    size_t n = 0;

    for (const char *p = path; *p;) {
        p += strspn(p, "/");
        size_t len = strcspn(p, "/");
        if (len == 2 && p[0] == '.' && p[1] == '.') {
            if (n == 0 && !clamp)
                return false;
            while (n && ret[--n] != '/')
                ;
        } else if (len && !(len == 1 && *p == '.')) {
            if (n + len + 2 > size)
                return false;
            if (n)
                ret[n++] = '/';
            memcpy(ret + n, p, len);
            n += len;
        }
        p += len;
    }
    ret[n] = '\0';
    return true;
}
