/*
 * Checks documents of _replicator before they are written, since the replicator will act on them.
 */
#include "doc/json.h"
#include "doc/json_value.h"
#include "door/couch/doc/doc_in.h"
#include "door/couch/doc/replication_doc.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/ids.h"
#include "door/couch/wire/reply.h"
#include "door/couch/wire/request.h"
#include "replicator/replicator.h"

/* The members that matter here. */
struct said {
	struct str state;
	struct str owner; /* ptr NULL: none */
};

static enum status
replication_doc_read_said(struct couch_req *r, struct str text, struct said *ret,
			  struct couch_fail *fail)
{
	struct json_value object;
	struct json_member *members;
	const struct json_value *value;
	size_t count;

	*ret = (struct said){ 0 };
	TRY(json_value_read(text, r->arena, &object, &fail->err));
	TRY(json_value_members(&object, r->arena, &members, &count, &fail->err));
	value = json_value_find(members, count, "_replication_state");
	if (value && value->kind == JSON_STRING)
		ret->state = value->string;
	value = json_value_find(members, count, "owner");
	if (value && value->kind == JSON_STRING)
		ret->owner = value->string;
	return STATUS_OK;
}

/* Copies the text and appends an owner. Of two members with one name, the last counts. */
static enum status
replication_doc_add_owner(struct couch_req *r, struct str id, struct couch_doc *doc,
			  struct couch_fail *fail)
{
	struct buf AUTO(buf_release) text = couch_buf(r, COUCH_ANSWER_BYTES);
	struct str whole = str_trim(doc->text);

	buf_append(&text, whole.ptr, whole.len - 1);
	buf_append_cstr(&text, ",\"owner\":");
	json_write_str(&text, r->user.name);
	buf_append_byte(&text, '}');
	TRY(buf_status(&text));
	whole = arena_dup(r->arena, buf_str(&text));
	return whole.ptr ? couch_doc_again(r, whole, id, doc, fail) : STATUS_LIMIT;
}

enum status
couch_replication_doc(struct couch_req *r, struct str id, struct couch_doc *doc,
		      struct couch_fail *fail)
{
	struct replicator *replicator = r->couch->config.replicator;
	struct repl_spec *spec;
	struct said said;
	struct err err = { 0 };

	if (!str_eq(r->parts[0], STR("_replicator")) || doc->deleted || couch_is_design(id) ||
	    couch_is_local(id) || !replicator)
		return STATUS_OK;
	TRY(replication_doc_read_said(r, doc->text, &said, fail));
	if (!str_eq(said.state, STR("failed"))) {
		enum status status = repl_spec_new(doc->text, r->user.name, id,
						   replicator_defaults(replicator), &spec, &err);

		if (status == STATUS_INVALID)
			return couch_fail_set(fail, COUCH_ERROR_FORBIDDEN, "%s", err.text);
		TRY(status);
		repl_spec_free(spec);
	}
	return said.owner.ptr || r->user.name.len == 0
		       ? STATUS_OK
		       : replication_doc_add_owner(r, id, doc, fail);
}
