#include "kv/embedded/resolver.h"

#include <assert.h>

#include "base/mem.h"
#include "kv/embedded/span.h"

/*
 * A step at a key: the version of the key itself, and of all keys behind it up to the next step; 0
 * if nothing is known of them. With two versions in one step, the write of a single key is one step
 * and not two.
 */
struct step {
	struct str key;
	uint64_t at;
	uint64_t behind;
};

enum {
	PART_STEPS = 64, /* what a question about a range looks at, or passes over, at once */
};

struct resolver_run {
	uint64_t newest;
	size_t count;
	size_t bytes;        /* with all that lies behind it */
	uint64_t *newest_of; /* of each part */
	struct step *steps;
};

/* Fills a run, or only counts what one would need. */
struct filling {
	size_t count;
	size_t key_bytes;
	struct step *steps; /* NULL: counts */
	char *keys;
	uint64_t *newest_of;
};

void
resolver_init(struct resolver *r, uint64_t oldest)
{
	*r = (struct resolver){ .oldest = oldest, .newest = oldest };
}

/* The oldest `n`. */
static void
drop_runs(struct resolver *r, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		r->bytes -= r->runs[i]->bytes;
		mem_free(r->runs[i]);
	}
	r->run_count -= n;
	memmove(r->runs, r->runs + n, r->run_count * sizeof(struct resolver_run *));
}

void
resolver_fini(struct resolver *r)
{
	drop_runs(r, r->run_count);
}

/* ---- Questions ---- */

/* The first step at or behind `key`. */
static size_t
find_step(const struct resolver_run *run, struct str key)
{
	size_t lo = 0, hi = run->count;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (str_cmp(run->steps[mid].key, key) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static bool
run_written_since(const struct resolver_run *run, struct str begin, struct str end,
		  uint64_t version)
{
	size_t i = find_step(run, begin);

	if (i > 0 && run->steps[i - 1].behind > version &&
	    !(i < run->count && str_eq(run->steps[i].key, begin)))
		return true;
	while (i < run->count && str_cmp(run->steps[i].key, end) < 0) {
		const struct step *s = &run->steps[i];

		if (run->newest_of[i / PART_STEPS] <= version) {
			i = (i / PART_STEPS + 1) * PART_STEPS;
			continue;
		}
		if (s->at > version || (s->behind > version && !resolver_is_next_key(s->key, end)))
			return true;
		i++;
	}
	return false;
}

bool
resolver_written_since(const struct resolver *r, struct str begin, struct str end, uint64_t version)
{
	if (str_cmp(begin, end) >= 0)
		return false;
	if (version < r->oldest)
		return true;
	for (size_t i = r->run_count; i > 0 && r->runs[i - 1]->newest > version; i--)
		if (run_written_since(r->runs[i - 1], begin, end, version))
			return true;
	return false;
}

/* ---- Making runs ---- */

static void
add_step(struct filling *f, struct str key, uint64_t at, uint64_t behind)
{
	if (f->steps) {
		uint64_t *newest = &f->newest_of[f->count / PART_STEPS];
		uint64_t version = at > behind ? at : behind;

		if (key.len)
			memcpy(f->keys, key.ptr, key.len);
		f->steps[f->count] = (struct step){ str_of(f->keys, key.len), at, behind };
		f->keys += key.len;
		if (f->count % PART_STEPS == 0 || version > *newest)
			*newest = version;
	}
	f->key_bytes += key.len;
	f->count++;
}

static size_t
part_count(size_t steps)
{
	return (steps + PART_STEPS - 1) / PART_STEPS;
}

static size_t
run_bytes(const struct filling *counted)
{
	return sizeof(struct resolver_run) + counted->count * sizeof(struct step) +
	       part_count(counted->count) * sizeof(uint64_t) + counted->key_bytes;
}

/* A run with room for what has been counted, and the filling of it. NULL: no memory. */
static struct resolver_run *
run_new(const struct filling *counted, struct filling *ret)
{
	size_t bytes = run_bytes(counted);
	struct resolver_run *run = mem_alloc(bytes);

	if (!run)
		return NULL;
	run->count = counted->count;
	run->bytes = bytes;
	run->steps = (struct step *)(run + 1);
	run->newest_of = (uint64_t *)(run->steps + run->count);
	*ret = (struct filling){
		.steps = run->steps,
		.keys = (char *)(run->newest_of + part_count(run->count)),
		.newest_of = run->newest_of,
	};
	return run;
}

/* Single keys and spans, in order; a key within a span is no step of its own. */
static void
fill_batch(struct filling *f, const struct tree *keys, const struct tree *spans, uint64_t version)
{
	const struct tree_node *key = tree_first(keys);
	const struct tree_node *span = tree_first(spans);

	while (key || span) {
		struct str end;
		bool at_end;

		if (!span || (key && str_cmp(key->key, span->key) < 0)) {
			add_step(f, key->key, version, 0);
			key = tree_next(key);
			continue;
		}
		end = ((const struct span *)span)->end;
		add_step(f, span->key, version, version);
		while (key && str_cmp(key->key, end) < 0)
			key = tree_next(key);
		at_end = key && str_eq(key->key, end);
		add_step(f, end, at_end ? version : 0, 0);
		if (at_end)
			key = tree_next(key);
		span = tree_next(span);
	}
}

static uint64_t
newer(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Which of two steps comes first, as str_cmp(); a run that is over comes last. */
static int
step_cmp(const struct resolver_run *a, size_t i, const struct resolver_run *b, size_t j)
{
	if (i == a->count)
		return 1;
	return j == b->count ? -1 : str_cmp(a->steps[i].key, b->steps[j].key);
}

/* Two runs as one; what is not above `oldest` is not known any more. */
static void
fill_merged(struct filling *f, const struct resolver_run *a, const struct resolver_run *b,
	    uint64_t oldest)
{
	uint64_t behind_a = 0, behind_b = 0, last = 0;
	size_t i = 0, j = 0;

	while (i < a->count || j < b->count) {
		int c = step_cmp(a, i, b, j);
		struct str key = c <= 0 ? a->steps[i].key : b->steps[j].key;
		uint64_t at_a = behind_a, at_b = behind_b, at, behind;

		if (c <= 0) {
			at_a = a->steps[i].at;
			behind_a = a->steps[i++].behind;
		}
		if (c >= 0) {
			at_b = b->steps[j].at;
			behind_b = b->steps[j++].behind;
		}
		at = newer(at_a, at_b);
		at = at > oldest ? at : 0;
		behind = newer(behind_a, behind_b);
		behind = behind > oldest ? behind : 0;
		if (at != last || behind != last)
			add_step(f, key, at, behind);
		last = behind;
	}
}

/* Makes one run of the newest two, or writes the only one anew. False: no memory. */
static bool
merge_newest(struct resolver *r)
{
	static const struct resolver_run nothing;
	const struct resolver_run *b = &nothing;
	struct resolver_run **a = &r->runs[r->run_count - 1];
	struct resolver_run *merged;
	struct filling f = { 0 };

	if (r->run_count > 1)
		b = *a--;
	fill_merged(&f, *a, b, r->oldest);
	merged = run_new(&f, &f);
	if (!merged)
		return false;
	fill_merged(&f, *a, b, r->oldest);
	merged->newest = newer((*a)->newest, b->newest);
	r->bytes += merged->bytes - (*a)->bytes - b->bytes;
	mem_free(*a);
	*a = merged;
	if (b != &nothing)
		mem_free(r->runs[--r->run_count]);
	return true;
}

void
resolver_compact(struct resolver *r)
{
	while (r->run_count && merge_newest(r) && r->run_count > 1)
		;
}

/* Merges small runs before large ones, so that a step is copied a few times, however long kept. */
static bool
make_room(struct resolver *r)
{
	if (r->run_count < RESOLVER_RUNS)
		return true;
	do {
		if (!merge_newest(r))
			return false;
	} while (r->run_count > 1 &&
		 r->runs[r->run_count - 2]->count <= 2 * r->runs[r->run_count - 1]->count);
	return true;
}

void
resolver_add(struct resolver *r, const struct tree *keys, const struct tree *spans,
	     uint64_t version)
{
	struct filling f = { 0 };
	struct resolver_run *run = NULL;

	assert(version > r->newest);
	r->newest = version;
	fill_batch(&f, keys, spans, version);
	if (f.count == 0)
		return;
	if (run_bytes(&f) <= RESOLVER_MAX_BYTES - r->bytes && make_room(r))
		run = run_new(&f, &f);
	if (!run) {
		resolver_forget(r, version);
		return;
	}
	fill_batch(&f, keys, spans, version);
	run->newest = version;
	r->runs[r->run_count++] = run;
	r->bytes += run->bytes;
}

void
resolver_forget(struct resolver *r, uint64_t version)
{
	size_t n = 0;

	if (version <= r->oldest)
		return;
	r->oldest = version;
	if (version > r->newest)
		r->newest = version;
	while (n < r->run_count && r->runs[n]->newest <= version)
		n++;
	drop_runs(r, n);
}
