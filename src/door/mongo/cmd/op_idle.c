/* What waits for the next command of a client: open transactions, and cursors. */
#include "base/clock.h"
#include "door/mongo/cmd/commands.h"
#include "door/mongo/txn/client.h"
#include "door/mongo/txn/cursor.h"
#include "door/mongo/txn/txn.h"

enum {
	UUID_SUBTYPE = 4,
};

/* Begins the document with the members that sessions and cursors share; the caller ends it. */
static void
begin_idle(struct call *c, struct bson_builder *b, const char *type, const char *desc,
	   const char *user)
{
	bson_begin_document(b, STR(""));
	bson_put_string(b, STR("type"), str_from_cstr(type));
	bson_put_string(b, STR("host"), str_from_cstr(c->mongo->host));
	bson_put_string(b, STR("desc"), str_from_cstr(desc));
	bson_put_bool(b, STR("active"), false);
	if (!user[0])
		return;
	bson_begin_array(b, STR("effectiveUsers"));
	bson_begin_document(b, STR(""));
	bson_put_string(b, STR("user"), str_from_cstr(user));
	bson_put_string(b, STR("db"), STR("admin"));
	bson_end(b);
	bson_end(b);
}

static void
put_lsid(struct bson_builder *b, struct str id)
{
	bson_begin_document(b, STR("lsid"));
	bson_put_binary(b, STR("id"), UUID_SUBTYPE, id);
	bson_end(b);
}

/* What is told, and to whom. */
struct idle {
	struct call *call;
	struct bson_builder *b;
	bool own; /* what belongs to the caller's person */
};

static bool
is_wanted(const struct idle *idle, const struct expiring_entry *e, const char *user)
{
	return !e->taken && (!idle->own || strcmp(user, idle->call->client->entry.user) == 0);
}

/* With the table's lock. */
static void
put_transaction(void *arg, const struct expiring_entry *e)
{
	const struct idle *idle = arg;
	const struct txn *t = (const struct txn *)e;
	struct call *c = idle->call;
	struct bson_builder *b = idle->b;
	uint64_t life_ns = txn_life_ms(c->mongo) * CLOCK_NS_PER_MS, now_ns = clock_mono_ns();
	uint64_t began_ns = t->open.until_ns > life_ns ? t->open.until_ns - life_ns : 0;
	uint64_t open_us = now_ns > began_ns ? (now_ns - began_ns) / 1000 : 0;
	uint64_t idle_us = now_ns > e->used_ns ? (now_ns - e->used_ns) / 1000 : 0;

	if (!is_wanted(idle, e, t->user) || t->state != TXN_OPEN)
		return;
	begin_idle(c, b, "idleSession", "inactive transaction", t->user);
	put_lsid(b, str_of(t->session, sizeof(t->session)));
	bson_begin_document(b, STR("transaction"));
	bson_begin_document(b, STR("parameters"));
	bson_put_int64(b, STR("txnNumber"), t->number);
	bson_put_bool(b, STR("autocommit"), false);
	bson_end(b);
	bson_put_int64(b, STR("timeOpenMicros"), (int64_t)open_us);
	bson_put_int64(b, STR("timeInactiveMicros"), (int64_t)idle_us);
	bson_end(b);
	bson_end(b);
}

void
mongo_put_idle_sessions(struct call *c, struct bson_builder *b, bool own)
{
	expiring_each(&c->mongo->txns.table, put_transaction, &(struct idle){ c, b, own });
}

/* With the table's lock. */
static void
put_cursor(void *arg, const struct expiring_entry *e)
{
	const struct idle *idle = arg;
	const struct cursor *cursor = (const struct cursor *)e;
	uint64_t ago_ms = (clock_mono_ns() - e->used_ns) / CLOCK_NS_PER_MS;
	struct bson_builder *b = idle->b;

	if (!is_wanted(idle, e, cursor->user))
		return;
	begin_idle(idle->call, b, "idleCursor", "inactive cursor", cursor->user);
	bson_put_string(b, STR("ns"), str_from_cstr(cursor->ns));
	if (cursor->has_session)
		put_lsid(b, str_of(cursor->session, sizeof(cursor->session)));
	bson_begin_document(b, STR("cursor"));
	bson_put_int64(b, STR("cursorId"), cursor->id);
	bson_put_date(b, STR("lastAccessDate"), (int64_t)(clock_wall_ms() - ago_ms));
	bson_put_bool(b, STR("noCursorTimeout"), cursor->stays);
	bson_put_bool(b, STR("tailable"), cursor->watch != NULL);
	bson_put_bool(b, STR("awaitData"), cursor->watch != NULL);
	bson_end(b);
	bson_end(b);
}

void
mongo_put_idle_cursors(struct call *c, struct bson_builder *b, bool own)
{
	expiring_each(&c->mongo->cursors, put_cursor, &(struct idle){ c, b, own });
}
