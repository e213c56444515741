/*
 * Clearing groups that no design document has: _view_cleanup.
 *
 * First one transaction takes the names of such groups out of the registry, so that no builder
 * finds them any more; then the keys of every group without a name go, and its record last. So a
 * cleanup that ends in between is taken up by the next one.
 */
#include <stdlib.h>

#include "index/view/build.h"
#include "index/view/keys.h"
#include "index/versions.h"
#include "loop/sort.h"
#include "loop/step.h"

enum {
	CLEANUP_ARENA_BYTES = 16 * 1024 * 1024,
	SIGNATURES_A_STEP = 4, /* that are compared */
	CLEANUP_KEYS = 5000, /* that one transaction clears where ranges are not cleared cheaply */
};

struct numbers {
	uint64_t *of; /* in the arena */
	size_t count;
	size_t cap;
};

struct cleanup {
	struct view_build build; /* only which database */
	const uint8_t (*live)[VIEW_SIGNATURE_BYTES];
	size_t live_count;
	struct arena *arena;
	struct numbers named; /* the groups that stay, or that a later cleanup takes out */
	struct numbers nameless;
	size_t taken_out; /* names, by this attempt */
	uint64_t clearing;
	/*
	 * All keys of that group in front of this one are cleared, so the next transaction begins
	 * here: the engine keeps for a while that they were deleted, and reads are slow there. The
	 * last transaction looks from the beginning. Empty: nothing is cleared yet.
	 */
	struct buf place;
	struct buf next_place; /* what `place` becomes once this transaction is committed */
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
numbers_add(struct cleanup *c, struct numbers *numbers, uint64_t number)
{
	TRY(catalog_array_grow(c->arena, (void **)&numbers->of, sizeof(*numbers->of),
			       numbers->count, &numbers->cap));
	numbers->of[numbers->count++] = number;
	return STATUS_OK;
}

static int
numbers_compare(const void *a, const void *b)
{
	uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;

	return (one > other) - (one < other);
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
	TRY(step_count(1 + (uint32_t)(c->live_count / SIGNATURES_A_STEP)));
	if ((signature_is_live(c, signature) && str_eq(made_by, collator)) ||
	    c->taken_out == VIEW_GROUPS_MOST)
		return numbers_add(c, &c->named, number);
	c->taken_out++;
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

/* All names are looked at, however many: a group is cleared only if it has none. */
static enum status
names_visit(struct cleanup *c, struct kv_tx *tx, const struct catalog_db *db)
{
	AUTO(buf_release) struct buf lo = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf hi = CATALOG_KEY_INIT;
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	struct index_versions versions;
	struct kv_pair pair;
	enum status status;

	index_versions_read(&versions);
	TRY(range_of_kind(db, VIEW_KEYS_NAMES, &lo, &hi));
	TRY(kv_scan_init(&scan, tx, buf_str(&lo), buf_str(&hi), NULL));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK)
		TRY(name_visit(c, tx, db, &pair, lo.len, str_from_cstr(versions.collator)));
	if (status != STATUS_NOT_FOUND)
		return status;
	return sort_items_by(c->named.of, c->named.count, sizeof(*c->named.of), numbers_compare,
			     c->arena);
}

static bool
number_is_named(const struct cleanup *c, uint64_t number)
{
	return c->named.count && bsearch(&number, c->named.of, c->named.count, sizeof(number),
					 numbers_compare) != NULL;
}

/* The records of groups that have no name now, up to a limit. */
static enum status
groups_visit(struct cleanup *c, struct kv_tx *tx, const struct catalog_db *db)
{
	AUTO(buf_release) struct buf lo = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf hi = CATALOG_KEY_INIT;
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	struct kv_pair pair;
	enum status status = STATUS_OK;

	TRY(range_of_kind(db, VIEW_KEYS_GROUPS, &lo, &hi));
	TRY(kv_scan_init(&scan, tx, buf_str(&lo), buf_str(&hi), NULL));
	while (c->nameless.count < VIEW_GROUPS_MOST &&
	       (status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		struct tuple_reader r = tuple_reader(str_skip(pair.key, lo.len));
		uint64_t number;

		TRY(tuple_next_u64(&r, &number));
		if (!number_is_named(c, number))
			TRY(numbers_add(c, &c->nameless, number));
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
names_body(struct kv_tx *tx, void *arg)
{
	struct cleanup *c = arg;
	AUTO(view_db_unref) struct catalog_db *db = NULL;

	arena_clear(c->arena);
	c->named = c->nameless = (struct numbers){ 0 };
	c->taken_out = 0;
	TRY(catalog_open(tx, NULL, c->build.space, c->build.db_name, &db, kv_tx_err(tx)));
	if (!view_documents_of(db))
		return STATUS_OK;
	TRY(catalog_db_check_writable(db, kv_tx_err(tx)));
	c->build.db_number = db->number;
	TRY(names_visit(c, tx, db));
	return groups_visit(c, tx, db);
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
	if (str_cmp(lo, buf_str(&c->place)) < 0)
		lo = buf_str(&c->place);
	if (str_cmp(lo, hi) >= 0)
		return STATUS_OK;
	f = kv_get_range(tx, lo, hi, &options);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	if (!range.count)
		return STATUS_OK;
	c->more = range.more;
	if (!range.more)
		return kv_clear_range(tx, lo, hi);
	buf_append_str(&c->next_place, range.pairs[range.count - 1].key);
	TRY(buf_status(&c->next_place));
	return kv_clear_range(tx, lo, buf_str(&c->next_place));
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
	buf_clear(&c->next_place);
	TRY(view_build_open_db(&c->build, tx, &db, kv_tx_err(tx)));
	TRY(catalog_db_check_writable(db, kv_tx_err(tx)));
	for (size_t i = 0; !c->more && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		view_key_group(&lo, db, kinds[i], c->clearing);
		TRY(catalog_key_status(&lo));
		buf_clear(&hi);
		TRY(view_prefix_end(buf_str(&lo), &hi));
		TRY(range_clear(c, tx, buf_str(&lo), buf_str(&hi)));
	}
	c->more = c->more || c->place.len;
	if (c->more)
		return STATUS_OK;
	view_key_group(&lo, db, VIEW_KEYS_GROUPS, c->clearing);
	TRY(catalog_key_status(&lo));
	return kv_clear(tx, buf_str(&lo));
}

static enum status
group_clear(struct cleanup *c, struct err *err)
{
	struct buf kept;

	buf_clear(&c->place);
	do {
		TRY(kv_run(c->build.store, group_body, c, NULL, err));
		kept = c->place;
		c->place = c->next_place;
		c->next_place = kept;
	} while (c->more);
	return STATUS_OK;
}

enum status
view_cleanup(struct kv_store *store, enum catalog_space space, struct str db_name,
	     const uint8_t (*live)[VIEW_SIGNATURE_BYTES], size_t live_count, uint64_t *ret_cleared,
	     struct err *err)
{
	struct cleanup c = { .build = { .store = store, .space = space, .db_name = db_name },
			     .live = live,
			     .live_count = live_count,
			     .place = CATALOG_KEY_INIT,
			     .next_place = CATALOG_KEY_INIT };
	enum status status;

	*ret_cleared = 0;
	c.arena = arena_new(CLEANUP_ARENA_BYTES);
	if (!c.arena)
		return STATUS_NOMEM;
	status = kv_run(store, names_body, &c, NULL, err);
	for (size_t i = 0; status == STATUS_OK && i < c.nameless.count; i++) {
		c.clearing = c.nameless.of[i];
		status = group_clear(&c, err);
		*ret_cleared += status == STATUS_OK;
	}
	buf_release(&c.place);
	buf_release(&c.next_place);
	arena_free(c.arena);
	return status;
}
