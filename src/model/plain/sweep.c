/* Removes what nobody will ask for: texts that were written ahead in vain, old events. */
#include "base/clock.h"
#include "catalog/chores.h"
#include "model/plain/plain_int.h"

enum {
	SWEEP_ARENA_BYTES = 4 * 1024 * 1024,
	SWEEP_NAMES = 100,
	SWEEP_TEXTS = 1000, /* of a collection, in one turn */
	SWEEP_STAGED_MS = 60 * 60 * 1000,
	SWEEP_CHORE_PAUSE_MS = 60 * 1000,
	SWEEP_CHORE_MORE_MS = 100,
};

struct sweep {
	struct arena *arena;
	struct str name;
	uint64_t now_ms;
	bool more;
	struct err *err;
};

/* One text that was written ahead. Its owner may be publishing it at this moment. */
static enum status
sweep_text(struct sweep *sweep, struct plain *p, struct str key, size_t space_bytes)
{
	struct tuple_reader r = tuple_reader(str_skip(key, space_bytes));
	AUTO(buf_release) struct buf header = CATALOG_KEY_INIT;
	struct plain_text text = { 0 };
	struct tuple_elem e;
	struct kv_future *f;
	struct str value;

	if (tuple_next(&r, &e) != STATUS_OK || e.kind != TUPLE_UUID)
		return plain_fail_corrupt(p, key, "the list of texts that were written ahead");
	plain_key_text(p->db, (const uint8_t *)e.raw.ptr, &header);
	TRY(catalog_key_status(&header));
	f = kv_get(p->tx, buf_str(&header), KV_READ);
	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &value) ||
	    plain_text_parse(value, sweep->arena, &text, p->err) != STATUS_OK)
		return plain_fail_corrupt(p, buf_str(&header), "a text");
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
	TRY(plain_key_end(buf_str(&begin), &end));
	f = kv_get_range(p->tx, buf_str(&begin), buf_str(&end), &options);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	for (size_t i = 0; i < range.count; i++)
		TRY(sweep_text(sweep, p, range.pairs[i].key, begin.len));
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
sweep_body(struct kv_tx *tx, void *arg)
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

/* ---- All collections ---- */

struct sweep_names {
	struct arena *arena;
	struct str last; /* the name behind which the page begins; ptr NULL: the first page */
	struct name_page page;
};

static enum status
names_body(struct kv_tx *tx, void *arg)
{
	struct sweep_names *names = arg;
	const struct name_range range = {
		.begin = names->last,
		.has_begin = names->last.ptr != NULL,
		.exclusive_begin = names->last.ptr != NULL,
		.limit = SWEEP_NAMES,
	};

	return catalog_list(tx, CATALOG_SPACE_MONGO, &range, names->arena, &names->page);
}

/* ---- Notices ---- */

static enum status
notices_body(struct kv_tx *tx, void *arg)
{
	struct sweep *sweep = arg;

	return plain_notices_clear(tx, sweep->now_ms - PLAIN_EVENTS_MS, &sweep->more, sweep->err);
}

enum status
plain_sweep(struct kv_store *store, uint64_t now_ms, bool *ret_more, struct err *err)
{
	struct sweep_names names = { .arena = arena_new(SWEEP_ARENA_BYTES) };
	struct sweep sweep = { .arena = arena_new(SWEEP_ARENA_BYTES),
			       .now_ms = now_ms,
			       .err = err };
	enum status status = names.arena && sweep.arena ? STATUS_OK : STATUS_NOMEM;

	if (status == STATUS_OK)
		status = kv_run(store, notices_body, &sweep, NULL, err);
	*ret_more = sweep.more;
	do {
		if (status == STATUS_OK)
			status = kv_run_read(store, names_body, &names, err);
		for (size_t i = 0; status == STATUS_OK && i < names.page.count; i++) {
			sweep.name = names.last = names.page.names[i];
			status = kv_run(store, sweep_body, &sweep, NULL, err);
			*ret_more = *ret_more || sweep.more;
		}
	} while (status == STATUS_OK && names.page.more);
	arena_free(names.arena);
	arena_free(sweep.arena);
	return status;
}

/* ---- As a chore ---- */

static enum status
sweep_chore_run(void *store, struct chore_turn *turn, struct err *err)
{
	return plain_sweep(store, clock_wall_ms(), &turn->more, err);
}

void
plain_chores_add(struct chores *chores, struct kv_store *store)
{
	chores_add(chores, &(struct chore){
				   .name = "sweep_collections",
				   .run = sweep_chore_run,
				   .arg = store,
				   .leased = true,
				   .pause_ms = SWEEP_CHORE_PAUSE_MS,
				   .more_ms = SWEEP_CHORE_MORE_MS,
			   });
}
