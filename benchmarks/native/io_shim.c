/* Intercepts the file operations of a process in one directory, to log them or to let one of them fail.

   Built and preloaded by benchmarks/_io_shim.py. SQLite and NumPy do their I/O in C, which Python cannot intercept. A
   record of the log is a line "operation TAB path TAB other path TAB offset TAB length NEWLINE", followed by `length`
   bytes and NEWLINE. Memory-mapped writes are not seen: SQLite maps only its -shm file, which it recreates after a
   crash. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static char root[PATH_MAX];
static size_t root_length;
static int log_file = -1;
static long calls, fail_at = -1;
static int fail_errno, fail_short, fail_sticky;

#define REAL(name) ((__typeof__(&name))real_##name())
#define DEFINE_REAL(name) \
    static void *real_##name(void) { \
        static void *function; \
        if (!function) function = dlsym(RTLD_NEXT, #name); \
        return function; \
    }
DEFINE_REAL(openat) DEFINE_REAL(write) DEFINE_REAL(read) DEFINE_REAL(pwrite64)
DEFINE_REAL(pread64) DEFINE_REAL(ftruncate64) DEFINE_REAL(fsync) DEFINE_REAL(fdatasync) DEFINE_REAL(rename)
DEFINE_REAL(unlinkat) DEFINE_REAL(mkdir) DEFINE_REAL(fwrite)

/* Functions that Python calls through ctypes. */
void io_shim_watch(const char *directory, int log) {
    strncpy(root, directory, sizeof root - 1);
    root_length = strlen(root);
    log_file = log;
    calls = 0;
}
void io_shim_fail(long at, int error, int is_short, int sticky) {
    fail_at = at;
    fail_errno = error;
    fail_short = is_short;
    fail_sticky = sticky;
}
long io_shim_calls(void) { return calls; }

static int is_watched(const char *path) {
    return root_length && strncmp(path, root, root_length) == 0 && !strstr(path, "-shm");
}
static int watched_path(int file, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    int before = errno;
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    errno = before;
    if (length < 0) return 0;
    path[length] = 0;
    return is_watched(path);
}
static void resolve(int directory, const char *name, char *path) {
    char base[PATH_MAX] = "";
    if (name[0] == '/') {
        snprintf(path, PATH_MAX, "%s", name);
        return;
    }
    if (directory == AT_FDCWD) {
        if (!getcwd(base, sizeof base)) base[0] = 0;
    } else {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
        ssize_t length = readlink(link, base, sizeof base - 1);
        base[length < 0 ? 0 : length] = 0;
    }
    snprintf(path, PATH_MAX, "%.2000s/%.2000s", base, name);
}
static void log_operation(const char *operation, const char *path, const char *other, long offset, const void *data, size_t size) {
    if (log_file < 0) return;
    char head[2 * PATH_MAX + 128];
    int length = snprintf(head, sizeof head, "%s\t%s\t%s\t%ld\t%zu\n", operation, path, other, offset, data ? size : 0);
    struct iovec parts[3] = {{head, length}, {(void *)data, data ? size : 0}, {"\n", 1}};
    int before = errno;
    if (writev(log_file, parts, 3) < 0) abort();
    errno = before;
}
/* Count a call and decide its outcome: 0 to run it, 1 to fail it, 2 to write only half of the data. */
static int next_outcome(int may_be_short) {
    calls++;
    if (fail_at < 0 || calls < fail_at || (calls > fail_at && !fail_sticky)) return 0;
    if (fail_short) return may_be_short && calls == fail_at ? 2 : 0;
    errno = fail_errno;
    return 1;
}

#define ENTER pthread_mutex_lock(&lock)
#define LEAVE(value) do { __typeof__(value) result = (value); pthread_mutex_unlock(&lock); return result; } while (0)

static int open_logged(int directory, const char *name, int flags, mode_t mode) {
    char path[PATH_MAX];
    resolve(directory, name, path);
    ENTER;
    if (!is_watched(path)) LEAVE(REAL(openat)(directory, name, flags, mode));
    if (next_outcome(0) == 1) LEAVE(-1);
    struct stat before;
    int existed = fstatat(directory, name, &before, AT_SYMLINK_NOFOLLOW) == 0;
    int file = REAL(openat)(directory, name, flags, mode);
    if (file >= 0 && !existed && (flags & O_CREAT)) log_operation("create", path, "", 0, NULL, 0);
    if (file >= 0 && existed && (flags & O_TRUNC)) log_operation("truncate", path, "", 0, NULL, 0);
    LEAVE(file);
}
#define MODE(flags) \
    mode_t mode = 0; \
    if ((flags) & (O_CREAT | O_TMPFILE)) { \
        va_list rest; \
        va_start(rest, flags); \
        mode = va_arg(rest, mode_t); \
        va_end(rest); \
    }
int open(const char *path, int flags, ...) { MODE(flags) return open_logged(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags) return open_logged(AT_FDCWD, path, flags | O_LARGEFILE, mode); }
int openat(int directory, const char *path, int flags, ...) { MODE(flags) return open_logged(directory, path, flags, mode); }
int openat64(int directory, const char *path, int flags, ...) { MODE(flags) return open_logged(directory, path, flags, mode); }

static ssize_t write_logged(int file, const void *data, size_t size, off64_t offset, int positioned) {
    char path[PATH_MAX];
    if (!watched_path(file, path)) {
        return positioned ? REAL(pwrite64)(file, data, size, offset) : REAL(write)(file, data, size);
    }
    ENTER;
    int outcome = next_outcome(size > 1);
    if (outcome == 1) LEAVE((ssize_t)-1);
    if (outcome == 2) size /= 2;
    if (!positioned) {
        struct stat status;
        offset = fcntl(file, F_GETFL) & O_APPEND && fstat(file, &status) == 0 ? status.st_size : lseek64(file, 0, SEEK_CUR);
    }
    ssize_t done = positioned ? REAL(pwrite64)(file, data, size, offset) : REAL(write)(file, data, size);
    if (done > 0) log_operation("write", path, "", offset, data, done);
    LEAVE(done);
}
ssize_t write(int file, const void *data, size_t size) { return write_logged(file, data, size, 0, 0); }
ssize_t pwrite(int file, const void *data, size_t size, off_t at) { return write_logged(file, data, size, at, 1); }
ssize_t pwrite64(int file, const void *data, size_t size, off64_t at) { return write_logged(file, data, size, at, 1); }
size_t fwrite(const void *data, size_t width, size_t count, FILE *stream) {
    char path[PATH_MAX];
    if (!watched_path(fileno(stream), path)) return REAL(fwrite)(data, width, count, stream);
    ENTER;
    if (next_outcome(0) == 1) LEAVE((size_t)0);
    fflush(stream);
    off64_t offset = lseek64(fileno(stream), 0, SEEK_CUR);
    size_t done = REAL(fwrite)(data, width, count, stream);
    fflush(stream);
    log_operation("write", path, "", offset, data, done * width);
    LEAVE(done);
}

ssize_t read(int file, void *data, size_t size) {
    char path[PATH_MAX];
    if (!watched_path(file, path)) return REAL(read)(file, data, size);
    ENTER;
    if (next_outcome(0) == 1) LEAVE((ssize_t)-1);
    LEAVE(REAL(read)(file, data, size));
}
static ssize_t pread_counted(int file, void *data, size_t size, off64_t at) {
    char path[PATH_MAX];
    if (!watched_path(file, path)) return REAL(pread64)(file, data, size, at);
    ENTER;
    if (next_outcome(0) == 1) LEAVE((ssize_t)-1);
    LEAVE(REAL(pread64)(file, data, size, at));
}
ssize_t pread(int file, void *data, size_t size, off_t at) { return pread_counted(file, data, size, at); }
ssize_t pread64(int file, void *data, size_t size, off64_t at) { return pread_counted(file, data, size, at); }

static int truncate_logged(int file, off64_t size) {
    char path[PATH_MAX];
    if (!watched_path(file, path)) return REAL(ftruncate64)(file, size);
    ENTER;
    if (next_outcome(0) == 1) LEAVE(-1);
    int done = REAL(ftruncate64)(file, size);
    if (done == 0) log_operation("truncate", path, "", size, NULL, 0);
    LEAVE(done);
}
int ftruncate(int file, off_t size) { return truncate_logged(file, size); }
int ftruncate64(int file, off64_t size) { return truncate_logged(file, size); }

#define FLUSH(name) \
    int name(int file) { \
        char path[PATH_MAX]; \
        if (!watched_path(file, path)) return REAL(name)(file); \
        ENTER; \
        if (next_outcome(0) == 1) LEAVE(-1); \
        int done = REAL(name)(file); \
        if (done == 0) log_operation("flush", path, "", 0, NULL, 0); \
        LEAVE(done); \
    }
FLUSH(fsync)
FLUSH(fdatasync)

static int rename_logged(int from_directory, const char *from, int to_directory, const char *to) {
    char old[PATH_MAX], new[PATH_MAX];
    resolve(from_directory, from, old);
    resolve(to_directory, to, new);
    ENTER;
    if (!is_watched(old) && !is_watched(new)) LEAVE(REAL(rename)(old, new));
    if (next_outcome(0) == 1) LEAVE(-1);
    int done = REAL(rename)(old, new);
    if (done == 0) log_operation("rename", old, new, 0, NULL, 0);
    LEAVE(done);
}
int rename(const char *from, const char *to) { return rename_logged(AT_FDCWD, from, AT_FDCWD, to); }
int renameat(int a, const char *from, int b, const char *to) { return rename_logged(a, from, b, to); }

static int remove_logged(int directory, const char *name, int flags) {
    char path[PATH_MAX];
    resolve(directory, name, path);
    ENTER;
    if (!is_watched(path)) LEAVE(REAL(unlinkat)(directory, name, flags));
    if (next_outcome(0) == 1) LEAVE(-1);
    int done = REAL(unlinkat)(directory, name, flags);
    if (done == 0) log_operation("remove", path, "", 0, NULL, 0);
    LEAVE(done);
}
int unlink(const char *name) { return remove_logged(AT_FDCWD, name, 0); }
int rmdir(const char *name) { return remove_logged(AT_FDCWD, name, AT_REMOVEDIR); }
int unlinkat(int directory, const char *name, int flags) { return remove_logged(directory, name, flags); }

static int mkdir_logged(int directory, const char *name, mode_t mode) {
    char path[PATH_MAX];
    resolve(directory, name, path);
    ENTER;
    if (!is_watched(path)) LEAVE(REAL(mkdir)(path, mode));
    if (next_outcome(0) == 1) LEAVE(-1);
    int done = REAL(mkdir)(path, mode);
    if (done == 0) log_operation("mkdir", path, "", 0, NULL, 0);
    LEAVE(done);
}
int mkdir(const char *name, mode_t mode) { return mkdir_logged(AT_FDCWD, name, mode); }
int mkdirat(int directory, const char *name, mode_t mode) { return mkdir_logged(directory, name, mode); }
