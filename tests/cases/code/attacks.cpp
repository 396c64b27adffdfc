// Tries what a confined program may not do, and prints the name of each attempt that works; then `end`.
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

extern char **environ;

static bool reads(const char *path) {
    char text[64];
    int fd = open(path, O_RDONLY);
    return fd >= 0 && read(fd, text, sizeof text) > 0;
}

static bool writes(const char *path) { return open(path, O_WRONLY | O_CREAT, 0666) >= 0; }

// Whether a program that replaces this one runs; it is tried in a child where there may be one.
template <class F>
static bool executes(F replace) {
    int status = 1;
    pid_t child = fork();
    if (child <= 0) replace();
    if (child == 0) _exit(1);
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static bool starts() {
    pid_t child = fork();
    if (child == 0) _exit(0);
    return child > 0;
}

static void run_descriptor(int number) {
    char *words[] = {(char *)"sh", (char *)"-c", (char *)"true", nullptr};
    dup2(open("/bin/sh", O_RDONLY), number);
    syscall(SYS_execveat, number, "", words, environ, AT_EMPTY_PATH);
}

static void run_path() {
    char *words[] = {(char *)"sh", (char *)"-c", (char *)"true", nullptr};
    syscall(SYS_execveat, AT_FDCWD, "/bin/sh", words, environ, 0);
}

static bool reaches(int kind, int port) {
    int fd = socket(AF_INET, kind, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return fd >= 0 && connect(fd, (sockaddr *)&to, sizeof to) == 0;
}

static bool has_descriptors() {
    for (int fd = 3; fd < 1024; fd++)
        if (fcntl(fd, F_GETFD) >= 0) return true;
    return false;
}

static bool has_secrets() {
    for (char **one = environ; *one; one++)
        if (strstr(*one, "SECRET") || strstr(*one, "KEY") || strstr(*one, "REWARD")) return true;
    return false;
}

static bool raises(int limit) {
    rlimit all{RLIM_INFINITY, RLIM_INFINITY};
    return setrlimit((__rlimit_resource)limit, &all) == 0;
}

static bool lowers(int limit) {
    rlimit none{1, 1};
    return setrlimit((__rlimit_resource)limit, &none) == 0 || syscall(SYS_setrlimit, limit, &none) == 0;
}

static bool sets_timer(int signal) {
    sigevent event{};
    timer_t timer;
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = signal;
    return timer_create(CLOCK_MONOTONIC, &event, &timer) == 0;
}

#define TRY(name, works) \
    if (works) puts(name)

int main() {
    setvbuf(stdout, nullptr, _IONBF, 0);
    TRY("inherited-descriptors", has_descriptors());
    TRY("secrets", has_secrets());
    TRY("passwd", reads("/etc/passwd"));
    TRY("secret-file", reads("SECRETFILE"));
    TRY("own-environ", reads("/proc/self/environ"));
    TRY("own-memory", open("/proc/self/mem", O_RDONLY) >= 0);
    TRY("server-environ", reads("/proc/SERVERPID/environ"));
    TRY("list-root", opendir("/") != nullptr);
    TRY("list-tmp", opendir("/tmp") != nullptr);
    TRY("list-proc", opendir("/proc") != nullptr);
    TRY("write-tmp", writes("/tmp/probe-breach-w"));
    TRY("write-shm", writes("/dev/shm/probe-breach"));
    TRY("write-here", writes("probe-breach"));
    TRY("make-folder", mkdir("/tmp/probe-breach-d", 0777) == 0);
    TRY("change-mode", chmod("SECRETFILE", 0777) == 0);
    TRY("tcp", reaches(SOCK_STREAM, PORT));
    TRY("udp", reaches(SOCK_DGRAM, UPORT));
    TRY("unix-datagrams", socket(AF_UNIX, SOCK_DGRAM, 0) >= 0);
    TRY("fork", starts());
    TRY("namespace", unshare(CLONE_NEWUSER) == 0);
    TRY("kill-server", kill(SERVERPID, SIGTERM) == 0);
    TRY("shell", executes([] { execl("/bin/sh", "sh", "-c", "true", (char *)nullptr); }));
    TRY("program-by-own-descriptor", executes([] { run_descriptor(3); }));
    TRY("program-by-other-descriptor", executes([] { run_descriptor(4); }));
    TRY("program-by-path", executes(run_path));
    TRY("memory-file", syscall(SYS_memfd_create, "x", 0) >= 0);
    TRY("io_uring", syscall(SYS_io_uring_setup, 4, nullptr) >= 0 || errno != EPERM);
    TRY("keyring", syscall(SYS_keyctl, 0, -3, 1, 0, 0) >= 0);
    TRY("raise-cpu", raises(RLIMIT_CPU));
    TRY("raise-memory", raises(RLIMIT_AS));
    TRY("raise-output", raises(RLIMIT_FSIZE));
    TRY("lower-cpu", lowers(RLIMIT_CPU));
    TRY("lower-real-time-cpu", lowers(RLIMIT_RTTIME));
    TRY("timer", sets_timer(SIGKILL));
    TRY("system", system("echo BREACH") == 0);
    TRY("trace", ptrace(PTRACE_TRACEME, 0, 0, 0) == 0);
    TRY("kill-all", kill(-1, SIGTERM) == 0);
    puts("end");
    return 0;
}
