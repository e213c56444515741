/*
 * Transactions: their life, and the writes that they buffer until the commit. All that a
 * transaction is made of lies in its arena, except what tx_release() lets go of.
 */
#include <assert.h>
#include <endian.h>

#include "base/mem.h"
#include "base/rand.h"
#include "kv/embedded/range_int.h"
#include "kv/embedded/watch_int.h"

/* As new. What lay in the arena is forgotten, not freed: the caller clears the arena. */
static void
emb_tx_start_over(struct emb_tx *tx)
{
	assert(!tx->heap_futures && !tx->has_lookup && !tx->snapshot);
	tx->state = EMB_TX_ACTIVE;
	tx->first = NULL;
	tx->last = NULL;
	tx->unentered = NULL;
	latest_clear(&tx->latest);
	if (tx->adds.any)
		tx->adds = (struct mutation_adds){ 0 };
	overlay_init(&tx->overlay);
	tx->read_conflicts = (struct emb_conflicts){ 0 };
	tx->write_conflicts = (struct emb_conflicts){ 0 };
	tx->bytes = 0;
	tx->has_range_clears = false;
	tx->cleared_bytes = 0;
	tx->touched_metadata = false;
	tx->commit = (struct kv_future){ 0 };
	tx->queued = false;
	tx->committed_version = 0;
	memset(tx->free_futures, 0, sizeof(tx->free_futures));
}

/* Waits until the committer has let go of the transaction. */
static void
tx_wait_for_commit(struct emb_tx *tx)
{
	if (tx->queued)
		event_wait(&tx->commit.event, WAIT_FOREVER);
}

/*
 * Lets go of everything outside the arena. First of all the committer has to be done with the
 * transaction: until then it reads the log and the conflict ranges.
 */
static void
tx_release(struct emb_tx *tx)
{
	tx_wait_for_commit(tx);
	emb_watches_cancel(tx);
	while (tx->heap_futures)
		emb_future_free(tx->heap_futures);
	emb_lookup_release(tx);
	emb_aheads_release(tx);
	emb_tx_snapshot_release(tx);
}

/* ---- Spare transactions ---- */

void
emb_spares_init(struct emb_store *store)
{
	pthread_mutex_init(&store->spares.lock, NULL);
}

static void
tx_destroy(struct emb_tx *tx)
{
	if (tx->iterate)
		rocksdb_readoptions_destroy(tx->iterate);
	buf_release(&tx->scratch);
	buf_release(&tx->scratch_pairs);
	arena_free(tx->arena);
	mem_free(tx);
}

void
emb_spares_fini(struct emb_store *store)
{
	struct emb_tx *next;

	for (struct emb_tx *tx = store->spares.first; tx; tx = next) {
		next = tx->open_next;
		tx_destroy(tx);
	}
	pthread_mutex_destroy(&store->spares.lock);
}

/* One that has ended, with its empty arena; NULL: there is none. */
static struct emb_tx *
spares_take(struct emb_spares *s)
{
	struct emb_tx *tx;

	pthread_mutex_lock(&s->lock);
	tx = s->first;
	if (tx) {
		s->first = tx->open_next;
		s->count--;
	}
	pthread_mutex_unlock(&s->lock);
	return tx;
}

/* Keeps a transaction that has let go of everything. False: there are enough. */
static bool
spares_keep(struct emb_spares *s, struct emb_tx *tx)
{
	bool room;

	if (tx->scratch.cap > EMB_SPARE_SCRATCH_BYTES)
		buf_release(&tx->scratch);
	if (tx->scratch_pairs.cap > EMB_SPARE_SCRATCH_BYTES)
		buf_release(&tx->scratch_pairs);
	arena_clear(tx->arena);
	pthread_mutex_lock(&s->lock);
	room = s->count < EMB_SPARE_TXS;
	if (room) {
		tx->open_next = s->first;
		s->first = tx;
		s->count++;
	}
	pthread_mutex_unlock(&s->lock);
	return room;
}

static struct emb_tx *
tx_new(void)
{
	struct emb_tx *tx = mem_alloc(sizeof(*tx));

	if (!tx)
		return NULL;
	tx->arena = arena_new(EMB_TX_ARENA_BYTES);
	if (!tx->arena) {
		mem_free(tx);
		return NULL;
	}
	tx->iterate = NULL;
	tx->adds = (struct mutation_adds){ 0 };
	tx->scratch = BUF_INIT(EMB_RANGE_ANSWER_BYTES);
	tx->scratch_pairs = BUF_INIT(EMB_RANGE_ANSWER_BYTES);
	return tx;
}

enum status
emb_begin(struct kv_store *base, enum kv_tx_kind kind, struct kv_tx **ret)
{
	struct emb_store *store = (struct emb_store *)base;
	struct emb_tx *tx = spares_take(&store->spares);

	if (!tx)
		tx = tx_new();
	if (!tx)
		return STATUS_NOMEM;
	tx->base.kind = kind;
	/* The engine begins some that kv_begin() does not know. */
	tx->base.brief = false;
	tx->base.part = NULL;
	tx->store = store;
	atomic_init(&tx->cancelled, false);
	tx->snapshot = NULL;
	tx->counted_writer = false;
	tx->is_open = false;
	tx->lookup = tx->finder = NULL;
	tx->has_lookup = false;
	memset(tx->several, 0, sizeof(tx->several));
	atomic_init(&tx->watches, NULL);
	tx->heap_futures = NULL;
	tx->spare_aheads = NULL;
	emb_tx_start_over(tx);
	*ret = &tx->base;
	return STATUS_OK;
}

void
emb_tx_free(struct kv_tx *base)
{
	struct emb_tx *tx = (struct emb_tx *)base;

	tx_release(tx);
	if (!spares_keep(&tx->store->spares, tx))
		tx_destroy(tx);
}

void
emb_tx_reset(struct kv_tx *base)
{
	struct emb_tx *tx = (struct emb_tx *)base;

	tx_release(tx);
	buf_release(&tx->scratch);
	buf_release(&tx->scratch_pairs);
	arena_clear(tx->arena);
	atomic_store_explicit(&tx->cancelled, false, memory_order_relaxed);
	emb_tx_start_over(tx);
}

void
emb_cancel(struct kv_tx *base)
{
	struct emb_tx *tx = (struct emb_tx *)base;

	atomic_store_explicit(&tx->cancelled, true, memory_order_relaxed);
	emb_watches_cancel(tx);
}

int
emb_retry_delay_ms(struct kv_tx *tx, enum status status)
{
	enum {
		LONGEST_DOUBLINGS = 6,
	};
	uint32_t doublings = tx->attempts < LONGEST_DOUBLINGS ? tx->attempts : LONGEST_DOUBLINGS;
	uint32_t random;

	if (status != STATUS_TX_CONFLICT && status != STATUS_TX_TOO_OLD &&
	    status != STATUS_TX_UNKNOWN)
		return -1;
	/*
	 * Whoever caused the first conflict has committed already, so there is nothing to wait for.
	 */
	if (tx->attempts == 0)
		return 0;
	rand_bytes(&random, sizeof(random));
	return (int)(random % ((1u << doublings) + 1));
}

/* ---- Versions ---- */

enum status
emb_get_read_version(struct kv_tx *base, uint64_t *ret)
{
	struct emb_tx *tx = (struct emb_tx *)base;
	struct emb_snapshot *snapshot;

	TRY(emb_tx_check(tx));
	TRY(emb_tx_snapshot(tx, &snapshot));
	*ret = snapshot->version;
	return STATUS_OK;
}

static enum status
tx_check_committed(struct emb_tx *tx)
{
	if (tx->state != EMB_TX_COMMITTED || !kv_future_ready(&tx->commit) ||
	    tx->commit.status != STATUS_OK || !tx->committed_version)
		return err_set(&tx->base.err, STATUS_NOT_FOUND,
			       "only a commit that wrote something has a version");
	return STATUS_OK;
}

enum status
emb_committed_version(struct kv_tx *base, uint64_t *ret)
{
	struct emb_tx *tx = (struct emb_tx *)base;

	TRY(tx_check_committed(tx));
	*ret = tx->committed_version;
	return STATUS_OK;
}

enum status
emb_versionstamp(struct kv_tx *base, uint8_t ret[KV_VERSIONSTAMP_TX_BYTES])
{
	struct emb_tx *tx = (struct emb_tx *)base;

	TRY(tx_check_committed(tx));
	assert(tx->committed_order < EMB_BATCH_TXS);
	stamp_write(ret, tx->committed_version, tx->committed_order);
	return STATUS_OK;
}

/* ---- Conflict ranges ---- */

enum status
emb_add_read_conflict(struct kv_tx *base, struct str begin, struct str end)
{
	struct emb_tx *tx = (struct emb_tx *)base;
	struct emb_snapshot *snapshot;

	TRY(emb_tx_check(tx));
	TRY(emb_tx_snapshot(tx, &snapshot));
	return emb_tx_add_conflict(tx, &tx->read_conflicts, begin, end);
}

enum status
emb_add_write_conflict(struct kv_tx *base, struct str begin, struct str end)
{
	struct emb_tx *tx = (struct emb_tx *)base;

	TRY(emb_tx_check(tx));
	return emb_tx_add_conflict(tx, &tx->write_conflicts, begin, end);
}

/*
 * ---- Additions ----
 *
 * A counter that many commands of one transaction add to is one mutation: a later addition goes
 * into the operand of an earlier one. Between the two the transaction has written nothing else to
 * that key, and additions of the same length commute with all that it has done to others. Reads in
 * between have copied what they found. The overlay looks at the operand whenever it is asked,
 * except where it has a value already (`applied`).
 */

/*
 * Every write of a transaction that has added to something comes here. So only the end of the key
 * is looked at, by two loads: keys of counters that are near each other differ there.
 */
static struct mutation **
tx_add_slot(struct emb_tx *tx, struct str key)
{
	uint64_t words[2];

	if (key.len < sizeof(words))
		return &tx->adds.slots[str_hash(key) % MUTATION_ADDS];
	memcpy(words, key.ptr + key.len - sizeof(words), sizeof(words));
	words[0] = (words[0] ^ words[1] >> 31 ^ words[1] << 33) * UINT64_C(0x9e3779b97f4a7c15);
	return &tx->adds.slots[(words[0] >> 32) % MUTATION_ADDS];
}

/* Before a mutation of another kind: earlier additions to what it writes are not to be found. */
static void
tx_forget_adds(struct emb_tx *tx, const struct mutation *m)
{
	struct mutation **slot;

	if (!tx->adds.any)
		return;
	if (m->kind == MUTATION_CLEAR_RANGE || m->kind == MUTATION_STAMPED_KEY) {
		tx->adds = (struct mutation_adds){ 0 };
		return;
	}
	slot = tx_add_slot(tx, m->key);
	if (*slot && str_eq((*slot)->key, m->key))
		*slot = NULL;
}

/* Adds a little-endian number to the operand of an earlier addition. False if there is none. */
static bool
tx_add_to_earlier(struct emb_tx *tx, struct str key, struct str operand)
{
	struct mutation *m = *tx_add_slot(tx, key);
	uint64_t number, more;
	unsigned carry = 0;
	uint8_t *sum;

	if (!m || m->applied || m->value.len != operand.len || !str_eq(m->key, key))
		return false;
	assert(m->kind == MUTATION_ATOMIC && m->op == KV_ADD && !tx->queued);
	sum = (uint8_t *)(uintptr_t)m->value.ptr; /* the transaction's own copy */
	if (operand.len == sizeof(number)) {
		memcpy(&number, sum, sizeof(number));
		memcpy(&more, operand.ptr, sizeof(more));
		number = htole64(le64toh(number) + le64toh(more));
		memcpy(sum, &number, sizeof(number));
		return true;
	}
	for (size_t i = 0; i < operand.len; i++) {
		carry += sum[i] + (uint8_t)operand.ptr[i];
		sum[i] = (uint8_t)carry;
		carry >>= 8;
	}
	return true;
}

/* ---- Writes ---- */

/* Copies the mutation, with its key and value, to the end of the log. STATUS_TX_TOO_LARGE. */
static enum status
tx_append_mutation(struct emb_tx *tx, const struct mutation *mutation)
{
	size_t bytes = mutation->key.len + mutation->value.len;
	struct mutation *m;
	char *copies; /* of the key and the value, behind the mutation */

	TRY(emb_tx_check(tx));
	m = arena_alloc(tx->arena, sizeof(*m) + bytes);
	if (!m)
		return emb_tx_no_room(tx);
	tx_forget_adds(tx, mutation);
	*m = *mutation;
	copies = (char *)(m + 1);
	m->key = str_of(copies, mutation->key.len);
	m->value = str_of(copies + m->key.len, mutation->value.len);
	if (m->key.len)
		memcpy(copies, mutation->key.ptr, m->key.len);
	if (m->value.len)
		memcpy(copies + m->key.len, mutation->value.ptr, m->value.len);
	assert(!tx->first == !tx->last && !tx->queued);
	if (tx->last)
		tx->last->next = m;
	else
		tx->first = m;
	tx->last = m;
	/* The overlay gets it when something is read, which may be never. */
	if (!tx->unentered)
		tx->unentered = m;
	latest_add(&tx->latest, m);
	tx->bytes += bytes;
	return STATUS_OK;
}

enum status
emb_set(struct kv_tx *tx, struct str key, struct str value)
{
	const struct mutation m = { .kind = MUTATION_SET, .key = key, .value = value };

	return tx_append_mutation((struct emb_tx *)tx, &m);
}

enum status
emb_clear(struct kv_tx *tx, struct str key)
{
	const struct mutation m = { .kind = MUTATION_CLEAR, .key = key };

	return tx_append_mutation((struct emb_tx *)tx, &m);
}

enum status
emb_clear_range(struct kv_tx *base, struct str begin, struct str end)
{
	const struct mutation m = { .kind = MUTATION_CLEAR_RANGE, .key = begin, .value = end };
	struct emb_tx *tx = (struct emb_tx *)base;

	if (str_cmp(begin, end) >= 0)
		return emb_tx_check(tx);
	TRY(tx_append_mutation(tx, &m));
	tx->has_range_clears = true;
	return STATUS_OK;
}

enum status
emb_atomic(struct kv_tx *base, enum kv_atomic op, struct str key, struct str operand)
{
	const struct mutation m = {
		.kind = MUTATION_ATOMIC, .op = op, .key = key, .value = operand
	};
	struct emb_tx *tx = (struct emb_tx *)base;

	if (op == KV_ADD && tx->adds.any && tx->state == EMB_TX_ACTIVE &&
	    tx_add_to_earlier(tx, key, operand))
		return emb_tx_check(tx);
	TRY(tx_append_mutation(tx, &m));
	if (op == KV_ADD) {
		*tx_add_slot(tx, key) = tx->last;
		tx->adds.any = true;
	}
	return STATUS_OK;
}

enum status
emb_set_versionstamped_key(struct kv_tx *tx, struct str key, size_t offset, struct str value)
{
	const struct mutation m = { .kind = MUTATION_STAMPED_KEY,
				    .key = key,
				    .value = value,
				    .stamp_offset = (uint32_t)offset };

	assert(offset + KV_VERSIONSTAMP_TX_BYTES <= key.len); /* kv.c has checked it */
	return tx_append_mutation((struct emb_tx *)tx, &m);
}

enum status
emb_set_versionstamped_value(struct kv_tx *tx, struct str key, struct str value, size_t offset)
{
	const struct mutation m = { .kind = MUTATION_STAMPED_VALUE,
				    .key = key,
				    .value = value,
				    .stamp_offset = (uint32_t)offset };

	assert(offset + KV_VERSIONSTAMP_TX_BYTES <= value.len);
	return tx_append_mutation((struct emb_tx *)tx, &m);
}

/* ---- The metadata version ---- */

enum status
emb_get_metadata_version(struct kv_tx *base, uint8_t ret[KV_VERSIONSTAMP_TX_BYTES])
{
	struct emb_tx *tx = (struct emb_tx *)base;
	struct emb_snapshot *snapshot;

	TRY(emb_tx_check(tx));
	if (tx->touched_metadata)
		return err_set(&tx->base.err, STATUS_TX_UNREADABLE,
			       "the transaction has touched the metadata version");
	TRY(emb_tx_snapshot(tx, &snapshot));
	if (base->kind == KV_TX_READ_WRITE)
		TRY(emb_tx_add_key_conflict(tx, &tx->read_conflicts, EMB_KEY_METADATA));
	memcpy(ret, snapshot->metadata, KV_VERSIONSTAMP_TX_BYTES);
	return STATUS_OK;
}

enum status
emb_touch_metadata_version(struct kv_tx *base)
{
	static const char template[KV_VERSIONSTAMP_TX_BYTES];
	struct emb_tx *tx = (struct emb_tx *)base;

	TRY(emb_set_versionstamped_value(base, EMB_KEY_METADATA, str_of(template, sizeof(template)),
					 0));
	tx->touched_metadata = true;
	return STATUS_OK;
}
