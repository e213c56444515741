/*
 * Ranges that the pool reads while their fiber works on what it has.
 *
 * == Who owns a read ahead ==
 *
 * From wait_begin() on, the pool may run ahead_run() at any time, once. Until wait_end() has
 * returned, the fiber touches nothing in the struct. If wait_end() returns true, the pool has run
 * it and is done. If it returns false, the pool had not come to it and never will, and the fiber
 * reads the range itself. So nobody waits for the pool to have time.
 *
 * The pool reads through the transaction's snapshot, and looks at nothing else of the transaction
 * but what never changes while it is open. This holds for transactions that cannot write
 * (emb_disk_may_read_ahead()): they have no overlay and no conflicts. Each read has iterator
 * options of its own, since RocksDB reads the bounds through them while it moves.
 *
 * The transaction's end waits for reads that the pool has begun (emb_future_free()), before it lets
 * go of the snapshot.
 */
#include <assert.h>

#include "base/mem.h"
#include "loop/wait.h"
#include "kv/embedded/range_int.h"

enum {
	/* Room for the answer is made at once, if it may become no larger than that. */
	ROOM_MOST_BYTES = 1024 * 1024,
	/* The last pair may go beyond the limit; mostly by no more than that. */
	ROOM_SPARE_BYTES = 4 * 1024,
};

static struct kv_pair *
ahead_pairs(const struct emb_ahead *a)
{
	return (struct kv_pair *)(void *)a->pairs.ptr;
}

/* Makes pairs of the bytes and lengths that the job has collected. */
static void
ahead_lay_out(struct emb_ahead *a)
{
	struct range_job *job = &a->job;

	if (job->status != STATUS_OK)
		return;
	assert(!job->read.incomplete);
	buf_clear(&a->pairs);
	if (buf_reserve(&a->pairs, job->count * sizeof(struct kv_pair)))
		emb_range_lay_out(job, ahead_pairs(a), a->bytes.ptr);
	else
		job->status = STATUS_NOMEM;
}

/* On a thread of the pool. */
static void
ahead_run(void *arg)
{
	struct emb_ahead *a = arg;

	if (a->options.limit_bytes <= ROOM_MOST_BYTES)
		(void)buf_reserve(&a->bytes, a->options.limit_bytes + ROOM_SPARE_BYTES);
	emb_disk_read_here(&a->job.read);
	ahead_lay_out(a);
}

static struct emb_ahead *
ahead_new(void)
{
	struct emb_ahead *a = mem_zalloc(sizeof(*a));

	if (!a)
		return NULL;
	a->bounds = BUF_INIT(2 * (KV_LIMIT_KEY_BYTES + 1));
	a->bytes = BUF_INIT(EMB_RANGE_ANSWER_BYTES);
	a->lengths = BUF_INIT(EMB_RANGE_ANSWER_BYTES);
	a->pairs = BUF_INIT(EMB_RANGE_ANSWER_BYTES);
	return a;
}

/* Takes a struct that has been used before, with its memory, or makes one. NULL: out of memory. */
static struct emb_ahead *
ahead_take(const struct range_job *job)
{
	struct emb_tx *tx = job->tx;
	struct emb_ahead *a = tx->spare_aheads;
	rocksdb_readoptions_t *iterate;

	if (a)
		tx->spare_aheads = a->next;
	else
		a = ahead_new();
	if (!a)
		return NULL;
	buf_clear(&a->bounds);
	buf_append_str(&a->bounds, job->begin);
	buf_append_str(&a->bounds, job->end);
	if (buf_status(&a->bounds) != STATUS_OK) {
		emb_ahead_destroy(a);
		return NULL;
	}
	a->options = *job->options;
	a->err = (struct err){ 0 };
	iterate = a->job.iterate ? a->job.iterate : rocksdb_readoptions_create();
	a->job = (struct range_job){
		.read = { .run = emb_range_run, .is_range = true },
		.tx = tx,
		.begin = str_of(a->bounds.ptr, job->begin.len),
		.end = str_of(a->bounds.ptr + job->begin.len, job->end.len),
		.options = &a->options,
		.iterate = iterate,
		.bytes = &a->bytes,
		.lengths = &a->lengths,
		.err = &a->err,
	};
	return a;
}

struct kv_future *
emb_ahead_begin(const struct range_job *job)
{
	struct emb_ahead *a;
	struct emb_future *f;

	assert(job->tx->base.kind == KV_TX_READ_ONLY && job->tx->snapshot);
	a = ahead_take(job);
	if (!a)
		return NULL;
	emb_ahead_count(a, job->options->limit_bytes + ROOM_SPARE_BYTES);
	if (!wait_begin(&a->work, ahead_run, a)) {
		emb_ahead_destroy(a);
		return NULL;
	}
	f = emb_future_new_ahead(job->tx, a);
	if (!f) {
		wait_end(&a->work);
		emb_ahead_destroy(a);
		return NULL;
	}
	return &f->base;
}

void
emb_ahead_settle(struct emb_future *f)
{
	struct emb_ahead *a = f->ahead;
	struct range_job *job = &a->job;
	struct emb_tx *tx = job->tx;

	assert(!f->base.done);
	if (!wait_end(&a->work)) {
		/* The pool has not come to it. */
		emb_disk_read(tx->store, &job->read);
		ahead_lay_out(a);
	}
	emb_ahead_count(a, 0);
	f->base.done = true;
	f->base.status = emb_tx_check(tx);
	if (f->base.status == STATUS_OK && job->status != STATUS_OK) {
		tx->base.err = a->err;
		f->base.status = job->status;
	}
	if (f->base.status == STATUS_OK)
		f->base.range = (struct kv_range){ ahead_pairs(a), job->count, job->more };
}
