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
	return call_fail(c, MONGO_TYPE_MISMATCH,
			 "BSON field '%s.%s' is the wrong type '%s', expected type 'array'",
			 c->command->name, c->command->name, bson_type_name(c->first.type));
}

static void
end_session(struct call *c, struct str id)
{
	cursor_kill_session(c->mongo, id);
	txns_end_session(&c->mongo->txns, id, str_from_cstr(c->client->user_name));
}

/* What belongs to the sessions of the list: their cursors, and transactions. */
static void
end_sessions(struct call *c)
{
	struct bson_element e;
	struct bson_iter i;
	struct bson_value id;

	for (bson_iter_begin(&i, c->first.text); bson_iter_read(&i, &e);)
		if (e.value.type == BSON_DOCUMENT && bson_find(e.value.text, STR("id"), &id) &&
		    id.type == BSON_BINARY && id.text.len == SESSION_ID_BYTES)
			end_session(c, id.text);
}

enum status
mongo_run_refresh_sessions(struct call *c)
{
	return check_list(c);
}

enum status
mongo_run_end_sessions(struct call *c)
{
	TRY(check_list(c));
	end_sessions(c);
	return STATUS_OK;
}

/* Of all people: who is meant by a user or a pattern is not told apart. */
enum status
mongo_run_kill_all_sessions(struct call *c)
{
	TRY(check_list(c));
	txns_end_session(&c->mongo->txns, STR(""), STR(""));
	return STATUS_OK;
}

enum status
mongo_run_kill_sessions(struct call *c)
{
	TRY(check_list(c));
	end_sessions(c);
	return STATUS_OK;
}
