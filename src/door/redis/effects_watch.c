/* WATCH: who is told when a key changes in this process. */
#include "base/mem.h"
#include "door/redis/effects.h"
#include "door/redis/redis_int.h"

static struct watch **
watch_slot(struct redis *r, unsigned db, struct str key)
{
	return &r->watches[(str_hash(key) + db) % REDIS_WATCH_SLOTS];
}

static bool
watch_is_of(const struct watch *w, unsigned db, struct str key)
{
	return w->db == db && str_eq(w->key, key);
}

static bool
watch_is_there(const struct client *c, unsigned db, struct str key)
{
	for (const struct watch *w = c->watches; w; w = w->next)
		if (watch_is_of(w, db, key))
			return true;
	return false;
}

enum status
effects_watch(struct client *c, unsigned db, struct str key, const struct timed_item *item)
{
	struct redis *r = c->redis;
	struct watch **slot = watch_slot(r, db, key);
	struct watch *w;
	char *bytes;

	if (watch_is_there(c, db, key))
		return STATUS_OK;
	if (c->watch_count == REDIS_WATCH_KEYS)
		return STATUS_LIMIT;
	w = mem_zalloc(sizeof(*w) + key.len);
	if (!w)
		return STATUS_NOMEM;
	bytes = (char *)(w + 1);
	memcpy(bytes, key.ptr, key.len);
	w->client = c;
	w->db = db;
	w->key = str_of(bytes, key.len);
	w->existed = item->type != TIMED_LEAF;
	w->expires_ms = w->existed ? item->expires_ms : 0;
	pthread_mutex_lock(&r->watch_lock);
	w->next = c->watches;
	c->watches = w;
	c->watch_count++;
	w->next_same = *slot;
	w->link_same = slot;
	if (*slot)
		(*slot)->link_same = &w->next_same;
	*slot = w;
	atomic_fetch_add(&r->watch_count, 1);
	pthread_mutex_unlock(&r->watch_lock);
	return STATUS_OK;
}

void
effects_unwatch_all(struct client *c)
{
	struct redis *r = c->redis;
	struct watch *w;

	pthread_mutex_lock(&r->watch_lock);
	w = c->watches;
	c->watches = NULL;
	c->watch_count = 0;
	c->watch_dirty = false;
	while (w) {
		struct watch *next = w->next;

		*w->link_same = w->next_same;
		if (w->next_same)
			w->next_same->link_same = w->link_same;
		atomic_fetch_sub(&r->watch_count, 1);
		mem_free(w);
		w = next;
	}
	pthread_mutex_unlock(&r->watch_lock);
}

void
effects_touch(struct redis *r, unsigned db, const struct str *key)
{
	if (!atomic_load_explicit(&r->watch_count, memory_order_acquire))
		return;
	pthread_mutex_lock(&r->watch_lock);
	if (key) {
		for (struct watch *w = *watch_slot(r, db, *key); w; w = w->next_same)
			if (watch_is_of(w, db, *key))
				w->client->watch_dirty = true;
	} else {
		for (size_t i = 0; i < REDIS_WATCH_SLOTS; i++)
			for (struct watch *w = r->watches[i]; w; w = w->next_same)
				if (w->db == db && w->existed)
					w->client->watch_dirty = true;
	}
	pthread_mutex_unlock(&r->watch_lock);
}

void
effects_swapped(struct redis *r, unsigned db)
{
	if (!atomic_load_explicit(&r->watch_count, memory_order_acquire))
		return;
	pthread_mutex_lock(&r->watch_lock);
	for (size_t i = 0; i < REDIS_WATCH_SLOTS; i++) {
		for (struct watch *w = r->watches[i]; w; w = w->next_same) {
			if (w->db != db)
				continue;
			w->swapped = true;
			w->client->watch_dirty |= w->existed;
		}
	}
	pthread_mutex_unlock(&r->watch_lock);
}

/* A watched key that was not there may have come with another database. */
static enum status
watch_has_come(struct txn *x, const struct watch *w, bool *ret)
{
	static const struct command looks = { .name = "watch" };
	struct call call = { .redis = x->redis, .command = &looks, .x = x, .db = w->db };
	struct timed_item *item;

	*ret = false;
	if (!w->swapped)
		return STATUS_OK;
	TRY(txn_item(&call, w->key, &item));
	*ret = item->type != TIMED_LEAF;
	return STATUS_OK;
}

/* A watched key that was there and has expired meanwhile has changed, too. */
static enum status
watch_has_expired(struct txn *x, const struct watch *w, bool *ret)
{
	static const struct command reads = { .name = "watch", .flags = COMMAND_READONLY };
	struct call call = { .redis = x->redis, .command = &reads, .x = x, .db = w->db };
	uint64_t now;

	*ret = false;
	if (!w->expires_ms)
		return STATUS_OK;
	TRY(txn_now_ms(&call, &now));
	*ret = now >= w->expires_ms;
	return STATUS_OK;
}

enum status
effects_watches_hold(struct redis *r, struct client *c, struct txn *x, bool *ret)
{
	bool expired, come;

	pthread_mutex_lock(&r->watch_lock);
	*ret = !c->watch_dirty;
	pthread_mutex_unlock(&r->watch_lock);
	for (const struct watch *w = c->watches; w && *ret; w = w->next) {
		TRY(watch_has_expired(x, w, &expired));
		TRY(watch_has_come(x, w, &come));
		*ret = !expired && !come;
	}
	return STATUS_OK;
}
