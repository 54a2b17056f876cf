/*
 * seccomp_mkfilter.c: runs when mayfly is built: a profile in, its BPF out as a C
 * array, so that no run has to compile it.
 *
 *   mkfilter PROFILE.json > seccomp_default.h
 */
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdio.h>

#include "base/fd.h"
#include "control/seccomp_compile.h"

#include "base/banned.h"

int main(int argc, char **argv) {
    struct err err = {0};
    struct profile profile = {0};
    struct sock_filter *code = NULL;
    unsigned short len = 0;
    char *text = NULL;
    size_t size = 0;

    if (argc != 2) {
        (void)fprintf(stderr, "usage: mkfilter PROFILE.json\n");
        return 2;
    }
    if (file_read_all_at(AT_FDCWD, argv[1], 4 << 20, &text, &size) < 0) {
        (void)fprintf(stderr, "mkfilter: cannot read %s\n", argv[1]);
        return 1;
    }
    /* A rule for newer kernels only refuses or allows a call that an older one does not have. */
    if (profile_from_json(text, size, seccomp_arch(), ~0u, &profile, &err) < 0 ||
        seccomp_compile(&profile, true, &code, &len, &err) < 0) {
        (void)fprintf(stderr, "mkfilter: %s: %s\n", argv[1], err.message);
        return 1;
    }
    (void)printf("/* Made from %s. */\n"
                 "static const struct sock_filter seccomp_default_code[] = {\n",
                 argv[1]);
    for (unsigned i = 0; i < len; i++)
        (void)printf("    {0x%x, %u, %u, 0x%x},\n", code[i].code, code[i].jt, code[i].jf,
                     code[i].k);
    (void)printf("};\n");
    free(code);
    free(text);
    arena_done(&profile.arena);
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
