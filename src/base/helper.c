/*
 * helper.c: see helper.h.
 */
#include "base/helper.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/banned.h"

bool helper_find(const char *name, char *ret, size_t size) {
    static const char *const places[] = {"%s/", "%s/../libexec/mayfly/",
                                         "/usr/local/libexec/mayfly/", "/usr/libexec/mayfly/"};
    char self[2048];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    self[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        bool beside = places[i][0] == '%';

        if (snprintf(ret, size, "%s%s%s", beside ? self : "", places[i] + (beside ? 2 : 0), name) <
                (int)size &&
            access(ret, X_OK) == 0)
            return true;
    }
    return false;
}
