/*
 * procfs.h: what /proc says of a process, parsed once and for all users.
 * proc(5) and Documentation/filesystems/proc.rst are the source.
 */
#ifndef MAYFLY_LINUX_PROCFS_H
#define MAYFLY_LINUX_PROCFS_H

#include "base/defs.h"

/* Fields of /proc/PID/stat that we use; addresses are 0 where the reader may not see them. */
struct proc_stat {
    pid_t pid, ppid;
    char state;          /* 'R', 'S', 'Z', … */
    uint64_t start_time; /* field 22, clock ticks since boot: with pid, names a process for good */
    uint64_t start_brk, arg_start, arg_end, env_start, env_end;
};

/* `pid` 0 is the caller. 0 or -errno; -ESRCH if it is gone. Does not allocate. */
int proc_read_stat(pid_t pid, struct proc_stat *ret);
/* Parses the text of a stat file; the command name may hold spaces and parentheses. 0 or -EINVAL. */
int proc_parse_stat(const char *text, struct proc_stat *ret);
/* True while a process with that pid and start time exists and is not a zombie. */
bool proc_alive(pid_t pid, uint64_t start_time);
/* Of a pid namespace by its inode number: 1 if a process is in it, 0 if none is, -errno where that cannot be told, as
 * from any pid namespace but the first: only from there all others are seen. Looks at every process. */
int proc_pidns_alive(uint64_t pidns);

/* Value of "Key:" in a status-like text ("CapEff", "NoNewPrivs"): copies it, blanks trimmed. False if absent. */
bool proc_field(const char *text, const char *key, char *value, size_t size);

/* One line of mountinfo; the strings point into `line`, which is cut up and unescaped in place. */
struct mount_info {
    int id, parent;
    unsigned major, minor;
    const char *root, *target, *options, *fstype, *source, *super_options;
};
/* 0, or -EINVAL on a line that is not mountinfo. */
int proc_parse_mount(char *line, struct mount_info *ret);
/* The next mount of a whole mountinfo text: moves *text on, keeps the strings in `line`. Lines that
 * are none are passed over. False at the end. */
bool proc_next_mount(const char **text, char *line, size_t size, struct mount_info *ret);
/* True if the comma list `options` holds `word` whole. */
bool mount_has_option(const char *options, const char *word);

#endif
