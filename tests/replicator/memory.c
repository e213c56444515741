#include "memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kv/engine.h"
#include "twin.h"

enum {
	MEMORY_RECORDS = 256,
	MEMORY_WRITES = 64, /* of one transaction */
	MEMORY_WATCHES = 32,
	MEMORY_DELAY_NS = 30 * 1000 * 1000, /* at most, of a request or an answer */
};

struct memory_record {
	struct str key; /* owned, as is the value */
	struct str value;
};

struct memory_write {
	struct str key;
	struct str value; /* ptr NULL: the key is cleared */
};

struct memory_store {
	struct kv_store kv;
	uint64_t cut_until_ns;
};

struct memory_future;

struct memory_tx {
	struct kv_tx kv;
	uint64_t version; /* of its first read; 0: it has not read */
	struct memory_write writes[MEMORY_WRITES];
	size_t count;
	struct memory_future *futures; /* that have not been freed; they go with it */
};

struct memory_future {
	struct kv_future kv;
	struct memory_future *next; /* of the transaction's */
	struct memory_store *store;
	struct twin_event *event; /* that is going to answer it; NULL: it has been answered */
	struct memory_tx *tx;
	struct str begin; /* of a read: owned, as is `end`; a single key has no end */
	struct str end;
	size_t limit;
	struct kv_pair *pairs;
	size_t count;
	struct str watched;
};

static struct {
	struct memory_record records[MEMORY_RECORDS]; /* in the order of the keys */
	size_t count;
	uint64_t version;
	struct memory_future *watches[MEMORY_WATCHES];
} memory;

static struct str
memory_copy(struct str s)
{
	char *copy = mem_alloc(s.len + 1);

	twin_check(copy);
	if (s.len)
		memcpy(copy, s.ptr, s.len);
	return str_of(copy, s.len);
}

static void
memory_free(struct str s)
{
	mem_free((char *)(uintptr_t)s.ptr);
}

/* The place of the first record at or behind the key. */
static size_t
memory_find(struct str key)
{
	size_t i = 0;

	while (i < memory.count && str_cmp(memory.records[i].key, key) < 0)
		i++;
	return i;
}

static bool
memory_at(size_t i, struct str key)
{
	return i < memory.count && str_eq(memory.records[i].key, key);
}

bool
memory_has(struct str key)
{
	return memory_at(memory_find(key), key);
}

/* ---- Answers ---- */

/* When a message of the handle's process arrives that is sent at that moment. */
static uint64_t
memory_arrival_ns(const struct memory_store *s, uint64_t sent_ns)
{
	uint64_t from = sent_ns > s->cut_until_ns ? sent_ns : s->cut_until_ns;

	return from + twin_draw(MEMORY_DELAY_NS);
}

static void
memory_answer(void *arg)
{
	struct memory_future *f = arg;

	f->event = NULL;
	/* The process may have been cut off since the answer was sent. */
	if (f->store->cut_until_ns > twin_now_ns()) {
		f->event = twin_at(memory_arrival_ns(f->store, twin_now_ns()), NULL, memory_answer,
				   f);
		return;
	}
	event_set(&f->kv.event);
}

static struct memory_future *
memory_future_new(struct memory_store *s, struct kv_tx *tx, enum kv_future_kind kind)
{
	struct memory_future *f = mem_zalloc(sizeof(*f));

	twin_check(f);
	f->kv.engine = s->kv.engine;
	f->kv.tx = tx;
	f->kv.kind = kind;
	f->kv.wave = tx ? tx->wave : 0;
	f->store = s;
	event_init(&f->kv.event);
	if (tx) {
		f->tx = (struct memory_tx *)tx;
		f->next = f->tx->futures;
		f->tx->futures = f;
	}
	return f;
}

static void
memory_future_free(struct kv_future *kv)
{
	struct memory_future *f = (struct memory_future *)kv;

	if (f->event)
		twin_cancel(f->event);
	for (struct memory_future **at = f->tx ? &f->tx->futures : NULL; at && *at;) {
		if (*at == f)
			*at = f->next;
		else
			at = &(*at)->next;
	}
	for (size_t i = 0; i < MEMORY_WATCHES; i++)
		if (memory.watches[i] == f)
			memory.watches[i] = NULL;
	for (size_t i = 0; i < f->count; i++) {
		memory_free(f->pairs[i].key);
		memory_free(f->pairs[i].value);
	}
	mem_free(f->pairs);
	memory_free(f->kv.value);
	memory_free(f->watched);
	memory_free(f->begin);
	memory_free(f->end);
	mem_free(f);
}

/* ---- Reads: of what is there when the request arrives ---- */

static void
memory_keep(struct memory_future *f, const struct memory_record *r)
{
	f->pairs[f->count++] = (struct kv_pair){ memory_copy(r->key), memory_copy(r->value) };
}

static void
memory_read_value(struct memory_future *f)
{
	size_t i = memory_find(f->begin);

	f->kv.present = memory_at(i, f->begin);
	if (f->kv.present)
		f->kv.value = memory_copy(memory.records[i].value);
	for (size_t w = 0; w < f->tx->count; w++) {
		const struct memory_write *own = &f->tx->writes[w];

		if (!str_eq(own->key, f->begin))
			continue;
		memory_free(f->kv.value);
		f->kv.present = own->value.ptr != NULL;
		f->kv.value = own->value.ptr ? memory_copy(own->value) : own->value;
	}
}

static void
memory_read_range(struct memory_future *f)
{
	size_t i = memory_find(f->begin);

	f->pairs = mem_alloc((MEMORY_RECORDS + 1) * sizeof(*f->pairs));
	twin_check(f->pairs);
	for (; i < memory.count && str_cmp(memory.records[i].key, f->end) < 0; i++) {
		if (f->limit && f->count == f->limit) {
			f->kv.range.more = true;
			break;
		}
		memory_keep(f, &memory.records[i]);
	}
	f->kv.range.pairs = f->pairs;
	f->kv.range.count = f->count;
}

static void
memory_read_arrives(void *arg)
{
	struct memory_future *f = arg;

	if (!f->tx->version)
		f->tx->version = memory.version;
	if (f->end.ptr)
		memory_read_range(f);
	else
		memory_read_value(f);
	f->event = twin_at(memory_arrival_ns(f->store, twin_now_ns()), NULL, memory_answer, f);
}

static struct kv_future *
memory_ask(struct kv_tx *tx, enum kv_future_kind kind, struct str begin, struct str end,
	   size_t limit)
{
	struct memory_store *s = (struct memory_store *)tx->store;
	struct memory_future *f = memory_future_new(s, tx, kind);

	f->begin = memory_copy(begin);
	if (end.ptr)
		f->end = memory_copy(end);
	f->limit = limit;
	f->event = twin_at(memory_arrival_ns(s, twin_now_ns()), NULL, memory_read_arrives, f);
	return &f->kv;
}

static struct kv_future *
memory_get(struct kv_tx *tx, struct str key, enum kv_read mode)
{
	(void)mode;
	return memory_ask(tx, KV_FUTURE_VALUE, key, (struct str){ NULL, 0 }, 0);
}

static struct kv_future *
memory_get_range(struct kv_tx *tx, struct str begin, struct str end,
		 const struct kv_range_options *options)
{
	twin_check(!options->reverse);
	return memory_ask(tx, KV_FUTURE_RANGE, begin, end,
			  options->limit == SIZE_MAX ? 0 : options->limit);
}

/* ---- Writes ---- */

static void
memory_write(struct memory_tx *tx, struct str key, struct str value)
{
	twin_check(tx->count < MEMORY_WRITES);
	tx->writes[tx->count++] = (struct memory_write){ memory_copy(key),
							 value.ptr ? memory_copy(value)
								   : (struct str){ NULL, 0 } };
}

static enum status
memory_set(struct kv_tx *tx, struct str key, struct str value)
{
	memory_write((struct memory_tx *)tx, key, value.ptr ? value : STR(""));
	return STATUS_OK;
}

static enum status
memory_clear(struct kv_tx *tx, struct str key)
{
	memory_write((struct memory_tx *)tx, key, (struct str){ NULL, 0 });
	return STATUS_OK;
}

static void
memory_apply(const struct memory_write *w)
{
	size_t i = memory_find(w->key);
	bool there = memory_at(i, w->key);

	if (there) {
		memory_free(memory.records[i].key);
		memory_free(memory.records[i].value);
		memmove(&memory.records[i], &memory.records[i + 1],
			(--memory.count - i) * sizeof(memory.records[0]));
	}
	if (!w->value.ptr)
		return;
	twin_check(memory.count < MEMORY_RECORDS);
	memmove(&memory.records[i + 1], &memory.records[i],
		(memory.count++ - i) * sizeof(memory.records[0]));
	memory.records[i] = (struct memory_record){ memory_copy(w->key), memory_copy(w->value) };
}

static void
memory_fire_watches(struct str key)
{
	for (size_t i = 0; i < MEMORY_WATCHES; i++) {
		struct memory_future *f = memory.watches[i];

		if (!f || !str_eq(f->watched, key))
			continue;
		memory.watches[i] = NULL;
		f->event = twin_at(memory_arrival_ns(f->store, twin_now_ns()), NULL, memory_answer,
				   f);
	}
}

static void
memory_commit_arrives(void *arg)
{
	struct memory_future *f = arg;
	struct memory_tx *tx = f->tx;

	f->event = NULL;
	if (tx->count && tx->version && tx->version != memory.version) {
		f->kv.status = STATUS_TX_CONFLICT;
	} else if (tx->count) {
		memory.version++;
		for (size_t i = 0; i < tx->count; i++) {
			memory_apply(&tx->writes[i]);
			memory_fire_watches(tx->writes[i].key);
		}
	}
	f->event = twin_at(memory_arrival_ns(f->store, twin_now_ns()), NULL, memory_answer, f);
}

static struct kv_future *
memory_commit(struct kv_tx *tx)
{
	struct memory_store *s = (struct memory_store *)tx->store;
	struct memory_future *f = memory_future_new(s, tx, KV_FUTURE_COMMIT);

	f->event = twin_at(memory_arrival_ns(s, twin_now_ns()), NULL, memory_commit_arrives, f);
	return &f->kv;
}

static struct kv_future *
memory_watch(struct kv_tx *tx, struct str key)
{
	struct memory_future *f = memory_future_new((struct memory_store *)tx->store, NULL,
						    KV_FUTURE_WATCH);

	f->watched = memory_copy(key);
	for (size_t i = 0; i < MEMORY_WATCHES; i++) {
		if (!memory.watches[i]) {
			memory.watches[i] = f;
			return &f->kv;
		}
	}
	twin_check(false && "more watches than there is room for");
	return NULL;
}

/* ---- Transactions and handles ---- */

static enum status
memory_tx_begin(struct kv_store *store, enum kv_tx_kind kind, struct kv_tx **ret)
{
	struct memory_tx *tx = mem_zalloc(sizeof(*tx));

	(void)store;
	(void)kind;
	twin_check(tx);
	*ret = &tx->kv;
	return STATUS_OK;
}

static void
memory_tx_reset(struct kv_tx *kv)
{
	struct memory_tx *tx = (struct memory_tx *)kv;

	while (tx->futures)
		memory_future_free(&tx->futures->kv);
	for (size_t i = 0; i < tx->count; i++) {
		memory_free(tx->writes[i].key);
		memory_free(tx->writes[i].value);
	}
	tx->count = 0;
	tx->version = 0;
}

static void
memory_tx_free(struct kv_tx *kv)
{
	memory_tx_reset(kv);
	mem_free(kv);
}

static enum status
memory_metadata_version(struct kv_tx *tx, uint8_t ret[KV_VERSIONSTAMP_TX_BYTES])
{
	(void)tx;
	memset(ret, 0, KV_VERSIONSTAMP_TX_BYTES);
	return STATUS_OK;
}

static int
memory_retry_delay_ms(struct kv_tx *tx, enum status status)
{
	(void)tx;
	return status == STATUS_TX_CONFLICT ? (int)twin_draw(50) : -1;
}

static void
memory_close(struct kv_store *store)
{
	mem_free(store);
}

#define MEMORY_ENGINE(is_shared)                                                                   \
	{                                                                                          \
		.scheme = "memory", .shared = (is_shared), .close = memory_close,                  \
		.begin = memory_tx_begin, .tx_free = memory_tx_free, .tx_reset = memory_tx_reset,  \
		.get = memory_get, .get_range = memory_get_range, .set = memory_set,               \
		.clear = memory_clear, .get_metadata_version = memory_metadata_version,            \
		.commit = memory_commit, .watch = memory_watch,                                    \
		.retry_delay_ms = memory_retry_delay_ms, .future_free = memory_future_free,        \
	}

static const struct kv_engine memory_engine_shared = MEMORY_ENGINE(true);
static const struct kv_engine memory_engine_alone = MEMORY_ENGINE(false);

struct kv_store *
memory_open(bool shared)
{
	struct memory_store *s = mem_zalloc(sizeof(*s));

	twin_check(s);
	s->kv.engine = shared ? &memory_engine_shared : &memory_engine_alone;
	return &s->kv;
}

void
memory_cut_off(struct kv_store *store, uint64_t until_ns)
{
	((struct memory_store *)store)->cut_until_ns = until_ns;
}

void
memory_begin(void)
{
	memory.version = 1;
}

void
memory_end(void)
{
	for (size_t i = 0; i < memory.count; i++) {
		memory_free(memory.records[i].key);
		memory_free(memory.records[i].value);
	}
	memory.count = 0;
	for (size_t i = 0; i < MEMORY_WATCHES; i++)
		twin_check(!memory.watches[i]);
}
