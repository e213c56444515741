/*
 * Which revisions a database lacks. The branches of a document are gone through once, whatever
 * number of revisions is asked about: few are sought in each branch, where a position tells the
 * place; more are put into a set, and each revision of a branch is looked up there.
 */
#include "loop/step.h"
#include "model/revisioned/rev_set.h"
#include "model/revisioned/revisioned_int.h"

enum {
	DIFF_FEW = 4, /* revisions that are sought one by one */
};

/* The question about one document, while it is being answered. */
struct diff {
	const struct rev_diff_query *query;
	struct rev_set set; /* of what is asked, unless that is few */
	bool *known;        /* by number in the set; of few, by number in the query */
	size_t unknown;
	uint64_t highest;     /* position that is asked about */
	struct rev_id *heads; /* below `highest` */
	size_t heads_count;
	size_t heads_cap;
	struct buf *scratch;
	struct arena *arena;
};

static enum status
diff_begin(struct diff *d)
{
	const struct rev_diff_query *query = d->query;

	d->unknown = query->count;
	d->known = arena_zalloc(d->arena, query->count + 1);
	if (!d->known)
		return STATUS_LIMIT;
	for (size_t i = 0; i < query->count; i++)
		if (query->revs[i].pos > d->highest)
			d->highest = query->revs[i].pos;
	if (query->count <= DIFF_FEW)
		return STATUS_OK;
	TRY(rev_set_init(&d->set, query->count, d->arena));
	for (size_t i = 0; i < query->count; i++) {
		(void)rev_set_add(&d->set, query->revs[i]);
		TRY(step_count(1));
	}
	d->unknown = d->set.count;
	return STATUS_OK;
}

static void
diff_note_known(struct diff *d, size_t number)
{
	d->unknown -= !d->known[number];
	d->known[number] = true;
}

static enum status
diff_seek_each(struct diff *d, const struct rev_branch_record *row)
{
	for (size_t i = 0; i < d->query->count; i++) {
		struct str rest;
		bool found;

		if (d->known[i])
			continue;
		TRY(rev_branch_record_find(row, d->query->revs[i], d->scratch, &found, &rest));
		if (found)
			diff_note_known(d, i);
	}
	return STATUS_OK;
}

static enum status
diff_look_up_lineage(struct diff *d, const struct rev_branch_record *row)
{
	struct rev_lineage lineage;
	enum status status;
	struct rev_id rev;
	struct str rest;

	rev_lineage_begin(&lineage, row, d->scratch);
	TRY(rev_lineage_skip(&lineage, d->set.highest));
	while ((status = rev_lineage_next(&lineage, &rev, &rest)) == STATUS_OK) {
		size_t number;

		if (rev.pos < d->set.lowest)
			return STATUS_OK;
		number = rev_set_find(&d->set, rev);
		if (number != REV_SET_NONE)
			diff_note_known(d, number);
		TRY(step_count(1));
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* The stretch that the head's hash lies in may be freed before the heads are needed. */
static enum status
diff_note_head(struct diff *d, struct rev_id head)
{
	if (head.pos >= d->highest)
		return STATUS_OK;
	TRY(catalog_array_grow(d->arena, (void **)&d->heads, sizeof(*d->heads), d->heads_count,
			       &d->heads_cap));
	head.hash = arena_dup(d->arena, head.hash);
	if (!head.hash.ptr)
		return STATUS_LIMIT;
	d->heads[d->heads_count++] = head;
	return STATUS_OK;
}

static enum status
diff_read_branches(struct diff *d, struct rev_branch_scan *scan)
{
	struct rev_branch_record row;
	enum status status;

	while ((status = rev_branch_scan_next(scan, d->arena, &row)) == STATUS_OK) {
		TRY(step_count(1));
		TRY(diff_note_head(d, row.rev));
		if (d->unknown == 0)
			continue;
		if (d->set.most)
			TRY(diff_look_up_lineage(d, &row));
		else
			TRY(diff_seek_each(d, &row));
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* Of the heads below the highest revision that is missing; the best of them first. */
static enum status
diff_choose_ancestors(struct diff *d, uint64_t highest, struct rev_diff *ret)
{
	struct rev_id *chosen = arena_alloc(d->arena, (d->heads_count + 1) * sizeof(*chosen));

	if (!chosen)
		return STATUS_LIMIT;
	ret->possible_ancestors = chosen;
	for (size_t i = d->heads_count; i-- > 0;)
		if (d->heads[i].pos < highest)
			chosen[ret->possible_ancestors_count++] = d->heads[i];
	return step_count((uint32_t)d->heads_count);
}

static enum status
diff_end(struct diff *d, struct rev_diff *ret)
{
	uint64_t highest = 0;
	size_t cap = 0;

	*ret = (struct rev_diff){ 0 };
	for (size_t i = 0; i < d->query->count && d->unknown; i++) {
		struct rev_id rev = d->query->revs[i];

		TRY(step_count(1));
		if (d->known[d->set.most ? rev_set_find(&d->set, rev) : i])
			continue;
		TRY(catalog_array_grow(d->arena, (void **)&ret->missing, sizeof(*ret->missing),
				       ret->missing_count, &cap));
		ret->missing[ret->missing_count++] = rev;
		if (rev.pos > highest)
			highest = rev.pos;
	}
	return diff_choose_ancestors(d, highest, ret);
}

static enum status
diff_document(struct rev_branch_scan *scan, const struct rev_diff_query *query, struct buf *scratch,
	      struct arena *arena, struct rev_diff *ret)
{
	struct diff d = { .query = query, .scratch = scratch, .arena = arena };

	TRY(diff_begin(&d));
	TRY(diff_read_branches(&d, scan));
	return diff_end(&d, ret);
}

/* Answers a bounded number of documents. The first stretches of their branches are one wave. */
static enum status
diff_wave(struct kv_tx *tx, const struct catalog_db *db, const struct rev_diff_query *queries,
	  size_t count, struct arena *arena, struct buf *key, struct rev_diff *ret_diffs)
{
	AUTO(buf_release) struct buf scratch = BUF_INIT(KV_LIMIT_VALUE_BYTES);
	struct rev_branch_scan *scans = arena_alloc(arena, count * sizeof(*scans));

	if (!scans)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++)
		TRY(rev_branch_scan_begin(&scans[i], tx, db, queries[i].id, KV_SNAPSHOT, key));
	for (size_t i = 0; i < count; i++) {
		TRY(diff_document(&scans[i], &queries[i], &scratch, arena, &ret_diffs[i]));
		rev_branch_scan_release(&scans[i]);
	}
	return STATUS_OK;
}

enum status
rev_diff(struct kv_tx *tx, const struct catalog_db *db, const struct rev_diff_query *queries,
	 size_t count, struct arena *arena, struct rev_diff *ret_diffs)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	for (size_t at = 0; at < count; at += REV_DIFF_WAVE) {
		size_t n = count - at < REV_DIFF_WAVE ? count - at : REV_DIFF_WAVE;

		TRY(diff_wave(tx, db, queries + at, n, arena, &key, ret_diffs + at));
	}
	return STATUS_OK;
}
