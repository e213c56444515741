/* Beats and leases: one transaction every now and then exchanges both with the other processes. */
#include "catalog/lease.h"

#include <assert.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rand.h"
#include "kv/tuple.h"

enum {
	/* Parts of the time of a process: a holder stops before its leases are taken. */
	LEASE_PARTS = 12,
	LEASE_BEAT_PARTS = 2,
	LEASE_GIVE_UP_PARTS = 7,
};

static _Atomic uint64_t lease_ms = LEASE_MS;

void
leases_set_time(uint64_t ms)
{
	assert(ms >= LEASE_LEAST_MS && ms <= LEASE_MS);
	atomic_store(&lease_ms, ms);
}

uint64_t
leases_beat_ms(void)
{
	return atomic_load(&lease_ms) * LEASE_BEAT_PARTS / LEASE_PARTS;
}

uint64_t
leases_give_up_ms(void)
{
	return atomic_load(&lease_ms) * LEASE_GIVE_UP_PARTS / LEASE_PARTS;
}

/* What this process knows of another one. */
struct beat {
	struct beat *next;
	uint8_t process[LEASE_PROCESS_BYTES];
	uint64_t value;   /* a hash of its record, which changes with each beat */
	uint64_t ms;      /* after so long in silence it is dead */
	uint64_t seen_ns; /* when that last changed, as far as this process has seen */
	bool there;       /* the last exchange has met its record */
};

/* The leases of a space, as one exchange has met them. */
struct lease_table {
	struct arena *arena; /* of the entries */
	struct lease_entry *entries;
	size_t count;
	size_t cap;
};

/* One attempt at an exchange with the store. */
struct lease_exchange {
	struct leases *leases;
	struct kv_tx *tx;
	struct buf *key;
	struct buf *value;
	bool leave; /* the process stops: give everything back */
};

struct leases {
	struct leases_config config;
	uint8_t process[LEASE_PROCESS_BYTES];
	uint64_t beat_count;
	struct beat *beats;       /* of other processes; of the exchanging thread alone */
	struct lease_table next;  /* of the exchange under way; likewise */
	uint64_t begun_us;        /* when its last attempt began; likewise */
	struct lease_table known; /* under the owner's lock, as what follows */
	uint64_t beaten_us;       /* when this process last stored a beat of its own */
};

struct leases *
leases_new(const struct leases_config *config)
{
	struct leases *leases = mem_zalloc(sizeof(*leases));

	assert(config->space != LEASE_BEATS && config->texts <= LEASE_TEXTS_MAX);
	if (!leases)
		return NULL;
	leases->config = *config;
	rand_bytes(leases->process, sizeof(leases->process));
	leases->beaten_us = clock_boot_us();
	leases->next.arena = arena_new(config->known_bytes);
	leases->known.arena = arena_new(config->known_bytes);
	if (!leases->next.arena || !leases->known.arena) {
		leases_free(leases);
		return NULL;
	}
	return leases;
}

static struct str
lease_own_process(const struct leases *leases)
{
	return str_of(leases->process, LEASE_PROCESS_BYTES);
}

/* ---- Which processes live ---- */

static struct beat *
beat_find(struct leases *leases, struct str process)
{
	struct beat *b = leases->beats;

	while (b && memcmp(b->process, process.ptr, LEASE_PROCESS_BYTES) != 0)
		b = b->next;
	return b;
}

static bool
beat_is_overdue(struct leases *leases, struct str process)
{
	struct beat *b = beat_find(leases, process);

	return !b || clock_mono_ns() - b->seen_ns > b->ms * CLOCK_NS_PER_MS;
}

/*
 * Notes the record of a process. One that is new here counts as alive at first: only its silence
 * will tell whether it is.
 */
static enum status
beat_note(struct leases *leases, struct str process, struct str record)
{
	struct beat *b = beat_find(leases, process);
	uint64_t value = str_hash(record);

	if (!b) {
		b = mem_zalloc(sizeof(*b));
		if (!b)
			return STATUS_NOMEM;
		memcpy(b->process, process.ptr, LEASE_PROCESS_BYTES);
		b->next = leases->beats;
		leases->beats = b;
		b->value = value;
		b->seen_ns = clock_mono_ns();
	}
	b->there = true;
	b->ms = lease_record_beat_ms(record);
	if (b->value != value) {
		b->value = value;
		b->seen_ns = clock_mono_ns();
	}
	return STATUS_OK;
}

/* Those that were not there in the last look are dead for certain. */
static void
beats_forget(struct leases *leases, bool all)
{
	struct beat **at = &leases->beats;

	while (*at) {
		struct beat *b = *at;

		if (b->there && !all) {
			at = &b->next;
			continue;
		}
		*at = b->next;
		mem_free(b);
	}
}

static enum status
beats_read(struct kv_tx *tx, struct leases *leases)
{
	struct buf AUTO(buf_release) key = BUF_INIT(LEASE_KEY_BYTES);
	struct buf AUTO(buf_release) end = BUF_INIT(LEASE_KEY_BYTES);
	struct buf AUTO(buf_release) scratch = BUF_INIT(LEASE_KEY_BYTES);
	struct kv_scan scan;
	struct kv_pair pair;
	enum status status;

	TRY(lease_record_key(LEASE_BEATS, (struct str){ NULL, 0 }, &key));
	TRY(tuple_prefix_end(buf_str(&key), &end));
	for (struct beat *b = leases->beats; b; b = b->next)
		b->there = false;
	TRY(kv_scan_init(&scan, tx, buf_str(&key), buf_str(&end), NULL));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		struct str process;

		if (lease_record_key_name(pair.key, key.len, &scratch, &process) != STATUS_OK ||
		    process.len != LEASE_PROCESS_BYTES)
			continue;
		status = beat_note(leases, process, pair.value);
		if (status != STATUS_OK)
			break;
	}
	kv_scan_release(&scan);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* ---- Reading leases ---- */

static enum status
lease_take_entry(struct leases *leases, struct str name, struct str value)
{
	struct lease_table *t = &leases->next;
	struct lease_record record = { 0 };
	struct lease_entry *e;
	uint64_t format;
	void *grown;
	enum status status = lease_record_parse(value, leases->config.texts, t->arena, &record,
						&format);

	if (status == STATUS_NEWER)
		log_event(LOG_LEVEL_WARN, "lease_newer",
			  "name=\"%.*s\" format=%llu known_format=%d", STR_ARG(name),
			  (unsigned long long)format, LEASE_FORMAT);
	else
		TRY(status);
	grown = arena_grow(t->arena, t->entries, t->count, &t->cap, sizeof(*t->entries));
	if (!grown)
		return STATUS_LIMIT;
	t->entries = grown;
	e = &t->entries[t->count];
	*e = (struct lease_entry){
		.name = arena_dup(t->arena, name),
		.record = record,
		.mine = status == STATUS_OK && str_eq(record.process, lease_own_process(leases)),
		.newer = status == STATUS_NEWER,
	};
	if (!e->name.ptr)
		return STATUS_LIMIT;
	t->count++;
	return STATUS_OK;
}

/* A lease that cannot be read counts as free. */
static enum status
leases_read(struct kv_tx *tx, struct leases *leases)
{
	struct buf AUTO(buf_release) key = BUF_INIT(LEASE_KEY_BYTES);
	struct buf AUTO(buf_release) end = BUF_INIT(LEASE_KEY_BYTES);
	struct buf AUTO(buf_release) scratch = BUF_INIT(LEASE_KEY_BYTES);
	struct kv_scan scan;
	struct kv_pair pair;
	enum status status;

	TRY(lease_record_key(leases->config.space, (struct str){ NULL, 0 }, &key));
	TRY(tuple_prefix_end(buf_str(&key), &end));
	TRY(kv_scan_init(&scan, tx, buf_str(&key), buf_str(&end), NULL));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		struct str name;

		if (lease_record_key_name(pair.key, key.len, &scratch, &name) != STATUS_OK)
			continue;
		status = lease_take_entry(leases, name, pair.value);
		if (status != STATUS_OK && status != STATUS_CORRUPT)
			break;
	}
	kv_scan_release(&scan);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* ---- Asking for leases ---- */

struct lease_entry *
lease_find(struct lease_exchange *x, struct str name)
{
	struct lease_table *t = &x->leases->next;

	for (size_t i = 0; i < t->count; i++)
		if (str_eq(t->entries[i].name, name))
			return &t->entries[i];
	return NULL;
}

bool
lease_is_free(struct lease_exchange *x, const struct lease_entry *e)
{
	return !e || (!e->newer && (e->mine || beat_is_overdue(x->leases, e->record.process)));
}

enum status
lease_hold(struct lease_exchange *x, struct str name, struct lease_entry *entry,
	   const struct str *texts)
{
	struct lease_record record = { .process = lease_own_process(x->leases) };

	for (size_t i = 0; i < x->leases->config.texts; i++)
		record.texts[i] = texts[i];
	assert(lease_is_free(x, entry));
	if (entry)
		entry->kept = true;
	TRY(lease_record_key(x->leases->config.space, name, x->key));
	buf_clear(x->value);
	lease_record_put(&record, x->leases->config.texts, x->value);
	TRY(buf_status(x->value));
	return kv_set(x->tx, buf_str(x->key), buf_str(x->value));
}

struct arena *
lease_arena(struct lease_exchange *x)
{
	return x->leases->next.arena;
}

/* Clears the leases of this process that nobody has asked for. */
static enum status
leases_give_back(struct lease_exchange *x)
{
	struct lease_table *t = &x->leases->next;

	for (size_t i = 0; i < t->count; i++) {
		if (!t->entries[i].mine || t->entries[i].kept)
			continue;
		TRY(lease_record_key(x->leases->config.space, t->entries[i].name, x->key));
		TRY(kv_clear(x->tx, buf_str(x->key)));
	}
	return STATUS_OK;
}

/* ---- An exchange ---- */

static enum status
leases_exchange_body(struct kv_tx *tx, void *arg)
{
	struct lease_exchange *x = arg;
	struct leases *leases = x->leases;
	struct buf AUTO(buf_release) key = BUF_INIT(LEASE_KEY_BYTES);
	struct buf AUTO(buf_release) value = BUF_INIT(KV_LIMIT_VALUE_BYTES);

	x->tx = tx;
	x->key = &key;
	x->value = &value;
	leases->begun_us = clock_boot_us();
	arena_clear(leases->next.arena);
	leases->next = (struct lease_table){ .arena = leases->next.arena };
	TRY(beats_read(tx, leases));
	TRY(leases_read(tx, leases));
	TRY(lease_record_key(LEASE_BEATS, lease_own_process(leases), &key));
	lease_record_put_beat(++leases->beat_count, atomic_load(&lease_ms), &value);
	TRY(buf_status(&value));
	TRY(x->leave ? kv_clear(tx, buf_str(&key)) : kv_set(tx, buf_str(&key), buf_str(&value)));
	/* Nothing waits for the store from here on: the writes are buffered until the commit. */
	if (!x->leave)
		TRY(leases->config.ask(x, leases->config.arg));
	return leases_give_back(x);
}

enum status
leases_exchange(struct leases *leases, bool leave, struct err *err)
{
	struct lease_exchange x = { .leases = leases, .leave = leave };

	return kv_run(leases->config.store, leases_exchange_body, &x, NULL, err);
}

void
leases_adopt(struct leases *leases)
{
	struct lease_table old = leases->known;

	leases->known = leases->next;
	leases->next = old;
	/*
	 * == Safety ==
	 * The others saw the beat change at some moment after the transaction began, and the answer
	 * may have taken long: only since that beginning is it certain that they count on it.
	 */
	leases->beaten_us = leases->begun_us;
	beats_forget(leases, false);
}

/* ---- What is known ---- */

void
leases_forget(struct leases *leases)
{
	leases->known = (struct lease_table){ .arena = leases->known.arena };
	beats_forget(leases, true);
}

void
leases_free(struct leases *leases)
{
	if (!leases)
		return;
	beats_forget(leases, true);
	arena_free(leases->next.arena);
	arena_free(leases->known.arena);
	mem_free(leases);
}

bool
leases_are_certain(const struct leases *leases)
{
	/* While the machine was suspended, others counted on: clock_mono_ns() would stand still. */
	return leases && clock_boot_us() - leases->beaten_us <= leases_give_up_ms() * 1000;
}

const struct lease_entry *
leases_known(const struct leases *leases, size_t *ret_count)
{
	*ret_count = leases ? leases->known.count : 0;
	return leases ? leases->known.entries : NULL;
}

/* ---- Others' leases ---- */

struct lease_clearing {
	enum lease_space space;
	struct str name;
};

static enum status
lease_clear_body(struct kv_tx *tx, void *arg)
{
	struct lease_clearing *c = arg;
	struct buf AUTO(buf_release) key = BUF_INIT(LEASE_KEY_BYTES);
	struct kv_future *f;
	struct str value;
	enum status status;

	TRY(lease_record_key(c->space, c->name, &key));
	f = kv_get(tx, buf_str(&key), KV_READ);
	status = kv_future_wait(f);
	if (status == STATUS_OK && !kv_future_value(f, &value))
		status = STATUS_NOT_FOUND;
	kv_future_free(f);
	TRY(status);
	return kv_clear(tx, buf_str(&key));
}

enum status
lease_clear(struct kv_store *store, enum lease_space space, struct str name, struct err *err)
{
	struct lease_clearing c = { space, name };

	return kv_run(store, lease_clear_body, &c, NULL, err);
}
