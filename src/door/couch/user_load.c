/* Documents of _users that a program writes into a store without a server. */
#include "doc/json_value.h"
#include "door/couch/admin/user_doc.h"
#include "door/couch/couch.h"
#include "door/couch/wire/error.h"

/* Replaces the plain password, if there is one, by its hash. */
static enum status
user_load_hash(const struct json_member *members, size_t count,
	       const struct access_settings *access, struct arena *arena, struct str *text,
	       struct couch_fail *fail)
{
	const struct json_value *password = json_value_find(members, count, "password");
	struct buf AUTO(buf_release) out = BUF_INIT_OF(COUCH_USER_DOC_BYTES, arena_part(arena));
	const struct auth_hashing how = { .client = NULL };
	struct verifier v;

	if (!password || password->kind == JSON_NULL)
		return STATUS_OK;
	if (password->kind != JSON_STRING)
		return couch_fail_set(fail, COUCH_ERROR_FORBIDDEN,
				      "The value of a password is a string.");
	TRY(couch_user_hash(password->string, access, how, &v, fail));
	couch_user_doc_write(&v, members, count, &out);
	return buf_copy(&out, arena, text);
}

static enum status
user_load_prepare(struct str id, struct str *text, const struct access_settings *access,
		  struct arena *arena, struct couch_fail *fail)
{
	const struct auth_user admin = { .admin = true };
	const struct couch_user_writer writer = { arena, &admin, true };
	const struct json_value *deleted;
	struct json_member *members;
	size_t count;

	TRY(json_read_members(*text, arena, &members, &count, &fail->err));
	deleted = json_value_find(members, count, "_deleted");
	if (couch_user_of_id(id).ptr && (!deleted || deleted->kind != JSON_TRUE))
		TRY(user_load_hash(members, count, access, arena, text, fail));
	/*
	 * The old document is not needed: only the rules for ordinary users look at it, and the
	 * rule that a name never changes holds because the id has the name.
	 */
	return couch_user_doc_check(&writer, id, *text, STR("null"), fail);
}

enum status
couch_prepare_user_doc(struct str id, struct str text, const struct access_settings *access,
		       struct arena *arena, struct str *ret, struct err *err)
{
	struct couch_fail fail = { .error = COUCH_ERROR_NONE };
	enum status status;

	*ret = text;
	if (str_starts_with(id, STR("_")))
		return STATUS_OK; /* a design document, or an id that is refused later */
	status = user_load_prepare(id, ret, access, arena, &fail);
	if (status != STATUS_OK)
		*err = fail.err;
	return status;
}
