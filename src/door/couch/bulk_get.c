/* POST /{db}/_bulk_get: many documents in one answer, in the order asked for. */
#include "door/couch/couch_int.h"

struct bulk_get {
	struct couch_req *r;
	struct couch_snapshot snapshot;
	struct couch_stream stream;
	unsigned flags;
};

static void
write_error(struct buf *out, struct str id_json, struct str rev_json, const char *error,
	    const char *reason)
{
	buf_append_cstr(out, "{\"error\":{\"id\":");
	buf_append_str(out, id_json);
	buf_append_cstr(out, ",\"rev\":");
	buf_append_str(out, rev_json);
	buf_printf(out, ",\"error\":\"%s\",\"reason\":", error);
	json_write_str(out, str_from_cstr(reason));
	buf_append_cstr(out, "}}");
}

/* One of the docs asked for: an object with an id and perhaps a rev. */
struct wanted {
	const struct couch_json *id;
	const struct couch_json *rev;
	struct rev_id parsed;
};

static enum status
write_leaves(struct bulk_get *b, const struct wanted *w, struct buf *out)
{
	struct couch_req *r = b->r;
	struct rev_tree tree = { 0 };
	const struct rev_branch *branch = NULL;
	unsigned flags = b->flags & COUCH_DOC_REVS;
	enum status status = rev_tree_read(b->snapshot.tx, r->db, w->id->string, r->arena, &tree);

	if (status != STATUS_OK && status != STATUS_NOT_FOUND)
		return status;
	if (status == STATUS_NOT_FOUND)
		tree.count = 0;
	if (!w->rev && tree.count) {
		for (size_t i = 0; i < tree.count; i++) {
			buf_append_cstr(out, i ? ",{\"ok\":" : "{\"ok\":");
			TRY(couch_leaf_write(r, b->snapshot.tx, w->id->string, &tree,
					     &tree.branches[i], flags, out));
			buf_append_byte(out, '}');
		}
		return STATUS_OK;
	}
	if (w->rev)
		branch = couch_leaf_find(&tree, w->parsed, b->flags & COUCH_DOC_LATEST);
	if (!branch) {
		write_error(out, w->id->text, w->rev ? w->rev->text : STR("\"undefined\""),
			    "not_found", "missing");
		return STATUS_OK;
	}
	buf_append_cstr(out, "{\"ok\":");
	TRY(couch_leaf_write(r, b->snapshot.tx, w->id->string, &tree, branch, flags, out));
	buf_append_byte(out, '}');
	return STATUS_OK;
}

/* The content of "docs" for one item, in the snapshot as it is now. */
static enum status
write_docs(struct bulk_get *b, const struct couch_json *item, struct str *ret_id, struct buf *out)
{
	struct couch_req *r = b->r;
	struct couch_fail fail = { 0 };
	struct couch_member *members;
	struct wanted w;
	size_t count = 0;

	*ret_id = STR("null");
	if (item->kind == JSON_OBJECT_BEGIN)
		TRY(couch_json_members(item, r->arena, &members, &count, &r->fail.err));
	if (count == 0) {
		write_error(out, *ret_id, STR("null"), "bad_request",
			    "document must be a JSON object");
		return STATUS_OK;
	}
	w.id = couch_json_find(members, count, "id");
	w.rev = couch_json_find(members, count, "rev");
	if (!w.id) {
		write_error(out, *ret_id, STR("null"), "bad_request", "document id missed");
		return STATUS_OK;
	}
	*ret_id = w.id->text;
	if (w.id->kind != JSON_STRING) {
		write_error(out, *ret_id, STR("null"), "illegal_docid",
			    "Document id must be a string");
		return STATUS_OK;
	}
	if (couch_docid_check(w.id->string, &fail) != STATUS_OK) {
		write_error(out, *ret_id, STR("null"), "illegal_docid", fail.err.text);
		return STATUS_OK;
	}
	if (w.rev && (w.rev->kind != JSON_STRING ||
		      couch_rev_parse(w.rev->string, r->arena, &w.parsed, &fail) != STATUS_OK)) {
		write_error(out, *ret_id, w.rev->text, "bad_request", "Invalid rev format");
		return STATUS_OK;
	}
	return write_leaves(b, &w, out);
}

static enum status
write_item(struct bulk_get *b, const struct couch_json *item, bool first)
{
	struct couch_req *r = b->r;
	struct arena_mark mark = arena_mark(r->arena);
	struct buf AUTO(buf_release) docs = BUF_INIT(COUCH_ROW_BYTES);
	struct buf *out = &b->stream.out;
	struct str id;

	for (;;) {
		enum status status;

		buf_clear(&docs);
		status = write_docs(b, item, &id, &docs);
		if (status == STATUS_OK)
			break;
		TRY(couch_snapshot_renew(&b->snapshot, status));
		arena_reset(r->arena, mark);
	}
	b->snapshot.failures = 0;
	if (!first)
		buf_append_byte(out, ',');
	buf_append_cstr(out, "{\"id\":");
	buf_append_str(out, id);
	buf_append_cstr(out, ",\"docs\":[");
	TRY(buf_status(&docs));
	buf_append_str(out, buf_str(&docs));
	buf_append_cstr(out, "]}");
	arena_reset(r->arena, mark);
	return couch_stream_push(&b->stream, false);
}

static enum status
write_items(struct bulk_get *b, const struct couch_json *items, size_t count)
{
	TRY(couch_snapshot_begin(&b->snapshot, b->r));
	buf_append_cstr(&b->stream.out, "{\"results\":[");
	for (size_t i = 0; i < count; i++)
		TRY(write_item(b, &items[i], i == 0));
	buf_append_cstr(&b->stream.out, "]}\n");
	return couch_stream_end(&b->stream);
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
	struct couch_member *members;
	const struct couch_json *docs;
	struct couch_json *items;
	size_t count;
	enum status status;

	TRY(couch_require_json(r));
	TRY(couch_db_precheck(r));
	TRY(couch_read_object(r, r->couch->config.body_bytes, &members, &count));
	docs = couch_json_find(members, count, "docs");
	if (!docs || docs->kind != JSON_ARRAY_BEGIN)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "Missing JSON list of 'docs'.");
	TRY(check_query(r));
	TRY(couch_json_items(docs, r->arena, &items, &count, &r->fail.err));

	couch_stream_init(&b.stream, r);
	status = write_items(&b, items, count);
	couch_snapshot_end(&b.snapshot);
	couch_stream_release(&b.stream);
	return status;
}
