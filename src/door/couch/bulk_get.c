/* POST /{db}/_bulk_get: many documents in one answer, in the order asked for. */
#include "door/couch/att.h"

struct bulk_get {
	struct couch_req *r;
	struct couch_snapshot snapshot;
	struct couch_stream stream;
	unsigned flags;
	struct str boundary; /* multipart; ptr NULL: JSON */
	struct str inner;    /* of documents with their attachments */
};

/* One of the docs asked for: an object with an id, and perhaps a rev and atts_since. */
struct wanted {
	struct str id_json;
	struct str rev_json;
	struct str id;
	bool has_rev;
	struct rev_id rev;
	struct couch_doc_opts opts;
};

/* What one of them comes to, before it joins the answer. */
struct item {
	struct buf text;
	struct couch_holes holes;
	bool any; /* there is something already */
};

/* ---- The forms of an answer ---- */

static void
begin_json(struct item *item, const char *opening)
{
	if (item->any)
		buf_append_byte(&item->text, ',');
	item->any = true;
	buf_append_cstr(&item->text, opening);
}

static void
write_error(struct bulk_get *b, struct item *item, const struct wanted *w, const char *error,
	    const char *reason)
{
	struct buf *out = &item->text;

	if (b->boundary.ptr) {
		buf_append_cstr(out, "\r\n--");
		buf_append_str(out, b->boundary);
		buf_append_cstr(out, "\r\nContent-Type: application/json; error=\"true\"\r\n\r\n");
	} else {
		begin_json(item, "{\"error\":");
	}
	buf_append_cstr(out, "{\"id\":");
	buf_append_str(out, w->id_json);
	buf_append_cstr(out, ",\"rev\":");
	buf_append_str(out, w->rev_json);
	buf_printf(out, ",\"error\":\"%s\",\"reason\":", error);
	json_write_str(out, str_from_cstr(reason));
	buf_append_cstr(out, b->boundary.ptr ? "}" : "}}");
}

/* A part of its own; with attachments, a multipart body in it. */
static enum status
write_part(struct bulk_get *b, struct item *item, const struct couch_doc_out *d)
{
	struct buf *out = &item->text;

	buf_append_cstr(out, "\r\n--");
	buf_append_str(out, b->boundary);
	if (!couch_atts_any_whole(d->opts, d->doc, d->branch)) {
		buf_append_cstr(out, "\r\nContent-Type: application/json\r\n\r\n");
		return couch_doc_write(d, out);
	}
	buf_append_cstr(out, "\r\nX-Doc-Id: ");
	couch_header_write(d->id, out);
	buf_append_cstr(out, "\r\nX-Rev-Id: ");
	rev_id_write(d->branch->rev, out);
	buf_append_cstr(out, "\r\nContent-Type: multipart/related; boundary=");
	buf_append_str(out, b->inner);
	buf_append_cstr(out, "\r\n\r\n");
	return couch_related_write(d, b->inner, out);
}

static enum status
write_leaf(struct bulk_get *b, struct item *item, const struct wanted *w,
	   const struct rev_tree *tree, const struct rev_branch *branch)
{
	struct rev_doc doc;
	struct couch_doc_out d = { w->id, &doc, tree, branch, &w->opts };

	TRY(couch_leaf_read(b->r, b->snapshot.tx, w->id, branch, &doc));
	if (b->boundary.ptr)
		return write_part(b, item, &d);
	begin_json(item, "{\"ok\":");
	TRY(couch_doc_write(&d, &item->text));
	buf_append_byte(&item->text, '}');
	return buf_status(&item->text);
}

/* ---- One item ---- */

static enum status
write_leaves(struct bulk_get *b, struct item *item, const struct wanted *w)
{
	struct couch_req *r = b->r;
	struct rev_tree tree = { 0 };
	struct couch_wanted found;
	enum status status = rev_tree_read(b->snapshot.tx, r->db, w->id, r->arena, &tree);

	if (status != STATUS_OK && status != STATUS_NOT_FOUND)
		return status;
	if (status == STATUS_NOT_FOUND)
		tree.count = 0;
	for (size_t i = 0; !w->has_rev && i < tree.count; i++)
		TRY(write_leaf(b, item, w, &tree, &tree.branches[i]));
	if (!w->has_rev && tree.count)
		return STATUS_OK;
	TRY(couch_leaves_wanted(&tree, &w->rev, w->has_rev, b->flags & COUCH_DOC_LATEST, r->arena,
				&found));
	for (size_t i = 0; i < found.leaves_count; i++)
		TRY(write_leaf(b, item, w, &tree, found.leaves[i]));
	if (found.leaves_count)
		return STATUS_OK;
	write_error(b, item, w, "not_found", "missing");
	return STATUS_OK;
}

/* atts_since: the attachments that came after these revisions are wanted. */
static enum status
read_since(struct bulk_get *b, const struct json_value *since, struct wanted *w,
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
read_wanted(struct bulk_get *b, const struct json_member *members, size_t count, struct wanted *w,
	    struct couch_fail *fail)
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
	return since ? read_since(b, since, w, fail) : STATUS_OK;
}

/* The content of "docs" for one item, in the snapshot as it is now. */
static enum status
write_docs(struct bulk_get *b, const struct json_value *json, struct wanted *w, struct item *item)
{
	struct couch_req *r = b->r;
	struct couch_fail fail = { 0 };
	struct json_member *members;
	size_t count = 0;

	*w = (struct wanted){ .id_json = STR("null"), .rev_json = STR("null") };
	w->opts.flags = b->flags & COUCH_DOC_OF_A_LEAF;
	w->opts.revs_limit = r->db->revs_limit;
	w->opts.holes = &item->holes;
	if (json->kind == JSON_OBJECT_BEGIN)
		TRY(json_value_members(json, r->arena, &members, &count, &r->fail.err));
	if (count == 0) {
		write_error(b, item, w, "bad_request", "document must be a JSON object");
		return STATUS_OK;
	}
	if (read_wanted(b, members, count, w, &fail) != STATUS_OK) {
		write_error(b, item, w, couch_fail_answer(fail.err.status, &fail).name,
			    fail.err.text);
		return STATUS_OK;
	}
	if (!w->has_rev)
		w->rev_json = STR("\"undefined\"");
	return write_leaves(b, item, w);
}

static enum status
send_item(struct bulk_get *b, const struct wanted *w, const struct item *item, bool first)
{
	struct buf *out = &b->stream.out;

	TRY(buf_status(&item->text));
	if (!b->boundary.ptr) {
		buf_append_cstr(out, first ? "{\"id\":" : ",{\"id\":");
		buf_append_str(out, w->id_json);
		buf_append_cstr(out, ",\"docs\":[");
	}
	TRY(couch_holes_append(&b->stream.holes, &item->holes, out->len));
	buf_append_str(out, buf_str(&item->text));
	if (!b->boundary.ptr)
		buf_append_cstr(out, "]}");
	return couch_stream_push(&b->stream, false);
}

static enum status
write_item(struct bulk_get *b, const struct json_value *json, bool first)
{
	struct couch_req *r = b->r;
	struct arena_mark mark = arena_mark(r->arena);
	struct item item = { .text = couch_buf(r, COUCH_ROW_BYTES), .holes = COUCH_HOLES_INIT };
	struct wanted w;
	enum status status;

	for (;;) {
		buf_clear(&item.text);
		couch_holes_cut(&item.holes, 0);
		item.any = false;
		status = write_docs(b, json, &w, &item);
		if (status == STATUS_OK)
			break;
		status = couch_snapshot_renew(&b->snapshot, status);
		if (status != STATUS_OK)
			break;
		arena_reset(r->arena, mark);
	}
	if (status == STATUS_OK) {
		b->snapshot.failures = 0;
		status = send_item(b, &w, &item, first);
	}
	couch_holes_release(&item.holes);
	buf_release(&item.text);
	arena_reset(r->arena, mark);
	return status;
}

static enum status
write_items(struct bulk_get *b, const struct json_value *items, size_t count)
{
	struct buf *out = &b->stream.out;

	TRY(couch_snapshot_begin(&b->snapshot, b->r));
	if (!b->boundary.ptr)
		buf_append_cstr(out, "{\"results\":[");
	for (size_t i = 0; i < count; i++)
		TRY(write_item(b, &items[i], i == 0));
	if (!b->boundary.ptr) {
		buf_append_cstr(out, "]}\n");
	} else if (count) {
		buf_append_cstr(out, "\r\n--");
		buf_append_str(out, b->boundary);
		buf_append_cstr(out, "--\r\n");
	}
	return couch_stream_end(&b->stream);
}

/* JSON, unless the client takes none but multipart; then the attachments come along. */
static enum status
choose_form(struct bulk_get *b)
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
check_query(struct couch_req *r)
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
	struct json_value *items;
	size_t count;
	enum status status;

	TRY(couch_db_require_json(r));
	TRY(couch_db_precheck(r));
	TRY(couch_read_object(r, r->settings->door.body_bytes, &members, &count));
	docs = json_value_find(members, count, "docs");
	if (!docs || docs->kind != JSON_ARRAY_BEGIN)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "Missing JSON list of 'docs'.");
	TRY(check_query(r));
	TRY(json_value_items(docs, r->arena, &items, &count, &r->fail.err));

	couch_stream_init(&b.stream, r);
	b.stream.snapshot = &b.snapshot;
	status = choose_form(&b);
	if (status == STATUS_OK)
		status = write_items(&b, items, count);
	couch_snapshot_end(&b.snapshot);
	couch_stream_release(&b.stream);
	return status;
}
