#include <assert.h>
#include <stdlib.h>

#include "model/revisioned/record.h"
#include "model/revisioned/revisioned_int.h"

/* ---- Going through a list ---- */

static enum status
list_cursor_open(struct rev_cursor *c, struct kv_tx *tx, const struct buf *lo, const struct buf *hi,
		 size_t limit, bool reverse, bool ahead)
{
	const struct kv_range_options options = {
		.limit = limit,
		.limit_bytes = CATALOG_PAGE_BYTES,
		.reverse = reverse,
		.ahead = ahead,
		.mode = KV_SNAPSHOT,
	};

	c->open = true;
	return kv_scan_init(&c->scan, tx, buf_str(lo), buf_str(hi), &options);
}

void
rev_cursor_end(struct rev_cursor *c)
{
	if (c->open)
		kv_scan_release(&c->scan);
	*c = (struct rev_cursor){ 0 };
}

/* ---- Changes ---- */

/* Makes the bounds of the keys with since < Sequence <= until, or < until if that is exclusive. */
static enum status
change_bounds(const struct catalog_db *db, const struct rev_change_range *range, struct buf *lo,
	      struct buf *hi)
{
	rev_key_change(lo, db, &range->since);
	buf_append_byte(lo, CATALOG_KEY_NEXT);
	rev_key_change(hi, db, &range->until);
	if (!range->exclusive_until)
		buf_append_byte(hi, CATALOG_KEY_NEXT);
	TRY(catalog_key_status(lo));
	return catalog_key_status(hi);
}

/* Parses an entry of CHANGES. `tail` is its key behind the prefix. `keep` copies its strings. */
static enum status
change_parse_pair(struct str tail, struct str value, bool keep, struct arena *arena,
		  struct rev_change *ret, struct err *err)
{
	struct tuple_reader k = tuple_reader(tail);
	const uint8_t *stamp;
	uint64_t incarnation;

	TRY(tuple_next_u64(&k, &incarnation));
	TRY(tuple_next_versionstamp(&k, &stamp));
	if (incarnation > UINT8_MAX)
		return STATUS_CORRUPT;
	ret->seq.bytes[0] = (uint8_t)incarnation;
	memcpy(ret->seq.bytes + 1, stamp, KV_VERSIONSTAMP_BYTES);
	return rev_change_parse(value, keep, arena, ret, err);
}

static enum status
changes_open(struct rev_cursor *c, struct kv_tx *tx, const struct catalog_db *db,
	     const struct rev_change_range *range, size_t limit, bool ahead)
{
	AUTO(buf_release) struct buf lo = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf hi = CATALOG_KEY_INIT;

	*c = (struct rev_cursor){ 0 };
	rev_key_space(&lo, db, REV_SUBSPACE_CHANGES);
	TRY(catalog_key_status(&lo));
	c->prefix_len = lo.len;
	TRY(change_bounds(db, range, &lo, &hi));
	return list_cursor_open(c, tx, &lo, &hi, limit, range->descending, ahead);
}

enum status
rev_changes_page(struct kv_tx *tx, const struct catalog_db *db,
		 const struct rev_change_range *range, struct arena *arena,
		 struct rev_change_page *ret)
{
	AUTO(rev_cursor_end) struct rev_cursor c = { 0 };
	struct rev_change_page page = { 0 };
	size_t cap = 0, bytes = 0;
	struct kv_pair pair;
	enum status status;

	TRY(changes_open(&c, tx, db, range, name_range_scan_limit(0, range->limit), false));
	while ((status = kv_scan_next(&c.scan, &pair)) == STATUS_OK) {
		if (page.count >= range->limit || bytes >= CATALOG_PAGE_BYTES) {
			page.more = true;
			break;
		}
		TRY(catalog_array_grow(arena, (void **)&page.changes, sizeof(*page.changes),
				       page.count, &cap));
		TRY(change_parse_pair(str_skip(pair.key, c.prefix_len), pair.value, true, arena,
				      &page.changes[page.count], kv_tx_err(tx)));
		page.count++;
		bytes += pair.key.len + pair.value.len;
	}
	if (status != STATUS_OK && status != STATUS_NOT_FOUND)
		return status;
	*ret = page;
	return STATUS_OK;
}

enum status
rev_changes_begin(struct rev_cursor *c, struct kv_tx *tx, const struct catalog_db *db,
		  const struct rev_change_range *range)
{
	return changes_open(c, tx, db, range, range->limit, true);
}

enum status
rev_changes_next(struct rev_cursor *c, size_t most, bool keep, struct arena *arena,
		 struct rev_change_page *ret)
{
	struct err *err = kv_tx_err(c->scan.tx);
	struct kv_range range;
	enum status status = kv_scan_take(&c->scan, most, &range);

	*ret = (struct rev_change_page){ 0 };
	if (status == STATUS_NOT_FOUND)
		return STATUS_OK;
	TRY(status);
	ret->changes = arena_alloc(arena, range.count * sizeof(*ret->changes));
	if (!ret->changes)
		return STATUS_LIMIT;
	for (size_t i = 0; i < range.count; i++)
		TRY(change_parse_pair(str_skip(range.pairs[i].key, c->prefix_len),
				      range.pairs[i].value, keep, arena, &ret->changes[i], err));
	ret->count = range.count;
	ret->more = range.more;
	return STATUS_OK;
}

static bool
change_in_range(const struct rev_change_range *range, const struct catalog_seq *seq)
{
	int end = catalog_seq_cmp(seq, &range->until);

	return catalog_seq_cmp(seq, &range->since) > 0 &&
	       (range->exclusive_until ? end < 0 : end <= 0);
}

static int
compare_changes(const void *a, const void *b)
{
	return catalog_seq_cmp(&((const struct rev_change *)a)->seq,
			       &((const struct rev_change *)b)->seq);
}

static void
reverse_changes(struct rev_change *changes, size_t count)
{
	for (size_t i = 0; i < count / 2; i++) {
		struct rev_change c = changes[i];

		changes[i] = changes[count - 1 - i];
		changes[count - 1 - i] = c;
	}
}

/* Makes the document's change from its winner. STATUS_NOT_FOUND if there is no such document. */
static enum status
change_read_of_winner(struct kv_tx *tx, const struct catalog_db *db, struct str id,
		      struct kv_future *f, struct buf *key, struct arena *arena,
		      struct rev_change *ret)
{
	const struct rev_branch_record *row;
	struct rev_branch_records rows;

	TRY(rev_branches_wait(tx, db, id, 1, KV_SNAPSHOT, f, key, arena, &rows));
	if (rows.count == 0)
		return STATUS_NOT_FOUND;
	row = &rows.rows[0];
	*ret = (struct rev_change){
		.seq = row->seq,
		.id = id,
		.rev = { row->rev.pos, arena_dup(arena, row->rev.hash) },
		.deleted = row->deleted,
		.branch_count = row->branch_count,
	};
	return ret->rev.hash.ptr ? STATUS_OK : STATUS_LIMIT;
}

enum status
rev_changes_of(struct kv_tx *tx, const struct catalog_db *db, const struct rev_change_range *range,
	       const struct str *ids, size_t count, struct arena *arena,
	       struct rev_change_page *ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct kv_future **wave = arena_alloc(arena, (count + 1) * sizeof(struct kv_future *));
	struct rev_change_page page = { 0 };

	page.changes = arena_alloc(arena, (count + 1) * sizeof(*page.changes));
	if (!wave || !page.changes)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		wave[i] = NULL;
		if ((i && str_eq(ids[i], ids[i - 1])) || ids[i].len > REV_DOC_ID_BYTES)
			continue;
		TRY(rev_branches_read(tx, db, ids[i], 1, KV_SNAPSHOT, &key, &wave[i]));
	}
	for (size_t i = 0; i < count; i++) {
		struct rev_change *c = &page.changes[page.count];
		enum status status = STATUS_NOT_FOUND;

		if (wave[i])
			status = change_read_of_winner(tx, db, ids[i], wave[i], &key, arena, c);
		if (status != STATUS_OK && status != STATUS_NOT_FOUND)
			return status;
		if (status == STATUS_OK && change_in_range(range, &c->seq))
			page.count++;
	}
	qsort(page.changes, page.count, sizeof(*page.changes), compare_changes);
	if (range->descending)
		reverse_changes(page.changes, page.count);
	*ret = page;
	return STATUS_OK;
}

/* Counts the keys of a list that lie between two keys. */
static enum status
list_count_between(struct kv_tx *tx, const struct catalog_db *db, enum rev_list list,
		   const struct buf *lo, const struct buf *hi, uint64_t *ret)
{
	uint64_t before_lo, before_hi;

	*ret = 0;
	if (str_cmp(buf_str(lo), buf_str(hi)) >= 0)
		return STATUS_OK;
	TRY(catalog_tally_rank(tx, db, list, rev_key_tail(hi, db), false, &before_hi));
	TRY(catalog_tally_rank(tx, db, list, rev_key_tail(lo, db), false, &before_lo));
	*ret = before_hi - before_lo;
	return STATUS_OK;
}

enum status
rev_changes_count(struct kv_tx *tx, const struct catalog_db *db,
		  const struct rev_change_range *range, uint64_t *ret)
{
	static const struct catalog_seq none;
	AUTO(buf_release) struct buf lo = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf hi = CATALOG_KEY_INIT;
	struct catalog_seq end;

	memset(end.bytes, 0xff, sizeof(end.bytes));
	TRY(change_bounds(db, range, &lo, &hi));
	if (catalog_seq_cmp(&range->until, &end) == 0)
		return catalog_tally_rank(tx, db, REV_LIST_CHANGES, rev_key_tail(&lo, db), true,
					  ret);
	if (catalog_seq_cmp(&range->since, &none) == 0)
		return catalog_tally_rank(tx, db, REV_LIST_CHANGES, rev_key_tail(&hi, db), false,
					  ret);
	return list_count_between(tx, db, REV_LIST_CHANGES, &lo, &hi, ret);
}

/* ---- Documents by id ---- */

static enum status
entry_parse_pair(struct str tail, struct str value, bool keep, struct arena *arena,
		 struct rev_entry *ret, struct err *err)
{
	struct tuple_reader k = tuple_reader(tail);

	TRY(catalog_next_text(&k, TUPLE_STRING, arena, keep, &ret->id));
	return rev_entry_parse(value, keep, arena, &ret->rev, err);
}

static enum status
entries_open(struct rev_cursor *c, struct kv_tx *tx, const struct catalog_db *db,
	     const struct name_range *range, size_t limit, bool ahead)
{
	AUTO(buf_release) struct buf lo = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf hi = CATALOG_KEY_INIT;

	*c = (struct rev_cursor){ .skip = range->skip };
	rev_key_space(&lo, db, REV_SUBSPACE_ALL_DOCS);
	TRY(catalog_key_status(&lo));
	c->prefix_len = lo.len;
	TRY(name_range_bounds(range, CATALOG_KEY_NEXT, &lo, &hi));
	return list_cursor_open(c, tx, &lo, &hi, limit, range->descending, ahead);
}

enum status
rev_all_docs_page(struct kv_tx *tx, const struct catalog_db *db, const struct name_range *range,
		  struct arena *arena, struct rev_entry_page *ret)
{
	AUTO(rev_cursor_end) struct rev_cursor c = { 0 };
	struct rev_entry_page page = { 0 };
	size_t cap = 0, bytes = 0;
	struct kv_pair pair;
	enum status status;

	TRY(entries_open(&c, tx, db, range, name_range_scan_limit(range->skip, range->limit),
			 false));
	while ((status = kv_scan_next(&c.scan, &pair)) == STATUS_OK) {
		struct str tail = str_skip(pair.key, c.prefix_len);

		if (page.skipped < range->skip) {
			struct tuple_reader k = tuple_reader(tail);

			/* The next page begins behind the last entry that this one skips. */
			if (page.skipped == REV_PAGE_SKIP) {
				page.more = true;
				break;
			}
			page.skipped++;
			if (page.skipped == REV_PAGE_SKIP)
				TRY(catalog_next_text(&k, TUPLE_STRING, arena, true, &page.last));
			continue;
		}
		/* One entry more than the limit is asked for: it tells that there is more. */
		if (page.count >= range->limit || bytes >= CATALOG_PAGE_BYTES) {
			page.more = true;
			break;
		}
		assert(page.skipped == range->skip);
		TRY(catalog_array_grow(arena, (void **)&page.entries, sizeof(*page.entries),
				       page.count, &cap));
		TRY(entry_parse_pair(tail, pair.value, true, arena, &page.entries[page.count],
				     kv_tx_err(tx)));
		page.last = page.entries[page.count].id;
		page.count++;
		bytes += pair.key.len + pair.value.len;
	}
	if (status != STATUS_OK && status != STATUS_NOT_FOUND)
		return status;
	*ret = page;
	return STATUS_OK;
}

enum status
rev_all_docs_begin(struct rev_cursor *c, struct kv_tx *tx, const struct catalog_db *db,
		   const struct name_range *range)
{
	size_t limit = range->limit;

	if (limit)
		limit = range->skip < SIZE_MAX - limit ? limit + (size_t)range->skip : 0;
	return entries_open(c, tx, db, range, limit, true);
}

/* Answers a page that consists of skipped entries alone. */
static enum status
entries_skip_page(struct rev_cursor *c, struct kv_range range, struct arena *arena,
		  struct rev_entry_page *ret)
{
	struct tuple_reader last = tuple_reader(
		str_skip(range.pairs[range.count - 1].key, c->prefix_len));

	c->skip -= range.count;
	ret->skipped = range.count;
	ret->more = range.more;
	return catalog_next_text(&last, TUPLE_STRING, arena, true, &ret->last);
}

enum status
rev_all_docs_next(struct rev_cursor *c, size_t most, bool keep, struct arena *arena,
		  struct rev_entry_page *ret)
{
	struct err *err = kv_tx_err(c->scan.tx);
	struct kv_range range;
	enum status status;

	*ret = (struct rev_entry_page){ 0 };
	if (c->skip)
		most = c->skip < SIZE_MAX ? (size_t)c->skip : SIZE_MAX;
	status = kv_scan_take(&c->scan, most, &range);
	if (status == STATUS_NOT_FOUND)
		return STATUS_OK;
	TRY(status);
	if (c->skip)
		return entries_skip_page(c, range, arena, ret);
	ret->entries = arena_alloc(arena, range.count * sizeof(*ret->entries));
	if (!ret->entries)
		return STATUS_LIMIT;
	for (size_t i = 0; i < range.count; i++)
		TRY(entry_parse_pair(str_skip(range.pairs[i].key, c->prefix_len),
				     range.pairs[i].value, keep, arena, &ret->entries[i], err));
	ret->count = range.count;
	ret->more = range.more;
	ret->last = ret->entries[ret->count - 1].id;
	return STATUS_OK;
}

enum status
rev_all_docs_estimate(struct kv_tx *tx, const struct catalog_db *db, const struct name_range *range,
		      uint64_t *ret)
{
	AUTO(buf_release) struct buf lo = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf hi = CATALOG_KEY_INIT;
	struct str begin, end;
	uint64_t low, high;

	rev_key_space(&lo, db, REV_SUBSPACE_ALL_DOCS);
	TRY(catalog_key_status(&lo));
	TRY(name_range_bounds(range, CATALOG_KEY_NEXT, &lo, &hi));
	begin = rev_key_tail(&lo, db);
	end = rev_key_tail(&hi, db);
	if (catalog_tally_estimate(db, REV_LIST_DOCS, begin, end, ret))
		return STATUS_OK;
	TRY(catalog_tally_rank(tx, db, REV_LIST_DOCS, begin, false, &low));
	TRY(catalog_tally_rank(tx, db, REV_LIST_DOCS, end, false, &high));
	*ret = high > low ? high - low : 0;
	return STATUS_OK;
}

enum status
rev_all_docs_offset(struct kv_tx *tx, const struct catalog_db *db, const struct name_range *range,
		    uint64_t *ret)
{
	AUTO(buf_release) struct buf lo = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf hi = CATALOG_KEY_INIT;
	/* The rows before the range end where it begins, seen in the direction of reading. */
	struct name_range before = { .end = range->begin, .has_end = true };

	if (!range->has_begin) {
		*ret = 0;
		return STATUS_OK;
	}
	before.exclusive_end = !range->exclusive_begin;
	before.descending = range->descending;
	rev_key_space(&lo, db, REV_SUBSPACE_ALL_DOCS);
	TRY(catalog_key_status(&lo));
	TRY(name_range_bounds(&before, CATALOG_KEY_NEXT, &lo, &hi));
	if (range->descending)
		return catalog_tally_rank(tx, db, REV_LIST_DOCS, rev_key_tail(&lo, db), true, ret);
	return catalog_tally_rank(tx, db, REV_LIST_DOCS, rev_key_tail(&hi, db), false, ret);
}
