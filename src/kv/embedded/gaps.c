#include "kv/embedded/gaps.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

enum {
	SIDES = 2,
};

struct gap {
	uint64_t from;     /* the version; 0: there is no gap */
	uint64_t took_ns;  /* all searches that it was made of */
	uint64_t worth_ns; /* what is left of that since the gap was used last */
	size_t begin_len;
	size_t end_len;
	char begin[GAPS_KEY_BYTES + 1];
	char end[GAPS_KEY_BYTES + 1];
};

/* For reads from the left, or from the right. */
struct side {
	struct gap gaps[GAPS_EACH];
	unsigned next; /* the place at which the next search for a gap of no worth begins */
};

/* The lock guards all of it. */
struct slot {
	pthread_mutex_t lock;
	uint64_t floor; /* nothing from before this version counts */
	struct side sides[SIDES];
};

/*
 * Every key that is written is told of, and most slots have no gap: so what a writer looks at lies
 * together, and it takes no lock where there is none. A writer sets `written` and then looks at
 * `any`, who keeps a gap sets `any` and then looks at `written`: at least one of them sees the
 * other.
 */
struct gaps {
	atomic_bool wanted;                   /* a reader has wanted to leave one; stays */
	_Atomic uint64_t since;               /* writers tell from this version on; 0: not yet */
	_Atomic uint64_t written[GAPS_SLOTS]; /* the version at which a key was last written */
	atomic_bool any[GAPS_SLOTS];          /* the slot has a gap */
	struct slot slots[GAPS_SLOTS];
};

struct gaps *
gaps_new(void)
{
	struct gaps *g = mem_zalloc(sizeof(*g));

	for (size_t i = 0; g && i < GAPS_SLOTS; i++)
		pthread_mutex_init(&g->slots[i].lock, NULL);
	return g;
}

void
gaps_free(struct gaps *g)
{
	if (!g)
		return;
	for (size_t i = 0; i < GAPS_SLOTS; i++)
		pthread_mutex_destroy(&g->slots[i].lock);
	mem_free(g);
}

size_t
gaps_slot(struct str key, size_t name_len)
{
	return hash_quick(str_of(key.ptr, name_len)) % GAPS_SLOTS;
}

static struct str
gap_begin(const struct gap *gap)
{
	return str_of(gap->begin, gap->begin_len);
}

static struct str
gap_end(const struct gap *gap)
{
	return str_of(gap->end, gap->end_len);
}

static void
gap_set_begin(struct gap *gap, struct str key)
{
	memcpy(gap->begin, key.ptr, key.len);
	gap->begin_len = key.len;
}

static void
gap_set_end(struct gap *gap, struct str key)
{
	memcpy(gap->end, key.ptr, key.len);
	gap->end_len = key.len;
}

/* True if a read of [begin, end) from that side begins in the gap. */
static bool
gap_meets(const struct gap *gap, struct str begin, struct str end, bool reverse)
{
	if (!gap->from)
		return false;
	if (reverse)
		return str_cmp(gap_begin(gap), end) < 0 && str_cmp(end, gap_end(gap)) <= 0;
	return str_cmp(gap_begin(gap), begin) <= 0 && str_cmp(begin, gap_end(gap)) < 0;
}

static bool
gap_touches(const struct gap *gap, struct str begin, struct str end)
{
	return gap->from && str_cmp(gap_begin(gap), end) < 0 && str_cmp(begin, gap_end(gap)) < 0;
}

/*
 * A gap that a read of [begin, end) at the version can use: one that the read begins in, or else
 * one further on.
 */
static struct gap *
side_find(struct side *side, struct str begin, struct str end, bool reverse, uint64_t version)
{
	struct gap *found = NULL;

	for (size_t i = 0; i < GAPS_EACH; i++) {
		struct gap *gap = &side->gaps[i];

		if (gap->from > version || !gap_touches(gap, begin, end))
			continue;
		if (gap_meets(gap, begin, end, reverse))
			return gap;
		found = gap;
	}
	return found;
}

static struct str
copy_key(struct str key, char room[GAPS_KEY_BYTES + 1])
{
	memcpy(room, key.ptr, key.len);
	return str_of(room, key.len);
}

bool
gaps_find(struct gaps *g, struct str begin, struct str end, size_t name_len, bool reverse,
	  uint64_t version, struct gaps_found *ret)
{
	struct gap *gap;
	struct slot *s;
	size_t i;

	/* Whoever misses a gap reads more than it has to, and nothing else. */
	if (!atomic_load_explicit(&g->wanted, memory_order_relaxed))
		return false;
	i = gaps_slot(begin, name_len);
	s = &g->slots[i];
	if (!atomic_load(&g->any[i]))
		return false;
	pthread_mutex_lock(&s->lock);
	gap = side_find(&s->sides[reverse], begin, end, reverse, version);
	if (gap) {
		gap->worth_ns = gap->took_ns;
		ret->begin = copy_key(gap_begin(gap), ret->begin_room);
		ret->end = copy_key(gap_end(gap), ret->end_room);
	}
	pthread_mutex_unlock(&s->lock);
	if (!gap)
		return false;
	/* The gap may go on beyond the range. */
	if (str_cmp(ret->begin, begin) < 0)
		ret->begin = begin;
	if (str_cmp(end, ret->end) < 0)
		ret->end = end;
	return true;
}

/*
 * All places are taken: the gap that a new one replaces, whose search took so long; NULL: none is
 * replaced. Lowers what the gaps are worth (gaps.h). If several have no worth left, each call
 * begins to look at another place, so that it is not always the same one.
 */
static struct gap *
side_replace(struct side *side, uint64_t took_ns)
{
	struct gap *found = NULL;
	uint64_t loss_ns = took_ns;

	for (size_t i = 0; i < GAPS_EACH; i++)
		if (side->gaps[i].worth_ns < loss_ns)
			loss_ns = side->gaps[i].worth_ns;
	side->next++;
	for (unsigned i = 0; i < GAPS_EACH; i++) {
		struct gap *gap = &side->gaps[(side->next + i) % GAPS_EACH];

		gap->worth_ns -= loss_ns;
		if (!found && !gap->worth_ns)
			found = gap;
	}
	return found;
}

/* The gap that touches [begin, end), or a place for that; NULL: there is none. */
static struct gap *
side_place(struct side *side, struct str begin, struct str end, uint64_t took_ns)
{
	for (size_t i = 0; i < GAPS_EACH; i++)
		if (gap_touches(&side->gaps[i], begin, end))
			return &side->gaps[i];
	for (size_t i = 0; i < GAPS_EACH; i++)
		if (!side->gaps[i].from)
			return &side->gaps[i];
	return side_replace(side, took_ns);
}

/* Joins [begin, end) to a gap that a read of it began in, or puts it in that one's place. */
static void
gap_keep(struct gap *gap, struct str begin, struct str end, bool reverse, uint64_t version,
	 uint64_t took_ns)
{
	if (!gap_meets(gap, begin, end, reverse)) {
		gap->from = version;
		gap->took_ns = gap->worth_ns = took_ns;
		gap_set_begin(gap, begin);
		gap_set_end(gap, end);
		return;
	}
	gap->took_ns += took_ns;
	gap->worth_ns = gap->took_ns;
	if (gap->from < version)
		gap->from = version;
	if (str_cmp(begin, gap_begin(gap)) < 0)
		gap_set_begin(gap, begin);
	if (str_cmp(gap_end(gap), end) < 0)
		gap_set_end(gap, end);
}

static bool
slot_has_gap(const struct slot *s)
{
	for (size_t i = 0; i < GAPS_EACH; i++)
		if (s->sides[0].gaps[i].from || s->sides[1].gaps[i].from)
			return true;
	return false;
}

void
gaps_keep(struct gaps *g, struct str begin, struct str end, size_t name_len, bool reverse,
	  uint64_t version, uint64_t took_ns)
{
	size_t i = gaps_slot(begin, name_len);
	struct slot *s = &g->slots[i];
	uint64_t since;

	if (begin.len > GAPS_KEY_BYTES || end.len > GAPS_KEY_BYTES || str_cmp(begin, end) >= 0)
		return;
	atomic_store(&g->wanted, true);
	since = atomic_load(&g->since);
	if (!since || since > version + 1)
		return;
	pthread_mutex_lock(&s->lock);
	if (atomic_load(&g->written[i]) <= version && s->floor <= version) {
		struct gap *gap = side_place(&s->sides[reverse], begin, end, took_ns);

		if (gap)
			gap_keep(gap, begin, end, reverse, version, took_ns);
		atomic_store(&g->any[i], true);
		if (gap && atomic_load(&g->written[i]) > version)
			gap->from = 0;
		atomic_store(&g->any[i], slot_has_gap(s));
	}
	pthread_mutex_unlock(&s->lock);
}

/* Takes the key out of the gap, with what lies beyond it for whoever reads from that side. */
static void
gap_write(struct gap *gap, struct str key, bool reverse)
{
	if (!gap->from || str_cmp(key, gap_begin(gap)) < 0 || str_cmp(key, gap_end(gap)) >= 0)
		return;
	/* A key that is longer than there is room for ends the gap. */
	if (key.len + reverse > GAPS_KEY_BYTES) {
		gap->from = 0;
		return;
	}
	if (!reverse) {
		gap_set_end(gap, key);
	} else {
		gap_set_begin(gap, key);
		gap->begin[gap->begin_len++] = '\0';
	}
	if (str_cmp(gap_begin(gap), gap_end(gap)) >= 0)
		gap->from = 0;
}

bool
gaps_begin(struct gaps *g, uint64_t version)
{
	if (!atomic_load(&g->wanted))
		return false;
	if (!atomic_load_explicit(&g->since, memory_order_relaxed))
		atomic_store(&g->since, version);
	return true;
}

bool
gaps_write(struct gaps *g, size_t slot, struct str key, uint64_t version)
{
	struct slot *s = &g->slots[slot];

	/* Nobody else sets it, and a batch has many keys of one slot. */
	if (atomic_load_explicit(&g->written[slot], memory_order_relaxed) != version)
		atomic_store(&g->written[slot], version);
	if (!atomic_load(&g->any[slot]))
		return false;
	pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < GAPS_EACH; i++) {
		gap_write(&s->sides[0].gaps[i], key, false);
		gap_write(&s->sides[1].gaps[i], key, true);
	}
	atomic_store(&g->any[slot], slot_has_gap(s));
	pthread_mutex_unlock(&s->lock);
	return true;
}

void
gaps_forget(struct gaps *g, uint64_t version)
{
	for (size_t i = 0; i < GAPS_SLOTS; i++) {
		struct slot *s = &g->slots[i];

		pthread_mutex_lock(&s->lock);
		s->floor = version;
		memset(s->sides, 0, sizeof(s->sides));
		atomic_store(&g->any[i], false);
		pthread_mutex_unlock(&s->lock);
	}
}
