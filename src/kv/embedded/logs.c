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
 * == Logs with a filling ==
 *
 * A log may end in a filling (fill.h), over which the next records were to be written. The disk
 * takes sectors in any order, so a power cut leaves some sectors of an unfinished write as they
 * were, filled, and others written. Every write is synced before the next one begins, so only the
 * last batch of all can look like that: that of the newest log, newer ones left out that have none,
 * since an opening makes a new log before it is done with the old ones. Hence the first batch that
 * is not whole is an unfinished write if a sector of it still has the filling, which is different
 * at each place, and no batch begins behind it. Otherwise it is damaged. RocksDB's strict recovery
 * would refuse such an end; it may be told to stop there, once all that is in front has been found
 * whole here. The opening then removes the unfinished write (emb_logs_end_torn()): as soon as a
 * newer log has a batch, the next opening would take it for damage.
 *
 * emb_logs_cut() takes back a commit that has failed. The log may have all of its bytes, some or
 * none, and if all were there, the next opening would bring the commit back. Each batch ends with
 * the version that it makes (batch_finish()), so the walk knows which records are newer than what
 * has been published, and cuts the log in front of the first.
 */
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
#include "base/str.h"
#include "kv/embedded/crc.h"
#include "kv/embedded/directory.h"
#include "kv/embedded/filling.h"
#include "kv/embedded/log_record.h"

enum {
	SECTOR_BYTES = 512,     /* a disk writes as many at once at least */
	MISSING_BYTES = 4,      /* at the end of an unfinished write: so many at least */
	EMPTY_BATCH_BYTES = 12, /* a sequence number and a count of 0 */
};

struct log_walk {
	const char *name;
	bool zeros;         /* nothing but zeros may follow */
	bool filling;       /* nothing but filling may follow */
	uint64_t newest;    /* of emb_logs_check(): the number of the newest log with a batch */
	bool torn;          /* likewise: it ends in an unfinished write over a filling */
	uint64_t torn_at;   /* where that begins */
	bool others_whole;  /* likewise: all that other logs have is whole */
	uint64_t published; /* of emb_logs_cut() */
	uint64_t empties;   /* likewise: the number of the log of which nothing stays; 0: none */
	uint8_t block[LOG_BLOCK_BYTES];
	size_t len;
	off_t block_at; /* where the block begins in the file */
	uint8_t *whole; /* memory of emb_logs_check() for one log after another */
	size_t whole_bytes;
	uint32_t crc_table[CRC_TABLE];
	uint8_t fill[FILL_PAGE_BYTES];
};

static bool
bytes_are_zero(const uint8_t *p, size_t n)
{
	while (n && *p == 0) {
		p++;
		n--;
	}
	return n == 0;
}

/* True if there is a whole record at `at` of the block. */
static bool
log_has_whole_record(const struct log_walk *w, size_t at)
{
	return log_record_is_whole(w->crc_table, w->block, at, w->len);
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
	uint32_t crc = crc_add(w->crc_table, crc_begin, header[LOG_RECORD_TYPE]);
	size_t end = at + LOG_HEADER_BYTES;

	for (;;) {
		if (crc_finish(crc) == log_record_crc(header) &&
		    (end == w->len || log_has_whole_record(w, end)))
			return true;
		if (end == w->len)
			return false;
		crc = crc_add(w->crc_table, crc, w->block[end++]);
	}
}

static enum status
log_damaged(const struct log_walk *w, size_t at, const char *how, struct err *err)
{
	return err_set(
		err, STATUS_CORRUPT,
		"the log %s is damaged at byte %lld: %s, with data behind that would be lost",
		w->name, (long long)w->block_at + (long long)at, how);
}

static enum status
log_check_block(struct log_walk *w, struct err *err)
{
	size_t at = 0;

	while (!w->zeros && !w->filling && at + LOG_HEADER_BYTES <= w->len) {
		const uint8_t *header = w->block + at;
		size_t end = at + LOG_HEADER_BYTES + log_record_length(header);

		if (header[LOG_RECORD_TYPE] == 0 && log_record_length(header) == 0) {
			w->zeros = true;
			break;
		}
		if (fill_is(header, w->len - at)) {
			w->filling = true;
			break;
		}
		if (header[LOG_RECORD_TYPE] > LOG_RECORD_LAST && (at == 0 || end <= w->len))
			return log_damaged(w, at, "a record is of a wrong kind", err);
		if (end > w->len) {
			/* RocksDB itself refuses that in a whole block. */
			if (w->len < LOG_BLOCK_BYTES && log_has_wrong_length(w, at))
				return log_damaged(w, at, "a record has a wrong length", err);
			return STATUS_OK;
		}
		at = end;
	}
	if (w->zeros && !bytes_are_zero(w->block + at, w->len - at))
		return log_damaged(w, at, "it has a hole", err);
	if (w->filling && !fill_is(w->block + at, w->len - at))
		return log_damaged(w, at, "it has a gap", err);
	return STATUS_OK;
}

/* Reads the next block, or what the file still has of one. */
static enum status
log_read_block(struct log_walk *w, int fd, struct err *err)
{
	ssize_t n;

	w->len = 0;
	w->block_at = lseek(fd, 0, SEEK_CUR);
	do {
		n = read(fd, w->block + w->len, LOG_BLOCK_BYTES - w->len);
		if (n > 0)
			w->len += (size_t)n;
	} while ((n > 0 && w->len < LOG_BLOCK_BYTES) || (n < 0 && errno == EINTR));
	if (n < 0)
		return err_set(err, STATUS_IO, "reading the log %s: %s", w->name, strerror(errno));
	return STATUS_OK;
}

/* ---- The end of a log with a filling ---- */

/* A whole log, or its beginning. */
struct log_bytes {
	uint8_t *bytes; /* the walk's */
	size_t len;
	size_t batch_at;  /* where the first batch begins that is not whole; or `len` */
	size_t record_at; /* of the records of that batch, the first that is not whole */
};

static enum status
bytes_reserve(struct log_walk *w, size_t size, struct err *err)
{
	if (size < LOG_BLOCK_BYTES)
		size = LOG_BLOCK_BYTES;
	if (size <= w->whole_bytes)
		return STATUS_OK;
	mem_free(w->whole);
	w->whole_bytes = 0;
	w->whole = mem_alloc(size);
	if (!w->whole)
		return err_set(err, STATUS_NOMEM, "out of memory");
	w->whole_bytes = size;
	return STATUS_OK;
}

/* Reads a log, at most so many bytes of it. */
static enum status
bytes_read(struct log_walk *w, int fd, size_t most, struct log_bytes *ret, struct err *err)
{
	struct stat st;
	size_t size;
	ssize_t n = 0;

	*ret = (struct log_bytes){ 0 };
	if (fstat(fd, &st) != 0)
		return err_set(err, STATUS_IO, "the log %s: %s", w->name, strerror(errno));
	if (st.st_size > LOG_MOST_BYTES)
		return err_set(err, STATUS_CORRUPT, "the log %s has more than %d bytes", w->name,
			       LOG_MOST_BYTES);
	size = (size_t)st.st_size < most ? (size_t)st.st_size : most;
	TRY(bytes_reserve(w, size, err));
	ret->bytes = w->whole;
	do {
		n = pread(fd, ret->bytes + ret->len, size - ret->len, (off_t)ret->len);
		if (n > 0)
			ret->len += (size_t)n;
	} while ((n > 0 && ret->len < size) || (n < 0 && errno == EINTR));
	return n < 0 ? err_set(err, STATUS_IO, "reading the log %s: %s", w->name, strerror(errno))
		     : STATUS_OK;
}

static size_t
block_end(size_t at, size_t len)
{
	size_t end = at / LOG_BLOCK_BYTES * LOG_BLOCK_BYTES + LOG_BLOCK_BYTES;

	return end < len ? end : len;
}

/* Finds out how far the log consists of whole batches. */
static void
bytes_walk(const struct log_walk *w, struct log_bytes *b)
{
	bool inside = false; /* a batch of several records */
	size_t at = 0;

	b->batch_at = 0;
	for (;;) {
		size_t end = block_end(at, b->len);
		uint8_t type;

		if (end - at < LOG_HEADER_BYTES && at < b->len) {
			at = end;
			continue;
		}
		if (!log_record_is_whole(w->crc_table, b->bytes, at, end))
			break;
		type = b->bytes[at + LOG_RECORD_TYPE];
		if (type == 0 || type > LOG_RECORD_LAST ||
		    inside == (type == LOG_RECORD_FULL || type == LOG_RECORD_FIRST))
			break;
		if (!inside)
			b->batch_at = at;
		inside = type != LOG_RECORD_FULL && type != LOG_RECORD_LAST;
		at += LOG_HEADER_BYTES + log_record_length(b->bytes + at);
		if (!inside)
			b->batch_at = at;
	}
	b->record_at = at;
}

/* Where the log's filling at its end begins, or somewhat before if the last bytes look like it. */
static size_t
bytes_written(const struct log_walk *w, const struct log_bytes *b)
{
	size_t end = b->len;

	while (end > b->batch_at && b->bytes[end - 1] == w->fill[(end - 1) % FILL_PAGE_BYTES])
		end--;
	return end;
}

/* True if what a sector has of the bytes from `at` on is still the filling. */
static bool
sector_is_unwritten(const struct log_walk *w, const struct log_bytes *b, size_t at)
{
	size_t end = at / SECTOR_BYTES * SECTOR_BYTES + SECTOR_BYTES;

	for (; at < end && at < b->len; at++)
		if (b->bytes[at] != w->fill[at % FILL_PAGE_BYTES])
			return false;
	return true;
}

/*
 * True if the end of the batch that is not whole was not written, or a sector of it. Bytes that are
 * damaged may look like the filling by chance, so a few at the end do not count.
 */
static bool
batch_is_unwritten(const struct log_walk *w, const struct log_bytes *b, size_t written)
{
	size_t end = block_end(b->record_at, b->len);

	if (b->record_at + LOG_HEADER_BYTES <= end) {
		size_t told = b->record_at + LOG_HEADER_BYTES +
			      log_record_length(b->bytes + b->record_at);

		end = told < end ? told : end;
	}
	if (end >= written + MISSING_BYTES)
		return true;
	if (end < written)
		end = written;
	for (size_t at = b->batch_at; at < end;
	     at = at / SECTOR_BYTES * SECTOR_BYTES + SECTOR_BYTES)
		if (sector_is_unwritten(w, b, at))
			return true;
	return false;
}

/* True if a batch begins behind the one that is not whole, which was synced before, then. */
static bool
bytes_have_later_batch(const struct log_walk *w, const struct log_bytes *b, size_t written)
{
	for (size_t at = b->batch_at + 1; at + LOG_HEADER_BYTES <= written; at++) {
		uint8_t type = b->bytes[at + LOG_RECORD_TYPE];

		if ((type == LOG_RECORD_FULL || type == LOG_RECORD_FIRST) &&
		    log_record_is_whole(w->crc_table, b->bytes, at, block_end(at, b->len)))
			return true;
	}
	return false;
}

/* True if only the record's length is wrong: its checksum is right for all that was written. */
static bool
record_has_wrong_length(const struct log_walk *w, const struct log_bytes *b, size_t written)
{
	const uint8_t *header = b->bytes + b->record_at;
	size_t last = block_end(b->record_at, b->len);
	size_t end = b->record_at + LOG_HEADER_BYTES;
	uint32_t crc;

	if (end > last)
		return false;
	crc = crc_add(w->crc_table, crc_begin, header[LOG_RECORD_TYPE]);
	for (;; crc = crc_add(w->crc_table, crc, b->bytes[end++])) {
		if (end >= written && crc_finish(crc) == log_record_crc(header))
			return true;
		if (end == last)
			return false;
	}
}

/*
 * Looks at the first batch that is not whole. `w->torn`: it is an unfinished write over a filling.
 * `*ret_judged`: there is none, or that; otherwise the other checks judge.
 */
static void
bytes_judge(struct log_walk *w, struct log_bytes *b, bool newest, bool *ret_judged)
{
	size_t written;

	bytes_walk(w, b);
	*ret_judged = fill_is(b->bytes + b->batch_at, b->len - b->batch_at);
	if (*ret_judged)
		return;
	if (!newest) {
		w->others_whole = false;
		return;
	}
	written = bytes_written(w, b);
	w->torn = batch_is_unwritten(w, b, written) && !bytes_have_later_batch(w, b, written) &&
		  !record_has_wrong_length(w, b, written);
	w->torn_at = b->batch_at;
	*ret_judged = w->torn;
}

/* ---- The check ---- */

static enum status
log_check_blocks(struct log_walk *w, int fd, struct err *err)
{
	enum status status;

	w->zeros = w->filling = false;
	do {
		status = log_read_block(w, fd, err);
		if (status == STATUS_OK)
			status = log_check_block(w, err);
	} while (status == STATUS_OK && w->len == LOG_BLOCK_BYTES);
	return status;
}

static uint64_t
log_number(const char *name)
{
	return strtoull(name, NULL, 10);
}

static enum status
log_check(struct log_walk *w, int dir, const char *name, struct err *err)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	struct log_bytes b;
	enum status status;
	bool judged = false;

	w->name = name;
	/*
	 * The process that has the store open has just deleted this log. RocksDB's lock will tell
	 * that there is such a process.
	 */
	if (fd < 0 && errno == ENOENT)
		return STATUS_OK;
	if (fd < 0)
		return err_set(err, STATUS_IO, "opening the log %s: %s", name, strerror(errno));
	status = bytes_read(w, fd, LOG_MOST_BYTES, &b, err);
	if (status == STATUS_OK)
		bytes_judge(w, &b, log_number(name) == w->newest, &judged);
	if (status == STATUS_OK && !judged)
		status = log_check_blocks(w, fd, err);
	close(fd);
	return status;
}

static bool
name_is_log(const char *name)
{
	size_t digits = strspn(name, "0123456789");

	return digits && strcmp(name + digits, ".log") == 0;
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
	while (status == STATUS_OK && (entry = readdir(dir)))
		if (name_is_log(entry->d_name))
			status = fn(w, dirfd(dir), entry->d_name, err);
	closedir(dir);
	return status;
}

/* The number of the newest log below `below`; 0: there is none. */
static uint64_t
logs_newest(const char *path, uint64_t below)
{
	DIR *dir = opendir(path);
	const struct dirent *entry;
	uint64_t newest = 0;

	while (dir && (entry = readdir(dir))) {
		uint64_t number = name_is_log(entry->d_name) ? log_number(entry->d_name) : 0;

		if (number > newest && number < below)
			newest = number;
	}
	if (dir)
		closedir(dir);
	return newest;
}

/* Opens the log with that number. -1, with errno. */
static int
log_open(const char *path, uint64_t number, int flags)
{
	char name[PATH_MAX];
	int n = snprintf(name, sizeof(name), "%s/%06llu.log", path, (unsigned long long)number);

	if (n < 0 || (size_t)n >= sizeof(name)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return open(name, flags | O_CLOEXEC);
}

/*
 * True if there is nothing in the log but the filling and batches without a write. After a recovery
 * that has stopped at an unfinished write, RocksDB writes such a batch.
 */
static bool
bytes_are_trivial(const struct log_walk *w, const struct log_bytes *b)
{
	size_t at = 0;

	while (at + LOG_HEADER_BYTES <= b->len &&
	       log_record_length(b->bytes + at) <= EMPTY_BATCH_BYTES &&
	       log_record_is_whole(w->crc_table, b->bytes, at, block_end(at, b->len)))
		at += LOG_HEADER_BYTES + log_record_length(b->bytes + at);
	return fill_is(b->bytes + at, b->len - at);
}

/* Of most logs the first block tells that they have a batch. */
static enum status
log_is_trivial(struct log_walk *w, int fd, bool *ret, struct err *err)
{
	struct log_bytes b;

	TRY(bytes_read(w, fd, LOG_BLOCK_BYTES, &b, err));
	*ret = bytes_are_trivial(w, &b);
	if (!*ret || b.len < LOG_BLOCK_BYTES)
		return STATUS_OK;
	TRY(bytes_read(w, fd, LOG_MOST_BYTES, &b, err));
	*ret = bytes_are_trivial(w, &b);
	return STATUS_OK;
}

/* Looks for the newest log that has a batch: `w->newest`. */
static enum status
logs_find_newest(struct log_walk *w, const char *path, struct err *err)
{
	enum status status = STATUS_OK;
	bool trivial = true;

	w->newest = UINT64_MAX;
	while (trivial && status == STATUS_OK && (w->newest = logs_newest(path, w->newest))) {
		int fd = log_open(path, w->newest, O_RDONLY);

		if (fd < 0)
			continue; /* deleted by the process that has the store open */
		w->name = "that is the newest";
		status = log_is_trivial(w, fd, &trivial, err);
		close(fd);
	}
	return status;
}

enum status
emb_logs_check(const char *path, struct log_torn *ret_torn, struct err *err)
{
	struct log_walk *w = mem_alloc(sizeof(*w));
	enum status status;

	*ret_torn = (struct log_torn){ 0 };
	if (!w)
		return err_set(err, STATUS_NOMEM, "out of memory");
	crc_make_table(w->crc_table);
	fill_make(w->fill);
	w->torn = false;
	w->others_whole = true;
	w->whole = NULL;
	w->whole_bytes = 0;
	status = logs_find_newest(w, path, err);
	if (status == STATUS_OK)
		status = logs_for_each(path, w, log_check, err);
	if (w->torn && w->others_whole)
		*ret_torn = (struct log_torn){ w->newest, w->torn_at };
	mem_free(w->whole);
	mem_free(w);
	return status;
}

/* Finds the first record with a wrong checksum that is followed by a whole one. */
static enum status
log_find_damage(struct log_walk *w, int dir, const char *name, struct err *err)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	struct log_bytes b;
	enum status status;

	w->name = name;
	if (fd < 0)
		return STATUS_OK;
	status = bytes_read(w, fd, LOG_MOST_BYTES, &b, err);
	close(fd);
	for (size_t at = 0; status == STATUS_OK && at + LOG_HEADER_BYTES <= b.len;) {
		const uint8_t *header = b.bytes + at;
		size_t end = block_end(at, b.len);

		if (fill_is(header, end - at) || bytes_are_zero(header, end - at))
			at = end;
		else if (log_record_is_whole(w->crc_table, b.bytes, at, end))
			at += LOG_HEADER_BYTES + log_record_length(header);
		else {
			w->block_at = 0;
			return log_damaged(w, at, "a record does not match its checksum", err);
		}
		if (block_end(at, b.len) - at < LOG_HEADER_BYTES)
			at = block_end(at, b.len);
	}
	return status;
}

enum status
emb_logs_find_damage(const char *path, struct err *err)
{
	struct log_walk *w = mem_zalloc(sizeof(*w));
	enum status status;

	if (!w)
		return STATUS_OK;
	crc_make_table(w->crc_table);
	fill_make(w->fill);
	status = logs_for_each(path, w, log_find_damage, err);
	mem_free(w->whole);
	mem_free(w);
	return status;
}

bool
emb_file_crc(const char *path, uint32_t *ret)
{
	struct log_walk *w = mem_zalloc(sizeof(*w));
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint32_t crc = crc_begin;
	bool ok = w && fd >= 0;

	if (w)
		crc_make_table(w->crc_table);
	do {
		ok = ok && log_read_block(w, fd, NULL) == STATUS_OK;
		for (size_t i = 0; ok && i < w->len; i++)
			crc = crc_add(w->crc_table, crc, w->block[i]);
	} while (ok && w->len == LOG_BLOCK_BYTES);
	if (fd >= 0)
		close(fd);
	mem_free(w);
	*ret = ~crc;
	return ok;
}

int
emb_logs_open_to_append(const char *path, uint64_t *number)
{
	if (!*number)
		*number = logs_newest(path, UINT64_MAX);
	return *number ? log_open(path, *number, O_WRONLY | O_APPEND) : -1;
}

/* ---- Taking back what no commit stands behind ---- */

/* Where a walk through a whole log is. */
struct log_cut {
	struct log_walk *walk;
	uint64_t block_at;                /* of the block in the file */
	uint64_t record_at;               /* of the record whose parts are being read */
	uint8_t end[LOG_BATCH_END_BYTES]; /* of the record's payload so far */
	uint64_t cut_at;                  /* the length that is to stay, if `cuts` */
	bool cuts;
};

static void
cut_add_payload(struct log_cut *c, const uint8_t *payload, size_t len)
{
	size_t kept;

	if (len >= LOG_BATCH_END_BYTES) {
		memcpy(c->end, payload + len - LOG_BATCH_END_BYTES, LOG_BATCH_END_BYTES);
		return;
	}
	kept = LOG_BATCH_END_BYTES - len;
	memmove(c->end, c->end + len, kept);
	memcpy(c->end + kept, payload, len);
}

/* Looks at the records of a block. False: there is nothing more to see in this log. */
static bool
cut_look_at_block(struct log_cut *c)
{
	const struct log_walk *w = c->walk;
	size_t at = 0;

	while (at + LOG_HEADER_BYTES <= w->len) {
		const uint8_t *header = w->block + at;
		size_t len = log_record_length(header);
		uint8_t type = header[LOG_RECORD_TYPE];

		/* What is no whole record is no commit, and RocksDB judges it. */
		if (type == 0 || type > LOG_RECORD_LAST || !log_has_whole_record(w, at))
			return false;
		if (type == LOG_RECORD_FULL || type == LOG_RECORD_FIRST) {
			c->record_at = c->block_at + at;
			memset(c->end, 0, sizeof(c->end));
		}
		cut_add_payload(c, header + LOG_HEADER_BYTES, len);
		at += LOG_HEADER_BYTES + len;
		if (type == LOG_RECORD_FULL || type == LOG_RECORD_LAST) {
			uint64_t version = log_batch_version(c->end);

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

int
emb_logs_open_torn(const char *path, const struct log_torn *torn)
{
	return log_open(path, torn->number, O_RDWR);
}

enum status
emb_logs_end_torn(int fd, const struct log_torn *torn, struct err *err)
{
	return log_shorten(fd, "with an unfinished write", torn->bytes, err);
}

static enum status
log_cut(struct log_walk *w, int dir, const char *name, struct err *err)
{
	struct log_cut c = { .walk = w };
	int fd = openat(dir, name, O_RDWR | O_CLOEXEC);
	enum status status;

	w->name = name;
	if (fd < 0) {
		/* RocksDB has deleted it in the meantime: all that it had is in tables. */
		if (errno == ENOENT)
			return STATUS_OK;
		return err_set(err, STATUS_IO, "opening the log %s: %s", name, strerror(errno));
	}
	c.cuts = w->empties && w->empties == log_number(name);
	status = STATUS_OK;
	while (!c.cuts) {
		status = log_read_block(w, fd, err);
		if (status != STATUS_OK || !cut_look_at_block(&c) || w->len < LOG_BLOCK_BYTES)
			break;
		c.block_at += LOG_BLOCK_BYTES;
	}
	if (status == STATUS_OK && c.cuts)
		status = log_shorten(fd, name, c.cut_at, err);
	close(fd);
	return status;
}

enum status
emb_logs_cut(const char *path, uint64_t published, bool newest_is_new, struct err *err)
{
	struct log_walk *w = mem_alloc(sizeof(*w));
	enum status status;

	if (!w)
		return err_set(err, STATUS_NOMEM, "out of memory");
	w->published = published;
	w->empties = newest_is_new ? logs_newest(path, UINT64_MAX) : 0;
	crc_make_table(w->crc_table);
	fill_make(w->fill);
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
