/* Going through a range of any size: each stretch is one range read, begun where the last ended. */
#include <string.h>

#include "base/mem.h"
#include "kv/kv.h"

static void
ask(struct kv_scan *scan)
{
	struct kv_range_options options = scan->options;

	options.limit = scan->remaining == SIZE_MAX ? 0 : scan->remaining;
	scan->future = kv_get_range(scan->tx, scan->begin, scan->end, &options);
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

enum status
kv_scan_init(struct kv_scan *scan, struct kv_tx *tx, struct str begin, struct str end,
	     const struct kv_range_options *options)
{
	*scan = (struct kv_scan){ .tx = tx };
	if (options)
		scan->options = *options;
	scan->remaining = scan->options.limit ? scan->options.limit : SIZE_MAX;
	TRY(set_bounds(scan, begin, false, end));
	ask(scan);
	return STATUS_OK;
}

/* The stretch is used up: asks for the next one, which begins behind its last key. */
static enum status
go_on(struct kv_scan *scan)
{
	struct str last = scan->range.pairs[scan->range.count - 1].key;

	if (scan->options.reverse)
		TRY(set_bounds(scan, scan->begin, false, last));
	else
		TRY(set_bounds(scan, last, true, scan->end));
	kv_future_free(scan->future);
	ask(scan);
	return STATUS_OK;
}

enum status
kv_scan_next(struct kv_scan *scan, struct kv_pair *ret)
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
	}
	if (scan->done)
		return STATUS_NOT_FOUND;
	*ret = scan->range.pairs[scan->at++];
	if (scan->remaining != SIZE_MAX)
		scan->remaining--;
	return STATUS_OK;
}

enum status
kv_scan_retry(struct kv_scan *scan, enum status status)
{
	kv_future_free(scan->future);
	scan->future = NULL;
	scan->range = (struct kv_range){ 0 };
	scan->at = 0;
	TRY(kv_on_error(scan->tx, status));
	ask(scan);
	return STATUS_OK;
}

void
kv_scan_release(struct kv_scan *scan)
{
	kv_future_free(scan->future);
	mem_free(scan->bounds);
	*scan = (struct kv_scan){ .done = true };
}
