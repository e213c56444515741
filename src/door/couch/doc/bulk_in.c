/* The request of _bulk_docs, read and checked. */
#include "doc/json.h"
#include "doc/json_value.h"
#include "door/couch/doc/att_in.h"
#include "door/couch/doc/bulk_in.h"
#include "door/couch/doc/design.h"
#include "door/couch/doc/doc_in.h"
#include "door/couch/doc/replication_doc.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/ids.h"
#include "door/couch/wire/stream.h"
#include "door/couch/wire/uuid.h"
#include "loop/step.h"
#include "loop/wait.h"

enum status
couch_bulk_refuse(struct couch_req *r, struct couch_bulk_entry *e, enum couch_error error,
		  const char *reason)
{
	e->fail = arena_zalloc(r->arena, sizeof(*e->fail));
	if (!e->fail)
		return STATUS_LIMIT;
	e->status = couch_fail_set(e->fail, error, "%s", reason);
	return STATUS_OK;
}

enum status
couch_bulk_refuse_stub(struct couch_bulk *b, struct couch_bulk_entry *e, struct str name)
{
	if (!b->atomic)
		return couch_missing_stub(e->id, name, &b->r->fail);
	e->fail = arena_zalloc(b->r->arena, sizeof(*e->fail));
	if (!e->fail)
		return STATUS_LIMIT;
	e->status = couch_missing_stub(e->id, name, e->fail);
	return STATUS_OK;
}

static enum status
bulk_check_entry(struct couch_bulk *b, struct couch_bulk_entry *e)
{
	struct couch_fail fail = { .error = COUCH_ERROR_NONE };
	struct couch_req *r = b->r;
	enum status status = STATUS_OK;

	if (!b->new_edits && e->doc.rev.pos == 0 && !couch_is_local(e->id)) {
		e->refused = true;
		return couch_bulk_refuse(r, e, COUCH_ERROR_BAD_REQUEST, "Invalid rev format");
	}
	status = couch_doc_hash_password(r, e->id, &e->doc, &fail);
	if (status == STATUS_OK)
		status = couch_replication_doc(r, e->id, &e->doc, b->new_edits, &fail);
	if (status == STATUS_OK && !e->doc.deleted)
		status = couch_design_validate(r, e->id, &e->doc.doc, &fail);
	if (status != STATUS_OK && fail.error == COUCH_ERROR_NONE) {
		r->fail = fail;
		return status;
	}
	if (status != STATUS_OK) {
		e->refused = true;
		return couch_bulk_refuse(r, e, fail.error, fail.err.text);
	}
	b->any_atts = b->any_atts || e->doc.atts_count;
	return couch_atts_load(&b->uploads, &e->doc, NULL);
}

/* Reads id and revision of a document that is refused, as far as they can be read, for its row. */
static enum status
bulk_name_entry(struct couch_bulk *b, struct couch_bulk_entry *e, struct str text)
{
	struct couch_req *r = b->r;
	struct couch_fail unread = { .error = COUCH_ERROR_NONE };
	struct json_member *members;
	const struct json_value *value;
	size_t count;

	TRY(json_read_members(text, r->arena, &members, &count, &unread.err));
	value = json_value_find(members, count, "_id");
	e->id = value && value->kind == JSON_STRING ? value->string : STR("");
	value = json_value_find(members, count, "_rev");
	if (value && value->kind == JSON_STRING &&
	    couch_rev_parse(value->string, r->arena, &e->doc.rev, &unread) != STATUS_OK)
		e->doc.rev = (struct rev_id){ 0 };
	return STATUS_OK;
}

/*
 * Reads one document. If it is refused, the entry keeps the reason and reading goes on behind it,
 * unless it is no JSON. Whether the whole request fails depends on new_edits, which may come later
 * in the body.
 */
static enum status
bulk_read_doc(struct couch_bulk *b, struct json_reader *reader, struct couch_bulk_entry *e)
{
	const struct json_reader begin = *reader;
	struct couch_req *r = b->r;
	struct couch_fail fail = { .error = COUCH_ERROR_NONE };
	enum status status;
	struct str text;

	status = couch_doc_parse(r, reader, (struct str){ NULL, 0 }, &e->doc, &fail);
	if (status == STATUS_OK) {
		e->id = e->doc.id;
		return STATUS_OK;
	}
	if (status == STATUS_NOMEM || status == STATUS_LIMIT || status == STATUS_CANCELLED ||
	    status == STATUS_STEPS) {
		r->fail = fail;
		return status;
	}
	json_rewind(reader, &begin);
	TRY(json_skip(reader, JSON_OBJECT_BEGIN, &text));
	e->fail = arena_alloc(r->arena, sizeof(*e->fail));
	if (!e->fail)
		return STATUS_LIMIT;
	*e->fail = fail;
	e->status = status;
	e->refused = true;
	e->doc = (struct couch_doc){ .id = { NULL, 0 } };
	return bulk_name_entry(b, e, text);
}

static enum status
bulk_read_docs(struct couch_bulk *b, struct json_reader *reader)
{
	struct couch_req *r = b->r;
	const char *pause = reader->at;
	enum json_token token;
	size_t cap = 0;

	TRY(json_next(reader, &token));
	if (token != JSON_ARRAY_BEGIN)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "`docs` parameter must be an array.");
	b->entries = NULL;
	b->count = 0;
	for (;;) {
		struct couch_bulk_entry *e;

		TRY(json_next(reader, &token));
		if (token == JSON_ARRAY_END)
			return STATUS_OK;
		if (token != JSON_OBJECT_BEGIN)
			return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
					      "Document must be a JSON object");
		/* A large request takes long to read, so the loop's other fibers get a turn. */
		if ((size_t)(reader->at - pause) > COUCH_PIECE_BYTES) {
			pause = reader->at;
			wait_yield();
		}
		TRY(arena_room(r->arena, &b->entries, b->count, &cap, sizeof(*b->entries)));
		step_unit();
		TRY(step_count(1));
		e = &b->entries[b->count++];
		*e = (struct couch_bulk_entry){ .status = STATUS_OK };
		TRY(bulk_read_doc(b, reader, e));
	}
}

static enum status
bulk_read_bool(struct couch_bulk *b, const struct json_value *value, const char *name, bool *ret)
{
	if (value->kind != JSON_TRUE && value->kind != JSON_FALSE)
		return couch_fail_set(&b->r->fail, COUCH_ERROR_BAD_REQUEST,
				      "`%s` parameter must be a boolean.", name);
	*ret = value->kind == JSON_TRUE;
	return STATUS_OK;
}

static enum status
bulk_read_members(struct couch_bulk *b, struct json_reader *reader, bool *ret_has_docs)
{
	struct couch_req *r = b->r;
	struct json_value value;
	enum json_token token;

	for (;;) {
		bool is_docs;
		bool is_new_edits;
		bool is_atomic;
		bool is_all_or_nothing;

		TRY(json_next(reader, &token));
		if (token == JSON_OBJECT_END)
			return json_next(reader, &token);
		is_docs = str_eq(reader->text, STR("docs"));
		is_new_edits = str_eq(reader->text, STR("new_edits"));
		is_atomic = str_eq(reader->text, STR("atomic"));
		is_all_or_nothing = str_eq(reader->text, STR("all_or_nothing"));
		if (is_docs) {
			TRY(bulk_read_docs(b, reader));
			*ret_has_docs = true;
			continue;
		}
		TRY(json_next(reader, &token));
		TRY(json_value_take(reader, token, r->arena, &value));
		if (is_new_edits)
			TRY(bulk_read_bool(b, &value, "new_edits", &b->new_edits));
		if (is_atomic)
			TRY(bulk_read_bool(b, &value, "atomic", &b->atomic));
		if (is_all_or_nothing)
			TRY(bulk_read_bool(b, &value, "all_or_nothing", &b->all_or_nothing));
	}
}

enum status
couch_bulk_read(struct couch_bulk *b, struct str body)
{
	struct json_reader AUTO(json_reader_release) reader;
	struct couch_req *r = b->r;
	enum json_token token;
	bool has_docs = false;

	json_reader_init(&reader, body, &r->fail.err);
	reader.scratch.part = http_memory(r->x);
	reader.wrapped = 2; /* {"docs": [document]} */
	TRY(json_next(&reader, &token));
	if (token != JSON_OBJECT_BEGIN)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "Request body must be a JSON object");
	TRY(bulk_read_members(b, &reader, &has_docs));
	if (!has_docs)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "POST body must include `docs` parameter.");
	return STATUS_OK;
}

enum status
couch_bulk_check(struct couch_bulk *b)
{
	struct couch_req *r = b->r;

	for (size_t i = 0; i < b->count; i++) {
		struct couch_bulk_entry *e = &b->entries[i];

		step_unit();
		TRY(step_count(1));
		/*
		 * An interactive edit that cannot be read is the client's mistake, and refuses the
		 * request. A replicated document was accepted by another server, so if it has no
		 * place here it must not keep out the others.
		 */
		if (e->refused && b->new_edits) {
			r->fail = *e->fail;
			return e->status;
		}
		if (e->refused) {
			e->rev = e->doc.rev;
			continue;
		}
		if (!b->new_edits && e->doc.history_count == 0)
			return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
					      "When `new_edits: false`, the document needs `_rev` "
					      "or `_revisions` specified");
		if (!e->id.ptr) {
			e->id = couch_docid_new(r->settings, r->arena);
			if (!e->id.ptr)
				return STATUS_LIMIT;
		}
		e->rev = e->doc.rev;
		TRY(bulk_check_entry(b, e));
	}
	return STATUS_OK;
}
