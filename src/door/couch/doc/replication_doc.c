/*
 * Checks documents of _replicator before they are written, since the replicator will act on them
 * with the rights of their owners.
 */
#include "doc/json.h"
#include "doc/json_value.h"
#include "door/couch/admin/access.h"
#include "door/couch/doc/doc_in.h"
#include "door/couch/doc/replication_doc.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/ids.h"
#include "door/couch/wire/reply.h"
#include "door/couch/wire/request.h"
#include "replicator/replicator.h"

/* The members that matter here. */
struct said {
	size_t members_count;
	bool deleted;
	struct str state;
	struct str owner; /* ptr NULL: none */
};

static enum status
replication_doc_read_said(struct arena *arena, struct str text, struct said *ret,
			  struct couch_fail *fail)
{
	struct json_member *members;
	const struct json_value *value;
	size_t count;

	*ret = (struct said){ 0 };
	TRY(json_read_members(text, arena, &members, &count, &fail->err));
	ret->members_count = count;
	value = json_value_find(members, count, "_deleted");
	ret->deleted = value && value->kind == JSON_TRUE;
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
replication_doc_add_owner(struct couch_req *r, struct str id, const struct said *said,
			  struct couch_doc *doc, struct couch_fail *fail)
{
	struct buf AUTO(buf_release) text = couch_buf(r, COUCH_ANSWER_BYTES);
	struct str whole = str_trim(doc->text);

	buf_append(&text, whole.ptr, whole.len - 1);
	buf_append_cstr(&text, said->members_count ? ",\"owner\":" : "\"owner\":");
	json_write_str(&text, r->user.name);
	buf_append_byte(&text, '}');
	TRY(buf_status(&text));
	whole = buf_dup(&text, r->arena);
	return whole.ptr ? couch_doc_again(r, whole, id, doc, fail) : STATUS_LIMIT;
}

/* Refuses a document that no replication can be made of. */
static enum status
replication_doc_check_spec(struct couch_req *r, struct str id, struct str text,
			   struct couch_fail *fail)
{
	struct replicator *replicator = r->couch->config.replicator;
	struct repl_spec *spec;
	struct err err = { 0 };
	enum status status;

	if (!replicator)
		return STATUS_OK;
	status = repl_spec_new(text, r->user.name, id, replicator_defaults(replicator), &spec,
			       &err);
	if (status == STATUS_INVALID)
		return couch_fail_set(fail, COUCH_ERROR_FORBIDDEN, "%s", err.text);
	TRY(status);
	repl_spec_free(spec);
	return STATUS_OK;
}

enum status
couch_replication_doc(struct couch_req *r, struct str id, struct couch_doc *doc, bool new_edits,
		      struct couch_fail *fail)
{
	struct said said;

	if (!couch_in_replicator_db(r) || couch_is_design(id) || couch_is_local(id))
		return STATUS_OK;
	if (!new_edits && !r->user.admin)
		return couch_fail_set(fail, COUCH_ERROR_FORBIDDEN,
				      "Only administrators can write revisions of replication "
				      "documents that were made elsewhere.");
	if (!new_edits || doc->deleted)
		return STATUS_OK;
	TRY(replication_doc_read_said(r->arena, doc->text, &said, fail));
	if (!str_eq(said.state, STR("failed")))
		TRY(replication_doc_check_spec(r, id, doc->text, fail));
	return said.owner.ptr || r->user.name.len == 0
		       ? STATUS_OK
		       : replication_doc_add_owner(r, id, &said, doc, fail);
}

enum status
couch_replication_check(const struct couch_user_writer *w, struct str doc, struct str old,
			struct couch_fail *fail)
{
	struct said now, before = { .deleted = true };
	bool others;

	if (w->user->admin)
		return STATUS_OK;
	if (w->user->name.len == 0)
		return couch_fail_set(fail, COUCH_ERROR_UNAUTHORIZED,
				      "Log in to write replication documents.");
	if (couch_starts_no_replication(w->user))
		return couch_fail_set(fail, COUCH_ERROR_FORBIDDEN, COUCH_NO_REPLICATION);
	TRY(replication_doc_read_said(w->arena, doc, &now, fail));
	if (!str_eq(old, STR("null")))
		TRY(replication_doc_read_said(w->arena, old, &before, fail));
	/*
	 * An administrator of the database may replace and delete all documents, but whoever gives
	 * one to somebody else would give a replication the rights of that person.
	 */
	others = !before.deleted && !str_eq(before.owner, w->user->name) && !w->admin;
	if (others || (!now.deleted && !str_eq(now.owner, w->user->name)))
		return couch_fail_set(fail, COUCH_ERROR_FORBIDDEN,
				      "Can't update replication documents from other users.");
	return STATUS_OK;
}
