#include "model/revisioned/revisioned_int.h"

/* One document's question while it is being answered. */
struct diff {
	const struct rev_diff_query *query;
	struct rev_rows rows;
	struct buf *scratch;
	struct arena *arena;
};

static enum status
is_known(const struct diff *d, struct rev_id rev, bool *ret)
{
	*ret = false;
	for (size_t i = 0; i < d->rows.count && !*ret; i++) {
		struct str rest;

		TRY(rev_row_find(&d->rows.rows[i], rev, d->scratch, ret, &rest));
	}
	return STATUS_OK;
}

static enum status
diff_missing(const struct diff *d, struct rev_diff *ret, uint64_t *ret_highest)
{
	uint64_t highest = 0;
	size_t cap = 0;

	for (size_t i = 0; i < d->query->count; i++) {
		struct rev_id rev = d->query->revs[i];
		bool known;

		TRY(is_known(d, rev, &known));
		if (known)
			continue;
		TRY(rev_array_grow(d->arena, (void **)&ret->missing, sizeof(*ret->missing),
				   ret->missing_count, &cap));
		ret->missing[ret->missing_count++] = rev;
		if (rev.pos > highest)
			highest = rev.pos;
	}
	*ret_highest = highest;
	return STATUS_OK;
}

static enum status
diff_ancestors(const struct diff *d, uint64_t highest, struct rev_diff *ret)
{
	size_t cap = 0;

	for (size_t i = 0; i < d->rows.count; i++) {
		struct rev_id leaf = d->rows.rows[i].rev;

		if (leaf.pos >= highest)
			continue;
		TRY(rev_array_grow(d->arena, (void **)&ret->possible_ancestors,
				   sizeof(*ret->possible_ancestors), ret->possible_ancestors_count,
				   &cap));
		leaf.hash = arena_dup(d->arena, leaf.hash);
		if (!leaf.hash.ptr)
			return STATUS_LIMIT;
		ret->possible_ancestors[ret->possible_ancestors_count++] = leaf;
	}
	return STATUS_OK;
}

/* A bounded number of documents: their branches are read in one wave. */
static enum status
diff_wave(struct kv_tx *tx, const struct rev_db *db, const struct rev_diff_query *queries,
	  size_t count, struct arena *arena, struct buf *key, struct rev_diff *ret_diffs)
{
	AUTO(buf_release) struct buf scratch = BUF_INIT(KV_LIMIT_VALUE_BYTES);
	struct kv_future *futures[REV_DIFF_WAVE];

	for (size_t i = 0; i < count; i++)
		TRY(rev_rows_read(tx, db, queries[i].id, 0, KV_SNAPSHOT, key, &futures[i]));
	for (size_t i = 0; i < count; i++) {
		struct diff d = { .query = &queries[i], .scratch = &scratch, .arena = arena };
		struct rev_diff diff = { 0 };
		uint64_t highest;

		TRY(rev_rows_wait(tx, db, queries[i].id, 0, KV_SNAPSHOT, futures[i], key, arena,
				  &d.rows));
		TRY(diff_missing(&d, &diff, &highest));
		TRY(diff_ancestors(&d, highest, &diff));
		ret_diffs[i] = diff;
		kv_future_free(futures[i]);
	}
	return STATUS_OK;
}

enum status
rev_diff(struct kv_tx *tx, const struct rev_db *db, const struct rev_diff_query *queries,
	 size_t count, struct arena *arena, struct rev_diff *ret_diffs)
{
	AUTO(buf_release) struct buf key = REV_KEY_INIT;

	for (size_t at = 0; at < count; at += REV_DIFF_WAVE) {
		size_t n = count - at < REV_DIFF_WAVE ? count - at : REV_DIFF_WAVE;

		TRY(diff_wave(tx, db, queries + at, n, arena, &key, ret_diffs + at));
	}
	return STATUS_OK;
}
