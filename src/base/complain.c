/*
 * complain.c: one line, whatever is in it: a file's name can hold anything. In one write, since others may write there too.
 */
#include "base/complain.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/utf8.h"

#include "base/banned.h"

void complain(const char *fmt, ...) {
    char line[1200] = "mayfly: ";
    size_t head = strlen(line);
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(line + head, sizeof(line) - head - 1, fmt, ap);
    va_end(ap);
    size_t len = strlen(line);
    utf8_make_line(line, len, n >= (int)(sizeof(line) - head - 1));
    line[len] = '\n';
    (void)fd_write_full(STDERR_FILENO, line, len + 1);
}
