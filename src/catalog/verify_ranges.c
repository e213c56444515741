/*
 * A check in ranges (verify.h), while others write. Each range is read in a transaction of its own.
 * What is compared with each other is read in the same transaction, so that no writer can change
 * one of it and not the other.
 */
#include "catalog/check.h"

#include "base/clock.h"
#include "base/mem.h"
#include "loop/pause.h"

enum {
	RANGE_UNITS = 10000,
	RANGE_MS = 1000,  /* then a range ends: a cluster keeps its version for five seconds */
	RANGE_TRIES = 10, /* of one range, each with half as much in it */
	HELD_BYTES = 1024 * 1024, /* of findings of a range that is under way */
};

/* ---- Findings of a range that is not done ---- */

struct held {
	struct catalog_finding finding;
	struct held *next;
};

struct catalog_verify_held {
	struct arena *arena;
	struct held *first;
	struct held **last;
	struct catalog_verify_sum sum; /* before the range */
};

static bool
held_add(struct catalog_verify *v, const struct catalog_finding *finding)
{
	struct catalog_verify_held *held = v->held;
	struct held *one = arena_alloc(held->arena, sizeof(*one));
	struct str text;

	if (!one)
		return false;
	*one = (struct held){ .finding = *finding };
	if (arena_copy(held->arena, finding->key, &one->finding.key) != STATUS_OK ||
	    arena_copy(held->arena, finding->database, &one->finding.database) != STATUS_OK ||
	    arena_copy(held->arena, str_from_cstr(finding->text), &text) != STATUS_OK)
		return false;
	one->finding.text = text.ptr;
	*held->last = one;
	held->last = &one->next;
	return true;
}

static void
held_begin(struct catalog_verify *v, struct catalog_verify_held *held)
{
	arena_clear(held->arena);
	held->first = NULL;
	held->last = &held->first;
	held->sum = v->sum;
	v->held = held;
	v->hold = held_add;
}

/* The range is done: what was found in it is told. */
static void
held_tell(struct catalog_verify *v)
{
	const struct held *one = v->held->first;

	v->held = NULL;
	for (; one; one = one->next)
		v->options->found(&one->finding, v->options->arg);
}

static void
held_drop(struct catalog_verify *v)
{
	v->sum = v->held->sum;
	v->held = NULL;
}

/* ---- One range ---- */

/*
 * Takes a version to read, and looks whether the database is still there. A database that was
 * deleted since the last range keeps some of its keys for a while.
 */
static enum status
range_open(struct catalog_verify *v)
{
	struct catalog_db *db;
	struct err err = { 0 };
	enum status status;

	TRY(kv_get_read_version(v->tx, &v->read_version));
	status = catalog_open_bare(v->tx, NULL, v->db->kind->space, v->db->name, &db, &err);
	if (status == STATUS_OK) {
		if (db->number != v->db->number)
			status = STATUS_NOT_FOUND;
		catalog_db_unref(db);
	}
	v->gone = status == STATUS_NOT_FOUND;
	return status;
}

bool
catalog_verify_range_is_full(struct catalog_verify_range *range)
{
	if (range->units && (range->units >= range->most || clock_mono_ns() >= range->until_ns))
		return true;
	range->units++;
	return false;
}

enum catalog_verify_unit
catalog_verify_range_unit(struct catalog_verify *v, struct catalog_verify_range *range,
			  const struct catalog_verify_cursor *c, const char *what)
{
	bool ends = range->skips ? range->units++ > 0 : catalog_verify_range_is_full(range);

	if (ends) {
		range->more = true;
		buf_append_str(&range->next, c->tail);
		return CATALOG_VERIFY_END;
	}
	if (!range->skips)
		return CATALOG_VERIFY_CHECK;
	catalog_verify_unchecked(v, c->pair.key, what);
	return CATALOG_VERIFY_PASS;
}

static enum status
range_try(struct catalog_verify *v, struct catalog_verify_range *range,
	  catalog_verify_range_body *body)
{
	range->until_ns = clock_after_ms(RANGE_MS);
	range->units = 0;
	range->more = false;
	buf_clear(&range->next);
	TRY(range_open(v));
	TRY(body(v, range));
	return buf_status(&range->next);
}

/* Pauses for as long as what was read may take. */
static void
range_pace(const struct catalog_verify *v, uint64_t begun_ns, uint64_t bytes)
{
	uint64_t due_ns, rate = v->options->rate_bytes;

	if (!rate)
		return;
	due_ns = begun_ns + (uint64_t)((double)bytes / (double)rate * 1e9);
	wait_pause_until(due_ns);
}

/*
 * After a failure of a range: STATUS_OK to try again, with less in it. A range of a single unit
 * cannot have less: the next attempt passes over the unit.
 */
static enum status
range_again(struct catalog_verify *v, struct catalog_verify_range *range, unsigned tries,
	    enum status failed)
{
	TRY(kv_on_error(v->tx, failed));
	if (failed == STATUS_TX_TOO_OLD)
		range->most = range->most > 1 ? range->most / 2 : 1;
	range->skips = tries >= RANGE_TRIES;
	return tries < 2 * RANGE_TRIES ? STATUS_OK : failed;
}

void
catalog_verify_unchecked(struct catalog_verify *v, struct str key, const char *what)
{
	v->sum.unchecked++;
	catalog_verify_found(v, CATALOG_FINDING_UNCHECKED, key,
			     "%s takes longer than the store keeps one moment to read", what);
}

enum status
catalog_verify_ranges(struct catalog_verify *v, catalog_verify_range_body *body, void *arg)
{
	struct catalog_verify_held held = { .arena = arena_new(HELD_BYTES) };
	size_t units = v->options->range_units ? v->options->range_units : RANGE_UNITS;
	struct catalog_verify_range range = {
		.from = CATALOG_KEY_INIT,
		.next = CATALOG_KEY_INIT,
		.most = units,
		.more = true,
		.arg = arg,
	};
	enum status status = held.arena ? STATUS_OK : STATUS_NOMEM;
	unsigned tries = 0;

	while (status == STATUS_OK && range.more && !v->gone) {
		uint64_t begun_ns = clock_mono_ns();

		held_begin(v, &held);
		status = range_try(v, &range, body);
		if (status == STATUS_OK) {
			range_pace(v, begun_ns, v->sum.bytes - held.sum.bytes);
			held_tell(v);
			buf_clear(&range.from);
			buf_append_buf(&range.from, &range.next);
			status = buf_status(&range.from);
			range.most = range.most < units ? 2 * range.most : units;
			range.skips = false;
			tries = 0;
			kv_tx_reset(v->tx);
			continue;
		}
		held_drop(v);
		range.more = true;
		if (!v->gone)
			status = range_again(v, &range, ++tries, status);
	}
	buf_release(&range.from);
	buf_release(&range.next);
	arena_free(held.arena);
	return v->gone ? STATUS_OK : status;
}

/* ---- One subspace ---- */

/* True if the pair under the cursor begins a unit, whose tail's first bytes `unit` then has. */
static bool
walk_begins_unit(const struct catalog_verify *v, const struct catalog_verify_walk *walk,
		 const struct catalog_verify_cursor *c, struct buf *unit)
{
	size_t len = walk->unit ? walk->unit(v, c) : c->tail.len;

	if (walk->unit && (!len || str_eq(str_of(c->tail.ptr, len), buf_str(unit))))
		return false;
	buf_clear(unit);
	buf_append(unit, c->tail.ptr, len);
	return true;
}

enum status
catalog_verify_walk(struct catalog_verify *v, const struct catalog_verify_walk *walk,
		    struct catalog_verify_range *range)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };
	AUTO(buf_release) struct buf unit = CATALOG_KEY_INIT;
	enum catalog_verify_unit of = CATALOG_VERIFY_CHECK;

	TRY(catalog_verify_cursor_open_from(v, &c, walk->space,
					    range ? buf_str(&range->from) : STR("")));
	while (!c.done) {
		c.begins_unit = walk_begins_unit(v, walk, &c, &unit);
		TRY(buf_status(&unit));
		if (range && c.begins_unit)
			of = catalog_verify_range_unit(v, range, &c, walk->what);
		if (of == CATALOG_VERIFY_END) {
			/* By then the unit may have got pairs in front of this one. */
			buf_clear(&range->next);
			buf_append_buf(&range->next, &unit);
			break;
		}
		if (of == CATALOG_VERIFY_CHECK)
			TRY(walk->check(v, &c, walk->arg));
		TRY(catalog_verify_cursor_next(v, &c));
	}
	return STATUS_OK;
}

/* ---- What has to be read at once ---- */

enum status
catalog_verify_whole_body(struct catalog_verify *v, struct catalog_verify_range *range)
{
	const struct catalog_verify_whole *whole = range->arg;

	if (!range->skips)
		return whole->part(v);
	catalog_verify_unchecked(v, v->db->prefix, whole->what);
	return STATUS_OK;
}

enum status
catalog_verify_once(struct catalog_verify *v, catalog_verify_part *part, const char *what)
{
	struct catalog_verify_whole whole = { part, what };

	return catalog_verify_ranges(v, catalog_verify_whole_body, &whole);
}

enum status
catalog_verify_in_ranges(struct catalog_verify *v)
{
	struct kv_tx *outer = v->tx;
	enum status status;

	TRY(kv_begin(kv_tx_store(outer), KV_TX_READ_ONLY, &v->tx));
	v->still = false;
	v->gone = false;
	status = v->db->kind->verify(v);
	if (status == STATUS_CORRUPT)
		err_write(kv_tx_err(outer), status, "%s", kv_tx_error(v->tx));
	kv_tx_free(v->tx);
	v->tx = outer;
	v->still = true;
	return status;
}
