/*
 * hints_words.c: what the last words of Python, of a shell and of a tool mean.
 *
 * Each rule here answers: could the program have got these words by its own
 * doing? Where it could, the rule asks for more (where the path lies, what the
 * line that raised looks like) or is not there.
 */
#include "lib/hints_inner.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "base/banned.h"

static bool any(struct span s, const char *const *words, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (span_holds(s, words[i]))
            return true;
    return false;
}
#define ANY(s, ...)                                                                                \
    any(s, (const char *const[]){__VA_ARGS__}, ARRAY_LEN(((const char *const[]){__VA_ARGS__})))

/* Something of this kind in the command: what `python3 -c` and `sh -c` are given is there to be read. */
static bool in_command(const struct hint_source *s, const char *word) {
    for (const char *const *a = s->plan->argv; a && *a; a++)
        if (span_word(span_of(*a), word))
            return true;
    return false;
}

/* ------------------------------------------------------------------ Python */

static bool of_library(const struct hint_source *s, struct span file) {
    return span_begins(file, "<frozen ") ||
           (hint_place(s->plan, file) == PLACE_ROOT && span_holds(file, "/lib/python"));
}

/* Libraries that raise, in their own name, what the kernel told them. Others raise what they are told to: mock's
 * side_effect, a pool's or a future's exception. */
static bool raises_for_kernel(struct span file) {
    return ANY(file, "/subprocess.py", "/socket.py", "/urllib/request.py", "/asyncio/", "/urllib3/",
               "/requests/", "/httpx/", "/httpcore/", "/aiohttp/");
}

/* Whether the exception came from the kernel or the runtime rather than from a `raise` of the program's: a program may
 * raise what it likes. Where the line is not shown (-c, or no descriptor left to read the file) the command must be
 * there to be read, and hold no such word. */
static bool genuine(const struct hint_source *s, const struct traceback *t) {
    if (of_library(s, t->file))
        return !span_word(t->source, "raise") || raises_for_kernel(t->file);
    if (!t->source.len && t->number == EMFILE)
        return true;
    if (!t->source.len)
        return span_is(t->file, "<string>") && in_command(s, "c") && !in_command(s, "raise") &&
               !in_command(s, "exec");
    return !span_word(t->source, "raise") && !ANY(t->source, ".throw(", "set_exception(", "exec(");
}

/* In the parent, subprocess raises what its child could not do: execute, or change to cwd=. */
static bool could_not_execute(const struct traceback *t) {
    struct span line = t->caller;
    size_t open = 0, shut = 0;

    if (!span_ends(t->file, "/subprocess.py") || !span_begins(t->source, "raise child_exception"))
        return false;
    for (size_t i = 0; i < line.len; i++) {
        open += line.at[i] == '(';
        shut += line.at[i] == ')';
    }
    /* Of a call over several lines only the first is shown. */
    return open == shut && open > 0 && !ANY(line, "cwd", "**");
}

static bool executes(struct span source) {
    return ANY(source, "os.exec", "os.spawn", "posix_spawn");
}

static void denied(const struct hint_source *s, const struct traceback *t, struct hints *h) {
    bool child = span_ends(t->file, "/subprocess.py") && span_begins(t->source, "raise child_");
    bool place = hint_noexec_place(s->plan, t->path) ||
                 (!t->path.len && ANY(t->source, "'/tmp/", "\"/tmp/", "'/home/", "\"/home/"));

    if (child || executes(t->source)) {
        if (place && s->given.makes_programs && (!child || could_not_execute(t)))
            hint_noexec(h);
    } else if (ANY(t->source, ".bind((", "socket.bind(self.server_address)") && !t->path.len) {
        hint_add(h, CTL_CAPS, "use a port from 1024 up, or 0 for any that is free",
                 "ports below 1024 need a capability that a box does not have");
    } else {
        hint_no_access(s, t->path, h);
    }
}

/* EPERM, or, where the id does not exist in the box, EINVAL. */
static bool other_identity(const struct hint_source *s, const struct traceback *t,
                           struct hints *h) {
    const struct policy *p = s->plan->policy;

    if (ANY(t->source, "os.setuid(", "os.setgid(", "os.seteuid(", "os.setegid(", "os.setgroups(",
            "os.setresuid(", "os.setresgid(", "os.setreuid(", "os.setregid(", "os.initgroups("))
        hint_add(h, CTL_CAPS, "stay who you are: it is an ordinary user without privileges already",
                 "the code cannot become another user or group than %u and %u", p->uid, p->gid);
    else if (ANY(t->source, "os.chown(", "os.lchown(", "os.fchown(", "shutil.chown("))
        hint_add(h, CTL_CAPS, "leave files to their owner, which is the code itself",
                 "files cannot be given to another user or group than %u and %u", p->uid, p->gid);
    else
        return false;
    return true;
}

static void not_permitted(const struct hint_source *s, const struct traceback *t, struct hints *h) {
    if (other_identity(s, t, h))
        return;
    if (ANY(t->source, "os.kill(1,"))
        hint_add(h, CTL_PID, "signal your own children only",
                 "process 1 is the box's own and takes no signals from the code");
    else if (ANY(t->source, "PROT_EXEC") && span_holds(t->source, "mmap("))
        hint_noexec(h);
}

static bool makes_file(const struct traceback *t) {
    return t->path.len > 0 || (t->two_paths && ANY(t->source, "os.link(", "os.symlink("));
}

static void no_space(const struct hint_source *s, const struct traceback *t, struct hints *h) {
    const struct policy *p = s->plan->policy;

    if (span_holds(t->source, "fallocate(") && !t->path.len && p->n_bind == 0)
        hint_full(s, span_of("/tmp/"), false, h);
    else
        hint_full(s, t->path, makes_file(t), h);
}

static void not_there(const struct hint_source *s, const struct traceback *t, struct hints *h) {
    enum place place = hint_place(s->plan, t->path);

    if (could_not_execute(t) && !span_holds(t->path, "/"))
        hint_no_command(s, t->path, h);
    else if (span_begins(t->path, "/proc/1/") || span_is(t->path, "/proc/1"))
        hint_add(h, CTL_PROC, "look at your own processes only, as in /proc/self",
                 "process 1 of the box is hidden from the code");
    else if (span_begins(t->path, "/sys/") || span_is(t->path, "/sys"))
        hint_add(h, CTL_MOUNT, "go without it, or look in /proc",
                 "there is no /sys in a box: it tells of the host's hardware");
    else if (span_is(t->path, "/dev/tty") || span_is(t->path, "/dev/console"))
        hint_add(h, CTL_SESSION, "read standard input and write standard output",
                 "a box has no terminal");
    else if (place == PLACE_DEV && span_word(t->source, "open") &&
             !ANY(t->path, "/dev/fd", "/dev/mqueue", "/dev/pts", "/dev/std"))
        hint_add(h, CTL_DEV, "use those, or plain files in /tmp",
                 "a box has no devices but null, zero, full, random and urandom");
}

static void numbered(const struct hint_source *s, const struct traceback *t, struct hints *h) {
    uint64_t refused = s->facts->usage.pids_refused;

    switch (t->number) {
    case EROFS:
        hint_read_only(s, t->path, h);
        break;
    case EACCES:
        denied(s, t, h);
        break;
    case EPERM: /* a refused call has been named already */
        if (h->n == 0 || h->list[h->n - 1].control != CTL_SECCOMP)
            not_permitted(s, t, h);
        break;
    case EINVAL:
        (void)other_identity(s, t, h);
        break;
    case ENOENT:
    case ENXIO:
        not_there(s, t, h);
        break;
    case ENOSPC:
        no_space(s, t, h);
        break;
    case EFBIG:
        hint_file_size(s, h);
        break;
    case EMFILE:
        hint_open_files(s, h);
        break;
    case EAGAIN: /* the kernel counts refusals, but not everywhere */
        if (refused == UINT64_MAX && span_holds(t->source, "fork"))
            hint_no_process(s, h);
        break;
    case ENOSYS: /* is not notified: programs fall back at it, most of them */
        hint_add(h, CTL_SECCOMP, "use plain reads and writes, pipes, threads or /dev/shm instead",
                 "the system call that this line needs does not exist in a box");
        break;
    case EOPNOTSUPP:
        if (span_holds(t->source, "xattr("))
            hint_add(h, CTL_SECCOMP, "keep such data in a file of its own",
                     "files in a box have no extended attributes");
        break;
    case ENETUNREACH:
        hint_no_network(false, h);
        break;
    case -3: /* EAI_AGAIN */
        if (span_ends(t->type, "gaierror"))
            hint_no_network(true, h);
        break;
    default:
        break;
    }
}

static bool module_name(struct span message, struct span *ret) {
    struct span rest = message;

    if (!span_skip(&rest, "No module named '") || !span_chop(&rest, "'"))
        return false;
    for (size_t i = 0; i < rest.len; i++) /* json.nothing: what json lacks no pip would bring */
        if (strchr(".' /", rest.at[i]))
            return false;
    *ret = rest;
    return rest.len > 0;
}

static void no_module(struct span name, struct hints *h) {
    bool shows = name.len < 60;

    for (size_t i = 0; i < name.len; i++) {
        char c = name.at[i];
        shows &= (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                 c == '_' || c == '-';
    }
    hint_add(h, CTL_NET,
             "use Python's standard library, or have the box started with a rootfs that has it",
             "there is no Python module %.*s in the box, and pip cannot reach a network to "
             "install it",
             shows ? (int)name.len : 12, shows ? name.at : "of that name");
}

/* What a library wraps in an exception of its own, with the kernel's number in the text. */
static void wrapped(const struct hint_source *s, const struct traceback *t, struct hints *h) {
    if (!of_library(s, t->file))
        return;
    if (span_holds(t->message, "[Errno -3] Temporary failure in name resolution"))
        hint_no_network(true, h);
    else if (span_holds(t->message, "[Errno 101] Network is unreachable"))
        hint_no_network(false, h);
}

/* "/bin/sh: 1: NAME: not found", printed by the shell that subprocess started. */
static void shells_missing(const struct hint_source *s, const struct traceback *t,
                           struct hints *h) {
    struct span text = t->before, line = last_line(&text), name;

    if (!span_ends(t->message, "returned non-zero exit status 127.") ||
        !span_skip(&line, "/bin/sh: 1: ") || !span_before(line, ": not found", &name))
        return;
    if (!span_holds(name, "/") && !span_holds(name, " "))
        hint_no_command(s, name, h);
}

/* A segment is not mapped where the library lies in a noexec place, or where a limit of memory is reached: that of the
 * code, of --ulimit, or one that the caller brought along. A name without a place may be either. */
static void not_mapped(const struct hint_source *s, struct span path, struct hints *h) {
    if (hint_noexec_place(s->plan, path))
        hint_noexec(h);
}

/* SQLite does not say which file. The line that opens it does, if it holds the name itself. */
static void no_database(const struct hint_source *s, const struct traceback *t, struct hints *h) {
    struct span head, rest, path;
    char quote[2] = {0};

    if (!span_before(t->source, "sqlite3.connect(", &head))
        return;
    rest = span_slice(t->source, head.len + strlen("sqlite3.connect("), t->source.len);
    if (rest.len < 2 || !strchr("'\"", rest.at[0]))
        return;
    quote[0] = rest.at[0];
    rest = span_slice(rest, 1, rest.len);
    if (span_before(rest, quote, &path) && hint_place(s->plan, path) == PLACE_ROOT &&
        s->plan->policy->read_only)
        hint_read_only(s, path, h);
}

void hints_of_python(const struct hint_source *s, const struct traceback *t, struct hints *h) {
    struct span name = t->message;

    if (!genuine(s, t))
        return;
    if (t->number)
        numbered(s, t, h);
    else if (span_is(t->type, "ModuleNotFoundError") && module_name(t->message, &name))
        no_module(name, h);
    else if (span_is(t->type, "MemoryError") || span_ends(t->type, "._ArrayMemoryError"))
        hint_no_memory(s, h);
    else if (span_is(t->type, "EOFError") && s->given.stdin_kind == STDIN_NONE &&
             span_is(t->message, "EOF when reading a line"))
        hint_add(h, CTL_SESSION,
                 "take arguments, or have input handed in (-i on the command line, stdin data in "
                 "the library)",
                 "input() has nothing to read: there is no terminal, and no input was given");
    else if ((span_is(t->type, "OSError") || span_is(t->type, "ImportError")) &&
             span_chop(&name, ": failed to map segment from shared object"))
        not_mapped(s, name, h);
    else if (span_is(t->type, "sqlite3.OperationalError") &&
             span_is(t->message, "unable to open database file"))
        no_database(s, t, h);
    else if (span_is(t->type, "RuntimeError") && span_is(t->message, "can't start new thread") &&
             s->facts->usage.pids_refused == UINT64_MAX)
        hint_no_process(s, h);
    else if (span_is(t->type, "subprocess.CalledProcessError"))
        shells_missing(s, t, h);
    else
        wrapped(s, t, h);
}

/* ------------------------------------------------------------------ a shell, and what it starts */

static struct span base_name(struct span path) {
    const char *slash = path.len ? memrchr(path.at, '/', path.len) : NULL;

    return slash ? span_slice(path, (size_t)(slash + 1 - path.at), path.len) : path;
}

static bool same(struct span a, struct span b) {
    return a.len == b.len && memcmp(a.at, b.at, a.len) == 0;
}

static bool is_shell(struct span name) {
    return span_is(name, "sh") || span_is(name, "bash") || span_is(name, "dash") ||
           span_is(name, "ash") || span_is(name, "busybox");
}

/* Tools of coreutils' kind, whose errors are "TOOL: …PATH…: REASON" and end the output. */
static bool is_tool(struct span name) {
    static const char *const tools[] = {
        "cat",  "chgrp", "chmod", "chown",  "cp",     "dd",    "find",     "head",   "install",
        "ln",   "ls",    "mkdir", "mkfifo", "mktemp", "mv",    "rm",       "rmdir",  "sed",
        "sort", "split", "tail",  "tar",    "tee",    "touch", "truncate", "unlink", "mknod"};

    for (size_t i = 0; i < ARRAY_LEN(tools); i++)
        if (span_is(name, tools[i]))
            return true;
    return false;
}

/* A message of the shell's own, "sh: 1: TEXT", "bash: line 1: TEXT", "/tmp/x.sh: 3: TEXT": its text. */
static bool shells_own(struct span line, struct span *ret_text) {
    struct span name;
    size_t digits = 0;

    if (!span_before(line, ": ", &name) || span_holds(name, " "))
        return false;
    line = span_slice(line, name.len + 2, line.len);
    (void)span_skip(&line, "line ");
    while (digits < line.len && line.at[digits] >= '0' && line.at[digits] <= '9')
        digits++;
    line = span_slice(line, digits, line.len);
    *ret_text = line;
    return digits > 0 && span_skip(ret_text, ": ");
}

/* dd's summary follows its error. */
static struct span last_error(struct span text) {
    struct span line = last_line(&text);

    while (line.len && (span_ends(line, " records in") || span_ends(line, " records out") ||
                        span_holds(line, " copied, ")))
        line = last_line(&text);
    return line;
}

/* The path that a message is about: in quotes (which in UTF-8 are curly), or all that is left. */
static struct span message_path(struct span text) {
    static const char *const quotes[][2] = {{"'", "'"}, {"\u2018", "\u2019"}};
    struct span head, rest;

    (void)span_skip(&text, "exec: ");
    (void)span_skip(&text, "cannot create ");
    (void)span_skip(&text, "cannot open ");
    for (size_t i = 0; i < ARRAY_LEN(quotes); i++) {
        if (!span_before(text, quotes[i][0], &head))
            continue;
        rest = span_slice(text, head.len + strlen(quotes[i][0]), text.len);
        return span_before(rest, quotes[i][1], &head) ? head : (struct span){0};
    }
    return text;
}

static void reason(const struct hint_source *s, struct span text, bool tool, struct hints *h) {
    bool make = tool ? ANY(text, "cannot touch", "cannot create", "failed to create")
                     : span_begins(text, "cannot create");

    if (span_chop(&text, ": Read-only file system")) {
        hint_read_only(s, message_path(text), h);
    } else if (span_chop(&text, ": Permission denied")) {
        struct span path = message_path(text);
        if (s->exit_code != 126)
            hint_no_access(s, path, h);
        else if (!tool && s->given.makes_programs && hint_noexec_place(s->plan, path))
            hint_noexec(h);
    } else if (span_chop(&text, ": No space left on device")) {
        struct span path = message_path(text);
        hint_full(s, path.len && *path.at == '/' ? path : (struct span){0}, make, h);
    } else if (tool && span_chop(&text, ": Operation not permitted") &&
               ANY(text, "changing ownership of", "changing group of")) {
        hint_add(h, CTL_CAPS, "leave files to their owner, which is the code itself",
                 "files cannot be given to another user or group than %u and %u",
                 s->plan->policy->uid, s->plan->policy->gid);
    }
}

static void of_shell(const struct hint_source *s, struct span text, struct hints *h) {
    struct span name = text;

    if (s->exit_code == 127 &&
        (span_chop(&name, ": command not found") || span_chop(&name, ": not found"))) {
        if (!in_command(s, "PATH") && !span_holds(name, "/") && !span_holds(name, " "))
            hint_no_command(s, name, h);
    } else if (span_is(text, "Cannot fork") || span_begins(text, "fork: ")) {
        if (s->facts->usage.pids_refused == UINT64_MAX)
            hint_no_process(s, h);
    } else if (span_begins(text, "/dev/tcp/") && span_ends(text, ": Network is unreachable")) {
        hint_no_network(false, h);
    } else if (span_begins(text, "/dev/tcp/") && span_ends(text, ": Invalid argument")) {
        struct span above = s->err;
        (void)last_line(&above);
        if (span_ends(last_line(&above), ": Temporary failure in name resolution"))
            hint_no_network(true, h);
    } else {
        reason(s, text, false, h);
    }
}

/* Tools that look for a host, by their status and their own sentence. */
static bool looks_for_host(const struct hint_source *s, struct span line) {
    return (s->exit_code == 6 && span_begins(line, "curl: (6) Could not resolve host")) ||
           (s->exit_code == 4 && span_begins(line, "wget: unable to resolve host")) ||
           (s->exit_code == 128 && span_begins(line, "fatal: unable to access '") &&
            span_holds(line, "': Could not resolve host: "));
}

/* A script that holds the words of an error may have printed them itself. */
static bool says_itself(const struct hint_source *s) {
    for (const char *const *a = s->plan->argv; a && *a; a++)
        if (ANY(span_of(*a), "Read-only file system", "Permission denied", "not found",
                "No space left", "is unreachable", "Temporary failure", "Could not resolve",
                "No module named", "failed to map", "size limit exceeded", "not permitted"))
            return true;
    return false;
}

void hints_of_shell(const struct hint_source *s, struct hints *h) {
    struct span line = last_error(s->err), text, tool, name;
    struct span ran = base_name(span_of(s->plan->argv && s->plan->argv[0] ? s->plan->argv[0] : ""));

    if (says_itself(s))
        return;
    if (looks_for_host(s, line)) {
        hint_no_network(true, h);
    } else if (span_begins(line, "/usr/bin/python3: No module named ")) {
        name = line;
        (void)span_skip(&name, "/usr/bin/python3: No module named ");
        if (!span_holds(name, ".") && !span_holds(name, " "))
            no_module(name, h);
    } else if (span_chop(&line, ": failed to map segment from shared object")) {
        static const char loading[] = ": error while loading shared libraries: ";
        if (s->exit_code == 127 && span_before(line, loading, &name))
            not_mapped(s, span_slice(line, name.len + strlen(loading), line.len), h);
    } else if (is_shell(ran) && span_is(line, "File size limit exceeded") &&
               s->exit_code == 128 + SIGXFSZ) {
        hint_file_size(s, h);
    } else if (is_shell(ran) && shells_own(line, &text)) {
        of_shell(s, text, h);
    } else if (span_before(line, ": ", &tool) && is_tool(base_name(tool)) &&
               (is_shell(ran) || same(base_name(tool), ran))) {
        reason(s, span_slice(line, tool.len + 2, line.len), true, h);
    }
}
