/*
 * A merge sort, from runs of one write upwards. Keys are compared by eight bytes behind what all
 * keys of the transaction begin with, and as a whole only where these are equal: so a comparison
 * mostly touches neither the write nor its key.
 */
#include "kv/embedded/sorted.h"

#include <assert.h>

#include "base/big_endian.h"

/* How many bytes both keys begin with. */
static size_t
keys_common(struct str a, struct str b, size_t most)
{
	size_t n = 0;

	if (most > a.len)
		most = a.len;
	if (most > b.len)
		most = b.len;
	while (n < most && a.ptr[n] == b.ptr[n])
		n++;
	return n;
}

/* Eight bytes of the key from there on, as a number. What is behind the key counts as zeros. */
static uint64_t
key_prefix(struct str key, size_t from)
{
	uint64_t n = 0;

	assert(from <= key.len);
	if (key.len - from >= sizeof(n))
		return big_endian_64(key.ptr + from);
	memcpy(&n, key.ptr + from, key.len - from);
	return big_endian_64(&n);
}

static bool
write_is_behind(const struct sorted_write *a, const struct sorted_write *b)
{
	if (a->prefix != b->prefix)
		return a->prefix > b->prefix;
	return str_cmp(a->mutation->key, b->mutation->key) > 0;
}

/* Merges from[begin, middle) and from[middle, end), each of which is sorted. */
static void
runs_merge(const struct sorted_write *from, size_t begin, size_t middle, size_t end,
	   struct sorted_write *to)
{
	size_t left = begin, right = middle;

	/* As they came, where the second run is behind the first one: keys often come in order. */
	if (middle == end || !write_is_behind(&from[middle - 1], &from[middle])) {
		memcpy(&to[begin], &from[begin], (end - begin) * sizeof(*to));
		return;
	}
	for (size_t at = begin; at < end; at++) {
		bool takes_left = right == end ||
				  (left < middle && !write_is_behind(&from[left], &from[right]));

		to[at] = from[takes_left ? left++ : right++];
	}
}

enum status
sorted_writes(const struct mutation *log, struct arena *a, const struct sorted_write **ret,
	      size_t *ret_count)
{
	size_t count = 0, common = SIZE_MAX, i = 0;
	struct sorted_write *from, *to;

	for (const struct mutation *m = log; m; m = m->next) {
		assert(m->kind != MUTATION_CLEAR_RANGE);
		common = keys_common(log->key, m->key, common);
		count++;
	}
	from = arena_alloc(a, (count + 1) * sizeof(*from));
	to = arena_alloc(a, (count + 1) * sizeof(*to));
	if (!from || !to)
		return STATUS_NOMEM;
	for (const struct mutation *m = log; m; m = m->next)
		from[i++] = (struct sorted_write){ key_prefix(m->key, common), m };
	for (size_t run = 1; run < count; run *= 2) {
		struct sorted_write *sorted = to;

		for (size_t begin = 0; begin < count; begin += 2 * run) {
			size_t middle = begin + run < count ? begin + run : count;
			size_t end = middle + run < count ? middle + run : count;

			runs_merge(from, begin, middle, end, to);
		}
		to = from;
		from = sorted;
	}
	*ret = from;
	*ret_count = count;
	return STATUS_OK;
}
