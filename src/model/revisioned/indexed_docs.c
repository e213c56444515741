/*
 * What a build of an index needs of documents (index/engine/build.h): where to cut them, and the
 * winners of a stretch with their bodies.
 *
 * The build finds winners in REVISIONS, where they carry their Sequences, by snapshot reads, and
 * takes those that are older than the index. Every edit of a document rewrites its winner's key, so
 * read conflicts with the keys of these winners make a step fail if one of them is edited.
 *
 * One conflict range covers all of them that follow each other: to a cluster, a range for each
 * would cost more than the entries. It ends at a winner that is newer than the index, so a document
 * that is edited all the time fails a step once. New documents inside of a range fail a step, too.
 * After a failure each winner gets a range of its own (`exact`), and they no longer matter.
 */
#include "catalog/tally.h"
#include "kv/few.h"
#include "loop/step.h"
#include "model/revisioned/indexed_docs.h"
#include "model/revisioned/revisioned_int.h"

enum {
	WINNER_STEPS = 4, /* of passing over a branch */
};

/* ---- Cutting ---- */

/*
 * An id that sorts as a bound of ALL_DOCS does. Bounds are as short as they can be, so most end in
 * the middle of an id, and there need be no such document. False: the bound has none.
 */
static bool
cut_read_id(struct str bound, struct arena *arena, struct str *ret)
{
	AUTO(buf_release) struct buf whole = CATALOG_KEY_INIT;
	struct tuple_reader r;

	buf_append_str(&whole, bound);
	buf_append_byte(&whole, 0);
	r = tuple_reader(buf_str(&whole));
	return buf_status(&whole) == STATUS_OK &&
	       catalog_next_text(&r, TUPLE_STRING, arena, true, ret) == STATUS_OK && ret->len &&
	       r.rest.len == 0;
}

static enum status
docs_cut(struct kv_tx *tx, const struct catalog_db *db, size_t parts, struct arena *arena,
	 const struct str **ret_ids, size_t *ret_count, uint64_t *ret_documents)
{
	struct rev_db_info info;
	struct str *bounds;
	size_t count, ids = 0;

	TRY(rev_db_info(tx, db, &info));
	if (parts > info.doc_count / INDEX_BUILD_STRETCH_DOCS + 1)
		parts = (size_t)(info.doc_count / INDEX_BUILD_STRETCH_DOCS + 1);
	bounds = arena_zalloc(arena, parts * sizeof(*bounds));
	if (!bounds)
		return STATUS_LIMIT;
	TRY(catalog_tally_cut(tx, db, REV_LIST_DOCS, parts, arena, bounds, &count, ret_documents));
	for (size_t i = 0; i < count; i++)
		if (cut_read_id(bounds[i], arena, &bounds[ids]) &&
		    (ids == 0 || str_cmp(bounds[ids - 1], bounds[ids]) < 0))
			ids++;
	*ret_ids = bounds;
	*ret_count = ids;
	return STATUS_OK;
}

/* ---- Visiting ---- */

enum status
rev_index_source(const struct catalog_db *db, struct str id, const struct rev_doc *doc,
		 struct arena *arena, struct index_source *ret)
{
	AUTO(buf_release) struct buf text = BUF_INIT(2 * REV_HASH_LIMIT_BYTES + 32);
	const struct index_set *set = index_set_of(db);

	*ret = (struct index_source){
		.id = id,
		.body = doc->packed,
		.leaves = doc->leaves,
		.count = doc->count,
	};
	if (!set || !set->any_rev)
		return STATUS_OK;
	rev_id_write(doc->rev, &text);
	TRY(buf_status(&text));
	ret->rev = buf_dup(&text, arena);
	return ret->rev.ptr ? STATUS_OK : STATUS_LIMIT;
}

/* A page of winners that the build wants. */
struct winners {
	struct rev_want *wants;
	size_t count;
	size_t cap;
	/*
	 * Where the next conflict range begins and ends: the keys of the first and of the last
	 * winner that no range covers yet. `first` is empty if there is none.
	 */
	struct buf *first, *last;
};

bool
rev_id_is_indexed(struct str id)
{
	return !str_starts_with(id, STR("_design/"));
}

/* The bounds of the stretch's branches: `lo` and `hi`; `*ret_prefix_len` ends before the id. */
static enum status
stretch_bounds(const struct catalog_db *db, const struct index_stretch *stretch, struct buf *lo,
	       struct buf *hi, size_t *ret_prefix_len)
{
	rev_key_space(lo, db, REV_SUBSPACE_REVISIONS);
	*ret_prefix_len = lo->len;
	rev_key_space(hi, db, REV_SUBSPACE_REVISIONS);
	if (stretch->after.len) {
		tuple_put_str(lo, stretch->after);
		buf_append_byte(lo, CATALOG_KEY_LAST);
	}
	if (stretch->end.len)
		tuple_put_str(hi, stretch->end);
	buf_append_byte(hi, CATALOG_KEY_LAST);
	TRY(catalog_key_status(lo));
	return catalog_key_status(hi);
}

/* Adds the conflict range from w->first to w->last. Then no winner is left without one. */
static enum status
winners_conflict(struct kv_tx *tx, struct winners *w)
{
	if (!w->first->len)
		return STATUS_OK;
	buf_append_byte(w->last, 0);
	TRY(buf_status(w->first));
	TRY(buf_status(w->last));
	TRY(kv_add_read_conflict_range(tx, buf_str(w->first), buf_str(w->last)));
	buf_clear(w->first);
	return STATUS_OK;
}

/* Takes a winner, which becomes a want if the build wants it. */
static enum status
winners_take(struct kv_tx *tx, const struct index_def *def, const struct kv_pair *pair,
	     struct str id, const struct rev_branch_record *row, bool exact, struct arena *arena,
	     struct winners *w)
{
	struct rev_want *want;

	if (row->deleted || !rev_id_is_indexed(id))
		return STATUS_OK;
	if (!index_build_wants(def, &row->seq))
		return winners_conflict(tx, w);
	if (exact)
		TRY(winners_conflict(tx, w));
	if (!w->first->len)
		buf_set(w->first, pair->key);
	buf_set(w->last, pair->key);
	TRY(catalog_array_grow(arena, (void **)&w->wants, sizeof(*w->wants), w->count, &w->cap));
	want = &w->wants[w->count++];
	*want = (struct rev_want){ .id = arena_dup(arena, id) };
	want->rev.pos = row->rev.pos;
	want->rev.hash = arena_dup(arena, row->rev.hash);
	return want->id.ptr && want->rev.hash.ptr ? STATUS_OK : STATUS_LIMIT;
}

/*
 * Goes through the branches until `limit` documents have been passed. Branches of a document end
 * with its winner, so the page ends behind one.
 */
static enum status
winners_scan(struct kv_scan *scan, const struct index_def *def, size_t prefix_len,
	     const struct index_stretch *stretch, struct arena *arena, struct winners *w,
	     struct index_passed *ret)
{
	struct kv_pair pair;
	enum status status;

	while ((status = kv_scan_next(scan, &pair)) == STATUS_OK) {
		struct tuple_reader r = tuple_reader(str_skip(pair.key, prefix_len));
		struct rev_branch_record row;
		struct str id;

		TRY(step_count(WINNER_STEPS));
		TRY(catalog_next_text(&r, TUPLE_STRING, arena, false, &id));
		TRY(rev_branch_record_parse(r.rest, pair.value, arena, &row, kv_tx_err(scan->tx)));
		if (!row.winner)
			continue;
		TRY(winners_take(scan->tx, def, &pair, id, &row, stretch->exact, arena, w));
		ret->count++;
		if (ret->count < stretch->limit)
			continue;
		ret->last = arena_dup(arena, id);
		ret->more = true;
		return ret->last.ptr ? STATUS_OK : STATUS_LIMIT;
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
winners_visit(struct kv_tx *tx, const struct catalog_db *db, const struct winners *w,
	      struct arena *arena, index_visitor *visitor, void *arg)
{
	AUTO(rev_ahead_release) struct rev_ahead ahead = { 0 };

	TRY(rev_ahead_begin(&ahead, tx, db, NULL, w->wants, w->count, false));
	for (size_t i = 0; i < w->count; i++) {
		struct arena_mark mark = arena_mark(arena);
		struct index_source source;
		struct rev_doc doc;

		/* The winner has a body, and another edit of it is a conflict. */
		TRY(rev_ahead_take(&ahead, arena, &doc));
		TRY(rev_index_source(db, w->wants[i].id, &doc, arena, &source));
		TRY(visitor(arg, &source));
		arena_reset(arena, mark);
	}
	return STATUS_OK;
}

static enum status
docs_visit(struct kv_tx *tx, const struct catalog_db *db, const struct index_def *def,
	   const struct index_stretch *stretch, struct arena *arena, index_visitor *visitor,
	   void *arg, struct index_passed *ret)
{
	const struct kv_range_options options = { .limit_bytes = CATALOG_PAGE_BYTES,
						  .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf lo = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf hi = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf first = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf last = BUF_INIT(CATALOG_KEY_BYTES + 1);
	struct winners w = { .first = &first, .last = &last };
	struct kv_scan scan;
	enum status status;
	size_t prefix_len;

	*ret = (struct index_passed){ 0 };
	TRY(stretch_bounds(db, stretch, &lo, &hi, &prefix_len));
	TRY(kv_scan_init_few(&scan, tx, buf_str(&lo), buf_str(&hi), &options, stretch->limit));
	status = winners_scan(&scan, def, prefix_len, stretch, arena, &w, ret);
	kv_scan_release(&scan);
	TRY(status);
	TRY(winners_conflict(tx, &w));
	return winners_visit(tx, db, &w, arena, visitor, arg);
}

const struct index_documents rev_indexed_documents = {
	.kind = CATALOG_KIND_REVISIONED,
	.list = REV_LIST_ENTRIES,
	.cut = docs_cut,
	.visit = docs_visit,
};
