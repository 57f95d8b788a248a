/* Sees every file operation of a process under one directory: to log it, or to let one of them fail.

   Built and preloaded by benchmarks/_io_shim.py. SQLite and NumPy do their I/O in C, so nothing in Python could see it.
   A record of the log is a line "operation TAB path TAB other path TAB offset TAB length NEWLINE", then so many bytes,
   then NEWLINE. Memory-mapped writes are not seen: SQLite maps its -shm file only, which it makes anew after a crash. */
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
        static void *found; \
        if (!found) found = dlsym(RTLD_NEXT, #name); \
        return found; \
    }
DEFINE_REAL(openat) DEFINE_REAL(write) DEFINE_REAL(read) DEFINE_REAL(pwrite64)
DEFINE_REAL(pread64) DEFINE_REAL(ftruncate64) DEFINE_REAL(fsync) DEFINE_REAL(fdatasync) DEFINE_REAL(rename)
DEFINE_REAL(unlinkat) DEFINE_REAL(mkdir) DEFINE_REAL(fwrite)

/* What Python calls through ctypes. */
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

static int watched(const char *path) {
    return root_length && strncmp(path, root, root_length) == 0 && !strstr(path, "-shm");
}
static int path_of(int file, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    int before = errno;
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    errno = before;
    if (length < 0) return 0;
    path[length] = 0;
    return watched(path);
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
static void note(const char *operation, const char *path, const char *other, long offset, const void *data, size_t size) {
    if (log_file < 0) return;
    char head[2 * PATH_MAX + 128];
    int length = snprintf(head, sizeof head, "%s\t%s\t%s\t%ld\t%zu\n", operation, path, other, offset, data ? size : 0);
    struct iovec parts[3] = {{head, length}, {(void *)data, data ? size : 0}, {"\n", 1}};
    int before = errno;
    if (writev(log_file, parts, 3) < 0) abort();
    errno = before;
}
/* Whether this call is the one to fail; a short one writes half of what it was asked for. */
static int fails(int may_be_short) {
    calls++;
    if (fail_at < 0 || calls < fail_at || (calls > fail_at && !fail_sticky)) return 0;
    if (fail_short) return may_be_short && calls == fail_at ? 2 : 0;
    errno = fail_errno;
    return 1;
}

#define ENTER pthread_mutex_lock(&lock)
#define LEAVE(value) do { __typeof__(value) result = (value); pthread_mutex_unlock(&lock); return result; } while (0)

static int opened(int directory, const char *name, int flags, mode_t mode) {
    char path[PATH_MAX];
    resolve(directory, name, path);
    ENTER;
    if (!watched(path)) LEAVE(REAL(openat)(directory, name, flags, mode));
    if (fails(0) == 1) LEAVE(-1);
    struct stat before;
    int existed = fstatat(directory, name, &before, AT_SYMLINK_NOFOLLOW) == 0;
    int file = REAL(openat)(directory, name, flags, mode);
    if (file >= 0 && !existed && (flags & O_CREAT)) note("create", path, "", 0, NULL, 0);
    if (file >= 0 && existed && (flags & O_TRUNC)) note("truncate", path, "", 0, NULL, 0);
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
int open(const char *path, int flags, ...) { MODE(flags) return opened(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags) return opened(AT_FDCWD, path, flags | O_LARGEFILE, mode); }
int openat(int directory, const char *path, int flags, ...) { MODE(flags) return opened(directory, path, flags, mode); }
int openat64(int directory, const char *path, int flags, ...) { MODE(flags) return opened(directory, path, flags, mode); }

static ssize_t written(int file, const void *data, size_t size, off64_t offset, int positioned) {
    char path[PATH_MAX];
    if (!path_of(file, path)) {
        return positioned ? REAL(pwrite64)(file, data, size, offset) : REAL(write)(file, data, size);
    }
    ENTER;
    int failing = fails(size > 1);
    if (failing == 1) LEAVE((ssize_t)-1);
    if (failing == 2) size /= 2;
    if (!positioned) {
        struct stat found;
        offset = fcntl(file, F_GETFL) & O_APPEND && fstat(file, &found) == 0 ? found.st_size : lseek64(file, 0, SEEK_CUR);
    }
    ssize_t done = positioned ? REAL(pwrite64)(file, data, size, offset) : REAL(write)(file, data, size);
    if (done > 0) note("write", path, "", offset, data, done);
    LEAVE(done);
}
ssize_t write(int file, const void *data, size_t size) { return written(file, data, size, 0, 0); }
ssize_t pwrite(int file, const void *data, size_t size, off_t at) { return written(file, data, size, at, 1); }
ssize_t pwrite64(int file, const void *data, size_t size, off64_t at) { return written(file, data, size, at, 1); }
size_t fwrite(const void *data, size_t width, size_t count, FILE *stream) {
    char path[PATH_MAX];
    if (!path_of(fileno(stream), path)) return REAL(fwrite)(data, width, count, stream);
    ENTER;
    if (fails(0) == 1) LEAVE((size_t)0);
    fflush(stream);
    off64_t offset = lseek64(fileno(stream), 0, SEEK_CUR);
    size_t done = REAL(fwrite)(data, width, count, stream);
    fflush(stream);
    note("write", path, "", offset, data, done * width);
    LEAVE(done);
}

ssize_t read(int file, void *data, size_t size) {
    char path[PATH_MAX];
    if (!path_of(file, path)) return REAL(read)(file, data, size);
    ENTER;
    if (fails(0) == 1) LEAVE((ssize_t)-1);
    LEAVE(REAL(read)(file, data, size));
}
static ssize_t pread_at(int file, void *data, size_t size, off64_t at) {
    char path[PATH_MAX];
    if (!path_of(file, path)) return REAL(pread64)(file, data, size, at);
    ENTER;
    if (fails(0) == 1) LEAVE((ssize_t)-1);
    LEAVE(REAL(pread64)(file, data, size, at));
}
ssize_t pread(int file, void *data, size_t size, off_t at) { return pread_at(file, data, size, at); }
ssize_t pread64(int file, void *data, size_t size, off64_t at) { return pread_at(file, data, size, at); }

static int truncated(int file, off64_t size) {
    char path[PATH_MAX];
    if (!path_of(file, path)) return REAL(ftruncate64)(file, size);
    ENTER;
    if (fails(0) == 1) LEAVE(-1);
    int done = REAL(ftruncate64)(file, size);
    if (done == 0) note("truncate", path, "", size, NULL, 0);
    LEAVE(done);
}
int ftruncate(int file, off_t size) { return truncated(file, size); }
int ftruncate64(int file, off64_t size) { return truncated(file, size); }

#define FLUSH(name) \
    int name(int file) { \
        char path[PATH_MAX]; \
        if (!path_of(file, path)) return REAL(name)(file); \
        ENTER; \
        if (fails(0) == 1) LEAVE(-1); \
        int done = REAL(name)(file); \
        if (done == 0) note("flush", path, "", 0, NULL, 0); \
        LEAVE(done); \
    }
FLUSH(fsync)
FLUSH(fdatasync)

static int renamed(int from_directory, const char *from, int to_directory, const char *to) {
    char old[PATH_MAX], new[PATH_MAX];
    resolve(from_directory, from, old);
    resolve(to_directory, to, new);
    ENTER;
    if (!watched(old) && !watched(new)) LEAVE(REAL(rename)(old, new));
    if (fails(0) == 1) LEAVE(-1);
    int done = REAL(rename)(old, new);
    if (done == 0) note("rename", old, new, 0, NULL, 0);
    LEAVE(done);
}
int rename(const char *from, const char *to) { return renamed(AT_FDCWD, from, AT_FDCWD, to); }
int renameat(int a, const char *from, int b, const char *to) { return renamed(a, from, b, to); }

static int removed(int directory, const char *name, int flags) {
    char path[PATH_MAX];
    resolve(directory, name, path);
    ENTER;
    if (!watched(path)) LEAVE(REAL(unlinkat)(directory, name, flags));
    if (fails(0) == 1) LEAVE(-1);
    int done = REAL(unlinkat)(directory, name, flags);
    if (done == 0) note("remove", path, "", 0, NULL, 0);
    LEAVE(done);
}
int unlink(const char *name) { return removed(AT_FDCWD, name, 0); }
int rmdir(const char *name) { return removed(AT_FDCWD, name, AT_REMOVEDIR); }
int unlinkat(int directory, const char *name, int flags) { return removed(directory, name, flags); }

static int made(int directory, const char *name, mode_t mode) {
    char path[PATH_MAX];
    resolve(directory, name, path);
    ENTER;
    if (!watched(path)) LEAVE(REAL(mkdir)(path, mode));
    if (fails(0) == 1) LEAVE(-1);
    int done = REAL(mkdir)(path, mode);
    if (done == 0) note("mkdir", path, "", 0, NULL, 0);
    LEAVE(done);
}
int mkdir(const char *name, mode_t mode) { return made(AT_FDCWD, name, mode); }
int mkdirat(int directory, const char *name, mode_t mode) { return made(directory, name, mode); }
