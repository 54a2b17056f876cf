/*
 * main.c: mayfly-lab, the program behind `mayfly lab`: what does each control stop, and what happens without it? It is
 * a program of its own because controls can be off in it, which mayfly itself must not be able to do.
 */
#include <string.h>

#include "lab/kernel.h"
#include "lab/lab.h"
#include "lab/scratch.h"

#include "base/banned.h"

int main(int argc, char **argv) {
    if (kernel_is_init())
        kernel_init();
    scratch_sweep();
    if (argc > 2 && strcmp(argv[2], "explain") == 0)
        return lab_explain_command(argc - 2, argv + 2);
    if (argc > 2 && strcmp(argv[2], "trace") == 0)
        return lab_trace_command(argc - 2, argv + 2);
    return lab_matrix_command(argc - 1, argv + 1);
}
