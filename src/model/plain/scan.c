#include "model/plain/plain_int.h"

#include "kv/few.h"

enum {
	FIRST_LEAVES = 16, /* taken for a document's, where it is not known how many it has */
};

/* ---- Bounds ---- */

/* The key of the record of an `_id`, or what follows all keys of the record. */
static enum status
bound_put(struct plain *p, const struct bson_value *id, bool behind, struct buf *ret)
{
	TRY(plain_key_record(p->db, id, ret, p->err));
	if (behind)
		buf_append_byte(ret, CATALOG_KEY_LAST);
	return catalog_key_status(ret);
}

static enum status
scan_bounds(struct plain *p, const struct plain_range *range, struct buf *begin, struct buf *end)
{
	struct buf *resumed = range->reverse ? end : begin;

	plain_key_space(begin, p->db, PLAIN_SPACE_RECORDS);
	TRY(catalog_key_status(begin));
	TRY(plain_key_end(buf_str(begin), end));
	if (range->from)
		TRY(bound_put(p, range->from, range->from_open, begin));
	if (range->to)
		TRY(bound_put(p, range->to, !range->to_open, end));
	if (!range->resume.len)
		return STATUS_OK;
	buf_clear(resumed);
	buf_append_str(resumed, range->resume);
	if (!range->reverse)
		buf_append_byte(resumed, CATALOG_KEY_LAST);
	return catalog_key_status(resumed);
}

enum status
plain_scan_open(struct plain_scan *s, struct plain *p, const struct plain_range *range)
{
	const struct kv_range_options options = {
		.reverse = range->reverse,
		.ahead = true,
		.mode = range->mode,
	};
	size_t first = range->first * (plain_scheme_of(p->db) == PLAIN_PACKED ? 1 : FIRST_LEAVES);
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;

	*s = (struct plain_scan){
		.p = p,
		.ahead = BUF_INIT(2 * KV_LIMIT_VALUE_BYTES),
		.place = BUF_INIT(KV_LIMIT_KEY_BYTES),
		.reverse = range->reverse,
		.mode = range->mode,
	};
	TRY(scan_bounds(p, range, &begin, &end));
	return kv_scan_init_few(&s->scan, p->tx, buf_str(&begin), buf_str(&end), &options, first);
}

void
plain_scan_close(struct plain_scan *s)
{
	kv_scan_release(&s->scan);
	buf_release(&s->ahead);
	buf_release(&s->place);
}

struct str
plain_scan_place(const struct plain_scan *s)
{
	return buf_str(&s->place);
}

/* ---- Documents ---- */

/* The next pair; the one that was read beyond the last document comes first. */
static enum status
scan_pair(struct plain_scan *s, struct kv_pair *ret)
{
	if (s->pair.key.ptr) {
		*ret = s->pair;
		s->pair.key.ptr = NULL;
		return STATUS_OK;
	}
	return s->done ? STATUS_NOT_FOUND : kv_scan_next(&s->scan, ret);
}

/* Keeps a pair that belongs to the next document, since the scan goes on before it is used. */
static enum status
scan_keep(struct plain_scan *s, const struct kv_pair *pair)
{
	buf_clear(&s->ahead);
	buf_append_str(&s->ahead, pair->key);
	buf_append_str(&s->ahead, pair->value);
	TRY(buf_status(&s->ahead));
	s->pair.key = str_of(s->ahead.ptr, pair->key.len);
	s->pair.value = str_of(s->ahead.ptr + pair->key.len, pair->value.len);
	return STATUS_OK;
}

/* Copies the pairs of one record, in the order of their keys. */
static enum status
scan_record(struct plain_scan *s, struct arena *arena, struct plain_pairs *ret,
	    size_t *ret_record_bytes)
{
	struct kv_pair pair;
	enum status status;
	struct str record;

	*ret = (struct plain_pairs){ 0 };
	TRY(scan_pair(s, &pair));
	if (plain_key_record_bytes(s->p->db, pair.key, ret_record_bytes) != STATUS_OK)
		return plain_fail_corrupt(s->p, pair.key, "a key");
	buf_clear(&s->place);
	buf_append(&s->place, pair.key.ptr, *ret_record_bytes);
	TRY(buf_status(&s->place));
	record = buf_str(&s->place);
	do {
		TRY(plain_pairs_add(ret, arena, pair.key, pair.value));
		/* In a packed collection each key is a record; its end need not be looked for. */
		if (plain_scheme_of(s->p->db) == PLAIN_PACKED)
			return STATUS_OK;
		status = scan_pair(s, &pair);
	} while (status == STATUS_OK && str_starts_with(pair.key, record));
	if (status == STATUS_OK)
		return scan_keep(s, &pair);
	s->done = true;
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static void
pairs_reverse(struct plain_pairs *pairs)
{
	for (size_t i = 0, j = pairs->count; i + 1 < j; i++) {
		struct kv_pair pair = pairs->pairs[i];

		pairs->pairs[i] = pairs->pairs[--j];
		pairs->pairs[j] = pair;
	}
}

enum status
plain_scan_next(struct plain_scan *s, struct arena *arena, struct str *ret)
{
	struct plain_pairs pairs;
	struct plain_root root;
	enum status status;
	size_t record_bytes;
	struct str key;

	TRY(scan_record(s, arena, &pairs, &record_bytes));
	if (s->reverse)
		pairs_reverse(&pairs);
	key = pairs.pairs[0].key;
	if (key.len != record_bytes)
		return plain_fail_corrupt(s->p, key, "a leaf without a document");
	status = plain_root_parse(pairs.pairs[0].value, arena, &root, s->p->err);
	if (status == STATUS_CORRUPT)
		return plain_fail_corrupt(s->p, key, "a document");
	TRY(status);
	if (root.form != PLAIN_FORM_LEAVES)
		return plain_read_root(s->p, key, &root, s->mode, arena, ret);
	for (size_t i = 1; i < pairs.count; i++)
		pairs.pairs[i].key = str_skip(pairs.pairs[i].key, record_bytes);
	status = plain_assemble(&root, pairs.pairs + 1, pairs.count - 1, arena, ret);
	return status == STATUS_CORRUPT ? plain_fail_corrupt(s->p, key, "the leaves of a document")
					: status;
}
