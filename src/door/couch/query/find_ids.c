/* Documents in the order of their ids, which are matched one by one. */
#include "door/couch/query/find.h"
#include "door/couch/wire/ids.h"
#include "loop/step.h"

enum {
	FIND_DOC_STEPS = 8, /* what a document costs (loop/step.h): finding it, reading its head */
};

struct id_scan {
	struct find *f;
	struct rev_cursor docs;
	struct rev_ahead ahead;
	struct name_range range;
	struct buf last;   /* the id to go on after */
	struct str passed; /* the id that was dealt with last; lies in the page */
	struct rev_entry_page page;
	struct arena_mark mark; /* of the request's arena, before the page */
};

static void
scan_end_reads(struct id_scan *s)
{
	rev_cursor_end(&s->docs);
	rev_ahead_release(&s->ahead);
}

static void
scan_remember(struct id_scan *s)
{
	if (!s->passed.ptr)
		return;
	buf_set(&s->last, s->passed);
	s->passed = (struct str){ 0 };
}

/* The client does not read: the page is given up behind the document that was dealt with last. */
static void
scan_let_go(void *arg)
{
	struct id_scan *s = arg;

	scan_remember(s);
	scan_end_reads(s);
	arena_reset(s->f->r->arena, s->mark);
	couch_snapshot_rest(&s->f->snapshot);
}

/* The position in the list of the first id that does not come before `id`; behind it as well. */
static size_t
list_find(const struct find *f, struct str id, bool behind)
{
	size_t lo = 0, hi = f->list_count;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int c = str_cmp(f->list[mid], id);

		if (c < 0 || (c == 0 && behind))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* The ids of the list that lie in the range: from `*ret_lo` on and in front of `*ret_hi`. */
static void
list_narrow(const struct find *f, const struct name_range *range, size_t *ret_lo, size_t *ret_hi)
{
	const struct name_range up = name_range_turn(*range, range->descending);

	*ret_lo = up.has_begin ? list_find(f, up.begin, up.exclusive_begin) : 0;
	*ret_hi = up.has_end ? list_find(f, up.end, !up.exclusive_end) : f->list_count;
}

/* A page of those documents of the list that are there. */
static enum status
scan_read_listed(struct id_scan *s, struct kv_tx *tx)
{
	const struct find *f = s->f;
	struct arena *arena = f->r->arena;
	struct rev_entry_page page = { 0 };
	size_t lo, hi, count;
	struct rev_id *revs;
	struct str *ids;

	list_narrow(f, &s->range, &lo, &hi);
	count = hi > lo ? hi - lo : 0;
	page.more = count > COUCH_PAGE_ROWS;
	if (page.more)
		count = COUCH_PAGE_ROWS;
	ids = arena_alloc(arena, (count + 1) * sizeof(*ids));
	revs = arena_alloc(arena, (count + 1) * sizeof(*revs));
	page.entries = arena_alloc(arena, (count + 1) * sizeof(*page.entries));
	if (!ids || !revs || !page.entries)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++)
		ids[i] = f->list[s->range.descending ? hi - 1 - i : lo + i];
	TRY(rev_winners_read(tx, f->r->db, ids, count, arena, revs));
	for (size_t i = 0; i < count; i++) {
		if (revs[i].hash.ptr)
			page.entries[page.count++] = (struct rev_entry){ ids[i], revs[i] };
	}
	if (count)
		page.last = ids[count - 1];
	s->page = page;
	return STATUS_OK;
}

static enum status
scan_read_page(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct id_scan *s = arg;
	enum status status = STATUS_OK;

	if (s->f->listed)
		return scan_read_listed(s, tx);
	if (!s->docs.open)
		status = rev_all_docs_begin(&s->docs, tx, r->db, &s->range);
	if (status == STATUS_OK)
		status = rev_all_docs_next(&s->docs, COUCH_PAGE_ROWS, false, r->arena, &s->page);
	if (status != STATUS_OK)
		scan_end_reads(s);
	return status;
}

static enum status
scan_begin_bodies(struct id_scan *s)
{
	struct couch_req *r = s->f->r;
	struct rev_want *wants = arena_alloc(r->arena, (s->page.count + 1) * sizeof(*wants));

	if (!wants)
		return STATUS_LIMIT;
	for (size_t i = 0; i < s->page.count; i++)
		wants[i] = (struct rev_want){ s->page.entries[i].id, s->page.entries[i].rev,
					      false };
	TRY(rev_ahead_begin(&s->ahead, s->f->snapshot.tx, r->db, http_memory(r->x), wants,
			    s->page.count, s->page.more));
	if (s->f->listed)
		rev_ahead_is_sparse(&s->ahead);
	return STATUS_OK;
}

/* Matches the next document of the page, and appends it to the answer if it is wanted. */
static enum status
scan_take(struct id_scan *s, const struct rev_entry *entry)
{
	struct find *f = s->f;
	struct rev_tree tree;
	struct rev_doc doc;
	struct find_doc d = { .id = entry->id, .doc = &doc };
	bool matches;

	TRY(rev_ahead_take(&s->ahead, f->r->arena, &doc));
	if (f->args.conflicts && !couch_is_design(entry->id)) {
		TRY(rev_tree_read(f->snapshot.tx, f->r->db, entry->id, REV_TREE_HEADS, f->r->arena,
				  &tree));
		d.tree = &tree;
	}
	f->keys += !f->listed;
	f->docs++;
	if (couch_is_design(entry->id))
		return STATUS_OK;
	TRY(find_doc_matches(f, &d, &matches));
	return matches ? f->take(f, &d) : STATUS_OK;
}

/* Deals with the documents of the page until one fails, or the page is gone (scan_let_go()). */
static enum status
scan_page(struct id_scan *s)
{
	struct find *f = s->f;
	struct arena_mark mark;

	if (s->page.count)
		TRY(scan_begin_bodies(s));
	mark = arena_mark(f->r->arena);
	for (size_t i = 0; i < s->page.count && f->limit; i++) {
		size_t out = f->stream.out.len;
		enum status status;

		step_unit();
		TRY(step_count(FIND_DOC_STEPS));
		status = scan_take(s, &s->page.entries[i]);
		arena_reset(f->r->arena, mark);
		if (status != STATUS_OK) {
			couch_stream_cut(&f->stream, out);
			return status;
		}
		f->snapshot.failures = 0;
		s->passed = s->page.entries[i].id;
		TRY(find_check_limits(f));
		TRY(couch_stream_push(&f->stream, false));
		if (f->snapshot.resting)
			return STATUS_OK;
	}
	return STATUS_OK;
}

/* Makes the range begin behind what was dealt with. `status` is that of the page. */
static enum status
scan_pass_page(struct id_scan *s, enum status status)
{
	if (!s->f->snapshot.resting) {
		if (status == STATUS_OK && s->f->limit)
			s->passed = s->page.last;
		scan_remember(s);
	}
	if (!s->last.len)
		return STATUS_OK;
	TRY(buf_status(&s->last));
	s->range.begin = buf_str(&s->last);
	s->range.has_begin = true;
	s->range.exclusive_begin = true;
	return STATUS_OK;
}

static enum status
scan_pages(struct id_scan *s)
{
	struct find *f = s->f;

	s->page.more = true;
	while (s->page.more && f->limit) {
		enum status status;

		arena_reset(f->r->arena, s->mark);
		TRY(couch_snapshot_run(&f->snapshot, scan_read_page, s));
		status = scan_page(s);
		TRY(scan_pass_page(s, status));
		if (f->snapshot.resting) {
			s->page.more = true; /* the rest of the page is gone */
		} else if (status == STATUS_OK && couch_snapshot_is_wanted(&f->snapshot)) {
			TRY(couch_stream_push(&f->stream, f->any_row));
			scan_let_go(s);
		}
		if (status == STATUS_OK)
			continue;
		scan_end_reads(s);
		TRY(couch_snapshot_renew(&f->snapshot, status));
		s->page.more = true;
	}
	return STATUS_OK;
}

enum status
find_by_ids(struct find *f, struct name_range range)
{
	struct id_scan s = {
		.f = f,
		.range = range,
		.last = BUF_SHORT(REV_DOC_ID_BYTES),
		.mark = arena_mark(f->r->arena),
	};
	enum status status;

	(void)http_on_wait(f->r->x, (struct net_wait_hook){ scan_let_go, &s });
	status = scan_pages(&s);
	(void)http_on_wait(f->r->x, (struct net_wait_hook){ 0 });
	scan_end_reads(&s);
	buf_release(&s.last);
	arena_reset(f->r->arena, s.mark);
	return status;
}
