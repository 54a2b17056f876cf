/*
 * defs.h: the words of C that every other file uses.
 *
 * Clean-up is scoped: a variable marked `_cleanup_X_` is released on every way
 * out of its scope, so an early `return` cannot leak. `TAKE_*` hands a value on
 * and leaves the variable empty, which is how ownership moves to a `ret_`.
 */
#ifndef MAYFLY_BASE_DEFS_H
#define MAYFLY_BASE_DEFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))
#define MUST_CHECK __attribute__((warn_unused_result))
#define UNUSED __attribute__((unused))
#define BIT(n) (UINT64_C(1) << (n))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

static inline void cleanup_free_ptr(void *p) { free(*(void **)p); }
#define _cleanup_free_ __attribute__((cleanup(cleanup_free_ptr)))

#define TAKE_FD(fd)                                                                                \
    ({                                                                                             \
        int *fdp_ = &(fd);                                                                         \
        int taken_ = *fdp_;                                                                        \
        *fdp_ = -1;                                                                                \
        taken_;                                                                                    \
    })
#define TAKE_PTR(p)                                                                                \
    ({                                                                                             \
        __auto_type pp_ = &(p);                                                                    \
        __auto_type taken_ = *pp_;                                                                 \
        *pp_ = NULL;                                                                               \
        taken_;                                                                                    \
    })

#endif
