/*
 * Which writers compare what they write with what is there (row.h, table_stamp_set()).
 *
 *     (P, MARKS, 3) → the highest stamp of the table that was ahead of the clock, as the clock is
 *
 * A writer without a stamp has the moment of its transaction in place of one. Nothing that it can
 * see has a later one, unless clients had stamps ahead of the clock. The highest of these is kept.
 * So in a table with stamps such a writer reads this one key beside the clock, and is blind when
 * its moment is past it.
 */
#include <endian.h>

#include "kv/tuple.h"
#include "model/timed/tables/stamps.h"

/* ---- What the caller says ---- */

enum status
table_stamp_set(struct timed *t, int64_t stamp)
{
	if (table_schema_of(t->db)->counters)
		return err_set(t->err, STATUS_INVALID, "counters have no stamps");
	if (stamp == INT64_MIN)
		return err_set(t->err, STATUS_INVALID,
			       "Out of bound timestamp, must be in [%lld, %lld]",
			       (long long)INT64_MIN + 1, (long long)INT64_MAX);
	t->has_stamp = true;
	t->stamp = stamp;
	return STATUS_OK;
}

void
table_stamp_unset(struct timed *t)
{
	t->has_stamp = false;
	t->stamp = 0;
}

void
table_restore_begin(struct timed *t)
{
	t->restores = true;
}

void
table_restore_end(struct timed *t)
{
	t->restores = false;
	table_stamp_unset(t);
}

/* ---- The highest stamp ---- */

static enum status
highest_key(const struct timed *t, struct buf *key)
{
	timed_key_space(key, t->db, TIMED_SPACE_MARKS);
	tuple_put_u64(key, TABLE_MARK_HIGHEST);
	return catalog_key_status(key);
}

static enum status
highest_take(struct timed *t, struct kv_future *asked)
{
	uint64_t us = 0;
	struct str value;

	TRY(kv_future_wait(asked));
	if (kv_future_value(asked, &value) && timed_clock_parse(value, &us) != STATUS_OK)
		return err_set(t->err, STATUS_CORRUPT,
			       "the highest stamp of the table cannot be read");
	/* It may have raised that itself. */
	if (us > t->highest_us)
		t->highest_us = us;
	t->knows_highest = true;
	return STATUS_OK;
}

/* A stamp ahead of the clock is kept; blindly, so that two such writers do not conflict. */
static enum status
highest_raise(struct timed *t)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	uint64_t us = (uint64_t)t->stamp;

	if (!t->has_stamp || t->stamp <= (int64_t)t->now_us || us <= t->highest_us)
		return STATUS_OK;
	TRY(highest_key(t, &key));
	t->highest_us = us;
	us = htole64(us);
	return kv_atomic(t->tx, KV_MAX, buf_str(&key), str_of(&us, sizeof(us)));
}

/* ---- Beginning ---- */

static enum status
begin_blind(struct timed *t, bool writes)
{
	/* What only clears needs no moment without a history, and then reads nothing. */
	if (writes || timed_history_seconds(t->db))
		return timed_write_begin(t);
	TRY(catalog_db_check_writable(t->db, t->err));
	return timed_touch(t);
}

enum status
table_order_begin(struct timed *t, bool writes, struct table_order *ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct kv_future *asked = NULL;

	*ret = (struct table_order){ 0 };
	/* The first use of a stamp in the table: the writer begins again, and finds the flag. */
	if (!table_schema_of(t->db)->stamped)
		return t->has_stamp ? table_schema_note(t, TABLE_FIRST_STAMP)
				    : begin_blind(t, writes);
	/* Asked for with the clock, and with a conflict: whoever raises it meanwhile is seen. */
	if (!t->has_stamp && !t->restores && !t->knows_highest) {
		TRY(highest_key(t, &key));
		asked = kv_get(t->tx, buf_str(&key), KV_READ);
	}
	TRY(timed_write_begin(t));
	if (asked)
		TRY(highest_take(t, asked));
	TRY(highest_raise(t));
	if (t->restores)
		return STATUS_OK;
	ret->marks = true;
	ret->ties = !t->has_stamp;
	ret->stamp = t->has_stamp ? t->stamp : (int64_t)t->now_us;
	ret->compares = t->has_stamp || t->highest_us >= t->now_us;
	return STATUS_OK;
}
