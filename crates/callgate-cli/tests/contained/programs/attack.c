/* What a shell cannot do by itself: one system call or one trick for each first word. Exit code 0 means that the calls succeeded,
 * which nobody believes: the suite looks at what they changed.
 *
 *   attack TRICK ARGS… */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/io_uring.h>
#include <linux/keyctl.h>
#include <linux/netlink.h>
#include <linux/perf_event.h>
#include <linux/userfaultfd.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#ifndef MSG_FASTOPEN
#define MSG_FASTOPEN 0x20000000
#endif
#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

static char **word;
#define A(n) word[n]

static int fail(const char *what) { perror(what); return 1; }
static int put(int file, const char *text) {
    if (file < 0) return fail("open");
    size_t length = strlen(text);
    return write(file, text, length) == (ssize_t)length ? 0 : fail("write");
}
/* The program that a planted name holds: argument `n` if it is given, a plain word otherwise. */
static const char *payload(int n) { return word[n] ? word[n] : "changed\n"; }

/* --- files ------------------------------------------------------------------------------------------------------------------ */
static int append(void) { return put(open(A(0), O_WRONLY | O_APPEND), payload(1)); }
static int create(void) { return put(open(A(0), O_WRONLY | O_CREAT | O_TRUNC, 0755), payload(1)); }
static int create_openat2(void) {
    struct { uint64_t flags, mode, resolve; } how = {O_WRONLY | O_CREAT | O_TRUNC, 0755, 0};
    return put(syscall(SYS_openat2, AT_FDCWD, A(0), &how, sizeof how), payload(1));
}
static int create_exclusive(void) { return put(open(A(0), O_WRONLY | O_CREAT | O_EXCL, 0755), payload(1)); }
static int create_below(void) { /* DIRECTORY NAME [TEXT]: through a descriptor of the directory */
    int directory = open(A(0), O_PATH | O_DIRECTORY);
    return put(openat(directory, A(1), O_WRONLY | O_CREAT | O_TRUNC, 0755), payload(2));
}
static int create_at_descriptor(void) { return put(openat(atoi(A(0)), A(1), O_WRONLY | O_CREAT, 0644), "changed\n"); }
static int create_after_fchdir(void) { return fchdir(atoi(A(0))) ? fail("fchdir") : put(open(A(1), O_WRONLY | O_CREAT, 0644), "changed\n"); }
static int write_descriptor(void) { return put(atoi(A(0)), "changed\n"); }
static int truncate_it(void) { return truncate(A(0), 1) ? fail("truncate") : 0; }
static int grow(void) { int file = open(A(0), O_RDWR); return fallocate(file, 0, 0, 65536) ? fail("fallocate") : 0; }
static int map_write(void) { /* PATH TEXT: through a shared mapping; the text must fit into the file */
    int file = open(A(0), O_RDWR);
    if (file < 0) return fail("open");
    char *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) return fail("mmap");
    memcpy(memory, A(1), strlen(A(1)));
    return 0;
}
static int change_mode(void) { return chmod(A(0), strtol(A(1), NULL, 8)) ? fail("chmod") : 0; }
static int change_mode_descriptor(void) {
    int file = open(A(0), O_RDONLY);
    return fchmod(file, strtol(A(1), NULL, 8)) ? fail("fchmod") : 0;
}
static int change_mode_proc(void) { /* fchmod refuses O_PATH descriptors, /proc does not */
    char name[64];
    snprintf(name, sizeof name, "/proc/self/fd/%d", open(A(0), O_PATH));
    return chmod(name, strtol(A(1), NULL, 8)) ? fail("chmod") : 0;
}
static int change_mode_fchmodat2(void) { return syscall(452, AT_FDCWD, A(0), strtol(A(1), NULL, 8), 0) ? fail("fchmodat2") : 0; }
static int change_times(void) {
    struct timespec times[2] = {{1000000000, 0}, {1000000000, 0}};
    return utimensat(AT_FDCWD, A(0), times, 0) ? fail("utimensat") : 0;
}
static int change_attribute(void) { return setxattr(A(0), "user.changed", "yes", 3, 0) ? fail("setxattr") : 0; }
static int change_owner(void) { return chown(A(0), getuid(), getgid()) ? fail("chown") : 0; }
static int rename_it(void) { return rename(A(0), A(1)) ? fail("rename") : 0; }
static int exchange(void) { return syscall(SYS_renameat2, AT_FDCWD, A(0), AT_FDCWD, A(1), 2) ? fail("renameat2") : 0; }
static int rename_below(void) { /* FROM DIRECTORY NAME */
    return renameat(AT_FDCWD, A(0), open(A(1), O_PATH | O_DIRECTORY), A(2)) ? fail("renameat") : 0;
}
static int link_it(void) { return linkat(AT_FDCWD, A(0), AT_FDCWD, A(1), 0) ? fail("linkat") : 0; }
static int link_follow(void) { return linkat(AT_FDCWD, A(0), AT_FDCWD, A(1), AT_SYMLINK_FOLLOW) ? fail("linkat") : 0; }
static int unnamed_file(void) { /* DIRECTORY TARGET TEXT: a file without a name that gets one afterwards */
    int file = open(A(0), O_TMPFILE | O_WRONLY, 0755);
    char name[64];
    if (put(file, payload(2))) return 1;
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    return linkat(AT_FDCWD, name, AT_FDCWD, A(1), AT_SYMLINK_FOLLOW) ? fail("linkat") : 0;
}
static int unnamed_file_empty_path(void) { /* the same by AT_EMPTY_PATH */
    int file = open(A(0), O_TMPFILE | O_WRONLY, 0755);
    if (put(file, payload(2))) return 1;
    return linkat(file, "", AT_FDCWD, A(1), AT_EMPTY_PATH) ? fail("linkat") : 0;
}
static int make_device(void) { return mknod(A(0), S_IFCHR | 0666, makedev(1, 1)) ? fail("mknod") : 0; }
static int make_regular(void) { return mknod(A(0), S_IFREG | 0755, 0) ? fail("mknod") : 0; }
static int by_handle(void) {
    struct { struct file_handle head; char bytes[128]; } handle = {.head.handle_bytes = 128};
    int mount, directory = open(A(0), O_RDONLY | O_DIRECTORY);
    if (name_to_handle_at(AT_FDCWD, A(1), &handle.head, &mount, 0)) return fail("name_to_handle_at");
    return put(open_by_handle_at(directory, &handle.head, O_WRONLY | O_APPEND), "changed\n");
}
/* Tries every inode number near that of the workspace: the handle of an outside file can be guessed. */
static int guess_handle(void) {
    struct { struct file_handle head; char bytes[128]; } handle = {.head.handle_bytes = 128};
    int mount, directory = open(".", O_RDONLY | O_DIRECTORY);
    if (name_to_handle_at(AT_FDCWD, ".", &handle.head, &mount, 0)) return fail("name_to_handle_at");
    uint32_t *inode = (uint32_t *)handle.head.f_handle;
    *inode = atoi(A(0));
    inode[1] = atoi(A(1));
    handle.head.handle_type = 1;
    return put(open_by_handle_at(directory, &handle.head, O_WRONLY | O_APPEND), "changed\n");
}

/* --- other ways into the kernel --------------------------------------------------------------------------------------------- */
#ifdef __x86_64__
static long int80(long number, long a, long b, long c) {
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory", "r8", "r9", "r10", "r11");
    return result;
}
static char *low(void) { /* memory that a 32-bit pointer can name */
    return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
}
static int int80_create(void) {
    char *name = low();
    strcpy(name, A(0));
    long file = int80(5, (long)name, O_WRONLY | O_CREAT, 0755);
    if (file < 0) { errno = -file; return fail("int 0x80 open"); }
    return put(file, payload(1));
}
static int int80_kill(void) { long said = int80(37, atoi(A(0)), SIGUSR1, 0); errno = -said; return said ? fail("int 0x80 kill") : 0; }
static int int80_unix(void) {
    char *memory = low();
    uint32_t *arguments = (uint32_t *)memory;
    struct sockaddr_un *address = (struct sockaddr_un *)(memory + 64);
    arguments[0] = AF_UNIX; arguments[1] = SOCK_STREAM; arguments[2] = 0;
    long made = int80(102, 1, (long)arguments, 0);
    if (made < 0) { errno = -made; return fail("int 0x80 socket"); }
    address->sun_family = AF_UNIX;
    strcpy(address->sun_path, A(0));
    arguments[0] = made; arguments[1] = (uint32_t)(uintptr_t)address; arguments[2] = sizeof *address;
    long said = int80(102, 3, (long)arguments, 0);
    errno = -said;
    return said ? fail("int 0x80 connect") : 0;
}
static int int80_answers(void) { return int80(20, 0, 0, 0) == getpid() ? 0 : 1; }
static int x32_create(void) { return put(syscall(0x40000000 | SYS_open, A(0), O_WRONLY | O_CREAT, 0755), payload(1)); }
static int x32_answers(void) { return syscall(0x40000000 | SYS_getpid) == getpid() ? 0 : fail("x32"); }
#else
static int int80_create(void) { return 1; }
static int int80_kill(void) { return 1; }
static int int80_unix(void) { return 1; }
static int int80_answers(void) { return 1; }
static int x32_create(void) { return 1; }
static int x32_answers(void) { return 1; }
#endif

struct ring { int file; void *queue, *entries; struct io_uring_params told; };
static int ring_open(struct ring *ring) {
    memset(ring, 0, sizeof *ring);
    ring->file = syscall(SYS_io_uring_setup, 4, &ring->told);
    if (ring->file < 0) return fail("io_uring_setup");
    size_t size = ring->told.sq_off.array + 16 * sizeof(unsigned);
    size_t other = ring->told.cq_off.cqes + 16 * sizeof(struct io_uring_cqe);
    ring->queue = mmap(NULL, size > other ? size : other, PROT_READ | PROT_WRITE, MAP_SHARED, ring->file, IORING_OFF_SQ_RING);
    ring->entries = mmap(NULL, 4 * sizeof(struct io_uring_sqe), PROT_READ | PROT_WRITE, MAP_SHARED, ring->file, IORING_OFF_SQES);
    return ring->queue == MAP_FAILED || ring->entries == MAP_FAILED ? fail("mmap") : 0;
}
static int ring_do(struct ring *ring, struct io_uring_sqe entry) {
    *(struct io_uring_sqe *)ring->entries = entry;
    unsigned *tail = ring->queue + ring->told.sq_off.tail;
    ((unsigned *)(ring->queue + ring->told.sq_off.array))[*tail & 3] = 0;
    __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
    if (syscall(SYS_io_uring_enter, ring->file, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0) return fail("io_uring_enter"), -1;
    unsigned *head = ring->queue + ring->told.cq_off.head;
    struct io_uring_cqe *done = ring->queue + ring->told.cq_off.cqes;
    int result = done[*head & ring->told.cq_entries - 1].res;
    __atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
    return result;
}
static int ring_create(void) {
    struct ring ring;
    if (ring_open(&ring)) return 1;
    struct io_uring_sqe entry = {.opcode = IORING_OP_OPENAT, .fd = AT_FDCWD, .addr = (uintptr_t)A(0), .len = 0755, .open_flags = O_WRONLY | O_CREAT};
    int file = ring_do(&ring, entry);
    if (file < 0) { errno = -file; return fail("io_uring open"); }
    return put(file, payload(1));
}
static int ring_unix(void) {
    struct ring ring;
    if (ring_open(&ring)) return 1;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, A(0));
    struct io_uring_sqe entry = {.opcode = IORING_OP_CONNECT, .fd = socket(AF_UNIX, SOCK_STREAM, 0), .addr = (uintptr_t)&address, .off = sizeof address};
    int said = ring_do(&ring, entry);
    errno = -said;
    return said ? fail("io_uring connect") : 0;
}
static int ring_answers(void) { struct ring ring; return ring_open(&ring); }

/* --- a second thread that changes what the first one's system call points to ------------------------------------------------ */
static char *swapped;
static const char *swap_one, *swap_two;
static size_t swap_length;
static volatile int swap_ends;
static void *swapper(void *unused) {
    (void)unused;
    while (!swap_ends) {
        memcpy(swapped, swap_one, swap_length);
        for (volatile int i = 0; i < 60; i++) { }
        memcpy(swapped, swap_two, swap_length);
        for (volatile int i = 0; i < 60; i++) { }
    }
    return NULL;
}
/* Both names must have the same length, so that there is never a third one. */
static void start_swapping(const char *one, const char *two) {
    if (strlen(one) != strlen(two)) { fprintf(stderr, "names of different lengths\n"); exit(2); }
    swap_one = one;
    swap_two = two;
    swap_length = strlen(one) + 1;
    swapped = calloc(1, 4096);
    memcpy(swapped, one, swap_length);
    pthread_t thread;
    pthread_create(&thread, NULL, swapper, NULL);
}
static int rounds(void) { return 2000; }
static int swap_open(void) { /* HARMLESS WANTED [TEXT] */
    start_swapping(A(0), A(1));
    for (int i = 0; i < rounds(); i++) {
        int file = open(swapped, O_WRONLY | O_CREAT | O_TRUNC, 0755);
        if (file >= 0) { put(file, payload(2)); close(file); }
        if (access(A(1), F_OK) == 0 && i > 500) break;
    }
    return 0;
}
static int swap_openat2(void) {
    start_swapping(A(0), A(1));
    struct { uint64_t flags, mode, resolve; } how = {O_WRONLY | O_CREAT | O_TRUNC, 0755, 0};
    for (int i = 0; i < rounds(); i++) {
        int file = syscall(SYS_openat2, AT_FDCWD, swapped, &how, sizeof how);
        if (file >= 0) { put(file, payload(2)); close(file); }
    }
    return 0;
}
static int swap_flags(void) { /* openat2's own flags change from reading to writing: PATH [TEXT] */
    static struct { uint64_t flags, mode, resolve; } reading = {O_RDONLY, 0, 0}, writing = {O_WRONLY | O_APPEND, 0, 0};
    swap_one = (char *)&reading;
    swap_two = (char *)&writing;
    swap_length = sizeof reading;
    swapped = calloc(1, 4096);
    memcpy(swapped, &reading, swap_length);
    pthread_t thread;
    pthread_create(&thread, NULL, swapper, NULL);
    for (int i = 0; i < rounds(); i++) {
        int file = syscall(SYS_openat2, AT_FDCWD, A(0), swapped, sizeof reading);
        if (file >= 0) {
            if (write(file, payload(1), strlen(payload(1))) > 0) return 0;
            close(file);
        }
    }
    return 1;
}
static int swap_rename(void) { /* FROM HARMLESS WANTED: FROM is made anew each time; TEXT */
    start_swapping(A(1), A(2));
    for (int i = 0; i < rounds(); i++) {
        int file = open(A(0), O_WRONLY | O_CREAT | O_TRUNC, 0755);
        put(file, payload(3));
        close(file);
        rename(A(0), swapped);
    }
    return 0;
}
static int swap_directory(void) { /* HARMLESS WANTED */
    start_swapping(A(0), A(1));
    for (int i = 0; i < rounds(); i++) { if (mkdir(swapped, 0755) == 0) rmdir(A(0)); }
    return 0;
}
static int swap_link(void) { /* FROM HARMLESS WANTED */
    start_swapping(A(1), A(2));
    for (int i = 0; i < rounds(); i++) { link(A(0), swapped); unlink(A(1)); }
    return 0;
}
static int swap_symlink(void) { /* TARGET HARMLESS WANTED */
    start_swapping(A(1), A(2));
    for (int i = 0; i < rounds(); i++) { if (symlink(A(0), swapped) == 0) unlink(A(1)); }
    return 0;
}
static int swap_exchange(void) { /* DIRECTORY HARMLESS WANTED: a whole directory is exchanged with one of the two names */
    start_swapping(A(1), A(2));
    mkdir(A(1), 0755);
    mkdir(A(2), 0755);
    for (int i = 0; i < rounds(); i++) syscall(SYS_renameat2, AT_FDCWD, A(0), AT_FDCWD, swapped, 2);
    return 0;
}
static const char *place_one, *place_two;
static void *descriptor_swapper(void *unused) {
    (void)unused;
    int one = open(place_one, O_RDONLY | O_DIRECTORY), two = open(place_two, O_RDONLY | O_DIRECTORY);
    while (!swap_ends) { dup2(one, 99); dup2(two, 99); }
    return NULL;
}
static void *directory_swapper(void *unused) {
    (void)unused;
    int one = open(place_one, O_RDONLY | O_DIRECTORY), two = open(place_two, O_RDONLY | O_DIRECTORY);
    while (!swap_ends) { if (fchdir(one) || fchdir(two)) break; }
    return NULL;
}
static int swap_descriptor(void) { /* HARMLESS WANTED NAME [TEXT] */
    pthread_t thread;
    place_one = A(0); place_two = A(1);
    pthread_create(&thread, NULL, descriptor_swapper, NULL);
    usleep(2000);
    for (int i = 0; i < rounds(); i++) {
        int file = openat(99, A(2), O_WRONLY | O_CREAT | O_TRUNC, 0755);
        if (file >= 0) { put(file, payload(3)); close(file); }
    }
    return 0;
}
static int swap_working_directory(void) { /* HARMLESS WANTED NAME [TEXT] */
    pthread_t thread;
    place_one = A(0); place_two = A(1);
    pthread_create(&thread, NULL, directory_swapper, NULL);
    usleep(2000);
    for (int i = 0; i < rounds(); i++) {
        int file = open(A(2), O_WRONLY | O_CREAT | O_TRUNC, 0755);
        if (file >= 0) { put(file, payload(3)); close(file); }
    }
    return 0;
}
static int hold_and_rename(void) { /* DIRECTORY NEW SHELL-TEXT: the text runs in the directory that was opened before it was renamed */
    int held = open(A(0), O_RDONLY | O_DIRECTORY);
    if (rename(A(0), A(1))) perror("rename");
    if (fchdir(held)) return fail("fchdir");
    execl("/bin/sh", "sh", "-c", A(2), NULL);
    return 127;
}
static int swap_mode(void) { /* HARMLESS WANTED MODE */
    start_swapping(A(0), A(1));
    for (int i = 0; i < rounds(); i++) chmod(swapped, strtol(A(2), NULL, 8));
    return 0;
}
static int swap_place(void) { /* DIRECTORY HARMLESS-LINK-TARGET WANTED-TARGET NAME: a link on the way is exchanged while opening */
    char one[512], two[512], path[1024];
    snprintf(one, sizeof one, "%s.one", A(0));
    snprintf(two, sizeof two, "%s.two", A(0));
    snprintf(path, sizeof path, "%s/%s", A(0), A(3));
    if (symlink(A(1), A(0)) || symlink(A(2), two)) return fail("symlink");
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) syscall(SYS_renameat2, AT_FDCWD, A(0), AT_FDCWD, two, 2);
    }
    for (int i = 0; i < rounds(); i++) {
        int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0755);
        if (file >= 0) { put(file, payload(4)); close(file); }
    }
    return 0;
}
static int swap_unix(void) { /* OWN WANTED: an own listener's address becomes the one outside while connecting */
    int own = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    static struct sockaddr_un harmless = {.sun_family = AF_UNIX}, wanted = {.sun_family = AF_UNIX};
    strcpy(harmless.sun_path, A(0));
    strcpy(wanted.sun_path, A(1));
    if (bind(own, (struct sockaddr *)&harmless, sizeof harmless) || listen(own, 4000)) return fail("bind");
    swap_one = (char *)&harmless;
    swap_two = (char *)&wanted;
    swap_length = sizeof harmless;
    swapped = calloc(1, 4096);
    memcpy(swapped, &harmless, swap_length);
    pthread_t thread;
    pthread_create(&thread, NULL, swapper, NULL);
    for (int i = 0; i < 1000; i++) {
        int made = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        connect(made, (struct sockaddr *)swapped, sizeof harmless);
        close(made);
        int peer = accept4(own, NULL, NULL, SOCK_NONBLOCK);
        if (peer >= 0) close(peer);
    }
    return 0;
}
static int swap_tcp(void) { /* PORT: an own listener's port becomes the one outside */
    int own = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    static struct sockaddr_in harmless = {.sin_family = AF_INET}, wanted;
    harmless.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof harmless;
    if (bind(own, (struct sockaddr *)&harmless, length) || listen(own, 4000)) return fail("bind");
    getsockname(own, (struct sockaddr *)&harmless, &length);
    wanted = harmless;
    wanted.sin_port = htons(atoi(A(0)));
    swap_one = (char *)&harmless;
    swap_two = (char *)&wanted;
    swap_length = sizeof harmless;
    swapped = calloc(1, 4096);
    memcpy(swapped, &harmless, swap_length);
    pthread_t thread;
    pthread_create(&thread, NULL, swapper, NULL);
    for (int i = 0; i < 600; i++) {
        int made = socket(AF_INET, SOCK_STREAM, 0);
        connect(made, (struct sockaddr *)swapped, length);
        close(made);
        int peer = accept4(own, NULL, NULL, SOCK_NONBLOCK);
        if (peer >= 0) close(peer);
    }
    return 0;
}

/* --- sockets ---------------------------------------------------------------------------------------------------------------- */
static struct sockaddr_in loopback(const char *port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(port)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    return address;
}
static int tcp_fast(void) {
    struct sockaddr_in address = loopback(A(0));
    return sendto(socket(AF_INET, SOCK_STREAM, 0), "x", 1, MSG_FASTOPEN, (struct sockaddr *)&address, sizeof address) < 0 ? fail("sendto") : 0;
}
static int tcp_fast_connect(void) { /* TCP_FASTOPEN_CONNECT: connect only notes the address */
    struct sockaddr_in address = loopback(A(0));
    int made = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    setsockopt(made, IPPROTO_TCP, 30, &yes, sizeof yes);
    if (connect(made, (struct sockaddr *)&address, sizeof address)) return fail("connect");
    return write(made, "x", 1) == 1 ? 0 : fail("write");
}
static int tcp_multipath(void) {
    struct sockaddr_in address = loopback(A(0));
    int made = socket(AF_INET, SOCK_STREAM, IPPROTO_MPTCP);
    return connect(made, (struct sockaddr *)&address, sizeof address) ? fail("connect") : 0;
}
static int udp_message(void) {
    struct sockaddr_in address = loopback(A(0));
    struct iovec part = {"x", 1};
    struct msghdr message = {.msg_name = &address, .msg_namelen = sizeof address, .msg_iov = &part, .msg_iovlen = 1};
    return sendmsg(socket(AF_INET, SOCK_DGRAM, 0), &message, 0) < 0 ? fail("sendmsg") : 0;
}
static int udp_messages(void) {
    struct sockaddr_in address = loopback(A(0));
    struct iovec part = {"x", 1};
    struct mmsghdr message = {.msg_hdr = {.msg_name = &address, .msg_namelen = sizeof address, .msg_iov = &part, .msg_iovlen = 1}};
    return sendmmsg(socket(AF_INET, SOCK_DGRAM, 0), &message, 1, 0) < 1 ? fail("sendmmsg") : 0;
}
static int tcp_mapped(void) { /* ::ffff:127.0.0.1 */
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons(atoi(A(0)))};
    inet_pton(AF_INET6, "::ffff:127.0.0.1", &address.sin6_addr);
    return connect(socket(AF_INET6, SOCK_STREAM, 0), (struct sockaddr *)&address, sizeof address) ? fail("connect") : 0;
}
static int family_answers(void) { return socket(atoi(A(0)), atoi(A(1)), atoi(A(2))) < 0 ? fail("socket") : 0; }
static int unix_kind(void) { /* KIND PATH ('@' in front: abstract) */
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, A(1));
    size_t length = offsetof(struct sockaddr_un, sun_path) + strlen(A(1)) + (A(1)[0] != '@');
    if (A(1)[0] == '@') address.sun_path[0] = 0;
    int made = socket(AF_UNIX, atoi(A(0)), 0);
    if (connect(made, (struct sockaddr *)&address, length)) return fail("connect");
    if (write(made, "x", 1) < 0 && errno != EPIPE) return fail("write");
    char said[256];
    ssize_t got = atoi(A(0)) == SOCK_DGRAM ? 0 : read(made, said, sizeof said);
    if (got > 0) fwrite(said, 1, got, stdout);
    return 0;
}
static int unix_send_descriptor(void) { /* PATH: hands its working directory to a process outside */
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, A(0));
    char control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {"x", 1};
    struct msghdr message = {.msg_name = &address, .msg_namelen = sizeof address, .msg_iov = &part, .msg_iovlen = 1,
                             .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    *(int *)CMSG_DATA(head) = open(".", O_RDONLY);
    return sendmsg(socket(AF_UNIX, SOCK_DGRAM, 0), &message, 0) < 0 ? fail("sendmsg") : 0;
}
static int unix_bind(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, A(0));
    return bind(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&address, sizeof address) ? fail("bind") : 0;
}

/* --- other processes -------------------------------------------------------------------------------------------------------- */
static int trace(void) { /* PID ADDRESS */
    pid_t target = atoi(A(0));
    if (ptrace(PTRACE_ATTACH, target, 0, 0)) return fail("attach");
    waitpid(target, NULL, 0);
    int said = ptrace(PTRACE_POKEDATA, target, strtoul(A(1), NULL, 10), 1) ? fail("poke") : 0;
    ptrace(PTRACE_DETACH, target, 0, 0);
    return said;
}
static int seize(void) { /* PID ADDRESS */
    pid_t target = atoi(A(0));
    if (ptrace(PTRACE_SEIZE, target, 0, 0)) return fail("seize");
    if (ptrace(PTRACE_INTERRUPT, target, 0, 0)) return fail("interrupt");
    waitpid(target, NULL, 0);
    int said = ptrace(PTRACE_POKEDATA, target, strtoul(A(1), NULL, 10), 1) ? fail("poke") : 0;
    ptrace(PTRACE_DETACH, target, 0, 0);
    return said;
}
static int write_memory(void) {
    uint64_t value = 1;
    struct iovec here = {&value, 8}, there = {(void *)strtoul(A(1), NULL, 10), 8};
    return process_vm_writev(atoi(A(0)), &here, 1, &there, 1, 0) != 8 ? fail("process_vm_writev") : 0;
}
static int write_memory_file(void) {
    char name[64];
    uint64_t value = 1;
    snprintf(name, sizeof name, "/proc/%s/mem", A(0));
    return pwrite(open(name, O_RDWR), &value, 8, strtoul(A(1), NULL, 10)) != 8 ? fail("mem") : 0;
}
static int read_memory(void) { /* PID: prints the environment block found by /proc/PID/stat, read with process_vm_readv */
    char name[64], text[4096], found[8192];
    snprintf(name, sizeof name, "/proc/%s/stat", A(0));
    FILE *file = fopen(name, "r");
    if (!file || !fgets(text, sizeof text, file)) return fail("stat");
    char *field = strrchr(text, ')');
    unsigned long start = 0;
    for (int n = 2; n <= 50 && field; n++) { if (n == 50) start = strtoul(field, NULL, 10); field = strchr(field + 1, ' '); }
    struct iovec here = {found, sizeof found}, there = {(void *)start, 2000};
    ssize_t got = process_vm_readv(atoi(A(0)), &here, 1, &there, 1, 0);
    if (got <= 0) return fail("process_vm_readv");
    fwrite(found, 1, got, stdout);
    return 0;
}
static int signal_pidfd(void) {
    int file = syscall(SYS_pidfd_open, atoi(A(0)), 0);
    return syscall(SYS_pidfd_send_signal, file, SIGUSR1, NULL, 0) ? fail("pidfd_send_signal") : 0;
}
static int signal_proc(void) { /* a /proc/PID directory is a descriptor for signals, too */
    char name[64];
    snprintf(name, sizeof name, "/proc/%s", A(0));
    return syscall(SYS_pidfd_send_signal, open(name, O_RDONLY | O_DIRECTORY), SIGUSR1, NULL, 0) ? fail("pidfd_send_signal") : 0;
}
static int signal_thread(void) { return syscall(SYS_tgkill, atoi(A(0)), atoi(A(0)), SIGUSR1) ? fail("tgkill") : 0; }
static int signal_queue(void) { union sigval value = {0}; return sigqueue(atoi(A(0)), SIGUSR1, value) ? fail("sigqueue") : 0; }
static int take_descriptor(void) { /* PID EVENTS: the bystander's own descriptor for its events file */
    int file = syscall(SYS_pidfd_open, atoi(A(0)), 0);
    for (int n = 3; n < 20; n++) {
        int taken = syscall(SYS_pidfd_getfd, file, n, 0);
        if (taken >= 0 && write(taken, "taken\n", 6) == 6) return 0;
    }
    return fail("pidfd_getfd");
}
static int owner_signal(void) { /* PID: the kernel signals the owner of a pipe */
    int ends[2];
    if (pipe(ends)) return 1;
    if (fcntl(ends[0], F_SETOWN, atoi(A(0)))) return fail("F_SETOWN");
    fcntl(ends[0], F_SETSIG, SIGUSR1);
    fcntl(ends[0], F_SETFL, O_ASYNC);
    return write(ends[1], "x", 1) == 1 ? 0 : 1;
}
static int timer_signal(void) { /* PID: a timer that signals another thread */
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL | 4, .sigev_signo = SIGUSR1};
    event._sigev_un._tid = atoi(A(0));
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer)) return fail("timer_create");
    struct itimerspec soon = {.it_value = {0, 1000}};
    timer_settime(timer, 0, &soon, NULL);
    usleep(20000);
    return 0;
}
static int limit(void) { struct rlimit less = {17, 17}; return prlimit(atoi(A(0)), RLIMIT_NOFILE, &less, NULL) ? fail("prlimit") : 0; }
static int priority(void) { return setpriority(PRIO_PROCESS, atoi(A(0)), 12) ? fail("setpriority") : 0; }
static int priority_user(void) { return setpriority(PRIO_USER, getuid(), 9) ? fail("setpriority") : 0; }
static int processors(void) { cpu_set_t one; CPU_ZERO(&one); CPU_SET(0, &one); return sched_setaffinity(atoi(A(0)), sizeof one, &one) ? fail("affinity") : 0; }
static int scheduler(void) { struct sched_param none = {0}; return sched_setscheduler(atoi(A(0)), SCHED_BATCH, &none) ? fail("scheduler") : 0; }
static int disk_priority(void) { return syscall(SYS_ioprio_set, 1, atoi(A(0)), (3 << 13)) ? fail("ioprio_set") : 0; }
static int shared_memory(void) { /* SEGMENT */
    char *memory = shmat(atoi(A(0)), NULL, 0);
    if (memory == (void *)-1) return fail("shmat");
    puts(memory + 1);
    memory[0] = 1;
    return 0;
}
static int enter(void) { /* PID PATH: joins the namespaces of a process outside and writes there */
    int file = syscall(SYS_pidfd_open, atoi(A(0)), 0);
    if (syscall(SYS_setns, file, CLONE_NEWNS)) return fail("setns");
    return put(open(A(1), O_WRONLY | O_CREAT, 0644), "changed\n");
}

/* --- terminal --------------------------------------------------------------------------------------------------------------- */
static int type_into(void) { /* PATH or number */
    int file = A(0)[0] == '/' ? open(A(0), O_RDWR | O_NOCTTY) : atoi(A(0));
    for (const char *at = "true\n"; *at; at++)
        if (ioctl(file, TIOCSTI, at)) return fail("TIOCSTI");
    return 0;
}
static int type_into_high(void) { /* the kernel looks at 32 bits of the request, a filter may look at 64 */
    for (const char *at = "true\n"; *at; at++)
        if (syscall(SYS_ioctl, atoi(A(0)), TIOCSTI | 0x100000000UL, at)) return fail("TIOCSTI");
    return 0;
}
static int paste(void) { char part[] = {3}; return ioctl(0, TIOCLINUX, part) ? fail("TIOCLINUX") : 0; }

/* --- namespaces, mounts and the rest of the kernel -------------------------------------------------------------------------- */
static void map_self(void) {
    char text[64];
    int user = getuid();
    int file = open("/proc/self/setgroups", O_WRONLY);
    if (file >= 0) { put(file, "deny"); close(file); }
    file = open("/proc/self/uid_map", O_WRONLY);
    snprintf(text, sizeof text, "0 %d 1", user);
    if (file >= 0) { put(file, text); close(file); }
}
static int user_namespace(void) { return unshare(CLONE_NEWUSER) ? fail("unshare") : 0; }
static int user_namespace_clone(void) {
    pid_t child = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
    if (child == 0) _exit(0);
    return child < 0 ? fail("clone") : 0;
}
static int user_namespace_clone3(void) {
    struct { uint64_t flags, pidfd, child, parent, exit, stack, size, tls; } how = {.flags = CLONE_NEWUSER, .exit = SIGCHLD};
    pid_t child = syscall(SYS_clone3, &how, sizeof how);
    if (child == 0) _exit(0);
    return child < 0 ? fail("clone3") : 0;
}
static int remount(void) { /* DIRECTORY: in an own user namespace */
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS)) return fail("unshare");
    map_self();
    char path[4096];
    mount(A(0), A(0), NULL, MS_BIND, NULL);
    mount(NULL, A(0), NULL, MS_REMOUNT | MS_BIND, NULL);
    mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL);
    snprintf(path, sizeof path, "%s/remounted", A(0));
    return put(open(path, O_WRONLY | O_CREAT, 0644), "changed\n");
}
static int unmount(void) { /* DIRECTORY: takes away what covers it, then writes below */
    char path[4096];
    if (getuid() && unshare(CLONE_NEWUSER | CLONE_NEWNS)) return fail("unshare");
    for (int i = 0; i < 4; i++) umount2(A(0), MNT_DETACH);
    snprintf(path, sizeof path, "%s/uncovered", A(0));
    return put(open(path, O_WRONLY | O_CREAT, 0644), "changed\n");
}
static int mount_answers(void) { return mount("none", A(0), "tmpfs", 0, NULL) ? fail("mount") : (umount2(A(0), MNT_DETACH), 0); }
static int file_system_answers(void) { return syscall(SYS_fsopen, "tmpfs", 0) < 0 ? fail("fsopen") : 0; }
static int tree_answers(void) { return syscall(SYS_open_tree, AT_FDCWD, "/", 1) < 0 ? fail("open_tree") : 0; }
static int change_root(void) { /* leaves a chroot by an open directory: PATH */
    int here = open("/", O_RDONLY | O_DIRECTORY);
    if (getuid() && unshare(CLONE_NEWUSER)) return fail("unshare");
    if (chroot(".") || fchdir(here)) return fail("chroot");
    for (int i = 0; i < 64; i++) if (chdir("..")) break;
    if (chroot(".")) return fail("chroot");
    return put(open(A(0), O_WRONLY | O_CREAT, 0644), "changed\n");
}
static int key_add(void) { /* NAME TEXT into the user's keyring, and linked into the session's */
    long key = syscall(SYS_add_key, "user", A(0), A(1), strlen(A(1)), KEY_SPEC_USER_KEYRING);
    return key < 0 ? fail("add_key") : 0;
}
static int key_read(void) { /* NAME */
    long key = syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_USER_KEYRING, "user", A(0), 0);
    if (key < 0) return fail("search");
    char text[256] = {0};
    if (syscall(SYS_keyctl, KEYCTL_READ, key, text, sizeof text - 1) < 0) return fail("read");
    puts(text);
    return 0;
}
static int key_session_run(void) { /* NAME TEXT COMMAND…: a session keyring that holds the key */
    syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
    long key = syscall(SYS_add_key, "user", A(0), A(1), strlen(A(1)), KEY_SPEC_SESSION_KEYRING);
    if (key < 0) return fail("add_key");
    execvp(A(2), word + 2);
    return 127;
}
static int key_session_read(void) { /* NAME */
    char text[256] = {0};
    long key = syscall(SYS_request_key, "user", A(0), NULL, 0);
    if (key < 0 || syscall(SYS_keyctl, KEYCTL_READ, key, text, sizeof text - 1) < 0) return fail("request_key");
    puts(text);
    return 0;
}
static int key_answers(void) { return syscall(SYS_add_key, "user", "anything", "x", 1, KEY_SPEC_PROCESS_KEYRING) < 0 ? fail("add_key") : 0; }
static int bpf_answers(void) {
    union bpf_attr what = {.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
    return syscall(SYS_bpf, BPF_MAP_CREATE, &what, sizeof what) < 0 ? fail("bpf") : 0;
}
static int perf_answers(void) {
    struct perf_event_attr what = {.type = PERF_TYPE_SOFTWARE, .size = sizeof what, .config = PERF_COUNT_SW_TASK_CLOCK, .exclude_kernel = 1, .exclude_hv = 1};
    return syscall(SYS_perf_event_open, &what, 0, -1, -1, 0) < 0 ? fail("perf_event_open") : 0;
}
static int faults_answer(void) { return syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY) < 0 ? fail("userfaultfd") : 0; }
static int modules_answer(void) { /* EPERM without privilege, another error with it */
    if (syscall(SYS_init_module, "", 0, "") == 0) return 0;
    return errno == EPERM || errno == ENOSYS ? fail("init_module") : 0;
}
static int compare_answers(void) { return syscall(SYS_kcmp, getpid(), getppid(), 1, 0, 0) < 0 ? fail("kcmp") : 0; }
static int fanotify_answers(void) { return syscall(SYS_fanotify_init, 0x200, 0) < 0 ? fail("fanotify_init") : 0; }
static int clock_answers(void) { struct timespec now; clock_gettime(CLOCK_REALTIME, &now); return clock_settime(CLOCK_REALTIME, &now) ? fail("clock_settime") : 0; }
static int host_name(void) { char name[128]; gethostname(name, sizeof name); return sethostname(A(0), strlen(A(0))) ? fail("sethostname") : 0; }
static int privileges_can_grow(void) { return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0 ? 0 : 1; }
static int capabilities_held(void) { /* any of the sets that count */
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    unsigned long long all = 0, bits;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "CapEff: %llx", &bits) == 1 || sscanf(line, "CapPrm: %llx", &bits) == 1 || sscanf(line, "CapAmb: %llx", &bits) == 1) all |= bits;
    return all ? 0 : 1;
}

/* --- machines that allow less: a filter, then the command ------------------------------------------------------------------- */
#define REFUSE(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
static int filtered(struct sock_filter *steps, unsigned short count) {
    struct sock_fprog filter = {count, steps};
    if (getuid()) prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) return fail("seccomp");
    execvp(A(0), word);
    return 127;
}
static int without_namespaces(void) {
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        REFUSE(SYS_unshare), REFUSE(SYS_setns), REFUSE(SYS_mount), REFUSE(SYS_open_tree), REFUSE(SYS_move_mount),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3), BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    return filtered(steps, sizeof steps / sizeof *steps);
}
static int without_mounts(void) {
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)), REFUSE(SYS_mount), REFUSE(SYS_move_mount), REFUSE(SYS_pivot_root),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    return filtered(steps, sizeof steps / sizeof *steps);
}
static int without_listener(void) {
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_seccomp, 0, 3), BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, SECCOMP_FILTER_FLAG_NEW_LISTENER, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EBUSY),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    return filtered(steps, sizeof steps / sizeof *steps);
}

/* --- endings and limits ----------------------------------------------------------------------------------------------------- */
static int daemonise(void) { /* MARK…: double fork, own session, closed descriptors */
    if (fork()) { return 0; }
    setsid();
    if (fork()) _exit(0);
    for (int n = 0; n < 64; n++) close(n);
    for (int n = 1; n < 65; n++) signal(n, SIG_IGN);
    execlp("sleep", A(0), "600", NULL);
    _exit(1);
}
static int subreaper(void) { /* MARK */
    if (fork()) { usleep(50000); return 0; }
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    setsid();
    if (fork() == 0) { if (fork()) _exit(0); setsid(); execlp("sleep", A(0), "600", NULL); _exit(1); }
    for (int n = 1; n < 65; n++) signal(n, SIG_IGN);
    prctl(PR_SET_NAME, "reaper");
    for (;;) { sleep(100); if (getppid() < 0) break; }
    return 0;
}
static int many(void) { /* COUNT MARK: that many processes at once, for two seconds */
    int made = 0;
    for (int i = 0; i < atoi(A(0)); i++) {
        pid_t child = fork();
        if (child == 0) { execlp("sleep", A(1), "2", NULL); _exit(1); }
        made += child > 0;
    }
    printf("%d\n", made);
    fflush(stdout);
    while (wait(NULL) > 0) { }
    return 0;
}
static int hold_memory(void) { /* MIB PROCESSES: each holds its share for two seconds */
    int parts = atoi(A(1));
    for (int i = 1; i < parts; i++) if (fork() == 0) break;
    size_t size = (size_t)atoi(A(0)) / parts << 20;
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return fail("mmap");
    for (size_t at = 0; at < size; at += 1 << 20) { memset(memory + at, 1, 1 << 20); if (at % (64 << 20) == 0) usleep(10000); }
    sleep(2);
    return 0;
}

static const struct { const char *name; int (*run)(void); } tricks[] = {
    {"append", append}, {"create", create}, {"create-openat2", create_openat2}, {"create-exclusive", create_exclusive},
    {"create-below", create_below}, {"create-at-descriptor", create_at_descriptor}, {"create-after-fchdir", create_after_fchdir},
    {"write-descriptor", write_descriptor}, {"truncate", truncate_it}, {"grow", grow}, {"map-write", map_write}, {"mode", change_mode},
    {"mode-descriptor", change_mode_descriptor}, {"mode-proc", change_mode_proc}, {"mode-fchmodat2", change_mode_fchmodat2},
    {"times", change_times}, {"attribute", change_attribute}, {"owner", change_owner}, {"rename", rename_it}, {"exchange", exchange},
    {"rename-below", rename_below}, {"link", link_it}, {"link-follow", link_follow}, {"unnamed-file", unnamed_file},
    {"unnamed-file-empty-path", unnamed_file_empty_path}, {"make-device", make_device}, {"make-regular", make_regular},
    {"by-handle", by_handle}, {"guess-handle", guess_handle}, {"int80-create", int80_create}, {"int80-kill", int80_kill},
    {"int80-unix", int80_unix}, {"int80-answers", int80_answers}, {"x32-create", x32_create}, {"x32-answers", x32_answers},
    {"ring-create", ring_create}, {"ring-unix", ring_unix}, {"ring-answers", ring_answers}, {"swap-open", swap_open},
    {"swap-openat2", swap_openat2}, {"swap-flags", swap_flags}, {"swap-rename", swap_rename}, {"swap-directory", swap_directory},
    {"swap-link", swap_link}, {"swap-symlink", swap_symlink}, {"swap-mode", swap_mode}, {"swap-descriptor", swap_descriptor},
    {"swap-working-directory", swap_working_directory}, {"hold-and-rename", hold_and_rename}, {"swap-exchange", swap_exchange}, {"swap-place", swap_place},
    {"swap-unix", swap_unix}, {"swap-tcp", swap_tcp}, {"tcp-fast", tcp_fast}, {"tcp-fast-connect", tcp_fast_connect},
    {"tcp-multipath", tcp_multipath}, {"tcp-mapped", tcp_mapped}, {"udp-message", udp_message}, {"udp-messages", udp_messages},
    {"family-answers", family_answers}, {"unix-kind", unix_kind}, {"unix-send-descriptor", unix_send_descriptor}, {"unix-bind", unix_bind},
    {"trace", trace}, {"seize", seize}, {"write-memory", write_memory}, {"write-memory-file", write_memory_file},
    {"read-memory", read_memory}, {"signal-pidfd", signal_pidfd}, {"signal-proc", signal_proc}, {"signal-thread", signal_thread},
    {"signal-queue", signal_queue}, {"take-descriptor", take_descriptor}, {"owner-signal", owner_signal}, {"timer-signal", timer_signal},
    {"limit", limit}, {"priority", priority}, {"priority-user", priority_user}, {"processors", processors}, {"scheduler", scheduler},
    {"disk-priority", disk_priority}, {"shared-memory", shared_memory}, {"enter", enter}, {"type-into", type_into},
    {"type-into-high", type_into_high}, {"paste", paste}, {"user-namespace", user_namespace}, {"user-namespace-clone", user_namespace_clone},
    {"user-namespace-clone3", user_namespace_clone3}, {"remount", remount}, {"unmount", unmount}, {"mount-answers", mount_answers},
    {"file-system-answers", file_system_answers}, {"tree-answers", tree_answers}, {"change-root", change_root}, {"key-add", key_add},
    {"key-read", key_read}, {"key-session-run", key_session_run}, {"key-session-read", key_session_read}, {"key-answers", key_answers},
    {"bpf-answers", bpf_answers}, {"perf-answers", perf_answers}, {"faults-answer", faults_answer}, {"modules-answer", modules_answer},
    {"compare-answers", compare_answers}, {"fanotify-answers", fanotify_answers}, {"clock-answers", clock_answers}, {"host-name", host_name},
    {"privileges-can-grow", privileges_can_grow}, {"capabilities-held", capabilities_held}, {"daemonise", daemonise},
    {"without-namespaces", without_namespaces},
    {"without-mounts", without_mounts}, {"without-listener", without_listener}, {"subreaper", subreaper}, {"many", many}, {"hold-memory", hold_memory},
};

int main(int count, char **words) {
    if (count < 2) return 2;
    word = calloc(count + 8, sizeof *word);
    for (int i = 2; i < count; i++) word[i - 2] = words[i];
    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < sizeof tricks / sizeof *tricks; i++)
        if (strcmp(tricks[i].name, words[1]) == 0) return tricks[i].run();
    fprintf(stderr, "unknown trick %s\n", words[1]);
    return 2;
}
