/* Stores of all engines: choosing an engine by a URL, opening and closing. */
#include <assert.h>
#include <string.h>

#include "kv/engine.h"
#include "kv/fate.h"
#include "kv/prefix.h"
#include "kv/turns.h"

enum {
	ENGINES_MAX = 8,
};

/* The two that are built in, then those that were registered. */
static const struct kv_engine *engines[ENGINES_MAX] = {
	&kv_engine_embedded,
	&kv_engine_fdb,
};
static size_t engines_count = 2;

void
kv_engine_register(const struct kv_engine *engine)
{
	for (size_t i = 0; i < engines_count; i++)
		if (engines[i] == engine)
			return;
	assert(engines_count < ENGINES_MAX);
	engines[engines_count++] = engine;
}

/* The engine that `url` names, and its address there; NULL if there is none. */
static const struct kv_engine *
find_engine(const char *url, struct str *ret_address)
{
	const char *colon = strchr(url, ':');

	if (!colon)
		return NULL;
	*ret_address = str_from_cstr(colon + 1);
	for (size_t i = 0; i < engines_count; i++)
		if (str_eq(str_of(url, (size_t)(colon - url)), str_from_cstr(engines[i]->scheme)))
			return engines[i];
	return NULL;
}

/* Why find_engine() has found none. */
static enum status
no_engine(const char *url, struct err *err)
{
	const char *colon = strchr(url, ':');

	if (!colon)
		return err_set(err, STATUS_INVALID,
			       "'%s' names no store: expected embedded:PATH or fdb:CLUSTER_FILE",
			       url);
	return err_set(err, STATUS_INVALID, "no engine is called '%.*s' (in '%s')",
		       (int)(colon - url), url, url);
}

enum status
kv_check_url(const char *url, struct err *err)
{
	struct str address;
	const struct kv_engine *engine = find_engine(url, &address);

	if (!engine)
		return no_engine(url, err);
	if (engine->needs_address && address.len == 0)
		return err_set(err, STATUS_INVALID, "%s: needs the path of a directory",
			       engine->scheme);
	return engine->check_address ? engine->check_address(address, err) : STATUS_OK;
}

enum status
kv_open(const char *url, const struct kv_options *options, struct kv_store **ret, struct err *err)
{
	static const struct kv_options defaults;
	struct str address;
	const struct kv_engine *engine;

	TRY(kv_check_url(url, err));
	engine = find_engine(url, &address);
	return engine->open(address, options ? options : &defaults, ret, err);
}

void
kv_close(struct kv_store *store)
{
	if (!store)
		return;
	/*
	 * The library may still answer commits that have been left. What it then writes to stays
	 * where it is: the process is about to end.
	 */
	if (!fates_finish(store))
		return;
	kv_txids_finish(store);
	if (!fates_finish(store))
		return;
	prefixes_free(atomic_exchange(&store->prefixes, NULL));
	kv_turns_free(atomic_exchange(&store->turns, NULL));
	store->engine->close(store);
}

const char *
kv_store_state_name(enum kv_store_state state)
{
	static const char *const names[] = {
		[KV_STORE_OPEN] = "open",           [KV_STORE_FULL] = "full",
		[KV_STORE_READ_ONLY] = "read_only", [KV_STORE_FAILED] = "failed",
		[KV_STORE_LOST] = "lost",           [KV_STORE_STANDBY] = "standby",
	};

	return names[state];
}

struct kv_store_stats
kv_store_stats(struct kv_store *store)
{
	return store->engine->store_stats(store);
}

const char *
kv_store_library(const struct kv_store *store)
{
	return store->engine->library;
}

size_t
kv_damages(struct kv_store *store, size_t from, struct kv_damage *ret, size_t most)
{
	return store->engine->damages ? store->engine->damages(store, from, ret, most) : 0;
}

enum status
kv_files_check(struct kv_store *store, kv_damaged_found *found, void *arg, struct err *err)
{
	if (!store->engine->files_check)
		return STATUS_OK;
	return store->engine->files_check(store, found, arg, err);
}

static enum status
unsupported(const struct kv_engine *engine, const char *what, struct err *err)
{
	return err_set(err, STATUS_UNSUPPORTED, "stores of the engine \"%s\" cannot be %s",
		       engine->scheme, what);
}

enum status
kv_compact(struct kv_store *store, struct err *err)
{
	if (!store->engine->compact)
		return unsupported(store->engine, "compacted", err);
	return store->engine->compact(store, err);
}

enum status
kv_backup_create(struct kv_store *store, const char *dir, struct kv_backup *ret, struct err *err)
{
	if (!store->engine->backup_create)
		return unsupported(store->engine, "backed up", err);
	return store->engine->backup_create(store, dir, ret, err);
}

enum status
kv_backup_restore(const char *dir, uint32_t id, const char *url, const struct kv_restore *how,
		  struct kv_backup *ret, struct err *err)
{
	struct str address;
	const struct kv_engine *engine = find_engine(url, &address);

	if (!engine)
		return no_engine(url, err);
	if (!engine->backup_restore)
		return unsupported(engine, "restored", err);
	return engine->backup_restore(dir, id, address, how, ret, err);
}

enum status
kv_salvage(const char *source, const char *target, const struct kv_salvage_how *how,
	   struct kv_salvage_sum *ret, struct err *err)
{
	const struct kv_engine *engine, *other;
	struct str from, to;

	TRY(kv_check_url(source, err));
	TRY(kv_check_url(target, err));
	engine = find_engine(source, &from);
	other = find_engine(target, &to);
	if (!engine->salvage || !other->salvage)
		return unsupported(engine->salvage ? other : engine, "salvaged", err);
	return engine->salvage(from, to, how, ret, err);
}
