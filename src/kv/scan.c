/* Going through a range of any size: each stretch is one range read, begun where the last ended. */
#include <string.h>

#include "base/mem.h"
#include "kv/kv.h"

enum {
	FIRST_STRETCH = 8, /* the part of the limit that a scan which asks ahead begins with */
};

/* From where the bounds are, `left` pairs at most. */
static struct kv_future *
ask(struct kv_scan *scan, size_t left, bool ahead)
{
	struct kv_range_options options = scan->options;

	options.limit = left == SIZE_MAX ? 0 : left;
	options.ahead = ahead;
	if (scan->options.ahead) {
		options.limit_bytes = scan->stretch_bytes;
		scan->stretch_bytes = scan->stretch_bytes > scan->options.limit_bytes / 2
					      ? scan->options.limit_bytes
					      : scan->stretch_bytes * 2;
	}
	return kv_get_range(scan->tx, scan->begin, scan->end, &options);
}

/* Asks for what is to be read next, now. */
static void
ask_now(struct kv_scan *scan)
{
	scan->future = ask(scan, scan->remaining, false);
	scan->range = (struct kv_range){ 0 };
	scan->at = 0;
}

/* Owns copies of both bounds in one allocation; `begin_nul` puts a zero byte behind the first. */
static enum status
set_bounds(struct kv_scan *scan, struct str begin, bool begin_nul, struct str end)
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

/* Lets the bounds begin behind the stretch that has come. */
static enum status
pass_stretch(struct kv_scan *scan)
{
	struct str last = scan->range.pairs[scan->range.count - 1].key;

	if (scan->options.reverse)
		return set_bounds(scan, scan->begin, false, last);
	return set_bounds(scan, last, true, scan->end);
}

enum status
kv_scan_init(struct kv_scan *scan, struct kv_tx *tx, struct str begin, struct str end,
	     const struct kv_range_options *options)
{
	*scan = (struct kv_scan){ .tx = tx };
	if (options)
		scan->options = *options;
	if (!scan->options.limit_bytes)
		scan->options.limit_bytes = KV_LIMIT_RANGE_BYTES;
	scan->stretch_bytes = scan->options.limit_bytes / FIRST_STRETCH + 1;
	scan->remaining = scan->options.limit ? scan->options.limit : SIZE_MAX;
	TRY(set_bounds(scan, begin, false, end));
	ask_now(scan);
	return STATUS_OK;
}

/* A stretch has come: asks for the one behind it, if that is wanted. */
static enum status
ask_ahead(struct kv_scan *scan)
{
	size_t left = scan->remaining;

	if (left != SIZE_MAX)
		left -= scan->range.count;
	if (!scan->options.ahead || !scan->range.more || !left)
		return STATUS_OK;
	TRY(pass_stretch(scan));
	scan->following = ask(scan, left, true);
	return STATUS_OK;
}

/* The stretch is used up: goes on to the next one. */
static enum status
go_on(struct kv_scan *scan)
{
	if (!scan->following)
		TRY(pass_stretch(scan));
	kv_future_free(scan->future);
	scan->future = NULL;
	if (!scan->following) {
		ask_now(scan);
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
fill(struct kv_scan *scan)
{
	while (!scan->done && scan->at == scan->range.count) {
		if (scan->range.count) {
			scan->done = !scan->range.more || scan->remaining == 0;
			if (scan->done)
				break;
			TRY(go_on(scan));
		}
		TRY(kv_future_wait(scan->future));
		scan->range = kv_future_range(scan->future);
		scan->done = scan->range.count == 0;
		if (!scan->done)
			TRY(ask_ahead(scan));
	}
	return scan->done ? STATUS_NOT_FOUND : STATUS_OK;
}

enum status
kv_scan_next(struct kv_scan *scan, struct kv_pair *ret)
{
	TRY(fill(scan));
	*ret = scan->range.pairs[scan->at++];
	if (scan->remaining != SIZE_MAX)
		scan->remaining--;
	return STATUS_OK;
}

enum status
kv_scan_take(struct kv_scan *scan, size_t most, struct kv_range *ret)
{
	size_t n;

	TRY(fill(scan));
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
drop_futures(struct kv_scan *scan)
{
	kv_future_free(scan->future);
	kv_future_free(scan->following);
	scan->future = NULL;
	scan->following = NULL;
}

enum status
kv_scan_retry(struct kv_scan *scan, enum status status)
{
	drop_futures(scan);
	scan->range = (struct kv_range){ 0 };
	scan->at = 0;
	TRY(kv_on_error(scan->tx, status));
	ask_now(scan);
	return STATUS_OK;
}

void
kv_scan_release(struct kv_scan *scan)
{
	drop_futures(scan);
	mem_free(scan->bounds);
	*scan = (struct kv_scan){ .done = true };
}
