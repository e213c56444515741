/* _all_docs, _design_docs and _local_docs: rows in byte order of their ids, read page by page. */
#include <assert.h>

#include "doc/json.h"
#include "doc/json_list.h"
#include "doc/json_value.h"
#include "door/couch/admin/partition.h"
#include "door/couch/admin/snapshot.h"
#include "door/couch/admin/tx.h"
#include "door/couch/doc/att_out.h"
#include "door/couch/doc/doc_opts.h"
#include "door/couch/doc/doc_out.h"
#include "door/couch/doc/edit.h"
#include "door/couch/list/endpoints.h"
#include "door/couch/list/queries.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/ids.h"
#include "door/couch/wire/request.h"
#include "door/couch/wire/stream.h"
#include "loop/step.h"

enum {
	LISTING_ROW_STEPS =
		8, /* what a row costs (loop/step.h): looking up a key, writing the row */
};

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
	bool any_partition; /* a query is about one */
	struct buf last;    /* the id to go on after */
	struct rev_cursor docs;
	struct rev_ahead ahead;
	struct str sent; /* the id of the row that was sent last; lies in the page */
	bool in_page;
	struct arena_mark page_mark; /* of the request's arena, before the page, while `in_page` */
};

static void
listing_end_reads(struct listing *l)
{
	rev_cursor_end(&l->docs);
	rev_ahead_release(&l->ahead);
}

/* Keeps the id of the row that was sent last, to go on after it. */
static void
listing_remember_last(struct listing *l, struct str id)
{
	buf_set(&l->last, id);
}

/*
 * The client does not read: the page that is being sent ends with the row that was sent last. Only
 * its id is kept, from which the listing goes on in a new snapshot.
 */
static void
listing_let_go(void *arg)
{
	struct listing *l = arg;

	if (l->sent.ptr && !l->snapshot.resting)
		listing_remember_last(l, l->sent);
	l->sent = (struct str){ 0 };
	listing_end_reads(l);
	if (l->in_page)
		arena_reset(l->r->arena, l->page_mark);
	couch_snapshot_rest(&l->snapshot);
}

typedef enum status step(struct listing *l, void *arg);

/* One piece of the answer, and the length of the answer before it. */
struct step_call {
	struct listing *l;
	step *fn;
	void *arg;
	size_t out;
	bool any_row;
};

/* One attempt at a step. First it drops what the attempt before wrote. */
static enum status
listing_attempt(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct step_call *c = arg;

	(void)r;
	(void)tx; /* it is the listing's snapshot's */
	couch_stream_cut(&c->l->stream, c->out);
	c->l->any_row = c->any_row;
	return c->fn(c->l, c->arg);
}

/*
 * Writes one piece of the answer. If the snapshot has to be renewed, the piece is written again at
 * the same place. Nothing in a step sends.
 */
static enum status
listing_run_step(struct listing *l, step *fn, void *arg)
{
	struct step_call c = { l, fn, arg, l->stream.out.len, l->any_row };

	return couch_snapshot_run(&l->snapshot, listing_attempt, &c);
}

/* ---- Rows ---- */

static void
listing_begin_row(struct listing *l)
{
	if (l->any_row)
		buf_append_cstr(&l->stream.out, ",\r\n");
	l->any_row = true;
}

/* True if the documents of a page's rows are read together, ahead of the rows. */
static bool
listing_reads_ahead(const struct listing *l)
{
	return l->args.include_docs && !l->args.conflicts && !l->args.has_keys &&
	       l->space != SPACE_LOCAL && !(l->args.doc_flags & COUCH_DOC_ATTS);
}

static enum status
listing_write_doc(struct listing *l, struct str id, const struct rev_id *rev)
{
	struct couch_req *r = l->r;
	struct kv_tx *tx = l->snapshot.tx;
	struct buf *out = &l->stream.out;
	struct rev_tree tree;
	struct rev_doc doc;
	struct couch_doc_opts opts = {
		.flags = l->args.doc_flags,
		.holes = &l->stream.holes,
		.check_tx = tx,
		.check_req = r,
	};
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
		TRY(rev_tree_read(tx, r->db, id, REV_TREE_HEADS, r->arena, &tree));
		opts.flags |= COUCH_DOC_CONFLICTS;
		return couch_head_write(r, tx, id, &tree, &tree.branches[0], &opts, out);
	}
	if (listing_reads_ahead(l))
		TRY(rev_ahead_take(&l->ahead, r->arena, &doc));
	else
		TRY(rev_doc_read_head(tx, r->db, id, *rev, false, r->arena, &doc));
	return couch_doc_write(&d, out);
}

/* Begins a row, up to the revision in its value. The value and the row are still open. */
static void
listing_begin_entry(struct listing *l, const struct rev_entry *entry)
{
	struct buf *out = &l->stream.out;
	size_t id;
	size_t len;

	listing_begin_row(l);
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

/* Writes the row of a document that is there. */
static enum status
listing_write_row(struct listing *l, void *arg)
{
	const struct rev_entry *entry = arg;
	struct buf *out = &l->stream.out;

	listing_begin_entry(l, entry);
	buf_append_byte(out, '}');
	if (l->args.include_docs)
		TRY(listing_write_doc(l, entry->id, &entry->rev));
	buf_append_byte(out, '}');
	return buf_status(out);
}

struct page_call {
	struct name_range range;
	struct rev_entry_page page;
};

/* Reads the next page. Begins the list anew if its cursor has ended, as it has after a failure. */
static enum status
listing_read_page(struct listing *l, void *arg)
{
	struct page_call *c = arg;
	bool keep = l->args.doc_flags & COUCH_DOC_ATTS;
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
	/*
	 * A cursor does not outlive its snapshot, which a failure or the sending of attachments may
	 * end.
	 */
	if (status != STATUS_OK || keep)
		listing_end_reads(l);
	return status;
}

/* Begins reading the documents of the page together. */
static enum status
listing_begin_docs(struct listing *l, const struct rev_entry_page *page, bool more)
{
	struct rev_want *wants = arena_alloc(l->r->arena, page->count * sizeof(*wants));

	if (!wants)
		return STATUS_LIMIT;
	for (size_t i = 0; i < page->count; i++)
		wants[i] = (struct rev_want){ page->entries[i].id, page->entries[i].rev, false };
	return rev_ahead_begin(&l->ahead, l->snapshot.tx, l->r->db, http_memory(l->r->x), wants,
			       page->count, more);
}

/*
 * Sends the rows of a page until one fails or the page is gone (listing_let_go()). *ret_sent rows
 * have been sent. `more`: pages follow.
 */
static enum status
listing_send_page(struct listing *l, struct rev_entry_page *page, bool more, size_t *ret_sent)
{
	bool ahead = listing_reads_ahead(l);
	/* Documents that are read ahead belong to later rows, too; other rows read nothing. */
	bool forgets = l->args.include_docs && !ahead;
	struct arena_mark mark;

	*ret_sent = 0;
	if (page->count && ahead)
		TRY(listing_begin_docs(l, page, more));
	mark = arena_mark(l->r->arena);
	for (; *ret_sent < page->count; ++*ret_sent) {
		size_t out = l->stream.out.len;
		bool any_row = l->any_row;
		uint64_t reads = forgets ? kv_reads_mark(l->snapshot.tx) : 0;
		enum status status;

		step_unit();
		TRY(step_count(LISTING_ROW_STEPS));
		status = listing_write_row(l, &page->entries[*ret_sent]);
		if (forgets)
			kv_reads_forget(l->snapshot.tx, reads);
		arena_reset(l->r->arena, mark);
		if (status != STATUS_OK) {
			couch_stream_cut(&l->stream, out);
			l->any_row = any_row;
			return status;
		}
		l->snapshot.failures = 0;
		l->sent = page->entries[*ret_sent].id;
		TRY(couch_stream_push(&l->stream, false));
		if (l->snapshot.resting) {
			++*ret_sent;
			return STATUS_OK;
		}
	}
	return STATUS_OK;
}

/* Makes the range begin behind the last row that was sent, or behind what the page has skipped. */
static enum status
listing_pass_page(struct listing *l, struct page_call *c, enum status status, size_t sent)
{
	/* If the page is gone, the last row's id has been kept: listing_let_go(). */
	if (!l->snapshot.resting) {
		struct str last = sent ? c->page.entries[sent - 1].id : (struct str){ NULL, 0 };

		if (status == STATUS_OK)
			last = c->page.last;
		if (!last.ptr)
			return STATUS_OK;
		listing_remember_last(l, last);
	}
	TRY(buf_status(&l->last));
	c->range.begin = buf_str(&l->last);
	c->range.has_begin = true;
	c->range.exclusive_begin = true;
	c->range.skip -= c->page.skipped;
	return STATUS_OK;
}

static enum status
listing_send_pages(struct listing *l, struct name_range range)
{
	struct page_call c = { .range = range, .page = { .more = true } };
	uint64_t left = l->args.limit;

	while (c.page.more && left) {
		enum status status;
		size_t sent;

		arena_reset(l->r->arena, l->page_mark);
		c.range.limit = left < SIZE_MAX ? (size_t)left : SIZE_MAX;
		l->sent = (struct str){ 0 };
		TRY(listing_run_step(l, listing_read_page, &c));
		status = listing_send_page(l, &c.page, c.page.more && left > c.page.count, &sent);
		left -= sent;
		l->sent = (struct str){ 0 };
		TRY(listing_pass_page(l, &c, status, sent));
		if (l->snapshot.resting) {
			c.page.more = true; /* the rest of the page is gone */
		} else if (status == STATUS_OK && couch_snapshot_is_wanted(&l->snapshot)) {
			/* What has been written must not be held until the next turn comes. */
			TRY(couch_stream_push(&l->stream, true));
			listing_let_go(l);
		}
		if (status == STATUS_OK)
			continue;
		/* The rest of the page belongs to a view that is gone, so it is read again. */
		listing_end_reads(l);
		TRY(couch_snapshot_renew(&l->snapshot, status));
		c.page.more = true;
	}
	return STATUS_OK;
}

static enum status
listing_send_range(struct listing *l, struct name_range range)
{
	enum status status;

	/* What is allocated while `in_page` goes with each page: nothing that stays lies there. */
	assert(!l->in_page);
	l->page_mark = arena_mark(l->r->arena);
	l->in_page = true;
	status = listing_send_pages(l, range);
	listing_end_reads(l);
	arena_reset(l->r->arena, l->page_mark);
	l->in_page = false;
	return status;
}

/* ---- Rows by keys ---- */

static enum status
listing_write_missing(struct listing *l, const struct json_value *key)
{
	struct buf *out = &l->stream.out;

	listing_begin_row(l);
	buf_append_cstr(out, "{\"key\":");
	buf_append_str(out, key->text);
	buf_append_cstr(out, ",\"error\":\"not_found\"}");
	return buf_status(out);
}

static enum status
listing_write_deleted(struct listing *l, const struct rev_entry *entry)
{
	struct buf *out = &l->stream.out;

	listing_begin_entry(l, entry);
	buf_append_cstr(out, ",\"deleted\":true}");
	if (l->args.include_docs)
		buf_append_cstr(out, ",\"doc\":null");
	buf_append_byte(out, '}');
	return buf_status(out);
}

static bool
listing_in_space(const struct listing *l, struct str id)
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
listing_read_local_rev(struct listing *l, struct str id, struct rev_id *ret)
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
listing_write_key(struct listing *l, void *arg)
{
	const struct json_value *key = arg;
	struct rev_entry entry = { .id = key->string };
	enum status status = STATUS_NOT_FOUND;

	if (key->kind == JSON_STRING && key->string.len <= REV_DOC_ID_BYTES) {
		if (l->space == SPACE_LOCAL)
			status = listing_read_local_rev(l, key->string, &entry.rev);
		else if ((status = couch_look_up_check_id(l->r, key->string, &l->r->fail)) ==
			 STATUS_OK)
			status = rev_winner_read(l->snapshot.tx, l->r->db, key->string, l->r->arena,
						 &entry.rev);
	}
	if (status == STATUS_NOT_FOUND)
		return listing_write_missing(l, key);
	if (status == STATUS_DELETED)
		return listing_write_deleted(l, &entry);
	if (status != STATUS_OK)
		return status;
	return listing_write_row(l, &entry);
}

/*
 * Sends the row of one key, and frees the memory that the row took in the request's arena and in
 * the snapshot: a request may name more keys than a transaction has memory for reads.
 */
static enum status
listing_send_key(struct listing *l, struct json_value *key)
{
	struct arena_mark mark = arena_mark(l->r->arena);
	uint64_t reads = kv_reads_mark(l->snapshot.tx);

	step_unit();
	TRY(step_count(LISTING_ROW_STEPS));
	TRY(listing_run_step(l, listing_write_key, key));
	kv_reads_forget(l->snapshot.tx, reads);
	arena_reset(l->r->arena, mark);
	return couch_stream_push(&l->stream, false);
}

static enum status
listing_send_keys(struct listing *l)
{
	const struct couch_view_args *args = &l->args;
	struct couch_key_page page;
	uint64_t left = args->limit;

	couch_key_page_init(&page, l->r->arena);
	for (uint64_t i = args->skip; i < args->keys.count && left; i++, left--) {
		size_t at = (size_t)(args->descending ? args->keys.count - 1 - i : i);
		struct json_value *key;

		TRY(couch_key_page_turn(&page, &args->keys, at, l->r->arena, &key));
		if (key->kind == JSON_STRING && !listing_in_space(l, key->string))
			continue;
		TRY(listing_send_key(l, key));
	}
	arena_reset(l->r->arena, page.mark);
	return STATUS_OK;
}

/* ---- The head of an answer ---- */

static enum status
listing_count_design(struct listing *l, uint64_t *ret)
{
	struct name_range range = {
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

/* Counts the documents of the space that lie before the range. */
static enum status
listing_count_before(struct listing *l, const struct name_range *range, uint64_t *ret)
{
	const struct name_range whole = {
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
	const struct name_range *range; /* NULL: by keys, or empty */
};

static enum status
listing_write_offset(struct listing *l, const struct name_range *range, uint64_t total)
{
	struct buf *out = &l->stream.out;
	uint64_t before = 0;

	if (!range) {
		buf_append_cstr(out, ",\"offset\":null");
		return STATUS_OK;
	}
	TRY(listing_count_before(l, range, &before));
	before += l->args.skip;
	buf_append_cstr(out, ",\"offset\":");
	buf_append_u64(out, before < total ? before : total);
	return STATUS_OK;
}

static enum status
listing_write_head(struct listing *l, void *arg)
{
	const struct head_call *c = arg;
	struct buf *out = &l->stream.out;
	struct rev_db_info info;
	uint64_t total;

	TRY(rev_db_info(l->snapshot.tx, l->r->db, &info));
	total = info.doc_count;
	if (l->space == SPACE_DESIGN)
		TRY(listing_count_design(l, &total));
	if (l->space == SPACE_LOCAL) {
		buf_append_cstr(out, "{\"total_rows\":null,\"offset\":null");
	} else {
		buf_append_cstr(out, "{\"total_rows\":");
		buf_append_u64(out, total);
		TRY(listing_write_offset(l, c->range, total));
	}
	if (l->args.update_seq && l->args.has_keys) {
		buf_append_cstr(out, ",\"update_seq\":null");
	} else if (l->args.update_seq) {
		buf_append_cstr(out, ",\"update_seq\":\"");
		catalog_seq_write(&info.update_seq, out);
		buf_append_byte(out, '"');
	}
	buf_append_cstr(out, ",\"rows\":[\r\n");
	l->any_row = false;
	return buf_status(out);
}

/* Writes the answer to one query. */
static enum status
listing_send_listing(struct listing *l)
{
	const struct name_range design = { .begin = STR("_design/"), .end = STR("_design0") };
	struct name_range range;
	struct head_call head = { NULL };
	bool some;

	if (l->args.has_keys) {
		TRY(listing_run_step(l, listing_write_head, &head));
		TRY(listing_send_keys(l));
	} else {
		TRY(couch_view_args_range(&l->args, l->space == SPACE_DESIGN ? &design : NULL,
					  l->r->arena, &range, &some));
		head.range = some ? &range : NULL;
		TRY(listing_run_step(l, listing_write_head, &head));
		if (some)
			TRY(listing_send_range(l, range));
	}
	buf_append_cstr(&l->stream.out, "\r\n]}");
	return buf_status(&l->stream.out);
}

static enum space
listing_space(struct str endpoint)
{
	if (str_eq(endpoint, STR("_design_docs")))
		return SPACE_DESIGN;
	return str_eq(endpoint, STR("_local_docs")) ? SPACE_LOCAL : SPACE_ALL;
}

/* Refuses a partition that the path or a parameter names, in a database that has none. */
static enum status
listing_check_partition(struct listing *l)
{
	struct couch_req *r = l->r;

	TRY(couch_partition_check_db(r));
	if (!l->any_partition || rev_db_is_partitioned(r->db))
		return STATUS_OK;
	return couch_fail_set(&r->fail, COUCH_ERROR_QUERY_PARSE,
			      "`partition` parameter is not supported on this db");
}

static enum status
listing_serve(struct listing *l)
{
	TRY(couch_snapshot_begin_list(&l->snapshot, l->r));
	TRY(listing_check_partition(l));
	if (l->r->head)
		l->args.limit = 0;
	TRY(listing_send_listing(l));
	buf_append_byte(&l->stream.out, '\n');
	return couch_stream_end(&l->stream);
}

static void
listing_init(struct listing *l, struct couch_req *r)
{
	*l = (struct listing){ .r = r, .space = listing_space(r->parts[1]) };
	couch_stream_init(&l->stream, r);
	l->stream.fill = couch_att_fill;
	l->stream.fill_arg = &l->snapshot;
	couch_view_args_init(&l->args);
	l->last = BUF_SHORT(REV_DOC_ID_BYTES);
	(void)http_on_wait(r->x, (struct net_wait_hook){ listing_let_go, l });
}

static void
listing_release(struct listing *l)
{
	(void)http_on_wait(l->r->x, (struct net_wait_hook){ 0 });
	couch_snapshot_end(&l->snapshot);
	couch_stream_release(&l->stream);
	buf_release(&l->last);
}

static enum status
listing_check_args(struct listing *l)
{
	TRY(couch_view_args_check(l->r, COUCH_VIEW_IDS, &l->args));
	l->any_partition = l->any_partition || l->args.partition.ptr;
	return STATUS_OK;
}

static enum status
listing_read_args(struct listing *l)
{
	struct couch_req *r = l->r;
	struct json_member *members;
	size_t count;

	if (r->method == COUCH_POST) {
		TRY(couch_db_require_json(r));
		TRY(couch_db_precheck(r));
		TRY(couch_read_object(r, r->settings->body_bytes, &members, &count));
		TRY(couch_view_args_members(r, members, count, &l->args));
	}
	/* A parameter in the query overrides the same one in the body. */
	TRY(couch_view_args_query(r, &l->args));
	return listing_check_args(l);
}

enum status
couch_all_docs(struct couch_req *r)
{
	AUTO(listing_release) struct listing l;

	listing_init(&l, r);
	TRY(listing_read_args(&l));
	return listing_serve(&l);
}

/* ---- POST …/queries ---- */

static enum status
listing_check_query(void *arg, size_t at)
{
	(void)at;
	return listing_check_args(arg);
}

/* Sends the answer to one query, which is the one at the position `at`. */
static enum status
listing_send_query(void *arg, size_t at)
{
	struct listing *l = arg;
	uint64_t reads = kv_reads_mark(l->snapshot.tx);

	TRY(listing_check_args(l));
	step_unit();
	TRY(step_count(LISTING_ROW_STEPS));
	buf_append_cstr(&l->stream.out, at ? ",\r\n" : "\r\n");
	TRY(listing_send_listing(l));
	kv_reads_forget(l->snapshot.tx, reads);
	return couch_stream_push(&l->stream, false);
}

/* Every query is checked before the answer begins, so that a mistake in the last one is a 400. */
static enum status
listing_serve_queries(struct listing *l)
{
	struct couch_req *r = l->r;
	struct couch_queries queries = { .common = l->args };

	TRY(couch_queries_read(r, &queries));
	TRY(couch_queries_visit(r, &queries, &l->args, listing_check_query, l));
	TRY(couch_snapshot_begin_list(&l->snapshot, r));
	TRY(listing_check_partition(l));
	buf_append_cstr(&l->stream.out, "{\"results\":[");
	TRY(couch_queries_visit(r, &queries, &l->args, listing_send_query, l));
	buf_append_cstr(&l->stream.out, "\r\n]}\n");
	return couch_stream_end(&l->stream);
}

enum status
couch_all_docs_queries(struct couch_req *r)
{
	AUTO(listing_release) struct listing l;

	listing_init(&l, r);
	return listing_serve_queries(&l);
}
