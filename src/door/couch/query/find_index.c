/*
 * Documents in the order of an index: its entries of the range that the selector allows, page by
 * page. A page is one body of the snapshot: what it has changed of the run is put back before
 * another attempt.
 */
#include "door/couch/query/find.h"
#include "door/couch/wire/error.h"
#include "index/engine/scan.h"
#include "loop/step.h"

enum {
	INDEX_PAGE_ENTRIES = 200,      /* read at once */
	INDEX_PAGE_BYTES = 128 * 1024, /* of the answer: a page ends behind the document there */
	INDEX_ENTRY_STEPS = 16,        /* what an entry and its document cost (loop/step.h) */
};

/* What a page changes of the run. */
struct find_state {
	uint64_t skip, limit, keys, docs, results;
	bool any_row, has_id;
	size_t out;
};

struct index_pages {
	struct find *f;
	struct index_interval interval;
	struct buf after; /* the key of the last entry; empty: none yet */
	struct buf last;  /* likewise, in this attempt */
	struct find_state before;
	bool more;
};

static struct find_state
state_of(const struct find *f)
{
	return (struct find_state){ f->skip,    f->limit,   f->keys,   f->docs,
				    f->results, f->any_row, f->has_id, f->stream.out.len };
}

static void
state_put_back(struct find *f, const struct find_state *s)
{
	f->skip = s->skip;
	f->limit = s->limit;
	f->keys = s->keys;
	f->docs = s->docs;
	f->results = s->results;
	f->any_row = s->any_row;
	f->has_id = s->has_id;
	couch_stream_cut(&f->stream, s->out);
}

/* ---- One entry ---- */

/* The document that an entry tells of, as far as its columns are members of the root. */
static enum status
entry_make_doc(struct find *f, const struct index_def *def, const struct index_entry *entry,
	       struct rev_doc *ret)
{
	AUTO(buf_release) struct buf text = couch_buf(f->r, COUCH_ROW_BYTES);
	struct leaf_value value;

	buf_append_byte(&text, '{');
	for (size_t i = 0; i < def->column_count; i++) {
		buf_append_cstr(&text, i ? "," : "");
		json_write_str(&text, def->columns[i].path[0]);
		buf_append_byte(&text, ':');
		buf_append_str(&text, entry->texts[i]);
	}
	buf_append_byte(&text, '}');
	TRY(buf_status(&text));
	TRY(leaf_parse(buf_str(&text), f->r->arena, &value, &f->r->fail.err));
	*ret = (struct rev_doc){ .count = value.count };
	ret->leaves = arena_alloc(f->r->arena, (value.count + 1) * sizeof(*ret->leaves));
	if (!ret->leaves)
		return STATUS_LIMIT;
	for (size_t i = 0; i < value.count; i++)
		ret->leaves[i] = value.leaves[i];
	return STATUS_OK;
}

/* True if the entry alone answers: the query looks at nothing else, and the entry is whole. */
static bool
entry_covers(const struct find *f, const struct index_def *def, const struct index_entry *entry)
{
	if (!f->plan.covers || f->args.conflicts || f->args.r > 1 || entry->cut ||
	    !entry->has_texts)
		return false;
	for (size_t i = 0; i < def->column_count; i++) {
		if (def->columns[i].path_count != 1 || !entry->texts[i].ptr ||
		    couch_seen_member(def->columns[i].path[0]))
			return false;
	}
	return true;
}

static enum status
entry_take(struct index_pages *p, struct kv_tx *tx, const struct index_def *def,
	   const struct index_entry *entry)
{
	struct find *f = p->f;
	struct rev_tree tree;
	struct rev_doc doc;
	struct find_doc d = { .id = entry->id, .doc = &doc };
	enum status status = STATUS_OK;
	bool matches;

	f->keys++;
	if (entry_covers(f, def, entry)) {
		TRY(entry_make_doc(f, def, entry, &doc));
	} else {
		status = rev_doc_read(tx, f->r->db, entry->id, f->r->arena, &doc);
		f->docs++;
	}
	if (status == STATUS_NOT_FOUND || status == STATUS_DELETED)
		return STATUS_OK;
	TRY(status);
	if (f->args.conflicts) {
		TRY(rev_tree_read(tx, f->r->db, entry->id, REV_TREE_HEADS, f->r->arena, &tree));
		d.tree = &tree;
	}
	TRY(find_doc_matches(f, &d, &matches));
	if (!matches)
		return find_check_limits(f);
	TRY(find_doc_take(f, &d));
	buf_clear(&f->place);
	buf_append_byte(&f->place, FIND_PLACE_KEY);
	buf_append_str(&f->place, entry->key);
	return buf_status(&f->place);
}

/* ---- Pages ---- */

/* The index, as the snapshot's database has it now. */
static enum status
pages_find_def(struct index_pages *p, const struct index_def **ret)
{
	*ret = index_find(p->f->r->db, p->f->index_number);
	if (*ret && index_is_readable(*ret))
		return STATUS_OK;
	return couch_fail_set(&p->f->r->fail, COUCH_ERROR_NO_USABLE_INDEX,
			      "The index was dropped while it was read.");
}

static enum status
pages_walk(struct index_pages *p, struct kv_tx *tx, const struct index_def *def,
	   struct index_scan *scan, struct index_work *w)
{
	struct find *f = p->f;
	struct arena_mark mark = arena_mark(f->r->arena);
	struct index_entry entry;

	for (size_t i = 0; i < INDEX_PAGE_ENTRIES && f->limit; i++) {
		enum status status;

		arena_reset(f->r->arena, mark);
		status = index_scan_next(scan, w, &entry);
		p->more = status == STATUS_OK;
		if (status == STATUS_NOT_FOUND)
			return STATUS_OK;
		TRY(status);
		step_unit();
		TRY(step_count(INDEX_ENTRY_STEPS));
		TRY(entry_take(p, tx, def, &entry));
		buf_clear(&p->last);
		buf_append_str(&p->last, entry.key);
		TRY(buf_status(&p->last));
		if (f->stream.out.len > INDEX_PAGE_BYTES)
			return STATUS_OK;
	}
	return STATUS_OK;
}

static enum status
pages_read(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct index_pages *p = arg;
	struct index_work w = { .arena = r->arena };
	const struct index_scan_options options = {
		.reverse = p->f->args.sort.descending,
		.mode = KV_SNAPSHOT,
		.after = p->after.len ? buf_str(&p->after) : (struct str){ NULL, 0 },
		.limit = INDEX_PAGE_ENTRIES,
	};
	const struct index_def *def;
	struct index_range range;
	struct index_scan scan;
	enum status status;

	state_put_back(p->f, &p->before);
	buf_clear(&p->last);
	buf_append_str(&p->last, buf_str(&p->after));
	TRY(pages_find_def(p, &def));
	TRY(index_range_make(r->db, def, &p->interval, &w, &range));
	TRY(index_scan_init(&scan, tx, r->db, def, &range, &options));
	status = pages_walk(p, tx, def, &scan, &w);
	index_scan_release(&scan);
	return status;
}

/* ---- The range ---- */

/* Leading columns of one value, and then bounds of the next column. */
static enum status
pages_make_interval(struct find *f, struct index_interval *ret)
{
	const struct query_index *index = f->plan.chosen;
	struct leaf_value *equal = arena_alloc(f->r->arena,
					       (index->columns.count + 1) * sizeof(*equal));
	size_t n = 0;
	const struct field_range *r = NULL;

	*ret = (struct index_interval){ .equal = equal };
	if (!equal)
		return STATUS_LIMIT;
	for (; n < index->columns.count; n++) {
		r = field_ranges_find(&f->plan.ranges, &index->paths[n]);
		if (!r || !r->equal)
			break;
		equal[n] = r->low.value;
	}
	ret->equal_count = n;
	if (n == index->columns.count || !r)
		return STATUS_OK;
	ret->low = r->low.given ? &r->low.value : NULL;
	ret->low_exclusive = r->low.exclusive;
	ret->high = r->high.given ? &r->high.value : NULL;
	ret->high_exclusive = r->high.exclusive;
	return STATUS_OK;
}

enum status
find_indexed(struct find *f)
{
	struct index_pages p = {
		.f = f,
		.after = BUF_INIT(BOOKMARK_BYTES),
		.last = BUF_INIT(BOOKMARK_BYTES),
		.more = true,
	};
	struct arena_mark mark;
	enum status status = pages_make_interval(f, &p.interval);

	if (f->has_after)
		buf_append_str(&p.after, str_skip(f->after.place, 1));
	if (f->plan.ranges.empty)
		p.more = false;
	mark = arena_mark(f->r->arena);
	while (status == STATUS_OK && p.more && f->limit) {
		p.before = state_of(f);
		status = couch_snapshot_run(&f->snapshot, pages_read, &p);
		arena_reset(f->r->arena, mark);
		if (status != STATUS_OK)
			break;
		buf_clear(&p.after);
		buf_append_str(&p.after, buf_str(&p.last));
		status = buf_status(&p.after);
		if (status == STATUS_OK)
			status = couch_stream_push(&f->stream, false);
	}
	buf_release(&p.after);
	buf_release(&p.last);
	return status;
}
