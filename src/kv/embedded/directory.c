/*
 * What a store's directory needs beside RocksDB's own care: its manifest is compared around an
 * opening for reading only, it is asked whether it has room, and whether a
 * new store may be made in it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/mem.h"
#include "kv/embedded/directory.h"

/* Reads the first line of a file into `ret`, with a NUL at its end; empty if there is no file. */
static void
read_first_line(int dir, const char *name, char *ret, size_t size)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, ret, size - 1) : 0;

	ret[n > 0 ? n : 0] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
	if (fd >= 0)
		close(fd);
}

void
emb_manifest_look(const char *path, struct emb_manifest *ret)
{
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	*ret = (struct emb_manifest){ .bytes = 0 };
	if (dir < 0)
		return;
	read_first_line(dir, "CURRENT", ret->name, sizeof(ret->name));
	if (ret->name[0] && fstatat(dir, ret->name, &st, 0) == 0)
		ret->bytes = (uint64_t)st.st_size;
	close(dir);
}

bool
emb_manifest_eq(const struct emb_manifest *a, const struct emb_manifest *b)
{
	return a->bytes == b->bytes && strcmp(a->name, b->name) == 0;
}

/* ---- Directories that are put together ---- */

/* Goes through a directory's entries, those for itself and its parent left out. NULL at the end. */
static const char *
directory_next_entry(DIR *dir)
{
	const struct dirent *entry;

	do
		entry = readdir(dir);
	while (entry && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0));
	return entry ? entry->d_name : NULL;
}

enum status
emb_directory_is_empty(const char *path, bool *ret, struct err *err)
{
	DIR *dir = opendir(path);

	if (!dir && errno == ENOENT)
		return STATUS_NOT_FOUND;
	if (!dir)
		return err_set(err, STATUS_IO, "%s: %s", path, strerror(errno));
	*ret = directory_next_entry(dir) == NULL;
	closedir(dir);
	return STATUS_OK;
}

void
emb_directory_remove(const char *path)
{
	DIR *dir = opendir(path);
	const char *name;

	while (dir && (name = directory_next_entry(dir)))
		unlinkat(dirfd(dir), name, 0);
	if (dir)
		closedir(dir);
	rmdir(path);
}

static enum status
file_sync(int dir, const char *name, struct err *err)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	enum status status = STATUS_OK;

	if (fd < 0 || fsync(fd) != 0)
		status = err_set(err, STATUS_IO, "syncing %s: %s", name, strerror(errno));
	if (fd >= 0)
		close(fd);
	return status;
}

enum status
emb_directory_sync_all(const char *path, struct err *err)
{
	DIR *dir = opendir(path);
	enum status status = STATUS_OK;
	const char *name;

	if (!dir)
		return err_set(err, STATUS_IO, "%s: %s", path, strerror(errno));
	while (status == STATUS_OK && (name = directory_next_entry(dir)))
		status = file_sync(dirfd(dir), name, err);
	if (status == STATUS_OK)
		status = file_sync(dirfd(dir), ".", err);
	closedir(dir);
	return status;
}

/* ---- A new store ---- */

#define PROBE_NAME "frond.probe"

/* What RocksDB makes before it writes CURRENT, with which a store begins to be there. */
static bool
is_of_the_beginning(const char *name)
{
	static const char *const names[] = { ".",   "..",       "lost+found", PROBE_NAME,
					     "LOG", "IDENTITY", "LOCK" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return fnmatch("LOG.old.*", name, 0) == 0 || fnmatch("MANIFEST-[0-9]*", name, 0) == 0 ||
	       fnmatch("OPTIONS-[0-9]*", name, 0) == 0 || fnmatch("[0-9]*.dbtmp", name, 0) == 0;
}

static bool
is_table(const char *name)
{
	return fnmatch("[0-9]*.sst", name, 0) == 0;
}

/* Tables and logs: a store has them only once CURRENT names a manifest. */
static bool
is_of_a_store(const char *name)
{
	return strcmp(name, "CURRENT") == 0 || is_table(name) ||
	       fnmatch("[0-9]*.log", name, 0) == 0;
}

enum status
emb_directory_check_vacant(const char *path, struct err *err)
{
	enum status status = STATUS_OK;
	DIR *dir = opendir(path);
	struct dirent *entry;

	if (!dir)
		return err_set(err, STATUS_IO, "%s: %s", path, strerror(errno));
	while (status == STATUS_OK && (entry = readdir(dir))) {
		if (is_of_the_beginning(entry->d_name))
			continue;
		if (is_of_a_store(entry->d_name))
			status = err_set(err, STATUS_CORRUPT,
					 "%s has files of a store, such as %s, but its file "
					 "CURRENT is missing or empty: restore a backup",
					 path, entry->d_name);
		else
			status = err_set(err, STATUS_EXISTS,
					 "%s is no store, and has files of others, such as %s: a "
					 "new store needs a directory of its own",
					 path, entry->d_name);
	}
	closedir(dir);
	return status;
}

size_t
emb_directory_tables(const char *path)
{
	DIR *dir = opendir(path);
	const char *name;
	size_t tables = 0;

	while (dir && (name = directory_next_entry(dir)))
		tables += is_table(name);
	if (dir)
		closedir(dir);
	return tables;
}

/* ---- Room ---- */

enum {
	PROBE_BYTES = 256 * 1024, /* written, synced and removed again */
};

/* Writes the file of a probe and brings it to the disk. Returns 0 or an errno. */
static int
probe_write(int dir, bool syncs)
{
	static const char zeros[PROBE_BYTES];
	int fd = openat(dir, PROBE_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	size_t done = 0;
	int error = 0;
	ssize_t n;

	if (fd < 0)
		return errno;
	/* What is left of a write that was cut short tells why. */
	while (!error && done < sizeof(zeros)) {
		n = write(fd, zeros, sizeof(zeros) - done);
		if (n < 0)
			error = errno;
		else
			done += (size_t)n;
	}
	if (!error && syncs && fsync(fd) != 0)
		error = errno;
	close(fd);
	return error;
}

int
emb_directory_probe(const char *path, uint64_t room_bytes, bool syncs)
{
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct statvfs vfs;
	int error;

	if (dir < 0)
		return errno;
	if (fstatvfs(dir, &vfs) != 0)
		error = errno;
	else if (vfs.f_flag & ST_RDONLY)
		error = EROFS;
	else if ((uint64_t)vfs.f_bavail * vfs.f_frsize < room_bytes)
		error = ENOSPC;
	else
		error = probe_write(dir, syncs);
	(void)unlinkat(dir, PROBE_NAME, 0);
	close(dir);
	return error;
}
