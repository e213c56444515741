/*
 * What transactions of all engines share: the checks of arguments and limits, counting, and waiting
 * for futures.
 */
#include "kv/head.h"
#include "kv/many.h"
#include "kv/reads_first.h"
#include "kv/turns.h"

#include <assert.h>

#include "base/buf.h"
#include "base/budget.h"
#include "kv/engine.h"
#include "kv/brief.h"
#include "kv/overlap.h"
#include "kv/refresh.h"

enum {
	SYSTEM_KEY_BYTE = 0xff,
};

/* ---- Checks ---- */

static bool
is_system_key(struct str key)
{
	return key.len && (uint8_t)key.ptr[0] == SYSTEM_KEY_BYTE;
}

size_t
kv_key_limit(const struct kv_tx *tx)
{
	return KV_LIMIT_KEY_BYTES - tx->store->prefix_bytes;
}

static enum status
check_key(struct kv_tx *tx, struct str key)
{
	if (key.len > kv_key_limit(tx))
		return err_set(&tx->err, STATUS_KEY_TOO_LARGE,
			       "a key of %zu bytes exceeds the limit of %zu", key.len,
			       kv_key_limit(tx));
	if (is_system_key(key))
		return err_set(&tx->err, STATUS_INVALID,
			       "keys that begin with FF belong to the store");
	return STATUS_OK;
}

static enum status
check_bound(struct kv_tx *tx, struct str bound)
{
	size_t most = kv_key_limit(tx) +
		      1; /* the end may be the key right behind the longest one */

	if (bound.len > most)
		return err_set(&tx->err, STATUS_KEY_TOO_LARGE,
			       "a range bound of %zu bytes exceeds the limit of %zu", bound.len,
			       most);
	/* FF itself is the end of all keys that may be used. */
	if (is_system_key(bound) && bound.len > 1)
		return err_set(&tx->err, STATUS_INVALID,
			       "keys that begin with FF belong to the store");
	return STATUS_OK;
}

static enum status
check_range(struct kv_tx *tx, struct str begin, struct str end)
{
	TRY(check_bound(tx, begin));
	return check_bound(tx, end);
}

static enum status
check_value(struct kv_tx *tx, struct str value)
{
	if (value.len > KV_LIMIT_VALUE_BYTES)
		return err_set(&tx->err, STATUS_VALUE_TOO_LARGE,
			       "a value of %zu bytes exceeds the limit of %d", value.len,
			       KV_LIMIT_VALUE_BYTES);
	return STATUS_OK;
}

static enum status
check_writable(struct kv_tx *tx)
{
	if (tx->kind == KV_TX_READ_ONLY)
		return err_set(&tx->err, STATUS_FORBIDDEN, "the transaction is for reading only");
	return STATUS_OK;
}

static enum status
check_stamp(struct kv_tx *tx, struct str template, size_t offset)
{
	if (template.len < KV_VERSIONSTAMP_TX_BYTES ||
	    offset > template.len - KV_VERSIONSTAMP_TX_BYTES)
		return err_set(&tx->err, STATUS_INVALID,
			       "a versionstamp at offset %zu does not fit into %zu bytes", offset,
			       template.len);
	return STATUS_OK;
}

/* ---- The size of a transaction ---- */

enum {
	STAMP_OFFSET_BYTES = 4, /* FoundationDB keeps a stamp's place behind its template */
	METADATA_KEY_BYTES = sizeof("\xff/metadataVersion") - 1,
};

/* Of a mutation, or of a conflict range with its two bounds. */
static size_t
size_of_pair(size_t first_bytes, size_t second_bytes)
{
	return KV_SIZE_EACH_BYTES + first_bytes + second_bytes;
}

/* As the store keeps it, with what it puts before each key. */
static size_t
stored_bytes(const struct kv_tx *tx, struct str key)
{
	return tx->store->prefix_bytes + key.len;
}

static size_t
size_of_range(const struct kv_tx *tx, struct str begin, struct str end)
{
	if (str_cmp(begin, end) >= 0)
		return 0;
	return size_of_pair(stored_bytes(tx, begin), stored_bytes(tx, end));
}

/* Of the conflict range of a single key. */
static size_t
size_of_key(size_t key_bytes)
{
	return size_of_pair(key_bytes, key_bytes + 1);
}

/* Of a mutation of a key with its write conflict range. */
static size_t
size_of_write(size_t key_bytes, size_t value_bytes)
{
	return size_of_pair(key_bytes, value_bytes) + size_of_key(key_bytes);
}

static uint64_t
size_limit(const struct kv_tx *tx)
{
	return KV_LIMIT_TX_BYTES - (tx->uses_reserve ? 0 : KV_SIZE_RUN_BYTES);
}

/* Before a mutation that would add so much. */
static enum status
size_check(struct kv_tx *tx, size_t bytes)
{
	if (tx->stats.size_bytes + bytes > size_limit(tx))
		return err_set(&tx->err, STATUS_TX_TOO_LARGE,
			       "the transaction writes more than %d bytes", KV_LIMIT_TX_BYTES);
	return STATUS_OK;
}

/* A read conflicts unless it is a snapshot read or the transaction cannot write. */
static bool
read_conflicts(const struct kv_tx *tx, enum kv_read mode)
{
	return mode == KV_READ && tx->kind == KV_TX_READ_WRITE;
}

static void
cleared_extend(struct kv_cleared *c, struct str begin, struct str end)
{
	struct str first = str_of(c->begin, c->begin_bytes), last = str_of(c->end, c->end_bytes);

	begin.len = begin.len < sizeof(c->begin) ? begin.len : sizeof(c->begin);
	end.len = end.len < sizeof(c->end) ? end.len : sizeof(c->end);
	if (c->end_bytes == 0 || str_cmp(begin, first) < 0) {
		c->begin_bytes = (uint32_t)begin.len;
		if (begin.len)
			memcpy(c->begin, begin.ptr, begin.len);
	}
	if (str_cmp(end, last) > 0) {
		c->end_bytes = (uint32_t)end.len;
		memcpy(c->end, end.ptr, end.len);
	}
}

/* True if the key may lie in a range that the transaction has cleared. */
static bool
cleared_has(const struct kv_cleared *c, struct str key)
{
	struct str begin = str_of(c->begin, c->begin_bytes), end = str_of(c->end, c->end_bytes);

	if (c->end_bytes == 0 || str_cmp(key, begin) < 0)
		return false;
	/* A bound that was cut stands for all keys that begin so. */
	return str_cmp(key, end) < 0 || (end.len == sizeof(c->end) && str_starts_with(key, end));
}

/* ---- Transactions ---- */

static void
tx_start_over(struct kv_tx *tx)
{
	tx->uses_reserve = false;
	tx->has_write_conflict = false;
	tx->cleared.begin_bytes = 0;
	tx->cleared.end_bytes = 0;
	tx->stats = (struct kv_tx_stats){ 0 };
	tx->wave = 0;
	tx->err.status = STATUS_OK;
	tx->err.text[0] = '\0';
	tx->reads = NULL; /* the engine has freed them */
	tx->unread = STATUS_OK;
	tx->wants_stamp = false;
	tx->reads_first = false;
}

enum status
kv_begin(struct kv_store *store, enum kv_tx_kind kind, struct kv_tx **ret)
{
	struct kv_tx *tx;

	if (store->read_only)
		kind = KV_TX_READ_ONLY;
	TRY(store->engine->begin(store, kind, &tx));
	tx->engine = store->engine;
	tx->store = store;
	tx->kind = kind;
	tx->attempts = 0;
	tx->reads_made = 0;
	tx->part = NULL;
	tx->held_bytes = 0;
	tx->stretch_bytes = 0;
	tx->overlaps = false;
	tx->turns = NULL;
	tx->met = NULL;
	tx->brief = false;
	tx_start_over(tx);
	*ret = tx;
	return STATUS_OK;
}

void
kv_tx_set_memory(struct kv_tx *tx, struct budget_part *part, size_t stretch_bytes)
{
	assert(!tx->part || tx->part == part);
	if (!tx->part && part)
		budget_count(part, KV_TX_BYTES);
	tx->part = part;
	tx->stretch_bytes = stretch_bytes;
}

void
kv_tx_hold(struct kv_tx *tx, size_t bytes)
{
	if (!tx->part)
		return;
	if (bytes > tx->held_bytes)
		budget_count(tx->part, bytes - tx->held_bytes);
	else
		budget_unuse(tx->part, tx->held_bytes - bytes);
	tx->held_bytes = bytes;
}

size_t
kv_tx_stretch_bytes(const struct kv_tx *tx)
{
	return tx->stretch_bytes;
}

void
kv_tx_free(struct kv_tx *tx)
{
	struct budget_part *part;
	size_t bytes;

	if (!tx)
		return;
	part = tx->part;
	bytes = KV_TX_BYTES + tx->held_bytes;
	tx->engine->tx_free(tx);
	if (part)
		budget_unuse(part, bytes);
}

struct kv_store *
kv_tx_store(const struct kv_tx *tx)
{
	return tx->store;
}

void
kv_tx_reset(struct kv_tx *tx)
{
	tx->engine->tx_reset(tx);
	kv_tx_hold(tx, 0);
	tx->attempts = 0;
	tx_start_over(tx);
}

void
kv_cancel(struct kv_tx *tx)
{
	tx->engine->cancel(tx);
}

const char *
kv_tx_error(const struct kv_tx *tx)
{
	return tx->err.text;
}

struct err *
kv_tx_err(struct kv_tx *tx)
{
	return &tx->err;
}

void
kv_tx_overlap(struct kv_tx *tx)
{
	tx->overlaps = true;
}

void
kv_tx_brief(struct kv_tx *tx)
{
	tx->brief = true;
}

void
kv_tx_reads_first(struct kv_tx *tx)
{
	uint32_t doubted = atomic_load_explicit(&tx->store->doubted, memory_order_relaxed);

	if (tx->kind != KV_TX_READ_WRITE || !tx->engine->shared || tx->attempts)
		return;
	while (doubted && !atomic_compare_exchange_weak(&tx->store->doubted, &doubted, doubted - 1))
		;
	tx->reads_first = !doubted;
}

struct kv_tx_stats
kv_tx_stats(const struct kv_tx *tx)
{
	return tx->stats;
}

/* ---- Futures ---- */

/* clang-format off */
#define FAILED(s) [s] = { .done = true, .counted = true, .status = (s) }
/* clang-format on */

static struct kv_future failed[STATUS_COUNT] = {
	FAILED(STATUS_NOMEM),      FAILED(STATUS_LIMIT),        FAILED(STATUS_IO),
	FAILED(STATUS_CORRUPT),    FAILED(STATUS_UNAVAILABLE),  FAILED(STATUS_TIMEOUT),
	FAILED(STATUS_CANCELLED),  FAILED(STATUS_TX_CONFLICT),  FAILED(STATUS_TX_TOO_OLD),
	FAILED(STATUS_TX_UNKNOWN), FAILED(STATUS_TX_USED),      FAILED(STATUS_TX_UNREADABLE),
	FAILED(STATUS_FULL),       FAILED(STATUS_TX_TOO_LARGE), FAILED(STATUS_KEY_TOO_LARGE),
	FAILED(STATUS_INVALID),    FAILED(STATUS_BUSY),         FAILED(STATUS_STANDBY),
};

struct kv_future *
kv_future_failed(enum status status)
{
	assert(failed[status].done && "a status that futures can fail with");
	return &failed[status];
}

/* Enters the answer into the statistics, once. */
static void
count_answer(struct kv_future *f)
{
	struct kv_tx_stats *stats = &f->tx->stats;

	f->counted = true;
	if (f->wave == f->tx->wave) {
		stats->round_trips++;
		f->tx->wave++;
	}
	if (f->status != STATUS_OK)
		return;
	stats->reads++;
	if (f->kind == KV_FUTURE_VALUE && f->present) {
		stats->keys_read++;
		stats->bytes_read += f->key_bytes + f->value.len;
	} else if (f->kind == KV_FUTURE_RANGE) {
		stats->keys_read += f->range.count;
		for (size_t i = 0; i < f->range.count; i++)
			stats->bytes_read += f->range.pairs[i].key.len +
					     f->range.pairs[i].value.len;
	}
}

/*
 * A read has failed in a way after which a body is run again. A body that goes on instead, having
 * read part of what it needs, may not commit what it then writes.
 */
static void
read_failed(struct kv_tx *tx, enum status status)
{
	if (status == STATUS_TX_TOO_OLD || status == STATUS_TX_CONFLICT)
		tx->unread = status;
}

static void
settle(struct kv_future *f)
{
	if (!f->done && f->engine && f->engine->future_settle)
		f->engine->future_settle(f);
}

enum status
kv_future_wait(struct kv_future *f)
{
	settle(f);
	if (!f->done)
		event_wait(&f->event, WAIT_FOREVER);
	if (f->engine && f->engine->future_explain)
		f->engine->future_explain(f);
	if (!f->counted && (f->kind == KV_FUTURE_VALUE || f->kind == KV_FUTURE_RANGE)) {
		count_answer(f);
		read_failed(f->tx, f->status);
	}
	return f->status;
}

bool
kv_future_ready(const struct kv_future *f)
{
	return f->done || event_is_set(&f->event);
}

struct event *
kv_future_event(struct kv_future *f)
{
	settle(f);
	return kv_future_ready(f) ? NULL : &f->event;
}

/* Enters a read that was just made in its transaction's list, which is in order of age. */
static void
reads_link(struct kv_tx *tx, struct kv_future *f)
{
	f->number = ++tx->reads_made;
	f->newer = NULL;
	f->older = tx->reads;
	if (f->older)
		f->older->newer = f;
	tx->reads = f;
}

static void
reads_unlink(struct kv_future *f)
{
	if (!f->number)
		return;
	assert(f->newer ? f->newer->older == f : f->tx->reads == f);
	if (f->newer)
		f->newer->older = f->older;
	else
		f->tx->reads = f->older;
	if (f->older)
		f->older->newer = f->newer;
	f->number = 0;
}

void
kv_future_free(struct kv_future *f)
{
	if (!f || !f->engine)
		return;
	reads_unlink(f);
	f->engine->future_free(f);
}

uint64_t
kv_reads_mark(const struct kv_tx *tx)
{
	return tx ? tx->reads_made : 0;
}

__attribute__((noinline)) static void
reads_free_newer(struct kv_tx *tx, uint64_t mark)
{
	while (tx->reads && tx->reads->number > mark)
		kv_future_free(tx->reads);
}

void
kv_reads_forget(struct kv_tx *tx, uint64_t mark)
{
	/* Listings ask after each row, and most rows have read nothing. */
	if (tx && tx->reads && tx->reads->number > mark)
		reads_free_newer(tx, mark);
}

bool
kv_future_value(struct kv_future *f, struct str *ret)
{
	if (!f->present)
		return false;
	*ret = f->value;
	return true;
}

struct kv_range
kv_future_range(struct kv_future *f)
{
	return f->range;
}

/* ---- Reads ---- */

/* The engine was asked for a key, and has made a future of it. */
static void
key_asked(struct kv_tx *tx, struct str key, enum kv_read mode, struct kv_future *f)
{
	if (!f->engine) {
		read_failed(tx, f->status);
		return;
	}
	if (read_conflicts(tx, mode))
		tx->stats.size_bytes += size_of_key(stored_bytes(tx, key));
	f->wave = tx->wave;
	f->key_bytes = (uint32_t)key.len;
	reads_link(tx, f);
}

/*
 * True if the transaction would only conflict at this key: others of the process are changing it
 * one after the other. It ends here then, and kv_run() puts it behind them.
 */
static bool
must_queue(struct kv_tx *tx, struct str key, enum kv_read mode)
{
	if (!tx->turns || !read_conflicts(tx, mode) || !kv_turns_is_taken(tx->turns, key))
		return false;
	if (!tx->met->len)
		buf_append_str(tx->met, key);
	read_failed(tx, STATUS_TX_CONFLICT);
	return true;
}

/*
 * True if this read, or a watch, breaks the promise to read first (reads_first.h). Its answer would
 * lack what the transaction has written.
 */
static bool
breaks_promise(struct kv_tx *tx, bool is_watch)
{
	if (!tx->reads_first || !(is_watch || tx->stats.sets || tx->stats.clears))
		return false;
	atomic_store_explicit(&tx->store->doubted, KV_DOUBTED, memory_order_relaxed);
	read_failed(tx, STATUS_TX_CONFLICT);
	return true;
}

/* `get`: the engine's. */
static struct kv_future *
key_ask(struct kv_tx *tx, struct str key, enum kv_read mode,
	struct kv_future *(*get)(struct kv_tx *tx, struct str key, enum kv_read mode))
{
	enum status status = check_key(tx, key);
	struct kv_future *f;

	if (status != STATUS_OK)
		return kv_future_failed(status);
	if (must_queue(tx, key, mode) || breaks_promise(tx, false))
		return kv_future_failed(STATUS_TX_CONFLICT);
	f = get(tx, key, mode);
	key_asked(tx, key, mode, f);
	return f;
}

struct kv_future *
kv_get(struct kv_tx *tx, struct str key, enum kv_read mode)
{
	return key_ask(tx, key, mode, tx->engine->get);
}

struct kv_future *
kv_get_head(struct kv_tx *tx, struct str key, enum kv_read mode)
{
	const struct kv_engine *engine = tx->engine;

	return key_ask(tx, key, mode, engine->get_head ? engine->get_head : engine->get);
}

void
kv_get_many(struct kv_tx *tx, const struct str *keys, size_t count, enum kv_read mode,
	    struct kv_future **ret)
{
	bool together = tx->engine->get_many && count > 1 && !tx->reads_first;

	assert(count <= KV_MANY);
	for (size_t i = 0; i < count && together; i++)
		together = check_key(tx, keys[i]) == STATUS_OK;
	if (together)
		tx->engine->get_many(tx, keys, count, mode, ret);
	for (size_t i = 0; i < count; i++) {
		if (together)
			key_asked(tx, keys[i], mode, ret[i]);
		else
			ret[i] = kv_get(tx, keys[i], mode);
	}
}

bool
kv_looks_up(const struct kv_tx *tx)
{
	return tx->engine->get_many;
}

bool
kv_finds_together(const struct kv_tx *tx)
{
	return kv_looks_up(tx) && tx->kind == KV_TX_READ_WRITE;
}

struct kv_future *
kv_get_range(struct kv_tx *tx, struct str begin, struct str end,
	     const struct kv_range_options *options)
{
	enum status status = check_range(tx, begin, end);
	struct kv_range_options full = { 0 };
	struct kv_future *f;

	if (status != STATUS_OK)
		return kv_future_failed(status);
	if (options)
		full = *options;
	if (full.limit == 0)
		full.limit = SIZE_MAX;
	if (full.limit_bytes == 0)
		full.limit_bytes = KV_LIMIT_RANGE_BYTES;
	if (must_queue(tx, begin, full.mode) || breaks_promise(tx, false))
		return kv_future_failed(STATUS_TX_CONFLICT);
	f = tx->engine->get_range(tx, begin, end, &full);
	if (f->engine) {
		if (read_conflicts(tx, full.mode))
			tx->stats.size_bytes += size_of_range(tx, begin, end);
		f->wave = tx->wave;
		reads_link(tx, f);
	} else {
		read_failed(tx, f->status);
	}
	return f;
}

enum status
kv_get_read_version(struct kv_tx *tx, uint64_t *ret)
{
	return tx->engine->get_read_version(tx, ret);
}

enum status
kv_estimate_bytes(struct kv_store *store, struct str begin, struct str end, uint64_t *ret)
{
	return store->engine->estimate_bytes(store, begin, end, ret);
}

enum status
kv_get_metadata_version(struct kv_tx *tx, uint8_t ret[KV_VERSIONSTAMP_TX_BYTES])
{
	enum status status = tx->engine->get_metadata_version(tx, ret);

	read_failed(tx, status);
	TRY(status);
	if (read_conflicts(tx, KV_READ))
		tx->stats.size_bytes += size_of_key(METADATA_KEY_BYTES);
	return STATUS_OK;
}

struct kv_future *
kv_watch(struct kv_tx *tx, struct str key)
{
	enum status status = check_key(tx, key);
	struct kv_future *f;

	if (status != STATUS_OK)
		return kv_future_failed(status);
	if (breaks_promise(tx, true))
		return kv_future_failed(STATUS_TX_CONFLICT);
	f = tx->engine->watch(tx, key);
	if (f->engine && read_conflicts(tx, KV_READ))
		tx->stats.size_bytes += size_of_key(stored_bytes(tx, key));
	return f;
}

/* ---- Writes ---- */

/* A set or an atomic operation, which adds `size` to the transaction's. */
static void
count_set(struct kv_tx *tx, struct str key, struct str value, size_t size)
{
	tx->stats.sets++;
	tx->stats.bytes_written += key.len + value.len;
	tx->stats.size_bytes += size;
}

enum status
kv_set(struct kv_tx *tx, struct str key, struct str value)
{
	size_t size = size_of_write(stored_bytes(tx, key), value.len);

	TRY(check_writable(tx));
	TRY(check_key(tx, key));
	TRY(check_value(tx, value));
	TRY(size_check(tx, size));
	TRY(tx->engine->set(tx, key, value));
	count_set(tx, key, value, size);
	return STATUS_OK;
}

enum status
kv_set_no_conflict(struct kv_tx *tx, struct str key, struct str value)
{
	size_t size = size_of_pair(stored_bytes(tx, key), value.len);

	TRY(check_writable(tx));
	TRY(check_key(tx, key));
	TRY(check_value(tx, value));
	if (cleared_has(&tx->cleared, key))
		size += size_of_key(stored_bytes(tx, key));
	TRY(size_check(tx, size));
	TRY(tx->engine->set_no_conflict(tx, key, value));
	count_set(tx, key, value, size);
	return STATUS_OK;
}

enum status
kv_clear(struct kv_tx *tx, struct str key)
{
	size_t size = 2 *
		      size_of_key(stored_bytes(tx, key)); /* the mutation is one of a range, too */

	TRY(check_writable(tx));
	TRY(check_key(tx, key));
	TRY(size_check(tx, size));
	TRY(tx->engine->clear(tx, key));
	tx->stats.clears++;
	tx->stats.bytes_written += key.len;
	tx->stats.size_bytes += size;
	return STATUS_OK;
}

bool
kv_keeps_versions(const struct kv_store *store)
{
	return store->engine->keeps_versions;
}

bool
kv_clears_cheaply(const struct kv_store *store)
{
	return store->engine->cheap_clears;
}

bool
kv_is_shared(const struct kv_store *store)
{
	return store->engine->shared || store->follows;
}

enum status
kv_clear_range(struct kv_tx *tx, struct str begin, struct str end)
{
	size_t size = 2 * size_of_range(tx, begin, end);

	TRY(check_writable(tx));
	TRY(check_range(tx, begin, end));
	TRY(size_check(tx, size));
	TRY(tx->engine->clear_range(tx, begin, end));
	if (size == 0)
		return STATUS_OK; /* nothing has been written, and the commit may have no version */
	tx->stats.clears++;
	tx->stats.bytes_written += begin.len + end.len;
	tx->stats.size_bytes += size;
	cleared_extend(&tx->cleared, begin, end);
	return STATUS_OK;
}

enum status
kv_atomic(struct kv_tx *tx, enum kv_atomic op, struct str key, struct str operand)
{
	size_t size = size_of_write(stored_bytes(tx, key), operand.len);

	TRY(check_writable(tx));
	TRY(check_key(tx, key));
	TRY(check_value(tx, operand));
	TRY(size_check(tx, size));
	TRY(tx->engine->atomic(tx, op, key, operand));
	count_set(tx, key, operand, size);
	return STATUS_OK;
}

enum status
kv_set_versionstamped_key(struct kv_tx *tx, struct str key, size_t offset, struct str value)
{
	size_t size = size_of_write(stored_bytes(tx, key), value.len) + STAMP_OFFSET_BYTES;

	TRY(check_writable(tx));
	TRY(check_key(tx, key));
	TRY(check_value(tx, value));
	TRY(check_stamp(tx, key, offset));
	TRY(size_check(tx, size));
	TRY(tx->engine->set_versionstamped_key(tx, key, offset, value));
	count_set(tx, key, value, size);
	return STATUS_OK;
}

enum status
kv_set_versionstamped_value(struct kv_tx *tx, struct str key, struct str value, size_t offset)
{
	size_t size = size_of_write(stored_bytes(tx, key), value.len) + STAMP_OFFSET_BYTES;

	TRY(check_writable(tx));
	TRY(check_key(tx, key));
	TRY(check_value(tx, value));
	TRY(check_stamp(tx, value, offset));
	TRY(size_check(tx, size));
	TRY(tx->engine->set_versionstamped_value(tx, key, value, offset));
	count_set(tx, key, value, size);
	return STATUS_OK;
}

enum status
kv_add_read_conflict_range(struct kv_tx *tx, struct str begin, struct str end)
{
	TRY(check_range(tx, begin, end));
	TRY(tx->engine->add_read_conflict(tx, begin, end));
	tx->stats.size_bytes += size_of_range(tx, begin, end);
	return STATUS_OK;
}

enum status
kv_add_write_conflict_range(struct kv_tx *tx, struct str begin, struct str end)
{
	TRY(check_writable(tx));
	TRY(check_range(tx, begin, end));
	TRY(tx->engine->add_write_conflict(tx, begin, end));
	tx->has_write_conflict = tx->has_write_conflict || str_cmp(begin, end) < 0;
	tx->stats.size_bytes += size_of_range(tx, begin, end);
	return STATUS_OK;
}

enum status
kv_touch_metadata_version(struct kv_tx *tx)
{
	size_t size = size_of_write(METADATA_KEY_BYTES,
				    KV_VERSIONSTAMP_TX_BYTES + STAMP_OFFSET_BYTES);

	TRY(check_writable(tx));
	TRY(size_check(tx, size));
	TRY(tx->engine->touch_metadata_version(tx));
	tx->stats.sets++;
	tx->stats.size_bytes += size;
	return STATUS_OK;
}

/* ---- Another version ---- */

bool
kv_refresh(struct kv_tx *tx)
{
	return tx->engine->refresh && tx->kind == KV_TX_READ_WRITE && tx->unread == STATUS_OK &&
	       tx->engine->refresh(tx);
}

/* ---- The end ---- */

struct kv_future *
kv_commit(struct kv_tx *tx)
{
	bool writes = tx->stats.sets || tx->stats.clears || tx->has_write_conflict;

	/* Reads and conflict ranges are counted, but not refused one by one. */
	if (writes && tx->stats.size_bytes > size_limit(tx)) {
		err_set(&tx->err, STATUS_TX_TOO_LARGE,
			"writes and conflict ranges of %llu bytes exceed the limit of %d",
			(unsigned long long)tx->stats.size_bytes, KV_LIMIT_TX_BYTES);
		return kv_future_failed(STATUS_TX_TOO_LARGE);
	}
	if (writes && tx->unread != STATUS_OK)
		return kv_future_failed(tx->unread);
	return tx->engine->commit(tx);
}

enum status
kv_committed_version(struct kv_tx *tx, uint64_t *ret)
{
	return tx->engine->committed_version(tx, ret);
}

enum status
kv_versionstamp(struct kv_tx *tx, uint8_t ret[KV_VERSIONSTAMP_TX_BYTES])
{
	assert(tx->wants_stamp);
	return tx->engine->versionstamp(tx, ret);
}

void
kv_want_versionstamp(struct kv_tx *tx)
{
	tx->wants_stamp = true;
}
