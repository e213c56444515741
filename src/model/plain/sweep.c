/* Removes what nobody will ask for: texts that were written ahead in vain, old events. */
#include "base/steady.h"
#include "catalog/chore_pass.h"
#include "catalog/chores.h"
#include "model/plain/plain_int.h"

enum {
	SWEEP_ARENA_BYTES = 4 * 1024 * 1024,
	SWEEP_NAMES = 100,        /* of collections, in one turn */
	SWEEP_TRANSACTIONS = 200, /* likewise */
	SWEEP_TEXTS = 1000,       /* of a collection, in one turn */
	SWEEP_STAGED_MS = 60 * 60 * 1000,
	SWEEP_CHORE_PAUSE_MS = 60 * 1000,
	SWEEP_CHORE_MORE_MS = 100,
};

#define SWEEP_CHORE "sweep_collections"

struct sweep {
	struct arena *arena;
	struct str name;
	uint64_t now_ms;
	bool more;
	struct err *err;
};

/*
 * One image that was written ahead. An event may come to refer to it at this moment, which clears
 * the pair of the list: so that is read once more, with a conflict.
 */
static enum status
sweep_image(struct sweep *sweep, struct plain *p, struct str key, const uint8_t *text)
{
	struct kv_future *f = kv_get(p->tx, key, KV_READ);
	struct tuple_reader r;
	struct str value;
	uint64_t ms;

	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &value))
		return STATUS_OK;
	r = tuple_reader(value);
	if (tuple_next_u64(&r, &ms) != STATUS_OK || r.rest.len)
		return plain_fail_corrupt(p, key, "the list of images that were written ahead");
	if (ms + SWEEP_STAGED_MS >= sweep->now_ms)
		return STATUS_OK;
	TRY(plain_image_clear_text(p, text));
	return kv_clear(p->tx, key);
}

/* One text that was written ahead. Its owner may be publishing it at this moment. */
static enum status
sweep_text(struct sweep *sweep, struct plain *p, const struct kv_pair *pair, size_t space_bytes)
{
	struct str key = pair->key;
	struct tuple_reader r = tuple_reader(str_skip(key, space_bytes));
	AUTO(buf_release) struct buf header = CATALOG_KEY_INIT;
	struct plain_text text = { 0 };
	struct tuple_elem e;
	struct kv_future *f;
	enum status status;
	struct str value;

	if (tuple_next(&r, &e) != STATUS_OK || e.kind != TUPLE_UUID)
		return plain_fail_corrupt(p, key, "the list of texts that were written ahead");
	if (pair->value.len)
		return sweep_image(sweep, p, key, (const uint8_t *)e.raw.ptr);
	plain_key_text(p->db, (const uint8_t *)e.raw.ptr, &header);
	TRY(catalog_key_status(&header));
	f = kv_get(p->tx, buf_str(&header), KV_READ);
	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &value))
		return plain_fail_corrupt(p, buf_str(&header), "a text");
	status = plain_text_parse(value, sweep->arena, &text, p->err);
	if (status == STATUS_CORRUPT)
		return plain_fail_corrupt(p, buf_str(&header), "a text");
	TRY(status);
	if (text.staged_ms + SWEEP_STAGED_MS >= sweep->now_ms)
		return STATUS_OK;
	TRY(plain_text_clear(p, (const uint8_t *)e.raw.ptr));
	return kv_clear(p->tx, key);
}

static enum status
sweep_texts(struct sweep *sweep, struct plain *p)
{
	const struct kv_range_options options = { .limit = SWEEP_TEXTS, .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct kv_range range;
	struct kv_future *f;

	plain_key_space(&begin, p->db, PLAIN_SPACE_STAGED);
	TRY(catalog_key_status(&begin));
	TRY(plain_key_end(buf_str(&begin), &end));
	f = kv_get_range(p->tx, buf_str(&begin), buf_str(&end), &options);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	for (size_t i = 0; i < range.count; i++) {
		enum status status = sweep_text(sweep, p, &range.pairs[i], begin.len);

		/* It writes when it has read everything: one that cannot be read stays whole. */
		if (status != STATUS_OK)
			TRY(chore_pass_over(SWEEP_CHORE, range.pairs[i].key, status, sweep->err));
	}
	return STATUS_OK;
}

static enum status
sweep_opened(struct sweep *sweep, struct kv_tx *tx, const struct catalog_db *db)
{
	struct plain p;

	plain_init(&p, tx, db, sweep->now_ms, sweep->err);
	TRY(sweep_texts(sweep, &p));
	return plain_log_clear(&p, sweep->now_ms - PLAIN_EVENTS_MS, &sweep->more);
}

static enum status
collection_sweep_body(struct kv_tx *tx, void *arg)
{
	struct sweep *sweep = arg;
	struct catalog_db *db;
	enum status status;

	sweep->more = false;
	arena_clear(sweep->arena);
	status = catalog_open(tx, NULL, CATALOG_SPACE_MONGO, sweep->name, &db, sweep->err);
	if (status == STATUS_NOT_FOUND) /* dropped meanwhile */
		return STATUS_OK;
	TRY(status);
	/* One that is being moved is swept where it arrives. */
	if (catalog_db_check_writable(db, NULL) == STATUS_OK)
		status = sweep_opened(sweep, tx, db);
	catalog_db_unref(db);
	return status;
}

/* ---- Notices ---- */

static enum status
notices_body(struct kv_tx *tx, void *arg)
{
	struct sweep *sweep = arg;

	return plain_notices_clear(tx, sweep->now_ms - PLAIN_EVENTS_MS, &sweep->more, sweep->err);
}

/* ---- Collections ---- */

static enum status
sweep_collections(struct kv_store *store, struct sweep *sweep, struct arena *arena,
		  struct buf *place, bool *ret_more)
{
	unsigned transactions = 0;
	struct name_page page;
	enum status status;

	TRY(catalog_list_behind(store, CATALOG_SPACE_MONGO, buf_str(place), SWEEP_NAMES, arena,
				&page, sweep->err));
	for (size_t i = 0; i < page.count; i++) {
		sweep->name = page.names[i];
		do {
			if (transactions++ == SWEEP_TRANSACTIONS) {
				*ret_more = true; /* of this collection, too */
				return STATUS_OK;
			}
			status = kv_run(store, collection_sweep_body, sweep, NULL, sweep->err);
			if (status != STATUS_OK) {
				TRY(chore_pass_over(SWEEP_CHORE, sweep->name, status, sweep->err));
				break;
			}
		} while (sweep->more);
		buf_clear(place);
		buf_append_str(place, sweep->name);
		TRY(buf_status(place));
	}
	*ret_more = page.more;
	if (!page.more)
		buf_clear(place);
	return STATUS_OK;
}

enum status
plain_sweep(struct kv_store *store, uint64_t now_ms, struct buf *place, bool *ret_more,
	    struct err *err)
{
	struct sweep sweep = { .arena = arena_new(SWEEP_ARENA_BYTES),
			       .now_ms = now_ms,
			       .err = err };
	struct arena *arena = arena_new(SWEEP_ARENA_BYTES);
	enum status status = arena && sweep.arena ? STATUS_OK : STATUS_NOMEM;

	*ret_more = false;
	if (status == STATUS_OK)
		status = kv_run(store, notices_body, &sweep, NULL, err);
	*ret_more = sweep.more;
	if (status == STATUS_OK && !sweep.more)
		status = sweep_collections(store, &sweep, arena, place, ret_more);
	arena_free(arena);
	arena_free(sweep.arena);
	return status;
}

/* ---- As a chore ---- */

static enum status
sweep_chore_run(void *arg, struct chore_turn *turn, struct err *err)
{
	struct plain_sweeping *s = arg;

	return plain_sweep(s->store, steady_ms(), &s->place, &turn->more, err);
}

void
plain_chores_add(struct chores *chores, struct plain_sweeping *sweeping)
{
	chores_add(chores, &(struct chore){
				   .name = SWEEP_CHORE,
				   .run = sweep_chore_run,
				   .arg = sweeping,
				   .leased = true,
				   .pause_ms = SWEEP_CHORE_PAUSE_MS,
				   .more_ms = SWEEP_CHORE_MORE_MS,
			   });
}
