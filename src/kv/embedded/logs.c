/*
 * The store's logs: damage that RocksDB would overlook, and the end of a log that no commit stands
 * behind.
 *
 * RocksDB takes a broken end of a log for what a crash has left of an unfinished write. That is
 * right, but it also takes some kinds of damage for such an end, and then everything behind the
 * damage is gone without an error:
 *
 * - a length that points behind the end of the file;
 * - a header of zeros, behind which the rest of its block is skipped;
 * - a type of the kinds that recycled logs have (ours are not): RocksDB takes such a record for one
 *   of an earlier use of the file, before it looks at the checksum.
 *
 * emb_logs_check() tells these from an unfinished write. Checksums of whole records are left to
 * RocksDB, which refuses a record that does not match. RocksDB's wiki describes the format, "Write
 * Ahead Log File Format": blocks of 32 KiB, which have records of a header (CRC, length, type) and
 * a payload.
 *
 * emb_logs_cut() takes back a commit that has failed. The log may have all of its bytes, some or
 * none, and if all were there, the next opening would bring the commit back. Each batch ends with
 * the version that it makes (batch_finish()), so the walk knows which records are newer than what
 * has been published, and cuts the log in front of the first.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "kv/embedded/directory.h"

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
	bool zeros;         /* nothing but zeros may follow */
	uint64_t published; /* of emb_logs_cut() */
	uint64_t empties;   /* likewise: the number of the log of which nothing stays; 0: none */
	uint8_t block[BLOCK_BYTES];
	size_t len;
	uint32_t crc_table[CRC_TABLE];
};

static void
crc_make_table(uint32_t ret[CRC_TABLE])
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

/* The checksum as it stands in a header: masked, since a checksum of checksums is weak. */
static uint32_t
crc_finish(uint32_t crc)
{
	crc = ~crc;
	return (crc >> 15 | crc << 17) + crc_mask_delta;
}

static uint32_t
header_crc(const uint8_t *header)
{
	return (uint32_t)header[0] | (uint32_t)header[1] << 8 | (uint32_t)header[2] << 16 |
	       (uint32_t)header[3] << 24;
}

static size_t
header_length(const uint8_t *header)
{
	return (size_t)header[HEADER_LENGTH] | (size_t)header[HEADER_LENGTH + 1] << 8;
}

static bool
bytes_are_zero(const uint8_t *p, size_t n)
{
	while (n && *p == 0) {
		p++;
		n--;
	}
	return n == 0;
}

/* True if there is a whole record at `at`, with the right checksum. */
static bool
log_has_whole_record(const struct log_walk *w, size_t at)
{
	const uint8_t *header = w->block + at;
	uint32_t crc = UINT32_MAX;
	size_t end;

	if (at + HEADER_BYTES > w->len)
		return false;
	end = at + HEADER_BYTES + header_length(header);
	if (end > w->len)
		return false;
	crc = crc_add(w, crc, header[HEADER_TYPE]);
	for (size_t i = at + HEADER_BYTES; i < end; i++)
		crc = crc_add(w, crc, w->block[i]);
	return crc_finish(crc) == header_crc(header);
}

/*
 * Of a record whose length points behind the end of the file: true if its length is wrong, false if
 * it is an unfinished write. The length is wrong if the checksum is right for a shorter payload and
 * another record, or the end of the file, follows that payload.
 */
static bool
log_has_wrong_length(const struct log_walk *w, size_t at)
{
	const uint8_t *header = w->block + at;
	uint32_t crc = crc_add(w, UINT32_MAX, header[HEADER_TYPE]);
	size_t end = at + HEADER_BYTES;

	for (;;) {
		if (crc_finish(crc) == header_crc(header) &&
		    (end == w->len || log_has_whole_record(w, end)))
			return true;
		if (end == w->len)
			return false;
		crc = crc_add(w, crc, w->block[end++]);
	}
}

static enum status
log_damaged(const struct log_walk *w, const char *how, struct err *err)
{
	return err_set(err, STATUS_CORRUPT,
		       "the log %s is damaged: %s, with data behind that would be lost", w->name,
		       how);
}

static enum status
log_check_block(struct log_walk *w, struct err *err)
{
	size_t at = 0;

	while (!w->zeros && at + HEADER_BYTES <= w->len) {
		const uint8_t *header = w->block + at;
		size_t end = at + HEADER_BYTES + header_length(header);

		if (header[HEADER_TYPE] == 0 && header_length(header) == 0) {
			w->zeros = true;
			break;
		}
		if (header[HEADER_TYPE] > TYPE_LAST && (at == 0 || end <= w->len))
			return log_damaged(w, "a record is of a wrong kind", err);
		if (end > w->len) {
			/* RocksDB itself refuses that in a whole block. */
			if (w->len < BLOCK_BYTES && log_has_wrong_length(w, at))
				return log_damaged(w, "a record has a wrong length", err);
			return STATUS_OK;
		}
		at = end;
	}
	if (w->zeros && !bytes_are_zero(w->block + at, w->len - at))
		return log_damaged(w, "it has a hole", err);
	return STATUS_OK;
}

/* Reads the next block, or what the file still has of one. */
static enum status
log_read_block(struct log_walk *w, int fd, struct err *err)
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
log_check(struct log_walk *w, int dir, const char *name, struct err *err)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	enum status status;

	w->name = name;
	w->zeros = false;
	/*
	 * The process that has the store open has just deleted this log. RocksDB's lock will tell
	 * that there is such a process.
	 */
	if (fd < 0 && errno == ENOENT)
		return STATUS_OK;
	if (fd < 0)
		return err_set(err, STATUS_IO, "opening the log %s: %s", name, strerror(errno));
	do {
		status = log_read_block(w, fd, err);
		if (status == STATUS_OK)
			status = log_check_block(w, err);
	} while (status == STATUS_OK && w->len == BLOCK_BYTES);
	close(fd);
	return status;
}

static bool
name_is_log(const char *name)
{
	size_t digits = strspn(name, "0123456789");

	return digits && strcmp(name + digits, ".log") == 0;
}

static uint64_t
log_number(const char *name)
{
	return strtoull(name, NULL, 10);
}

/*
 * Calls `fn` for each log of the directory until one fails. A directory that is not there is fine.
 */
static enum status
logs_for_each(const char *path, struct log_walk *w,
	      enum status (*fn)(struct log_walk *w, int dir, const char *name, struct err *err),
	      struct err *err)
{
	DIR *dir = opendir(path);
	enum status status = STATUS_OK;
	const struct dirent *entry;

	if (!dir && errno == ENOENT)
		return STATUS_OK;
	if (!dir)
		return err_set(err, STATUS_IO, "%s: %s", path, strerror(errno));
	crc_make_table(w->crc_table);
	while (status == STATUS_OK && (entry = readdir(dir)))
		if (name_is_log(entry->d_name))
			status = fn(w, dirfd(dir), entry->d_name, err);
	closedir(dir);
	return status;
}

enum status
emb_logs_check(const char *path, struct err *err)
{
	struct log_walk *w = mem_alloc(sizeof(*w));
	enum status status;

	if (!w)
		return err_set(err, STATUS_NOMEM, "out of memory");
	status = logs_for_each(path, w, log_check, err);
	mem_free(w);
	return status;
}

/* ---- Taking back what no commit stands behind ---- */

enum {
	TYPE_FULL = 1,
	TYPE_FIRST = 2,
	/*
	 * What a batch's record ends with: a put (1) of a key of nine bytes and a value of eight.
	 */
	BATCH_END_BYTES = 20,
	BATCH_END_VALUE = 12, /* where the value is */
};

static const uint8_t batch_end[BATCH_END_VALUE] = "\x01\x09\xff/version\x08";

/* Where a walk through a whole log is. */
struct log_cut {
	struct log_walk *walk;
	uint64_t block_at;            /* of the block in the file */
	uint64_t record_at;           /* of the record whose parts are being read */
	uint8_t end[BATCH_END_BYTES]; /* of the record's payload so far */
	uint64_t cut_at;              /* the length that is to stay, if `cuts` */
	bool cuts;
};

static void
cut_add_payload(struct log_cut *c, const uint8_t *payload, size_t len)
{
	size_t kept;

	if (len >= BATCH_END_BYTES) {
		memcpy(c->end, payload + len - BATCH_END_BYTES, BATCH_END_BYTES);
		return;
	}
	kept = BATCH_END_BYTES - len;
	memmove(c->end, c->end + len, kept);
	memcpy(c->end + kept, payload, len);
}

/* The version that the record which has ended makes; 0 if it is no batch of this engine. */
static uint64_t
cut_version(const struct log_cut *c)
{
	uint64_t version = 0;

	if (memcmp(c->end, batch_end, sizeof(batch_end)) != 0)
		return 0;
	for (size_t i = BATCH_END_VALUE; i < BATCH_END_BYTES; i++)
		version = version << 8 | c->end[i];
	return version;
}

/* Looks at the records of a block. False: there is nothing more to see in this log. */
static bool
cut_look_at_block(struct log_cut *c)
{
	const struct log_walk *w = c->walk;
	size_t at = 0;

	while (at + HEADER_BYTES <= w->len) {
		const uint8_t *header = w->block + at;
		size_t len = header_length(header);
		uint8_t type = header[HEADER_TYPE];

		/* What is no whole record is no commit, and RocksDB judges it. */
		if (type == 0 || type > TYPE_LAST || !log_has_whole_record(w, at))
			return false;
		if (type == TYPE_FULL || type == TYPE_FIRST) {
			c->record_at = c->block_at + at;
			memset(c->end, 0, sizeof(c->end));
		}
		cut_add_payload(c, header + HEADER_BYTES, len);
		at += HEADER_BYTES + len;
		if (type == TYPE_FULL || type == TYPE_LAST) {
			uint64_t version = cut_version(c);

			c->cuts = version >= w->published;
			c->cut_at = version > w->published ? c->record_at : c->block_at + at;
		}
		/* Behind the record of the last version nothing has been published. */
		if (c->cuts)
			return false;
	}
	return true;
}

/* Shortens a file and brings that to the disk, so that no crash brings the rest back. */
static enum status
log_shorten(int fd, const char *name, uint64_t bytes, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return err_set(err, STATUS_IO, "the log %s: %s", name, strerror(errno));
	if ((uint64_t)st.st_size <= bytes)
		return STATUS_OK;
	if (ftruncate(fd, (off_t)bytes) != 0 || fsync(fd) != 0)
		return err_set(err, STATUS_IO, "cutting the log %s: %s", name, strerror(errno));
	/* The next reader is to see what the disk has, not what the kernel remembers. */
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	return STATUS_OK;
}

static enum status
log_cut(struct log_walk *w, int dir, const char *name, struct err *err)
{
	struct log_cut c = { .walk = w };
	int fd = openat(dir, name, O_RDWR | O_CLOEXEC);
	enum status status;

	w->name = name;
	/* RocksDB has deleted it in the meantime: all that it had is in tables. */
	if (fd < 0 && errno == ENOENT)
		return STATUS_OK;
	if (fd < 0)
		return err_set(err, STATUS_IO, "opening the log %s: %s", name, strerror(errno));
	c.cuts = w->empties && w->empties == log_number(name);
	status = STATUS_OK;
	while (!c.cuts) {
		status = log_read_block(w, fd, err);
		if (status != STATUS_OK || !cut_look_at_block(&c) || w->len < BLOCK_BYTES)
			break;
		c.block_at += BLOCK_BYTES;
	}
	if (status == STATUS_OK && c.cuts)
		status = log_shorten(fd, name, c.cut_at, err);
	close(fd);
	return status;
}

/* The number of the newest log; 0: there is none. */
static uint64_t
logs_newest(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *entry;
	uint64_t newest = 0;

	while (dir && (entry = readdir(dir)))
		if (name_is_log(entry->d_name) && log_number(entry->d_name) > newest)
			newest = log_number(entry->d_name);
	if (dir)
		closedir(dir);
	return newest;
}

enum status
emb_logs_cut(const char *path, uint64_t published, bool newest_is_new, struct err *err)
{
	struct log_walk *w = mem_alloc(sizeof(*w));
	enum status status;

	if (!w)
		return err_set(err, STATUS_NOMEM, "out of memory");
	w->published = published;
	w->empties = newest_is_new ? logs_newest(path) : 0;
	status = logs_for_each(path, w, log_cut, err);
	mem_free(w);
	return status;
}

uint64_t
emb_logs_bytes(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *entry;
	uint64_t bytes = 0;
	struct stat st;

	while (dir && (entry = readdir(dir)))
		if (name_is_log(entry->d_name) && fstatat(dirfd(dir), entry->d_name, &st, 0) == 0)
			bytes += (uint64_t)st.st_size;
	if (dir)
		closedir(dir);
	return bytes;
}
