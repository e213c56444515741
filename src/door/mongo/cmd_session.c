/*
 * Sessions. A session is what its commands say: nothing is kept for one until a write that may be
 * sent again, a transaction or a cursor belongs to it.
 */
#include "base/rand.h"
#include "door/mongo/client.h"
#include "door/mongo/commands.h"
#include "door/mongo/cursor.h"

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
read_session_id(const struct bson_value *v, struct str *ret)
{
	struct bson_value id;

	if (v->type != BSON_DOCUMENT || !bson_find(v->text, STR("id"), &id) ||
	    id.type != BSON_BINARY || id.text.len != SESSION_ID_BYTES)
		return false;
	*ret = id.text;
	return true;
}

enum status
mongo_run_refresh_sessions(struct call *c)
{
	return check_list(c);
}

/* Those of the client: sessions of two people are two sessions, even with the same id. */
enum status
mongo_run_end_sessions(struct call *c)
{
	struct session_pattern which = { .user = str_from_cstr(c->client->user_name) };
	struct bson_element e;
	struct bson_iter i;

	TRY(check_list(c));
	for (bson_iter_begin(&i, c->first.text); bson_iter_read(&i, &e);)
		if (read_session_id(&e.value, &which.id))
			end_sessions(c, &which);
	return STATUS_OK;
}

/* ---- Sessions of others ---- */

/* Reads an element of the list: whose sessions it means, or which ones. */
typedef enum status pattern_read(struct call *c, struct str element, struct session_pattern *ret);

/* {user, db}. A person has one name in all databases. */
static enum status
read_user(struct call *c, struct str element, struct session_pattern *ret)
{
	struct bson_value user, db;

	if (!bson_find(element, STR("user"), &user) || user.type != BSON_STRING ||
	    !bson_find(element, STR("db"), &db) || db.type != BSON_STRING)
		return call_fail(c, MONGO_FAILED_TO_PARSE,
				 "%s takes objects of the strings 'user' and 'db'",
				 c->command->name);
	ret->user = user.text;
	return STATUS_OK;
}

/* {} for all, or {lsid: {id}}. */
static enum status
read_pattern(struct call *c, struct str element, struct session_pattern *ret)
{
	struct bson_element e;
	struct bson_iter i;

	for (bson_iter_begin(&i, element); bson_iter_read(&i, &e);) {
		if (!str_eq(e.name, STR("lsid")))
			return call_fail(c, MONGO_NOT_IMPLEMENTED,
					 "Sessions cannot be named by '%.*s', only by 'lsid'",
					 (int)(e.name.len < 100 ? e.name.len : 100), e.name.ptr);
		if (!read_session_id(&e.value, &ret->id))
			return call_fail(c, MONGO_FAILED_TO_PARSE,
					 "'lsid' takes an object with a UUID as 'id'");
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
	for (bson_iter_begin(&i, c->first.text); bson_iter_read(&i, &e);) {
		if (e.value.type != BSON_DOCUMENT)
			return call_type_mismatch(c, &e.value, "type 'object'", "%s.%s.%.*s",
						  c->command->name, c->command->name,
						  STR_ARG(e.name));
		TRY(read(c, e.value.text, &which));
	}
	if (bson_is_empty(c->first.text))
		end_sessions(c, &which);
	for (bson_iter_begin(&i, c->first.text); bson_iter_read(&i, &e);) {
		which = (struct session_pattern){ 0 };
		TRY(read(c, e.value.text, &which));
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
