/* The records of items: headers, members, scores. */
#include <endian.h>

#include "catalog/format.h"
#include "model/timed/items/item_int.h"
#include "model/timed/items/pack.h"

enum {
	HEADER_FORMAT = 1,
	HEADER_FORMAT_PACKED = 2,
	LEAF_FORMAT = 1,
	LEAF_FORMAT_PIECES = 2,
	LEAF_FORMAT_RUN = 3,
};

void
timed_header_put(const struct timed_header *header, struct buf *value)
{
	tuple_put_u64(value, header->packed ? HEADER_FORMAT_PACKED : HEADER_FORMAT);
	tuple_put_u64(value, header->type);
	tuple_put_u64(value, header->write_us);
	tuple_put_u64(value, header->expires_ms);
	tuple_put_u64(value, header->whole.len);
	tuple_put_bytes(value, str_of(header->id, header->has_body ? TIMED_ID_BYTES : 0));
	tuple_put_u64(value, header->length);
	buf_append_str(value, header->whole);
	buf_append_str(value, header->value);
}

/* The id of a body or of pieces, or none. */
static enum status
record_parse_id(struct tuple_reader *r, uint8_t ret[TIMED_ID_BYTES], bool *ret_there)
{
	struct buf id = { .ptr = (char *)ret, .cap = TIMED_ID_BYTES, .max_bytes = TIMED_ID_BYTES };
	struct tuple_elem e;

	if (tuple_next(r, &e) != STATUS_OK || e.kind != TUPLE_BYTES)
		return STATUS_CORRUPT;
	tuple_unescape(&e, &id);
	*ret_there = id.len == TIMED_ID_BYTES;
	return id.failed == STATUS_OK && (*ret_there || !id.len) ? STATUS_OK : STATUS_CORRUPT;
}

enum status
timed_header_parse(struct str value, struct timed_header *ret, struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	struct timed_header h = { 0 };
	uint64_t format, type, whole;

	TRY(catalog_format_next(&r, "header of an item", HEADER_FORMAT_PACKED, &format, err));
	TRY(tuple_next_u64(&r, &type));
	if (type < TIMED_VALUE || type >= TIMED_TYPES)
		return STATUS_CORRUPT;
	h.type = (enum timed_type)type;
	TRY(tuple_next_u64(&r, &h.write_us));
	TRY(tuple_next_u64(&r, &h.expires_ms));
	TRY(tuple_next_u64(&r, &whole));
	/* None: the value is in the header. */
	TRY(record_parse_id(&r, h.id, &h.has_body));
	TRY(tuple_next_u64(&r, &h.length));
	if (whole > r.rest.len)
		return STATUS_CORRUPT;
	h.whole = str_of(r.rest.ptr, (size_t)whole);
	h.value = str_skip(r.rest, (size_t)whole);
	h.packed = format == HEADER_FORMAT_PACKED;
	if (h.packed) {
		if (h.has_body || !timed_pack_has(h.type) || !h.length ||
		    h.length > TIMED_PACK_MEMBERS || h.value.len > TIMED_PACK_BYTES)
			return STATUS_CORRUPT;
		*ret = h;
		return STATUS_OK;
	}
	if (h.has_body ? h.value.len > 0 : !timed_has_text(h.type) || h.length != h.value.len)
		return STATUS_CORRUPT;
	*ret = h;
	return STATUS_OK;
}

void
timed_leaf_put(const struct timed_leaf_record *leaf, struct buf *value)
{
	tuple_put_u64(value, leaf->pieces.there ? LEAF_FORMAT_PIECES : LEAF_FORMAT);
	tuple_put_u64(value, leaf->write_us);
	tuple_put_u64(value, leaf->expires_ms);
	if (leaf->pieces.there) {
		tuple_put_u64(value, leaf->whole_len);
		tuple_put_u64(value, leaf->value_len);
		tuple_put_bytes(value, str_of(leaf->pieces.id, TIMED_ID_BYTES));
	} else {
		tuple_put_u64(value, leaf->whole.len);
		buf_append_str(value, leaf->whole);
	}
	if (!leaf->pieces.there || !leaf->value_len)
		buf_append_str(value, leaf->value);
}

/*
 * The id of pieces, by its length: what stands behind it may be a score that begins with 0xff,
 * which a tuple's reader takes for more of the id.
 */
static enum status
leaf_parse_id(struct tuple_reader *r, uint8_t ret[TIMED_ID_BYTES])
{
	const uint8_t *at = (const uint8_t *)r->rest.ptr, *end = at + r->rest.len;

	if (at == end || *at++ != TUPLE_CODE_BYTES)
		return STATUS_CORRUPT;
	for (size_t i = 0; i < TIMED_ID_BYTES; i++) {
		if (at == end)
			return STATUS_CORRUPT;
		ret[i] = *at++;
		if (!ret[i] && (at == end || *at++ != TUPLE_CODE_ESCAPE))
			return STATUS_CORRUPT;
	}
	if (at == end || *at++ != 0)
		return STATUS_CORRUPT;
	r->rest = str_of((const char *)at, (size_t)(end - at));
	return STATUS_OK;
}

/* What a record says of its pieces. */
static enum status
leaf_parse_pieces(struct tuple_reader *r, struct timed_leaf_record *ret)
{
	TRY(tuple_next_u64(r, &ret->whole_len));
	TRY(tuple_next_u64(r, &ret->value_len));
	TRY(leaf_parse_id(r, ret->pieces.id));
	ret->pieces.there = true;
	if (ret->whole_len > TIMED_LENGTH_BYTES || ret->value_len > TIMED_LENGTH_BYTES ||
	    (ret->value_len && r->rest.len))
		return STATUS_CORRUPT;
	ret->value = r->rest;
	return STATUS_OK;
}

enum status
timed_leaf_parse(struct str value, struct timed_leaf_record *ret, struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	struct timed_leaf_record leaf;
	uint64_t format, whole;

	TRY(catalog_format_next(&r, "member of an item", LEAF_FORMAT_RUN, &format, err));
	if (format == LEAF_FORMAT_RUN)
		return STATUS_CORRUPT;
	TRY(tuple_next_u64(&r, &leaf.write_us));
	TRY(tuple_next_u64(&r, &leaf.expires_ms));
	leaf.whole = STR("");
	leaf.pieces.there = false;
	if (format == LEAF_FORMAT_PIECES) {
		TRY(leaf_parse_pieces(&r, &leaf));
		*ret = leaf;
		return STATUS_OK;
	}
	leaf.whole_len = leaf.value_len = 0;
	TRY(tuple_next_u64(&r, &whole));
	if (whole > r.rest.len)
		return STATUS_CORRUPT;
	leaf.whole = str_of(r.rest.ptr, (size_t)whole);
	leaf.value = str_skip(r.rest, (size_t)whole);
	*ret = leaf;
	return STATUS_OK;
}

/* ---- Runs ---- */

void
timed_run_put_header(uint64_t write_us, bool leftwards, struct buf *ret)
{
	tuple_put_u64(ret, LEAF_FORMAT_RUN);
	tuple_put_u64(ret, write_us);
	tuple_put_u64(ret, leftwards);
}

void
timed_run_put_value(struct str value, struct buf *ret)
{
	buf_append_byte(ret, (uint8_t)value.len);
	buf_append_str(ret, value);
}

bool
timed_is_run(struct str value)
{
	struct tuple_reader r = tuple_reader(value);
	uint64_t format;

	return tuple_next_u64(&r, &format) == STATUS_OK && format == LEAF_FORMAT_RUN;
}

enum status
timed_run_parse(struct str value, struct timed_run *ret)
{
	struct tuple_reader r = tuple_reader(value);
	uint64_t format, leftwards;
	struct str rest;

	TRY(tuple_next_u64(&r, &format));
	TRY(tuple_next_u64(&r, &ret->write_us));
	TRY(tuple_next_u64(&r, &leftwards));
	if (format != LEAF_FORMAT_RUN || leftwards > 1)
		return STATUS_CORRUPT;
	ret->leftwards = leftwards;
	ret->count = 0;
	for (rest = r.rest; rest.len; ret->count++) {
		size_t len = (uint8_t)rest.ptr[0];

		if (len >= rest.len || ret->count == TIMED_RUN_ELEMENTS)
			return STATUS_CORRUPT;
		ret->values[ret->count] = str_of(rest.ptr + 1, len);
		rest = str_skip(rest, 1 + len);
	}
	return ret->count > 1 ? STATUS_OK : STATUS_CORRUPT;
}

/* ---- Scores ---- */

void
timed_score_put(double score, uint8_t ret[TIMED_SCORE_BYTES])
{
	uint64_t bits;

	memcpy(&bits, &score, sizeof(bits));
	bits = htobe64(bits);
	memcpy(ret, &bits, sizeof(bits));
}

double
timed_score_get(const uint8_t bytes[TIMED_SCORE_BYTES])
{
	uint64_t bits;
	double score;

	memcpy(&bits, bytes, sizeof(bits));
	bits = be64toh(bits);
	memcpy(&score, &bits, sizeof(score));
	return score;
}

void
timed_score_order(double score, uint8_t ret[TIMED_SCORE_BYTES])
{
	const uint64_t sign = UINT64_C(1) << 63;
	double plain = score == 0 ? 0 : score;
	uint64_t bits;

	memcpy(&bits, &plain, sizeof(bits));
	bits = htobe64(bits & sign ? ~bits : bits | sign);
	memcpy(ret, &bits, sizeof(bits));
}
