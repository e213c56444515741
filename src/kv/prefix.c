#include "kv/prefix.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "base/mem.h"
#include "kv/engine.h"
#include "kv/keyspace.h"
#include "kv/tuple.h"

enum {
	PREFIX_KEY_BYTES = 16,
};

/* The numbers that are left in the process's block. The lock is never held across a wait. */
struct prefixes {
	pthread_mutex_t lock;
	uint64_t next;
	uint64_t end;
	uint64_t block; /* the size of the next block */
};

/* Finds or makes the store's numbers. NULL: out of memory. */
static struct prefixes *
store_prefixes(struct kv_store *store)
{
	struct prefixes *known = atomic_load_explicit(&store->prefixes, memory_order_acquire);
	struct prefixes *made;

	if (known)
		return known;
	made = mem_zalloc(sizeof(*made));
	if (!made)
		return NULL;
	pthread_mutex_init(&made->lock, NULL);
	made->block = 1;
	/* Another thread may have been quicker; its numbers are used then. */
	if (!atomic_compare_exchange_strong(&store->prefixes, &known, made)) {
		prefixes_free(made);
		return known;
	}
	return made;
}

void
prefixes_free(struct prefixes *prefixes)
{
	if (!prefixes)
		return;
	pthread_mutex_destroy(&prefixes->lock);
	mem_free(prefixes);
}

/*
 * Takes a number from the block. False if the block is used up; `*ret_block` is then the size of
 * the block to take from the store.
 */
static bool
prefixes_pop(struct prefixes *p, uint64_t *ret, uint64_t *ret_block)
{
	bool some;

	pthread_mutex_lock(&p->lock);
	some = p->next < p->end;
	if (some)
		*ret = p->next++;
	*ret_block = p->block;
	pthread_mutex_unlock(&p->lock);
	return some;
}

/*
 * Keeps a new block. If two fibers took one at the same time, the block with more numbers left is
 * kept, and the other's numbers are never used.
 */
static void
prefixes_keep(struct prefixes *p, uint64_t next, uint64_t end)
{
	pthread_mutex_lock(&p->lock);
	if (end - next > p->end - p->next) {
		p->next = next;
		p->end = end;
	}
	p->block = p->block < PREFIX_BLOCK_MAX / 2 ? p->block * 2 : PREFIX_BLOCK_MAX;
	pthread_mutex_unlock(&p->lock);
}

/* ---- Taking a block ---- */

struct taking {
	struct prefixes *prefixes;
	uint64_t number;
	uint64_t block; /* 0: the number is out of another fiber's block */
};

static enum status
prefix_take_block(struct kv_tx *tx, void *arg)
{
	struct taking *t = arg;
	AUTO(buf_release) struct buf key = BUF_INIT(PREFIX_KEY_BYTES);
	AUTO(buf_release) struct buf next = BUF_INIT(PREFIX_KEY_BYTES);
	struct kv_future *f;
	struct str value;

	if (prefixes_pop(t->prefixes, &t->number, &t->block)) {
		t->block = 0;
		return STATUS_OK;
	}
	tuple_put_u64(&key, KV_ROOT);
	tuple_put_u64(&key, KV_ROOT_NEXT_PREFIX);
	TRY(buf_status(&key));
	f = kv_get(tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(f));
	t->number = KV_FIRST_PREFIX;
	if (kv_future_value(f, &value)) {
		struct tuple_reader r = tuple_reader(value);

		TRY(tuple_next_u64(&r, &t->number));
	}
	tuple_put_u64(&next, t->number + t->block);
	TRY(buf_status(&next));
	return kv_set(tx, buf_str(&key), buf_str(&next));
}

enum status
kv_prefix_take(struct kv_store *store, uint64_t *ret, struct err *err)
{
	struct taking t = { .prefixes = store_prefixes(store) };

	if (!t.prefixes)
		return STATUS_NOMEM;
	if (!prefixes_pop(t.prefixes, &t.number, &t.block)) {
		TRY(kv_run(store, prefix_take_block, &t, NULL, err));
		if (t.block)
			prefixes_keep(t.prefixes, t.number + 1, t.number + t.block);
	}
	*ret = t.number;
	return STATUS_OK;
}
