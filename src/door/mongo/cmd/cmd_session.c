/*
 * Sessions. A session is what its commands say: nothing is kept for one until a write that may be
 * sent again, a transaction or a cursor belongs to it.
 */
#include "base/rand.h"
#include "door/mongo/cmd/commands.h"
#include "door/mongo/txn/client.h"
#include "door/mongo/txn/cursor.h"

enum {
	UUID_SUBTYPE = 4,
};

enum status
mongo_run_start_session(struct call *c)
{
	uint8_t id[SESSION_ID_BYTES];

	rand_bytes(id, sizeof(id));
	id[6] = (id[6] & 0x0f) | 0x40; /* a random UUID (RFC 4122) */
	id[8] = (id[8] & 0x3f) | 0x80;
	bson_begin_document(c->reply, STR("id"));
	bson_put_binary(c->reply, STR("id"), UUID_SUBTYPE, str_of(id, sizeof(id)));
	bson_end(c->reply);
	bson_put_int32(c->reply, STR("timeoutMinutes"), MONGO_SESSION_MINUTES);
	return STATUS_OK;
}

static enum status
check_list(struct call *c)
{
	if (c->first.type == BSON_ARRAY)
		return STATUS_OK;
	return call_type_mismatch(c, &c->first, "type 'array'", "%s.%s", c->command->name,
				  c->command->name);
}

static void
end_sessions(struct call *c, const struct session_pattern *which)
{
	cursor_kill_sessions(c->mongo, which);
	txns_end_sessions(&c->mongo->txns, which);
}

static bool
is_nothing(const struct bson_value *v)
{
	return v->type == BSON_NULL || v->type == BSON_UNDEFINED;
}

static enum status
member_missing(struct call *c, struct str index, const char *member)
{
	return call_fail(c, MONGO_FIELD_MISSING,
			 "BSON field '%s.%s.%.*s.%s' is missing but a required field",
			 c->command->name, c->command->name, STR_ARG(index), member);
}

static enum status
member_unknown(struct call *c, struct str name)
{
	return call_fail(c, MONGO_FIELD_UNKNOWN, "BSON field '%s.%.*s' is an unknown field.",
			 c->command->name, (int)(name.len < 100 ? name.len : 100), name.ptr);
}

/* The UUID of a session. */
static enum status
read_uuid(struct call *c, const struct bson_value *id, struct str *ret)
{
	if (id->type != BSON_BINARY || id->subtype != UUID_SUBTYPE)
		return call_type_mismatch(c, id, "type 'binData' of the subtype for a UUID",
					  "%s.id", c->command->name);
	if (bson_text(id).len != SESSION_ID_BYTES)
		return call_fail(c, MONGO_INVALID_UUID,
				 "uuid must be a 16-byte binary field with UUID (4) subtype");
	*ret = bson_text(id);
	return STATUS_OK;
}

/* {id, uid}, an element of a list. `uid` is the hash of a name, and tells nothing more. */
static enum status
read_session_id(struct call *c, const struct bson_element *session, struct str *ret)
{
	struct bson_element e;
	struct bson_iter i;

	*ret = STR("");
	if (session->value.type != BSON_DOCUMENT)
		return call_type_mismatch(c, &session->value, "type 'object'", "%s.%s.%.*s",
					  c->command->name, c->command->name,
					  STR_ARG(session->name));
	for (bson_iter_begin(&i, bson_text(&session->value)); bson_iter_read(&i, &e);) {
		if (str_eq(e.name, STR("id")) && !is_nothing(&e.value))
			TRY(read_uuid(c, &e.value, ret));
		else if (!str_eq(e.name, STR("id")) && !str_eq(e.name, STR("uid")))
			return member_unknown(c, e.name);
	}
	return ret->len ? STATUS_OK : member_missing(c, session->name, "id");
}

/*
 * Reads the elements of the list, which may be null, and ends those sessions if `ends`: those of
 * the client, for sessions of two people are two sessions, even with the same id.
 */
static enum status
read_sessions(struct call *c, bool ends)
{
	struct session_pattern which = { .user = str_from_cstr(c->client->entry.user) };
	struct bson_element e;
	struct bson_iter i;

	for (bson_iter_begin(&i, bson_text(&c->first)); bson_iter_read(&i, &e);) {
		if (is_nothing(&e.value))
			continue;
		TRY(read_session_id(c, &e, &which.id));
		if (ends)
			end_sessions(c, &which);
	}
	return STATUS_OK;
}

enum status
mongo_run_refresh_sessions(struct call *c)
{
	TRY(check_list(c));
	return read_sessions(c, false);
}

/* An element that makes no sense fails the command before any session is ended. */
enum status
mongo_run_end_sessions(struct call *c)
{
	TRY(check_list(c));
	TRY(read_sessions(c, false));
	return read_sessions(c, true);
}

/* ---- Sessions of others ---- */

/* Reads an element of the list: whose sessions it means, or which ones. */
typedef enum status pattern_read(struct call *c, const struct bson_element *element,
				 struct session_pattern *ret);

/* {user, db}. A person has one name in all databases. */
static enum status
read_user(struct call *c, const struct bson_element *element, struct session_pattern *ret)
{
	bool has_user = false, has_db = false;
	struct bson_element e;
	struct bson_iter i;

	for (bson_iter_begin(&i, bson_text(&element->value)); bson_iter_read(&i, &e);) {
		bool is_user = str_eq(e.name, STR("user"));

		if (!is_user && !str_eq(e.name, STR("db")))
			return member_unknown(c, e.name);
		if (is_nothing(&e.value))
			continue;
		if (e.value.type != BSON_STRING)
			return call_type_mismatch(c, &e.value, "type 'string'", "%s.%.*s",
						  c->command->name, STR_ARG(e.name));
		if (is_user)
			ret->user = bson_text(&e.value);
		*(is_user ? &has_user : &has_db) = true;
	}
	if (!has_user || !has_db)
		return member_missing(c, element->name, has_user ? "db" : "user");
	return STATUS_OK;
}

/* {} for all, or {lsid: {id}}. */
static enum status
read_pattern(struct call *c, const struct bson_element *element, struct session_pattern *ret)
{
	struct bson_element e;
	struct bson_iter i;

	for (bson_iter_begin(&i, bson_text(&element->value)); bson_iter_read(&i, &e);) {
		if (!str_eq(e.name, STR("lsid")))
			return call_fail(c, MONGO_NOT_IMPLEMENTED,
					 "Sessions cannot be named by '%.*s', only by 'lsid'",
					 (int)(e.name.len < 100 ? e.name.len : 100), e.name.ptr);
		TRY(read_session_id(c, &e, &ret->id));
	}
	return STATUS_OK;
}

/* An element that makes no sense fails the command before any session is ended. */
static enum status
kill_all(struct call *c, pattern_read *read)
{
	struct session_pattern which = { 0 };
	struct bson_element e;
	struct bson_iter i;

	TRY(check_list(c));
	for (bson_iter_begin(&i, bson_text(&c->first)); bson_iter_read(&i, &e);) {
		if (is_nothing(&e.value))
			continue;
		if (e.value.type != BSON_DOCUMENT)
			return call_type_mismatch(c, &e.value, "type 'object'", "%s.%s.%.*s",
						  c->command->name, c->command->name,
						  STR_ARG(e.name));
		TRY(read(c, &e, &which));
	}
	if (bson_is_empty(bson_text(&c->first)))
		end_sessions(c, &which);
	for (bson_iter_begin(&i, bson_text(&c->first)); bson_iter_read(&i, &e);) {
		if (is_nothing(&e.value))
			continue;
		which = (struct session_pattern){ 0 };
		TRY(read(c, &e, &which));
		end_sessions(c, &which);
	}
	return STATUS_OK;
}

enum status
mongo_run_kill_all_sessions(struct call *c)
{
	return kill_all(c, read_user);
}

enum status
mongo_run_kill_sessions_by_pattern(struct call *c)
{
	return kill_all(c, read_pattern);
}
