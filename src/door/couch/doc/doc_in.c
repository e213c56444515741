/* From a client's JSON to an edit. Special members are read here; doc/ takes the rest apart. */
#include "base/quote.h"
#include "base/words.h"
#include "doc/json.h"
#include "doc/json_value.h"
#include "doc/packed.h"
#include "door/couch/admin/user_doc.h"
#include "door/couch/doc/doc_in.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/ids.h"
#include "door/couch/wire/request.h"
#include "kv/kv.h"
#include "loop/step.h"
#include "model/revisioned/att_json.h"
#include "model/revisioned/body.h"
#include "model/revisioned/revision.h"

enum {
	LONGEST_PREFIX_BYTES = 9, /* of a database: a type code and eight bytes */
};

/* One of _revisions.ids: 32 characters are hexadecimal, anything else is taken as it is. */
static enum status
doc_in_parse_hash(const struct json_value *id, struct arena *arena, struct str *ret,
		  struct couch_fail *fail)
{
	enum status status;

	if (id->kind != JSON_STRING)
		return couch_fail_set(fail, COUCH_ERROR_DOC_VALIDATION, "RevId isn't a string");
	if (id->string.len > REV_HASH_LIMIT_BYTES)
		return couch_fail_set(fail, COUCH_ERROR_DOC_VALIDATION,
				      "RevId is longer than %d bytes", REV_HASH_LIMIT_BYTES);
	status = rev_hash_parse(id->string, arena, ret);
	if (status != STATUS_INVALID)
		return status;
	return couch_fail_set(fail, COUCH_ERROR_DOC_VALIDATION,
			      id->string.len == 2 * (size_t)REV_HASH_BYTES
				      ? "RevId isn't a valid hexadecimal"
				      : "RevId has a space, a quote or a control character");
}

/* Reads _revisions. A `local` document has no tree: only the first of its revisions counts. */
static enum status
doc_in_read_revisions(struct couch_req *r, const struct json_value *value, bool local,
		      struct couch_doc *ret, struct couch_fail *fail)
{
	struct json_member *members;
	const struct json_value *start;
	const struct json_value *ids;
	struct json_value *items;
	size_t count;

	TRY(json_value_members(value, r->arena, &members, &count, &fail->err));
	start = json_value_find(members, count, "start");
	ids = json_value_find(members, count, "ids");
	if (!start || !start->is_integer || !str_to_u64(start->text, &ret->start))
		return couch_fail_set(fail, COUCH_ERROR_DOC_VALIDATION,
				      "_revisions.start isn't an integer.");
	if (!ids || ids->kind != JSON_ARRAY_BEGIN)
		return couch_fail_set(fail, COUCH_ERROR_DOC_VALIDATION,
				      "_revisions.ids isn't a array.");
	TRY(json_value_items(ids, r->arena, &items, &count, &fail->err));
	if (local && count > 1)
		count = 1;
	/*
	 * CouchDB keeps and returns all ids. Here those that would lie before position 1 are
	 * dropped.
	 */
	if (count > ret->start && ret->start && !local)
		count = (size_t)ret->start;
	ret->history = arena_alloc(r->arena, (count ? count : 1) * sizeof(*ret->history));
	if (!ret->history)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++)
		TRY(doc_in_parse_hash(&items[i], r->arena, &ret->history[i], fail));
	TRY(step_count((uint32_t)(2 * count)));
	ret->history_count = count;
	if (count)
		ret->rev = (struct rev_id){ ret->start, ret->history[0] };
	return STATUS_OK;
}

static enum status
doc_in_read_rev(struct couch_req *r, const struct json_value *value, struct couch_doc *ret,
		struct couch_fail *fail)
{
	if (value->kind != JSON_STRING)
		return couch_fail_set(fail, COUCH_ERROR_BAD_REQUEST, "Invalid rev format");
	TRY(couch_rev_parse(value->string, r->arena, &ret->rev, fail));
	ret->history = arena_alloc(r->arena, sizeof(*ret->history));
	if (!ret->history)
		return STATUS_LIMIT;
	ret->start = ret->rev.pos;
	ret->history[0] = ret->rev.hash;
	ret->history_count = 1;
	return STATUS_OK;
}

static enum status
doc_in_read_special(struct couch_req *r, const struct doc_special *special, bool local,
		    bool *revisions_seen, struct couch_doc *ret, struct couch_fail *fail)
{
	static const char *const ignored[] = {
		"_revs_info",
		"_local_seq",
		"_conflicts",
		"_deleted_conflicts",
	};
	struct json_value value;

	TRY(json_value_read(special->text, r->arena, &value, &fail->err));
	if (str_eq(special->name, STR("_id"))) {
		if (value.kind != JSON_STRING)
			return couch_fail_set(fail, COUCH_ERROR_ILLEGAL_DOCID,
					      "Document id must be a string");
		ret->id = value.string;
		return couch_docid_check(ret->id, fail);
	}
	if (str_eq(special->name, STR("_rev")))
		return *revisions_seen ? STATUS_OK : doc_in_read_rev(r, &value, ret, fail);
	if (str_eq(special->name, STR("_revisions")) && value.kind == JSON_OBJECT_BEGIN) {
		*revisions_seen = true;
		return doc_in_read_revisions(r, &value, local, ret, fail);
	}
	if (str_eq(special->name, STR("_deleted")) &&
	    (value.kind == JSON_TRUE || value.kind == JSON_FALSE)) {
		ret->deleted = value.kind == JSON_TRUE;
		return STATUS_OK;
	}
	/* Local documents have no attachments. CouchDB accepts such a document and drops them. */
	if (str_eq(special->name, STR("_attachments")) && value.kind == JSON_OBJECT_BEGIN && local)
		return STATUS_OK;
	if (str_eq(special->name, STR("_attachments")) && value.kind == JSON_OBJECT_BEGIN)
		return rev_atts_parse(value.text, r->arena, &ret->atts, &ret->atts_count,
				      &fail->err);
	if (WORDS_HAVE(ignored, special->name))
		return STATUS_OK;
	return couch_fail_set(fail, COUCH_ERROR_DOC_VALIDATION, "Bad special document member: %s",
			      QUOTE_SHOW(special->name));
}

/* True for a local document. The id may be in the URL or in the document. */
static bool
doc_in_is_local(const struct doc *doc, struct str id)
{
	const struct doc_special *inside = doc_find_special(doc, STR("_id"));

	if (id.ptr)
		return couch_is_local(id);
	return inside && str_starts_with(inside->text, STR("\"_local/"));
}

/* The most bytes that the prefix of this document's keys takes in any database. */
static size_t
doc_in_prefix_bound(struct str id)
{
	static const char longest[LONGEST_PREFIX_BYTES];
	const struct catalog_db db = { .prefix = { longest, sizeof(longest) } };

	return couch_is_local(id) ? rev_local_prefix_bytes(&db, id) : rev_doc_prefix_bytes(&db, id);
}

/*
 * Checks the lengths of the paths again once the id is known, if that was in the document itself.
 */
static enum status
doc_in_check_paths(struct couch_req *r, struct str text, const struct doc_limits *limits,
		   struct couch_doc *ret, struct couch_fail *fail)
{
	size_t prefix = doc_in_prefix_bound(ret->id);

	if (prefix + ret->doc.path_bytes <= limits->path_bytes)
		return STATUS_OK;
	return doc_explode_text(text, r->arena, limits, prefix, &ret->doc, &fail->err);
}

static enum status
doc_in_has_password(const struct doc *doc, bool *ret)
{
	const struct str path = STR("\x02"
				    "password\0");
	struct str name = STR("password");
	const struct doc_pointer pointer = { &name, 1 };
	struct str value;
	enum status status;

	*ret = false;
	if (doc->packed.ptr) {
		status = doc_packed_find(doc->packed, &pointer, &value);
		*ret = status == STATUS_OK;
		return status == STATUS_NOT_FOUND ? STATUS_OK : status;
	}
	for (size_t i = 0; i < doc->count; i++)
		*ret = *ret || str_starts_with(doc->leaves[i].key, path);
	return STATUS_OK;
}

enum status
couch_doc_check_password(struct couch_req *r, const struct doc *doc, struct couch_fail *fail)
{
	bool found;

	if (!str_eq(r->parts[0], STR("_users")))
		return STATUS_OK;
	TRY(doc_in_has_password(doc, &found));
	if (found)
		return couch_fail_set(fail, COUCH_ERROR_NOT_IMPLEMENTED,
				      "A password is set by writing the whole document.");
	return STATUS_OK;
}

enum status
couch_doc_hash_password(struct couch_req *r, struct str id, struct couch_doc *doc,
			struct couch_fail *fail)
{
	struct str text;

	if (!couch_in_users_db(r) || doc->deleted || !couch_user_of_id(id).ptr)
		return STATUS_OK;
	TRY(couch_user_doc_text(r, id, doc->text, &text, fail));
	return text.ptr ? couch_doc_again(r, text, id, doc, fail) : STATUS_OK;
}

static struct doc_limits
doc_in_limits(struct couch_req *r)
{
	return (struct doc_limits){
		.doc_bytes = r->settings->doc_bytes,
		.path_bytes = KV_LIMIT_KEY_BYTES,
		.leaves_bytes = DOC_LEAVES_BYTES,
		.packed_bytes = rev_scheme_packed_bytes(
			rev_cache_scheme(r->loop->cache, r->parts[0], couch_scheme(r))),
	};
}

enum status
couch_doc_again(struct couch_req *r, struct str text, struct str id, struct couch_doc *doc,
		struct couch_fail *fail)
{
	const struct doc_limits limits = doc_in_limits(r);

	doc->text = text;
	return doc_explode_text(text, r->arena, &limits, doc_in_prefix_bound(id), &doc->doc,
				&fail->err);
}

enum status
couch_doc_parse(struct couch_req *r, struct json_reader *reader, struct str id,
		struct couch_doc *ret, struct couch_fail *fail)
{
	const struct doc_limits limits = doc_in_limits(r);
	const char *begin = reader->token_begin;
	bool revisions_seen = false;
	bool local;

	*ret = (struct couch_doc){ .id = { NULL, 0 } };
	TRY(doc_explode(reader, r->loop->scratch, r->arena, &limits,
			id.ptr ? doc_in_prefix_bound(id) : 0, &ret->doc, &fail->err));
	ret->text = str_of(begin, (size_t)(reader->at - begin));
	local = doc_in_is_local(&ret->doc, id);
	for (size_t i = 0; i < ret->doc.specials_count; i++)
		TRY(doc_in_read_special(r, &ret->doc.specials[i], local, &revisions_seen, ret,
					fail));
	if (!id.ptr && ret->id.ptr)
		TRY(doc_in_check_paths(r, ret->text, &limits, ret, fail));
	return STATUS_OK;
}

enum status
couch_doc_parse_text(struct couch_req *r, struct str text, struct str id, struct couch_doc *ret)
{
	struct json_reader AUTO(json_reader_release) reader;
	enum json_token token;

	json_reader_init(&reader, text, &r->fail.err);
	reader.scratch.part = http_memory(r->x);
	TRY(json_next(&reader, &token));
	if (token != JSON_OBJECT_BEGIN)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "Document must be a JSON object");
	TRY(couch_doc_parse(r, &reader, id, ret, &r->fail));
	return json_next(&reader, &token);
}

struct rev_edit
couch_doc_edit(const struct couch_doc *doc, struct str id, bool new_edits)
{
	return (struct rev_edit){
		.kind = new_edits ? REV_EDIT_INTERACTIVE : REV_EDIT_REPLICATED,
		.id = id,
		.deleted = doc->deleted,
		.doc = doc->doc,
		.parent = doc->rev,
		.start = doc->start,
		.history = doc->history,
		.history_count = doc->history_count,
		.atts = doc->att_edits,
		.atts_count = doc->att_edits ? doc->atts_count : 0,
		.text = doc->stored,
	};
}

/* The new revision keeps the body of a stored one, whose text lies in chunks: both refer to it. */
static enum status
doc_in_share_text(struct couch_req *r, const struct rev_doc *from, struct couch_doc *doc)
{
	struct rev_text *shared = arena_alloc(r->arena, sizeof(*shared));

	if (!shared)
		return STATUS_LIMIT;
	*shared = (struct rev_text){ .source = REV_TEXT_SHARED, .bytes = from->text_bytes };
	memcpy(shared->id, from->text_id, sizeof(shared->id));
	doc->stored = shared;
	return STATUS_OK;
}

enum status
couch_doc_reparse(struct couch_req *r, const struct rev_doc *doc, struct str id, struct buf *text,
		  struct couch_doc *ret)
{
	buf_clear(text);
	buf_append_byte(text, '{');
	TRY(rev_body_write(doc, false, text));
	TRY(couch_doc_parse_text(r, buf_str(text), id, ret));
	return doc->text_bytes ? doc_in_share_text(r, doc, ret) : STATUS_OK;
}

enum status
couch_revs_read(struct couch_req *r, struct str text, struct rev_id **ret, size_t *ret_count,
		struct couch_fail *fail)
{
	struct json_value value;
	struct json_value *items;

	TRY(json_value_read(text, r->arena, &value, &fail->err));
	if (value.kind != JSON_ARRAY_BEGIN)
		return couch_fail_set(fail, COUCH_ERROR_BAD_REQUEST, "Invalid list of revisions");
	TRY(json_value_items(&value, r->arena, &items, ret_count, &fail->err));
	*ret = arena_alloc(r->arena, (*ret_count + 1) * sizeof(**ret));
	if (!*ret)
		return STATUS_LIMIT;
	for (size_t i = 0; i < *ret_count; i++) {
		if (items[i].kind != JSON_STRING)
			return couch_fail_set(fail, COUCH_ERROR_BAD_REQUEST, "Invalid rev format");
		TRY(couch_rev_parse(items[i].string, r->arena, &(*ret)[i], fail));
	}
	return STATUS_OK;
}
