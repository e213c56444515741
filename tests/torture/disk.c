#include "disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/rand.h"

/* The program's own definitions come before the C library's, also for RocksDB's calls. */
#define INTERPOSED __attribute__((visibility("default")))

enum {
	MAX_FILES = 8192, /* made or synced by one process */
	FD_PATH_BYTES = 40,
	MAX_FAULTS = 3,
	SECTOR_BYTES = 512, /* which a power cut leaves as they were, or written */
};

struct file {
	ino_t inode;
	off_t synced;
	bool named; /* its directory has been synced since it was made */
	/*
	 * What has been written over since the last sync, as it was. One piece: when a write begins
	 * elsewhere, the piece before it is forgotten, and counts as written.
	 */
	off_t over_at;
	size_t over_len;
	char *over;
};

/* An order to fail; none while `count` is 0. */
struct fault {
	enum disk_file file;
	enum disk_op op;
	int error;
	uint32_t count;
};

static struct {
	atomic_bool watching;
	char dir[PATH_MAX];
	size_t dir_len;

	/* Operations hold it for reading; the end of the process keeps it. */
	pthread_rwlock_t gate;

	pthread_mutex_t lock; /* of all below */
	struct file files[MAX_FILES];
	int file_count;

	bool ends;
	struct disk_point end_at;
	uint32_t end_after;
	bool power_cut;
	uint64_t seed;

	struct fault faults[MAX_FAULTS];
	/* Of any operation on any file: how many pass before, how many fail, and how. */
	uint32_t any_after;
	uint32_t any_count;
	int any_error;
	uint32_t any_ends_after; /* 0: the process is not ended */
	uint32_t failures;
} disk = {
	.gate = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

static void
give_up(const char *why)
{
	fprintf(stderr, "disk: %s\n", why);
	abort();
}

/* ---- Files ---- */

static bool
ends_with(const char *text, const char *end)
{
	size_t n = strlen(text);
	size_t m = strlen(end);

	return n >= m && strcmp(text + n - m, end) == 0;
}

/* False when the path is not in the directory watched. */
static bool
classify(const char *path, enum disk_file *ret)
{
	const char *name;
	bool watched;

	pthread_mutex_lock(&disk.lock);
	watched = strncmp(path, disk.dir, disk.dir_len) == 0 && path[disk.dir_len] == '/';
	name = path + disk.dir_len + 1;
	pthread_mutex_unlock(&disk.lock);
	if (!watched)
		return false;
	if (ends_with(name, ".log"))
		*ret = DISK_LOG;
	else if (ends_with(name, ".sst"))
		*ret = DISK_TABLE;
	else if (strncmp(name, "MANIFEST", strlen("MANIFEST")) == 0)
		*ret = DISK_MANIFEST;
	else if (strcmp(name, "CURRENT") == 0)
		*ret = DISK_CURRENT;
	else if (strcmp(name, "LOG") == 0)
		*ret = DISK_INFO_LOG;
	else
		*ret = DISK_FILES;
	return true;
}

static bool
classify_fd(int fd, enum disk_file *ret)
{
	char link[FD_PATH_BYTES];
	char path[PATH_MAX];
	ssize_t n;

	if (!atomic_load_explicit(&disk.watching, memory_order_acquire))
		return false;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n < 0)
		return false;
	path[n] = '\0';
	return classify(path, ret);
}

/* With the lock held. */
static struct file *
file_of(ino_t inode)
{
	for (int i = 0; i < disk.file_count; i++)
		if (disk.files[i].inode == inode)
			return &disk.files[i];
	if (disk.file_count == MAX_FILES)
		give_up("too many files");
	disk.files[disk.file_count] = (struct file){ .inode = inode };
	return &disk.files[disk.file_count++];
}

/* The file is gone: another one may get its number. */
static void
forget(ino_t inode)
{
	pthread_mutex_lock(&disk.lock);
	free(file_of(inode)->over);
	*file_of(inode) = disk.files[disk.file_count - 1];
	disk.file_count--;
	pthread_mutex_unlock(&disk.lock);
}

/* Calls `fn` for every regular file of the directory, with the lock held. */
static void
for_each_file(void (*fn)(int dir, const char *name, const struct stat *st))
{
	DIR *dir = opendir(disk.dir);
	const struct dirent *entry;
	struct stat st;

	if (!dir)
		return;
	while ((entry = readdir(dir)))
		if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode))
			fn(dirfd(dir), entry->d_name, &st);
	closedir(dir);
}

static void
note_present(int dir, const char *name, const struct stat *st)
{
	struct file *f = file_of(st->st_ino);

	(void)dir;
	(void)name;
	f->synced = st->st_size;
	f->named = true;
}

static void
note_named(int dir, const char *name, const struct stat *st)
{
	(void)dir;
	(void)name;
	file_of(st->st_ino)->named = true;
}

/* Remembers the synced bytes that a write of `n` bytes at the file's place is about to replace. */
static void
note_over(int fd, size_t n)
{
	off_t at = lseek(fd, 0, SEEK_CUR);
	char link[FD_PATH_BYTES];
	struct stat st;
	struct file *f;
	off_t synced;
	long to_read;

	/* RocksDB's descriptor is for writing only. */
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	to_read = syscall(SYS_openat, AT_FDCWD, link, O_RDONLY | O_CLOEXEC);
	pthread_mutex_lock(&disk.lock);
	if (at < 0 || to_read < 0 || fstat(fd, &st) != 0)
		give_up("a file cannot be looked at");
	f = file_of(st.st_ino);
	/* A new file may have the number of one that is being removed. */
	synced = f->synced < st.st_size ? f->synced : st.st_size;
	if (f->over_len && at != f->over_at + (off_t)f->over_len)
		f->over_len = 0;
	if (at < synced && n) {
		if ((off_t)n > synced - at)
			n = (size_t)(synced - at);
		if (!f->over_len)
			f->over_at = at;
		f->over = realloc(f->over, f->over_len + n);
		if (!f->over ||
		    syscall(SYS_pread64, to_read, f->over + f->over_len, n, at) != (long)n)
			give_up("a file cannot be read");
		f->over_len += n;
	}
	pthread_mutex_unlock(&disk.lock);
	close((int)to_read);
}

/* ---- The end ---- */

/* Takes back some sectors, or all, of what was written over and not synced. */
static void
lose_over(int fd, const struct file *f, struct rand_seq *rand)
{
	bool all = rand_seq_below(rand, 3) == 0;
	size_t n;

	for (size_t at = 0; at < f->over_len; at += n) {
		n = SECTOR_BYTES - (size_t)(f->over_at + (off_t)at) % SECTOR_BYTES;
		if (n > f->over_len - at)
			n = f->over_len - at;
		if ((all || rand_seq_below(rand, 2)) &&
		    syscall(SYS_pwrite64, fd, f->over + at, n, f->over_at + (off_t)at) != (long)n)
			give_up("a sector cannot be taken back");
	}
}

/* What the power cut leaves of one file. */
static void
lose(int dir, const char *name, const struct stat *st)
{
	struct file *f = file_of(st->st_ino);
	struct rand_seq rand = { disk.seed + st->st_ino };
	bool expendable = ends_with(name, ".log") || ends_with(name, ".sst");
	off_t kept = f->synced;
	int fd;

	if (!f->named && expendable && rand_seq_below(&rand, 2) == 0) {
		syscall(SYS_unlinkat, dir, name, 0);
		return;
	}
	/* The information log is never synced, and nobody needs it. */
	if (strncmp(name, "LOG", 3) == 0 || (st->st_size <= f->synced && !f->over_len))
		return;
	fd = openat(dir, name, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		give_up("a file cannot be opened");
	if (f->over_len && rand_seq_below(&rand, 4))
		lose_over(fd, f, &rand);
	if (st->st_size > f->synced) {
		if (rand_seq_below(&rand, 2) == 0)
			kept += (off_t)rand_seq_below(&rand,
						      (uint64_t)(st->st_size - f->synced) + 1);
		if (syscall(SYS_ftruncate, fd, kept) != 0)
			give_up("a file cannot be cut");
	}
	close(fd);
}

_Noreturn void
disk_end(bool power_cut, uint64_t seed)
{
	pthread_rwlock_wrlock(&disk.gate);
	pthread_mutex_lock(&disk.lock);
	disk.seed = seed;
	if (power_cut)
		for_each_file(lose);
	kill(getpid(), SIGKILL);
	for (;;)
		pause();
}

static void
reach(enum disk_file file, enum disk_op op, enum disk_moment moment)
{
	bool end;

	pthread_mutex_lock(&disk.lock);
	end = disk.ends && disk.end_at.file == file && disk.end_at.op == op &&
	      disk.end_at.moment == moment && --disk.end_after == 0;
	pthread_mutex_unlock(&disk.lock);
	if (end)
		disk_end(disk.power_cut, disk.seed);
}

static bool
ends_halfway(enum disk_file file)
{
	bool end;

	pthread_mutex_lock(&disk.lock);
	end = disk.ends && disk.end_at.file == file && disk.end_at.moment == DISK_HALFWAY &&
	      disk.end_after == 1;
	pthread_mutex_unlock(&disk.lock);
	return end;
}

/* With the lock held: the same for what disk_fail_at() has ordered. */
static bool
refuse_any(void)
{
	if (!disk.any_count)
		return false;
	if (disk.any_after) {
		disk.any_after--;
		return false;
	}
	if (disk.any_count != UINT32_MAX)
		disk.any_count--;
	disk.failures++;
	errno = disk.any_error;
	return true;
}

/* True, with errno set, if the operation is to fail. */
static bool
refuse(enum disk_file file, enum disk_op op)
{
	bool fail = false;
	bool end = false;

	pthread_mutex_lock(&disk.lock);
	if (op != DISK_READ) {
		end = disk.any_ends_after && --disk.any_ends_after == 0;
		fail = refuse_any();
	}
	for (size_t i = 0; i < MAX_FAULTS && !fail; i++) {
		struct fault *f = &disk.faults[i];

		fail = f->count && f->file == file && f->op == op;
		if (!fail)
			continue;
		if (f->count != UINT32_MAX)
			f->count--;
		disk.failures++;
		errno = f->error;
	}
	pthread_mutex_unlock(&disk.lock);
	if (end)
		disk_end(false, 0);
	return fail;
}

/* ---- Orders ---- */

void
disk_watch(const char *dir)
{
	pthread_mutex_lock(&disk.lock);
	if (!realpath(dir, disk.dir))
		give_up("no such directory");
	disk.dir_len = strlen(disk.dir);
	for (int i = 0; i < disk.file_count; i++)
		free(disk.files[i].over);
	disk.file_count = 0;
	disk.ends = false;
	memset(disk.faults, 0, sizeof(disk.faults));
	disk.any_count = 0;
	disk.any_ends_after = 0;
	disk.failures = 0;
	for_each_file(note_present);
	pthread_mutex_unlock(&disk.lock);
	atomic_store_explicit(&disk.watching, true, memory_order_release);
}

void
disk_unwatch(void)
{
	atomic_store_explicit(&disk.watching, false, memory_order_release);
}

void
disk_end_at(struct disk_point point, uint32_t nth, bool power_cut, uint64_t seed)
{
	pthread_mutex_lock(&disk.lock);
	disk.ends = true;
	disk.end_at = point;
	disk.end_after = nth;
	disk.power_cut = power_cut;
	disk.seed = seed;
	pthread_mutex_unlock(&disk.lock);
}

static void
set_fault(size_t i, struct fault fault)
{
	pthread_mutex_lock(&disk.lock);
	disk.faults[i] = fault;
	pthread_mutex_unlock(&disk.lock);
}

void
disk_fail(enum disk_file file, enum disk_op op, int error, uint32_t count)
{
	set_fault(0, (struct fault){ file, op, error, count });
}

void
disk_fail_also(enum disk_file file, enum disk_op op, int error, uint32_t count)
{
	size_t i = 1;

	pthread_mutex_lock(&disk.lock);
	while (i < MAX_FAULTS && disk.faults[i].count)
		i++;
	pthread_mutex_unlock(&disk.lock);
	if (i == MAX_FAULTS)
		give_up("too many faults");
	set_fault(i, (struct fault){ file, op, error, count });
}

void
disk_fail_at(uint32_t nth, int error, uint32_t count)
{
	pthread_mutex_lock(&disk.lock);
	disk.any_after = nth ? nth - 1 : 0;
	disk.any_count = nth ? count : 0;
	disk.any_error = error;
	pthread_mutex_unlock(&disk.lock);
}

void
disk_end_at_operation(uint32_t nth)
{
	pthread_mutex_lock(&disk.lock);
	disk.any_ends_after = nth;
	pthread_mutex_unlock(&disk.lock);
}

uint32_t
disk_failures(void)
{
	uint32_t n;

	pthread_mutex_lock(&disk.lock);
	n = disk.failures;
	pthread_mutex_unlock(&disk.lock);
	return n;
}

/* ---- In place of the C library's ---- */

INTERPOSED ssize_t
write(int fd, const void *bytes, size_t n)
{
	enum disk_file file;
	ssize_t done;
	size_t part = n;

	if (!classify_fd(fd, &file))
		return syscall(SYS_write, fd, bytes, n);
	if (refuse(file, DISK_WRITE))
		return -1;
	reach(file, DISK_WRITE, DISK_BEFORE);
	if (ends_halfway(file))
		part = n / 2;
	pthread_rwlock_rdlock(&disk.gate);
	if (file == DISK_LOG)
		note_over(fd, part);
	done = syscall(SYS_write, fd, bytes, part);
	pthread_rwlock_unlock(&disk.gate);
	reach(file, DISK_WRITE, DISK_HALFWAY);
	reach(file, DISK_WRITE, DISK_AFTER);
	return done;
}

static int
sync_directory(int fd)
{
	int result;

	pthread_rwlock_rdlock(&disk.gate);
	result = (int)syscall(SYS_fsync, fd);
	if (result == 0) {
		pthread_mutex_lock(&disk.lock);
		for_each_file(note_named);
		pthread_mutex_unlock(&disk.lock);
	}
	pthread_rwlock_unlock(&disk.gate);
	return result;
}

static int
sync_file(int fd, long call)
{
	enum disk_file file;
	struct stat st;
	int result;

	if (!atomic_load_explicit(&disk.watching, memory_order_acquire))
		return (int)syscall(call, fd);
	if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
		return sync_directory(fd);
	if (!classify_fd(fd, &file))
		return (int)syscall(call, fd);
	if (refuse(file, DISK_SYNC))
		return -1;
	reach(file, DISK_SYNC, DISK_BEFORE);
	pthread_rwlock_rdlock(&disk.gate);
	result = fstat(fd, &st) == 0 ? (int)syscall(call, fd) : -1;
	if (result == 0) {
		pthread_mutex_lock(&disk.lock);
		file_of(st.st_ino)->synced = st.st_size;
		free(file_of(st.st_ino)->over);
		file_of(st.st_ino)->over = NULL;
		file_of(st.st_ino)->over_len = 0;
		pthread_mutex_unlock(&disk.lock);
	}
	pthread_rwlock_unlock(&disk.gate);
	reach(file, DISK_SYNC, DISK_AFTER);
	return result;
}

INTERPOSED int
fdatasync(int fd)
{
	return sync_file(fd, SYS_fdatasync);
}

INTERPOSED int
fsync(int fd)
{
	return sync_file(fd, SYS_fsync);
}

INTERPOSED int
rename(const char *from, const char *to)
{
	bool watching = atomic_load_explicit(&disk.watching, memory_order_acquire);
	enum disk_file file;
	struct stat old;
	bool replaces;
	int result;

	if (!watching || !classify(to, &file))
		return (int)syscall(SYS_rename, from, to);
	if (refuse(file, DISK_RENAME))
		return -1;
	reach(file, DISK_RENAME, DISK_BEFORE);
	pthread_rwlock_rdlock(&disk.gate);
	replaces = stat(to, &old) == 0;
	result = (int)syscall(SYS_rename, from, to);
	if (result == 0 && replaces)
		forget(old.st_ino);
	pthread_rwlock_unlock(&disk.gate);
	reach(file, DISK_RENAME, DISK_AFTER);
	return result;
}

INTERPOSED int
unlink(const char *path)
{
	bool watching = atomic_load_explicit(&disk.watching, memory_order_acquire);
	enum disk_file file;
	struct stat st;
	int result;

	if (!watching || !classify(path, &file) || stat(path, &st) != 0)
		return (int)syscall(SYS_unlink, path);
	if (refuse(file, DISK_UNLINK))
		return -1;
	reach(file, DISK_UNLINK, DISK_BEFORE);
	pthread_rwlock_rdlock(&disk.gate);
	result = (int)syscall(SYS_unlink, path);
	if (result == 0)
		forget(st.st_ino);
	pthread_rwlock_unlock(&disk.gate);
	reach(file, DISK_UNLINK, DISK_AFTER);
	return result;
}

/* With large files, the C name stands for ftruncate64, which RocksDB does not use. */
INTERPOSED int
ftruncate(int fd, off_t len)
{
	enum disk_file file;

	if (classify_fd(fd, &file) && refuse(file, DISK_CUT))
		return -1;
	return (int)syscall(SYS_ftruncate, fd, len);
}

/* With large files, the C names stand for pread64 and open64; RocksDB may use either. */
INTERPOSED ssize_t plain_pread(int fd, void *bytes, size_t n, off_t at) __asm__("pread");
INTERPOSED int plain_open(const char *path, int flags, ...) __asm__("open");

INTERPOSED ssize_t
plain_pread(int fd, void *bytes, size_t n, off_t at)
{
	enum disk_file file;

	if (classify_fd(fd, &file) && refuse(file, DISK_READ))
		return -1;
	return syscall(SYS_pread64, fd, bytes, n, at);
}

INTERPOSED ssize_t
pread(int fd, void *bytes, size_t n, off_t at)
{
	return plain_pread(fd, bytes, n, at);
}

static int
open_file(const char *path, int flags, mode_t mode)
{
	bool watching = atomic_load_explicit(&disk.watching, memory_order_acquire);
	enum disk_file file;

	if (watching && flags & O_CREAT && classify(path, &file) && refuse(file, DISK_CREATE))
		return -1;
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static mode_t
open_mode(int flags, va_list args)
{
	return flags & O_CREAT ? va_arg(args, mode_t) : 0;
}

INTERPOSED int
plain_open(const char *path, int flags, ...)
{
	mode_t mode;
	va_list args;

	va_start(args, flags);
	mode = open_mode(flags, args);
	va_end(args);
	return open_file(path, flags, mode);
}

INTERPOSED int
open(const char *path, int flags, ...)
{
	mode_t mode;
	va_list args;

	va_start(args, flags);
	mode = open_mode(flags, args);
	va_end(args);
	return open_file(path, flags, mode);
}
