/*
 * target.h: for fuzz_NAME.c, which defines the function below. Alone it is libFuzzer's; in the
 * replay each file's own, which is why it is static there, and is found by a list.
 */
#ifndef MAYFLY_TESTS_FUZZ_TARGET_H
#define MAYFLY_TESTS_FUZZ_TARGET_H

#include "fuzz/fuzz.h"

#ifdef FUZZER
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
#else
static int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
static void __attribute__((constructor)) register_target(void) {
    static struct fuzz_target target;

    fuzz_register(&target, __BASE_FILE__, LLVMFuzzerTestOneInput);
}
#endif

#endif
