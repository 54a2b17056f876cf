/*
 * probes_sockets.c: ways out by a socket.
 *
 * Where a probe is about reaching somebody, the somebody is a listener of the attempt's own, on
 * loopback or under a name of its own, and what arrived there decides, whatever the code says.
 * Addresses elsewhere are only asked for a route: connect(2) of a UDP socket sends nothing.
 */
#include "lab/families.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/banned.h"

#define SOCKET .family = "sockets", .kind = PAYLOAD_PYTHON

/* ------------------------------------------------------------------ listeners on the host */

/* What came to the listener counts, whatever the code says of it. */
static void judge_arrival(struct attempt *a, struct finding_of *f) {
    struct pollfd p = {.fd = a->fd[0], .events = POLLIN};

    if (f->verdict == VERDICT_STOPPED && poll(&p, 1, 0) > 0)
        lab_found(f, VERDICT_THROUGH, f->call, "", "something arrived at the host's socket");
    else if (f->verdict == VERDICT_THROUGH && poll(&p, 1, 0) <= 0)
        lab_found(f, VERDICT_STOPPED, f->call, "nothing arrived", f->detail);
}

/* Binds a->fd[0], and lets it listen if it can. */
static bool listen_at(struct attempt *a, struct finding_of *f, int type,
                      const struct sockaddr *address, socklen_t len) {
    a->fd[0] = socket(address->sa_family, type | SOCK_CLOEXEC, 0);
    if (a->fd[0] < 0 || bind(a->fd[0], address, len) < 0 ||
        (type == SOCK_STREAM && listen(a->fd[0], 4) < 0))
        return lab_untestable(f, "a listener on the host: %s", strerrordesc_np(errno));
    return true;
}

static bool listen_inet(struct attempt *a, struct finding_of *f, int family, int type) {
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct sockaddr_in6 bound = {0};
    socklen_t len = sizeof(bound);
    bool made = family == AF_INET ? listen_at(a, f, type, (const struct sockaddr *)&v4, sizeof(v4))
                                  : listen_at(a, f, type, (const struct sockaddr *)&v6, sizeof(v6));

    if (!made || getsockname(a->fd[0], (struct sockaddr *)&bound, &len) < 0)
        return false;
    lab_arg(a, "%u", ntohs(bound.sin6_port)); /* the port is at the same place in both */
    return true;
}

static bool tcp4(struct attempt *a, struct finding_of *f) {
    return listen_inet(a, f, AF_INET, SOCK_STREAM);
}

static bool udp4(struct attempt *a, struct finding_of *f) {
    return listen_inet(a, f, AF_INET, SOCK_DGRAM);
}

static bool tcp6(struct attempt *a, struct finding_of *f) {
    return listen_inet(a, f, AF_INET6, SOCK_STREAM);
}

/* Where the host itself has no way there, that the box has none tells nothing. */
static bool host_has_route(struct attempt *a, struct finding_of *f) {
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons(80),
                                   .sin_addr.s_addr = htonl(0xa9fea9fe)}; /* 169.254.169.254 */
    _cleanup_fd_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    (void)a;
    if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0)
        return lab_untestable(f, "the host itself has no route: %s", strerrordesc_np(errno));
    return true;
}

static bool stays_here(struct attempt *a, struct finding_of *f) {
    return !lab_off(a, "net") ||
           lab_untestable(f, "with the host's network the question would leave this machine");
}

static bool listen_abstract(struct attempt *a, struct finding_of *f, int type) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int n = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "mayfly-lab-%d",
                     (int)getpid());

    lab_arg(a, "%s", address.sun_path + 1);
    return listen_at(a, f, type, (const struct sockaddr *)&address,
                     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n));
}

static bool abstract_stream(struct attempt *a, struct finding_of *f) {
    return listen_abstract(a, f, SOCK_STREAM);
}

static bool abstract_datagram(struct attempt *a, struct finding_of *f) {
    return listen_abstract(a, f, SOCK_DGRAM);
}

static bool pathname_stream(struct attempt *a, struct finding_of *f) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if ((size_t)snprintf(address.sun_path, sizeof(address.sun_path), "%s/door", a->dir) >=
        sizeof(address.sun_path))
        return lab_untestable(f, "%s/door is too long for a socket's name", a->dir);
    lab_arg(a, "%s", address.sun_path);
    if (!listen_at(a, f, SOCK_STREAM, (const struct sockaddr *)&address, sizeof(address)))
        return false;
    (void)chmod(address.sun_path, 0777);
    return true;
}

/* ------------------------------------------------------------------ a descriptor for whoever comes */

static void send_fd(int to, int fd) {
    char byte = 'x';
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    union {
        char room[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = control.room,
                       .msg_controllen = sizeof(control.room)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);

    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &fd, sizeof(fd));
    (void)sendmsg(to, &m, MSG_NOSIGNAL);
}

/* An accomplice on the host hands out the directory that the box must not see. */
static bool hand_out_fds(struct attempt *a, struct finding_of *f) {
    char path[PATH_MAX];

    if (!listen_abstract(a, f, SOCK_STREAM))
        return false;
    (void)snprintf(path, sizeof(path), "%s/canary", a->dir);
    a->fd[1] = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    a->pid[0] = a->fd[1] < 0 ? -1 : fork();
    if (a->pid[0] < 0)
        return lab_untestable(f, "no accomplice: %s", strerrordesc_np(errno));
    if (a->pid[0] == 0) {
        for (int fd; (fd = accept(a->fd[0], NULL, NULL)) >= 0;)
            send_fd(fd, a->fd[1]);
        _exit(0);
    }
    return true;
}

/* Where the host has no such protocol yet, asking for it may load a module, which stays. Who has the module already, or a
 * kernel without any, is told what the code could have. */
static bool would_load(const struct attempt *a, struct finding_of *f, const char *protocol) {
    _cleanup_free_ char *text = NULL;
    size_t len = 0;

    if (!lab_off(a, "seccomp") || access("/proc/modules", F_OK) < 0 ||
        file_read_all_at(AT_FDCWD, "/proc/net/protocols", 1u << 20, &text, &len) < 0)
        return false;
    for (const char *p = text; (p = strstr(p, protocol)); p++)
        if ((p == text || p[-1] == '\n') && p[strlen(protocol)] == ' ')
            return false;
    (void)lab_untestable(f, "this kernel has not loaded %s yet, and being asked for it would",
                         protocol);
    return true;
}

#define NEEDS(name, protocol)                                                                      \
    static bool needs_##name(struct attempt *a, struct finding_of *f) {                            \
        return !would_load(a, f, protocol);                                                        \
    }
NEEDS(vsock, "AF_VSOCK")
NEEDS(alg, "ALG")
NEEDS(packet, "PACKET")
NEEDS(sctp, "SCTP")
NEEDS(mptcp, "MPTCP")
NEEDS(udplite6, "UDPLITEv6")

/* Netlink's are not in that list. */
static bool needs_netfilter(struct attempt *a, struct finding_of *f) {
    return !lab_off(a, "seccomp") || access("/proc/modules", F_OK) < 0 ||
           access("/proc/net/netfilter", F_OK) == 0 ||
           lab_untestable(f, "this kernel has not loaded netfilter yet, and being asked would");
}

#define FAMILY(number)                                                                             \
    "import _socket as socket\n"                                                                   \
    "try:\n"                                                                                       \
    "    s = socket.socket(" number ")\n"                                                          \
    "except OSError as e:\n"                                                                       \
    "    if e.errno in (errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT, errno.ESOCKTNOSUPPORT) \\\n"    \
    "            and not filtered():\n"                                                            \
    "        untestable('this kernel has no such socket: ' + name(e))\n"                           \
    "    stopped('socket', e)\n"                                                                   \
    "through('socket')\n"

#define OPTION(level, option, value)                                                               \
    "import _socket as socket\n"                                                                   \
    "s = socket.socket()\n"                                                                        \
    "attempt('setsockopt', s.setsockopt, " level ", " option ", " value ")\n"

/* A capability over the box's own network is enough. */
#define OWN "identity caps"

const struct probe probes_sockets[] = {
    {SOCKET, .id = "SK1", .title = "TCP to a listener on the host's loopback", .stopped_by = "net",
     .sees = "ECONNREFUSED|ENETUNREACH",
     .echo = "CVE-2020-8558: a node's loopback, reached by its neighbours", .prepare = tcp4,
     .judge = judge_arrival,
     .payload = "import _socket as socket\n"
                "attempt('connect', socket.socket().connect, ('127.0.0.1', int(sys.argv[1])))\n"},
    {SOCKET, .id = "SK1b", .title = "UDP to a socket on the host's loopback", .stopped_by = "net",
     .sees = "ECONNREFUSED|ENETUNREACH",
     .echo = "CVE-2020-8558: a node's loopback, reached by UDP as well", .prepare = udp4,
     .judge = judge_arrival,
     .payload = "import time\n"
                "import _socket as socket\n"
                "s = socket.socket(type=socket.SOCK_DGRAM)\n"
                "def send():\n"
                "    s.connect(('127.0.0.1', int(sys.argv[1])))\n"
                "    s.send(b'hello')\n"
                "    time.sleep(0.05)  # for the ICMP answer\n"
                "    s.send(b'hello')\n"
                "attempt('send', send)\n"},
    {SOCKET, .id = "SK1c", .title = "a way to the cloud's metadata address", .stopped_by = "net",
     .sees = "ENETUNREACH",
     .echo = "Capital One, 2019: credentials were taken from the metadata address",
     .prepare = host_has_route,
     .payload = "import _socket as socket\n"
                "s = socket.socket(type=socket.SOCK_DGRAM)\n"
                "attempt('connect', s.connect, ('169.254.169.254', 80))\n"},
    {SOCKET, .id = "SK1d", .title = "TCP to a listener on the host's IPv6 loopback",
     .stopped_by = "net", .sees = "ECONNREFUSED|ENETUNREACH|EADDRNOTAVAIL",
     .echo = "CVE-2024-32473: Docker left IPv6 on where it was disabled", .prepare = tcp6,
     .judge = judge_arrival,
     .payload = "import _socket as socket\n"
                "s = socket.socket(socket.AF_INET6)\n"
                "attempt('connect', s.connect, ('::1', int(sys.argv[1])))\n"},
    {SOCKET, .id = "SK1e", .title = "a name from DNS", .stopped_by = "net", .sees = "EAI_AGAIN",
     .echo = "CVE-2025-55284: an agent could be led to send secrets by DNS", .prepare = stays_here,
     .payload = "import _socket as socket\n"
                "try:\n"
                "    socket.getaddrinfo('example.com', 80)\n"
                "except socket.gaierror as e:\n"
                "    again = e.errno == socket.EAI_AGAIN\n"
                "    stopped('getaddrinfo', 'EAI_AGAIN' if again else str(e.errno), e)\n"
                "through('getaddrinfo')\n"},
    {SOCKET, .id = "SK2", .title = "connect to the host's abstract socket",
     .stopped_by = "net landlock", .sees = "ECONNREFUSED|EPERM",
     .echo = "CVE-2020-15257: containerd's abstract socket was open to containers",
     .prepare = abstract_stream, .judge = judge_arrival,
     .payload = "import _socket as socket\n"
                "s = socket.socket(socket.AF_UNIX)\n"
                "attempt('connect', s.connect, '\\0' + sys.argv[1])\n"},
    {SOCKET, .id = "SK2b", .title = "send to the host's abstract datagram socket",
     .stopped_by = "net landlock", .sees = "ECONNREFUSED|EPERM",
     .echo = "CVE-2020-15257: containerd's abstract socket was open to containers",
     .prepare = abstract_datagram, .judge = judge_arrival,
     .payload = "import _socket as socket\n"
                "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
                "attempt('sendto', s.sendto, b'hello', '\\0' + sys.argv[1])\n"},
    {SOCKET, .id = "SK3", .title = "connect to the host's pathname socket", .stopped_by = "mount",
     .sees = "ENOENT", .echo = "docker.sock in a container: who can connect is root outside",
     .prepare = pathname_stream, .judge = judge_arrival,
     .payload = "import _socket as socket\n"
                "s = socket.socket(socket.AF_UNIX)\n"
                "attempt('connect', s.connect, sys.argv[1])\n"},
    {SOCKET, .id = "SK4", .title = "AF_VSOCK, to the hypervisor", .stopped_by = "seccomp",
     .sees = "EPERM", .echo = "CVE-2021-26708: a race between vsock's transports gave root",
     .prepare = needs_vsock, .payload = FAMILY("40, socket.SOCK_STREAM")},
    {SOCKET, .id = "SK5", .title = "AF_ALG", .stopped_by = "seccomp", .sees = "EPERM",
     .echo = "CVE-2019-8912: an AF_ALG socket was used after its release", .prepare = needs_alg,
     .payload = FAMILY("38, socket.SOCK_SEQPACKET")},
    {SOCKET, .id = "SK6", .title = "AF_NETLINK: routes", .stopped_by = "seccomp", .sees = "EPERM",
     .echo = "CVE-2014-0181: a set-user-id program's output could change the network",
     .payload = FAMILY("16, socket.SOCK_RAW, 0")},
    {SOCKET, .id = "SK6b", .title = "AF_NETLINK: netfilter", .stopped_by = "seccomp",
     .sees = "EPERM", .echo = "CVE-2024-1086: nf_tables freed a packet twice, and gave root",
     .prepare = needs_netfilter, .payload = FAMILY("16, socket.SOCK_RAW, 12")},
    {SOCKET, .id = "SK7", .title = "AF_PACKET", .stopped_by = "identity caps seccomp",
     .may_stop = "user", .sees = "EPERM",
     .echo = "CVE-2020-14386: a packet ring's offset overflowed, and gave root",
     .prepare = needs_packet, .payload = FAMILY("17, socket.SOCK_RAW, 0x300")},
    {SOCKET, .id = "SK7b", .title = "a raw IPv4 socket", .stopped_by = "identity caps seccomp",
     .may_stop = "user", .sees = "EPERM",
     .echo = "CVE-2017-17712: a race in sending raw packets gave privileges",
     .payload = FAMILY("2, socket.SOCK_RAW, 1")},
    {.family = "sockets",
     .id = "SK8",
     .title = "every socket family from 0 to 45 but those of the Internet and local ones",
     .stopped_by = "seccomp",
     .sees = "EPERM",
     .echo = "CVE-2010-3904: RDS, which hardly anybody used, gave root",
     .kind = PAYLOAD_STATIC,
     .payload = "sweep_families"},

    /* ---------------------------------------------------------------- not in the list of cases */

    /* A protocol that nobody uses is kernel code that nobody looks at; and where it is a module, asking for it loads it. */
    {SOCKET, .id = "SK9", .title = "SCTP, which asking for would load", .stopped_by = "seccomp",
     .sees = "EPROTONOSUPPORT|EPERM",
     .echo = "CVE-2021-23133: a race of SCTP sockets gave privileges", .prepare = needs_sctp,
     .payload = FAMILY("2, socket.SOCK_STREAM, 132")},
    {SOCKET, .id = "SK9b", .title = "MPTCP", .stopped_by = "seccomp",
     .sees = "EPROTONOSUPPORT|EPERM",
     .echo = "CVE-2024-44974: MPTCP read an endpoint that was freed", .prepare = needs_mptcp,
     .payload = FAMILY("2, socket.SOCK_STREAM, 262")},
    {SOCKET, .id = "SK9c", .title = "UDP-Lite over IPv6", .stopped_by = "seccomp",
     .sees = "EPROTONOSUPPORT|EPERM", .prepare = needs_udplite6,
     .payload = FAMILY("10, socket.SOCK_DGRAM, 136")},
    {SOCKET, .id = "SK10", .may_stop = "user", .title = "replace the packet filter's tables",
     .stopped_by = OWN " seccomp", .sees = "EPERM|ENOPROTOOPT|ENOSYS",
     .echo = "CVE-2021-22555: a table's padding overflowed, and gave root",
     .why_alone = "the kernel has no iptables of the old kind",
     .payload = "import _socket as socket\n"
                "s = socket.socket()\n"
                "try:\n"
                "    s.setsockopt(0, 64, bytes(256))  # of no entries: refused\n"
                "except OSError as e:\n"
                "    if e.errno in (errno.EINVAL, errno.ENOENT):\n"
                "        through('setsockopt', 'past the permission check: ' + name(e))\n"
                "    stopped('setsockopt', e)\n"
                "through('setsockopt')\n"},
    {SOCKET, .id = "SK10b", .may_stop = "user", .title = "SO_MARK: past the host's packet filter",
     .stopped_by = OWN " seccomp", .sees = "EPERM|ENOSYS", .payload = OPTION("1", "36", "1")},
    {SOCKET, .id = "SK10c", .title = "SO_RCVBUFFORCE: past the limit of buffers",
     .stopped_by = "user identity caps seccomp", .sees = "EPERM|ENOSYS",
     .echo = "CVE-2016-9793: sizes of SO_RCVBUFFORCE became negative, and corrupted memory",
     .payload = OPTION("1", "33", "1 << 20")},
    {SOCKET, .id = "SK10d", .may_stop = "user", .title = "TCP_REPAIR: connections from nothing",
     .stopped_by = OWN " seccomp", .sees = "EPERM|ENOSYS", .payload = OPTION("6", "19", "1")},
    {SOCKET, .id = "SK11", .title = "take a directory of the host's out of a socket (SCM_RIGHTS)",
     .stopped_by = "net landlock", .sees = "ECONNREFUSED|EPERM",
     .echo = "CVE-2025-15576: FreeBSD jails could hand each other a way out",
     .prepare = hand_out_fds,
     .payload =
         "import _socket as socket\n"
         "s = socket.socket(socket.AF_UNIX)\n"
         "def take():\n"
         "    s.connect('\\0' + sys.argv[1])\n"
         "    fd = int.from_bytes(s.recvmsg(1, socket.CMSG_SPACE(4))[1][0][2], sys.byteorder)\n"
         "    return os.read(os.open('secret', os.O_RDONLY, dir_fd=fd), 13).decode()\n"
         "attempt('connect', take)\n"},
    {SOCKET, .id = "SK12", .may_stop = "seccomp user",
     .title = "say by SCM_CREDENTIALS that it is init", .stopped_by = OWN, .sees = "EPERM|EINVAL",
     .echo = "CVE-2013-4300: a namespace's root could claim another's process id",
     .payload = "import struct\n"
                "import _socket as socket\n"
                "a, b = socket.socketpair()\n"
                "b.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)\n"
                "who = struct.pack('iII', 1, 0, 0)\n"
                "attempt('sendmsg', a.sendmsg, [b'x'], [(socket.SOL_SOCKET, 2, who)])\n"},
    {SOCKET, .id = "SK13", .title = "configure an interface", .stopped_by = "identity caps seccomp",
     .may_stop = "user", .sees = "EPERM|ENOSYS",
     .echo = "CVE-2011-1019: CAP_NET_ADMIN loaded any module, by an interface's name",
     .payload = "import fcntl, struct\n"
                "import _socket as socket\n"
                "s = socket.socket(type=socket.SOCK_DGRAM)\n"
                "try:\n"
                "    same = fcntl.ioctl(s, 0x8913, struct.pack('16s24x', b'lo'))\n"
                "except OSError as e:\n"
                "    stopped('ioctl(SIOCGIFFLAGS)', e)\n"
                "try:\n"
                "    fcntl.ioctl(s, 0x8914, same)\n"
                "except OSError as e:\n"
                "    stopped('ioctl(SIOCSIFFLAGS)', e)\n"
                "through('ioctl(SIOCSIFFLAGS)')\n"},
    {.id = NULL},
};
