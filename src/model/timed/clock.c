#include <assert.h>
#include <endian.h>
#include <pthread.h>

#include "base/clear.h"
#include "base/steady.h"
#include "catalog/seq.h"
#include "model/timed/renew.h"
#include "model/timed/timed_int.h"

/*
 * (P, CLOCK) → the microseconds since 1970 of the latest write, little-endian, moved on by KV_MAX
 * alone, so that no two writers conflict for it. The moment of a transaction is the later one of
 * the local clock and this one. A writer's moment is later than that of every write it can see, so
 * that write times of one row never go back, whichever process has written.
 *
 * A database may be ahead of the local clock: a process whose clock is ahead has written, or the
 * database comes from such a store. Its time goes on all the same, from when this process first saw
 * it there (clock_carry()): what shall live for a minute lives for a minute.
 *
 * (P, CHANGED) → the versionstamp of the latest change, deletions included, for watches.
 */

enum {
	CLOCK_BYTES = 8,
	CLOCK_KEY_BYTES = 32,
	HISTORY_VALUE_BYTES = 2000, /* of the state of the history */
};

/* A buffer that never grows beyond `room`, and is not released. */
static struct buf
clock_key_buf(char room[static CLOCK_KEY_BYTES])
{
	return (struct buf){ .ptr = room, .cap = CLOCK_KEY_BYTES, .max_bytes = CLOCK_KEY_BYTES };
}

enum status
timed_clock_parse(struct str value, uint64_t *ret_us)
{
	uint64_t us;

	if (value.len != CLOCK_BYTES)
		return STATUS_CORRUPT;
	memcpy(&us, value.ptr, sizeof(us));
	*ret_us = le64toh(us);
	return STATUS_OK;
}

void
timed_init(struct timed *t, struct kv_tx *tx, const struct catalog_db *db,
	   const struct timed_clock *clock, struct err *err)
{
	/*
	 * The buckets of a history and the bytes of `checked` are most of the struct, and are not
	 * cleared: nobody reads more of them than their counts say, and these become 0 here.
	 */
	CLEAR_BEFORE(t, state);
	CLEAR_BETWEEN(t, state.buckets, state.count, checked);
	CLEAR_BEHIND(t, checked, checked_len);
	t->tx = tx;
	t->db = db;
	t->clock = clock;
	t->err = err;
}

enum status
timed_ask(struct timed *t)
{
	char room[CLOCK_KEY_BYTES];
	struct buf key = clock_key_buf(room);

	/* The state of the history is asked for with the clock, and taken with it. */
	assert(t->asked || !t->asked_state);
	if (t->now_us || t->asked)
		return STATUS_OK;
	timed_key_space(&key, t->db, TIMED_SPACE_CLOCK);
	TRY(buf_status(&key));
	t->asked = kv_get(t->tx, buf_str(&key), KV_SNAPSHOT);
	if (!timed_history_seconds(t->db))
		return STATUS_OK;
	/* A writer conflicts with whoever begins a new bucket. */
	TRY(timed_history_key(t->db, &key));
	t->asked_state = kv_get(t->tx, buf_str(&key), t->at_us ? KV_SNAPSHOT : KV_READ);
	return STATUS_OK;
}

/* The state of the history that was asked for with the clock. */
static enum status
take_state(struct timed *t)
{
	enum status status;
	struct str value;

	if (!t->asked_state)
		return STATUS_OK;
	TRY(kv_future_wait(t->asked_state));
	status = kv_future_value(t->asked_state, &value)
			 ? history_state_parse(value, &t->state, t->err)
			 : STATUS_CORRUPT;
	t->asked_state = NULL;
	if (status == STATUS_CORRUPT)
		return err_set(t->err, status, "the history of the database cannot be read");
	t->has_history = status == STATUS_OK;
	return status;
}

enum status
timed_history_write(struct timed *t)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(HISTORY_VALUE_BYTES);

	TRY(timed_history_key(t->db, &key));
	history_state_put(&t->state, &value);
	TRY(buf_status(&value));
	return kv_set(t->tx, buf_str(&key), buf_str(&value));
}

void
timed_at_us(struct timed *t, uint64_t us)
{
	t->at_us = us ? us : 1;
}

void
timed_at_date_us(struct timed *t, uint64_t us)
{
	timed_at_us(t, us);
	t->at_is_date = true;
}

void
timed_at(struct timed *t, uint64_t ms)
{
	timed_at_us(t, ms * TIMED_US_PER_MS + TIMED_US_PER_MS - 1);
}

/* ---- Databases that are ahead ---- */

enum {
	CARRIED_MOST = 256,
	CARRIED_LEAST_US = 2000, /* processes' clocks differ; a database this little ahead waits */
};

/*
 * What this process knows of databases that are ahead of its clock: the time of one at a moment of
 * a clock that counts what passes. A database that falls out of the table is carried on from what
 * is stored. The lock owns the table; whoever holds it only computes.
 */
static struct {
	pthread_mutex_t lock;
	struct carried {
		uint8_t uuid[16];
		uint64_t now_us, passed_us;
	} databases[CARRIED_MOST];
} carried = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* The time of a database that is ahead: `stored_us`, and what has passed since it was seen. */
static uint64_t
clock_carry(const uint8_t uuid[16], uint64_t stored_us, uint64_t passed_us)
{
	struct carried *c = &carried.databases[(uuid[0] ^ uuid[15]) % CARRIED_MOST];
	uint64_t now_us;

	pthread_mutex_lock(&carried.lock);
	now_us = memcmp(c->uuid, uuid, sizeof(c->uuid)) == 0 && passed_us >= c->passed_us
			 ? c->now_us + (passed_us - c->passed_us)
			 : 0;
	if (stored_us > now_us) {
		memcpy(c->uuid, uuid, sizeof(c->uuid));
		c->now_us = stored_us;
		c->passed_us = passed_us;
	}
	pthread_mutex_unlock(&carried.lock);
	return now_us;
}

/* The moment of a transaction that has found `stored_us`. */
static void
clock_set(struct timed *t, uint64_t stored_us)
{
	const struct timed_clock *clock = t->clock;
	uint64_t local_us = clock ? TIMED_US_PER_MS * clock->now_ms(clock->arg) : steady_us();

	t->now_us = local_us;
	if (stored_us < local_us)
		return;
	t->now_us = stored_us + 1;
	if (stored_us - local_us >= CARRIED_LEAST_US && (!clock || clock->passed_us)) {
		uint64_t passed_us = clock ? clock->passed_us(clock->arg) : clock_boot_us();
		uint64_t now_us = clock_carry(t->db->uuid, stored_us, passed_us);

		if (now_us > t->now_us)
			t->now_us = now_us;
	}
	t->ahead_us = t->now_us - local_us;
}

int64_t
timed_ahead_ms(const struct timed *t)
{
	int64_t ms = steady_ahead_ms();

	if (t->ahead_us >= STEADY_STEP_MS * TIMED_US_PER_MS)
		ms += (int64_t)(t->ahead_us / TIMED_US_PER_MS);
	return ms;
}

/* Whether the moment of the past can be read. */
static enum status
check_at(struct timed *t)
{
	uint64_t oldest_us = t->has_history ? history_oldest_us(&t->state) : 0;

	if (!t->has_history)
		return err_set(t->err, STATUS_INVALID, "the database \"%.*s\" keeps no history",
			       STR_ARG(t->db->name));
	if (!oldest_us)
		return err_set(t->err, STATUS_INVALID,
			       "the history of the database \"%.*s\" has not begun yet",
			       STR_ARG(t->db->name));
	if (t->at_us < oldest_us)
		return err_set(t->err, STATUS_INVALID,
			       "the history of the database \"%.*s\" begins at %llu ms",
			       STR_ARG(t->db->name),
			       (unsigned long long)(oldest_us / TIMED_US_PER_MS -
						    (uint64_t)timed_ahead_ms(t)));
	t->now_us = t->at_us;
	return STATUS_OK;
}

enum status
timed_now(struct timed *t)
{
	uint64_t stored = 0;
	struct str value;

	if (t->now_us)
		return STATUS_OK;
	TRY(timed_ask(t));
	TRY(kv_future_wait(t->asked));
	if (kv_future_value(t->asked, &value) && timed_clock_parse(value, &stored) != STATUS_OK)
		return err_set(t->err, STATUS_CORRUPT, "the clock of the database cannot be read");
	t->asked = NULL;
	TRY(take_state(t));
	clock_set(t, stored);
	if (!t->at_us)
		return STATUS_OK;
	if (t->at_is_date)
		t->at_us += (uint64_t)timed_ahead_ms(t) * TIMED_US_PER_MS;
	t->at_is_date = false;
	t->now_us = 0;
	return check_at(t);
}

bool
timed_can_renew(const struct timed *t)
{
	return !t->asked && !t->asked_state && !t->at_us && !t->write_us &&
	       !timed_history_seconds(t->db);
}

void
timed_renew(struct timed *t)
{
	assert(timed_can_renew(t));
	t->now_us = t->ahead_us = 0;
	t->stored = false;
	t->knows_highest = false;
}

enum status
timed_now_write(struct timed *t)
{
	char room[CLOCK_KEY_BYTES];
	struct buf key = clock_key_buf(room);
	uint64_t now;

	TRY(timed_now(t));
	if (t->stored)
		return STATUS_OK;
	timed_key_space(&key, t->db, TIMED_SPACE_CLOCK);
	TRY(buf_status(&key));
	now = htole64(t->now_us);
	TRY(kv_atomic(t->tx, KV_MAX, buf_str(&key), str_of(&now, sizeof(now))));
	t->stored = true;
	return STATUS_OK;
}

enum status
timed_written_at(struct timed *t, uint64_t us)
{
	TRY(timed_now_write(t));
	t->write_us = us;
	if (us <= t->now_us)
		return STATUS_OK;
	t->now_us = us;
	t->stored = false;
	return timed_now_write(t);
}

enum status
timed_changed_key(struct str prefix, struct buf *key)
{
	buf_clear(key);
	buf_append_str(key, prefix);
	tuple_put_u64(key, TIMED_SPACE_CHANGED);
	return catalog_key_status(key);
}

enum status
timed_changed_write(struct kv_tx *tx, struct str prefix)
{
	char room[CLOCK_KEY_BYTES];
	struct buf key = clock_key_buf(room);
	uint8_t stamp[KV_VERSIONSTAMP_BYTES];

	TRY(timed_changed_key(prefix, &key));
	catalog_stamp(0, stamp);
	return kv_set_versionstamped_value(tx, buf_str(&key), str_of(stamp, sizeof(stamp)), 0);
}

enum status
timed_touch(struct timed *t)
{
	if (t->touched)
		return STATUS_OK;
	t->touched = true;
	return timed_changed_write(t->tx, t->db->prefix);
}

enum status
timed_write_begin(struct timed *t)
{
	if (t->at_us)
		return err_set(t->err, STATUS_INVALID, "the past cannot be changed");
	TRY(catalog_db_check_writable(t->db, t->err));
	TRY(timed_touch(t));
	return timed_now_write(t);
}
