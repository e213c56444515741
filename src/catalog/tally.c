/*
 * Counters by range, the writers' side: a writer adds to the counter of each range in which its
 * edits add or remove keys, without reading the counter. The writer takes the ranges from its
 * guide, which may be out of date.
 */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/mem.h"
#include "catalog/tally_int.h"

/* ---- Guides ---- */

void
catalog_guide_unref(struct catalog_guide *guide)
{
	if (guide && atomic_fetch_sub_explicit(&guide->refs, 1, memory_order_acq_rel) == 1)
		mem_free(guide);
}

struct catalog_guide *
catalog_guide_get(const struct catalog_db *db)
{
	struct catalog_tally *tally = db->tally;
	struct catalog_guide *guide;

	if (!tally)
		return NULL;
	pthread_mutex_lock(&tally->lock);
	guide = tally->guide;
	if (guide)
		atomic_fetch_add_explicit(&guide->refs, 1, memory_order_relaxed);
	pthread_mutex_unlock(&tally->lock);
	return guide;
}

void
catalog_tally_guide(struct catalog_tally *tally, struct catalog_guide *guide)
{
	struct catalog_guide *before;

	pthread_mutex_lock(&tally->lock);
	before = tally->guide;
	tally->guide = guide;
	pthread_mutex_unlock(&tally->lock);
	catalog_guide_unref(before);
}

static int
compare_marks(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

/* Collects every bound of the ranges once, except the first and the last bound. */
static enum status
guide_marks(const struct catalog_ranges *ranges, struct arena *arena, struct str **ret,
	    size_t *ret_count)
{
	struct str *marks = arena_alloc(arena, (2 * ranges->count + 1) * sizeof(*marks));
	size_t count = 0, kept = 0;

	if (!marks)
		return STATUS_LIMIT;
	for (size_t i = 0; i < ranges->count; i++) {
		if (ranges->ranges[i].lo.len)
			marks[count++] = ranges->ranges[i].lo;
		if (!str_eq(ranges->ranges[i].hi, CATALOG_TALLY_END))
			marks[count++] = ranges->ranges[i].hi;
	}
	if (count)
		qsort(marks, count, sizeof(*marks), compare_marks);
	for (size_t i = 0; i < count; i++)
		if (kept == 0 || !str_eq(marks[kept - 1], marks[i]))
			marks[kept++] = marks[i];
	*ret = marks;
	*ret_count = kept;
	return STATUS_OK;
}

/* Makes a guide. The marks and their bytes lie behind it in the same block. */
static struct catalog_guide *
guide_new(size_t lists, struct str *const marks[CATALOG_TALLY_LISTS],
	  const size_t counts[CATALOG_TALLY_LISTS])
{
	size_t all = 0, bytes = 0;
	struct catalog_guide *guide;
	uint64_t *before;
	struct str *to;
	char *text;

	for (size_t list = 0; list < lists; list++) {
		all += counts[list];
		for (size_t i = 0; i < counts[list]; i++)
			bytes += marks[list][i].len;
	}
	guide = mem_alloc(sizeof(*guide) + all * (sizeof(*to) + sizeof(*before)) + bytes);
	if (!guide)
		return NULL;
	atomic_init(&guide->refs, 1);
	to = (struct str *)(guide + 1);
	before = (uint64_t *)(to + all);
	text = (char *)(before + all);
	for (size_t list = 0; list < lists; list++) {
		guide->marks[list] = to;
		guide->before[list] = before;
		guide->counts[list] = counts[list];
		before += counts[list];
		for (size_t i = 0; i < counts[list]; i++, to++) {
			memcpy(text, marks[list][i].ptr, marks[list][i].len);
			*to = str_of(text, marks[list][i].len);
			text += to->len;
		}
	}
	return guide;
}

static size_t guide_range_find(const struct catalog_guide *guide, size_t list, struct str tail);

/*
 * Adds up what comes before each mark. Where ranges overlap, a key counts where the range ends that
 * has counted it, which is near enough for an estimate.
 */
static void
guide_add_up(struct catalog_guide *guide, size_t list, const struct catalog_ranges *ranges)
{
	uint64_t *before = guide->before[list];
	size_t count = guide->counts[list];
	int64_t sum = 0;

	if (count)
		memset(before, 0, count * sizeof(*before));
	for (size_t i = 0; i < ranges->count; i++) {
		size_t at = guide_range_find(guide, list, ranges->ranges[i].hi);

		if (at && !str_eq(ranges->ranges[i].hi, CATALOG_TALLY_END))
			before[at - 1] += (uint64_t)ranges->ranges[i].count;
	}
	for (size_t i = 0; i < count; i++) {
		sum += (int64_t)before[i];
		before[i] = sum > 0 ? (uint64_t)sum : 0;
	}
	guide->totals[list] = ranges->total;
}

void
catalog_guide_scan_end(struct catalog_guide_scan *s)
{
	for (size_t list = 0; list < CATALOG_TALLY_LISTS; list++)
		catalog_range_scan_end(&s->lists[list]);
}

/* Asks for the counters of all lists, so that they come in one round trip. */
static enum status
guide_scan_begin(struct kv_tx *tx, const struct catalog_db *db, struct catalog_guide_scan *s)
{
	s->begun = true;
	for (size_t list = 0; list < db->kind->lists_count; list++)
		TRY(catalog_range_scan_begin(tx, db, list, &s->lists[list]));
	return STATUS_OK;
}

enum status
catalog_guide_make(const struct catalog_db *db, const struct catalog_ranges *ranges,
		   struct arena *arena, struct catalog_guide **ret)
{
	struct str *marks[CATALOG_TALLY_LISTS];
	size_t counts[CATALOG_TALLY_LISTS];
	struct catalog_guide *guide;

	for (size_t list = 0; list < db->kind->lists_count; list++)
		TRY(guide_marks(&ranges[list], arena, &marks[list], &counts[list]));
	guide = guide_new(db->kind->lists_count, marks, counts);
	if (!guide)
		return STATUS_NOMEM;
	for (size_t list = 0; list < db->kind->lists_count; list++)
		guide_add_up(guide, list, &ranges[list]);
	*ret = guide;
	return STATUS_OK;
}

static enum status
guide_make(struct catalog_guide_scan *s, const struct catalog_db *db, struct arena *arena,
	   struct catalog_guide **ret)
{
	struct catalog_ranges ranges[CATALOG_TALLY_LISTS];

	for (size_t list = 0; list < db->kind->lists_count; list++)
		TRY(catalog_range_scan_read(&s->lists[list], arena, &ranges[list]));
	return catalog_guide_make(db, ranges, arena, ret);
}

static enum status
guide_scan_read(struct catalog_guide_scan *s, const struct catalog_db *db,
		struct catalog_guide **ret)
{
	struct arena *arena = arena_new(CATALOG_GUIDE_BYTES);
	enum status status = arena ? guide_make(s, db, arena, ret) : STATUS_NOMEM;

	arena_free(arena);
	return status;
}

/* ---- Tallies ---- */

static void
tally_free(struct catalog_tally *tally)
{
	catalog_guide_unref(tally->guide);
	pthread_mutex_destroy(&tally->lock);
	mem_free(tally);
}

static struct catalog_tally *
tally_new(struct catalog_tallies *all, const struct catalog_db *db)
{
	size_t bytes = db->name.len + db->prefix.len;
	struct catalog_tally *tally = mem_zalloc(sizeof(*tally) + bytes);

	if (!tally)
		return NULL;
	if (pthread_mutex_init(&tally->lock, NULL) != 0) {
		mem_free(tally);
		return NULL;
	}
	memcpy(tally->bytes, db->name.ptr, db->name.len);
	memcpy(tally->bytes + db->name.len, db->prefix.ptr, db->prefix.len);
	tally->db = *db;
	tally->db.name = str_of(tally->bytes, db->name.len);
	tally->db.prefix = str_of(tally->bytes + db->name.len, db->prefix.len);
	tally->db.tally = NULL;
	tally->db.extension = NULL;
	tally->all = all;
	tally->refs = 1;
	return tally;
}

static struct catalog_tally **
tally_slot(struct catalog_tallies *all, uint64_t number)
{
	struct catalog_tally **at = &all->slots[number % CATALOG_TALLIES_SLOTS];

	while (*at && (*at)->db.number != number)
		at = &(*at)->next;
	return at;
}

static struct catalog_tally *
tally_of(struct catalog_tallies *all, const struct catalog_db *db)
{
	struct catalog_tally *tally, **at;

	if (!all)
		return tally_new(NULL, db);
	pthread_mutex_lock(&all->lock);
	at = tally_slot(all, db->number);
	tally = *at;
	if (tally)
		tally->refs++;
	else
		tally = *at = tally_new(all, db);
	pthread_mutex_unlock(&all->lock);
	return tally;
}

void
catalog_tally_unref(struct catalog_tally *tally)
{
	struct catalog_tallies *all = tally ? tally->all : NULL;
	bool last = true;

	if (!tally)
		return;
	if (all) {
		pthread_mutex_lock(&all->lock);
		assert(tally->refs > 0);
		last = --tally->refs == 0;
		if (last)
			*tally_slot(all, tally->db.number) = tally->next;
		pthread_mutex_unlock(&all->lock);
	}
	if (last)
		tally_free(tally);
}

enum status
catalog_tally_open(struct kv_tx *tx, struct catalog_tallies *all, struct catalog_db *db,
		   struct catalog_guide_scan *s)
{
	struct catalog_guide *guide;

	db->tally = tally_of(all, db);
	if (!db->tally)
		return STATUS_NOMEM;
	guide = catalog_guide_get(db);
	catalog_guide_unref(guide);
	return guide ? STATUS_OK : guide_scan_begin(tx, db, s);
}

enum status
catalog_tally_opened(const struct catalog_db *db, struct catalog_guide_scan *s)
{
	struct catalog_guide *guide;
	enum status status;

	if (!s->begun)
		return STATUS_OK;
	status = guide_scan_read(s, db, &guide);
	/* Without a guide a writer counts in one range of all keys, which is correct as well. */
	if (status == STATUS_CORRUPT || status == STATUS_LIMIT)
		return STATUS_OK;
	TRY(status);
	catalog_tally_guide(db->tally, guide);
	return STATUS_OK;
}

struct catalog_tallies *
catalog_tallies_new(void)
{
	struct catalog_tallies *all = mem_zalloc(sizeof(*all));

	if (all && pthread_mutex_init(&all->lock, NULL) != 0) {
		mem_free(all);
		return NULL;
	}
	return all;
}

void
catalog_tallies_free(struct catalog_tallies *all)
{
	if (!all)
		return;
	for (size_t i = 0; i < all->queued; i++)
		catalog_tally_unref(all->queue[i]);
	pthread_mutex_destroy(&all->lock);
	mem_free(all);
}

/* ---- The queue of tallies to tend ---- */

void
catalog_tally_queue(struct catalog_tally *tally)
{
	struct catalog_tallies *all = tally->all;

	pthread_mutex_lock(&all->lock);
	if (all->queued < CATALOG_TALLIES_QUEUE) {
		tally->refs++;
		all->queue[all->queued++] = tally;
	} else {
		atomic_store(&tally->queued, false);
	}
	pthread_mutex_unlock(&all->lock);
}

void
catalog_tally_note(const struct catalog_db *db, uint64_t keys)
{
	struct catalog_tally *tally = db->tally;

	if (!tally || !tally->all || keys == 0)
		return;
	atomic_fetch_add_explicit(&tally->noted, keys, memory_order_relaxed);
	if (!atomic_load_explicit(&tally->queued, memory_order_relaxed) &&
	    !atomic_exchange(&tally->queued, true))
		catalog_tally_queue(tally);
}

/* ---- Counting what an edit does ---- */

/*
 * Returns the number of the range that a key is in: the number of marks that do not come after the
 * key.
 */
static size_t
guide_range_find(const struct catalog_guide *guide, size_t list, struct str tail)
{
	size_t lo = 0, hi = guide ? guide->counts[list] : 0;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (str_cmp(guide->marks[list][mid], tail) <= 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* The keys in front of a range and, with them, in it. */
static void
guide_range_counts(const struct catalog_guide *guide, size_t list, size_t range, uint64_t *ret_low,
		   uint64_t *ret_high)
{
	uint64_t low = range ? guide->before[list][range - 1] : 0;
	uint64_t high = range < guide->counts[list] ? guide->before[list][range]
						    : guide->totals[list];

	*ret_low = low;
	*ret_high = high > low ? high : low;
}

bool
catalog_tally_estimate(const struct catalog_db *db, size_t list, struct str begin, struct str end,
		       uint64_t *ret)
{
	struct catalog_guide *guide = catalog_guide_get(db);
	bool knows = guide && guide->counts[list] >= CATALOG_TALLY_ESTIMATE_MARKS;

	if (knows) {
		size_t first = guide_range_find(guide, list, begin);
		size_t last = guide_range_find(guide, list, end);
		uint64_t low, high, from, to;

		guide_range_counts(guide, list, first, &low, &high);
		from = low + (high - low) / 2;
		guide_range_counts(guide, list, last, &low, &high);
		to = low + (high - low) / 2;
		/* Ranges end where groups begin, and who asks for a group means all of it. */
		*ret = first == last ? high - low : to > from ? to - from : 0;
	}
	catalog_guide_unref(guide);
	return knows;
}

void
catalog_counts_init(struct catalog_counts *counts, const struct catalog_db *db, struct arena *arena)
{
	assert(!db->bare);
	*counts = (struct catalog_counts){
		.db = db,
		.arena = arena,
		.guide = catalog_guide_get(db),
	};
}

void
catalog_counts_release(struct catalog_counts *counts)
{
	catalog_guide_unref(counts->guide);
	counts->guide = NULL;
}

enum status
catalog_counts_add(struct catalog_counts *counts, size_t list, struct str tail, int64_t change)
{
	size_t range = guide_range_find(counts->guide, list, tail);

	assert(list < counts->db->kind->lists_count);
	assert(!counts->guide || range <= counts->guide->counts[list]);

	/*
	 * Looks only at the two newest entries, because the edits of a batch are often close to
	 * each other.
	 */
	for (size_t i = counts->counted_count; i > 0 && i + 2 > counts->counted_count; i--) {
		struct catalog_counted *c = &counts->counted[i - 1];

		if (c->list == list && c->range == range) {
			c->change += change;
			return STATUS_OK;
		}
	}
	TRY(catalog_array_grow(counts->arena, (void **)&counts->counted, sizeof(*counts->counted),
			       counts->counted_count, &counts->counted_cap));
	counts->counted[counts->counted_count++] = (struct catalog_counted){ .list = list,
									     .range = range,
									     .change = change };
	return STATUS_OK;
}

static int
compare_counted(const void *a, const void *b)
{
	const struct catalog_counted *x = a, *y = b;

	if (x->list != y->list)
		return x->list < y->list ? -1 : 1;
	return (x->range > y->range) - (x->range < y->range);
}

enum status
catalog_counts_finish(struct catalog_counts *counts, struct kv_tx *tx, struct buf *key)
{
	const struct catalog_guide *guide = counts->guide;
	uint64_t keys = 0;
	size_t next;

	if (counts->counted_count)
		qsort(counts->counted, counts->counted_count, sizeof(*counts->counted),
		      compare_counted);
	for (size_t i = 0; i < counts->counted_count; i = next) {
		const struct catalog_counted *c = &counts->counted[i];
		struct str lo = { NULL, 0 }, hi = CATALOG_TALLY_END;
		int64_t change = 0;

		for (next = i;
		     next < counts->counted_count && !compare_counted(c, &counts->counted[next]);
		     next++)
			change += counts->counted[next].change;
		keys += (uint64_t)(change < 0 ? -change : change);
		assert(guide || !c->range);
		if (guide && c->range)
			lo = guide->marks[c->list][c->range - 1];
		if (guide && c->range < guide->counts[c->list])
			hi = guide->marks[c->list][c->range];
		catalog_key_range(key, counts->db, c->list, lo, hi);
		/*
		 * This writes the counter even if the change is 0. Others may know this range as
		 * several ranges, of which one has lost a key and another has gained one. Readers
		 * have to find this counter, so that they treat those ranges as one region.
		 */
		TRY(catalog_counter_add(tx, key, change));
	}
	catalog_tally_note(counts->db, keys + (counts->counted_count > 0));
	return STATUS_OK;
}
