#include "door/redis/txn/others.h"

#include <assert.h>
#include <pthread.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/thread.h"
#include "catalog/chores.h"
#include "catalog/events.h"
#include "door/redis/txn/effects.h"
#include "door/redis/txn/messages.h"
#include "door/redis/txn/notify.h"
#include "door/redis/txn/pubsub.h"
#include "door/redis/txn/redis_int.h"
#include "door/redis/txn/trackers.h"

enum {
	WAITED_BATCH = 256,    /* keys that one transaction begins to watch */
	FAILED_PAUSE_MS = 200, /* before the store is asked again after a failure */
	OTHERS_ARENA_BYTES = 64 * 1024 * 1024,
	CLEAR_EVERY_MS = 2000,
	CLEAR_PLACES = 1 + MESSAGES_KEPT_MS / CLEAR_EVERY_MS,
};

/* Where the log ended at some time. */
struct others_mark {
	uint64_t at_ns;
	struct messages_place end;
};

struct others {
	struct redis *redis;
	struct kv_store *store;
	pthread_t thread;

	/* Owns what others tell the thread, and it them. The store is asked without it. */
	pthread_mutex_t lock;
	bool stops;
	bool listens;                /* the thread alone ends that */
	struct messages_place place; /* the thread's while it listens */
	uint64_t tracker;            /* this process's record (trackers.h); 0: it has none */

	/* The thread's. */
	struct arena *arena;
	struct kv_future *shards[MESSAGES_SHARDS]; /* watches of the log */
	struct kv_future *dbs[REDIS_DATABASES];    /* of the names of databases */
	bool failed;
	bool untold;          /* the record was gone: nobody may have told of changes meanwhile */
	uint64_t beat_ns;     /* when the record is counted up next */
	uint64_t no_track_ns; /* since when no client tracks; 0: one does */

	/* The chore's. */
	struct others_mark marks[CLEAR_PLACES]; /* the oldest first */
	size_t marks_count;
	struct messages_place cleared;
	struct trackers_seen seen;
};

static void
watch_drop(struct kv_future **watch)
{
	kv_future_free(*watch);
	*watch = NULL;
}

/* True if the watch has completed. */
static bool
watch_is_over(struct others *o, struct kv_future *watch)
{
	if (!watch || !kv_future_ready(watch))
		return false;
	if (kv_future_wait(watch) != STATUS_OK)
		o->failed = true; /* it was lost; after a pause it is made again */
	return true;
}

/* True if the watch has completed. It is dropped then. */
static bool
watch_take(struct others *o, struct kv_future **watch)
{
	if (!watch_is_over(o, *watch))
		return false;
	watch_drop(watch);
	return true;
}

/* Commits a transaction that has only read and watched. */
static enum status
watches_commit(struct kv_tx *tx)
{
	struct kv_future *commit = kv_commit(tx);
	enum status status = kv_future_wait(commit);

	kv_future_free(commit);
	return status;
}

/* ---- The thread: watching keys ---- */

/*
 * What is to be freed when `blocked_lock` has been given back: others wait for that one, and to
 * free a watch takes the store's time.
 */
struct waited_dropped {
	struct waited *stale;   /* keys with a watch that is over; by `next_stale` */
	struct waited *removed; /* keys that are in no slot any more; by `next` */
};

static void
watch_set_aside(struct waited_dropped *dropped, struct waited *w)
{
	w->settled = false;
	if (!w->watches[0])
		return;
	assert(!w->is_stale);
	w->is_stale = true;
	for (size_t i = 0; i < TIMED_WATCHES; i++) {
		w->stale[i] = w->watches[i];
		w->watches[i] = NULL;
	}
	w->next_stale = dropped->stale;
	dropped->stale = w;
}

static void
waited_free_dropped(struct waited_dropped *dropped)
{
	for (struct waited *w = dropped->stale; w; w = w->next_stale) {
		for (size_t i = 0; i < TIMED_WATCHES; i++)
			watch_drop(&w->stale[i]);
		w->is_stale = false;
	}
	while (dropped->removed) {
		struct waited *next = dropped->removed->next;

		mem_free(dropped->removed);
		dropped->removed = next;
	}
}

/* True if one of the key's watches has completed. */
static bool
waited_has_changed(struct others *o, struct waited *w)
{
	bool any = false;

	for (size_t i = 0; i < TIMED_WATCHES; i++)
		any |= watch_is_over(o, w->watches[i]);
	return any;
}

/*
 * Takes out what has changed, and drops keys that nobody waits for: those that would have to be
 * watched anew, or all of them where there are many. Returns keys to be watched, a batch of them.
 */
static struct waited *
waited_collect(struct others *o, struct waited_dropped *dropped)
{
	struct waited_keys *keys = &o->redis->waited;
	bool many = keys->count > REDIS_WAITED_KEYS / 2;
	struct waited *batch = NULL;
	size_t count = 0;

	for (size_t i = 0; i < WAITED_SLOTS; i++) {
		for (struct waited **at = &keys->slots[i]; *at;) {
			struct waited *w = *at;

			if (waited_has_changed(o, w))
				watch_set_aside(dropped, w);
			if (!w->clients && (many || !w->settled)) {
				*at = w->next;
				watch_set_aside(dropped, w);
				w->next = dropped->removed;
				dropped->removed = w;
				keys->count--;
				continue;
			}
			if (!w->settled && count < WAITED_BATCH) {
				w->batch = batch;
				batch = w;
				count++;
			}
			at = &w->next;
		}
	}
	return batch;
}

/* The databases that a transaction has opened. */
struct waited_dbs {
	bool known[REDIS_DATABASES];
	struct catalog_db *dbs[REDIS_DATABASES]; /* NULL: there is none */
	struct kv_future *watches[REDIS_DATABASES];
};

static void
waited_dbs_close(struct waited_dbs *d)
{
	for (size_t i = 0; i < REDIS_DATABASES; i++) {
		catalog_db_unref(d->dbs[i]);
		watch_drop(&d->watches[i]);
	}
}

static enum status
waited_open_db(struct others *o, struct kv_tx *tx, unsigned db, struct waited_dbs *d)
{
	struct err ignored = { 0 };
	char text[TXN_NAME_BYTES];
	struct str name = txn_db_name(db, text);
	enum status status;

	if (d->known[db])
		return STATUS_OK;
	if (!o->dbs[db])
		TRY(catalog_watch_name(tx, CATALOG_SPACE_REDIS, name, &d->watches[db]));
	status = catalog_open_bare(tx, NULL, CATALOG_SPACE_REDIS, name, &d->dbs[db], &ignored);
	if (status != STATUS_NOT_FOUND)
		TRY(status);
	d->known[db] = true;
	return STATUS_OK;
}

static enum status
waited_watch(struct others *o, struct kv_tx *tx, struct waited *batch, struct waited_dbs *d)
{
	struct err ignored = { 0 };

	for (struct waited *w = batch; w; w = w->batch) {
		struct timed_item item;
		struct timed t;

		TRY(waited_open_db(o, tx, w->db, d));
		if (!d->dbs[w->db])
			continue;
		timed_init(&t, tx, d->dbs[w->db], NULL, &ignored);
		TRY(timed_item_open(&t, w->key, o->arena, &item));
		TRY(timed_item_watch(&item, w->watches));
	}
	return watches_commit(tx);
}

/* The keys are watched: whatever came to them before, clients see when they look. */
static void
waited_settle(struct others *o, struct waited *batch, struct waited_dbs *d)
{
	for (size_t i = 0; i < REDIS_DATABASES; i++) {
		if (!d->watches[i])
			continue;
		o->dbs[i] = d->watches[i];
		d->watches[i] = NULL;
	}
	for (struct waited *w = batch; w; w = w->batch) {
		w->settled = true;
		effects_ready(o->redis, w->db, w->key);
	}
}

static void
others_watch_keys(struct others *o, struct waited *batch)
{
	struct kv_tx *tx;
	enum status status = kv_begin(o->store, KV_TX_READ_ONLY, &tx);

	if (status != STATUS_OK) {
		o->failed = true;
		return;
	}
	do {
		struct waited_dbs dbs = { 0 };

		arena_clear(o->arena);
		status = waited_watch(o, tx, batch, &dbs);
		if (status == STATUS_OK) {
			waited_settle(o, batch, &dbs);
			waited_dbs_close(&dbs);
			break;
		}
		for (struct waited *w = batch; w; w = w->batch)
			for (size_t i = 0; i < TIMED_WATCHES; i++)
				watch_drop(&w->watches[i]);
		waited_dbs_close(&dbs);
	} while (kv_on_error(tx, status) == STATUS_OK);
	o->failed |= status != STATUS_OK;
	kv_tx_free(tx);
}

/* The databases whose names stand for other ones: their keys are other ones in the store. */
static bool
others_check_dbs(struct others *o, bool changed[static REDIS_DATABASES])
{
	bool any = false;

	for (unsigned db = 0; db < REDIS_DATABASES; db++)
		any |= changed[db] = watch_take(o, &o->dbs[db]);
	return any;
}

static void
waited_unsettle(struct others *o, const bool changed[static REDIS_DATABASES],
		struct waited_dropped *dropped)
{
	for (size_t i = 0; i < WAITED_SLOTS; i++)
		for (struct waited *w = o->redis->waited.slots[i]; w; w = w->next)
			if (changed[w->db])
				watch_set_aside(dropped, w);
}

static void
others_turn_keys(struct others *o)
{
	struct waited *batch;

	do {
		bool changed[REDIS_DATABASES];
		bool any = others_check_dbs(o, changed);
		struct waited_dropped dropped = { NULL, NULL };

		pthread_mutex_lock(&o->redis->blocked_lock);
		if (any)
			waited_unsettle(o, changed, &dropped);
		batch = waited_collect(o, &dropped);
		pthread_mutex_unlock(&o->redis->blocked_lock);
		waited_free_dropped(&dropped);
		if (batch)
			others_watch_keys(o, batch);
	} while (batch && !o->failed);
}

/* ---- The thread: reading messages ---- */

/* Tells the clients that track of what another process has changed. */
static void
others_deliver_keys(struct others *o, const struct messages_message *m)
{
	struct arena_mark mark = arena_mark(o->arena);
	struct effect *effects = NULL;
	struct str *keys;
	size_t count;

	if (!tracking_is_on(o->redis))
		return;
	if (messages_read_keys(m, o->arena, &keys, &count) == STATUS_OK && count)
		effects = arena_zalloc(o->arena, count * sizeof(*effects));
	for (size_t i = 0; effects && i < count; i++) {
		effects[i] = (struct effect){ .kind = EFFECT_EVENT,
					      .changes = true,
					      .key = keys[i] };
		effects[i].next = i + 1 < count ? &effects[i + 1] : NULL;
	}
	if (effects)
		tracking_happen(o->redis, effects);
	else
		tracking_doubt(o->redis);
	arena_reset(o->arena, mark);
}

static void
others_deliver(struct others *o, const struct messages_page *page)
{
	if (page->lost) {
		tracking_doubt(o->redis);
		/* What comes behind the gap is not for those who have not been told of it. */
		log_event(LOG_LEVEL_WARN, "redis_messages_lost",
			  "text=\"subscribers are closed, since messages were cleared before they "
			  "were read\"");
		pubsub_close_all(o->redis);
		return;
	}
	for (size_t i = 0; i < page->count; i++) {
		const struct messages_message *m = &page->messages[i];

		/* What this process has published it has given to its clients itself. */
		if (m->origin == o->redis->origin)
			continue;
		if (m->kind == MESSAGES_KEYS)
			others_deliver_keys(o, m);
		else
			(void)effects_publish(o->redis, m->kind == MESSAGES_SPUBLISH, m->channel,
					      m->message);
	}
}

static enum status
others_read_page(struct others *o, struct kv_tx *tx, struct messages_page *page, struct err *err)
{
	for (unsigned i = 0; i < MESSAGES_SHARDS; i++)
		if (!o->shards[i])
			TRY(messages_watch(tx, i, &o->shards[i]));
	TRY(messages_read(tx, &o->place, o->arena, page, err));
	return watches_commit(tx);
}

/* Reads a page, and watches for what comes after it. False: there is no more, or it has failed. */
static bool
others_read(struct others *o, struct kv_tx *tx)
{
	struct messages_page page = { 0 };
	struct err err = { 0 };
	enum status status;
	bool had[MESSAGES_SHARDS];

	for (unsigned i = 0; i < MESSAGES_SHARDS; i++)
		had[i] = o->shards[i] != NULL;
	do {
		arena_clear(o->arena);
		status = others_read_page(o, tx, &page, &err);
		for (unsigned i = 0; status != STATUS_OK && i < MESSAGES_SHARDS; i++)
			if (!had[i])
				watch_drop(&o->shards[i]);
	} while (status != STATUS_OK && kv_on_error(tx, status) == STATUS_OK);
	if (status != STATUS_OK) {
		log_event(LOG_LEVEL_WARN, "redis_messages_failed", "status=%s text=\"%s\"",
			  status_name(status), err.text);
		o->failed = true;
		return false;
	}
	others_deliver(o, &page);
	o->place = page.end;
	kv_tx_reset(tx);
	return page.more;
}

static void
others_turn_messages(struct others *o)
{
	bool due = false, listens;
	struct kv_tx *tx;

	pthread_mutex_lock(&o->lock);
	if (o->listens && !tracking_is_on(o->redis) && !pubsub_has_subscribers(o->redis))
		o->listens = false;
	listens = o->listens;
	pthread_mutex_unlock(&o->lock);
	for (unsigned i = 0; i < MESSAGES_SHARDS; i++) {
		if (!listens)
			watch_drop(&o->shards[i]);
		else
			due |= watch_take(o, &o->shards[i]) || !o->shards[i];
	}
	if (!due)
		return;
	if (kv_begin(o->store, KV_TX_READ_ONLY, &tx) != STATUS_OK) {
		o->failed = true;
		return;
	}
	while (others_read(o, tx))
		;
	kv_tx_free(tx);
}

static enum status
listen_body(struct kv_tx *tx, void *place)
{
	return messages_end(tx, place);
}

enum status
others_listen(struct others *o, struct err *err)
{
	struct messages_place place;
	bool listens;

	pthread_mutex_lock(&o->lock);
	listens = o->listens;
	pthread_mutex_unlock(&o->lock);
	if (listens)
		return STATUS_OK;
	TRY(kv_run_read(o->store, listen_body, &place, err));
	pthread_mutex_lock(&o->lock);
	if (!o->listens)
		o->place = place;
	o->listens = true;
	pthread_mutex_unlock(&o->lock);
	bell_ring(&o->redis->waited.bell);
	return STATUS_OK;
}

/* ---- Clients that track ---- */

static enum status
tracker_put_body(struct kv_tx *tx, void *id)
{
	return trackers_put(tx, *(const uint64_t *)id);
}

static enum status
tracker_remove_body(struct kv_tx *tx, void *id)
{
	return trackers_remove(tx, *(const uint64_t *)id);
}

static enum status
tracker_beat_body(struct kv_tx *tx, void *id)
{
	return trackers_beat(tx, *(const uint64_t *)id);
}

/*
 * Puts a record, unless this process has one. Two threads may do so at once: then one record does,
 * and the chore removes the other, which nobody counts up.
 */
static enum status
others_put_tracker(struct others *o, struct err *err)
{
	uint64_t id;
	bool has;

	pthread_mutex_lock(&o->lock);
	has = o->tracker != 0;
	pthread_mutex_unlock(&o->lock);
	if (has)
		return STATUS_OK;
	do
		rand_bytes(&id, sizeof(id));
	while (!id);
	TRY(kv_run(o->store, tracker_put_body, &id, NULL, err));
	pthread_mutex_lock(&o->lock);
	if (!o->tracker)
		o->tracker = id;
	pthread_mutex_unlock(&o->lock);
	bell_ring(&o->redis->waited.bell);
	return STATUS_OK;
}

enum status
others_track(struct others *o, struct err *err)
{
	/*
	 * The client is among those that track, so the thread neither takes the record back nor
	 * stops to read. What the client reads from here on lies behind the record, and what
	 * changes it behind the place.
	 */
	TRY(others_put_tracker(o, err));
	return others_listen(o, err);
}

/* Takes the record from this process if no client has tracked for long; 0: one does. */
static uint64_t
tracker_take_idle(struct others *o, uint64_t now_ns)
{
	uint64_t id = 0;

	pthread_mutex_lock(&o->lock);
	if (tracking_is_on(o->redis) || !o->tracker)
		o->no_track_ns = 0;
	else if (!o->no_track_ns)
		o->no_track_ns = now_ns;
	if (o->no_track_ns && now_ns - o->no_track_ns >= TRACKERS_IDLE_MS * CLOCK_NS_PER_MS) {
		id = o->tracker;
		o->tracker = 0;
	}
	pthread_mutex_unlock(&o->lock);
	return id;
}

/* Forgets the record, which somebody has removed. */
static void
tracker_is_gone(struct others *o, uint64_t id)
{
	pthread_mutex_lock(&o->lock);
	if (o->tracker == id)
		o->tracker = 0;
	pthread_mutex_unlock(&o->lock);
	o->untold = true;
}

/* Keeps this process's record, or removes it. */
static void
others_turn_tracker(struct others *o)
{
	uint64_t now_ns = clock_mono_ns(), id = tracker_take_idle(o, now_ns);
	struct err err = { 0 };
	enum status status;

	/* What fails here leaves a record that the chore removes. */
	if (id)
		(void)!kv_run(o->store, tracker_remove_body, &id, NULL, NULL);
	pthread_mutex_lock(&o->lock);
	id = o->tracker;
	pthread_mutex_unlock(&o->lock);
	if (id && now_ns >= o->beat_ns) {
		status = kv_run(o->store, tracker_beat_body, &id, NULL, &err);
		o->beat_ns = now_ns + TRACKERS_BEAT_MS * CLOCK_NS_PER_MS;
		if (status == STATUS_NOT_FOUND)
			tracker_is_gone(o, id);
	}
	if (!o->untold)
		return;
	/* The record first: what is read after it is told of; what was read before is doubted. */
	if (others_put_tracker(o, &err) != STATUS_OK) {
		o->failed = true;
		return;
	}
	log_event(LOG_LEVEL_WARN, "redis_tracking_interrupted",
		  "text=\"clients that track are told to drop all that they keep\"");
	tracking_doubt(o->redis);
	o->untold = false;
}

/* ---- The thread: waiting ---- */

static void
events_add(struct event **events, size_t *count, struct kv_future *watch, bool *ready)
{
	struct event *e = watch ? kv_future_event(watch) : NULL;

	if (e)
		events[(*count)++] = e;
	else if (watch)
		*ready = true;
}

/* The events of all watches, behind room for the bell's. NULL: out of memory. */
static struct event **
others_events(struct others *o, size_t *count, bool *ready)
{
	struct waited_keys *keys = &o->redis->waited;
	struct event **events;

	*count = 1;
	pthread_mutex_lock(&o->redis->blocked_lock);
	events = mem_alloc((1 + TIMED_WATCHES * keys->count + MESSAGES_SHARDS + REDIS_DATABASES) *
			   sizeof(*events));
	for (size_t i = 0; events && i < WAITED_SLOTS; i++)
		for (struct waited *w = keys->slots[i]; w; w = w->next)
			for (size_t j = 0; j < TIMED_WATCHES; j++)
				events_add(events, count, w->watches[j], ready);
	pthread_mutex_unlock(&o->redis->blocked_lock);
	for (size_t i = 0; events && i < MESSAGES_SHARDS; i++)
		events_add(events, count, o->shards[i], ready);
	for (size_t i = 0; events && i < REDIS_DATABASES; i++)
		events_add(events, count, o->dbs[i], ready);
	return events;
}

static uint64_t
others_beat_deadline(struct others *o)
{
	bool has;

	pthread_mutex_lock(&o->lock);
	has = o->tracker != 0;
	pthread_mutex_unlock(&o->lock);
	return has ? o->beat_ns : WAIT_FOREVER;
}

/* Waits until there is something to do. False: the thread is to end. */
static bool
others_rest(struct others *o)
{
	uint64_t deadline = others_beat_deadline(o);
	struct event *bell_alone, **events;
	bool ready = false, goes_on;
	size_t count;

	events = others_events(o, &count, &ready);
	if (o->failed || !events) {
		/* What has failed is tried again after a pause. */
		count = 1;
		deadline = clock_after_ms(FAILED_PAUSE_MS);
	} else if (ready) {
		count = 1;
		deadline = 0;
	}
	bell_wait(&o->redis->waited.bell, events ? events : &bell_alone, count, deadline);
	mem_free(events);
	o->failed = false;
	pthread_mutex_lock(&o->lock);
	goes_on = !o->stops;
	pthread_mutex_unlock(&o->lock);
	return goes_on;
}

static void *
others_run(void *arg)
{
	struct others *o = arg;

	thread_set_name("redis others");
	do {
		others_turn_keys(o);
		others_turn_tracker(o);
		others_turn_messages(o);
	} while (others_rest(o));
	return NULL;
}

/* ---- Its life ---- */

enum status
others_new(struct redis *r, struct others **ret)
{
	struct others *o = mem_zalloc(sizeof(*o));

	if (!o)
		return STATUS_NOMEM;
	o->redis = r;
	o->store = r->config.store;
	o->arena = arena_new(OTHERS_ARENA_BYTES);
	pthread_mutex_init(&o->lock, NULL);
	if (o->arena && pthread_create(&o->thread, NULL, others_run, o) == 0) {
		*ret = o;
		return STATUS_OK;
	}
	arena_free(o->arena);
	pthread_mutex_destroy(&o->lock);
	mem_free(o);
	return STATUS_LIMIT;
}

void
others_free(struct others *o)
{
	if (!o)
		return;
	pthread_mutex_lock(&o->lock);
	o->stops = true;
	pthread_mutex_unlock(&o->lock);
	bell_ring(&o->redis->waited.bell);
	(void)pthread_join(o->thread, NULL);
	for (size_t i = 0; i < MESSAGES_SHARDS; i++)
		watch_drop(&o->shards[i]);
	for (size_t i = 0; i < REDIS_DATABASES; i++)
		watch_drop(&o->dbs[i]);
	arena_free(o->arena);
	pthread_mutex_destroy(&o->lock);
	mem_free(o);
}

/* ---- Telling ---- */

struct tell {
	struct others *o;
	const struct effect *first;
	struct kv_tx *tx;
	struct messages_writer writer;
	struct err err;
};

static enum status
tell_one(void *arg, struct str channel, struct str message)
{
	struct tell *t = arg;

	return messages_put(t->tx, &t->writer,
			    &(struct messages_message){ .origin = MESSAGES_NOBODY,
							.channel = channel,
							.message = message },
			    &t->err);
}

static enum status
tell_body(struct kv_tx *tx, void *arg)
{
	struct tell *t = arg;

	t->tx = tx;
	t->writer = (struct messages_writer){ 0 };
	for (const struct effect *e = t->first; e; e = e->next)
		TRY(notify_each(t->o->redis, e, tell_one, t));
	return STATUS_OK;
}

void
others_tell(struct others *o, const struct effect *first)
{
	struct tell t = { .o = o, .first = first };
	unsigned wanted = atomic_load_explicit(&o->redis->events, memory_order_relaxed);
	unsigned classes = 0;

	for (const struct effect *e = first; e; e = e->next)
		classes |= e->class;
	if (wanted & classes)
		(void)!kv_run(o->store, tell_body, &t, NULL, NULL);
}

/* ---- Clearing ---- */

static enum status
clear_body(struct kv_tx *tx, void *place)
{
	return messages_clear(tx, place);
}

static enum status
trackers_list_body(struct kv_tx *tx, void *listed)
{
	return trackers_list(tx, listed);
}

static enum status
trackers_dead_body(struct kv_tx *tx, void *dead)
{
	return trackers_remove_dead(tx, dead);
}

/* Removes the records of processes that have died. */
static enum status
others_clear_trackers(struct others *o, struct err *err)
{
	struct trackers_record dead;
	struct trackers_seen listed;
	uint64_t now_ns;

	TRY(kv_run_read(o->store, trackers_list_body, &listed, err));
	now_ns = clock_mono_ns();
	trackers_look(&o->seen, &listed, now_ns);
	while (trackers_next_dead(&o->seen, now_ns, &dead))
		TRY(kv_run(o->store, trackers_dead_body, &dead, NULL, err));
	return STATUS_OK;
}

/*
 * Remembers where the log ends now, and clears what lies before a place that was its end
 * MESSAGES_KEPT_MS ago.
 */
static enum status
others_clear(void *arg, struct chore_turn *turn, struct err *err)
{
	struct others *o = arg;
	struct messages_place end, old = { 0 };
	uint64_t now = clock_mono_ns();
	size_t due = 0;

	(void)turn;
	TRY(kv_run_read(o->store, listen_body, &end, err));
	while (due < o->marks_count && now - o->marks[due].at_ns >= MESSAGES_KEPT_MS * 1000000ULL)
		old = o->marks[due++].end;
	if (messages_place_cmp(&old, &o->cleared) > 0) {
		TRY(kv_run(o->store, clear_body, &old, NULL, err));
		o->cleared = old;
	}
	o->marks_count -= due;
	memmove(o->marks, o->marks + due, o->marks_count * sizeof(*o->marks));
	if (o->marks_count < CLEAR_PLACES)
		o->marks[o->marks_count++] = (struct others_mark){ .at_ns = now, .end = end };
	return others_clear_trackers(o, err);
}

void
others_chores_add(struct others *o, struct chores *chores)
{
	chores_add(chores, &(struct chore){
				   .name = "clear_messages",
				   .run = others_clear,
				   .arg = o,
				   .thread = CHORE_QUICK,
				   .leased = true,
				   .unlisted = true,
				   .pause_ms = CLEAR_EVERY_MS,
			   });
}
