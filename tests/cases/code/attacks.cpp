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

static bool runs(int flags) {
    char *words[] = {(char *)"sh", (char *)"-c", (char *)"echo BREACH", nullptr};
    int fd = open("/usr/bin/env", O_RDONLY | O_PATH);
    if (fd >= 0) dup2(fd, 3);
    return syscall(SYS_execveat, fd < 0 ? 3 : fd, "", words, environ, flags) >= 0;
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

#define TRY(name, works) \
    if (works) puts(name)

int main() {
    TRY("inherited-descriptors", has_descriptors());
    TRY("secrets", has_secrets());
    TRY("passwd", reads("/etc/passwd"));
    TRY("secret-file", reads("SECRETFILE"));
    TRY("own-environ", reads("/proc/self/environ"));
    TRY("own-memory", reads("/proc/self/mem"));
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
    TRY("fork", syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) >= 0);
    TRY("namespace", unshare(CLONE_NEWUSER) == 0);
    TRY("kill-server", kill(SERVERPID, SIGTERM) == 0);
    TRY("kill-all", kill(-1, SIGTERM) == 0);
    TRY("trace", ptrace(PTRACE_ATTACH, SERVERPID, 0, 0) == 0);
    TRY("shell", execl("/bin/sh", "sh", "-c", "echo BREACH", (char *)nullptr) == 0);
    TRY("program-by-descriptor", runs(AT_EMPTY_PATH));
    TRY("program-by-path", syscall(SYS_execveat, AT_FDCWD, "/bin/sh", nullptr, nullptr, 0) >= 0);
    TRY("memory-file", syscall(SYS_memfd_create, "x", 0) >= 0);
    TRY("io_uring", syscall(SYS_io_uring_setup, 4, nullptr) >= 0 || errno != EPERM);
    TRY("bpf", syscall(SYS_bpf, 0, nullptr, 0) >= 0);
    TRY("keyring", syscall(SYS_keyctl, 0, 0, 0, 0, 0) >= 0);
    TRY("raise-cpu", raises(RLIMIT_CPU));
    TRY("raise-memory", raises(RLIMIT_AS));
    TRY("raise-output", raises(RLIMIT_FSIZE));
    TRY("system", system("echo BREACH") == 0);
    puts("end");
    return 0;
}
