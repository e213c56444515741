/*
 * Reading the log that is kept, as it grows. RocksDB appends to the newest file, renames files
 * into the archive and removes nothing there. frond shortens a log when a commit has failed
 * (logs.c), but never cuts off a version that was published, and this reader reads published
 * versions only. So a place in a file stays valid for as long as the file is there.
 *
 * RocksDB begins a new file between two writes. Hence, once a newer file is there, nothing more is
 * written to an older one, and the reader leaves a file only after it has looked for the newer one
 * first and then found no further record in the old one.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/big_endian.h"
#include "base/mem.h"
#include "kv/embedded/kept.h"
#include "kv/embedded/log_record.h"
#include "kv/embedded/raw.h"

enum {
	READ_RECORD_BYTES = KV_LOG_RECORD_BYTES,
};

struct log_reading {
	const char *path;
	int fd;
	uint64_t number;   /* of the file */
	uint64_t at;       /* of the next record */
	uint64_t block_at; /* of the block that has been read; UINT64_MAX: none */
	size_t block_len;
	uint8_t block[LOG_BLOCK_BYTES];
	struct buf payload; /* of the last record */
	uint32_t crc_table[CRC_TABLE];
};

static struct log_link
reading_link(const struct log_reading *r)
{
	return log_link_of(r->payload.ptr, r->payload.len);
}

static void
reading_end(struct log_reading *r)
{
	if (!r)
		return;
	if (r->fd >= 0)
		close(r->fd);
	buf_release(&r->payload);
	mem_free(r);
}

static struct log_reading *
reading_new(const char *path)
{
	struct log_reading *r = mem_alloc(sizeof(*r));

	if (!r)
		return NULL;
	r->path = path;
	r->fd = -1;
	r->number = r->at = 0;
	r->block_at = UINT64_MAX;
	r->block_len = 0;
	buf_init(&r->payload, READ_RECORD_BYTES);
	crc_make_table(r->crc_table);
	return r;
}

/* STATUS_NOT_FOUND: the file has been removed. */
static enum status
reading_open(struct log_reading *r, uint64_t number, uint64_t at, struct err *err)
{
	int fd = kept_open_file(r->path, number);

	if (fd < 0 && errno == ENOENT)
		return STATUS_NOT_FOUND;
	if (fd < 0)
		return err_set(err, STATUS_IO, "opening the log %llu: %s",
			       (unsigned long long)number, strerror(errno));
	if (r->fd >= 0)
		close(r->fd);
	r->fd = fd;
	r->number = number;
	r->at = at;
	r->block_at = UINT64_MAX;
	return STATUS_OK;
}

/* Has the block at that place of the file in memory; with `anew` as it is now. */
static bool
reading_block(struct log_reading *r, uint64_t block_at, bool anew)
{
	ssize_t n;

	if (r->block_at == block_at && !anew)
		return true;
	r->block_at = block_at;
	r->block_len = 0;
	do {
		n = pread(r->fd, r->block + r->block_len, LOG_BLOCK_BYTES - r->block_len,
			  (off_t)(block_at + r->block_len));
		if (n > 0)
			r->block_len += (size_t)n;
	} while ((n > 0 && r->block_len < LOG_BLOCK_BYTES) || (n < 0 && errno == EINTR));
	return n >= 0;
}

/* The same as reading_record() for one attempt. */
static bool
reading_try(struct log_reading *r, bool anew)
{
	bool inside = false;
	uint64_t at = r->at;
	uint8_t type;

	buf_clear(&r->payload);
	do {
		uint64_t block_at = at / LOG_BLOCK_BYTES * LOG_BLOCK_BYTES;
		size_t in = (size_t)(at - block_at);
		size_t len;

		if (LOG_BLOCK_BYTES - in < LOG_HEADER_BYTES) {
			at = block_at + LOG_BLOCK_BYTES;
			continue;
		}
		if (!reading_block(r, block_at, anew) ||
		    !log_record_is_whole(r->crc_table, r->block, in, r->block_len))
			return false;
		type = r->block[in + LOG_RECORD_TYPE];
		if (type == 0 || type > LOG_RECORD_LAST ||
		    inside == (type == LOG_RECORD_FULL || type == LOG_RECORD_FIRST))
			return false;
		len = log_record_length(r->block + in);
		buf_append(&r->payload, (const char *)r->block + in + LOG_HEADER_BYTES, len);
		inside = type != LOG_RECORD_FULL && type != LOG_RECORD_LAST;
		at += LOG_HEADER_BYTES + len;
		if (!inside)
			break;
	} while (true);
	if (buf_status(&r->payload) != STATUS_OK)
		return false;
	r->at = at;
	return true;
}

/* Reads the next record of the file into `payload`. False: there is no whole one yet. */
static bool
reading_record(struct log_reading *r)
{
	return reading_try(r, false) || reading_try(r, true);
}

uint32_t
kept_crc(struct str payload)
{
	uint32_t crc = crc_begin;
	uint32_t table[CRC_TABLE];

	crc_make_table(table);
	for (size_t i = 0; i < payload.len; i++)
		crc = crc_add(table, crc, (uint8_t)payload.ptr[i]);
	return crc_finish(crc);
}

void
kept_put_record(struct buf *out, uint64_t version, struct str payload)
{
	uint8_t header[KV_LOG_HEADER_BYTES];

	big_endian_put_64(header, version);
	big_endian_put_32(header + sizeof(uint64_t), (uint32_t)payload.len);
	big_endian_put_32(header + sizeof(uint64_t) + sizeof(uint32_t), kept_crc(payload));
	buf_append(out, (const char *)header, sizeof(header));
	buf_append_str(out, payload);
}

/* ---- Finding a version ---- */

static enum status
log_is_gone(uint64_t version, struct err *err)
{
	return err_set(err, STATUS_NOT_FOUND, "the log does not reach back to version %llu",
		       (unsigned long long)version);
}

/* The version of the first batch of the open file; 0: it has none yet. */
static uint64_t
reading_first_version(struct log_reading *r)
{
	uint64_t version = 0;

	while (!version && reading_record(r))
		version = reading_link(r).version;
	return version;
}

/* Goes to the record of the version in the open file, and behind it. */
static enum status
reading_find(struct log_reading *r, uint64_t version, struct err *err)
{
	r->at = 0;
	while (reading_record(r)) {
		uint64_t found = reading_link(r).version;

		if (found == version)
			return STATUS_OK;
		if (found > version)
			break;
	}
	return log_is_gone(version, err);
}

/* Opens the file that has the record of the version, and goes behind that. */
static enum status
reading_search(struct log_reading *r, uint64_t version, struct err *err)
{
	enum status status;
	uint64_t *numbers;
	size_t count;

	TRY(kept_list(r->path, true, &numbers, &count, err));
	status = log_is_gone(version, err);
	while (count-- && status == STATUS_NOT_FOUND) {
		uint64_t first;
		enum status opened = reading_open(r, numbers[count], 0, err);

		if (opened == STATUS_NOT_FOUND)
			continue;
		first = opened == STATUS_OK ? reading_first_version(r) : 0;
		if (opened != STATUS_OK) {
			status = opened;
		} else if (first && first <= version) {
			status = reading_find(r, version, err);
			break;
		}
	}
	mem_free(numbers);
	return status;
}

/* ---- Going on ---- */

/*
 * The open file has no further record: goes to the next one, unless there is none. `*ret_record`:
 * the old one has got another record meanwhile, which is then in `payload`.
 */
static enum status
reading_next_file(struct log_reading *r, bool *ret_moved, bool *ret_record, struct err *err)
{
	enum status status = STATUS_OK;
	uint64_t next = 0;
	uint64_t *numbers;
	size_t count;

	*ret_moved = *ret_record = false;
	TRY(kept_list(r->path, true, &numbers, &count, err));
	for (size_t i = count; i-- && numbers[i] > r->number;)
		next = numbers[i];
	mem_free(numbers);
	if (!next)
		return STATUS_OK;
	*ret_record = reading_record(r);
	if (*ret_record)
		return STATUS_OK;
	status = reading_open(r, next, 0, err);
	*ret_moved = status == STATUS_OK;
	return status;
}

/*
 * Looks at the record in `payload`, which begins at `began`. `*ret_done`: it is not published yet,
 * and the place stays in front of it.
 */
static enum status
reading_take(struct log_reading *r, uint64_t began, struct kept_place *place, uint64_t published,
	     struct buf *ret, bool *ret_done, struct err *err)
{
	struct log_link link = reading_link(r);

	if (link.version > published) {
		r->at = began;
		*ret_done = true;
		return STATUS_OK;
	}
	if (link.version > place->version) {
		if (!link.linked || link.before != place->version)
			return err_set(err, STATUS_NOT_FOUND,
				       "the log does not go on behind version %llu: what follows "
				       "there is version %llu",
				       (unsigned long long)place->version,
				       (unsigned long long)link.version);
		kept_put_record(ret, link.version, buf_str(&r->payload));
		place->version = link.version;
	}
	place->number = r->number;
	place->at = r->at;
	return buf_status(ret);
}

static enum status
reading_go(struct log_reading *r, struct kept_place *place, uint64_t published, size_t most,
	   struct buf *ret, struct err *err)
{
	bool done = false;

	while (!done && ret->len < most && place->version < published) {
		uint64_t began = r->at;
		bool record = reading_record(r);
		bool moved = true;

		if (!record)
			TRY(reading_next_file(r, &moved, &record, err));
		if (record)
			TRY(reading_take(r, began, place, published, ret, &done, err));
		else if (!moved)
			break;
	}
	return STATUS_OK;
}

enum status
kept_read(const char *path, struct kept_place *place, uint64_t published, size_t most,
	  struct buf *ret, struct err *err)
{
	struct log_reading *r;
	enum status status = STATUS_NOT_FOUND;
	uint64_t version = place->version;

	if (version == published)
		return STATUS_OK;
	r = reading_new(path);
	if (!r)
		return err_set(err, STATUS_NOMEM, "out of memory");
	if (place->number)
		status = reading_open(r, place->number, place->at, err);
	if (status == STATUS_NOT_FOUND)
		status = reading_search(r, version, err);
	if (status == STATUS_OK)
		status = reading_go(r, place, published, most, ret, err);
	reading_end(r);
	return status;
}

/* ---- What a batch has written ---- */

enum status
kept_tell_keys(struct str ops, const struct log_link *link, kv_log_key_found *found, void *arg,
	       struct err *err)
{
	while (ops.len) {
		uint8_t type = (uint8_t)ops.ptr[0];
		struct kv_log_key told = { .version = link->version, .time_ms = link->time_ms };
		struct str value;

		ops = str_skip(ops, 1);
		if (!raw_type_known(type) || !raw_bytes(&ops, &told.key) ||
		    ((type == RAW_PUT || type == RAW_DELETE_RANGE) && !raw_bytes(&ops, &value)))
			return err_set(err, STATUS_CORRUPT,
				       "the log has an operation of the kind %u at version %llu",
				       type, (unsigned long long)link->version);
		if (type == RAW_DELETE_RANGE)
			told.end = value;
		/* What is above is the engine's own. */
		if (told.key.len && (uint8_t)told.key.ptr[0] != 0xff)
			TRY(found(arg, &told));
	}
	return STATUS_OK;
}
