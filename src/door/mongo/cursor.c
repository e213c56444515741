#include "door/mongo/cursor.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rand.h"
#include "door/mongo/client.h"
#include "door/mongo/session.h"

/* ---- With the lock ---- */

static void
cursor_unlink(struct mongo *m, struct cursor *c)
{
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	m->cursor_count--;
	m->cursors_bytes -= c->counted;
}

static void
cursor_destroy(struct cursor *c)
{
	buf_release(&c->request);
	buf_release(&c->place);
	buf_release(&c->rows);
	if (c->live)
		c->live_free(c->live);
	if (c->watch)
		c->watch_free(c->watch);
	mem_free(c);
}

/*
 * Takes a cursor off the list. Closing its files may take long, so it is put into `*dead`, to be
 * destroyed without the lock.
 */
static void
cursor_end(struct mongo *m, struct cursor *c, struct cursor **dead)
{
	if (c->busy) {
		c->killed = true;
		return;
	}
	cursor_unlink(m, c);
	c->next = *dead;
	*dead = c;
}

static void
cursors_expire(struct mongo *m, uint64_t now_ns, struct cursor **dead)
{
	struct cursor *next;

	for (struct cursor *c = m->cursors; c; c = next) {
		next = c->next;
		if (!c->busy && !c->stays &&
		    now_ns - c->used_ns > MONGO_CURSOR_MS * CLOCK_NS_PER_MS)
			cursor_end(m, c, dead);
	}
}

static struct cursor *
cursor_find(struct mongo *m, int64_t id, struct str ns, const char *user)
{
	for (struct cursor *c = m->cursors; c; c = c->next)
		if (c->id == id && !c->killed && str_eq(str_from_cstr(c->ns), ns) &&
		    strcmp(c->user, user) == 0)
			return c;
	return NULL;
}

/* ---- For all ---- */

/* Releases the list's lock, and destroys what was taken off the list. */
static void
cursors_unlock(struct mongo *m, struct cursor *dead)
{
	pthread_mutex_unlock(&m->cursors_lock);
	while (dead) {
		struct cursor *next = dead->next;

		cursor_destroy(dead);
		dead = next;
	}
}

/* Busy. NULL: there is no memory, or there are MONGO_CURSORS already. */
static struct cursor *
cursor_new(struct mongo *m, struct str ns, const char *user)
{
	struct cursor *dead = NULL;
	struct cursor *c = mem_zalloc(sizeof(*c));

	if (!c)
		return NULL;
	snprintf(c->ns, sizeof(c->ns), "%.*s", STR_ARG(ns));
	snprintf(c->user, sizeof(c->user), "%s", user);
	buf_init(&c->request, CURSOR_REQUEST_BYTES);
	buf_init(&c->place, CURSOR_PLACE_BYTES);
	buf_init(&c->rows, CURSOR_ROWS_BYTES);
	c->txn = -1;
	c->busy = true;
	rand_bytes(&c->id, sizeof(c->id));
	c->id = (c->id & INT64_MAX) | 1; /* never 0, which stands for none */
	pthread_mutex_lock(&m->cursors_lock);
	cursors_expire(m, clock_mono_ns(), &dead);
	if (m->cursor_count == MONGO_CURSORS) {
		cursors_unlock(m, dead);
		cursor_destroy(c);
		return NULL;
	}
	c->next = m->cursors;
	c->link = &m->cursors;
	if (c->next)
		c->next->link = &c->next;
	m->cursors = c;
	m->cursor_count++;
	cursors_unlock(m, dead);
	return c;
}

enum status
cursor_begin(struct call *c, struct str ns, struct cursor **ret)
{
	struct cursor *cursor = cursor_new(c->mongo, ns, c->client->user_name);

	if (!cursor)
		return call_fail(c, MONGO_EXCEEDED_MEMORY_LIMIT,
				 "there are too many cursors; the limit, MONGO_CURSORS, is %d",
				 MONGO_CURSORS);
	cursor->txn = c->in_transaction ? c->number : -1;
	cursor->has_session = c->lsid.ptr;
	if (c->lsid.ptr)
		memcpy(cursor->session, c->lsid.ptr, sizeof(cursor->session));
	*ret = cursor;
	return STATUS_OK;
}

/* Counts what a cursor is about to keep. */
static enum status
cursor_count_bytes(struct mongo *m, struct cursor *c, size_t bytes)
{
	bool fits;

	if (bytes <= CURSOR_SMALL_BYTES)
		return STATUS_OK;
	pthread_mutex_lock(&m->cursors_lock);
	fits = m->cursors_bytes + bytes <= MONGO_CURSORS_BYTES;
	if (fits) {
		m->cursors_bytes += bytes;
		c->counted += bytes;
	}
	pthread_mutex_unlock(&m->cursors_lock);
	return fits ? STATUS_OK : STATUS_LIMIT;
}

enum status
cursor_set(struct mongo *m, struct cursor *c, struct str request, struct str place)
{
	TRY(cursor_count_bytes(m, c, request.len));
	buf_append_str(&c->request, request);
	buf_append_str(&c->place, place);
	TRY(buf_status(&c->request));
	return buf_status(&c->place);
}

enum status
cursor_set_rows(struct mongo *m, struct cursor *c, struct str rows)
{
	TRY(cursor_count_bytes(m, c, rows.len));
	buf_append_str(&c->rows, rows);
	return buf_status(&c->rows);
}

struct cursor *
cursor_take(struct mongo *m, int64_t id, struct str ns, const char *user)
{
	struct cursor *dead = NULL;
	struct cursor *c;

	pthread_mutex_lock(&m->cursors_lock);
	cursors_expire(m, clock_mono_ns(), &dead);
	c = cursor_find(m, id, ns, user);
	if (c && c->busy)
		c = NULL;
	if (c)
		c->busy = true;
	cursors_unlock(m, dead);
	return c;
}

void
cursor_give(struct mongo *m, struct cursor *c)
{
	struct cursor *dead = NULL;

	pthread_mutex_lock(&m->cursors_lock);
	c->busy = false;
	c->used_ns = clock_mono_ns();
	if (c->killed)
		cursor_end(m, c, &dead);
	cursors_unlock(m, dead);
}

void
cursor_free(struct mongo *m, struct cursor *c)
{
	struct cursor *dead = NULL;

	pthread_mutex_lock(&m->cursors_lock);
	c->busy = false;
	cursor_end(m, c, &dead);
	cursors_unlock(m, dead);
}

enum status
cursor_keep(struct call *c, struct cursor *cursor, enum status status, int64_t *ret_id)
{
	if (status == STATUS_OK) {
		*ret_id = cursor->id;
		cursor_give(c->mongo, cursor);
		return STATUS_OK;
	}
	cursor_free(c->mongo, cursor);
	if (status != STATUS_LIMIT)
		return status;
	return call_fail(c, MONGO_EXCEEDED_MEMORY_LIMIT,
			 "what all cursors keep has %d bytes already (MONGO_CURSORS_BYTES)",
			 MONGO_CURSORS_BYTES);
}

bool
cursor_kill(struct mongo *m, int64_t id, struct str ns, const char *user)
{
	struct cursor *dead = NULL;
	struct cursor *c;

	pthread_mutex_lock(&m->cursors_lock);
	c = cursor_find(m, id, ns, user);
	if (c)
		cursor_end(m, c, &dead);
	cursors_unlock(m, dead);
	return c;
}

void
cursor_kill_sessions(struct mongo *m, const struct session_pattern *which)
{
	struct cursor *dead = NULL;
	struct cursor *next;

	pthread_mutex_lock(&m->cursors_lock);
	for (struct cursor *c = m->cursors; c; c = next) {
		next = c->next;
		if (c->has_session && session_matches(which, str_of(c->session, sizeof(c->session)),
						      str_from_cstr(c->user)))
			cursor_end(m, c, &dead);
	}
	cursors_unlock(m, dead);
}

size_t
cursor_count(struct mongo *m)
{
	size_t count;

	pthread_mutex_lock(&m->cursors_lock);
	count = m->cursor_count;
	pthread_mutex_unlock(&m->cursors_lock);
	return count;
}

void
cursors_fini(struct mongo *m)
{
	while (m->cursors)
		cursor_free(m, m->cursors);
}
