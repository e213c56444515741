/* The files of the log that is kept: where they are, how large, and removing them (kept.h). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "kv/embedded/kept.h"

static bool
kept_name(char ret[PATH_MAX], const char *path, const char *folder, uint64_t number)
{
	int n = snprintf(ret, PATH_MAX, "%s%s/%06llu.log", path, folder,
			 (unsigned long long)number);

	return n > 0 && n < PATH_MAX;
}

int
kept_open_file(const char *path, uint64_t number)
{
	/* RocksDB may be moving it from the first place to the second. */
	static const char *const folders[] = { "", "/" KEPT_ARCHIVE, "", "/" KEPT_ARCHIVE };
	char name[PATH_MAX];
	int fd = -1;

	for (size_t i = 0; fd < 0 && i < sizeof(folders) / sizeof(folders[0]); i++) {
		errno = ENAMETOOLONG;
		if (!kept_name(name, path, folders[i], number))
			return -1;
		fd = open(name, O_RDONLY | O_CLOEXEC);
		if (fd < 0 && errno != ENOENT)
			return -1;
	}
	return fd;
}

struct kept_listing {
	uint64_t *numbers;
	size_t count;
	size_t room;
};

static enum status
listing_add(struct kept_listing *l, uint64_t number, struct err *err)
{
	uint64_t *more;
	size_t room = l->room ? 2 * l->room : 64;

	if (l->count == l->room) {
		if (room > KEPT_FILES)
			return err_set(err, STATUS_LIMIT, "the log has more than %d files",
				       KEPT_FILES);
		more = mem_realloc(l->numbers, room * sizeof(*more));
		if (!more)
			return err_set(err, STATUS_NOMEM, "out of memory");
		l->numbers = more;
		l->room = room;
	}
	l->numbers[l->count++] = number;
	return STATUS_OK;
}

static enum status
listing_add_folder(struct kept_listing *l, const char *path, struct err *err)
{
	DIR *dir = opendir(path);
	enum status status = STATUS_OK;
	const struct dirent *entry;

	if (!dir && errno == ENOENT)
		return STATUS_OK;
	if (!dir)
		return err_set(err, STATUS_IO, "%s: %s", path, strerror(errno));
	while (status == STATUS_OK && (entry = readdir(dir))) {
		size_t digits = strspn(entry->d_name, "0123456789");

		if (digits && strcmp(entry->d_name + digits, ".log") == 0)
			status = listing_add(l, strtoull(entry->d_name, NULL, 10), err);
	}
	closedir(dir);
	return status;
}

static int
number_cmp(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

enum status
kept_list(const char *path, bool live, uint64_t **ret, size_t *ret_count, struct err *err)
{
	struct kept_listing l = { 0 };
	enum status status = STATUS_OK;
	char archive[PATH_MAX];
	size_t count = 0;

	if (snprintf(archive, sizeof(archive), "%s/" KEPT_ARCHIVE, path) >= (int)sizeof(archive))
		return err_set(err, STATUS_INVALID, "the path of the store is too long");
	/* A file that is moved in between is found twice rather than not at all. */
	if (live)
		status = listing_add_folder(&l, path, err);
	if (status == STATUS_OK)
		status = listing_add_folder(&l, archive, err);
	if (status != STATUS_OK) {
		mem_free(l.numbers);
		return status;
	}
	if (l.count)
		qsort(l.numbers, l.count, sizeof(*l.numbers), number_cmp);
	for (size_t i = 0; i < l.count; i++)
		if (!count || l.numbers[count - 1] != l.numbers[i])
			l.numbers[count++] = l.numbers[i];
	*ret = l.numbers;
	*ret_count = count;
	return STATUS_OK;
}

uint64_t
kept_file_bytes(const char *path, uint64_t number)
{
	int fd = kept_open_file(path, number);
	uint64_t bytes = 0;
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0)
		bytes = (uint64_t)st.st_size;
	if (fd >= 0)
		close(fd);
	return bytes;
}

uint64_t
kept_bytes_behind(const char *path, const struct kept_place *place)
{
	uint64_t bytes = 0;
	uint64_t *numbers;
	size_t count;

	if (kept_list(path, true, &numbers, &count, NULL) != STATUS_OK)
		return 0;
	while (count-- && numbers[count] >= place->number) {
		uint64_t all = kept_file_bytes(path, numbers[count]);

		if (numbers[count] > place->number)
			bytes += all;
		else if (all > place->at)
			bytes += all - place->at;
	}
	mem_free(numbers);
	return bytes;
}

void
kept_remove(const char *path, uint64_t number)
{
	char name[PATH_MAX];

	if (kept_name(name, path, "/" KEPT_ARCHIVE, number))
		(void)unlink(name);
}
