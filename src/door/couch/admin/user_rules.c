/* CouchDB's rules for writing documents of _users, in its words. */
#include "door/couch/admin/user_doc.h"

#include "base/quote.h"
#include "access/person.h"
#include "doc/json.h"
#include "doc/json_value.h"
#include "door/couch/wire/error.h"
#include "loop/sort.h"

/* One revision of a document, as the rules look at it. */
struct side {
	struct json_member *members;
	size_t count;
	struct str name; /* ptr NULL: none */
	struct str *roles;
	size_t roles_count;
};

static const struct json_value *
side_find(const struct side *s, const char *name)
{
	return json_value_find(s->members, s->count, name);
}

/* True if JavaScript would take the value for true. */
static bool
is_truthy(const struct json_value *v)
{
	if (!v || v->kind == JSON_NULL || v->kind == JSON_FALSE)
		return false;
	if (v->kind == JSON_STRING)
		return v->string.len > 0;
	return v->kind != JSON_NUMBER || !str_eq(v->text, STR("0"));
}

static enum status
forbid(struct couch_fail *fail, const char *text)
{
	return couch_fail_set(fail, COUCH_ERROR_FORBIDDEN, "%s", text);
}

static enum status
side_read(const struct couch_user_writer *w, struct str text, struct side *ret,
	  struct couch_fail *fail)
{
	const struct json_value *name;

	*ret = (struct side){ .count = 0 };
	TRY(json_read_members(text, w->arena, &ret->members, &ret->count, &fail->err));
	name = side_find(ret, "name");
	if (name && name->kind == JSON_STRING)
		ret->name = name->string;
	return STATUS_OK;
}

/* Reads the roles, sorted. STATUS_INVALID for something that is no list of strings. */
static enum status
side_read_roles(const struct couch_user_writer *w, struct side *s)
{
	const struct json_value *roles = side_find(s, "roles");
	struct json_value *items;

	s->roles_count = 0;
	if (!roles || roles->kind != JSON_ARRAY_BEGIN)
		return STATUS_INVALID;
	TRY(json_value_items(roles, w->arena, &items, &s->roles_count, NULL));
	s->roles = arena_alloc(w->arena, (s->roles_count + 1) * sizeof(*s->roles));
	if (!s->roles)
		return STATUS_LIMIT;
	for (size_t i = 0; i < s->roles_count; i++) {
		if (items[i].kind != JSON_STRING)
			return STATUS_INVALID;
		s->roles[i] = items[i].string;
	}
	return sort_strs(s->roles, s->roles_count, w->arena);
}

static enum status
check_shape(const struct couch_user_writer *w, struct str id, struct side *doc,
	    struct couch_fail *fail)
{
	const struct json_value *type = side_find(doc, "type");
	const struct json_value *roles = side_find(doc, "roles");
	enum status status;

	if (!type || type->kind != JSON_STRING || !str_eq(type->string, STR("user")))
		return forbid(fail, "doc.type must be user");
	if (!is_truthy(side_find(doc, "name")))
		return forbid(fail, "doc.name is required");
	if (!is_truthy(roles))
		return forbid(fail, "doc.roles must exist");
	if (roles->kind != JSON_ARRAY_BEGIN)
		return forbid(fail, "doc.roles must be an array");
	status = side_read_roles(w, doc);
	if (status == STATUS_INVALID)
		return forbid(fail, "doc.roles can only contain strings");
	TRY(status);
	if (!doc->name.ptr || !str_eq(couch_user_of_id(id), doc->name))
		return forbid(fail, "Doc ID must be of the form org.couchdb.user:name");
	return STATUS_OK;
}

static enum status
check_password_members(const struct side *doc, struct couch_fail *fail)
{
	const struct json_value *scheme = side_find(doc, "password_scheme");
	const struct json_value *rounds = side_find(doc, "iterations");
	const struct json_value *key = side_find(doc, "derived_key");

	if (is_truthy(side_find(doc, "password_sha")) && !is_truthy(side_find(doc, "salt")))
		return forbid(fail, "Users with password_sha must have a salt."
				    "See /_utils/script/couch.js for example code.");
	if (!is_truthy(scheme))
		return STATUS_OK;
	if (scheme->kind != JSON_STRING ||
	    (!str_eq(scheme->string, STR("simple")) && !str_eq(scheme->string, STR("pbkdf2")) &&
	     !str_eq(scheme->string, STR("simple+pbkdf2"))))
		return couch_fail_set(
			fail, COUCH_ERROR_FORBIDDEN, "Password scheme `%s` not supported.",
			QUOTE_SHOW(scheme->kind == JSON_STRING ? scheme->string : scheme->text));
	if (!str_eq(scheme->string, STR("pbkdf2")))
		return STATUS_OK;
	if (!rounds || rounds->kind != JSON_NUMBER)
		return forbid(fail, "iterations must be a number.");
	if (!key || key->kind != JSON_STRING)
		return forbid(fail, "derived_key must be a string.");
	return STATUS_OK;
}

/* Refuses changes that only administrators may make. */
static enum status
check_own(const struct couch_user_writer *w, const struct side *doc, struct side *old, bool has_old,
	  struct couch_fail *fail)
{
	enum status status;
	bool same;

	if (!has_old)
		return doc->roles_count ? forbid(fail, "Only _admin may set roles") : STATUS_OK;
	if (!str_eq(doc->name, w->user->name))
		return forbid(fail, "You may only update your own user document.");
	status = side_read_roles(w, old);
	if (status != STATUS_OK && status != STATUS_INVALID)
		return status;
	same = old->roles_count == doc->roles_count;
	for (size_t i = 0; same && i < doc->roles_count; i++)
		same = status == STATUS_OK && str_eq(old->roles[i], doc->roles[i]);
	return same ? STATUS_OK : forbid(fail, "Only _admin may edit roles");
}

static enum status
check_names(const struct side *doc, struct couch_fail *fail)
{
	for (size_t i = 0; i < doc->roles_count; i++)
		if (str_starts_with(doc->roles[i], STR("_")) &&
		    !str_eq(doc->roles[i], STR("_metrics")))
			return forbid(fail, "No system roles (starting with underscore) in users "
					    "db.");
	if (str_starts_with(doc->name, STR("_")))
		return forbid(fail, "Username may not start with underscore.");
	if (memchr(doc->name.ptr, ':', doc->name.len))
		return forbid(fail, "Character `:` is not allowed in usernames.");
	if (!person_name_is_sound(doc->name))
		return couch_fail_set(fail, COUCH_ERROR_FORBIDDEN,
				      "A username has at most %d bytes.", PERSON_NAME_BYTES);
	if (!person_roles_fit(doc->roles, doc->roles_count))
		return couch_fail_set(fail, COUCH_ERROR_FORBIDDEN,
				      "A user has at most %d roles, of %d bytes together.",
				      PERSON_ROLES, PERSON_ROLES_BYTES);
	return STATUS_OK;
}

enum status
couch_user_doc_check(const struct couch_user_writer *w, struct str id, struct str doc_text,
		     struct str old_text, struct couch_fail *fail)
{
	bool has_old = !str_eq(old_text, STR("null"));
	struct side doc, old = { .count = 0 };
	const struct json_value *deleted;
	struct str owner = couch_user_of_id(id);

	/* The answer must not tell a user that another user's document exists. */
	if (!w->admin && w->user->name.len && !str_eq(owner, w->user->name))
		return couch_fail_set(fail, COUCH_ERROR_NOT_FOUND, "missing");
	TRY(side_read(w, doc_text, &doc, fail));
	if (has_old)
		TRY(side_read(w, old_text, &old, fail));
	deleted = side_find(&doc, "_deleted");
	if (deleted && deleted->kind == JSON_TRUE) {
		if (w->user->admin || (w->user->name.len && str_eq(old.name, w->user->name)))
			return STATUS_OK;
		return forbid(fail, "Only admins may delete other user docs.");
	}
	/* A document that was deleted is treated as new. */
	if (has_old) {
		deleted = side_find(&old, "_deleted");
		has_old = !deleted || deleted->kind != JSON_TRUE;
	}
	TRY(check_shape(w, id, &doc, fail));
	if (has_old && !str_eq(old.name, doc.name))
		return forbid(fail, "Usernames can not be changed.");
	TRY(check_password_members(&doc, fail));
	if (!w->admin)
		TRY(check_own(w, &doc, &old, has_old, fail));
	return check_names(&doc, fail);
}
