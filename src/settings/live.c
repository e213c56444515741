#include "settings/live.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"

enum {
	LIVE_ARENA_BYTES = 4 << 20, /* all settings of a store, while they are read */
};

struct settings_live {
	struct kv_store *store;
	const struct settings *started;
	const struct settings_live_ops *ops;
	void *arg;
	pthread_mutex_t lock;        /* guards `held` */
	struct settings_held *held;  /* the newest */
	_Atomic uint64_t generation; /* of `held`, for a look without the lock */
};

/* ---- References ---- */

struct settings_held *
settings_held_ref(struct settings_held *held)
{
	unsigned before = atomic_fetch_add_explicit(&held->refs, 1, memory_order_relaxed);

	assert(before > 0);
	(void)before;
	return held;
}

void
settings_held_unref(struct settings_held *held)
{
	if (!held || atomic_fetch_sub_explicit(&held->refs, 1, memory_order_acq_rel) != 1)
		return;
	if (held->derived)
		held->ops->drop(held->derived);
	settings_free(held->settings);
	mem_free(held);
}

struct settings_held *
settings_live_hold(struct settings_live *live)
{
	struct settings_held *held;

	pthread_mutex_lock(&live->lock);
	held = settings_held_ref(live->held);
	pthread_mutex_unlock(&live->lock);
	return held;
}

uint64_t
settings_live_generation(const struct settings_live *live)
{
	return atomic_load_explicit(&live->generation, memory_order_acquire);
}

/* ---- Making them ---- */

/* Puts the settings of the store over those that the server was started with. */
static enum status
settings_overlay(struct settings *settings, const struct catalog_settings *stored, struct err *err)
{
	for (size_t i = 0; i < stored->count; i++) {
		const struct catalog_setting *item = &stored->items[i];
		enum status status = settings_set_live(settings, item->section, item->name,
						       item->text, err);

		/* The store may have settings that only other programs know, and settings that
		 * this server's command line has fixed. Neither has an effect here. */
		if (status != STATUS_NOT_FOUND && status != STATUS_FORBIDDEN)
			TRY(status);
	}
	return STATUS_OK;
}

/* Settings of the started ones and the stored ones, which the caller frees. */
static enum status
settings_combine(const struct settings_live *live, const struct catalog_settings *stored,
		 struct settings **ret, struct err *err)
{
	struct settings *combined = settings_copy(live->started);
	enum status status;

	if (!combined)
		return err_set(err, STATUS_NOMEM, "out of memory");
	status = settings_overlay(combined, stored, err);
	if (status != STATUS_OK) {
		settings_free(combined);
		return status;
	}
	*ret = combined;
	return STATUS_OK;
}

static enum status
held_new(const struct settings_live *live, const struct catalog_settings *stored,
	 struct settings_held **ret, struct err *err)
{
	struct settings_held *held = mem_zalloc(sizeof(*held));
	enum status status;

	if (!held)
		return err_set(err, STATUS_NOMEM, "out of memory");
	atomic_init(&held->refs, 1);
	held->ops = live->ops;
	memcpy(held->version, stored->version, sizeof(held->version));
	status = settings_combine(live, stored, &held->settings, err);
	if (status == STATUS_OK)
		status = live->ops->derive(live->arg, held->settings, &held->derived, err);
	if (status != STATUS_OK) {
		settings_held_unref(held);
		return status;
	}
	*ret = held;
	return STATUS_OK;
}

enum status
settings_live_new(struct kv_store *store, const struct settings *started,
		  const struct settings_live_ops *ops, void *arg, struct settings_live **ret,
		  struct err *err)
{
	const struct catalog_settings nothing = { 0 };
	struct settings_live *live = mem_zalloc(sizeof(*live));
	enum status status;

	if (!live)
		return err_set(err, STATUS_NOMEM, "out of memory");
	live->store = store;
	live->started = started;
	live->ops = ops;
	live->arg = arg;
	status = held_new(live, &nothing, &live->held, err);
	if (status != STATUS_OK) {
		mem_free(live);
		return status;
	}
	pthread_mutex_init(&live->lock, NULL);
	*ret = live;
	return STATUS_OK;
}

void
settings_live_free(struct settings_live *live)
{
	if (!live)
		return;
	settings_held_unref(live->held);
	pthread_mutex_destroy(&live->lock);
	mem_free(live);
}

/* ---- The newest ---- */

void
settings_apply_log_level(const struct settings *settings)
{
	const struct log_settings *log = settings_of(settings, &log_setting_group);
	enum log_level level;

	if (log_level_parse(log->level, &level))
		log_set_level(level);
}

/*
 * Takes over the reference. Two threads that have read the store may come here in either order:
 * metadata versions ascend, so an older one never replaces a newer one.
 */
static void
settings_publish(struct settings_live *live, struct settings_held *made)
{
	struct settings_held *old = made;

	pthread_mutex_lock(&live->lock);
	if (memcmp(made->version, live->held->version, sizeof(made->version)) >= 0) {
		old = live->held;
		if (live->ops->succeed && made->derived && old->derived)
			live->ops->succeed(made->derived, old->derived);
		made->generation = old->generation + 1;
		live->held = made;
		atomic_store_explicit(&live->generation, made->generation, memory_order_release);
		settings_apply_log_level(made->settings);
	}
	pthread_mutex_unlock(&live->lock);
	settings_held_unref(old);
}

struct stored_reader {
	struct arena *arena;
	struct catalog_settings stored;
};

static enum status
stored_read_body(struct kv_tx *tx, void *arg)
{
	struct stored_reader *r = arg;

	arena_clear(r->arena);
	return catalog_settings_read(tx, r->arena, &r->stored, NULL);
}

/* What the store has, in a new arena, which the caller frees. */
static enum status
stored_read(struct kv_store *store, struct stored_reader *r, struct err *err)
{
	enum status status;

	*r = (struct stored_reader){ .arena = arena_new(LIVE_ARENA_BYTES) };
	if (!r->arena)
		return err_set(err, STATUS_NOMEM, "out of memory");
	status = kv_run_read(store, stored_read_body, r, err);
	if (status != STATUS_OK)
		arena_free(r->arena);
	return status;
}

enum status
settings_read_stored(struct settings *settings, struct kv_store *store, struct err *err)
{
	struct stored_reader r;
	enum status status;

	TRY(stored_read(store, &r, err));
	status = settings_overlay(settings, &r.stored, err);
	arena_free(r.arena);
	return status;
}

enum status
settings_live_reload(struct settings_live *live, struct err *err)
{
	struct settings_held *made;
	struct stored_reader r;
	enum status status;

	TRY(stored_read(live->store, &r, err));
	status = held_new(live, &r.stored, &made, err);
	arena_free(r.arena);
	if (status == STATUS_OK)
		settings_publish(live, made);
	return status;
}

/* Most requests find that nothing has changed by one atomic load, and take no lock. */
static struct settings_held *
newest_of_thread(struct settings_live *live, struct settings_held **cached)
{
	if (settings_live_generation(live) != (*cached)->generation) {
		settings_held_unref(*cached);
		*cached = settings_live_hold(live);
	}
	return settings_held_ref(*cached);
}

/* Reads the metadata version in a transaction that the caller then owns. */
static enum status
version_read(struct settings_live *live, enum kv_tx_kind kind,
	     uint8_t ret[KV_VERSIONSTAMP_TX_BYTES], struct kv_tx **ret_tx, struct err *err)
{
	struct kv_tx *tx;

	TRY(kv_begin(live->store, kind, &tx));
	for (unsigned failures = 0;; failures++) {
		enum status status = kv_get_metadata_version(tx, ret);

		if (status == STATUS_OK) {
			*ret_tx = tx;
			return STATUS_OK;
		}
		if (failures < KV_RETRY_LIMIT)
			status = kv_on_error(tx, status);
		if (status != STATUS_OK) {
			err_set(err, status, "%s", kv_tx_error(tx));
			kv_tx_free(tx);
			return status;
		}
	}
}

enum status
settings_live_take(struct settings_live *live, struct settings_held **cached, enum kv_tx_kind kind,
		   struct settings_held **ret, struct kv_tx **ret_tx, struct err *err)
{
	uint8_t version[KV_VERSIONSTAMP_TX_BYTES];
	enum status status;

	*ret = newest_of_thread(live, cached);
	*ret_tx = NULL;
	if (!kv_is_shared(live->store))
		return STATUS_OK;
	TRY(version_read(live, kind, version, ret_tx, err));
	if (memcmp(version, (*ret)->version, sizeof(version)) <= 0)
		return STATUS_OK;
	status = settings_live_reload(live, err);
	if (status != STATUS_OK)
		log_event(LOG_LEVEL_ERROR, "settings_refused", "reason=\"%s\"",
			  err ? err->text : "");
	TRY(status);
	settings_held_unref(*ret);
	*ret = newest_of_thread(live, cached);
	return STATUS_OK;
}

/* ---- Showing and checking them ---- */

struct settings_list {
	struct arena *arena;
	struct catalog_setting *items;
	size_t count;
	size_t cap;
};

static enum status
list_add(void *arg, struct str section, struct str name, struct str text)
{
	struct settings_list *l = arg;
	struct catalog_setting *grown = arena_grow(l->arena, l->items, l->count, &l->cap,
						   sizeof(*l->items));
	struct catalog_setting item = { arena_dup(l->arena, section), arena_dup(l->arena, name),
					arena_dup(l->arena, text) };

	if (!grown || !item.section.ptr || !item.name.ptr || !item.text.ptr)
		return STATUS_LIMIT;
	l->items = grown;
	l->items[l->count++] = item;
	return STATUS_OK;
}

static int
list_compare(const void *a, const void *b)
{
	const struct catalog_setting *x = a;
	const struct catalog_setting *y = b;
	int order = str_cmp(x->section, y->section);

	return order ? order : str_cmp(x->name, y->name);
}

/* Settings that this server does not know are kept and shown, as clients keep their own here. */
static enum status
list_all(struct settings *settings, const struct catalog_settings *stored, struct settings_list *l)
{
	TRY(settings_each(settings, list_add, l));
	for (size_t i = 0; i < stored->count; i++) {
		const struct catalog_setting *item = &stored->items[i];

		if (item->text.ptr && settings_set_live(settings, item->section, item->name,
							item->text, NULL) == STATUS_NOT_FOUND)
			TRY(list_add(l, item->section, item->name, item->text));
	}
	if (l->count)
		qsort(l->items, l->count, sizeof(*l->items), list_compare);
	return STATUS_OK;
}

enum status
settings_live_list(const struct settings_live *live, struct kv_tx *tx, struct arena *arena,
		   struct catalog_setting **ret_items, size_t *ret_count, struct err *err)
{
	struct settings_list l = { .arena = arena };
	struct catalog_settings stored;
	struct settings *settings;
	enum status status;

	TRY(catalog_settings_read(tx, arena, &stored, err));
	TRY(settings_combine(live, &stored, &settings, err));
	status = list_all(settings, &stored, &l);
	settings_free(settings);
	*ret_items = l.items;
	*ret_count = l.count;
	return status;
}

enum status
settings_live_check(const struct settings_live *live, struct kv_tx *tx,
		    const struct catalog_setting *change, struct arena *arena, struct err *err)
{
	struct catalog_settings stored;
	struct settings *settings;
	void *derived = NULL;
	enum status status;

	TRY(catalog_settings_read(tx, arena, &stored, err));
	TRY(settings_combine(live, &stored, &settings, err));
	status = settings_set_live(settings, change->section, change->name, change->text, err);
	if (status == STATUS_NOT_FOUND)
		status = STATUS_OK;
	if (status == STATUS_OK)
		status = live->ops->derive(live->arg, settings, &derived, err);
	if (derived)
		live->ops->drop(derived);
	settings_free(settings);
	return status;
}
