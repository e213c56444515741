/*
 * WATCH: what a client has seen of keys. Whether they are unchanged is read in the transaction of
 * its EXEC: an item's version differs after every transaction that has changed it, whichever
 * process ran it. So nothing has to be told to anybody when a key changes.
 */
#include "base/mem.h"
#include "door/redis/txn/effects.h"
#include "door/redis/txn/redis_int.h"

static bool
watch_is_there(const struct client *c, unsigned db, struct str key)
{
	for (const struct watch *w = c->watches; w; w = w->next)
		if (w->db == db && str_eq(w->key, key))
			return true;
	return false;
}

static size_t
watch_bytes(struct str key, struct str version)
{
	return sizeof(struct watch) + key.len + version.len;
}

void
effects_watch(struct client *c, unsigned db, struct str key, struct str version)
{
	size_t size = watch_bytes(key, version);
	struct watch *w = NULL;
	char *bytes;

	if (watch_is_there(c, db, key))
		return;
	if (budget_use(c->part, size)) {
		w = mem_zalloc(size);
		if (!w)
			budget_unuse(c->part, size);
	}
	if (!w) {
		c->watch_lost = true;
		return;
	}
	bytes = (char *)(w + 1);
	memcpy(bytes, key.ptr, key.len);
	if (version.len)
		memcpy(bytes + key.len, version.ptr, version.len);
	w->db = db;
	w->key = str_of(bytes, key.len);
	w->version = str_of(bytes + key.len, version.len);
	w->next = c->watches;
	c->watches = w;
	c->watch_count++;
}

void
effects_unwatch_all(struct client *c)
{
	while (c->watches) {
		struct watch *next = c->watches->next;

		budget_unuse(c->part, watch_bytes(c->watches->key, c->watches->version));
		mem_free(c->watches);
		c->watches = next;
	}
	c->watch_count = 0;
	c->watch_lost = false;
}

enum status
effects_watches_hold(struct redis *r, struct client *c, struct txn *x, bool *ret)
{
	static const struct command looks = { .name = "watch" };
	struct call call = { .redis = r, .command = &looks, .client = c, .x = x };
	size_t count = c->watch_count, i = 0;
	struct timed_item **items = arena_alloc(x->arena, (count + 1) * sizeof(*items));
	struct str *versions = arena_alloc(x->arena, (count + 1) * sizeof(*versions));

	*ret = !c->watch_lost;
	if (!items || !versions)
		return STATUS_LIMIT;
	for (const struct watch *w = c->watches; w; w = w->next)
		TRY(txn_ask(&call, w->db, w->key));
	for (const struct watch *w = c->watches; w; w = w->next)
		TRY(txn_item_of(&call, w->db, w->key, &items[i++]));
	TRY(txn_versions(&call, items, count, versions));
	i = 0;
	for (const struct watch *w = c->watches; w; w = w->next)
		*ret &= str_eq(w->version, versions[i++]);
	return STATUS_OK;
}
