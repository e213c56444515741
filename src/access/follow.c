#include "access/follow.h"

#include <assert.h>

#include "access/auth_int.h"
#include "access/people.h"
#include "base/mem.h"
#include "catalog/chores.h"

enum {
	NEWS_KEY_BYTES = 4096, /* of the arena that a look reads in */
};

struct people_news {
	struct kv_store *store;
	struct settings_live *live;
	_Atomic uint64_t count;

	struct {
		void (*changed)(void *arg);
		void *arg;
	} listeners[FOLLOW_LISTENERS];
	size_t listener_count;

	/* The chore's: what it has found last. */
	struct settings_held *cached;
	bool looked;
	uint64_t generation;
	uint8_t stamp[KV_VERSIONSTAMP_BYTES];
	size_t stamp_len; /* 0: no person was ever written */
};

/* ---- The news ---- */

struct people_news *
people_news_new(struct kv_store *store, struct settings_live *live)
{
	struct people_news *news = mem_zalloc(sizeof(*news));

	if (!news)
		return NULL;
	news->store = store;
	news->live = live;
	news->cached = settings_live_hold(live);
	atomic_store(&news->count, 1);
	return news;
}

void
people_news_free(struct people_news *news)
{
	if (!news)
		return;
	settings_held_unref(news->cached);
	mem_free(news);
}

void
people_news_listen(struct people_news *news, void (*changed)(void *arg), void *arg)
{
	assert(news->listener_count < FOLLOW_LISTENERS);
	news->listeners[news->listener_count].changed = changed;
	news->listeners[news->listener_count++].arg = arg;
}

uint64_t
people_news_count(const struct people_news *news)
{
	return news ? atomic_load_explicit(&news->count, memory_order_acquire) : 0;
}

void
people_news_changed(struct people_news *news)
{
	if (!news)
		return;
	atomic_fetch_add(&news->count, 1);
	for (size_t i = 0; i < news->listener_count; i++)
		news->listeners[i].changed(news->listeners[i].arg);
}

struct stamp_read {
	uint8_t stamp[KV_VERSIONSTAMP_BYTES];
	size_t len;
	struct arena *arena;
};

static enum status
stamp_body(struct kv_tx *tx, void *arg)
{
	struct stamp_read *r = arg;
	struct kv_future *f;
	struct str key, value;

	arena_clear(r->arena);
	TRY(person_watch_key(r->arena, &key));
	f = kv_get(tx, key, KV_SNAPSHOT);
	TRY(kv_future_wait(f));
	r->len = 0;
	if (kv_future_value(f, &value)) {
		if (value.len > sizeof(r->stamp))
			return STATUS_CORRUPT;
		memcpy(r->stamp, value.ptr, value.len);
		r->len = value.len;
	}
	return STATUS_OK;
}

/* Counts a change if what was read is other than before. */
static void
news_compare(struct people_news *news, uint64_t generation, const struct stamp_read *r)
{
	bool same = news->looked && news->generation == generation && news->stamp_len == r->len &&
		    memcmp(news->stamp, r->stamp, r->len) == 0;

	assert(r->len <= sizeof(news->stamp));
	if (same)
		return;
	news->generation = generation;
	memcpy(news->stamp, r->stamp, r->len);
	news->stamp_len = r->len;
	/* What was there before the first look may have changed since somebody has logged in. */
	news->looked = true;
	people_news_changed(news);
}

/* A turn of the chore. In front of a store that others write to, it also takes their settings. */
static enum status
news_look(void *arg, struct chore_turn *turn, struct err *err)
{
	struct people_news *news = arg;
	struct stamp_read r = { .arena = arena_new(NEWS_KEY_BYTES) };
	struct settings_held *held;
	struct kv_tx *tx;
	enum status status;
	uint64_t generation;

	(void)turn;
	if (!r.arena)
		return STATUS_NOMEM;
	status = settings_live_take(news->live, &news->cached, KV_TX_READ_ONLY, &held, &tx, err);
	generation = held->generation;
	settings_held_unref(held);
	/* That transaction has its read version already. */
	if (status == STATUS_OK && (!tx || stamp_body(tx, &r) != STATUS_OK))
		status = kv_run_read(news->store, stamp_body, &r, err);
	kv_tx_free(tx);
	if (status == STATUS_OK)
		news_compare(news, generation, &r);
	arena_free(r.arena);
	return status;
}

void
people_news_chores_add(struct people_news *news, struct chores *chores)
{
	chores_add(chores, &(struct chore){
				   .name = "follow_people",
				   .run = news_look,
				   .arg = news,
				   .thread = CHORE_QUICK,
				   .unlisted = true,
				   .pause_ms = FOLLOW_LOOK_MS,
			   });
}

/* ---- Somebody on a connection ---- */

static bool
roles_are_equal(const struct auth_user *a, const struct auth_user *b)
{
	if (a->admin != b->admin || a->roles_count != b->roles_count)
		return false;
	for (size_t i = 0; i < a->roles_count; i++)
		if (!str_eq(a->roles[i], b->roles[i]))
			return false;
	return true;
}

/* `*ret_known` false: the store cannot tell now. */
static enum follow_result
user_look(const struct auth *a, const struct auth_client *client, const struct auth_user *user,
	  struct arena *arena, struct auth_user *ret, bool *ret_known)
{
	struct auth_who who;
	enum status status;

	*ret_known = true;
	if (!auth_has_admins(a) && (user->admin || !client->door.len))
		return user->admin ? FOLLOW_SAME : FOLLOW_GONE;
	if (!user->name.len)
		return FOLLOW_GONE;
	status = auth_find(a, user->name, client, arena, &who, NULL);
	if (status == STATUS_NOT_FOUND || status == STATUS_CORRUPT || status == STATUS_NEWER)
		return FOLLOW_GONE;
	if (status == STATUS_OK)
		status = auth_become(&who, arena, user->method, ret);
	*ret_known = status == STATUS_OK;
	if (status != STATUS_OK)
		return FOLLOW_SAME;
	if (memcmp(ret->key, user->key, sizeof(ret->key)) != 0)
		return FOLLOW_GONE;
	return roles_are_equal(ret, user) ? FOLLOW_SAME : FOLLOW_CHANGED;
}

enum follow_result
follow_look(struct follow *f, const struct people_news *news, struct settings_live *live,
	    const struct auth_client *client, const struct auth_user *user, struct arena *arena,
	    struct auth_user *ret)
{
	/* Before the look: what changes meanwhile is looked at once more. */
	uint64_t count = people_news_count(news);
	struct settings_held *held = settings_live_hold(live);
	enum follow_result result;
	bool known;

	assert(user->method != AUTH_METHOD_JWT && user->method != AUTH_METHOD_PROXY);
	result = user_look(people_of(held), client, user, arena, ret, &known);
	settings_held_unref(held);
	/* Counts only ascend, so a change that was seen is never taken for a new one. */
	assert(count >= f->seen);
	if (known)
		f->seen = count;
	return result;
}
