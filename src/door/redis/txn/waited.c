#include "door/redis/txn/waited.h"

#include "base/hash.h"
#include "base/mem.h"
#include "door/redis/txn/redis_config.h"

/* ---- The bell ---- */

void
bell_ring(struct bell *b)
{
	pthread_mutex_lock(&b->lock);
	b->rung = true;
	if (b->waits)
		event_set(&b->event);
	b->waits = false;
	pthread_mutex_unlock(&b->lock);
}

void
bell_wait(struct bell *b, struct event **events, size_t count, uint64_t deadline_ns)
{
	bool begins;

	pthread_mutex_lock(&b->lock);
	begins = !b->rung;
	b->waits = begins;
	if (begins)
		event_init(&b->event);
	pthread_mutex_unlock(&b->lock);
	events[0] = &b->event;
	if (begins)
		(void)event_wait_any(events, count, deadline_ns);
	pthread_mutex_lock(&b->lock);
	b->waits = b->rung = false;
	pthread_mutex_unlock(&b->lock);
}

/* ---- Keys ---- */

void
waited_init(struct waited_keys *keys)
{
	*keys = (struct waited_keys){ 0 };
	pthread_mutex_init(&keys->bell.lock, NULL);
}

void
waited_fini(struct waited_keys *keys)
{
	for (size_t i = 0; i < WAITED_SLOTS; i++) {
		while (keys->slots[i]) {
			struct waited *next = keys->slots[i]->next;

			for (size_t j = 0; j < TIMED_WATCHES; j++)
				kv_future_free(keys->slots[i]->watches[j]);
			mem_free(keys->slots[i]);
			keys->slots[i] = next;
		}
	}
	pthread_mutex_destroy(&keys->bell.lock);
}

static struct waited **
waited_slot(struct waited_keys *keys, unsigned db, struct str key)
{
	return &keys->slots[hash_keyed(db, key) % WAITED_SLOTS];
}

static struct waited *
waited_add(struct waited_keys *keys, unsigned db, struct str key)
{
	struct waited **slot = waited_slot(keys, db, key);
	struct waited *w = mem_zalloc(sizeof(*w) + key.len);
	char *bytes = (char *)(w + 1);

	if (!w)
		return NULL;
	memcpy(bytes, key.ptr, key.len);
	w->db = db;
	w->key = str_of(bytes, key.len);
	w->next = *slot;
	*slot = w;
	keys->count++;
	return w;
}

enum status
waited_take(struct waited_keys *keys, unsigned db, struct str key, struct waited **ret)
{
	struct waited *w = *waited_slot(keys, db, key);

	while (w && (w->db != db || !str_eq(w->key, key)))
		w = w->next;
	if ((!w || !w->clients) && keys->wanted == REDIS_WAITED_KEYS)
		return STATUS_LIMIT;
	if (!w)
		w = waited_add(keys, db, key);
	if (!w)
		return STATUS_NOMEM;
	keys->wanted += !w->clients++;
	*ret = w;
	return STATUS_OK;
}

void
waited_give(struct waited_keys *keys, struct waited *w)
{
	if (w)
		keys->wanted -= !--w->clients;
}
