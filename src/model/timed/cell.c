#include <assert.h>

#include "base/big_endian.h"
#include "catalog/format.h"
#include "kv/tuple.h"
#include "model/timed/timed_int.h"

enum {
	CELL_FORMAT = 1,
	CELL_FORMAT_PIECES = 2, /* its value lies in pieces */
	/* The same two with a client's stamp behind the expiry. */
	CELL_FORMAT_STAMPED = 3,
	CELL_FORMAT_STAMPED_PIECES = 4,
	CELL_FORMAT_PACKED = 5, /* of a row, with columns: tables/packed.h */
};

enum {
	/* About what a record takes beside a text: format, type, times, a stamp, its ends. */
	CELL_HEAD_BYTES = 48,
	/* What a head as it mostly is consists of; each integer has a code in front. */
	CELL_NULL = 0x00,
	CELL_SMALL = TUPLE_CODE_INT_ZERO + 1,   /* of an integer of one byte */
	CELL_WRITTEN = TUPLE_CODE_INT_ZERO + 7, /* microseconds since 1970, from 1972 to 4253 */
	CELL_PLAIN_BYTES = 13,                  /* the longest such head */
};

static uint64_t
cell_format(const struct timed_cell *cell)
{
	/* Whoever gives a packed row a stamp unpacks it first. */
	assert(!cell->packed.len || (!cell->has_stamp && !cell->value.len && !cell->piece_bytes));
	if (cell->packed.len)
		return CELL_FORMAT_PACKED;
	if (cell->has_stamp)
		return cell->piece_bytes ? CELL_FORMAT_STAMPED_PIECES : CELL_FORMAT_STAMPED;
	return cell->piece_bytes ? CELL_FORMAT_PIECES : CELL_FORMAT;
}

void
timed_cell_put(const struct timed_cell *cell, struct buf *value)
{
	tuple_put_u64(value, cell_format(cell));
	tuple_put_u64(value, cell->type);
	tuple_put_u64(value, cell->write_us);
	if (cell->by_default)
		tuple_put_null(value);
	else
		tuple_put_u64(value, cell->at_ms);
	if (cell->has_stamp)
		tuple_put_i64(value, cell->stamp);
	if (cell->piece_bytes) {
		tuple_put_u64(value, cell->piece_bytes);
		tuple_put_u64(value, cell->piece_kind);
	}
	buf_append_str(value, cell->value);
	buf_append_str(value, cell->packed);
}

static enum status
cell_parse_expiry(struct tuple_reader *r, struct timed_cell *ret)
{
	struct tuple_elem e;

	ret->by_default = false;
	ret->at_ms = TIMED_CELL_NEVER;
	if (tuple_next_u64(r, &ret->at_ms) == STATUS_OK)
		return STATUS_OK;
	ret->by_default = tuple_next(r, &e) == STATUS_OK && e.kind == TUPLE_NULL;
	return ret->by_default ? STATUS_OK : STATUS_CORRUPT;
}

static enum status
cell_parse_pieces(struct tuple_reader *r, struct timed_cell *ret)
{
	uint64_t kind;

	if (tuple_next_u64(r, &ret->piece_bytes) != STATUS_OK ||
	    tuple_next_u64(r, &kind) != STATUS_OK || r->rest.len || !ret->piece_bytes ||
	    ret->type != TIMED_LEAF || (kind != (uint64_t)DOC_TEXT && kind != (uint64_t)DOC_BYTES))
		return STATUS_CORRUPT;
	ret->piece_kind = (enum doc_kind)kind;
	return STATUS_OK;
}

/*
 * Reads the head of a record if it is as nearly all are: integers of one byte, a write time of
 * seven, and an expiry that is the table's, or never. Returns false for any other, of which
 * nothing is taken.
 */
static bool
cell_parse_plain_head(struct tuple_reader *r, uint64_t *ret_format, struct timed_cell *ret)
{
	const char *begin = r->rest.ptr, *at = begin;
	uint8_t type = 0;

	/* Even a leaf, whose type is shorter, has a value behind its head. */
	if (r->rest.len < CELL_PLAIN_BYTES || at[0] != CELL_SMALL || at[1] < CELL_FORMAT ||
	    at[1] > CELL_FORMAT_PACKED)
		return false;
	*ret_format = (uint8_t)at[1];
	at += 2;
	if (*at == CELL_SMALL) {
		type = (uint8_t) * ++at;
		/* A zero has a code of its own. */
		if (!type || type >= TIMED_TYPES)
			return false;
	} else if (*at != TUPLE_CODE_INT_ZERO) {
		return false;
	}
	at++;
	/* What begins with a zero is no integer in its shortest form. */
	if (at[0] != CELL_WRITTEN || !at[1])
		return false;
	ret->write_us = big_endian_64(at) & UINT64_MAX >> 8;
	at += sizeof(uint64_t);
	if (*at != CELL_NULL && *at != TUPLE_CODE_INT_ZERO)
		return false;
	ret->type = (enum timed_type)type;
	ret->by_default = *at == CELL_NULL;
	ret->at_ms = TIMED_CELL_NEVER;
	r->rest = str_skip(r->rest, (size_t)(at + 1 - begin));
	return true;
}

static enum status
cell_parse_head(struct tuple_reader *r, uint64_t *ret_format, struct timed_cell *ret,
		struct err *err)
{
	uint64_t type;

	TRY(catalog_format_next(r, "cell of a row", CELL_FORMAT_PACKED, ret_format, err));
	TRY(tuple_next_u64(r, &type));
	if (type >= TIMED_TYPES)
		return STATUS_CORRUPT;
	ret->type = (enum timed_type)type;
	TRY(tuple_next_u64(r, &ret->write_us));
	return cell_parse_expiry(r, ret);
}

enum status
timed_cell_parse(struct str value, struct timed_cell *ret, struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	struct timed_cell cell = { .piece_bytes = 0 };
	uint64_t format;
	bool has_value;

	if (!cell_parse_plain_head(&r, &format, &cell))
		TRY(cell_parse_head(&r, &format, &cell, err));
	cell.has_stamp = format == CELL_FORMAT_STAMPED || format == CELL_FORMAT_STAMPED_PIECES;
	if (cell.has_stamp && tuple_next_i64(&r, &cell.stamp) != STATUS_OK)
		return STATUS_CORRUPT;
	if (format == CELL_FORMAT_PIECES || format == CELL_FORMAT_STAMPED_PIECES) {
		TRY(cell_parse_pieces(&r, &cell));
		*ret = cell;
		return STATUS_OK;
	}
	if (format == CELL_FORMAT_PACKED) {
		cell.packed = r.rest;
		*ret = cell;
		return cell.type == TIMED_INSERTED && r.rest.len ? STATUS_OK : STATUS_CORRUPT;
	}
	cell.value = r.rest;
	has_value = cell.type == TIMED_LEAF || cell.type == TIMED_VALUE;
	if (has_value != (cell.value.len > 0))
		return STATUS_CORRUPT;
	*ret = cell;
	return STATUS_OK;
}

/* Copies a text, unless it lies in `from`. */
static enum status
text_keep(struct str from, struct arena *arena, struct str *text)
{
	uintptr_t at = (uintptr_t)text->ptr, begin = (uintptr_t)from.ptr;

	if (!text->ptr || (at >= begin && at - begin < from.len))
		return STATUS_OK;
	return arena_copy(arena, *text, text);
}

enum status
timed_cell_scalar_borrow(const struct timed_cell *cell, struct arena *arena, struct doc_scalar *ret)
{
	AUTO(buf_release) struct buf scratch = BUF_INIT(KV_LIMIT_VALUE_BYTES);

	*ret = (struct doc_scalar){ 0 };
	TRY(doc_scalar_read(cell->value, &scratch, ret));
	/* What is not as it lies in the value is in the scratch buffer. */
	TRY(text_keep(cell->value, arena, &ret->text));
	return text_keep(cell->value, arena, &ret->more);
}

enum status
timed_scalar_own(struct arena *arena, struct doc_scalar *s)
{
	if (s->text.ptr)
		TRY(arena_copy(arena, s->text, &s->text));
	return s->more.ptr ? arena_copy(arena, s->more, &s->more) : STATUS_OK;
}

enum status
timed_cell_scalar(const struct timed_cell *cell, struct arena *arena, struct doc_scalar *ret)
{
	AUTO(buf_release) struct buf scratch = BUF_INIT(KV_LIMIT_VALUE_BYTES);
	struct doc_scalar s = { 0 };

	TRY(doc_scalar_read(cell->value, &scratch, &s));
	/* It borrows from the value, which lives as long as a future, or from the scratch. */
	TRY(timed_scalar_own(arena, &s));
	*ret = s;
	return STATUS_OK;
}

uint64_t
timed_cell_expires_ms(const struct catalog_db *db, const struct timed_cell *cell)
{
	uint64_t ttl_ms = db->options[TIMED_OPTION_TTL_MS];

	if (!cell->by_default)
		return cell->at_ms;
	return ttl_ms ? cell->write_us / TIMED_US_PER_MS + ttl_ms : 0;
}

bool
timed_has_expired(const struct timed *t, const struct timed_cell *cell)
{
	uint64_t at = timed_cell_expires_ms(t->db, cell);

	return at && at <= t->now_us / TIMED_US_PER_MS;
}

/* ---- Writing ---- */

void
timed_cell_init(const struct timed *t, enum timed_type type, struct timed_expiry expiry,
		struct timed_cell *cell)
{
	*cell = (struct timed_cell){ .type = type,
				     .write_us = timed_write_us(t),
				     .has_stamp = t->has_stamp,
				     .stamp = t->stamp };
	cell->by_default = expiry.kind == TIMED_EXPIRY_DEFAULT;
	cell->at_ms = TIMED_CELL_NEVER;
	if (expiry.kind == TIMED_EXPIRY_AFTER)
		cell->at_ms = t->now_us / TIMED_US_PER_MS + expiry.ms;
	else if (expiry.kind == TIMED_EXPIRY_AT)
		cell->at_ms = expiry.ms ? expiry.ms : 1; /* 0 is TIMED_CELL_NEVER */
}

/* Writes the record, which was put, and the entry of what expires. */
static enum status
cell_store(struct timed *t, struct str key, const struct timed_cell *cell, const struct buf *record)
{
	AUTO(buf_release) struct buf entry = CATALOG_KEY_INIT;
	uint64_t expires_ms;

	TRY(buf_status(record));
	TRY(timed_data_set(t, key, buf_str(record)));
	expires_ms = timed_cell_expires_ms(t->db, cell);
	if (!expires_ms)
		return STATUS_OK;
	TRY(timed_key_expiry(t->db, key, expires_ms, &entry));
	return kv_set(t->tx, buf_str(&entry), STR(""));
}

enum status
timed_cell_write_pieces(struct timed *t, struct str key, const struct doc_scalar *value,
			struct timed_expiry expiry)
{
	AUTO(buf_release) struct buf record = BUF_INIT(KV_LIMIT_VALUE_BYTES);
	struct timed_cell cell;

	timed_cell_init(t, TIMED_LEAF, expiry, &cell);
	cell.piece_bytes = value->text.len;
	cell.piece_kind = value->kind;
	timed_cell_put(&cell, &record);
	return cell_store(t, key, &cell, &record);
}

enum status
timed_cell_store(struct timed *t, struct str key, const struct timed_cell *cell)
{
	AUTO(buf_release) struct buf record = BUF_INIT(KV_LIMIT_VALUE_BYTES);
	size_t bytes = cell->value.len + cell->packed.len;

	if (bytes <= TIMED_VALUE_BYTES) /* as nearly all have: one allocation */
		(void)buf_reserve(&record, CELL_HEAD_BYTES + bytes);
	timed_cell_put(cell, &record);
	return cell_store(t, key, cell, &record);
}

enum status
timed_cell_write(struct timed *t, struct str key, enum timed_type type,
		 const struct doc_scalar *value, struct timed_expiry expiry)
{
	AUTO(buf_release) struct buf record = BUF_INIT(KV_LIMIT_VALUE_BYTES);
	struct timed_cell cell;
	size_t head;

	timed_cell_init(t, type, expiry, &cell);
	/* One allocation for nearly all: a value with NULs in it is longer than its text. */
	if (value && value->text.len <= TIMED_VALUE_BYTES)
		(void)buf_reserve(&record, CELL_HEAD_BYTES + value->text.len);
	timed_cell_put(&cell, &record);
	head = record.len;
	if (value)
		doc_scalar_put(&record, value);
	if (buf_status(&record) == STATUS_LIMIT || record.len - head > TIMED_VALUE_BYTES)
		return err_set(t->err, STATUS_VALUE_TOO_LARGE,
			       "a value in a row may have %d bytes (TIMED_VALUE_BYTES)",
			       TIMED_VALUE_BYTES);
	return cell_store(t, key, &cell, &record);
}

/* ---- Cells that are due ---- */

struct kv_future *
timed_due_ask(struct timed *t, const struct timed_due *due)
{
	return kv_get(t->tx, due->key, KV_READ);
}

enum status
timed_due_cell(struct timed *t, const struct timed_due *due, struct kv_future *asked,
	       struct timed_cell *ret, bool *ret_is_due)
{
	struct str value;

	*ret_is_due = false;
	if (!asked)
		asked = timed_due_ask(t, due);
	TRY(kv_future_wait(asked));
	if (!kv_future_value(asked, &value))
		return STATUS_OK;
	TRY(timed_cell_parse(value, ret, t->err));
	/* The cell was written again, or the default has changed: another entry is for that. */
	*ret_is_due = timed_cell_expires_ms(t->db, ret) == due->ms;
	return STATUS_OK;
}

enum status
timed_due_removed(struct timed *t)
{
	TRY(timed_touch(t));
	/* A clock that is behind must not look for what has gone. */
	return timed_now_write(t);
}
