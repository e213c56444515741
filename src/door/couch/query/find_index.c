/*
 * Documents in the order of an index: its entries in the ranges that the plan has, page by page. A
 * page is one body of the snapshot: what it has changed of the run is put back before another
 * attempt. Its entries are read first, then the winners of all their documents, then the bodies:
 * each of these is asked for at once, so that a page waits three times, however long it is.
 */
#include "door/couch/query/entries.h"
#include "door/couch/query/find.h"
#include "loop/step.h"

enum {
	INDEX_PAGE_ENTRIES = 200,      /* read at once */
	INDEX_PAGE_BYTES = 128 * 1024, /* of the answer: a page ends behind the document there */
	INDEX_ENTRY_STEPS = 16,        /* what an entry and its document cost (loop/step.h) */
	INDEX_COUNT_FEW = 64,          /* entries of a range that are counted by reading them */
};

/* What a page changes of the run. */
struct find_state {
	uint64_t skip, limit, keys, docs, results;
	bool any_row, has_id;
	size_t out;
};

/* An entry of the page, in the request's arena. */
struct page_entry {
	struct str key;
	struct str id;
	struct str *texts; /* of the columns, where the entry alone answers; NULL: it does not */
	bool cut;          /* it is not where its values belong, but near */
	bool gone;         /* its document is not there: an entry of a moment ago */
};

struct index_pages {
	struct find *f;
	struct buf after; /* the key of the last entry; empty: none yet */
	struct buf last;  /* likewise, in this attempt */
	struct find_state before;
	size_t most; /* entries of the next page */
	bool more;

	/* Of this attempt. */
	struct page_entry *entries;
	size_t count;
	const struct index_def *def; /* of the entries, if there are any */
	struct rev_ahead ahead;
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

/* The columns of an entry on their way into one document. */
struct entry_columns {
	const struct index_def *def;
	const struct str *texts; /* of the columns, as JSON */
	bool written[INDEX_COLUMNS];
};

/* True if the first `depth` names on the way to both columns are the same. */
static bool
columns_share(const struct index_column *a, const struct index_column *b, size_t depth)
{
	if (a->path_count < depth || b->path_count < depth)
		return false;
	for (size_t i = 0; i < depth; i++)
		if (!str_eq(a->path[i], b->path[i]))
			return false;
	return true;
}

/* Writes the object that the columns from `first` on have in common at that depth. */
static void
columns_write(struct entry_columns *c, size_t first, size_t depth, struct buf *out)
{
	const struct index_column *columns = c->def->columns;
	const char *separator = "";

	buf_append_byte(out, '{');
	for (size_t i = first; i < c->def->column_count; i++) {
		if (c->written[i] || !columns_share(&columns[first], &columns[i], depth))
			continue;
		buf_append_cstr(out, separator);
		separator = ",";
		json_write_str(out, columns[i].path[depth]);
		buf_append_byte(out, ':');
		if (columns[i].path_count > depth + 1) {
			columns_write(c, i, depth + 1, out);
		} else {
			buf_append_str(out, c->texts[i]);
			c->written[i] = true;
		}
	}
	buf_append_byte(out, '}');
}

/*
 * True if a document can be made of the columns. A name on the way that is a number may be a place
 * in an array, and a column inside another one would be there twice.
 */
static bool
columns_make_a_doc(const struct index_def *def)
{
	for (size_t i = 0; i < def->column_count; i++) {
		const struct index_column *c = &def->columns[i];
		uint64_t place;

		for (size_t k = 1; k < c->path_count; k++)
			if (str_to_u64(c->path[k], &place))
				return false;
		for (size_t k = 0; k < def->column_count; k++)
			if (k != i && columns_share(c, &def->columns[k], c->path_count))
				return false;
	}
	return true;
}

/* The document that an entry tells of, as far as its columns have it. */
static enum status
entry_make_doc(struct find *f, const struct index_def *def, const struct page_entry *entry,
	       struct rev_doc *ret)
{
	AUTO(buf_release) struct buf text = couch_buf(f->r, COUCH_ROW_BYTES);
	struct entry_columns columns = { .def = def, .texts = entry->texts };
	struct leaf_value value;

	columns_write(&columns, 0, 0, &text);
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
		if (!entry->texts[i].ptr || couch_seen_member(def->columns[i].path[0]))
			return false;
	}
	return columns_make_a_doc(def);
}

static enum status
entry_keep(void *arg, const struct index_def *def, const struct index_entry *entry)
{
	struct index_pages *p = arg;
	struct arena *arena = p->f->r->arena;
	struct page_entry *kept = &p->entries[p->count];

	*kept = (struct page_entry){ .key = arena_dup(arena, entry->key),
				     .id = arena_dup(arena, entry->id),
				     .cut = entry->cut };
	if (!kept->key.ptr || !kept->id.ptr)
		return STATUS_LIMIT;
	p->def = def;
	p->count++;
	if (!entry_covers(p->f, def, entry))
		return STATUS_OK;
	kept->texts = arena_alloc(arena, def->column_count * sizeof(*kept->texts));
	if (!kept->texts)
		return STATUS_LIMIT;
	for (size_t i = 0; i < def->column_count; i++) {
		TRY(arena_copy(arena, entry->texts[i], &kept->texts[i]));
	}
	return STATUS_OK;
}

static enum status
entry_take(struct index_pages *p, struct kv_tx *tx, const struct page_entry *entry)
{
	struct find *f = p->f;
	struct rev_tree tree;
	struct rev_doc doc;
	struct find_doc d = { .id = entry->id, .doc = &doc, .is_entry = entry->texts != NULL };
	enum status status;
	bool matches;

	if (entry->gone) {
		f->keys++;
		return STATUS_OK;
	}
	status = entry->texts ? entry_make_doc(f, p->def, entry, &doc)
			      : rev_ahead_take(&p->ahead, f->r->arena, &doc);
	if (status == STATUS_OK && f->args.conflicts) {
		TRY(rev_tree_read(tx, f->r->db, entry->id, REV_TREE_HEADS, f->r->arena, &tree));
		d.tree = &tree;
	}
	if (status != STATUS_OK && status != STATUS_NOT_FOUND)
		return status;
	/* Not counted before it is read: if that fails, another attempt reads it, and counts it. */
	f->keys++;
	f->docs += !entry->texts;
	if (status == STATUS_NOT_FOUND)
		return STATUS_OK;
	TRY(find_doc_matches(f, &d, &matches));
	if (!matches)
		return find_check_limits(f);
	f->entry_is_cut = entry->cut;
	TRY(f->take(f, &d));
	buf_clear(&f->place);
	buf_append_byte(&f->place, PLAN_PLACE_KEY);
	buf_append_str(&f->place, entry->key);
	return buf_status(&f->place);
}

/* ---- Pages ---- */

/* Asks for the documents of the entries that do not answer by themselves. */
static enum status
pages_begin_docs(struct index_pages *p, struct kv_tx *tx)
{
	struct couch_req *r = p->f->r;
	struct str *ids = arena_alloc(r->arena, (p->count + 1) * sizeof(*ids));
	struct rev_id *revs = arena_alloc(r->arena, (p->count + 1) * sizeof(*revs));
	struct rev_want *wants = arena_alloc(r->arena, (p->count + 1) * sizeof(*wants));
	size_t asked = 0, wanted = 0;

	if (!ids || !revs || !wants)
		return STATUS_LIMIT;
	for (size_t i = 0; i < p->count; i++) {
		if (!p->entries[i].texts)
			ids[asked++] = p->entries[i].id;
	}
	TRY(rev_winners_read(tx, r->db, ids, asked, r->arena, revs));
	asked = 0;
	for (size_t i = 0; i < p->count; i++) {
		struct page_entry *e = &p->entries[i];

		if (e->texts)
			continue;
		e->gone = revs[asked].hash.ptr == NULL;
		if (!e->gone)
			wants[wanted++] = (struct rev_want){ e->id, revs[asked], false };
		asked++;
	}
	if (wanted == 0)
		return STATUS_OK;
	TRY(rev_ahead_begin(&p->ahead, tx, r->db, http_memory(r->x), wants, wanted, false));
	rev_ahead_is_sparse(&p->ahead);
	return STATUS_OK;
}

static enum status
pages_walk(struct index_pages *p, struct kv_tx *tx)
{
	struct find *f = p->f;
	struct arena_mark mark = arena_mark(f->r->arena);

	for (size_t i = 0; i < p->count && f->limit; i++) {
		const struct page_entry *entry = &p->entries[i];

		arena_reset(f->r->arena, mark);
		step_unit();
		TRY(step_count(INDEX_ENTRY_STEPS));
		TRY(entry_take(p, tx, entry));
		buf_set(&p->last, entry->key);
		TRY(buf_status(&p->last));
		if (f->stream.out.len > INDEX_PAGE_BYTES) {
			p->more = p->more || i + 1 < p->count;
			return STATUS_OK;
		}
	}
	return STATUS_OK;
}

static enum status
pages_read(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct index_pages *p = arg;
	const struct find *f = p->f;
	struct entries entries = {
		.plan = &f->plan,
		.read = &f->plan.reads[0],
		.partition = f->args.partition,
		.reverse = f->args.sort.descending,
		.most = p->most,
		.take = entry_keep,
		.arg = p,
	};
	uint64_t reads = kv_reads_mark(tx);
	enum status status;
	size_t count;

	if (f->groups) {
		/* What an attempt has taken into groups stays: the next one goes on behind. */
		buf_set_buf(&p->after, &p->last);
		TRY(buf_status(&p->after));
	} else {
		state_put_back(p->f, &p->before);
		buf_set_buf(&p->last, &p->after);
	}
	entries.after = buf_str(&p->after);
	p->count = 0;
	p->entries = arena_alloc(r->arena, p->most * sizeof(*p->entries));
	if (!p->entries)
		return STATUS_LIMIT;
	TRY(entries_read(r, tx, &entries, &count));
	p->more = count == p->most;
	status = pages_begin_docs(p, tx);
	if (status == STATUS_OK)
		status = pages_walk(p, tx);
	rev_ahead_release(&p->ahead);
	if (status == STATUS_OK)
		kv_reads_forget(tx, reads);
	return status;
}

/* ---- The whole ---- */

/* As many entries as documents are wanted, and twice as many each time, as most do not match. */
static size_t
pages_choose_size(const struct find *f, size_t before)
{
	uint64_t wanted = f->skip > UINT64_MAX - f->limit ? UINT64_MAX : f->skip + f->limit;

	if (wanted < 2 * before)
		wanted = 2 * before;
	return wanted < INDEX_PAGE_ENTRIES ? (size_t)wanted : INDEX_PAGE_ENTRIES;
}

enum status
find_indexed(struct find *f)
{
	struct index_pages p = {
		.f = f,
		.after = BUF_SHORT(BOOKMARK_BYTES),
		.last = BUF_SHORT(BOOKMARK_BYTES),
		.more = true,
	};
	struct arena_mark mark = arena_mark(f->r->arena);
	enum status status = STATUS_OK;

	if (f->has_after)
		buf_append_str(&p.after, str_skip(f->after.place, 1));
	while (status == STATUS_OK && p.more && f->limit) {
		p.before = state_of(f);
		p.most = pages_choose_size(f, p.most);
		status = couch_snapshot_run(&f->snapshot, pages_read, &p);
		arena_reset(f->r->arena, mark);
		if (status != STATUS_OK)
			break;
		buf_set_buf(&p.after, &p.last);
		status = buf_status(&p.after);
		if (status == STATUS_OK)
			status = couch_stream_push(&f->stream, false);
	}
	buf_release(&p.after);
	buf_release(&p.last);
	return status;
}

/* ---- Counting ---- */

struct range_counting {
	struct find *f;
	struct index_range *sure;
	size_t sure_count;
	struct index_range *others; /* which may have entries of documents that do not match */
	size_t others_count;
};

static enum status
counting_run(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct range_counting *c = arg;
	const struct key_ranges *keys = &c->f->plan.reads[0].keys;

	c->f->counted = 0;
	c->others_count = 0;
	for (size_t at = 0; at < c->sure_count; at += INDEX_COUNT_RANGES) {
		size_t left = c->sure_count - at;
		uint64_t n;

		TRY(index_ranges_count_exactly(tx, r->db, c->sure + at,
					       left < INDEX_COUNT_RANGES ? left
									 : INDEX_COUNT_RANGES,
					       INDEX_COUNT_FEW, &n));
		c->f->counted += n;
	}
	for (size_t i = 0; i < keys->count; i++) {
		uint64_t any = 0;

		if (keys->items[i].certain)
			continue;
		TRY(index_range_count(tx, r->db, &keys->items[i], 0, &any));
		if (any)
			c->others[c->others_count++] = keys->items[i];
	}
	return STATUS_OK;
}

enum status
find_count_indexed(struct find *f)
{
	const struct key_ranges *keys = &f->plan.reads[0].keys;
	struct plan_read part = f->plan.reads[0], *whole = f->plan.reads;
	struct range_counting c = {
		.f = f,
		.sure = arena_alloc(f->r->arena, (keys->count + 1) * sizeof(*c.sure)),
		.others = arena_alloc(f->r->arena, (keys->count + 1) * sizeof(*c.others)),
	};
	enum status status;

	if (!c.sure || !c.others)
		return STATUS_LIMIT;
	for (size_t i = 0; i < keys->count; i++) {
		if (keys->items[i].certain)
			c.sure[c.sure_count++] = keys->items[i];
	}
	TRY(couch_snapshot_run(&f->snapshot, counting_run, &c));
	if (!c.others_count)
		return STATUS_OK;
	part.keys = (struct key_ranges){ .items = c.others, .count = c.others_count };
	f->plan.reads = &part;
	f->limit = UINT64_MAX;
	status = find_indexed(f);
	f->plan.reads = whole;
	return status;
}
