#include "model/revisioned/revisioned_int.h"

enum status
rev_rows_read(struct kv_tx *tx, const struct rev_db *db, struct str id, size_t limit,
	      enum kv_read mode, struct buf *key, struct kv_future **ret)
{
	struct kv_range_options options = { .limit = limit, .reverse = true, .mode = mode };
	size_t prefix_len;

	rev_key_named(key, db, REV_SUBSPACE_REVISIONS, id);
	prefix_len = key->len;
	/* Both bounds from one buffer: the prefix, and behind it the prefix with an FF. */
	if (buf_reserve(key, prefix_len + 1)) {
		buf_append(key, key->ptr, prefix_len);
		buf_append_byte(key, REV_KEY_LAST);
	}
	TRY(rev_key_status(key));
	*ret = kv_get_range(tx, str_of(key->ptr, prefix_len),
			    str_of(key->ptr + prefix_len, key->len - prefix_len), &options);
	return STATUS_OK;
}

enum status
rev_row_parse(struct str tail, struct str value, struct arena *arena, struct rev_row *ret)
{
	struct tuple_reader k = tuple_reader(tail);
	struct tuple_reader v = tuple_reader(value);
	struct tuple_reader seq, ancestors;
	struct tuple_elem e;
	bool not_deleted;

	*ret = (struct rev_row){ 0 };
	TRY(tuple_next_bool(&k, &not_deleted));
	ret->deleted = !not_deleted;
	TRY(tuple_next_u64(&k, &ret->rev.pos));
	TRY(rev_next_text(&k, TUPLE_BYTES, arena, false, &ret->rev.hash));

	TRY(rev_next_format(&v));
	if (tuple_next(&v, &e) != STATUS_OK)
		return STATUS_CORRUPT;
	if (e.kind == TUPLE_NESTED) {
		const uint8_t *stamp;
		uint64_t incarnation;

		seq = tuple_reader_nested(&e);
		TRY(tuple_next_u64(&seq, &incarnation));
		TRY(tuple_next_versionstamp(&seq, &stamp));
		TRY(tuple_next_u64(&v, &ret->branch_count));
		if (incarnation > UINT8_MAX)
			return STATUS_CORRUPT;
		ret->winner = true;
		ret->seq.bytes[0] = (uint8_t)incarnation;
		memcpy(ret->seq.bytes + 1, stamp, KV_VERSIONSTAMP_BYTES);
	} else if (e.kind != TUPLE_NULL || tuple_next(&v, &e) != STATUS_OK ||
		   e.kind != TUPLE_NULL) {
		return STATUS_CORRUPT;
	}
	TRY(tuple_last_nested(&v, &ancestors));
	ret->ancestors = ancestors.rest;
	if (v.rest.len == 0)
		return STATUS_OK;
	TRY(tuple_next_bool(&v, &ret->has_atts));
	ret->has_one_key = !ret->has_atts;
	return STATUS_OK;
}

enum status
rev_rows_wait(struct kv_tx *tx, const struct rev_db *db, struct str id, size_t limit,
	      enum kv_read mode, struct kv_future *f, struct buf *key, struct arena *arena,
	      struct rev_rows *ret)
{
	struct rev_rows rows = { 0 };
	size_t cap = 0;

	for (;;) {
		struct kv_range range;
		struct kv_range_options options = { .reverse = true, .mode = mode };
		size_t prefix_len;
		struct str last;

		TRY(kv_future_wait(f));
		range = kv_future_range(f);
		rev_key_named(key, db, REV_SUBSPACE_REVISIONS, id);
		TRY(rev_key_status(key));
		prefix_len = key->len;
		for (size_t i = 0; i < range.count; i++) {
			const struct kv_pair *pair = &range.pairs[i];

			TRY(rev_array_grow(arena, (void **)&rows.rows, sizeof(*rows.rows),
					   rows.count, &cap));
			TRY(rev_row_parse(str_skip(pair->key, prefix_len), pair->value, arena,
					  &rows.rows[rows.count]));
			/* Seed 3: the winner comes last in its range, and it alone is marked. */
			if (rows.rows[rows.count].winner != (rows.count == 0))
				return STATUS_CORRUPT;
			rows.count++;
		}
		if (!range.more || range.count == 0 || (limit && rows.count >= limit))
			break;
		last = range.pairs[range.count - 1].key;
		if (limit)
			options.limit = limit - rows.count;
		f = kv_get_range(tx, buf_str(key), last, &options);
	}
	*ret = rows;
	return STATUS_OK;
}

enum status
rev_row_find(const struct rev_row *row, struct rev_id rev, struct buf *scratch, bool *ret_found,
	     struct str *ret_rest)
{
	struct tuple_reader r = { row->ancestors, true };
	struct tuple_elem e;

	*ret_found = false;
	if (rev.pos > row->rev.pos)
		return STATUS_OK;
	if (rev.pos == row->rev.pos) {
		*ret_found = str_eq(rev.hash, row->rev.hash);
		*ret_rest = row->ancestors;
		return STATUS_OK;
	}
	for (uint64_t pos = row->rev.pos; pos > rev.pos; pos--) {
		enum status status = tuple_next(&r, &e);

		if (status == STATUS_NOT_FOUND) /* forgotten, or never known */
			return STATUS_OK;
		TRY(status);
	}
	buf_clear(scratch);
	tuple_put_bytes(scratch, rev.hash);
	TRY(buf_status(scratch));
	*ret_found = str_eq(e.encoding, buf_str(scratch));
	*ret_rest = r.rest;
	return STATUS_OK;
}

int
rev_row_cmp(const struct rev_row *a, const struct rev_row *b)
{
	return rev_id_cmp(!a->deleted, a->rev, !b->deleted, b->rev);
}

void
rev_stem_init(struct rev_stem *stem, struct buf *out, const struct rev_db *db)
{
	buf_clear(out);
	stem->out = out;
	stem->left = db->revs_limit - 1; /* the leaf counts, as in CouchDB */
}

/*
 * Opaque hashes can make a list too long for a value before it has revs_limit elements; then the
 * oldest are forgotten as if the limit were that much lower.
 */
static bool
stem_has_room(struct rev_stem *stem, size_t encoded_bytes)
{
	if (stem->left == 0 || encoded_bytes > REV_ANCESTORS_BYTES - stem->out->len) {
		stem->left = 0;
		return false;
	}
	stem->left--;
	return true;
}

void
rev_stem_add(struct rev_stem *stem, struct str hash)
{
	if (stem_has_room(stem, rev_encoded_bytes(hash)))
		tuple_put_bytes(stem->out, hash);
}

enum status
rev_stem_add_encoded(struct rev_stem *stem, struct str ancestors, uint64_t most)
{
	struct tuple_reader r = { ancestors, true };
	struct tuple_elem e;
	enum status status;

	/* Mostly all of them fit, and that can be told without looking at each. */
	if (most > stem->left)
		TRY(tuple_skip_strings(&r, stem->left, &ancestors));
	if (ancestors.len <= REV_ANCESTORS_BYTES - stem->out->len) {
		buf_append_str(stem->out, ancestors);
		stem->left = 0;
		return STATUS_OK;
	}
	r = (struct tuple_reader){ ancestors, true };
	while (stem->left) {
		status = tuple_next(&r, &e);
		if (status == STATUS_NOT_FOUND)
			break;
		TRY(status);
		if (stem_has_room(stem, e.encoding.len))
			buf_append_str(stem->out, e.encoding);
	}
	return STATUS_OK;
}

void
rev_stamp(uint16_t order, uint8_t ret[KV_VERSIONSTAMP_BYTES])
{
	memset(ret, 0xff, KV_VERSIONSTAMP_TX_BYTES);
	ret[KV_VERSIONSTAMP_TX_BYTES] = (uint8_t)(order >> 8);
	ret[KV_VERSIONSTAMP_TX_BYTES + 1] = (uint8_t)order;
}

static void
put_tail(struct buf *value, const struct rev_row *row)
{
	tuple_open(value);
	buf_append_str(value, row->ancestors);
	tuple_close(value);
	if (row->has_atts || row->has_one_key)
		tuple_put_bool(value, row->has_atts);
}

void
rev_value_loser(struct buf *value, const struct rev_row *row)
{
	buf_clear(value);
	tuple_put_u64(value, REV_FORMAT);
	tuple_put_null(value);
	tuple_put_null(value);
	put_tail(value, row);
}

size_t
rev_value_winner(struct buf *value, uint8_t incarnation, uint16_t order, uint64_t branch_count,
		 const struct rev_row *row)
{
	uint8_t stamp[KV_VERSIONSTAMP_BYTES];
	size_t offset;

	rev_stamp(order, stamp);
	buf_clear(value);
	tuple_put_u64(value, REV_FORMAT);
	tuple_open(value);
	tuple_put_u64(value, incarnation);
	offset = tuple_put_versionstamp(value, stamp);
	tuple_close(value);
	tuple_put_u64(value, branch_count);
	put_tail(value, row);
	return offset;
}
