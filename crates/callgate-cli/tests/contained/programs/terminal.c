/* Runs a command in a real terminal of its own and notes whether anything was typed into that terminal from inside.
 *
 *   terminal EVENTS ROWS COLUMNS COMMAND ARGS…
 *
 * What the command prints is passed on; its exit code becomes the exit code. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <utmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **words) {
    if (count < 5) return 2;
    struct winsize size = {.ws_row = atoi(words[2]), .ws_col = atoi(words[3])};
    struct termios mode;
    memset(&mode, 0, sizeof mode);
    mode.c_oflag = 0;
    mode.c_cflag = CS8 | CREAD;
    mode.c_lflag = ISIG; /* no echo, no line editing: typed characters stay in the queue */
    mode.c_cc[VMIN] = 1;
    mode.c_cc[VINTR] = 3;
    int master, slave;
    if (openpty(&master, &slave, NULL, &mode, &size) != 0) return 3;
    pid_t child = fork();
    if (child == 0) {
        close(master);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (login_tty(slave) != 0) _exit(126);
        execvp(words[4], words + 4);
        _exit(127);
    }
    int status = 0, ended = 0;
    char buffer[8192];
    for (;;) {
        struct pollfd polled = {.fd = master, .events = POLLIN};
        if (poll(&polled, 1, 20) > 0 && polled.revents & POLLIN) {
            ssize_t got = read(master, buffer, sizeof buffer);
            if (got > 0 && write(1, buffer, got) != got) return 4;
            if (got > 0) continue;
        }
        if (ended) break;
        if (waitpid(child, &status, WNOHANG) == child) ended = 1;
    }
    int waiting = 0;
    if (ioctl(slave, FIONREAD, &waiting) == 0 && waiting > 0) {
        FILE *events = fopen(words[1], "a");
        if (events) { fprintf(events, "typed into the terminal\n"); fclose(events); }
    }
    if (WIFSIGNALED(status)) return 128 + WTERMSIG(status);
    return WEXITSTATUS(status);
}
