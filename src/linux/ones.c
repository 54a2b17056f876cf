/*
 * ones.c: see ones.h. Named are the few calls that take no arguments and do something, wait, end or duplicate the
 * process, or take such arguments for good.
 */
#include "linux/ones.h"

#include <sys/syscall.h>

#include "base/banned.h"

bool ones_do_nothing(int nr) {
    static const int harmful[] = {
#ifdef __x86_64__
        SYS_pause,
        SYS_fork,
        SYS_vfork,
        SYS_alarm,
        SYS_inotify_init,
        SYS_eventfd,
        335,
        336, /* uretprobe and uprobe: no filter is asked, and SIGILL is the answer */
#endif
        SYS_exit,
        SYS_exit_group,
        SYS_clone,
        SYS_clone3,
        SYS_execve,
        SYS_execveat,
        SYS_rt_sigreturn,
        SYS_restart_syscall,
        SYS_sync,
        SYS_umask,
        SYS_set_tid_address,
        SYS_msgget,
        SYS_vhangup,
        SYS_setsid,
        SYS_munlockall,
        SYS_brk,
        SYS_sched_yield,
        SYS_rt_sigsuspend,
    };

    for (size_t i = 0; i < ARRAY_LEN(harmful); i++)
        if (harmful[i] == nr)
            return false;
    return true;
}
