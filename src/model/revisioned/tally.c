/*
 * Counters by range, the writers' side: each range that an edit adds keys to, or takes keys from,
 * is added to blindly. Which ranges there are is what a writer believes, and need not be so.
 */
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "model/revisioned/tally_int.h"

/* What the writers of one database in this process share. */
struct rev_tally {
	struct rev_tallies *all; /* NULL: one description's own */
	struct rev_db *db;       /* a copy, which has no tally */
	struct rev_tally *next;  /* in all->slots */
	unsigned refs;           /* under all->lock */
	pthread_mutex_t lock;
	struct rev_guide *guide;    /* under `lock`; NULL: one range */
	atomic_uint_fast64_t noted; /* keys that came and went since it was tended */
	atomic_bool queued;
	uint64_t tended_ns; /* of who tends, like `more` */
	bool more;          /* there was too much for one call */
};

struct rev_tallies {
	pthread_mutex_t lock;
	struct rev_tally *slots[REV_TALLIES_SLOTS]; /* by number */
	struct rev_tally *queue[REV_TALLIES_QUEUE]; /* one reference each */
	size_t queued;
};

/* ---- Guides ---- */

void
rev_guide_unref(struct rev_guide *guide)
{
	if (guide && atomic_fetch_sub_explicit(&guide->refs, 1, memory_order_acq_rel) == 1)
		mem_free(guide);
}

struct rev_guide *
rev_guide_get(const struct rev_db *db)
{
	struct rev_tally *tally = db->tally;
	struct rev_guide *guide;

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
rev_tally_guide(struct rev_tally *tally, struct rev_guide *guide)
{
	struct rev_guide *before;

	pthread_mutex_lock(&tally->lock);
	before = tally->guide;
	tally->guide = guide;
	pthread_mutex_unlock(&tally->lock);
	rev_guide_unref(before);
}

static int
compare_marks(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

/* Every bound but the first and the last, once. */
static enum status
marks_of(const struct rev_ranges *ranges, struct arena *arena, struct str **ret, size_t *ret_count)
{
	struct str *marks = arena_alloc(arena, (2 * ranges->count + 1) * sizeof(*marks));
	size_t count = 0, kept = 0;

	if (!marks)
		return STATUS_LIMIT;
	for (size_t i = 0; i < ranges->count; i++) {
		if (ranges->ranges[i].lo.len)
			marks[count++] = ranges->ranges[i].lo;
		if (!str_eq(ranges->ranges[i].hi, REV_TALLY_END))
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

/* A guide with room for the marks and their bytes behind it. */
static struct rev_guide *
guide_new(struct str *const marks[REV_LISTS], const size_t counts[REV_LISTS])
{
	size_t all = 0, bytes = 0;
	struct rev_guide *guide;
	struct str *to;
	char *text;

	for (size_t list = 0; list < REV_LISTS; list++) {
		all += counts[list];
		for (size_t i = 0; i < counts[list]; i++)
			bytes += marks[list][i].len;
	}
	guide = mem_alloc(sizeof(*guide) + all * sizeof(*to) + bytes);
	if (!guide)
		return NULL;
	atomic_init(&guide->refs, 1);
	guide->keys = 0;
	to = (struct str *)(guide + 1);
	text = (char *)(to + all);
	for (size_t list = 0; list < REV_LISTS; list++) {
		guide->marks[list] = to;
		guide->counts[list] = counts[list];
		for (size_t i = 0; i < counts[list]; i++, to++) {
			memcpy(text, marks[list][i].ptr, marks[list][i].len);
			*to = str_of(text, marks[list][i].len);
			text += to->len;
		}
	}
	return guide;
}

static enum status
guide_read(struct kv_tx *tx, const struct rev_db *db, struct arena *arena, struct rev_guide **ret)
{
	struct str *marks[REV_LISTS];
	size_t counts[REV_LISTS];
	struct rev_guide *guide;
	uint64_t keys = 0;

	for (int list = 0; list < REV_LISTS; list++) {
		struct rev_ranges ranges;

		TRY(rev_ranges_read(tx, db, (enum rev_list)list, arena, &ranges));
		TRY(marks_of(&ranges, arena, &marks[list], &counts[list]));
		keys += ranges.total;
	}
	guide = guide_new(marks, counts);
	if (!guide)
		return STATUS_NOMEM;
	guide->keys = keys;
	*ret = guide;
	return STATUS_OK;
}

enum status
rev_guide_read(struct kv_tx *tx, const struct rev_db *db, struct rev_guide **ret)
{
	struct arena *arena = arena_new(REV_GUIDE_BYTES);
	enum status status = arena ? guide_read(tx, db, arena, ret) : STATUS_NOMEM;

	arena_free(arena);
	return status;
}

/* ---- Tallies ---- */

static void
tally_free(struct rev_tally *tally)
{
	rev_guide_unref(tally->guide);
	pthread_mutex_destroy(&tally->lock);
	rev_db_unref(tally->db);
	mem_free(tally);
}

static struct rev_tally *
tally_new(struct rev_tallies *all, const struct rev_db *db)
{
	struct rev_tally *tally = mem_zalloc(sizeof(*tally));

	if (!tally)
		return NULL;
	tally->db = rev_db_new(db);
	if (!tally->db || pthread_mutex_init(&tally->lock, NULL) != 0) {
		rev_db_unref(tally->db);
		mem_free(tally);
		return NULL;
	}
	tally->all = all;
	tally->refs = 1;
	return tally;
}

static struct rev_tally **
tally_slot(struct rev_tallies *all, uint64_t number)
{
	struct rev_tally **at = &all->slots[number % REV_TALLIES_SLOTS];

	while (*at && (*at)->db->number != number)
		at = &(*at)->next;
	return at;
}

static struct rev_tally *
tally_of(struct rev_tallies *all, const struct rev_db *db)
{
	struct rev_tally *tally, **at;

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
rev_tally_unref(struct rev_tally *tally)
{
	struct rev_tallies *all = tally ? tally->all : NULL;
	bool last = true;

	if (!tally)
		return;
	if (all) {
		pthread_mutex_lock(&all->lock);
		last = --tally->refs == 0;
		if (last)
			*tally_slot(all, tally->db->number) = tally->next;
		pthread_mutex_unlock(&all->lock);
	}
	if (last)
		tally_free(tally);
}

enum status
rev_tally_open(struct kv_tx *tx, struct rev_tallies *all, struct rev_db *db)
{
	struct rev_guide *guide;
	enum status status;

	db->tally = tally_of(all, db);
	if (!db->tally)
		return STATUS_NOMEM;
	guide = rev_guide_get(db);
	rev_guide_unref(guide);
	if (guide)
		return STATUS_OK;
	status = rev_guide_read(tx, db, &guide);
	/* Whoever knows no ranges counts in one that has them all. */
	if (status == STATUS_CORRUPT || status == STATUS_LIMIT)
		return STATUS_OK;
	TRY(status);
	rev_tally_guide(db->tally, guide);
	return STATUS_OK;
}

struct rev_tallies *
rev_tallies_new(void)
{
	struct rev_tallies *all = mem_zalloc(sizeof(*all));

	if (all && pthread_mutex_init(&all->lock, NULL) != 0) {
		mem_free(all);
		return NULL;
	}
	return all;
}

void
rev_tallies_free(struct rev_tallies *all)
{
	if (!all)
		return;
	for (size_t i = 0; i < all->queued; i++)
		rev_tally_unref(all->queue[i]);
	pthread_mutex_destroy(&all->lock);
	mem_free(all);
}

/* ---- Who is to be tended ---- */

/* Takes a reference. A queue that is full forgets: the next change asks again. */
static void
queue_add(struct rev_tallies *all, struct rev_tally *tally)
{
	pthread_mutex_lock(&all->lock);
	if (all->queued < REV_TALLIES_QUEUE) {
		tally->refs++;
		all->queue[all->queued++] = tally;
	} else {
		atomic_store(&tally->queued, false);
	}
	pthread_mutex_unlock(&all->lock);
}

void
rev_tally_note(const struct rev_db *db, uint64_t keys)
{
	struct rev_tally *tally = db->tally;

	if (!tally || !tally->all || keys == 0)
		return;
	atomic_fetch_add_explicit(&tally->noted, keys, memory_order_relaxed);
	if (!atomic_load_explicit(&tally->queued, memory_order_relaxed) &&
	    !atomic_exchange(&tally->queued, true))
		queue_add(tally->all, tally);
}

static bool
is_due(struct rev_tally *tally, bool all)
{
	uint64_t noted = atomic_load_explicit(&tally->noted, memory_order_relaxed);
	uint64_t least = REV_TALLY_KEYS;

	if (all || tally->more ||
	    clock_mono_ns() - tally->tended_ns >= REV_TALLY_IDLE_MS * CLOCK_NS_PER_MS)
		return true;
	pthread_mutex_lock(&tally->lock);
	/* A thousandth: reading all counters costs as much as two thousandths, at a million. */
	if (tally->guide && tally->guide->keys / 1000 > least)
		least = tally->guide->keys / 1000;
	pthread_mutex_unlock(&tally->lock);
	return noted >= least;
}

static enum status
tend_one(struct kv_store *store, struct rev_tally *tally, bool *ret_more, struct err *err)
{
	enum status status;

	atomic_store(&tally->queued, false);
	atomic_store_explicit(&tally->noted, 0, memory_order_relaxed);
	tally->more = false;
	status = rev_tally_tend_db(store, tally->db, tally, 0, &tally->more, err);
	tally->tended_ns = clock_mono_ns();
	if (status == STATUS_NOT_FOUND) /* deleted meanwhile */
		return STATUS_OK;
	*ret_more = *ret_more || tally->more;
	if ((tally->more || status != STATUS_OK) && !atomic_exchange(&tally->queued, true))
		queue_add(tally->all, tally);
	return status;
}

enum status
rev_tallies_tend(struct rev_tallies *all, struct kv_store *store, bool now, bool *ret_more,
		 struct err *err)
{
	enum status status = STATUS_OK;
	size_t left;

	*ret_more = false;
	pthread_mutex_lock(&all->lock);
	left = all->queued;
	pthread_mutex_unlock(&all->lock);
	while (left--) {
		struct rev_tally *tally;
		enum status one = STATUS_OK;

		pthread_mutex_lock(&all->lock);
		tally = all->queue[0];
		memmove(all->queue, all->queue + 1, --all->queued * sizeof(struct rev_tally *));
		pthread_mutex_unlock(&all->lock);
		if (is_due(tally, now))
			one = tend_one(store, tally, ret_more, err);
		else
			queue_add(all, tally);
		rev_tally_unref(tally);
		status = status == STATUS_OK ? one : status;
	}
	return status;
}

enum status
rev_tally_tend(struct kv_store *store, const struct rev_db *db, uint64_t range_keys, bool *ret_more,
	       struct err *err)
{
	return rev_tally_tend_db(store, db, db->tally, range_keys, ret_more, err);
}

/* ---- Counting what an edit does ---- */

/* The range that a key is in: the number of marks that are not behind it. */
static size_t
range_find(const struct rev_guide *guide, enum rev_list list, struct str tail)
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

enum status
rev_tally_count(struct rev_writer *w, enum rev_list list, struct str tail, int64_t change)
{
	size_t range = range_find(w->guide, list, tail);

	/* The last of each list: many edits of a batch are near each other. */
	for (size_t i = w->counted_count; i > 0 && i + 2 > w->counted_count; i--) {
		struct rev_counted *c = &w->counted[i - 1];

		if (c->list == list && c->range == range) {
			c->change += change;
			return STATUS_OK;
		}
	}
	TRY(rev_array_grow(w->arena, (void **)&w->counted, sizeof(*w->counted), w->counted_count,
			   &w->counted_cap));
	w->counted[w->counted_count++] = (struct rev_counted){ .list = list,
							       .range = range,
							       .change = change };
	return STATUS_OK;
}

enum status
rev_tally_count_new(struct rev_writer *w)
{
	/* Its Sequence is above all that are known: the last range. */
	return rev_tally_count(w, REV_LIST_CHANGES, REV_TALLY_END, 1);
}

static int
compare_counted(const void *a, const void *b)
{
	const struct rev_counted *x = a, *y = b;

	if (x->list != y->list)
		return x->list < y->list ? -1 : 1;
	return (x->range > y->range) - (x->range < y->range);
}

enum status
rev_tally_finish(struct rev_writer *w)
{
	const struct rev_guide *guide = w->guide;
	uint64_t keys = 0;
	size_t next;

	if (w->counted_count)
		qsort(w->counted, w->counted_count, sizeof(*w->counted), compare_counted);
	for (size_t i = 0; i < w->counted_count; i = next) {
		const struct rev_counted *c = &w->counted[i];
		struct str lo = { NULL, 0 }, hi = REV_TALLY_END;
		int64_t change = 0;

		for (next = i; next < w->counted_count && !compare_counted(c, &w->counted[next]);
		     next++)
			change += w->counted[next].change;
		keys += (uint64_t)(change < 0 ? -change : change);
		if (c->range)
			lo = guide->marks[c->list][c->range - 1];
		if (guide && c->range < guide->counts[c->list])
			hi = guide->marks[c->list][c->range];
		rev_key_range(&w->key, w->db, c->list, lo, hi);
		/* Also if it comes to nothing: keys may have gone in one part, and come in another,
		 * of what others know as several ranges. Those have to know of this one. */
		TRY(rev_counter_add(w->tx, &w->key, change));
	}
	rev_tally_note(w->db, keys + (w->counted_count > 0));
	return STATUS_OK;
}
