/*
 * names.c: a program of the build that prints, as rows of arrays, what glibc calls errors and signals.
 *
 * musl words some errors otherwise ("Resource busy") and cannot tell an error's name. A message must not depend on the
 * library that the program was linked with: those who read it, and scripts that look for a word in it, know glibc's.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { ERRNO_END = 134 }; /* EHWPOISON, the last in asm-generic/errno.h, is 133 */

int main(void) {
    for (int e = 0; e < ERRNO_END; e++)
        if (strerrorname_np(e))
            printf("ERROR(%d, \"%s\", \"%s\")\n", e, strerrorname_np(e), strerrordesc_np(e));
    for (int s = 1; s < __SIGRTMIN; s++)
        if (sigabbrev_np(s))
            printf("SIGNAL(%d, \"%s\")\n", s, sigabbrev_np(s));
    return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
