/*
 * == Why a conflict is never missed ==
 *
 * A run is a function from keys to the newest version at which the key was written in the batches
 * of the run, given by its steps: a step holds for its own key (`at`) and for all keys behind it up
 * to the next step (`behind`). Where nothing is known the version is 0. For every key and every
 * version above `oldest`, the greatest of the runs' versions is the version of the key's last
 * write. Every operation keeps that so:
 *
 *   resolver_add() makes a run of all keys and ranges of a batch
 *   merging takes the greater of two versions at every key, and may replace by 0 what is not above
 *   `oldest`, since questions about such versions are answered "written" in any case
 *   resolver_forget() raises `oldest` and drops runs in which nothing is above it
 *
 * So a wrong answer can only be "written" where nothing was: a transaction is refused that might
 * have committed, which the contract allows.
 */
#include "kv/embedded/resolver.h"

#include <assert.h>

#include "base/mem.h"
#include "kv/embedded/span.h"

/* Two versions in one step: so the write of a single key takes one step and not two. */
struct step {
	struct str key;
	uint64_t at;     /* of the key itself */
	uint64_t behind; /* of all keys behind it, up to the next step */
};

enum {
	PART_STEPS = 64, /* that a question about a range can pass over at once */
};

struct resolver_run {
	uint64_t newest;
	size_t count;
	size_t bytes;        /* with all that lies behind it */
	uint64_t *newest_of; /* the greatest version in each part of PART_STEPS steps */
	struct step *steps;  /* in the order of their keys, which lie behind them */
};

/* What is put into a new run. The same code first counts how much room it needs. */
struct filling {
	size_t count;
	size_t key_bytes;
	struct step *steps; /* NULL: only count */
	char *keys;
	uint64_t *newest_of;
};

void
resolver_init(struct resolver *r, uint64_t oldest)
{
	*r = (struct resolver){ .oldest = oldest, .newest = oldest };
}

/* Frees the oldest `n` runs. */
static void
resolver_drop_runs(struct resolver *r, size_t n)
{
	assert(n <= r->run_count);
	for (size_t i = 0; i < n; i++) {
		r->bytes -= r->runs[i]->bytes;
		mem_free(r->runs[i]);
	}
	r->run_count -= n;
	assert(r->run_count > 0 || r->bytes == 0);
	memmove(r->runs, r->runs + n, r->run_count * sizeof(struct resolver_run *));
}

void
resolver_fini(struct resolver *r)
{
	resolver_drop_runs(r, r->run_count);
}

/* ---- Questions ---- */

/* The place of the first step whose key is not before `key`. */
static size_t
run_find_step(const struct resolver_run *run, struct str key)
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

/* True if the run has a version above `version` for a key in [begin, end). */
static bool
run_written_since(const struct resolver_run *run, struct str begin, struct str end,
		  uint64_t version)
{
	size_t i = run_find_step(run, begin);

	/* The step before tells about `begin`, unless there is a step at `begin` itself. */
	if (i > 0 && run->steps[i - 1].behind > version &&
	    !(i < run->count && str_eq(run->steps[i].key, begin)))
		return true;
	while (i < run->count && str_cmp(run->steps[i].key, end) < 0) {
		const struct step *s = &run->steps[i];

		/* No step of this part is new enough: go on with the next part. */
		if (run->newest_of[i / PART_STEPS] <= version) {
			i = (i / PART_STEPS + 1) * PART_STEPS;
			continue;
		}
		if (s->at > version)
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
filling_add_step(struct filling *f, struct str key, uint64_t at, uint64_t behind)
{
	/* What is written behind a key was written by a range that has the key, or begins there. */
	assert(at >= behind);
	if (f->steps) {
		uint64_t *newest = &f->newest_of[f->count / PART_STEPS];

		if (key.len)
			memcpy(f->keys, key.ptr, key.len);
		f->steps[f->count] = (struct step){ str_of(f->keys, key.len), at, behind };
		f->keys += key.len;
		if (f->count % PART_STEPS == 0 || at > *newest)
			*newest = at;
	}
	f->key_bytes += key.len;
	f->count++;
}

static size_t
run_part_count(size_t steps)
{
	return (steps + PART_STEPS - 1) / PART_STEPS;
}

/* The bytes of a run with all its steps, parts and keys, which lie in one piece. */
static size_t
run_bytes(const struct filling *counted)
{
	return sizeof(struct resolver_run) + counted->count * sizeof(struct step) +
	       run_part_count(counted->count) * sizeof(uint64_t) + counted->key_bytes;
}

/* Makes a run with room for what has been counted, and begins to fill it. NULL: out of memory. */
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
		.keys = (char *)(run->newest_of + run_part_count(run->count)),
		.newest_of = run->newest_of,
	};
	return run;
}

/*
 * Adds the keys and ranges of a batch, which are both sorted, in one pass. A key within a range
 * gets no step of its own: the range's step holds for it.
 */
static void
filling_add_batch(struct filling *f, const struct tree *keys, const struct tree *spans,
		  uint64_t version)
{
	const struct tree_node *key = tree_first(keys);
	const struct tree_node *span = tree_first(spans);

	while (key || span) {
		struct str end;
		bool at_end;

		if (!span || (key && str_cmp(key->key, span->key) < 0)) {
			filling_add_step(f, key->key, version, 0);
			key = tree_next(key);
			continue;
		}
		end = ((const struct span *)span)->end;
		filling_add_step(f, span->key, version, version);
		while (key && str_cmp(key->key, end) < 0)
			key = tree_next(key);
		at_end = key && str_eq(key->key, end);
		filling_add_step(f, end, at_end ? version : 0, 0);
		if (at_end)
			key = tree_next(key);
		span = tree_next(span);
	}
}

static uint64_t
newer_version(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Which of two steps has the lower key, as str_cmp(). The end of a run is behind all keys. */
static int
run_step_cmp(const struct resolver_run *a, size_t i, const struct resolver_run *b, size_t j)
{
	if (i == a->count)
		return 1;
	return j == b->count ? -1 : str_cmp(a->steps[i].key, b->steps[j].key);
}

/* Adds the greater version of two runs at each key; versions not above `oldest` become 0. */
static void
filling_add_merged(struct filling *f, const struct resolver_run *a, const struct resolver_run *b,
		   uint64_t oldest)
{
	uint64_t behind_a = 0, behind_b = 0, last = 0;
	size_t i = 0, j = 0;

	while (i < a->count || j < b->count) {
		int c = run_step_cmp(a, i, b, j);
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
		at = newer_version(at_a, at_b);
		at = at > oldest ? at : 0;
		behind = newer_version(behind_a, behind_b);
		behind = behind > oldest ? behind : 0;
		/* A step that changes nothing is left out. */
		if (at != last || behind != last)
			filling_add_step(f, key, at, behind);
		last = behind;
	}
}

/*
 * Merges the newest two runs, or writes the only one anew without what has been forgotten. Returns
 * false if it is out of memory; then nothing has changed.
 */
static bool
resolver_merge_newest(struct resolver *r)
{
	static const struct resolver_run nothing;
	const struct resolver_run *b = &nothing;
	struct resolver_run **a = &r->runs[r->run_count - 1];
	struct resolver_run *merged;
	struct filling f = { 0 };

	if (r->run_count > 1)
		b = *a--;
	filling_add_merged(&f, *a, b, r->oldest);
	merged = run_new(&f, &f);
	if (!merged)
		return false;
	assert((*a)->newest <= b->newest || b == &nothing);
	filling_add_merged(&f, *a, b, r->oldest);
	assert(f.count == merged->count);
	merged->newest = newer_version((*a)->newest, b->newest);
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
	while (r->run_count && resolver_merge_newest(r) && r->run_count > 1)
		;
}

/*
 * Makes sure that there is room for one run more. Merges the newest runs until the one before is
 * more than twice as large, so that a step is copied a few times only, however long it is kept.
 */
static bool
resolver_make_room(struct resolver *r)
{
	if (r->run_count < RESOLVER_RUNS)
		return true;
	do {
		if (!resolver_merge_newest(r))
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
	filling_add_batch(&f, keys, spans, version);
	if (f.count == 0)
		return;
	if (run_bytes(&f) <= RESOLVER_MAX_BYTES - r->bytes && resolver_make_room(r))
		run = run_new(&f, &f);
	if (!run) {
		/* Without the batch the history would have a hole: rather have none. */
		resolver_forget(r, version);
		return;
	}
	filling_add_batch(&f, keys, spans, version);
	/* Both passes have counted the same, so everything has found its room. */
	assert(f.count == run->count && f.steps == run->steps);
	assert(r->run_count == 0 || r->runs[r->run_count - 1]->newest < version);
	run->newest = version;
	assert(r->run_count < RESOLVER_RUNS);
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
	assert(r->oldest <= r->newest);
	while (n < r->run_count && r->runs[n]->newest <= version)
		n++;
	resolver_drop_runs(r, n);
}
