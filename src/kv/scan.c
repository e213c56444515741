/*
 * Going through a range of any size, in stretches. Each stretch is the answer to one range read,
 * which begins where the last one has ended.
 *
 * `future` is the stretch that is being gone through, or has been asked for. `following` is the
 * next one, if it has been asked for ahead. The bounds always begin behind all that has been asked
 * for, so `following` is set exactly if they have passed the stretch that `future` is of.
 *
 * The limit of the caller's options is in `remaining`. That of the scan's own is how many pairs the
 * stretch that was asked for last may have, as long as few are likely to be wanted, or 0.
 */
#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "kv/engine.h"
#include "kv/few.h"
#include "loop/step.h"
#include "loop/wait.h"

enum {
	FIRST_STRETCH = 8, /* a scan that asks ahead begins with this part of the limit */
	FEW_GROWTH = 8,    /* of stretches of few pairs */
	FEW_PAIRS = 1000,  /* in such a stretch, at most */
	/*
	 * A loop's thread serves nobody else while it reads a stretch, so the stretch has no more
	 * than HERE_BYTES. A page of a hundred documents of a KiB, which is often asked for, fits.
	 * What is asked for ahead is mostly read by the pool. The loop reads it only if the pool
	 * has not begun when it is wanted.
	 */
	HERE_BYTES = 128 * 1024,
	AHEAD_BYTES = 256 * 1024,
};

/* How large a stretch may be that is asked for now, or ahead. */
static size_t
scan_most_bytes(const struct kv_scan *scan, bool ahead)
{
	/* A cluster answers by a thread of its library, and waiting for it costs more. */
	if (!wait_on_fiber() || kv_is_shared(scan->tx->store))
		return SIZE_MAX;
	/* The pool reads nothing ahead for transactions that write. */
	return ahead && scan->tx->kind == KV_TX_READ_ONLY ? AHEAD_BYTES : HERE_BYTES;
}

/* Asks for the stretch that begins where the bounds are, with `left` pairs at most. */
static struct kv_future *
scan_ask(struct kv_scan *scan, size_t left, bool ahead)
{
	struct kv_range_options options = scan->options;
	size_t most;

	if (!options.limit || options.limit > left)
		options.limit = left == SIZE_MAX ? 0 : left;
	options.ahead = ahead;
	if (scan->options.ahead) {
		options.limit_bytes = scan->stretch_bytes;
		/* It grows unless few are likely to be wanted. */
		if (!scan->options.limit)
			scan->stretch_bytes = scan->stretch_bytes > scan->options.limit_bytes / 2
						      ? scan->options.limit_bytes
						      : scan->stretch_bytes * 2;
	}
	most = scan_most_bytes(scan, ahead);
	if (options.limit_bytes > most)
		options.limit_bytes = most;
	return kv_get_range(scan->tx, scan->begin, scan->end, &options);
}

/* Asks for the next stretch; it is wanted at once. */
static void
scan_ask_now(struct kv_scan *scan)
{
	scan->future = scan_ask(scan, scan->remaining, false);
	scan->range = (struct kv_range){ 0 };
	scan->at = 0;
}

/*
 * Copies both bounds into one allocation. With `begin_nul` the first one gets a zero byte at its
 * end, which makes it the next possible key. The old bounds may be among the arguments.
 */
static enum status
scan_set_bounds(struct kv_scan *scan, struct str begin, bool begin_nul, struct str end)
{
	size_t begin_len = begin.len + (begin_nul ? 1 : 0);
	char *bounds = mem_alloc(begin_len + end.len);

	if (!bounds)
		return STATUS_NOMEM;
	if (begin.len)
		memcpy(bounds, begin.ptr, begin.len);
	if (begin_nul)
		bounds[begin.len] = '\0';
	if (end.len)
		memcpy(bounds + begin_len, end.ptr, end.len);
	mem_free(scan->bounds);
	scan->bounds = bounds;
	scan->begin = str_of(bounds, begin_len);
	scan->end = str_of(bounds + begin_len, end.len);
	return STATUS_OK;
}

/* Moves the bounds behind the stretch that has come. */
static enum status
scan_pass_stretch(struct kv_scan *scan)
{
	struct str last = scan->range.pairs[scan->range.count - 1].key;

	if (scan->options.reverse)
		return scan_set_bounds(scan, scan->begin, false, last);
	return scan_set_bounds(scan, last, true, scan->end);
}

enum status
kv_scan_init_few(struct kv_scan *scan, struct kv_tx *tx, struct str begin, struct str end,
		 const struct kv_range_options *options, size_t first)
{
	size_t stretch_bytes = kv_tx_stretch_bytes(tx);

	*scan = (struct kv_scan){ .tx = tx };
	if (options)
		scan->options = *options;
	if (!scan->options.limit_bytes)
		scan->options.limit_bytes = KV_LIMIT_RANGE_BYTES;
	if (stretch_bytes && scan->options.limit_bytes > stretch_bytes)
		scan->options.limit_bytes = stretch_bytes;
	scan->stretch_bytes = scan->options.limit_bytes / FIRST_STRETCH + 1;
	scan->remaining = scan->options.limit ? scan->options.limit : SIZE_MAX;
	/* Many that are asked for ahead come in stretches that grow, each while one is used. */
	scan->options.limit = first <= FEW_PAIRS || !scan->options.ahead ? first : 0;
	TRY(scan_set_bounds(scan, begin, false, end));
	scan_ask_now(scan);
	return STATUS_OK;
}

void
kv_scan_expect(struct kv_scan *scan, size_t pairs)
{
	/* The next stretch has so many times as many as the one before. */
	scan->options.limit = pairs / FEW_GROWTH + 1;
}

enum status
kv_scan_init(struct kv_scan *scan, struct kv_tx *tx, struct str begin, struct str end,
	     const struct kv_range_options *options)
{
	return kv_scan_init_few(scan, tx, begin, end, options, 0);
}

/*
 * A stretch has come: asks for the one behind it, if the scan asks ahead and there is one. Behind
 * few pairs it does not: most likely no more are wanted.
 */
static enum status
scan_ask_ahead(struct kv_scan *scan)
{
	size_t left = scan->remaining;

	if (left != SIZE_MAX)
		left -= scan->range.count;
	if (!scan->options.ahead || scan->options.limit || !scan->range.more || !left)
		return STATUS_OK;
	assert(!scan->following);
	TRY(scan_pass_stretch(scan));
	scan->following = scan_ask(scan, left, true);
	return STATUS_OK;
}

/* How many pairs the stretch behind the one that is used up has; 0: no such limit. */
static size_t
scan_next_limit(const struct kv_scan *scan)
{
	size_t limit = scan->options.limit;

	/* Its bytes may have ended it before all was there that is likely to be wanted. */
	if (limit > FEW_PAIRS)
		return limit - scan->range.count > FEW_PAIRS ? limit - scan->range.count
							     : FEW_PAIRS;
	return limit > FEW_PAIRS / FEW_GROWTH ? 0 : limit * FEW_GROWTH;
}

/* The stretch is used up: takes the next one, or asks for it. */
static enum status
scan_go_on(struct kv_scan *scan)
{
	/* Before its future is freed: the last key of the stretch lies in it. */
	if (!scan->following)
		TRY(scan_pass_stretch(scan));
	kv_future_free(scan->future);
	scan->future = NULL;
	if (!scan->following) {
		scan->options.limit = scan_next_limit(scan);
		scan_ask_now(scan);
		return STATUS_OK;
	}
	scan->future = scan->following;
	scan->following = NULL;
	scan->range = (struct kv_range){ 0 };
	scan->at = 0;
	return STATUS_OK;
}

/* Makes sure that there is a pair at `at`; STATUS_NOT_FOUND at the end. */
static enum status
scan_fill(struct kv_scan *scan)
{
	while (!scan->done && scan->at == scan->range.count) {
		if (scan->range.count) {
			scan->done = !scan->range.more || scan->remaining == 0;
			if (scan->done)
				break;
			TRY(scan_go_on(scan));
		}
		TRY(kv_future_wait(scan->future));
		scan->range = kv_future_range(scan->future);
		/* The engine has counted no steps for what it has read. */
		step_pause((uint32_t)scan->range.count);
		scan->done = scan->range.count == 0;
		if (!scan->done)
			TRY(scan_ask_ahead(scan));
	}
	return scan->done ? STATUS_NOT_FOUND : STATUS_OK;
}

enum status
kv_scan_next(struct kv_scan *scan, struct kv_pair *ret)
{
	TRY(scan_fill(scan));
	*ret = scan->range.pairs[scan->at++];
	if (scan->remaining != SIZE_MAX)
		scan->remaining--;
	return STATUS_OK;
}

enum status
kv_scan_take(struct kv_scan *scan, size_t most, struct kv_range *ret)
{
	size_t n;

	TRY(scan_fill(scan));
	n = scan->range.count - scan->at;
	if (n > most)
		n = most;
	*ret = (struct kv_range){
		.pairs = scan->range.pairs + scan->at,
		.count = n,
		.more = scan->range.more || n < scan->range.count - scan->at,
	};
	scan->at += n;
	if (scan->remaining != SIZE_MAX)
		scan->remaining -= n;
	return STATUS_OK;
}

static void
scan_drop_futures(struct kv_scan *scan)
{
	kv_future_free(scan->future);
	kv_future_free(scan->following);
	scan->future = NULL;
	scan->following = NULL;
}

enum status
kv_scan_retry(struct kv_scan *scan, enum status status)
{
	scan_drop_futures(scan);
	scan->range = (struct kv_range){ 0 };
	scan->at = 0;
	TRY(kv_on_error(scan->tx, status));
	scan_ask_now(scan);
	return STATUS_OK;
}

void
kv_scan_release(struct kv_scan *scan)
{
	scan_drop_futures(scan);
	mem_free(scan->bounds);
	*scan = (struct kv_scan){ .done = true };
}
