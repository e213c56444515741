#include "door/mongo/txn/cursor.h"

#include <assert.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rand.h"
#include "door/mongo/txn/client.h"
#include "door/mongo/txn/session.h"
#include "net/memory.h"

/* What names a cursor: only its person finds it, and only under its collection. */
struct cursor_key {
	int64_t id;
	struct str ns;
	const char *user;
};

static const struct cursor *
cursor_of(const struct expiring_entry *e)
{
	return (const struct cursor *)e;
}

static uint64_t
cursor_hash(int64_t id)
{
	return (uint64_t)id; /* it is random */
}

static bool
cursor_is(const struct expiring_entry *e, const void *key)
{
	const struct cursor_key *k = key;
	const struct cursor *c = cursor_of(e);

	return c->id == k->id && str_eq(str_from_cstr(c->ns), k->ns) &&
	       strcmp(c->user, k->user) == 0;
}

static bool
cursor_is_over(const struct expiring_entry *e, uint64_t now_ns)
{
	const struct cursor *c = cursor_of(e);

	return budget_is_unwanted(c->kept) ||
	       (!c->stays && now_ns - e->used_ns > MONGO_CURSOR_MS * CLOCK_NS_PER_MS);
}

/* Closes its files, too. */
static void
cursor_destroy(struct expiring_entry *e)
{
	struct cursor *c = (struct cursor *)e;

	/* It has left the table, or never was in it: no command can have it, or find it. */
	assert(!e->taken);
	buf_release(&c->request);
	buf_release(&c->place);
	buf_release(&c->rows);
	if (c->live)
		c->live_free(c->live);
	if (c->watch)
		c->watch_free(c->watch);
	budget_part_release(&c->part);
	mem_free(c);
}

static const struct expiring_rules cursor_rules = {
	.most = MONGO_CURSORS,
	.is = cursor_is,
	.is_over = cursor_is_over,
	.free = cursor_destroy,
};

void
cursors_init(struct expiring *cursors)
{
	expiring_init(cursors, &cursor_rules);
}

bool
cursor_long_batch_has_room(struct call *c, size_t bytes)
{
	struct net_session *session;

	if (bytes < c->batch_bytes)
		return true;
	if (c->batch_bytes)
		return false;
	session = net_stream_session(c->client->stream);
	c->batch_bytes = net_memory_page_bytes(session, CURSOR_BATCH_BYTES, CURSOR_SHORT_BYTES);
	if (bytes < c->batch_bytes &&
	    net_memory_turn_to_read(session, 2 * (c->batch_bytes - bytes)) == STATUS_OK)
		return true;
	c->batch_bytes = bytes;
	return false;
}

static enum status
fail_memory(struct call *c)
{
	const struct budget *b = arena_part(c->arena)->budget;

	return call_fail(c, MONGO_EXCEEDED_MEMORY_LIMIT,
			 "there is no memory for what the cursor would keep (memory_bytes, %zu, "
			 "for all, and CURSOR_ROWS_BYTES, %d, for one)",
			 b ? b->limit_bytes : 0, CURSOR_ROWS_BYTES);
}

enum status
cursor_begin(struct call *c, struct str ns, struct cursor **ret)
{
	struct cursor *cursor = mem_zalloc(sizeof(*cursor));
	struct cursor_key key;
	enum status status;

	if (!cursor)
		return STATUS_NOMEM;
	net_memory_part_init(&cursor->part, arena_part(c->arena), false);
	cursor->kept = &cursor->part;
	/*
	 * Its client may never ask for it again, so it needs room among what lasts. It asks before
	 * it holds anything, and the turn to read of the command's batch ends first.
	 */
	budget_settle(arena_part(c->arena));
	status = net_memory_part_admit(&cursor->part, net_stream_session(c->client->stream));
	if (status == STATUS_OK && !budget_use(&cursor->part, sizeof(*cursor)))
		status = STATUS_LIMIT;
	if (status != STATUS_OK) {
		cursor_destroy(&cursor->entry);
		return status == STATUS_LIMIT ? fail_memory(c) : status;
	}
	snprintf(cursor->ns, sizeof(cursor->ns), "%.*s", STR_ARG(ns));
	snprintf(cursor->user, sizeof(cursor->user), "%s", c->client->entry.user);
	cursor->request = BUF_INIT_OF(CURSOR_REQUEST_BYTES, &cursor->part);
	cursor->place = BUF_INIT_OF(CURSOR_PLACE_BYTES, &cursor->part);
	cursor->txn = c->in_transaction ? c->number : -1;
	/* Others compare the session as soon as the table has the cursor. */
	cursor->has_session = c->lsid.ptr;
	if (c->lsid.ptr)
		memcpy(cursor->session, c->lsid.ptr, sizeof(cursor->session));
	rand_bytes(&cursor->id, sizeof(cursor->id));
	cursor->id = (cursor->id & INT64_MAX) | 1; /* never 0, which stands for none */
	key = (struct cursor_key){ cursor->id, str_from_cstr(cursor->ns), cursor->user };
	if (expiring_add(&c->mongo->cursors, cursor_hash(cursor->id), &key, &cursor->entry, 0) !=
	    STATUS_OK) {
		cursor_destroy(&cursor->entry);
		return call_fail(c, MONGO_EXCEEDED_MEMORY_LIMIT,
				 "there are too many cursors; the limit, MONGO_CURSORS, is %d",
				 MONGO_CURSORS);
	}
	c->cursor = cursor->id;
	c->cursor_ns = ns;
	*ret = cursor;
	return STATUS_OK;
}

enum status
cursor_set(struct cursor *c, struct str request, struct str place)
{
	/* Taken, so it is its command's: neither its buffers nor its part need the lock. */
	assert(c->entry.taken);
	buf_append_str(&c->request, request);
	buf_append_str(&c->place, place);
	TRY(buf_status(&c->request));
	return buf_status(&c->place);
}

enum status
cursor_set_rows(struct cursor *c, struct buf *rows)
{
	assert(c->entry.taken && !c->rows.ptr);
	/* First given back: counted in both parts, the bytes might be more than there is. */
	if (rows->part)
		budget_unuse(rows->part, rows->cap);
	rows->part = NULL;
	if (!budget_use(&c->part, rows->cap))
		return STATUS_LIMIT;
	c->rows = *rows;
	c->rows.part = &c->part;
	*rows = (struct buf){ 0 };
	return STATUS_OK;
}

struct cursor *
cursor_take(struct mongo *m, int64_t id, struct str ns, const char *user)
{
	const struct cursor_key key = { id, ns, user };
	struct expiring_entry *e;

	if (expiring_take(&m->cursors, cursor_hash(id), &key, &e) != STATUS_OK)
		return NULL;
	/* It is this command's alone, and so is what it keeps. */
	net_memory_part_rouse(((struct cursor *)e)->kept);
	return (struct cursor *)e;
}

void
cursor_give(struct mongo *m, struct cursor *c)
{
	/*
	 * The part rests first, while it still is this command's: as soon as the cursor is given
	 * back, another connection may take it and rouse the part.
	 */
	assert(c->entry.taken);
	net_memory_part_rest(c->kept);
	expiring_give(&m->cursors, &c->entry);
}

void
cursor_free(struct mongo *m, struct cursor *c)
{
	expiring_drop(&m->cursors, &c->entry);
}

enum status
cursor_keep(struct call *c, struct cursor *cursor, enum status status, int64_t *ret_id)
{
	if (status == STATUS_OK) {
		*ret_id = cursor->id;
		net_memory_part_keep(cursor->kept);
		cursor_give(c->mongo, cursor);
		return STATUS_OK;
	}
	arena_part(c->arena)->refused |= cursor->part.refused;
	cursor_free(c->mongo, cursor);
	return status == STATUS_LIMIT ? fail_memory(c) : status;
}

bool
cursor_kill(struct mongo *m, int64_t id, struct str ns, const char *user)
{
	const struct cursor_key key = { id, ns, user };

	return expiring_end(&m->cursors, cursor_hash(id), &key);
}

static bool
cursor_is_of_session(const void *which, const struct expiring_entry *e)
{
	const struct cursor *c = cursor_of(e);

	return c->has_session && session_matches(which, str_of(c->session, sizeof(c->session)),
						 str_from_cstr(c->user));
}

void
cursor_kill_sessions(struct mongo *m, const struct session_pattern *which)
{
	expiring_end_all(&m->cursors, cursor_is_of_session, which);
}

void
cursors_end(struct mongo *m)
{
	expiring_end_all(&m->cursors, NULL, NULL);
}
