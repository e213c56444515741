/* The record of purges: writing it, reading it, its limit and its readers. */
#include "model/revisioned/purges.h"

#include <assert.h>

#include "base/rand.h"
#include "loop/step.h"
#include "model/revisioned/record.h"
#include "model/revisioned/revisioned_int.h"

enum {
	/*
	 * A record of more heads has parts, each with a key of its own. A part ends behind the head
	 * that reaches this; one head takes less than a key, since it has been in one.
	 */
	PURGE_PART_BYTES = KV_LIMIT_VALUE_BYTES - KV_LIMIT_KEY_BYTES,
};

#define PURGES_LIMIT_NAME STR("purged_infos_limit")

/* ---- Keys ---- */

/* (P, PURGES, "records", incarnation, versionstamp); returns the offset of the stamp. */
static size_t
purge_key_seq(struct buf *key, const struct catalog_db *db, const struct catalog_seq *seq)
{
	rev_key_named(key, db, REV_SUBSPACE_PURGES, REV_PURGES_RECORDS);
	tuple_put_u64(key, seq->bytes[0]);
	return tuple_put_versionstamp(key, seq->bytes + 1);
}

enum status
rev_purge_key_parse(struct str tail, struct catalog_seq *ret, uint64_t *ret_part)
{
	struct tuple_reader r = tuple_reader(tail);
	uint64_t incarnation;
	const uint8_t *stamp;

	TRY(tuple_next_u64(&r, &incarnation));
	TRY(tuple_next_versionstamp(&r, &stamp));
	TRY(tuple_next_u64(&r, ret_part));
	if (r.rest.len || incarnation > UINT8_MAX)
		return STATUS_CORRUPT;
	ret->bytes[0] = (uint8_t)incarnation;
	memcpy(ret->bytes + 1, stamp, KV_VERSIONSTAMP_BYTES);
	return STATUS_OK;
}

/* (P, PURGES, "readers", name) */
static enum status
purge_key_reader(struct buf *key, const struct catalog_db *db, struct str name, struct err *err)
{
	if (name.len == 0 || name.len > REV_PURGE_READER_BYTES)
		return err_set(err, STATUS_INVALID,
			       "The name of a reader of purges has 1 to %d bytes.",
			       REV_PURGE_READER_BYTES);
	rev_key_named(key, db, REV_SUBSPACE_PURGES, REV_PURGES_READERS);
	tuple_put_str(key, name);
	return catalog_key_status(key);
}

/* The bounds of what lies below (P, PURGES, part), and the length of that. */
static enum status
purge_bounds(const struct catalog_db *db, struct str part, struct buf *begin, struct buf *end,
	     size_t *ret_prefix_len)
{
	rev_key_named(begin, db, REV_SUBSPACE_PURGES, part);
	rev_key_named(end, db, REV_SUBSPACE_PURGES, part);
	buf_append_byte(end, CATALOG_KEY_LAST);
	*ret_prefix_len = begin->len;
	TRY(catalog_key_status(begin));
	return catalog_key_status(end);
}

/* ---- Writing ---- */

static enum status
purge_write_part(struct rev_writer *w, uint16_t order, uint64_t part)
{
	struct catalog_seq seq = { { w->db->incarnation } };
	size_t offset;

	catalog_stamp(order, seq.bytes + 1);
	offset = purge_key_seq(&w->key, w->db, &seq);
	tuple_put_u64(&w->key, part);
	TRY(catalog_key_status(&w->key));
	TRY(buf_status(&w->value));
	return kv_set_versionstamped_key(w->tx, buf_str(&w->key), offset, buf_str(&w->value));
}

enum status
rev_purge_write(struct rev_writer *w, struct str id, uint16_t order, const struct rev_id *revs,
		size_t count)
{
	uint8_t purge_id[REV_PURGE_ID_BYTES];
	uint64_t part = 0;

	rand_bytes(purge_id, sizeof(purge_id));
	for (size_t i = 0; i < count; part++) {
		rev_purge_record_begin(&w->value, purge_id, id);
		while (i < count && w->value.len < PURGE_PART_BYTES)
			rev_purge_record_add(&w->value, revs[i++]);
		TRY(purge_write_part(w, order, part));
	}
	TRY(step_count((uint32_t)count));
	return rev_stat_add(w->tx, w->db, REV_STAT_PURGES, 1, &w->key);
}

/* ---- Reading ---- */

/* Takes one pair: a purge of its own, or more heads of the last one. */
static enum status
page_take_part(struct rev_purge_page *page, const struct catalog_seq *seq, struct str value,
	       struct arena *arena, struct err *err)
{
	struct rev_purge *last = page->count ? &page->purges[page->count - 1] : NULL;
	struct rev_purge part;
	struct rev_id *revs;

	TRY(rev_purge_record_parse(value, arena, &part, err));
	part.seq = *seq;
	if (!last || catalog_seq_cmp(&last->seq, seq) != 0) {
		page->purges[page->count++] = part;
		return STATUS_OK;
	}
	revs = arena_alloc(arena, (last->count + part.count) * sizeof(*revs));
	if (!revs)
		return STATUS_LIMIT;
	memcpy(revs, last->revs, last->count * sizeof(*revs));
	memcpy(revs + last->count, part.revs, part.count * sizeof(*revs));
	last->revs = revs;
	last->count += part.count;
	return STATUS_OK;
}

/* Reads until there are enough purges, the last of them with all its parts. */
static enum status
purges_page_read(struct kv_scan *scan, size_t prefix_len, size_t most, struct arena *arena,
		 struct rev_purge_page *page, struct err *err)
{
	size_t bytes = 0;

	for (;;) {
		struct catalog_seq seq;
		struct kv_pair pair;
		uint64_t part;
		enum status status = kv_scan_next(scan, &pair);

		if (status == STATUS_NOT_FOUND)
			return STATUS_OK;
		TRY(status);
		TRY(rev_purge_key_parse(str_skip(pair.key, prefix_len), &seq, &part));
		/* A purge has all its parts on one page: the next one ends that, and no count. */
		assert(page->count <= most);
		if ((page->count == most || bytes >= REV_PURGES_PAGE_BYTES) &&
		    catalog_seq_cmp(&page->purges[page->count - 1].seq, &seq) != 0)
			return STATUS_OK;
		bytes += pair.key.len + pair.value.len;
		TRY(page_take_part(page, &seq, pair.value, arena, err));
		TRY(step_count(1));
	}
}

enum status
rev_purges_page(struct kv_tx *tx, const struct catalog_db *db, const struct catalog_seq *since,
		size_t most, struct arena *arena, struct rev_purge_page *ret, struct err *err)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	const struct kv_range_options options = { .limit_bytes = REV_PURGES_PAGE_BYTES,
						  .mode = KV_READ };
	struct rev_purge_page page = { 0 };
	struct kv_scan scan;
	size_t prefix_len;
	enum status status;

	if (most == 0 || most > REV_PURGES_PAGE)
		most = REV_PURGES_PAGE;
	page.purges = arena_alloc(arena, most * sizeof(*page.purges));
	if (!page.purges)
		return STATUS_LIMIT;
	TRY(purge_bounds(db, REV_PURGES_RECORDS, &begin, &end, &prefix_len));
	(void)purge_key_seq(&begin, db, since);
	buf_append_byte(&begin, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&begin));
	TRY(kv_scan_init(&scan, tx, buf_str(&begin), buf_str(&end), &options));
	status = purges_page_read(&scan, prefix_len, most, arena, &page, err);
	kv_scan_release(&scan);
	if (status == STATUS_OK)
		*ret = page;
	return status;
}

/* ---- The limit ---- */

enum status
rev_purges_limit_get(struct kv_tx *tx, const struct catalog_db *db, struct arena *arena,
		     uint64_t *ret)
{
	struct str text;
	enum status status = rev_config_get(tx, db, PURGES_LIMIT_NAME, arena, &text);

	if (status == STATUS_NOT_FOUND) {
		*ret = REV_PURGES_LIMIT_DEFAULT;
		return STATUS_OK;
	}
	TRY(status);
	return str_to_u64(text, ret) ? STATUS_OK : STATUS_CORRUPT;
}

enum status
rev_purges_limit_set(struct kv_tx *tx, const struct catalog_db *db, uint64_t limit, struct err *err)
{
	AUTO(buf_release) struct buf text = BUF_INIT(32);

	if (limit < 1)
		return err_set(err, STATUS_INVALID, "The limit of purges must be 1 at least.");
	buf_append_u64(&text, limit);
	TRY(buf_status(&text));
	return rev_config_set(tx, db, PURGES_LIMIT_NAME, buf_str(&text), err);
}

/* How many records there are beyond the limit. The counter is exact, whoever is purging. */
static enum status
purges_excess(struct kv_tx *tx, const struct catalog_db *db, struct arena *arena, uint64_t *ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct kv_future *f;
	uint64_t count, limit;

	rev_key_named(&key, db, REV_SUBSPACE_STATS, REV_STAT_PURGES);
	TRY(catalog_key_status(&key));
	f = kv_get(tx, buf_str(&key), KV_SNAPSHOT);
	TRY(rev_purges_limit_get(tx, db, arena, &limit));
	TRY(catalog_counter_wait(f, &count));
	*ret = count > limit ? count - limit : 0;
	return STATUS_OK;
}

enum status
rev_purges_over(struct kv_tx *tx, const struct catalog_db *db, struct arena *arena, bool *ret)
{
	uint64_t excess;

	TRY(purges_excess(tx, db, arena, &excess));
	*ret = excess > 0;
	return STATUS_OK;
}

/* The Sequence up to which every reader has read; the greatest of all without readers. */
static enum status
readers_least(struct kv_tx *tx, const struct catalog_db *db, struct catalog_seq *ret,
	      struct err *err)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	const struct kv_range_options options = { .mode = KV_READ };
	struct kv_scan scan;
	struct kv_pair pair;
	size_t prefix_len;
	enum status status;

	memset(ret, UINT8_MAX, sizeof(*ret));
	TRY(purge_bounds(db, REV_PURGES_READERS, &begin, &end, &prefix_len));
	TRY(kv_scan_init(&scan, tx, buf_str(&begin), buf_str(&end), &options));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		struct catalog_seq seq;

		status = rev_purge_mark_parse(pair.value, &seq, err);
		if (status != STATUS_OK)
			break;
		if (catalog_seq_cmp(&seq, ret) < 0)
			*ret = seq;
	}
	kv_scan_release(&scan);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* Of the oldest records those that may go, `excess` at most: how many, and the last of them. */
static enum status
trim_find(const struct kv_range *range, size_t prefix_len, uint64_t excess,
	  const struct catalog_seq *seen, uint64_t *ret_count, struct catalog_seq *ret_last)
{
	*ret_count = 0;
	for (size_t i = 0; i < range->count; i++) {
		struct catalog_seq seq;
		uint64_t part;

		TRY(rev_purge_key_parse(str_skip(range->pairs[i].key, prefix_len), &seq, &part));
		if (*ret_count && catalog_seq_cmp(&seq, ret_last) == 0)
			continue;
		if (*ret_count == excess || catalog_seq_cmp(&seq, seen) > 0)
			break;
		++*ret_count;
		*ret_last = seq;
	}
	return STATUS_OK;
}

/* Clears the records up to `last`, all parts of it included. */
static enum status
trim_clear(struct kv_tx *tx, const struct catalog_db *db, const struct catalog_seq *last,
	   uint64_t count)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf other = CATALOG_KEY_INIT;

	rev_key_named(&key, db, REV_SUBSPACE_PURGES, REV_PURGES_RECORDS);
	(void)purge_key_seq(&other, db, last);
	buf_append_byte(&other, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&key));
	TRY(catalog_key_status(&other));
	TRY(kv_clear_range(tx, buf_str(&key), buf_str(&other)));
	rev_key_named(&key, db, REV_SUBSPACE_PURGES, REV_PURGES_CLEARED);
	TRY(catalog_key_status(&key));
	rev_purge_mark_put(&other, last);
	TRY(buf_status(&other));
	TRY(kv_set(tx, buf_str(&key), buf_str(&other)));
	return rev_stat_add(tx, db, REV_STAT_PURGES, -(int64_t)count, &key);
}

enum status
rev_purges_trim(struct kv_tx *tx, const struct catalog_db *db, struct arena *arena, bool *ret_more,
		struct err *err)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	/*
	 * A plain read of the oldest records: of two that trim at the same time, one conflicts, so
	 * that the counter is lowered once for each record.
	 */
	struct kv_range_options options = { .limit = REV_PURGES_TRIM_KEYS, .mode = KV_READ };
	struct catalog_seq seen, last;
	struct kv_future *records;
	struct kv_range range;
	uint64_t excess, count;
	size_t prefix_len;

	TRY(catalog_db_check_writable(db, err));
	TRY(purges_excess(tx, db, arena, &excess));
	*ret_more = false;
	if (excess == 0)
		return STATUS_OK;
	TRY(purge_bounds(db, REV_PURGES_RECORDS, &begin, &end, &prefix_len));
	records = kv_get_range(tx, buf_str(&begin), buf_str(&end), &options);
	TRY(readers_least(tx, db, &seen, err));
	TRY(kv_future_wait(records));
	range = kv_future_range(records);
	TRY(trim_find(&range, prefix_len, excess, &seen, &count, &last));
	if (count == 0)
		return STATUS_OK;
	*ret_more = count < excess && range.more;
	return trim_clear(tx, db, &last, count);
}

/* ---- Readers ---- */

static enum status
reader_put(struct kv_tx *tx, struct str key, const struct catalog_seq *seq)
{
	AUTO(buf_release) struct buf value = BUF_INIT(KV_LIMIT_VALUE_BYTES);

	rev_purge_mark_put(&value, seq);
	TRY(buf_status(&value));
	return kv_set(tx, key, buf_str(&value));
}

enum status
rev_purge_reader_add(struct kv_tx *tx, const struct catalog_db *db, struct str name,
		     struct catalog_seq *ret, struct err *err)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct catalog_seq newest;

	TRY(catalog_db_check_writable(db, err));
	TRY(rev_stat_purged_read(tx, db, &newest));
	TRY(purge_key_reader(&key, db, name, err));
	TRY(reader_put(tx, buf_str(&key), &newest));
	*ret = newest;
	return STATUS_OK;
}

enum status
rev_purge_reader_get(struct kv_tx *tx, const struct catalog_db *db, struct str name,
		     struct catalog_seq *ret, struct err *err)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct kv_future *f;
	struct str value;

	TRY(purge_key_reader(&key, db, name, err));
	f = kv_get(tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &value))
		return STATUS_NOT_FOUND;
	return rev_purge_mark_parse(value, ret, err);
}

enum status
rev_purge_reader_advance(struct kv_tx *tx, const struct catalog_db *db, struct str name,
			 const struct catalog_seq *seq, struct err *err)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct catalog_seq at;

	TRY(catalog_db_check_writable(db, err));
	TRY(rev_purge_reader_get(tx, db, name, &at, err));
	if (catalog_seq_cmp(seq, &at) <= 0)
		return STATUS_OK;
	TRY(purge_key_reader(&key, db, name, err));
	return reader_put(tx, buf_str(&key), seq);
}

enum status
rev_purge_reader_remove(struct kv_tx *tx, const struct catalog_db *db, struct str name,
			struct err *err)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	TRY(catalog_db_check_writable(db, err));
	TRY(purge_key_reader(&key, db, name, err));
	return kv_clear(tx, buf_str(&key));
}
