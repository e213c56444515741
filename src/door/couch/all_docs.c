/* _all_docs, _design_docs and _local_docs: ids in byte order, a page at a time. */
#include "door/couch/view_args.h"

enum space {
	SPACE_ALL,
	SPACE_DESIGN,
	SPACE_LOCAL,
};

struct listing {
	struct couch_req *r;
	struct couch_snapshot snapshot;
	struct couch_stream stream;
	struct couch_view_args args;
	enum space space;
	bool any_row;
	unsigned flags;  /* of documents: their attachments */
	struct buf last; /* the id to go on after */
	struct rev_cursor docs;
	struct rev_ahead ahead;
};

typedef enum status step(struct listing *l, void *arg);

/*
 * Runs a piece of the answer, again from the same place in the output when the snapshot had to be
 * renewed. Nothing in a step sends.
 */
static enum status
run_step(struct listing *l, step *fn, void *arg)
{
	struct arena_mark mark = arena_mark(l->r->arena);
	size_t out = l->stream.out.len;
	bool any_row = l->any_row;

	for (;;) {
		enum status status = fn(l, arg);

		if (status == STATUS_OK) {
			l->snapshot.failures = 0;
			return STATUS_OK;
		}
		TRY(couch_snapshot_renew(&l->snapshot, status));
		arena_reset(l->r->arena, mark);
		couch_stream_cut(&l->stream, out);
		l->any_row = any_row;
	}
}

/* ---- Rows ---- */

static void
begin_row(struct listing *l)
{
	if (l->any_row)
		buf_append_cstr(&l->stream.out, ",\r\n");
	l->any_row = true;
}

/* The rows of pages have their documents read together. */
static bool
reads_ahead(const struct listing *l)
{
	return l->args.include_docs && !l->args.conflicts && !l->args.has_keys &&
	       l->space != SPACE_LOCAL && !(l->flags & COUCH_DOC_ATTS);
}

static enum status
write_doc(struct listing *l, struct str id, const struct rev_id *rev)
{
	struct couch_req *r = l->r;
	struct kv_tx *tx = l->snapshot.tx;
	struct buf *out = &l->stream.out;
	struct rev_tree tree;
	struct rev_doc doc;
	struct couch_doc_opts opts = { .flags = l->flags, .holes = &l->stream.holes };
	struct couch_doc_out d = { .id = id, .doc = &doc, .opts = &opts };
	uint64_t n;

	buf_append_cstr(out, ",\"doc\":");
	if (l->space == SPACE_LOCAL) {
		TRY(rev_local_get(tx, r->db, id, r->arena, &n, &doc));
		doc.rev = *rev;
		doc.deleted = false;
		return couch_doc_write(&d, out);
	}
	if (l->args.conflicts) {
		TRY(rev_tree_read(tx, r->db, id, r->arena, &tree));
		opts.flags |= COUCH_DOC_CONFLICTS;
		return couch_leaf_write(r, tx, id, &tree, &tree.branches[0], &opts, out);
	}
	if (reads_ahead(l))
		TRY(rev_ahead_take(&l->ahead, r->arena, &doc));
	else
		TRY(rev_doc_read_leaf(tx, r->db, id, *rev, false, r->arena, &doc));
	return couch_doc_write(&d, out);
}

/* A row up to its value's revision; the value and the row are still open. */
static void
begin_entry(struct listing *l, const struct rev_entry *entry)
{
	struct buf *out = &l->stream.out;
	size_t id;
	size_t len;

	begin_row(l);
	buf_append_cstr(out, "{\"id\":");
	id = out->len;
	json_write_str(out, entry->id);
	len = out->len - id;
	buf_append_cstr(out, ",\"key\":");
	if (buf_reserve(out, len))
		buf_append(out, out->ptr + id, len);
	buf_append_cstr(out, ",\"value\":{\"rev\":");
	couch_rev_write(entry->rev, out);
}

/* A row about a document that is there. */
static enum status
write_row(struct listing *l, void *arg)
{
	const struct rev_entry *entry = arg;
	struct buf *out = &l->stream.out;

	begin_entry(l, entry);
	buf_append_byte(out, '}');
	if (l->args.include_docs)
		TRY(write_doc(l, entry->id, &entry->rev));
	buf_append_byte(out, '}');
	return buf_status(out);
}

struct page_call {
	struct rev_name_range range;
	struct rev_entry_page page;
};

static void
end_reads(struct listing *l)
{
	rev_cursor_end(&l->docs);
	rev_ahead_release(&l->ahead);
}

/* Goes on with the list; begins it if it has ended, as after a failure. */
static enum status
read_page(struct listing *l, void *arg)
{
	struct page_call *c = arg;
	bool keep = l->flags & COUCH_DOC_ATTS;
	enum status status = STATUS_OK;

	if (l->space == SPACE_LOCAL) {
		if (c->range.limit > COUCH_PAGE_ROWS)
			c->range.limit = COUCH_PAGE_ROWS;
		return rev_local_page(l->snapshot.tx, l->r->db, &c->range, l->r->arena, &c->page);
	}
	if (!l->docs.open)
		status = rev_all_docs_begin(&l->docs, l->snapshot.tx, l->r->db, &c->range);
	if (status == STATUS_OK)
		status = rev_all_docs_next(&l->docs, COUCH_PAGE_ROWS, keep, l->r->arena, &c->page);
	/* Sending attachments may end the snapshot, as does what follows a failure. */
	if (status != STATUS_OK || keep)
		end_reads(l);
	return status;
}

/* The row's own memory goes with it; the page's stays until the page is done. */
static enum status
send_key(struct listing *l, step *fn, void *arg)
{
	struct arena_mark mark = arena_mark(l->r->arena);

	TRY(run_step(l, fn, arg));
	arena_reset(l->r->arena, mark);
	return couch_stream_push(&l->stream, false);
}

/* Lets the documents of the page be read together. */
static enum status
begin_docs(struct listing *l, const struct rev_entry_page *page, bool more)
{
	struct rev_want *wants = arena_alloc(l->r->arena, page->count * sizeof(*wants));

	if (!wants)
		return STATUS_LIMIT;
	for (size_t i = 0; i < page->count; i++)
		wants[i] = (struct rev_want){ page->entries[i].id, page->entries[i].rev, false };
	return rev_ahead_begin(&l->ahead, l->snapshot.tx, l->r->db, http_memory(l->r->x), wants,
			       page->count, more);
}

/* Sends the rows of a page until one fails; *ret_sent of them are out. `more`: pages follow. */
static enum status
send_page(struct listing *l, struct rev_entry_page *page, bool more, size_t *ret_sent)
{
	struct arena_mark mark;

	*ret_sent = 0;
	if (page->count && reads_ahead(l))
		TRY(begin_docs(l, page, more));
	mark = arena_mark(l->r->arena);
	for (; *ret_sent < page->count; ++*ret_sent) {
		size_t out = l->stream.out.len;
		bool any_row = l->any_row;
		enum status status = write_row(l, &page->entries[*ret_sent]);

		arena_reset(l->r->arena, mark);
		if (status != STATUS_OK) {
			couch_stream_cut(&l->stream, out);
			l->any_row = any_row;
			return status;
		}
		l->snapshot.failures = 0;
		TRY(couch_stream_push(&l->stream, false));
	}
	return STATUS_OK;
}

static enum status
send_pages(struct listing *l, struct rev_name_range range)
{
	struct couch_req *r = l->r;
	struct arena_mark mark = arena_mark(r->arena);
	struct page_call c = { .range = range, .page = { .more = true } };
	uint64_t left = l->args.limit;

	while (c.page.more && left) {
		enum status status;
		struct str last;
		size_t sent;

		arena_reset(r->arena, mark);
		c.range.limit = left < SIZE_MAX ? (size_t)left : SIZE_MAX;
		TRY(run_step(l, read_page, &c));
		status = send_page(l, &c.page, c.page.more && left > c.page.count, &sent);
		left -= sent;

		last = sent ? c.page.entries[sent - 1].id : (struct str){ NULL, 0 };
		if (status == STATUS_OK)
			last = c.page.last;
		if (last.ptr) {
			buf_clear(&l->last);
			buf_append_str(&l->last, last);
			TRY(buf_status(&l->last));
			c.range.begin = buf_str(&l->last);
			c.range.has_begin = true;
			c.range.exclusive_begin = true;
			c.range.skip -= c.page.skipped;
		}
		if (status == STATUS_OK)
			continue;
		/* The other rows of the page are of a view that is gone: they are read again. */
		end_reads(l);
		TRY(couch_snapshot_renew(&l->snapshot, status));
		c.page.more = true;
	}
	arena_reset(r->arena, mark);
	return STATUS_OK;
}

static enum status
send_range(struct listing *l, struct rev_name_range range)
{
	enum status status = send_pages(l, range);

	end_reads(l);
	return status;
}

/* ---- Rows by keys ---- */

static enum status
write_missing(struct listing *l, const struct json_value *key)
{
	struct buf *out = &l->stream.out;

	begin_row(l);
	buf_append_cstr(out, "{\"key\":");
	buf_append_str(out, key->text);
	buf_append_cstr(out, ",\"error\":\"not_found\"}");
	return buf_status(out);
}

static enum status
write_deleted(struct listing *l, const struct rev_entry *entry)
{
	struct buf *out = &l->stream.out;

	begin_entry(l, entry);
	buf_append_cstr(out, ",\"deleted\":true}");
	if (l->args.include_docs)
		buf_append_cstr(out, ",\"doc\":null");
	buf_append_byte(out, '}');
	return buf_status(out);
}

static bool
in_space(const struct listing *l, struct str id)
{
	switch (l->space) {
	case SPACE_DESIGN:
		return couch_is_design(id);
	case SPACE_LOCAL:
		return couch_is_local(id);
	case SPACE_ALL:
		break;
	}
	return true;
}

static enum status
read_local_rev(struct listing *l, struct str id, struct rev_id *ret)
{
	struct rev_doc doc;
	uint64_t n;

	TRY(rev_local_get(l->snapshot.tx, l->r->db, id, l->r->arena, &n, &doc));
	*ret = (struct rev_id){
		0,
		arena_printf(l->r->arena, "%llu", (unsigned long long)n),
	};
	return ret->hash.ptr ? STATUS_OK : STATUS_LIMIT;
}

static enum status
write_key(struct listing *l, void *arg)
{
	const struct json_value *key = arg;
	struct rev_entry entry = { .id = key->string };
	enum status status = STATUS_NOT_FOUND;

	if (key->kind == JSON_STRING && key->string.len <= REV_DOC_ID_BYTES) {
		if (l->space == SPACE_LOCAL)
			status = read_local_rev(l, key->string, &entry.rev);
		else
			status = rev_winner_read(l->snapshot.tx, l->r->db, key->string, l->r->arena,
						 &entry.rev);
	}
	if (status == STATUS_NOT_FOUND)
		return write_missing(l, key);
	if (status == STATUS_DELETED)
		return write_deleted(l, &entry);
	if (status != STATUS_OK)
		return status;
	return write_row(l, &entry);
}

static enum status
send_keys(struct listing *l)
{
	const struct couch_view_args *args = &l->args;
	uint64_t left = args->limit;

	for (uint64_t i = args->skip; i < args->keys_count && left; i++, left--) {
		size_t at = (size_t)(args->descending ? args->keys_count - 1 - i : i);
		struct json_value *key = &args->keys[at];

		if (key->kind == JSON_STRING && !in_space(l, key->string))
			continue;
		TRY(send_key(l, write_key, key));
	}
	return STATUS_OK;
}

/* ---- The head of an answer ---- */

static enum status
count_design(struct listing *l, uint64_t *ret)
{
	struct rev_name_range range = {
		.begin = STR("_design0"),
		.has_begin = true,
	};
	uint64_t below_end;
	uint64_t below_begin;

	TRY(rev_all_docs_offset(l->snapshot.tx, l->r->db, &range, &below_end));
	range.begin = STR("_design/");
	TRY(rev_all_docs_offset(l->snapshot.tx, l->r->db, &range, &below_begin));
	*ret = below_end - below_begin;
	return STATUS_OK;
}

/* How many of the space's documents come before the range begins. */
static enum status
count_before(struct listing *l, const struct rev_name_range *range, uint64_t *ret)
{
	const struct rev_name_range whole = {
		.descending = range->descending,
		.has_begin = true,
		.exclusive_begin = range->descending,
		.begin = range->descending ? STR("_design0") : STR("_design/"),
	};
	uint64_t outside;

	TRY(rev_all_docs_offset(l->snapshot.tx, l->r->db, range, ret));
	if (l->space != SPACE_DESIGN)
		return STATUS_OK;
	TRY(rev_all_docs_offset(l->snapshot.tx, l->r->db, &whole, &outside));
	*ret -= outside;
	return STATUS_OK;
}

struct head_call {
	const struct rev_name_range *range; /* NULL: by keys, or empty */
};

static enum status
write_offset(struct listing *l, const struct rev_name_range *range, uint64_t total)
{
	struct buf *out = &l->stream.out;
	uint64_t before = 0;

	if (!range) {
		buf_append_cstr(out, ",\"offset\":null");
		return STATUS_OK;
	}
	TRY(count_before(l, range, &before));
	before += l->args.skip;
	buf_append_cstr(out, ",\"offset\":");
	buf_append_u64(out, before < total ? before : total);
	return STATUS_OK;
}

static enum status
write_head(struct listing *l, void *arg)
{
	const struct head_call *c = arg;
	struct buf *out = &l->stream.out;
	struct rev_db_info info;
	uint64_t total;

	TRY(rev_db_info(l->snapshot.tx, l->r->db, &info));
	total = info.doc_count;
	if (l->space == SPACE_DESIGN)
		TRY(count_design(l, &total));
	if (l->space == SPACE_LOCAL) {
		buf_append_cstr(out, "{\"total_rows\":null,\"offset\":null");
	} else {
		buf_append_cstr(out, "{\"total_rows\":");
		buf_append_u64(out, total);
		TRY(write_offset(l, c->range, total));
	}
	if (l->args.update_seq && l->args.has_keys) {
		buf_append_cstr(out, ",\"update_seq\":null");
	} else if (l->args.update_seq) {
		buf_append_cstr(out, ",\"update_seq\":\"");
		rev_seq_write(&info.update_seq, out);
		buf_append_byte(out, '"');
	}
	buf_append_cstr(out, ",\"rows\":[\r\n");
	l->any_row = false;
	return buf_status(out);
}

/* One answer, without what comes before and after it. */
static enum status
send_listing(struct listing *l)
{
	struct rev_name_range range;
	struct head_call head = { NULL };
	bool some;

	if (l->args.has_keys) {
		TRY(run_step(l, write_head, &head));
		TRY(send_keys(l));
	} else {
		some = couch_view_args_range(
			&l->args, l->space == SPACE_DESIGN ? STR("_design/") : (struct str){ 0 },
			STR("_design0"), &range);
		head.range = some ? &range : NULL;
		TRY(run_step(l, write_head, &head));
		if (some)
			TRY(send_range(l, range));
	}
	buf_append_cstr(&l->stream.out, "\r\n]}");
	return buf_status(&l->stream.out);
}

static enum space
space_of(struct str endpoint)
{
	if (str_eq(endpoint, STR("_design_docs")))
		return SPACE_DESIGN;
	return str_eq(endpoint, STR("_local_docs")) ? SPACE_LOCAL : SPACE_ALL;
}

static enum status
serve_one(struct listing *l)
{
	TRY(couch_snapshot_begin(&l->snapshot, l->r));
	if (l->r->head)
		l->args.limit = 0;
	TRY(send_listing(l));
	buf_append_byte(&l->stream.out, '\n');
	return couch_stream_end(&l->stream);
}

static void
listing_init(struct listing *l, struct couch_req *r)
{
	*l = (struct listing){ .r = r, .space = space_of(r->parts[1]) };
	l->flags = couch_doc_flags(r) & (COUCH_DOC_ATTS | COUCH_DOC_ATT_ENCODING);
	couch_stream_init(&l->stream, r);
	l->stream.snapshot = &l->snapshot;
	couch_view_args_init(&l->args);
	buf_init(&l->last, REV_DOC_ID_BYTES);
}

static void
listing_release(struct listing *l)
{
	couch_snapshot_end(&l->snapshot);
	couch_stream_release(&l->stream);
	buf_release(&l->last);
}

static enum status
read_args(struct listing *l)
{
	struct couch_req *r = l->r;
	struct json_member *members;
	size_t count;

	if (r->method == COUCH_POST) {
		TRY(couch_db_require_json(r));
		TRY(couch_db_precheck(r));
		TRY(couch_read_object(r, r->settings->door.body_bytes, &members, &count));
		TRY(couch_view_args_members(r, members, count, &l->args));
	}
	/* Of what is said twice, the query counts. */
	TRY(couch_view_args_query(r, &l->args));
	return couch_view_args_check(r, &l->args);
}

enum status
couch_all_docs(struct couch_req *r)
{
	struct listing l;
	enum status status;

	listing_init(&l, r);
	status = read_args(&l);
	if (status == STATUS_OK)
		status = serve_one(&l);
	listing_release(&l);
	return status;
}

/* ---- POST …/queries ---- */

static enum status
parse_queries(struct listing *l, struct couch_view_args **ret, size_t *ret_count)
{
	struct couch_req *r = l->r;
	struct json_member *members;
	const struct json_value *queries;
	struct json_value *items;
	size_t count;

	TRY(couch_db_precheck(r));
	TRY(couch_read_object(r, r->settings->door.body_bytes, &members, &count));
	queries = json_value_find(members, count, "queries");
	if (!queries)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "POST body must include `queries` parameter.");
	if (queries->kind != JSON_ARRAY_BEGIN)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "`queries` member must be an array.");
	TRY(couch_view_args_query(r, &l->args));
	TRY(json_value_items(queries, r->arena, &items, ret_count, &r->fail.err));
	*ret = arena_alloc(r->arena, (*ret_count + 1) * sizeof(**ret));
	if (!*ret)
		return STATUS_LIMIT;
	for (size_t i = 0; i < *ret_count; i++) {
		if (items[i].kind != JSON_OBJECT_BEGIN)
			return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
					      "Each of `queries` must be an object.");
		(*ret)[i] = l->args;
		TRY(json_value_members(&items[i], r->arena, &members, &count, &r->fail.err));
		TRY(couch_view_args_members(r, members, count, &(*ret)[i]));
		TRY(couch_view_args_check(r, &(*ret)[i]));
	}
	return STATUS_OK;
}

static enum status
serve_queries(struct listing *l)
{
	struct couch_view_args *queries = NULL;
	size_t count = 0;

	TRY(parse_queries(l, &queries, &count));
	TRY(couch_snapshot_begin(&l->snapshot, l->r));
	buf_append_cstr(&l->stream.out, "{\"results\":[");
	for (size_t i = 0; i < count; i++) {
		buf_append_cstr(&l->stream.out, i ? ",\r\n" : "\r\n");
		l->args = queries[i];
		TRY(send_listing(l));
	}
	buf_append_cstr(&l->stream.out, "\r\n]}\n");
	return couch_stream_end(&l->stream);
}

enum status
couch_all_docs_queries(struct couch_req *r)
{
	struct listing l;
	enum status status;

	listing_init(&l, r);
	status = serve_queries(&l);
	listing_release(&l);
	return status;
}
