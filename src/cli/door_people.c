#include "cli/door_people.h"

#include <stdio.h>

#include "access/audit.h"
#include "doc/json.h"
#include "doc/json_value.h"
#include "door/couch/couch.h"

#define ID_PREFIX "org.couchdb.user:"

/*
 * The member of a person's document that holds `db` and `customData`, which CouchDB's door does not
 * know. It is named after the first door that wrote it, and documents in stores have that name.
 */
#define OWN_MEMBER "mongo"

enum {
	NAMES = 100000, /* that are listed */
};

static enum status
person_id(struct str name, struct arena *arena, struct str *ret)
{
	*ret = arena_printf(arena, ID_PREFIX "%.*s", STR_ARG(name));
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

/* ---- Reading ---- */

static enum status
roles_read(const struct json_value *value, struct arena *arena, struct door_person *ret,
	   struct err *err)
{
	struct json_value *items;
	size_t count;

	if (!value || value->kind != JSON_ARRAY_BEGIN)
		return STATUS_OK;
	TRY(json_value_items(value, arena, &items, &count, err));
	ret->roles = arena_alloc(arena, (count + 1) * sizeof(*ret->roles));
	if (!ret->roles)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++)
		if (items[i].kind == JSON_STRING)
			ret->roles[ret->role_count++] = items[i].string;
	return STATUS_OK;
}

static enum status
own_read(const struct json_value *value, struct arena *arena, struct door_person *ret,
	 struct err *err)
{
	struct json_member *members;
	size_t count;

	if (!value || value->kind != JSON_OBJECT_BEGIN)
		return STATUS_OK;
	TRY(json_value_members(value, arena, &members, &count, err));
	value = json_value_find(members, count, "db");
	if (value && value->kind == JSON_STRING)
		ret->db = value->string;
	value = json_value_find(members, count, "customData");
	if (value && value->kind == JSON_OBJECT_BEGIN)
		ret->custom = value->text;
	return STATUS_OK;
}

static bool
members_are_bare(const struct json_member *members, size_t count)
{
	static const char *const bare[] = { "_id", "_rev", "name", "type", "roles" };
	size_t known = 0;

	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < sizeof(bare) / sizeof(bare[0]); k++)
			known += str_eq(members[i].name, str_from_cstr(bare[k]));
	return known == count;
}

static enum status
people_get(void *arg, struct str name, struct arena *arena, struct door_person *ret,
	   struct err *err)
{
	struct user_place *place = arg;
	struct door_person person = { 0 };
	struct json_member *members;
	struct json_value value;
	struct str id;
	size_t count;

	if (!person_name_is_sound(name))
		return STATUS_NOT_FOUND;
	TRY(person_id(name, arena, &id));
	TRY(place->get(place, id, arena, &person.source, err));
	person.name = str_skip(id, sizeof(ID_PREFIX) - 1);
	TRY(json_value_read(person.source, arena, &value, err));
	TRY(json_value_members(&value, arena, &members, &count, err));
	TRY(roles_read(json_value_find(members, count, "roles"), arena, &person, err));
	TRY(own_read(json_value_find(members, count, OWN_MEMBER), arena, &person, err));
	person.bare = members_are_bare(members, count);
	*ret = person;
	return STATUS_OK;
}

struct names {
	struct arena *arena;
	struct str *names;
	size_t count;
};

static enum status
names_take(void *arg, struct str name, struct str roles, struct err *err)
{
	struct names *n = arg;

	(void)roles;
	if (n->count == NAMES)
		return err_set(err, STATUS_LIMIT, "there are more than %d people (NAMES)", NAMES);
	n->names[n->count] = arena_dup(n->arena, name);
	return n->names[n->count++].ptr ? STATUS_OK : STATUS_LIMIT;
}

static enum status
people_names(void *arg, struct arena *arena, struct str **ret, size_t *ret_count, struct err *err)
{
	struct user_place *place = arg;
	struct names names = { arena, arena_alloc(arena, NAMES * sizeof(struct str)), 0 };

	if (!names.names)
		return STATUS_LIMIT;
	TRY(place->list(place, names_take, &names, err));
	*ret = names.names;
	*ret_count = names.count;
	return STATUS_OK;
}

/* ---- Writing ---- */

static void
roles_write(const struct door_person *p, struct buf *out)
{
	buf_append_byte(out, '[');
	for (size_t i = 0; i < p->role_count; i++) {
		if (i)
			buf_append_byte(out, ',');
		json_write_str(out, p->roles[i]);
	}
	buf_append_byte(out, ']');
}

/* The members of the old document, but for those that are written anew. */
static enum status
old_members_write(const struct door_person *p, struct arena *arena, struct buf *out,
		  struct err *err)
{
	static const char *const anew[] = {
		"_id", "name", "type", "roles", "password", OWN_MEMBER
	};
	struct json_member *members;
	struct json_value value;
	size_t count;

	if (!p->source.len)
		return STATUS_OK;
	TRY(json_value_read(p->source, arena, &value, err));
	TRY(json_value_members(&value, arena, &members, &count, err));
	for (size_t i = 0; i < count; i++) {
		bool is_anew = false;

		for (size_t k = 0; k < sizeof(anew) / sizeof(anew[0]); k++)
			is_anew = is_anew || str_eq(members[i].name, str_from_cstr(anew[k]));
		if (is_anew)
			continue;
		buf_append_byte(out, ',');
		json_write_str(out, members[i].name);
		buf_append_byte(out, ':');
		buf_append_str(out, members[i].value.text);
	}
	return STATUS_OK;
}

static void
own_write(const struct door_person *p, struct buf *out)
{
	buf_append_cstr(out, ",\"" OWN_MEMBER "\":{\"db\":");
	json_write_str(out, p->db);
	if (p->custom.ptr) {
		buf_append_cstr(out, ",\"customData\":");
		buf_append_str(out, p->custom);
	}
	buf_append_byte(out, '}');
}

static enum status
people_put(void *arg, const struct audit_by *by, const struct door_person *p, struct arena *arena,
	   struct err *err)
{
	AUTO(buf_release) struct buf text = BUF_INIT(COUCH_USER_DOC_BYTES);
	const struct user_at_door own = { p->name, p->own_door, p->own };
	struct user_place *place = arg;
	enum status status;
	struct str id;

	if (!person_name_is_sound(p->name))
		return err_set(err, STATUS_INVALID,
			       "a user's name has at most %d bytes, and no colon",
			       PERSON_NAME_BYTES);
	TRY(person_id(p->name, arena, &id));
	buf_append_cstr(&text, "{\"_id\":");
	json_write_str(&text, id);
	buf_append_cstr(&text, ",\"name\":");
	json_write_str(&text, p->name);
	buf_append_cstr(&text, ",\"type\":\"user\",\"roles\":");
	roles_write(p, &text);
	if (p->password.ptr) {
		buf_append_cstr(&text, ",\"password\":");
		json_write_str(&text, p->password);
	}
	if (p->db.len || p->custom.ptr)
		own_write(p, &text);
	TRY(old_members_write(p, arena, &text, err));
	buf_append_byte(&text, '}');
	status = buf_status(&text);
	if (status == STATUS_OK)
		status = place->put(place, id, buf_str(&text), !p->source.len, p->own ? &own : NULL,
				    arena, err);
	/* There is a password in it. */
	if (text.ptr)
		explicit_bzero(text.ptr, text.len);
	if (status == STATUS_OK)
		audit_changed(by, "person_changed", "person", p->name);
	return status;
}

static enum status
people_remove(void *arg, const struct audit_by *by, const struct door_person *p,
	      struct arena *arena, struct err *err)
{
	AUTO(buf_release) struct buf text = BUF_INIT(COUCH_USER_DOC_BYTES);
	struct user_place *place = arg;
	const struct json_value *rev;
	struct json_member *members;
	struct json_value value;
	struct str id;
	size_t count;

	TRY(person_id(p->name, arena, &id));
	TRY(json_value_read(p->source, arena, &value, err));
	TRY(json_value_members(&value, arena, &members, &count, err));
	rev = json_value_find(members, count, "_rev");
	if (!rev)
		return err_set(err, STATUS_CORRUPT, "a document of _users has no _rev");
	buf_append_cstr(&text, "{\"_id\":");
	json_write_str(&text, id);
	buf_append_cstr(&text, ",\"_rev\":");
	buf_append_str(&text, rev->text);
	buf_append_cstr(&text, ",\"_deleted\":true}");
	TRY(buf_status(&text));
	TRY(place->put(place, id, buf_str(&text), false, NULL, arena, err));
	audit_changed(by, "person_changed", "person", p->name);
	return STATUS_OK;
}

struct door_people
door_people_of(struct user_place *place)
{
	return (struct door_people){ people_get, people_put, people_remove, people_names, place };
}
