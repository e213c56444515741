/* The databases of a store: creates, deletes, opens and lists them, and changes their options. */
#include <assert.h>
#include <stdatomic.h>

#include "base/err_clear.h"
#include "base/steady.h"
#include "base/rand.h"
#include "kv/keyspace.h"
#include "kv/prefix.h"
#include "catalog/admit.h"
#include "catalog/catalog_int.h"
#include "catalog/shared.h"
#include "catalog/records.h"
#include "catalog/store_format.h"
#include "catalog/tally_int.h"

enum status
catalog_db_check_now(struct kv_tx *tx, const struct catalog_db *db, struct err *err)
{
	struct catalog_db now;

	TRY(catalog_description_get(tx, db->kind->space, db->name, &now, err));
	if (now.number != db->number) /* deleted, and made again under its name */
		return err_set(err, STATUS_NOT_FOUND, "Database does not exist.");
	return catalog_db_check_writable(&now, err);
}

/* ---- Creating and deleting ---- */

enum {
	WALK_PAGE = 500, /* databases */
	WALK_ARENA_BYTES = 64 * 1024 * 1024,
};

static _Atomic(catalog_admit *) admit_database;

void
catalog_admit_by(catalog_admit *admit)
{
	atomic_store_explicit(&admit_database, admit, memory_order_release);
}

static enum status
create_admitted(enum catalog_space space, struct str name, struct err *err)
{
	catalog_admit *admit = atomic_load_explicit(&admit_database, memory_order_acquire);

	return admit ? admit(space, name, err) : STATUS_OK;
}

/* `is_new`: it is one more database, for which the client needs leave. */
static enum status
create_as(struct kv_tx *tx, const struct catalog_kind *kind, struct str name,
	  const uint64_t options[CATALOG_OPTIONS], bool is_new, struct err *err)
{
	struct catalog_db db;
	enum status status;

	TRY(kind->check_name(name, err));
	status = catalog_description_get(tx, kind->space, name, &db, err);
	if (status == STATUS_OK)
		return err_set(err, STATUS_EXISTS,
			       "The database could not be created, the file already exists.");
	if (status != STATUS_NOT_FOUND)
		return status;
	TRY(catalog_move_check_absent(tx, kind->space, name, err));
	/* Behind the checks: what is refused by them counts for nobody. */
	if (is_new)
		TRY(create_admitted(kind->space, name, err));
	db = (struct catalog_db){
		.name = name,
		.kind = kind,
		.created_ms = steady_ms(),
	};
	memcpy(db.options, options, sizeof(db.options));
	rand_bytes(db.uuid, sizeof(db.uuid));
	TRY(catalog_store_incarnation(tx, &db.incarnation));
	/* Numbers are never used again, so nothing of a deleted database can come back. */
	TRY(kv_prefix_take(kv_tx_store(tx), &db.number, err));
	if (kind->number != CATALOG_KIND_REVISIONED)
		TRY(catalog_store_format_raise(tx, CATALOG_STORE_FORMAT_KINDS));
	TRY(catalog_description_set(tx, &db));
	/*
	 * The metadata version need not change: no cache has an entry for a database that did not
	 * exist, and a transaction that looked for it in vain has read its key and conflicts.
	 */
	return catalog_event_put(tx, kind, name, CATALOG_EVENT_CREATED, db.incarnation);
}

enum status
catalog_create(struct kv_tx *tx, const struct catalog_kind *kind, struct str name,
	       const uint64_t options[CATALOG_OPTIONS], struct err *err)
{
	return create_as(tx, kind, name, options, true, err);
}

enum status
catalog_replace(struct kv_tx *tx, const struct catalog_kind *kind, struct str name,
		const uint64_t options[CATALOG_OPTIONS], struct err *err)
{
	TRY(catalog_delete(tx, kind->space, name, err));
	return create_as(tx, kind, name, options, false, err);
}

enum status
catalog_delete(struct kv_tx *tx, enum catalog_space space, struct str name, struct err *err)
{
	struct catalog_db db;

	TRY(catalog_description_get(tx, space, name, &db, err));
	if (db.fence == CATALOG_FENCE_MOVING)
		return catalog_db_check_writable(&db, err);
	return catalog_remove(tx, &db, db.kind->kept_ms ? steady_ms() + db.kind->kept_ms : 0);
}

enum status
catalog_remove(struct kv_tx *tx, const struct catalog_db *db, uint64_t until_ms)
{
	uint8_t incarnation;

	TRY(catalog_description_clear(tx, db));
	TRY(catalog_drop_begin(tx, db->kind, db->number, until_ms));
	TRY(catalog_store_incarnation(tx, &incarnation));
	TRY(catalog_event_put(tx, db->kind, db->name, CATALOG_EVENT_DELETED, incarnation));
	return kv_touch_metadata_version(tx);
}

enum status
catalog_rename(struct kv_tx *tx, const struct catalog_kind *kind, struct str from, struct str to,
	       struct err *err)
{
	struct catalog_db db, other;
	enum status status;

	TRY(kind->check_name(to, err));
	TRY(catalog_description_get(tx, kind->space, from, &db, err));
	TRY(catalog_db_check_writable(&db, err));
	status = catalog_description_get(tx, kind->space, to, &other, err);
	if (status == STATUS_OK)
		return err_set(err, STATUS_EXISTS, "there is a database of that name");
	if (status != STATUS_NOT_FOUND)
		return status;
	TRY(catalog_move_check_absent(tx, kind->space, to, err));
	TRY(catalog_description_clear(tx, &db));
	TRY(catalog_event_put(tx, kind, from, CATALOG_EVENT_DELETED, db.incarnation));
	db.name = to;
	TRY(catalog_description_set(tx, &db));
	TRY(catalog_event_put(tx, kind, to, CATALOG_EVENT_CREATED, db.incarnation));
	return kv_touch_metadata_version(tx);
}

/* ---- Opening and listing ---- */

static bool
transaction_has_written(const struct kv_tx *tx)
{
	struct kv_tx_stats stats = kv_tx_stats(tx);

	return stats.sets || stats.clears;
}

/*
 * Reads what is kept with an opened database. The kind's reads follow the catalog's before anything
 * is waited for, so all of it is one round trip.
 */
static enum status
open_rest(struct kv_tx *tx, struct catalog_tallies *tallies, struct catalog_db *db, struct err *err)
{
	AUTO(catalog_guide_scan_end) struct catalog_guide_scan scan = { 0 };

	TRY(catalog_tally_open(tx, tallies, db, &scan));
	if (db->kind->extend)
		TRY(db->kind->extend(tx, db, &db->extension, err));
	return catalog_tally_opened(db, &scan);
}

/* Makes the description that the caller gets: one that is known already, or the store's. */
static enum status
open_description(struct kv_tx *tx, struct catalog_cache *cache, const struct catalog_db *known,
		 enum catalog_space space, struct str name, bool bare, struct catalog_db **ret,
		 struct err *err)
{
	struct catalog_db description;
	struct catalog_db *db;
	enum status status = STATUS_OK;

	if (!known)
		TRY(catalog_description_get(tx, space, name, &description, err));
	db = catalog_db_new(known ? known : &description);
	if (!db)
		return STATUS_NOMEM;
	db->bare = bare;
	db->by_version = cache != NULL;
	if (!bare)
		status = open_rest(tx, cache ? catalog_cache_tallies(cache) : NULL, db, err);
	if (status != STATUS_OK) {
		catalog_db_unref(db);
		return status;
	}
	*ret = db;
	return STATUS_OK;
}

/*
 * Reads the metadata version, for which the cache is asked. `*cache` becomes NULL if this
 * transaction cannot use one.
 */
static enum status
cache_version(struct kv_tx *tx, struct catalog_cache **cache,
	      uint8_t version[KV_VERSIONSTAMP_TX_BYTES])
{
	enum status status = *cache ? kv_get_metadata_version(tx, version) : STATUS_OK;

	if (status != STATUS_TX_UNREADABLE)
		return status;
	/* This transaction has touched it: what it reads is not yet true for others. */
	*cache = NULL;
	return STATUS_OK;
}

/* NULL: the cache does not have it, or not all that is wanted. */
static struct catalog_db *
find_known(struct catalog_cache *cache, const uint8_t version[KV_VERSIONSTAMP_TX_BYTES],
	   enum catalog_space space, struct str name, bool bare)
{
	struct catalog_db *known = catalog_cache_find(cache, version, space, name);

	if (!known || bare || !known->bare)
		return known;
	catalog_db_unref(known);
	return NULL;
}

/*
 * Opens what the cache does not have. What this transaction has written is not committed yet, so it
 * does not enter the cache.
 */
static enum status
open_unknown(struct kv_tx *tx, struct catalog_cache *cache,
	     const uint8_t version[KV_VERSIONSTAMP_TX_BYTES], enum catalog_space space,
	     struct str name, bool bare, struct catalog_db **ret, struct err *err)
{
	/* The cache may have it without its counters and what its kind keeps: these are read. */
	struct catalog_db *known = cache ? catalog_cache_find(cache, version, space, name) : NULL;
	enum status status;

	status = open_description(tx, cache, known, space, name, bare, ret, err);
	catalog_db_unref(known);
	if (status == STATUS_OK && cache && !transaction_has_written(tx))
		catalog_cache_add(cache, version, *ret);
	return status;
}

static enum status
fill_cache(struct kv_tx *tx, struct catalog_cache *cache, enum catalog_space space, struct str name,
	   bool bare)
{
	uint8_t version[KV_VERSIONSTAMP_TX_BYTES];
	struct catalog_db *db;

	TRY(cache_version(tx, &cache, version));
	TRY(open_unknown(tx, cache, version, space, name, bare, &db, NULL));
	catalog_db_unref(db);
	return STATUS_OK;
}

/*
 * For a transaction that has written: another one fills the cache. Else a client whose transactions
 * write to one database before they open the next would have that one's description read each time.
 * NULL: it cannot be had in this way.
 */
static struct catalog_db *
open_apart(struct kv_store *store, struct catalog_cache *cache,
	   const uint8_t version[KV_VERSIONSTAMP_TX_BYTES], enum catalog_space space,
	   struct str name, bool bare)
{
	struct kv_tx *tx;
	enum status status = kv_begin(store, KV_TX_READ_ONLY, &tx);

	if (status != STATUS_OK)
		return NULL;
	status = fill_cache(tx, cache, space, name, bare);
	kv_tx_free(tx);
	return status == STATUS_OK ? find_known(cache, version, space, name, bare) : NULL;
}

static enum status
open_as(struct kv_tx *tx, struct catalog_cache *cache, enum catalog_space space, struct str name,
	bool bare, struct catalog_db **ret, struct err *err)
{
	uint8_t version[KV_VERSIONSTAMP_TX_BYTES];
	struct catalog_db *db = NULL;

	TRY(cache_version(tx, &cache, version));
	if (cache)
		db = find_known(cache, version, space, name, bare);
	if (cache && !db && transaction_has_written(tx))
		db = open_apart(kv_tx_store(tx), cache, version, space, name, bare);
	if (!db)
		return open_unknown(tx, cache, version, space, name, bare, ret, err);
	*ret = db;
	return STATUS_OK;
}

enum status
catalog_open(struct kv_tx *tx, struct catalog_cache *cache, enum catalog_space space,
	     struct str name, struct catalog_db **ret, struct err *err)
{
	return open_as(tx, cache, space, name, false, ret, err);
}

enum status
catalog_open_stored(struct kv_tx *tx, enum catalog_space space, struct str name,
		    struct catalog_db **ret, struct err *err)
{
	struct catalog_db description;
	struct catalog_db *db;
	enum status status;

	TRY(catalog_description_get(tx, space, name, &description, err));
	db = catalog_db_new(&description);
	if (!db)
		return STATUS_NOMEM;
	status = open_rest(tx, catalog_tallies_shared(), db, err);
	if (status == STATUS_OK)
		*ret = db;
	else
		catalog_db_unref(db);
	return status;
}

enum status
catalog_open_bare(struct kv_tx *tx, struct catalog_cache *cache, enum catalog_space space,
		  struct str name, struct catalog_db **ret, struct err *err)
{
	return open_as(tx, cache, space, name, true, ret, err);
}

struct catalog_db *
catalog_open_cached(struct kv_tx *tx, struct catalog_cache *cache, enum catalog_space space,
		    struct str name)
{
	uint8_t version[KV_VERSIONSTAMP_TX_BYTES];

	if (kv_get_metadata_version(tx, version) != STATUS_OK)
		return NULL;
	return catalog_cache_find(cache, version, space, name);
}

enum status
catalog_list(struct kv_tx *tx, enum catalog_space space, const struct name_range *range,
	     struct arena *arena, struct name_page *ret)
{
	AUTO(buf_release) struct buf lo = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf hi = CATALOG_KEY_INIT;
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	struct kv_range_options options = { .reverse = range->descending, .mode = KV_SNAPSHOT };
	struct name_page page = { 0 };
	uint64_t skip = range->skip;
	size_t cap = 0, bytes = 0, prefix_len;
	struct kv_pair pair;
	enum status status;

	catalog_key_names(&lo, KV_ROOT_DATABASES, space);
	prefix_len = lo.len;
	TRY(name_range_bounds(range, CATALOG_KEY_NEXT, &lo, &hi));
	options.limit = name_range_scan_limit(skip, range->limit);
	options.limit_bytes = CATALOG_PAGE_BYTES;
	TRY(kv_scan_init(&scan, tx, buf_str(&lo), buf_str(&hi), &options));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		struct tuple_reader r = tuple_reader(str_skip(pair.key, prefix_len));

		if (skip) {
			skip--;
			continue;
		}
		if (page.count >= range->limit || bytes >= CATALOG_PAGE_BYTES) {
			page.more = true;
			break;
		}
		TRY(catalog_array_grow(arena, (void **)&page.names, sizeof(*page.names), page.count,
				       &cap));
		TRY(catalog_next_text(&r, TUPLE_STRING, arena, true, &page.names[page.count]));
		page.count++;
		bytes += pair.key.len + pair.value.len;
	}
	if (status != STATUS_OK && status != STATUS_NOT_FOUND)
		return status;
	*ret = page;
	return STATUS_OK;
}

struct behind {
	enum catalog_space space;
	struct name_range range;
	struct arena *arena;
	struct name_page *page;
};

static enum status
behind_body(struct kv_tx *tx, void *arg)
{
	const struct behind *b = arg;

	return catalog_list(tx, b->space, &b->range, b->arena, b->page);
}

enum status
catalog_list_behind(struct kv_store *store, enum catalog_space space, struct str place,
		    size_t limit, struct arena *arena, struct name_page *ret, struct err *err)
{
	struct behind b = {
		.space = space,
		.range = { .begin = place,
			   .has_begin = place.len,
			   .exclusive_begin = place.len,
			   .limit = limit },
		.arena = arena,
		.page = ret,
	};

	return kv_run_read(store, behind_body, &b, err);
}

enum status
catalog_all(struct kv_tx *tx, struct buf *last, size_t limit, struct arena *arena,
	    struct catalog_page *ret, struct err *err)
{
	AUTO(buf_release) struct buf lo = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf hi = CATALOG_KEY_INIT;
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	const struct kv_range_options options = { .mode = KV_SNAPSHOT,
						  .limit_bytes = CATALOG_PAGE_BYTES };
	struct catalog_page page = { 0 };
	size_t cap = 0, prefix_len;
	struct kv_pair pair;
	enum status status;

	catalog_key_names(&lo, KV_ROOT_DATABASES, CATALOG_SPACE_COUCH);
	prefix_len = lo.len;
	buf_append_buf(&hi, &lo);
	buf_append_byte(&hi, CATALOG_KEY_LAST);
	if (last->len && !str_starts_with(buf_str(last), buf_str(&lo)))
		return err_set(err, STATUS_INVALID, "this is no place in the list of databases");
	if (last->len) {
		buf_clear(&lo);
		buf_append_buf(&lo, last);
		buf_append_byte(&lo, CATALOG_KEY_NEXT);
	}
	TRY(catalog_key_status(&lo));
	TRY(catalog_key_status(&hi));
	TRY(kv_scan_init(&scan, tx, buf_str(&lo), buf_str(&hi), &options));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		struct catalog_db *db;
		enum catalog_space space;

		if (page.count >= limit) {
			page.more = true;
			break;
		}
		TRY(catalog_array_grow(arena, (void **)&page.dbs, sizeof(*page.dbs), page.count,
				       &cap));
		db = &page.dbs[page.count];
		*db = (struct catalog_db){ 0 };
		status = catalog_key_name_next(tuple_reader(str_skip(pair.key, prefix_len)), arena,
					       &space, &db->name);
		if (status == STATUS_OK) {
			status = catalog_description_parse(pair.value, db, err);
			if (status == STATUS_CORRUPT)
				status = catalog_description_unreadable(db->name, err);
		}
		/* The next page begins with it, and fails. */
		if (status != STATUS_OK && page.count) {
			page.more = true;
			status = STATUS_OK;
			if (err)
				err_clear(err);
			break;
		}
		buf_clear(last);
		buf_append_str(last, pair.key);
		TRY(buf_status(last));
		TRY(status);
		TRY(catalog_prefix_put(db->number, arena, &db->prefix));
		page.count++;
	}
	if (status != STATUS_OK && status != STATUS_NOT_FOUND)
		return status;
	*ret = page;
	return STATUS_OK;
}

enum status
catalog_walk_begin(struct catalog_walk *walk)
{
	*walk = (struct catalog_walk){ .page = { .more = true },
				       .last = CATALOG_KEY_INIT,
				       .next = CATALOG_KEY_INIT,
				       .arena = arena_new(WALK_ARENA_BYTES) };
	return walk->arena ? STATUS_OK : STATUS_NOMEM;
}

static enum status
walk_body(struct kv_tx *tx, void *arg)
{
	struct catalog_walk *w = arg;

	arena_clear(w->arena);
	/* `last` moves on only behind the transaction: its body may run again. */
	buf_set_buf(&w->next, &w->last);
	return catalog_all(tx, &w->next, WALK_PAGE, w->arena, &w->page, w->err);
}

enum status
catalog_walk_next(struct catalog_walk *walk, struct kv_store *store, struct err *err)
{
	enum status status;

	assert(walk->page.more);
	walk->err = err;
	do {
		walk->page = (struct catalog_page){ .more = true };
		status = kv_run_read(store, walk_body, walk, err);
		buf_set_buf(&walk->last, &walk->next);
		TRY(buf_status(&walk->last));
		if (status == STATUS_NEWER && err)
			*err = (struct err){ 0 };
	} while (status == STATUS_NEWER);
	return status;
}

void
catalog_walk_end(struct catalog_walk *walk)
{
	arena_free(walk->arena);
	buf_release(&walk->last);
	buf_release(&walk->next);
}

/* ---- Options ---- */

enum status
catalog_option_set(struct kv_tx *tx, const struct catalog_db *db, size_t option, uint64_t value,
		   struct err *err)
{
	struct catalog_db now;

	assert(option < CATALOG_OPTIONS);
	TRY(catalog_description_get(tx, db->kind->space, db->name, &now, err));
	if (now.number != db->number) /* deleted, and made again under its name */
		return err_set(err, STATUS_NOT_FOUND, "Database does not exist.");
	TRY(catalog_db_check_writable(&now, err));
	now.options[option] = value;
	TRY(catalog_description_set(tx, &now));
	return kv_touch_metadata_version(tx);
}

enum status
catalog_swap(struct kv_tx *tx, enum catalog_space space, struct str a, struct str b,
	     struct err *err)
{
	struct catalog_db one, other;

	TRY(catalog_description_get(tx, space, a, &one, err));
	TRY(catalog_description_get(tx, space, b, &other, err));
	TRY(catalog_db_check_writable(&one, err));
	TRY(catalog_db_check_writable(&other, err));
	one.name = b;
	other.name = a;
	TRY(catalog_description_set(tx, &one));
	TRY(catalog_description_set(tx, &other));
	return kv_touch_metadata_version(tx);
}

enum status
catalog_db_bytes(struct kv_tx *tx, const struct catalog_db *db, uint64_t *ret)
{
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;

	TRY(tuple_prefix_end(db->prefix, &end));
	return kv_estimate_bytes(kv_tx_store(tx), db->prefix, buf_str(&end), ret);
}
