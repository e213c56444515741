/*
 * The batches of a log that are whole. Behind a record that is not whole the next one is looked for
 * first where its length says, then at each byte. A batch counts only if its sequence number is
 * above that of the batch before, since a value may have the bytes of a record in it.
 */
#include <endian.h>
#include <string.h>

#include "base/mem.h"
#include "kv/embedded/filling.h"
#include "kv/embedded/log_record.h"
#include "kv/embedded/raw.h"

enum {
	BATCH_HEADER_BYTES = 12, /* a sequence number and a count */
	/* Tags of a batch beside the types of entries. */
	TAG_LOG_DATA = 3,
	TAG_NOOP = 13,
};

struct walk {
	struct raw_log *log;
	struct arena *arena;
	const uint8_t *bytes;
	size_t len;
	uint32_t crc_table[CRC_TABLE];
	struct buf batch;   /* what of it has been read */
	bool inside;        /* a batch of several records */
	size_t batch_at;    /* where it begins */
	size_t whole;       /* everything in front of this place has been told of */
	uint64_t sequence;  /* of the last batch */
	enum status status; /* STATUS_NOMEM */
};

/* Where the block of the log ends that this place is in. */
static size_t
block_end(const struct walk *w, size_t at)
{
	size_t end = at / LOG_BLOCK_BYTES * LOG_BLOCK_BYTES + LOG_BLOCK_BYTES;

	return end < w->len ? end : w->len;
}

static bool
record_is_whole(const struct walk *w, size_t at)
{
	size_t end = block_end(w, at);

	return at + LOG_HEADER_BYTES <= end && w->bytes[at + LOG_RECORD_TYPE] >= LOG_RECORD_FULL &&
	       w->bytes[at + LOG_RECORD_TYPE] <= LOG_RECORD_LAST &&
	       log_record_is_whole(w->crc_table, w->bytes, at, end);
}

/* ---- Batches ---- */

static enum status
batch_add(struct walk *w, const struct raw_entry *entry)
{
	struct raw_log *log = w->log;
	struct raw_entry *all = arena_grow(w->arena, log->entries, log->count, &log->cap,
					   sizeof(*all));

	if (!all)
		return STATUS_NOMEM;
	log->entries = all;
	all[log->count++] = *entry;
	return STATUS_OK;
}

/* STATUS_CORRUPT: what follows is no entry. */
static enum status
batch_entry(struct walk *w, struct str *rest, uint64_t *sequence)
{
	struct raw_entry entry = { .sequence = *sequence };
	uint8_t tag = (uint8_t)rest->ptr[0];

	*rest = str_skip(*rest, 1);
	if (tag == TAG_NOOP)
		return STATUS_OK;
	if (tag == TAG_LOG_DATA)
		return raw_bytes(rest, &entry.key) ? STATUS_OK : STATUS_CORRUPT;
	if (!raw_type_known(tag) || !raw_bytes(rest, &entry.key))
		return STATUS_CORRUPT;
	entry.type = (enum raw_type)tag;
	if ((entry.type == RAW_PUT || entry.type == RAW_DELETE_RANGE) &&
	    !raw_bytes(rest, &entry.value))
		return STATUS_CORRUPT;
	++*sequence;
	return batch_add(w, &entry);
}

/* Takes the entries of a whole batch. True if it is one. */
static bool
batch_take(struct walk *w)
{
	struct str rest = buf_dup(&w->batch, w->arena);
	size_t before = w->log->count;
	enum status status = STATUS_OK;
	uint64_t sequence;

	if (!rest.ptr || buf_status(&w->batch) != STATUS_OK) {
		w->status = STATUS_NOMEM;
		return false;
	}
	if (rest.len < BATCH_HEADER_BYTES)
		return false;
	memcpy(&sequence, rest.ptr, sizeof(sequence));
	sequence = le64toh(sequence);
	/* An empty batch has the number of the one that follows. */
	if (sequence < w->sequence)
		return false;
	rest = str_skip(rest, BATCH_HEADER_BYTES);
	while (rest.len && status == STATUS_OK)
		status = batch_entry(w, &rest, &sequence);
	if (status == STATUS_OK) {
		w->sequence = sequence;
		w->log->batches += w->log->count > before;
		return true;
	}
	w->log->count = before;
	if (status == STATUS_NOMEM)
		w->status = status;
	return false;
}

/* ---- Going through the log ---- */

/* What lies between is no filling, and no batch that is whole. */
static void
walk_add_hole(struct walk *w, size_t end)
{
	struct raw_log *log = w->log;
	struct raw_hole *all;

	if (end <= w->whole)
		return;
	all = arena_grow(w->arena, log->holes, log->hole_count, &log->hole_cap, sizeof(*all));
	if (!all) {
		w->status = STATUS_NOMEM;
		return;
	}
	log->holes = all;
	all[log->hole_count++] = (struct raw_hole){ .begin = w->whole, .end = end };
}

static void
walk_take_record(struct walk *w, size_t at)
{
	const uint8_t *header = w->bytes + at;
	uint8_t type = header[LOG_RECORD_TYPE];
	size_t end = at + LOG_HEADER_BYTES + log_record_length(header);

	if (type == LOG_RECORD_FULL || type == LOG_RECORD_FIRST) {
		buf_clear(&w->batch);
		w->batch_at = at;
		w->inside = true;
	}
	if (!w->inside)
		return; /* its beginning is gone */
	buf_append(&w->batch, header + LOG_HEADER_BYTES, log_record_length(header));
	if (type != LOG_RECORD_FULL && type != LOG_RECORD_LAST)
		return;
	w->inside = false;
	if (!batch_take(w))
		return;
	walk_add_hole(w, w->batch_at);
	w->whole = end;
}

/* Bytes of a log that were never used. A hole of zeros in front of records is damage. */
static bool
walk_is_empty(const struct walk *w, size_t from)
{
	size_t at = from;

	if (fill_is(w->bytes + from, w->len - from))
		return true;
	while (at < w->len && !w->bytes[at])
		at++;
	return fill_is(w->bytes + at, w->len - at);
}

/* The next place at which a record is whole, behind one that is not. */
static size_t
walk_resume(const struct walk *w, size_t at)
{
	size_t end = block_end(w, at);
	size_t next = at + LOG_HEADER_BYTES;

	if (next <= end) {
		next += log_record_length(w->bytes + at);
		/* Where the block has no room for a header, the next block goes on. */
		if (next <= end && end - next < LOG_HEADER_BYTES)
			next = end;
		if (next <= end && record_is_whole(w, next))
			return next;
	}
	for (next = at + 1; next < w->len && !record_is_whole(w, next);)
		next++;
	return next;
}

/* True if what follows the last whole batch is a record that the file is too short for. */
static bool
walk_is_cut(const struct walk *w)
{
	size_t at = w->whole;

	for (size_t end; at + LOG_HEADER_BYTES <= w->len; at = end) {
		end = at + LOG_HEADER_BYTES + log_record_length(w->bytes + at);
		if (!record_is_whole(w, at))
			return end > w->len;
		if (block_end(w, end) - end < LOG_HEADER_BYTES)
			end = block_end(w, end);
	}
	return true;
}

static void
walk_run(struct walk *w)
{
	size_t at = 0;

	while (at < w->len && w->status == STATUS_OK) {
		size_t end = block_end(w, at);

		if (end - at < LOG_HEADER_BYTES) {
			w->whole = w->whole == at ? end : w->whole;
			at = end;
		} else if (record_is_whole(w, at)) {
			walk_take_record(w, at);
			at += LOG_HEADER_BYTES + log_record_length(w->bytes + at);
		} else {
			w->inside = false;
			if (walk_is_empty(w, at))
				break;
			at = walk_resume(w, at);
		}
	}
	/* Where a block ends with less than a header is nothing. */
	if (block_end(w, w->whole) - w->whole < LOG_HEADER_BYTES)
		w->whole = block_end(w, w->whole);
	if (!walk_is_empty(w, w->whole)) {
		walk_add_hole(w, w->len);
		if (w->status == STATUS_OK)
			w->log->holes[w->log->hole_count - 1].cut = walk_is_cut(w);
	}
}

static enum status
log_read(struct walk *w, int dir, uint8_t *bytes, struct err *err)
{
	TRY(raw_read(dir, w->log->name, 0, bytes, &w->len, err));
	w->bytes = bytes;
	crc_make_table(w->crc_table);
	walk_run(w);
	return w->status;
}

enum status
raw_log_read(int dir, const char *name, struct arena *arena, struct raw_log *ret, struct err *err)
{
	struct walk w = { .log = ret, .arena = arena, .batch = BUF_INIT(LOG_MOST_BYTES) };
	enum status status;
	uint64_t size;
	uint8_t *bytes;

	*ret = (struct raw_log){ .name = name };
	TRY(raw_size(dir, name, &size, err));
	if (size > LOG_MOST_BYTES)
		return err_set(err, STATUS_CORRUPT, "%s has more than %d bytes", name,
			       LOG_MOST_BYTES);
	bytes = mem_alloc((size_t)size + 1);
	w.len = (size_t)size;
	status = bytes ? log_read(&w, dir, bytes, err) : STATUS_NOMEM;
	buf_release(&w.batch);
	mem_free(bytes);
	return status;
}
