#include <assert.h>

#include "base/metric.h"
#include "catalog/chore_pass.h"
#include "catalog/chores.h"
#include "kv/tuple.h"
#include "model/timed/timed_int.h"
#include "model/timed/versions.h"

/*
 * Removing what has expired. Reads hide it from its moment on; here it goes, by the entries
 *
 *     (P, EXPIRY, shard, ms, hash components, range components, path…) → ''
 *
 * which whoever writes a cell with an expiry leaves, and which stay when the cell is overwritten or
 * cleared, since that is done without reading. So an entry says only where to look: a cell goes if
 * it is there and expires at the entry's time.
 */

enum {
	SWEEP_SHARD_KEYS = TIMED_SWEEP_KEYS / TIMED_EXPIRY_SHARDS,
	SWEEP_NAMES = 100, /* of databases, on a page */
	SWEEP_ARENA_BYTES = 16 * 1024 * 1024,

	SWEEP_CHORE_TRANSACTIONS = 20,
	SWEEP_CHORE_MORE_MS = 20, /* while there is more to do: others write, too */
	/*
	 * Between two sweeps while somebody waits to be told: what expires right after one is told
	 * by the next one.
	 */
	SWEEP_CHORE_SOON_MS = 25,
};

#define SWEEP_CHORE "sweep_expired"

static const char *const bounds[TIMED_HISTORY_BYS] = {
	[TIMED_HISTORY_BY_SECONDS] = "seconds",
	[TIMED_HISTORY_BY_BYTES] = "bytes",
};

METRIC_COUNTERS(
	history_ended, "frond_history_ended_total", METRIC_NUMBER,
	"Stretches of the past of databases that can no longer be read, by the bound that they "
	"were beyond.",
	"bound", bounds);
METRIC_COUNTER(versions_forgotten, "frond_history_versions_forgotten_total", METRIC_NUMBER,
	       "Versions of keys that can no longer be read, because the past of their database is "
	       "bounded by versions.");

/* The sweep of one database in one transaction. */
struct sweep {
	const struct timed_clock *clock;
	enum catalog_space space;
	struct str name;
	struct arena *arena; /* of one attempt */
	struct err *err;
	uint64_t done;
	bool more;
	const struct timed_listener *listener; /* NULL: nobody is told of what has gone */
	bool removes;                          /* the listener has heard of an attempt */
	timed_removed *tell;                   /* NULL: there are no other processes to be told */
	const struct timed_expired *gone;      /* of the attempt; in its arena */
	const struct timed_expired **gone_end;
	bool looks_ahead;           /* for what expires next */
	uint64_t soon_ms;           /* of all databases so far, after their last attempts */
	struct timed_tended tended; /* by the attempt */
};

/* One shard of a database, while its entries are looked at. */
struct sweep_shard {
	struct sweep *sweep;
	const struct timed_kind *kind;
	struct timed t;
	struct kv_future *entries;
	struct kv_future *next; /* the first entry that is not due; NULL: nobody asks */
	struct kv_future *asked[SWEEP_SHARD_KEYS]; /* by due_ask() */
};

/* ---- One entry ---- */

/* What an entry says; the key of its cell is in the buffer, and `*ret` points into both keys. */
static enum status
entry_parse(const struct catalog_db *db, struct str entry, struct timed_due *ret, struct buf *key)
{
	struct tuple_reader r = tuple_reader(str_skip(entry, db->prefix.len));
	uint64_t space, shard;

	TRY(tuple_next_u64(&r, &space));
	TRY(tuple_next_u64(&r, &shard));
	TRY(tuple_next_u64(&r, &ret->ms));
	timed_key_space(key, db, TIMED_SPACE_ROWS);
	buf_append_str(key, r.rest);
	ret->tail = r.rest;
	ret->key = buf_str(key);
	return catalog_key_status(key);
}

/* Keeps what this attempt has removed, for those who are told. */
static enum status
note_gone(struct sweep *sweep, const struct timed_expired *what)
{
	struct timed_expired *gone;

	if (!sweep->listener && !sweep->tell)
		return STATUS_OK;
	gone = arena_zalloc(sweep->arena, sizeof(*gone));
	if (!gone)
		return STATUS_LIMIT;
	*gone = *what;
	gone->next = NULL;
	gone->db = sweep->name;
	*sweep->gone_end = gone;
	sweep->gone_end = &gone->next;
	return STATUS_OK;
}

static enum status
sweep_entry(struct sweep_shard *s, struct str entry, struct kv_future *asked)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct timed_due_swept swept = { 0 };
	struct timed_due due;

	TRY(entry_parse(s->t.db, entry, &due, &key));
	TRY(s->kind->due_sweep(&s->t, &due, asked, s->sweep->arena, &swept));
	if (swept.what.key.ptr)
		TRY(note_gone(s->sweep, &swept.what));
	s->sweep->done += swept.done;
	s->sweep->more = s->sweep->more || swept.more;
	return swept.stays ? STATUS_OK : kv_clear(s->t.tx, entry);
}

/*
 * What is made of the failure of one entry. One that cannot be read stays, as its cell does, and
 * the others are swept. If something of it has been written in this attempt, only the whole
 * attempt can be given up.
 */
static enum status
pass_over_entry(struct sweep_shard *s, struct str entry, uint64_t written, enum status status)
{
	const struct kv_tx_stats stats = kv_tx_stats(s->t.tx);

	if (status == STATUS_OK || stats.sets + stats.clears != written)
		return status;
	return chore_pass_over(SWEEP_CHORE, entry, status, s->sweep->err);
}

static uint64_t
written_so_far(const struct sweep_shard *s)
{
	const struct kv_tx_stats stats = kv_tx_stats(s->t.tx);

	return stats.sets + stats.clears;
}

/* ---- One database ---- */

/* Asks for entries of the shard, from one moment up to another. */
static enum status
shard_ask_between(struct sweep_shard *s, unsigned shard, uint64_t from_ms, uint64_t to_ms,
		  size_t limit, struct kv_future **ret)
{
	const struct kv_range_options options = { .limit = limit, .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;

	timed_key_space(&begin, s->t.db, TIMED_SPACE_EXPIRY);
	tuple_put_u64(&begin, shard);
	buf_append_buf(&end, &begin);
	if (from_ms)
		tuple_put_u64(&begin, from_ms);
	tuple_put_u64(&end, to_ms);
	TRY(catalog_key_status(&begin));
	TRY(catalog_key_status(&end));
	*ret = kv_get_range(s->t.tx, buf_str(&begin), buf_str(&end), &options);
	return STATUS_OK;
}

/* Asks for the entries of the shard that are due, and for the first that will be soon. */
static enum status
shard_ask(struct sweep_shard *s, unsigned shard)
{
	uint64_t next_ms = s->t.now_us / TIMED_US_PER_MS + 1;

	TRY(shard_ask_between(s, shard, 0, next_ms, SWEEP_SHARD_KEYS, &s->entries));
	if (!s->sweep->looks_ahead || !s->kind->tells)
		return STATUS_OK;
	return shard_ask_between(s, shard, next_ms, next_ms + TIMED_SOON_MS, 1, &s->next);
}

/* Notes when the next entry of the shard is due. */
static enum status
shard_look_ahead(struct sweep_shard *s)
{
	AUTO(buf_release) struct buf ignored = CATALOG_KEY_INIT;
	uint64_t now_ms = s->t.now_us / TIMED_US_PER_MS;
	struct timed_due due;
	struct kv_range range;

	if (!s->next)
		return STATUS_OK;
	TRY(kv_future_wait(s->next));
	range = kv_future_range(s->next);
	if (!range.count || entry_parse(s->t.db, range.pairs[0].key, &due, &ignored) != STATUS_OK)
		return STATUS_OK; /* one that cannot be read is passed over when it is due */
	/* One more, or the next sweep could come within the millisecond before. */
	if (due.ms + 1 - now_ms < s->sweep->soon_ms)
		s->sweep->soon_ms = due.ms + 1 - now_ms;
	return STATUS_OK;
}

/*
 * Asks for what the sweep of each entry will read. An entry that cannot be read is told of when its
 * turn comes.
 */
static void
shard_ask_dues(struct sweep_shard *s, const struct kv_range *entries)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct timed_due due;

	for (size_t i = 0; i < entries->count; i++) {
		s->asked[i] = NULL;
		if (s->kind->due_ask &&
		    entry_parse(s->t.db, entries->pairs[i].key, &due, &key) == STATUS_OK)
			s->asked[i] = s->kind->due_ask(&s->t, &due);
	}
}

static enum status
shard_sweep(struct sweep_shard *s)
{
	struct kv_range range;

	TRY(kv_future_wait(s->entries));
	range = kv_future_range(s->entries);
	assert(range.count <= SWEEP_SHARD_KEYS);
	s->sweep->more = s->sweep->more || range.more;
	shard_ask_dues(s, &range);
	for (size_t i = 0; i < range.count; i++) {
		uint64_t written = written_so_far(s);
		enum status status = sweep_entry(s, range.pairs[i].key, s->asked[i]);

		TRY(pass_over_entry(s, range.pairs[i].key, written, status));
	}
	return STATUS_OK;
}

static enum status
sweep_opened(struct sweep *sweep, struct kv_tx *tx, const struct catalog_db *db)
{
	const struct timed_kind *kind = timed_kind_of(db);
	struct sweep_shard shards[TIMED_EXPIRY_SHARDS];
	struct timed t;

	timed_init(&t, tx, db, sweep->clock, sweep->err);
	TRY(timed_now(&t));
	TRY(timed_history_tend(&t, &sweep->tended));
	if (sweep->tended.changed) {
		/* What that makes old is cleared by another transaction. */
		sweep->more = true;
		return STATUS_OK;
	}
	TRY(timed_history_clear(&t, &sweep->done, &sweep->more));
	TRY(timed_trim_clear(&t, &sweep->done, &sweep->more));
	TRY(timed_history_count(&t, &sweep->done, &sweep->more));
	TRY(timed_trim(&t, &sweep->tended, &sweep->done, &sweep->more));
	TRY(kind->tend(&t, &sweep->done, &sweep->more));
	for (unsigned i = 0; i < TIMED_EXPIRY_SHARDS; i++) {
		shards[i] = (struct sweep_shard){ .sweep = sweep, .kind = kind, .t = t };
		TRY(shard_ask(&shards[i], i));
	}
	for (unsigned i = 0; i < TIMED_EXPIRY_SHARDS; i++) {
		TRY(shard_sweep(&shards[i]));
		TRY(shard_look_ahead(&shards[i]));
	}
	return STATUS_OK;
}

static enum status
sweep_body(struct kv_tx *tx, void *arg)
{
	struct sweep *sweep = arg;
	struct catalog_db *db;
	enum status status;

	sweep->done = 0;
	sweep->more = false;
	sweep->tended = (struct timed_tended){ 0 };
	arena_clear(sweep->arena);
	sweep->gone = NULL;
	sweep->gone_end = &sweep->gone;
	status = catalog_open(tx, NULL, sweep->space, sweep->name, &db, sweep->err);
	if (status == STATUS_NOT_FOUND) /* deleted meanwhile */
		return STATUS_OK;
	TRY(status);
	/* One that is being moved is swept where it arrives. */
	if (catalog_db_check_writable(db, NULL) == STATUS_OK)
		status = sweep_opened(sweep, tx, db);
	catalog_db_unref(db);
	TRY(status);
	if (sweep->gone && sweep->tell)
		TRY(sweep->tell(tx, sweep->gone));
	if (sweep->gone && sweep->listener) {
		sweep->removes = true;
		sweep->listener->removing(sweep->listener->arg, sweep->gone);
	}
	return STATUS_OK;
}

/* ---- All databases ---- */

/* Until all is done, or `*transactions` have been used. */
static enum status
sweep_database(struct kv_store *store, struct sweep *sweep, unsigned *transactions,
	       uint64_t *ret_done)
{
	do {
		enum status status;

		sweep->removes = false;
		status = kv_run(store, sweep_body, sweep, NULL, sweep->err);
		if (sweep->removes)
			sweep->listener->expired(sweep->listener->arg,
						 status == STATUS_OK ? sweep->gone : NULL);
		TRY(status);
		for (unsigned i = 0; i < TIMED_HISTORY_BYS; i++)
			metric_add_at(&history_ended, i, sweep->tended.ended[i]);
		metric_add(&versions_forgotten, sweep->tended.forgotten);
		*ret_done += sweep->done;
		*transactions -= sweep->done || sweep->more;
	} while (sweep->more && *transactions);
	return STATUS_OK;
}

/* A database that cannot be swept is passed over, so that the others are. */
static enum status
sweep_database_or_pass(struct kv_store *store, struct sweep *sweep, unsigned *transactions,
		       uint64_t *ret_done)
{
	enum status status = sweep_database(store, sweep, transactions, ret_done);

	if (status != STATUS_OK)
		sweep->more = false;
	return status == STATUS_OK ? STATUS_OK
				   : chore_pass_over(SWEEP_CHORE, sweep->name, status, sweep->err);
}

/* The databases of one name space. */
static enum status
sweep_space(struct kv_store *store, struct sweep *sweep, struct arena *arena,
	    unsigned *transactions, uint64_t *ret_done, bool *ret_more)
{
	AUTO(buf_release) struct buf place = CATALOG_KEY_INIT;
	struct name_page page;

	do {
		arena_clear(arena);
		TRY(catalog_list_behind(store, sweep->space, buf_str(&place), SWEEP_NAMES, arena,
					&page, sweep->err));
		for (size_t i = 0; i < page.count; i++) {
			sweep->name = page.names[i];
			sweep->more = *transactions == 0;
			if (*transactions)
				TRY(sweep_database_or_pass(store, sweep, transactions, ret_done));
			*ret_more = *ret_more || sweep->more;
		}
		buf_clear(&place);
		if (page.more)
			buf_append_str(&place, page.names[page.count - 1]);
		TRY(buf_status(&place));
	} while (page.more && *transactions);
	return STATUS_OK;
}

enum status
timed_sweep(struct kv_store *store, const struct timed_clock *clock, unsigned transactions,
	    uint64_t *ret_done, bool *ret_more, struct err *err)
{
	const struct timed_sweeping s = { .store = store, .clock = clock };
	struct timed_swept_all swept;
	enum status status = timed_sweep_telling(&s, transactions, &swept, err);

	*ret_done = swept.done;
	*ret_more = swept.more;
	return status;
}

static timed_removed *removed_tell;

void
timed_removed_register(timed_removed *tell)
{
	removed_tell = tell;
}

enum status
timed_sweep_telling(const struct timed_sweeping *s, unsigned transactions,
		    struct timed_swept_all *ret, struct err *err)
{
	const struct timed_kind *kind;
	struct sweep sweep = { .clock = s->clock,
			       .err = err,
			       .arena = arena_new(SWEEP_ARENA_BYTES),
			       .listener = s->listener,
			       .tell = kv_is_shared(s->store) ? removed_tell : NULL,
			       .looks_ahead = s->listener && s->listener->waits(s->listener->arg),
			       .soon_ms = TIMED_SOON_MS };
	struct arena *arena = arena_new(SWEEP_ARENA_BYTES);
	enum status status = arena && sweep.arena ? STATUS_OK : STATUS_NOMEM;

	*ret = (struct timed_swept_all){ 0 };
	for (size_t i = 0; status == STATUS_OK && (kind = timed_kind_at(i)); i++) {
		sweep.space = kind->catalog->space;
		status = sweep_space(s->store, &sweep, arena, &transactions, &ret->done,
				     &ret->more);
	}
	ret->soon_ms = sweep.soon_ms;
	arena_free(arena);
	arena_free(sweep.arena);
	return status;
}

/* ---- As a chore ---- */

static enum status
sweep_chore_run(void *arg, struct chore_turn *turn, struct err *err)
{
	const struct timed_sweeping *s = arg;
	struct timed_swept_all swept;
	enum status status = timed_sweep_telling(s, turn->budget, &swept, err);

	turn->done = swept.done;
	turn->more = swept.more;
	turn->soon_ms = swept.soon_ms;
	/* Another process does not tell this one what it writes (timed_sweep_by()). */
	if (kv_is_shared(s->store) && s->listener && s->listener->waits(s->listener->arg))
		turn->soon_ms = SWEEP_CHORE_SOON_MS;
	return status;
}

void
timed_chores_add(struct chores *chores, struct timed_sweeping *s)
{
	chores_add(chores, &(struct chore){
				   .name = SWEEP_CHORE,
				   .run = sweep_chore_run,
				   .arg = s,
				   .thread = CHORE_ALONE,
				   .leased = true,
				   .budget = SWEEP_CHORE_TRANSACTIONS,
				   .pause_ms = TIMED_SOON_MS,
				   .more_ms = SWEEP_CHORE_MORE_MS,
				   .least_ms = SWEEP_CHORE_SOON_MS,
			   });
}

void
timed_sweep_by(struct chores *chores, uint64_t ms)
{
	chores_hurry_by(chores, SWEEP_CHORE, ms);
}
