/*
 * What a store's directory needs beside RocksDB's own care: its logs are looked at before RocksDB
 * replays them, its manifest around an opening for reading only, and its parent is synced.
 *
 * The logs: RocksDB takes the end of a log for what a crash has left of an unfinished write, which
 * is right, but also takes some damage for such an end, and then everything behind it is gone
 * without a word. That is so for
 *
 * - a length that points behind the end of the file;
 * - a header of zeros, behind which the rest of its block is skipped;
 * - a type of the kinds that recycled logs have (ours are not) in the first record of a block.
 *
 * The walk below tells these from an unfinished write. Checksums of whole records are left to
 * RocksDB, which refuses what does not match. The format is told in RocksDB's wiki, "Write Ahead
 * Log File Format": blocks of 32 KiB, in each records of a header (CRC, length, type) and a
 * payload.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "kv/embedded/embedded_int.h"

enum {
	BLOCK_BYTES = 32 * 1024,
	HEADER_BYTES = 7,
	HEADER_LENGTH = 4, /* where in the header it is; little-endian */
	HEADER_TYPE = 6,
	TYPE_LAST = 4, /* the largest of a log that is not recycled */
	CRC_TABLE = 256,
};

static const uint32_t crc_polynomial = 0x82f63b78; /* CRC32C, reflected */
static const uint32_t crc_mask_delta = 0xa282ead8;

struct log_walk {
	const char *name;
	bool zeros; /* nothing but zeros may follow */
	uint8_t block[BLOCK_BYTES];
	size_t len;
	uint32_t crc_table[CRC_TABLE];
};

static void
make_crc_table(uint32_t ret[CRC_TABLE])
{
	for (uint32_t i = 0; i < CRC_TABLE; i++) {
		uint32_t crc = i;

		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ crc_polynomial : crc >> 1;
		ret[i] = crc;
	}
}

static uint32_t
crc_add(const struct log_walk *w, uint32_t crc, uint8_t byte)
{
	return crc >> 8 ^ w->crc_table[(uint8_t)(crc ^ byte)];
}

/* As it is in a header: masked, since checksums of checksums are weak. */
static uint32_t
crc_finish(uint32_t crc)
{
	crc = ~crc;
	return (crc >> 15 | crc << 17) + crc_mask_delta;
}

static uint32_t
stored_crc(const uint8_t *header)
{
	return (uint32_t)header[0] | (uint32_t)header[1] << 8 | (uint32_t)header[2] << 16 |
	       (uint32_t)header[3] << 24;
}

static size_t
stored_length(const uint8_t *header)
{
	return (size_t)header[HEADER_LENGTH] | (size_t)header[HEADER_LENGTH + 1] << 8;
}

static bool
is_zero(const uint8_t *p, size_t n)
{
	while (n && *p == 0) {
		p++;
		n--;
	}
	return n == 0;
}

/* Is there a whole record at `at`? */
static bool
is_whole(const struct log_walk *w, size_t at)
{
	const uint8_t *header = w->block + at;
	uint32_t crc = UINT32_MAX;
	size_t end;

	if (at + HEADER_BYTES > w->len)
		return false;
	end = at + HEADER_BYTES + stored_length(header);
	if (end > w->len)
		return false;
	crc = crc_add(w, crc, header[HEADER_TYPE]);
	for (size_t i = at + HEADER_BYTES; i < end; i++)
		crc = crc_add(w, crc, w->block[i]);
	return crc_finish(crc) == stored_crc(header);
}

/*
 * A record whose length points behind the end of the file: an unfinished write has nothing behind
 * it, but if the checksum is right for a shorter payload, with another record or the end of the
 * file behind that, the length is what is wrong.
 */
static bool
has_wrong_length(const struct log_walk *w, size_t at)
{
	const uint8_t *header = w->block + at;
	uint32_t crc = crc_add(w, UINT32_MAX, header[HEADER_TYPE]);
	size_t end = at + HEADER_BYTES;

	for (;;) {
		if (crc_finish(crc) == stored_crc(header) && (end == w->len || is_whole(w, end)))
			return true;
		if (end == w->len)
			return false;
		crc = crc_add(w, crc, w->block[end++]);
	}
}

static enum status
damaged(const struct log_walk *w, const char *how, struct err *err)
{
	return err_set(err, STATUS_CORRUPT,
		       "the log %s is damaged: %s, with data behind that would be lost", w->name,
		       how);
}

static enum status
check_block(struct log_walk *w, struct err *err)
{
	size_t at = 0;

	while (!w->zeros && at + HEADER_BYTES <= w->len) {
		const uint8_t *header = w->block + at;
		size_t end = at + HEADER_BYTES + stored_length(header);

		if (header[HEADER_TYPE] == 0 && stored_length(header) == 0) {
			w->zeros = true;
			break;
		}
		if (at == 0 && header[HEADER_TYPE] > TYPE_LAST)
			return damaged(w, "a block begins with what is no record", err);
		if (end > w->len) {
			/* RocksDB itself refuses that in a whole block. */
			if (w->len < BLOCK_BYTES && has_wrong_length(w, at))
				return damaged(w, "a record has a wrong length", err);
			return STATUS_OK;
		}
		at = end;
	}
	if (w->zeros && !is_zero(w->block + at, w->len - at))
		return damaged(w, "it has a hole", err);
	return STATUS_OK;
}

/* Fills the block, or what the file still has of it. */
static enum status
read_block(struct log_walk *w, int fd, struct err *err)
{
	ssize_t n;

	w->len = 0;
	do {
		n = read(fd, w->block + w->len, BLOCK_BYTES - w->len);
		if (n > 0)
			w->len += (size_t)n;
	} while ((n > 0 && w->len < BLOCK_BYTES) || (n < 0 && errno == EINTR));
	if (n < 0)
		return err_set(err, STATUS_IO, "reading the log %s: %s", w->name, strerror(errno));
	return STATUS_OK;
}

static enum status
check_log(struct log_walk *w, int dir, const char *name, struct err *err)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	enum status status;

	w->name = name;
	w->zeros = false;
	/* Whoever has the store open has just deleted it; that somebody has is found out later. */
	if (fd < 0 && errno == ENOENT)
		return STATUS_OK;
	if (fd < 0)
		return err_set(err, STATUS_IO, "opening the log %s: %s", name, strerror(errno));
	do {
		status = read_block(w, fd, err);
		if (status == STATUS_OK)
			status = check_block(w, err);
	} while (status == STATUS_OK && w->len == BLOCK_BYTES);
	close(fd);
	return status;
}

static bool
is_log(const char *name)
{
	size_t digits = strspn(name, "0123456789");

	return digits && strcmp(name + digits, ".log") == 0;
}

enum status
emb_logs_check(const char *path, struct err *err)
{
	DIR *dir = opendir(path);
	enum status status = STATUS_OK;
	const struct dirent *entry;
	struct log_walk *w;

	if (!dir && errno == ENOENT)
		return STATUS_OK;
	if (!dir)
		return err_set(err, STATUS_IO, "%s: %s", path, strerror(errno));
	w = mem_alloc(sizeof(*w));
	if (w) {
		make_crc_table(w->crc_table);
		while (status == STATUS_OK && (entry = readdir(dir)))
			if (is_log(entry->d_name))
				status = check_log(w, dirfd(dir), entry->d_name, err);
	} else {
		status = err_set(err, STATUS_NOMEM, "out of memory");
	}
	mem_free(w);
	closedir(dir);
	return status;
}

/* Fills `ret` from a file that may be missing; what is read ends in a NUL. */
static void
read_line(int dir, const char *name, char *ret, size_t size)
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
	read_line(dir, "CURRENT", ret->name, sizeof(ret->name));
	if (ret->name[0] && fstatat(dir, ret->name, &st, 0) == 0)
		ret->bytes = (uint64_t)st.st_size;
	close(dir);
}

bool
emb_manifest_eq(const struct emb_manifest *a, const struct emb_manifest *b)
{
	return a->bytes == b->bytes && strcmp(a->name, b->name) == 0;
}

enum status
emb_directory_sync(const char *path, struct err *err)
{
	char *copy = mem_strdup(str_from_cstr(path));
	enum status status = STATUS_OK;
	int fd;

	if (!copy)
		return err_set(err, STATUS_NOMEM, "out of memory");
	fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fsync(fd) != 0)
		status = err_set(err, STATUS_IO, "syncing the directory of %s: %s", path,
				 strerror(errno));
	if (fd >= 0)
		close(fd);
	mem_free(copy);
	return status;
}
