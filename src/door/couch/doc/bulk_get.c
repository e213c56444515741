/*
 * POST /{db}/_bulk_get: many documents in one answer, in the order asked for.
 *
 * The request is checked whole, and then read again bit by bit, so that what is kept of it does not
 * grow with its length. A window of items is read at a time. Where a window asks for several
 * revisions of one document, its branches are not read for each: the revisions are looked up
 * together (rev_descent_read()), or each by its own key.
 */
#include <assert.h>

#include "base/hash.h"
#include "doc/json.h"
#include "doc/json_value.h"
#include "door/couch/admin/snapshot.h"
#include "door/couch/admin/tx.h"
#include "door/couch/doc/att_out.h"
#include "door/couch/doc/doc_in.h"
#include "door/couch/doc/doc_opts.h"
#include "door/couch/doc/doc_out.h"
#include "door/couch/doc/edit.h"
#include "door/couch/doc/endpoints.h"
#include "door/couch/doc/related.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/holes.h"
#include "door/couch/wire/ids.h"
#include "door/couch/wire/reply.h"
#include "door/couch/wire/request.h"
#include "door/couch/wire/stream.h"
#include "door/couch/wire/uuid.h"
#include "http/field.h"
#include "loop/step.h"

enum {
	BULK_GET_WINDOW = 8192, /* items */
	HEAD_STEPS = 50,        /* of reading a revision's body */
};

struct bulk_get {
	struct couch_req *r;
	struct couch_snapshot snapshot;
	struct couch_stream stream;
	unsigned flags;
	struct str boundary; /* multipart; ptr NULL: JSON */
	struct str inner;    /* of documents with their attachments */
};

/* A document of which a window wants several items. */
struct wanted_group {
	struct str id;
	size_t items;
	struct rev_id *revs; /* that its items name */
	size_t revs_count;
	size_t revs_most;
	struct rev_descent *descent; /* with `latest`: the heads for those revisions; or NULL */
};

/* One document that the client wants: its id, and perhaps a revision and atts_since. */
struct wanted {
	struct couch_fail *fail; /* why it cannot be had; NULL: it may be */
	struct wanted_group *group;
	struct str id_json;
	struct str rev_json;
	struct str id;
	bool has_rev;
	struct rev_id rev;
	struct couch_doc_opts opts;
};

/* Items that are read and answered together. All of it lies in the request's arena. */
struct window {
	struct wanted *items;
	size_t count;
	struct wanted_group *groups;
	size_t groups_count;
};

/* The part of the answer for one document, while it is written. */
struct item {
	struct buf text;
	struct couch_holes holes;
	bool any; /* there is something already */
};

static void
bulk_get_clear_item(struct item *item)
{
	buf_clear(&item->text);
	couch_holes_cut(&item->holes, 0);
	item->any = false;
}

/* ---- The forms of an answer ---- */

static void
bulk_get_begin_json(struct item *item, const char *opening)
{
	if (item->any)
		buf_append_byte(&item->text, ',');
	item->any = true;
	buf_append_cstr(&item->text, opening);
}

static void
bulk_get_write_error(struct bulk_get *b, struct item *item, const struct wanted *w,
		     const char *error, const char *reason)
{
	struct buf *out = &item->text;

	if (b->boundary.ptr) {
		buf_append_cstr(out, "\r\n--");
		buf_append_str(out, b->boundary);
		buf_append_cstr(out, "\r\nContent-Type: application/json; error=\"true\"\r\n\r\n");
	} else {
		bulk_get_begin_json(item, "{\"error\":");
	}
	buf_append_cstr(out, "{\"id\":");
	buf_append_str(out, w->id_json);
	buf_append_cstr(out, ",\"rev\":");
	buf_append_str(out, w->rev_json);
	buf_printf(out, ",\"error\":\"%s\",\"reason\":", error);
	json_write_str(out, str_from_cstr(reason));
	buf_append_cstr(out, b->boundary.ptr ? "}" : "}}");
}

/* A revision in a part's header, escaped where an older server stored what no header can hold. */
static void
bulk_get_write_rev_header(struct rev_id rev, struct buf *out)
{
	struct buf AUTO(buf_release) text = BUF_SHORT(2 * REV_HASH_LIMIT_BYTES);

	rev_id_write(rev, &text);
	if (buf_status(&text) == STATUS_OK)
		http_write_text(buf_str(&text), out);
}

/* Writes one part of the answer. A document with attachments is a multipart body in that part. */
static enum status
bulk_get_write_part(struct bulk_get *b, struct item *item, const struct couch_doc_out *d)
{
	struct buf *out = &item->text;

	buf_append_cstr(out, "\r\n--");
	buf_append_str(out, b->boundary);
	if (!couch_atts_any_whole(d->opts, d->doc, d->branch)) {
		buf_append_cstr(out, "\r\nContent-Type: application/json\r\n\r\n");
		return couch_doc_write(d, out);
	}
	buf_append_cstr(out, "\r\nX-Doc-Id: ");
	http_write_text(d->id, out);
	buf_append_cstr(out, "\r\nX-Rev-Id: ");
	bulk_get_write_rev_header(d->branch->rev, out);
	buf_append_cstr(out, "\r\nContent-Type: multipart/related; boundary=");
	buf_append_str(out, b->inner);
	buf_append_cstr(out, "\r\n\r\n");
	return couch_related_write(d, b->inner, out);
}

/* Writes a revision that is there. `head` may lack its ancestors. */
static enum status
bulk_get_write_head(struct bulk_get *b, struct item *item, const struct wanted *w,
		    const struct rev_branch *head)
{
	struct rev_branch branch;
	const struct rev_tree tree = { .branches = &branch, .count = 1 };
	struct rev_doc doc;
	struct couch_doc_out d = { w->id, &doc, &tree, &branch, &w->opts };

	TRY(couch_head_complete(b->r, b->snapshot.tx, w->id, head, &w->opts, &branch));
	TRY(couch_head_read(b->r, b->snapshot.tx, w->id, &branch, &doc));
	if (b->boundary.ptr)
		return bulk_get_write_part(b, item, &d);
	bulk_get_begin_json(item, "{\"ok\":");
	TRY(couch_doc_write(&d, &item->text));
	buf_append_byte(&item->text, '}');
	return buf_status(&item->text);
}

/* ---- One item ---- */

/* Writes all heads of a document. */
static enum status
bulk_get_write_all(struct bulk_get *b, struct item *item, const struct wanted *w)
{
	struct couch_req *r = b->r;
	struct rev_tree tree;
	enum status status = rev_tree_read(b->snapshot.tx, r->db, w->id, REV_TREE_WINNER, r->arena,
					   &tree);

	if (status == STATUS_NOT_FOUND)
		bulk_get_write_error(b, item, w, "not_found", "missing");
	if (status != STATUS_OK)
		return status == STATUS_NOT_FOUND ? STATUS_OK : status;
	for (size_t i = 0; i < tree.count; i++)
		TRY(bulk_get_write_head(b, item, w, &tree.branches[i]));
	return STATUS_OK;
}

/* Writes the heads for the item's revision, which are sought in the document. */
static enum status
bulk_get_write_named(struct bulk_get *b, struct item *item, const struct wanted *w)
{
	unsigned flags = b->flags & COUCH_DOC_LATEST ? 0 : REV_DESCENT_ITSELF;
	struct couch_wanted found;

	if (couch_opts_need_ancestors(&w->opts))
		flags |= REV_DESCENT_WHOLE;
	TRY(couch_heads_wanted(b->r, b->snapshot.tx, w->id, &w->rev, 1, flags, &found));
	for (size_t i = 0; i < found.heads_count; i++)
		TRY(bulk_get_write_head(b, item, w, found.heads[i]));
	if (found.heads_count == 0)
		bulk_get_write_error(b, item, w, "not_found", "missing");
	return STATUS_OK;
}

/*
 * An item whose document the window wants several times. STATUS_NOT_FOUND if the snapshot has been
 * renewed since the revisions were looked up, and a head is none any more.
 */
static enum status
bulk_get_write_of_group(struct bulk_get *b, struct item *item, const struct wanted *w)
{
	const struct rev_descent *d = w->group->descent;
	struct rev_branch branch;
	enum status status;

	if (d) {
		uint32_t link = rev_descent_first(d, w->rev);

		if (link == 0)
			bulk_get_write_error(b, item, w, "not_found", "missing");
		for (; link; link = d->links[link - 1].next) {
			struct arena_mark mark = arena_mark(b->r->arena);

			/* Links count from 1; 0 ends a list. */
			assert(link <= d->links_count);
			TRY(bulk_get_write_head(b, item, w, &d->heads[d->links[link - 1].head]));
			TRY(step_count(HEAD_STEPS));
			/* Holes refer to attachments in the arena until the item is sent. */
			if (!couch_holes_any(&item->holes))
				arena_reset(b->r->arena, mark);
		}
		return STATUS_OK;
	}
	status = rev_branch_read(b->snapshot.tx, b->r->db, w->id, w->rev, b->r->arena, &branch);
	if (status == STATUS_OK)
		return bulk_get_write_head(b, item, w, &branch);
	if (status == STATUS_NOT_FOUND)
		bulk_get_write_error(b, item, w, "not_found", "missing");
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
bulk_get_write_heads(struct bulk_get *b, struct item *item, const struct wanted *w)
{
	const struct wanted_group *group = w->group;
	enum status status;

	if (!w->has_rev)
		return bulk_get_write_all(b, item, w);
	/* With too many heads for all revisions together, each item finds its own. */
	if (!group || ((b->flags & COUCH_DOC_LATEST) && !group->descent))
		return bulk_get_write_named(b, item, w);
	status = bulk_get_write_of_group(b, item, w);
	if (status != STATUS_NOT_FOUND)
		return status;
	bulk_get_clear_item(item);
	return bulk_get_write_named(b, item, w);
}

/* Reads atts_since: the client wants the attachments that are newer than these revisions. */
static enum status
bulk_get_read_since(struct bulk_get *b, const struct json_value *since, struct wanted *w,
		    struct couch_fail *fail)
{
	if (since->kind != JSON_ARRAY_BEGIN)
		return couch_fail_set(fail, COUCH_ERROR_BAD_REQUEST,
				      "att_since value must be array of revs.");
	TRY(couch_revs_read(b->r, since->text, &w->opts.since, &w->opts.since_count, fail));
	w->opts.has_since = w->opts.since_count > 0;
	if (w->opts.has_since)
		w->opts.flags |= COUCH_DOC_ATTS;
	return STATUS_OK;
}

static enum status
bulk_get_read_wanted(struct bulk_get *b, const struct json_member *members, size_t count,
		     struct wanted *w, struct couch_fail *fail)
{
	const struct json_value *id = json_value_find(members, count, "id");
	const struct json_value *rev = json_value_find(members, count, "rev");
	const struct json_value *since = json_value_find(members, count, "atts_since");

	if (!id)
		return couch_fail_set(fail, COUCH_ERROR_BAD_REQUEST, "document id missed");
	w->id_json = id->text;
	if (id->kind != JSON_STRING)
		return couch_fail_set(fail, COUCH_ERROR_ILLEGAL_DOCID,
				      "Document id must be a string");
	w->id = id->string;
	TRY(couch_docid_check(w->id, fail));
	if (rev) {
		w->has_rev = true;
		w->rev_json = rev->text;
		if (rev->kind != JSON_STRING)
			return couch_fail_set(fail, COUCH_ERROR_BAD_REQUEST, "Invalid rev format");
		TRY(couch_rev_parse(rev->string, b->r->arena, &w->rev, fail));
	}
	return since ? bulk_get_read_since(b, since, w, fail) : STATUS_OK;
}

/* Reads what one item asks for. Where it cannot be had, `w->fail` says why. */
static enum status
bulk_get_read_item(struct bulk_get *b, struct str text, struct wanted *w)
{
	const struct json_value json = { .kind = *text.ptr == '{' ? JSON_OBJECT_BEGIN : JSON_NULL,
					 .text = text };
	struct couch_fail fail = { .error = COUCH_ERROR_NONE };
	struct couch_req *r = b->r;
	struct json_member *members;
	enum status status;
	size_t count = 0;

	*w = (struct wanted){ .id_json = STR("null"), .rev_json = STR("null") };
	if (json.kind == JSON_OBJECT_BEGIN)
		TRY(json_value_members(&json, r->arena, &members, &count, &r->fail.err));
	if (count == 0)
		status = couch_fail_set(&fail, COUCH_ERROR_BAD_REQUEST,
					"document must be a JSON object");
	else
		status = bulk_get_read_wanted(b, members, count, w, &fail);
	if (status == STATUS_OK) {
		if (!w->has_rev)
			w->rev_json = STR("\"undefined\"");
		return STATUS_OK;
	}
	if (status == STATUS_LIMIT || status == STATUS_NOMEM || status == STATUS_STEPS ||
	    status == STATUS_CANCELLED)
		return status;
	w->fail = arena_alloc(r->arena, sizeof(*w->fail));
	if (!w->fail)
		return STATUS_LIMIT;
	*w->fail = fail;
	return STATUS_OK;
}

/* Writes the content of "docs" for one item, as the snapshot has it. */
static enum status
bulk_get_write_docs(struct bulk_get *b, struct wanted *w, struct item *item)
{
	struct couch_fail unfit = { .error = COUCH_ERROR_NONE };
	const struct couch_fail *fail = w->fail;

	w->opts.flags |= b->flags & COUCH_DOC_OF_A_HEAD;
	w->opts.revs_limit = rev_db_revs_limit(b->r->db);
	w->opts.holes = &item->holes;
	w->opts.check_tx = b->snapshot.tx;
	w->opts.check_req = b->r;
	if (!w->fail && couch_edit_check_id(b->r, w->id, &unfit) != STATUS_OK) {
		w->rev_json = STR("null");
		fail = &unfit;
	}
	if (!fail)
		return bulk_get_write_heads(b, item, w);
	bulk_get_write_error(b, item, w, couch_fail_answer(fail->err.status, fail).name,
			     fail->err.text);
	return STATUS_OK;
}

static enum status
bulk_get_send_item(struct bulk_get *b, const struct wanted *w, const struct item *item, bool first)
{
	struct buf *out = &b->stream.out;

	TRY(buf_status(&item->text));
	if (!b->boundary.ptr) {
		buf_append_cstr(out, first ? "{\"id\":" : ",{\"id\":");
		buf_append_str(out, w->id_json);
		buf_append_cstr(out, ",\"docs\":[");
	}
	TRY(couch_holes_append(&b->stream.holes, &item->holes, out->len));
	buf_append_buf(out, &item->text);
	if (!b->boundary.ptr)
		buf_append_cstr(out, "]}");
	return couch_stream_push(&b->stream, false);
}

struct item_call {
	struct bulk_get *b;
	struct wanted *wanted;
	struct item item;
};

/* One attempt at an item. First it drops what the attempt before wrote. */
static enum status
bulk_get_item_attempt(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct item_call *c = arg;

	(void)r;
	(void)tx; /* it is the snapshot's */
	bulk_get_clear_item(&c->item);
	return bulk_get_write_docs(c->b, c->wanted, &c->item);
}

static enum status
bulk_get_write_item(struct bulk_get *b, struct wanted *wanted, bool first)
{
	struct couch_req *r = b->r;
	struct arena_mark mark = arena_mark(r->arena);
	struct item_call c = {
		.b = b,
		.wanted = wanted,
		.item = { .text = couch_buf(r, COUCH_ROW_BYTES), .holes = COUCH_HOLES_INIT(r) },
	};
	enum status status = couch_snapshot_run(&b->snapshot, bulk_get_item_attempt, &c);

	if (status == STATUS_OK)
		status = step_count_bytes(c.item.text.len);
	if (status == STATUS_OK)
		status = bulk_get_send_item(b, wanted, &c.item, first);
	couch_holes_release(&c.item.holes);
	buf_release(&c.item.text);
	arena_reset(r->arena, mark);
	return status;
}

/* The client does not read: the next item is looked up in a new snapshot. */
static void
bulk_get_let_go(void *arg)
{
	struct bulk_get *b = arg;

	couch_snapshot_rest(&b->snapshot);
}

/* ---- A window ---- */

static enum status
bulk_get_read_window(struct bulk_get *b, struct json_reader *reader, struct window *window,
		     bool *ret_last)
{
	size_t cap = 0;

	*window = (struct window){ 0 };
	*ret_last = false;
	while (window->count < BULK_GET_WINDOW) {
		enum json_token token;
		struct str text;

		TRY(json_next(reader, &token));
		*ret_last = token == JSON_ARRAY_END;
		if (*ret_last)
			return STATUS_OK;
		TRY(arena_room(b->r->arena, &window->items, window->count, &cap,
			       sizeof(*window->items)));
		TRY(json_skip(reader, token, &text));
		TRY(bulk_get_read_item(b, text, &window->items[window->count++]));
		TRY(step_count_bytes(text.len));
	}
	return STATUS_OK;
}

/* Gives each item the group of its document. */
static enum status
bulk_get_find_groups(struct bulk_get *b, struct window *window)
{
	size_t mask = hash_slots(window->count) - 1;
	struct arena *arena = b->r->arena;
	uint32_t *slots = arena_zalloc(arena, (mask + 1) * sizeof(*slots));

	window->groups = arena_zalloc(arena, window->count * sizeof(*window->groups));
	if (!slots || !window->groups)
		return STATUS_LIMIT;
	for (size_t i = 0; i < window->count; i++) {
		struct wanted *w = &window->items[i];
		size_t at;

		if (w->fail)
			continue;
		at = hash_keyed(0, w->id) & mask;
		while (slots[at] && !str_eq(window->groups[slots[at] - 1].id, w->id))
			at = (at + 1) & mask;
		if (!slots[at]) {
			window->groups[window->groups_count].id = w->id;
			slots[at] = (uint32_t)++window->groups_count;
		}
		w->group = &window->groups[slots[at] - 1];
		w->group->items++;
		w->group->revs_most += w->has_rev;
		TRY(step_count(1));
	}
	return STATUS_OK;
}

/*
 * Collects the revisions of each document that several items name. Most documents are named once:
 * their items need no group.
 */
static enum status
bulk_get_group_items(struct bulk_get *b, struct window *window)
{
	TRY(bulk_get_find_groups(b, window));
	for (size_t i = 0; i < window->count; i++) {
		struct wanted *w = &window->items[i];
		struct wanted_group *group = w->group;

		if (group && group->items == 1)
			w->group = NULL;
		if (!w->group || !w->has_rev)
			continue;
		if (!group->revs)
			group->revs = arena_alloc(b->r->arena,
						  group->revs_most * sizeof(*group->revs));
		if (!group->revs)
			return STATUS_LIMIT;
		group->revs[group->revs_count++] = w->rev;
	}
	return STATUS_OK;
}

/* Finds the heads for all revisions of one document that the window names. */
static enum status
bulk_get_descent_attempt(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct wanted_group *group = arg;
	struct rev_descent *d = arena_alloc(r->arena, sizeof(*d));

	if (!d)
		return STATUS_LIMIT;
	step_unit();
	TRY(rev_descent_read(tx, r->db, group->id, group->revs, group->revs_count, 0, r->arena, d));
	group->descent = d->too_many ? NULL : d;
	return STATUS_OK;
}

static enum status
bulk_get_write_window(struct bulk_get *b, struct window *window, bool first)
{
	TRY(bulk_get_group_items(b, window));
	for (size_t i = 0; i < window->groups_count && (b->flags & COUCH_DOC_LATEST); i++)
		if (window->groups[i].revs)
			TRY(couch_snapshot_run(&b->snapshot, bulk_get_descent_attempt,
					       &window->groups[i]));
	for (size_t i = 0; i < window->count; i++) {
		/* The view may have been let go of, before the item or as it is sent. */
		uint64_t reads = b->snapshot.tx ? kv_reads_mark(b->snapshot.tx) : 0;

		step_unit();
		TRY(bulk_get_write_item(b, &window->items[i], first && i == 0));
		if (b->snapshot.tx)
			kv_reads_forget(b->snapshot.tx, reads);
	}
	return STATUS_OK;
}

static enum status
bulk_get_write_windows(struct bulk_get *b, struct json_reader *reader, bool *ret_any)
{
	struct couch_req *r = b->r;
	enum json_token token;
	bool last = false;

	*ret_any = false;
	TRY(json_next(reader, &token)); /* the beginning of the list */
	while (!last) {
		struct arena_mark mark = arena_mark(r->arena);
		struct window window;

		TRY(bulk_get_read_window(b, reader, &window, &last));
		if (window.count)
			TRY(bulk_get_write_window(b, &window, !*ret_any));
		*ret_any = *ret_any || window.count;
		arena_reset(r->arena, mark);
	}
	return STATUS_OK;
}

static enum status
bulk_get_write_items(struct bulk_get *b, struct str docs)
{
	struct json_reader AUTO(json_reader_release) reader;
	struct buf *out = &b->stream.out;
	bool any;

	json_reader_init(&reader, docs, &b->r->fail.err);
	reader.scratch.part = http_memory(b->r->x);
	TRY(http_ask_to_last(b->r->x, 0));
	TRY(couch_snapshot_begin(&b->snapshot, b->r));
	if (!b->boundary.ptr)
		buf_append_cstr(out, "{\"results\":[");
	TRY(bulk_get_write_windows(b, &reader, &any));
	if (!b->boundary.ptr) {
		buf_append_cstr(out, "]}\n");
	} else if (any) {
		buf_append_cstr(out, "\r\n--");
		buf_append_str(out, b->boundary);
		buf_append_cstr(out, "--\r\n");
	}
	return couch_stream_end(&b->stream);
}

/* Chooses JSON, unless the client accepts only multipart, which also has the attachments. */
static enum status
bulk_get_choose_form(struct bulk_get *b)
{
	struct couch_req *r = b->r;
	bool mixed = couch_accepts(r, "multipart/mixed", true);
	struct str type;

	if (couch_accepts(r, "application/json", true) ||
	    (!mixed && !couch_accepts(r, "multipart/related", true)))
		return STATUS_OK;
	b->flags |= COUCH_DOC_ATTS | COUCH_DOC_ATT_ENCODING | COUCH_DOC_FOLLOWS;
	b->boundary = couch_uuid_new(r->arena);
	b->inner = couch_uuid_new(r->arena);
	if (!b->boundary.ptr || !b->inner.ptr)
		return STATUS_NOMEM;
	type = arena_printf(r->arena, "multipart/%s; boundary=\"%.*s\"",
			    mixed ? "mixed" : "related", STR_ARG(b->boundary));
	b->stream.content_type = type.ptr;
	return type.ptr ? STATUS_OK : STATUS_NOMEM;
}

static enum status
bulk_get_check_query(struct couch_req *r)
{
	static const char *const refused[] = { "open_revs", "new_edits", "w", "rev", "atts_since" };
	struct str value;

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		if (couch_param(r, refused[i], &value))
			return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
					      "\"%s\" query parameter is not acceptable",
					      refused[i]);
	}
	return STATUS_OK;
}

enum status
couch_bulk_get(struct couch_req *r)
{
	struct bulk_get b = { .r = r, .flags = couch_doc_flags(r) };
	struct json_member *members;
	const struct json_value *docs;
	enum status status;
	size_t count;

	TRY(couch_db_require_json(r));
	TRY(couch_db_precheck(r));
	TRY(couch_read_object(r, r->settings->body_bytes, &members, &count));
	docs = json_value_find(members, count, "docs");
	if (!docs || docs->kind != JSON_ARRAY_BEGIN)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "Missing JSON list of 'docs'.");
	TRY(bulk_get_check_query(r));

	couch_stream_init(&b.stream, r);
	(void)http_on_wait(r->x, (struct net_wait_hook){ bulk_get_let_go, &b });
	b.stream.fill = couch_att_fill;
	b.stream.fill_arg = &b.snapshot;
	status = bulk_get_choose_form(&b);
	if (status == STATUS_OK)
		status = bulk_get_write_items(&b, docs->text);
	(void)http_on_wait(r->x, (struct net_wait_hook){ 0 });
	couch_snapshot_end(&b.snapshot);
	couch_stream_release(&b.stream);
	return status;
}
