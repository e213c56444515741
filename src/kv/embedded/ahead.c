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
	struct buf bytes;
	struct buf lengths;
	struct err err;
	struct kv_pair *pairs;
	char bounds[]; /* begin and end */
};

enum {
	/* Made room for at once, instead of each time that the size has doubled... */
	ROOM_MOST_BYTES = 1024 * 1024,
	/* ...with what the last pair may take beyond the limit. */
	ROOM_SPARE_BYTES = 4 * 1024,
};

/* The job has been done. */
static void
lay_out(struct emb_ahead *a)
{
	struct range_job *job = &a->job;

	if (job->status != STATUS_OK)
		return;
	a->pairs = mem_alloc((job->count + 1) * sizeof(*a->pairs));
	if (a->pairs)
		emb_range_lay_out(job, a->pairs, a->bytes.ptr);
	else
		job->status = STATUS_NOMEM;
	buf_release(&a->lengths);
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

static struct emb_ahead *
ahead_new(const struct range_job *job)
{
	struct emb_ahead *a = mem_alloc(sizeof(*a) + job->begin.len + job->end.len);

	if (!a)
		return NULL;
	memcpy(a->bounds, job->begin.ptr, job->begin.len);
	memcpy(a->bounds + job->begin.len, job->end.ptr, job->end.len);
	a->options = *job->options;
	a->bytes = BUF_INIT(EMB_RANGE_ANSWER_BYTES);
	a->lengths = BUF_INIT(EMB_RANGE_ANSWER_BYTES);
	a->err = (struct err){ 0 };
	a->pairs = NULL;
	a->job = (struct range_job){
		.tx = job->tx,
		.begin = str_of(a->bounds, job->begin.len),
		.end = str_of(a->bounds + job->begin.len, job->end.len),
		.options = &a->options,
		.iterate = emb_range_options(job->tx),
		.bytes = &a->bytes,
		.lengths = &a->lengths,
		.err = &a->err,
	};
	return a;
}

static void
ahead_free(struct emb_ahead *a)
{
	rocksdb_readoptions_destroy(a->job.iterate);
	buf_release(&a->bytes);
	buf_release(&a->lengths);
	mem_free(a->pairs);
	mem_free(a);
}

struct kv_future *
emb_ahead_begin(const struct range_job *job)
{
	struct emb_ahead *a;
	struct emb_future *f;

	if (!wait_on_fiber())
		return NULL;
	a = ahead_new(job);
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
		f->base.range = (struct kv_range){ a->pairs, job->count, job->more };
}

void
emb_ahead_free(struct emb_future *f)
{
	if (!f->base.done)
		wait_end(&f->ahead->work);
	ahead_free(f->ahead);
}
