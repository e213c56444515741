/*
 * Ranges that the pool reads while their fiber goes on with what it has. Only transactions that
 * cannot write have them: their snapshot is all that such a read needs of them. Nobody waits for
 * the pool to have time: what it has not come to when the answer is wanted is read on the spot.
 */
#include "base/mem.h"
#include "base/wait.h"
#include "kv/embedded/range_int.h"

struct emb_ahead {
	struct wait_work work;
	struct range_job job;
	struct kv_range_options options;
	struct emb_ahead *next; /* of those that can be used again */
	struct buf bounds;      /* begin and end */
	struct buf bytes;
	struct buf lengths;
	struct buf pairs;
	struct err err;
};

enum {
	/* Made room for at once, instead of each time that the size has doubled... */
	ROOM_MOST_BYTES = 1024 * 1024,
	/* ...with what the last pair may take beyond the limit. */
	ROOM_SPARE_BYTES = 4 * 1024,
};

static struct kv_pair *
pairs_of(const struct emb_ahead *a)
{
	return (struct kv_pair *)(void *)a->pairs.ptr;
}

/* The job has been done. */
static void
lay_out(struct emb_ahead *a)
{
	struct range_job *job = &a->job;

	if (job->status != STATUS_OK)
		return;
	buf_clear(&a->pairs);
	if (buf_reserve(&a->pairs, job->count * sizeof(struct kv_pair)))
		emb_range_lay_out(job, pairs_of(a), a->bytes.ptr);
	else
		job->status = STATUS_NOMEM;
}

static void
run(void *arg)
{
	struct emb_ahead *a = arg;

	if (a->options.limit_bytes <= ROOM_MOST_BYTES)
		(void)buf_reserve(&a->bytes, a->options.limit_bytes + ROOM_SPARE_BYTES);
	emb_range_read(&a->job);
	lay_out(a);
}

static void
ahead_free(struct emb_ahead *a)
{
	if (!a)
		return;
	if (a->job.iterate)
		rocksdb_readoptions_destroy(a->job.iterate);
	buf_release(&a->bounds);
	buf_release(&a->bytes);
	buf_release(&a->lengths);
	buf_release(&a->pairs);
	mem_free(a);
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

/* One that has been used before, with its memory, or a new one. */
static struct emb_ahead *
ahead_for(const struct range_job *job)
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
		ahead_free(a);
		return NULL;
	}
	a->options = *job->options;
	a->err = (struct err){ 0 };
	iterate = a->job.iterate ? a->job.iterate : emb_range_options(tx);
	a->job = (struct range_job){
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

void
emb_aheads_release(struct emb_tx *tx)
{
	while (tx->spare_aheads) {
		struct emb_ahead *a = tx->spare_aheads;

		tx->spare_aheads = a->next;
		ahead_free(a);
	}
}

struct kv_future *
emb_ahead_begin(const struct range_job *job)
{
	struct emb_ahead *a;
	struct emb_future *f;

	if (!wait_on_fiber())
		return NULL;
	a = ahead_for(job);
	if (!a)
		return NULL;
	if (!wait_begin(&a->work, run, a)) {
		ahead_free(a);
		return NULL;
	}
	f = emb_future_new_ahead(job->tx, a);
	if (!f) {
		wait_end(&a->work);
		ahead_free(a);
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

	if (!wait_end(&a->work)) {
		emb_range_read_on_loop(job);
		lay_out(a);
	}
	f->base.done = true;
	f->base.status = emb_tx_check(tx);
	if (f->base.status == STATUS_OK && job->status != STATUS_OK) {
		tx->base.err = a->err;
		f->base.status = job->status;
	}
	if (f->base.status == STATUS_OK)
		f->base.range = (struct kv_range){ pairs_of(a), job->count, job->more };
}

void
emb_ahead_free(struct emb_future *f)
{
	struct emb_ahead *a = f->ahead;
	struct emb_tx *tx = a->job.tx;

	if (!f->base.done)
		wait_end(&a->work);
	/* A scan has two at a time, and asks for the next when the first of them is free. */
	a->next = tx->spare_aheads;
	tx->spare_aheads = a;
}
