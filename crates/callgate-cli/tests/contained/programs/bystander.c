/* The innocent process of a case: it lives outside the sandbox, as the same user, and writes a line into its events file whenever
 * anything reaches it. The suite judges by that file, never by what an attack says about itself.
 *
 *   BYSTANDER_SECRET=… bystander DIRECTORY MARK
 *
 * It writes `info` (name=value lines) once everything listens, and appends to `events`. It ends with its parent. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pty.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

static int events = -1;
static volatile uint64_t canary = 0x6361676563616765;

static void say(const char *what) {
    char line[128];
    int length = snprintf(line, sizeof line, "%s\n", what);
    if (write(events, line, length) != length) _exit(9);
}

static void on_signal(int number) {
    char line[32];
    snprintf(line, sizeof line, "signal %d", number);
    say(line);
}

static int unix_socket(int kind, const char *path, int abstract) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(path);
    if (length + 1 >= sizeof address.sun_path) exit(3);
    memcpy(address.sun_path + abstract, path, length);
    int made = socket(AF_UNIX, kind | SOCK_CLOEXEC, 0);
    if (bind(made, (struct sockaddr *)&address, offsetof(struct sockaddr_un, sun_path) + length + abstract) != 0) exit(4);
    if (kind != SOCK_DGRAM && listen(made, 16) != 0) exit(5);
    return made;
}

static int inet_socket(int family, int kind, int *port) {
    int made = socket(family, kind | SOCK_CLOEXEC, 0);
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr *address = family == AF_INET ? (struct sockaddr *)&four : (struct sockaddr *)&six;
    socklen_t length = family == AF_INET ? sizeof four : sizeof six;
    if (bind(made, address, length) != 0) { *port = 0; close(made); return -1; }
    if (kind == SOCK_STREAM && listen(made, 16) != 0) exit(6);
    getsockname(made, address, &length);
    *port = ntohs(family == AF_INET ? four.sin_port : six.sin6_port);
    return made;
}

struct state { int nice; cpu_set_t processors; struct rlimit files; char oom[16]; int policy; long io; };

static void look(struct state *now) {
    memset(now, 0, sizeof *now);
    now->nice = getpriority(PRIO_PROCESS, 0);
    sched_getaffinity(0, sizeof now->processors, &now->processors);
    getrlimit(RLIMIT_NOFILE, &now->files);
    now->policy = sched_getscheduler(0);
    now->io = syscall(SYS_ioprio_get, 1, 0);
    int file = open("/proc/self/oom_score_adj", O_RDONLY | O_CLOEXEC);
    if (file >= 0) { if (read(file, now->oom, sizeof now->oom - 1) < 0) now->oom[0] = 0; close(file); }
}

int main(int count, char **words) {
    const char *secret = getenv("BYSTANDER_SECRET");
    if (count != 3 || !secret || chdir(words[1]) != 0) return 2;
    const char *mark = words[2];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_DUMPABLE, 1);
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    signal(SIGPIPE, SIG_IGN);
    umask(0);
    events = open("events", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    int caught[] = {SIGUSR1, SIGUSR2, SIGIO, SIGURG, SIGTERM, SIGHUP, SIGINT, SIGALRM, SIGCONT, SIGWINCH, SIGRTMIN};
    for (unsigned i = 0; i < sizeof caught / sizeof *caught; i++) sigaction(caught[i], &action, NULL);

    int tcp, tcp6, udp;
    char abstract[128], abstract_datagram[128];
    snprintf(abstract, sizeof abstract, "bystander-%s", mark);
    snprintf(abstract_datagram, sizeof abstract_datagram, "bystander-datagram-%s", mark);
    struct { int socket; const char *name; int stream; } heard[] = {
        {inet_socket(AF_INET, SOCK_STREAM, &tcp), "tcp", 1},
        {inet_socket(AF_INET6, SOCK_STREAM, &tcp6), "tcp6", 1},
        {inet_socket(AF_INET, SOCK_DGRAM, &udp), "udp", 0},
        {unix_socket(SOCK_STREAM, "service.sock", 0), "unix stream", 1},
        {unix_socket(SOCK_DGRAM, "datagram.sock", 0), "unix datagram", 0},
        {unix_socket(SOCK_SEQPACKET, "packet.sock", 0), "unix packet", 1},
        {unix_socket(SOCK_STREAM, abstract, 1), "abstract stream", 1},
        {unix_socket(SOCK_DGRAM, abstract_datagram, 1), "abstract datagram", 0},
        {unix_socket(SOCK_STREAM, "../workspace/agent.sock", 0), "socket in the workspace", 1},
        {-1, "terminal", 0},
    };
    enum { HEARD = sizeof heard / sizeof *heard };
    int master, slave;
    char terminal[64] = "-";
    if (openpty(&master, &slave, terminal, NULL, NULL) == 0) {
        fcntl(master, F_SETFD, FD_CLOEXEC);
        fcntl(slave, F_SETFD, FD_CLOEXEC);
        heard[HEARD - 1].socket = master;
    }
    int segment = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0666);
    volatile char *shared = segment >= 0 ? shmat(segment, NULL, 0) : NULL;
    if (shared == (void *)-1) shared = NULL;
    if (shared) { strcpy((char *)shared + 1, secret); shmctl(segment, IPC_RMID, NULL); shmat(segment, NULL, 0); }

    FILE *info = fopen("info.new", "w");
    fprintf(info, "pid=%d\ntcp=%d\ntcp6=%d\nudp=%d\nabstract=%s\nabstract-datagram=%s\nterminal=%s\naddress=%lu\nsegment=%d\n", getpid(), tcp,
            tcp6, udp, abstract, abstract_datagram, terminal, (unsigned long)&canary, segment);
    fclose(info);
    rename("info.new", "info");

    struct state first, now;
    look(&first);
    struct pollfd polled[HEARD];
    int beat = open("beat", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    for (unsigned long round = 1;; round++) {
        char count[32];
        int length = snprintf(count, sizeof count, "%020lu", round);
        if (pwrite(beat, count, length, 0) != length) return 8;
        for (int i = 0; i < HEARD; i++) polled[i] = (struct pollfd){.fd = heard[i].socket, .events = POLLIN};
        poll(polled, HEARD, 4);
        for (int i = 0; i < HEARD; i++) {
            if (!(polled[i].revents & POLLIN)) continue;
            if (heard[i].stream) {
                int peer = accept4(heard[i].socket, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
                if (peer < 0) continue;
                if (write(peer, secret, strlen(secret)) < 0 || write(peer, "\n", 1) < 0) { /* the caller has gone */ }
                close(peer);
            } else {
                char message[512];
                if (read(heard[i].socket, message, sizeof message) <= 0) continue;
            }
            say(heard[i].name);
        }
        if (canary != 0x6361676563616765) { say("memory"); canary = 0x6361676563616765; }
        if (shared && shared[0]) { say("shared memory"); ((volatile char *)shared)[0] = 0; }
        look(&now);
        if (now.nice != first.nice) say("priority");
        if (memcmp(&now.processors, &first.processors, sizeof now.processors)) say("processors");
        if (memcmp(&now.files, &first.files, sizeof now.files)) say("limits");
        if (now.policy != first.policy || now.io != first.io) say("scheduling");
        if (strcmp(now.oom, first.oom)) say("out-of-memory score");
        first = now;
    }
}
