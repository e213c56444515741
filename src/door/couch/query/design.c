#include "door/couch/query/design.h"

#include "base/quote.h"
#include "doc/packed.h"
#include "door/couch/admin/access.h"
#include "door/couch/doc/att_in.h"
#include "door/couch/doc/design.h"
#include "door/couch/doc/doc_in.h"
#include "door/couch/doc/doc_out.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/reply.h"
#include "model/revisioned/read.h"
#include "model/revisioned/write.h"

/* A design document that is being changed: its members as they are, with _id, _rev and stubs. */
struct design_text {
	bool found;
	struct rev_doc doc;
	struct json_member *members;
	size_t count;
};

static enum status
design_refuse_language(struct couch_req *r, const struct json_value *language)
{
	return couch_fail_set(&r->fail, COUCH_ERROR_INVALID_DDOC_LANG,
			      "Existing design doc has an invalid language: %s",
			      language ? QUOTE_SHOW(language->text) : "false");
}

/* Reads the document. One that is not there, or is deleted, is `found` = false. */
static enum status
design_read(struct couch_req *r, struct kv_tx *tx, struct str ddoc, struct design_text *ret)
{
	AUTO(buf_release) struct buf text = couch_buf(r, COUCH_ROW_BYTES);
	struct couch_doc_out out = { .id = ddoc, .doc = &ret->doc };
	struct json_value value;
	const struct json_value *language;
	enum status status = rev_doc_read(tx, r->db, ddoc, r->arena, &ret->doc);

	ret->found = status == STATUS_OK;
	if (status == STATUS_NOT_FOUND || status == STATUS_DELETED)
		return STATUS_OK;
	TRY(status);
	TRY(couch_doc_write(&out, &text));
	TRY(arena_copy(r->arena, buf_str(&text), &value.text));
	TRY(json_value_read(value.text, r->arena, &value, &r->fail.err));
	TRY(json_value_members(&value, r->arena, &ret->members, &ret->count, &r->fail.err));
	language = json_value_find(ret->members, ret->count, "language");
	if (!language || language->kind != JSON_STRING || !str_eq(language->string, STR("query")))
		return design_refuse_language(r, language);
	return STATUS_OK;
}

/* Writes the text as the document's next revision; `first` as of rev_write(). */
static enum status
design_write(struct couch_req *r, struct kv_tx *tx, struct str ddoc, struct str text, size_t first)
{
	struct couch_uploads uploads;
	struct couch_doc doc;
	struct rev_edit edit;
	struct rev_result result;
	enum status status = STATUS_OK;

	TRY(couch_doc_parse_text(r, text, ddoc, &doc));
	if (!doc.deleted)
		TRY(couch_design_validate(r, ddoc, &doc.doc, &r->fail));
	couch_uploads_init(&uploads, r);
	if (doc.atts_count)
		status = couch_atts_load(&uploads, &doc, NULL);
	edit = couch_doc_edit(&doc, ddoc, true);
	if (status == STATUS_OK)
		status = rev_write(tx, r->db, &edit, 1, first, r->arena, &result, &r->fail.err);
	uploads.taken = true; /* stubs alone: there is nothing to be cleared */
	couch_uploads_release(&uploads);
	TRY(status);
	return result.status;
}

/* Appends the members but `views`, and begins `views`. */
static void
design_begin_views(const struct design_text *d, struct buf *out)
{
	buf_append_byte(out, '{');
	for (size_t i = 0; i < d->count; i++) {
		if (str_eq(d->members[i].name, STR("views")))
			continue;
		json_write_str(out, d->members[i].name);
		buf_append_byte(out, ':');
		buf_append_str(out, d->members[i].value.text);
		buf_append_byte(out, ',');
	}
	buf_append_cstr(out, "\"views\":{");
}

/*
 * Appends the views but the one of this name (ptr NULL: all of them are left out), each with a
 * comma behind it. Returns how many there were and how many are left.
 */
static enum status
design_copy_views(struct couch_req *r, const struct design_text *d, struct str but, struct buf *out,
		  size_t *ret_all, size_t *ret_left)
{
	const struct json_value *v = json_value_find(d->members, d->count, "views");
	struct json_member *views = NULL;

	*ret_all = 0;
	*ret_left = 0;
	if (!v || v->kind != JSON_OBJECT_BEGIN)
		return STATUS_OK;
	TRY(json_value_members(v, r->arena, &views, ret_all, &r->fail.err));
	for (size_t i = 0; i < *ret_all; i++) {
		if (!but.ptr || str_eq(views[i].name, but))
			continue;
		json_write_str(out, views[i].name);
		buf_append_byte(out, ':');
		buf_append_str(out, views[i].value.text);
		buf_append_byte(out, ',');
		++*ret_left;
	}
	return STATUS_OK;
}

/* ---- Putting ---- */

/* CouchDB refuses an index that is to be partitioned otherwise than the others beside it. */
static enum status
design_check_partitioned(struct couch_req *r, const struct design_text *d,
			 const struct index_request *q)
{
	const struct json_value *v = json_value_find(d->members, d->count, "options");
	struct json_member *options;
	bool has = false;
	bool value = false;
	size_t count;

	if (v && v->kind == JSON_OBJECT_BEGIN) {
		TRY(json_value_members(v, r->arena, &options, &count, &r->fail.err));
		v = json_value_find(options, count, "partitioned");
		has = v && (v->kind == JSON_TRUE || v->kind == JSON_FALSE);
		value = v && v->kind == JSON_TRUE;
	}
	if (has == q->has_partitioned && (!has || value == q->index.partitioned))
		return STATUS_OK;
	return couch_fail_set(&r->fail, COUCH_ERROR_INVALID_PARTITIONED_OPTION,
			      "Requested partitioned option does not match existing value on "
			      "design document %s",
			      QUOTE_SHOW(q->index.ddoc));
}

/* True if both texts are the same document, whatever the order of members and white space. */
static enum status
design_is_same(struct couch_req *r, struct str a, struct str b, bool *ret)
{
	const struct doc_limits limits = { .doc_bytes = SIZE_MAX,
					   .path_bytes = KV_LIMIT_KEY_BYTES };
	struct doc x;
	struct doc y;

	TRY(doc_explode_text(a, r->arena, &limits, 0, &x, &r->fail.err));
	TRY(doc_explode_text(b, r->arena, &limits, 0, &y, &r->fail.err));
	*ret = x.count == y.count;
	for (size_t i = 0; i < x.count && *ret; i++)
		*ret = str_eq(x.leaves[i].key, y.leaves[i].key) &&
		       str_eq(x.leaves[i].value, y.leaves[i].value);
	return STATUS_OK;
}

static enum status
design_check_same(struct couch_req *r, const struct design_text *d, struct str text, bool *ret)
{
	AUTO(buf_release) struct buf before = couch_buf(r, COUCH_ROW_BYTES);

	buf_append_byte(&before, '{');
	TRY(rev_body_write(&d->doc, false, &before));
	TRY(buf_status(&before));
	return design_is_same(r, buf_str(&before), text, ret);
}

enum status
query_design_put(struct couch_req *r, struct kv_tx *tx, const struct index_request *q,
		 bool *ret_exists)
{
	AUTO(buf_release) struct buf text = couch_buf(r, COUCH_ROW_BYTES);
	struct design_text d = { 0 };
	size_t all;
	size_t left;

	*ret_exists = false;
	TRY(couch_design_check(r, tx, q->index.ddoc));
	TRY(design_read(r, tx, q->index.ddoc, &d));
	if (d.found) {
		TRY(design_check_partitioned(r, &d, q));
		design_begin_views(&d, &text);
	} else {
		buf_append_cstr(&text, "{\"language\":\"query\",\"views\":{");
	}
	TRY(design_copy_views(r, &d, q->index.name, &text, &all, &left));
	index_request_write_view(q, &text);
	buf_append_byte(&text, '}');
	if (!d.found && q->has_partitioned)
		buf_append_cstr(&text, q->index.partitioned
					       ? ",\"options\":{\"partitioned\":true}"
					       : ",\"options\":{\"partitioned\":false}");
	buf_append_byte(&text, '}');
	TRY(buf_status(&text));
	if (d.found)
		TRY(design_check_same(r, &d, buf_str(&text), ret_exists));
	return *ret_exists ? STATUS_OK : design_write(r, tx, q->index.ddoc, buf_str(&text), 0);
}

/* ---- Removing ---- */

/* True if the document has no member but its language, its views and what stands for itself. */
static bool
design_is_bare(const struct design_text *d)
{
	for (size_t i = 0; i < d->count; i++) {
		struct str name = d->members[i].name;

		if (!str_eq(name, STR("language")) && !str_eq(name, STR("views")) &&
		    !str_eq(name, STR("_id")) && !str_eq(name, STR("_rev")))
			return false;
	}
	return true;
}

/* Writes a tombstone in place of the document. */
static enum status
design_delete(struct couch_req *r, struct kv_tx *tx, struct str ddoc, const struct design_text *d,
	      size_t first)
{
	AUTO(buf_release) struct buf text = couch_buf(r, COUCH_ROW_BYTES);

	buf_append_cstr(&text, "{\"_deleted\":true,\"_rev\":");
	couch_rev_write(d->doc.rev, &text);
	buf_append_byte(&text, '}');
	TRY(buf_status(&text));
	return design_write(r, tx, ddoc, buf_str(&text), first);
}

enum status
query_design_remove(struct couch_req *r, struct kv_tx *tx, struct str ddoc, struct str name,
		    size_t first)
{
	AUTO(buf_release) struct buf text = couch_buf(r, COUCH_ROW_BYTES);
	struct design_text d = { 0 };
	size_t all;
	size_t left;

	TRY(couch_design_check(r, tx, ddoc));
	TRY(design_read(r, tx, ddoc, &d));
	if (!d.found)
		return STATUS_NOT_FOUND;
	design_begin_views(&d, &text);
	TRY(design_copy_views(r, &d, name, &text, &all, &left));
	if (all == left)
		return STATUS_NOT_FOUND;
	if (left == 0 && design_is_bare(&d))
		return design_delete(r, tx, ddoc, &d, first);
	/* Takes back the last comma, or the whole of `views`. */
	text.len -= left ? 1 : strlen("\"views\":{");
	if (!left && text.ptr[text.len - 1] == ',')
		text.len--;
	buf_append_cstr(&text, left ? "}}" : "}");
	TRY(buf_status(&text));
	return design_write(r, tx, ddoc, buf_str(&text), first);
}
