/*
 * Clearing groups that no design document has: _view_cleanup.
 *
 * First one transaction takes the names of such groups out of the registry, so that no builder
 * finds them any more; then the keys of every group without a name go, and its record last. So a
 * cleanup that ends in between is taken up by the next one.
 */
#include "index/view/build.h"
#include "index/view/keys.h"
#include "index/versions.h"

enum {
	CLEANUP_ARENA_BYTES = 16 * 1024 * 1024,
	CLEANUP_KEYS = 5000, /* that one transaction clears where ranges are not cleared cheaply */
};

struct cleanup {
	struct view_build build; /* only which database */
	const uint8_t (*live)[VIEW_SIGNATURE_BYTES];
	size_t live_count;
	struct arena *arena;
	uint64_t *named; /* the groups that stay */
	size_t named_count;
	uint64_t *nameless;
	size_t nameless_count;
	uint64_t clearing;
	bool more;
};

static bool
signature_is_live(const struct cleanup *c, struct str signature)
{
	for (size_t i = 0; i < c->live_count; i++)
		if (str_eq(signature, str_of((const char *)c->live[i], VIEW_SIGNATURE_BYTES)))
			return true;
	return false;
}

static enum status
numbers_add(struct cleanup *c, uint64_t **array, size_t *count, uint64_t number)
{
	if (!*array)
		*array = arena_alloc(c->arena, VIEW_GROUPS_MOST * sizeof(**array));
	if (!*array)
		return STATUS_LIMIT;
	if (*count < VIEW_GROUPS_MOST)
		(*array)[(*count)++] = number;
	return STATUS_OK;
}

/* A name of the registry: it stays, or goes with the group's reader of purges. */
static enum status
name_visit(struct cleanup *c, struct kv_tx *tx, const struct catalog_db *db,
	   const struct kv_pair *pair, size_t prefix_len, struct str collator)
{
	struct tuple_reader r = tuple_reader(str_skip(pair->key, prefix_len));
	struct tuple_reader v = tuple_reader(pair->value);
	struct str signature, made_by, reader;
	uint64_t number;

	TRY(catalog_next_text(&r, TUPLE_BYTES, c->arena, false, &signature));
	TRY(catalog_next_text(&r, TUPLE_STRING, c->arena, false, &made_by));
	TRY(tuple_next_u64(&v, &number));
	if (signature_is_live(c, signature) && str_eq(made_by, collator))
		return numbers_add(c, &c->named, &c->named_count, number);
	TRY(kv_clear(tx, pair->key));
	/* Loops keep records of groups until that version changes. */
	TRY(kv_touch_metadata_version(tx));
	TRY(view_purge_reader(number, c->arena, &reader));
	return view_documents_of(db)->purge_reader_remove(tx, db, reader, kv_tx_err(tx));
}

static enum status
range_of_kind(const struct catalog_db *db, uint64_t kind, struct buf *lo, struct buf *hi)
{
	view_key_kind(lo, db, kind);
	TRY(catalog_key_status(lo));
	buf_clear(hi);
	return view_prefix_end(buf_str(lo), hi);
}

static enum status
names_visit(struct cleanup *c, struct kv_tx *tx, const struct catalog_db *db)
{
	const struct kv_range_options options = { .limit = VIEW_GROUPS_MOST };
	AUTO(buf_release) struct buf lo = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf hi = CATALOG_KEY_INIT;
	struct index_versions versions;
	struct kv_future *f;
	struct kv_range range;

	index_versions_read(&versions);
	TRY(range_of_kind(db, VIEW_KEYS_NAMES, &lo, &hi));
	f = kv_get_range(tx, buf_str(&lo), buf_str(&hi), &options);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	for (size_t i = 0; i < range.count; i++)
		TRY(name_visit(c, tx, db, &range.pairs[i], lo.len,
			       str_from_cstr(versions.collator)));
	return STATUS_OK;
}

static bool
number_is_named(const struct cleanup *c, uint64_t number)
{
	for (size_t i = 0; i < c->named_count; i++)
		if (c->named[i] == number)
			return true;
	return false;
}

/* The records of groups that have no name now. */
static enum status
names_body(struct kv_tx *tx, void *arg)
{
	struct cleanup *c = arg;
	const struct kv_range_options options = { .limit = 2 * VIEW_GROUPS_MOST };
	AUTO(buf_release) struct buf lo = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf hi = CATALOG_KEY_INIT;
	AUTO(view_db_unref) struct catalog_db *db = NULL;
	struct kv_future *f;
	struct kv_range range;

	arena_clear(c->arena);
	c->named = c->nameless = NULL;
	c->named_count = c->nameless_count = 0;
	TRY(catalog_open(tx, NULL, c->build.space, c->build.db_name, &db, kv_tx_err(tx)));
	if (!view_documents_of(db))
		return STATUS_OK;
	TRY(catalog_db_check_writable(db, kv_tx_err(tx)));
	c->build.db_number = db->number;
	TRY(names_visit(c, tx, db));
	TRY(range_of_kind(db, VIEW_KEYS_GROUPS, &lo, &hi));
	f = kv_get_range(tx, buf_str(&lo), buf_str(&hi), &options);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	for (size_t i = 0; i < range.count; i++) {
		struct tuple_reader r = tuple_reader(str_skip(range.pairs[i].key, lo.len));
		uint64_t number;

		TRY(tuple_next_u64(&r, &number));
		if (!number_is_named(c, number))
			TRY(numbers_add(c, &c->nameless, &c->nameless_count, number));
	}
	return STATUS_OK;
}

/* ---- The keys of one group ---- */

/* Clears the beginning of a range, or all of it. */
static enum status
range_clear(struct cleanup *c, struct kv_tx *tx, struct str lo, struct str hi)
{
	const struct kv_range_options options = { .limit = CLEANUP_KEYS };
	struct kv_future *f;
	struct kv_range range;

	if (kv_clears_cheaply(c->build.store))
		return kv_clear_range(tx, lo, hi);
	f = kv_get_range(tx, lo, hi, &options);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	if (!range.count)
		return STATUS_OK;
	c->more = range.more;
	if (!range.more)
		return kv_clear_range(tx, lo, hi);
	return kv_clear_range(tx, lo, range.pairs[range.count - 1].key);
}

static enum status
group_body(struct kv_tx *tx, void *arg)
{
	static const uint64_t kinds[] = { VIEW_KEYS_ROWS, VIEW_KEYS_DOCS, VIEW_KEYS_TEXTS,
					  VIEW_KEYS_LACKS };
	struct cleanup *c = arg;
	AUTO(buf_release) struct buf lo = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf hi = CATALOG_KEY_INIT;
	AUTO(view_db_unref) struct catalog_db *db = NULL;

	c->more = false;
	TRY(view_build_open_db(&c->build, tx, &db, kv_tx_err(tx)));
	TRY(catalog_db_check_writable(db, kv_tx_err(tx)));
	for (size_t i = 0; !c->more && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		view_key_group(&lo, db, kinds[i], c->clearing);
		TRY(catalog_key_status(&lo));
		buf_clear(&hi);
		TRY(view_prefix_end(buf_str(&lo), &hi));
		TRY(range_clear(c, tx, buf_str(&lo), buf_str(&hi)));
	}
	if (c->more)
		return STATUS_OK;
	view_key_group(&lo, db, VIEW_KEYS_GROUPS, c->clearing);
	TRY(catalog_key_status(&lo));
	return kv_clear(tx, buf_str(&lo));
}

enum status
view_cleanup(struct kv_store *store, enum catalog_space space, struct str db_name,
	     const uint8_t (*live)[VIEW_SIGNATURE_BYTES], size_t live_count, uint64_t *ret_cleared,
	     struct err *err)
{
	struct cleanup c = { .build = { .store = store, .space = space, .db_name = db_name },
			     .live = live,
			     .live_count = live_count };
	enum status status;

	*ret_cleared = 0;
	c.arena = arena_new(CLEANUP_ARENA_BYTES);
	if (!c.arena)
		return STATUS_NOMEM;
	status = kv_run(store, names_body, &c, NULL, err);
	for (size_t i = 0; status == STATUS_OK && i < c.nameless_count; i++) {
		c.clearing = c.nameless[i];
		do
			status = kv_run(store, group_body, &c, NULL, err);
		while (status == STATUS_OK && c.more);
		*ret_cleared += status == STATUS_OK;
	}
	arena_free(c.arena);
	return status;
}
