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
	uint64_t from; /* the version; 0: there is no gap */
	size_t begin_len;
	size_t end_len;
	char begin[GAPS_KEY_BYTES + 1]; /* room for a NUL behind a key */
	char end[GAPS_KEY_BYTES + 1];
};

/* The lock guards all of it. */
struct slot {
	pthread_mutex_t lock;
	uint64_t floor;          /* nothing from before this version counts */
	struct gap sides[SIDES]; /* for reads from the left, and from the right */
};

/*
 * Every key that is written is told of, and most slots have no gap: so what a writer looks at lies
 * together, and it takes no lock where there is none. A writer sets `written` and then looks at
 * `any`, who keeps a gap sets `any` and then looks at `written`: at least one of them sees the
 * other.
 */
struct gaps {
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
gaps_slot(struct str key, size_t entity_len)
{
	return hash_quick(str_of(key.ptr, entity_len)) % GAPS_SLOTS;
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

bool
gaps_find(struct gaps *g, struct str begin, struct str end, size_t entity_len, bool reverse,
	  uint64_t version, char room[GAPS_KEY_BYTES + 1], struct str *ret)
{
	size_t i = gaps_slot(begin, entity_len);
	struct slot *s = &g->slots[i];
	const struct gap *gap = &s->sides[reverse];
	struct str to;
	bool found;

	if (!atomic_load(&g->any[i]))
		return false;
	pthread_mutex_lock(&s->lock);
	found = gap_meets(gap, begin, end, reverse) && gap->from <= version;
	if (found) {
		to = reverse ? gap_begin(gap) : gap_end(gap);
		memcpy(room, to.ptr, to.len);
		*ret = str_of(room, to.len);
	}
	pthread_mutex_unlock(&s->lock);
	if (!found)
		return false;
	/* The gap may go on behind the range. */
	if (reverse ? str_cmp(*ret, begin) < 0 : str_cmp(end, *ret) < 0)
		*ret = reverse ? begin : end;
	return true;
}

/* Joins [begin, end) to a gap that a read of it began in, or puts it in that one's place. */
static void
gap_keep(struct gap *gap, struct str begin, struct str end, bool reverse, uint64_t version)
{
	if (!gap_meets(gap, begin, end, reverse)) {
		gap->from = version;
		gap_set_begin(gap, begin);
		gap_set_end(gap, end);
		return;
	}
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
	return s->sides[0].from || s->sides[1].from;
}

void
gaps_keep(struct gaps *g, struct str begin, struct str end, size_t entity_len, bool reverse,
	  uint64_t version)
{
	size_t i = gaps_slot(begin, entity_len);
	struct slot *s = &g->slots[i];

	if (begin.len > GAPS_KEY_BYTES || end.len > GAPS_KEY_BYTES || str_cmp(begin, end) >= 0)
		return;
	pthread_mutex_lock(&s->lock);
	if (atomic_load(&g->written[i]) <= version && s->floor <= version) {
		gap_keep(&s->sides[reverse], begin, end, reverse, version);
		atomic_store(&g->any[i], true);
		if (atomic_load(&g->written[i]) > version)
			s->sides[reverse].from = 0;
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
	if (!reverse) {
		gap_set_end(gap, key);
	} else if (key.len < GAPS_KEY_BYTES) {
		gap_set_begin(gap, key);
		gap->begin[gap->begin_len++] = '\0';
	} else {
		gap->from = 0;
	}
	if (str_cmp(gap_begin(gap), gap_end(gap)) >= 0)
		gap->from = 0;
}

void
gaps_write(struct gaps *g, size_t slot, struct str key, uint64_t version)
{
	struct slot *s = &g->slots[slot];

	/* Nobody else sets it, and a batch has many keys of one slot. */
	if (atomic_load_explicit(&g->written[slot], memory_order_relaxed) != version)
		atomic_store(&g->written[slot], version);
	if (!atomic_load(&g->any[slot]))
		return;
	pthread_mutex_lock(&s->lock);
	gap_write(&s->sides[0], key, false);
	gap_write(&s->sides[1], key, true);
	atomic_store(&g->any[slot], slot_has_gap(s));
	pthread_mutex_unlock(&s->lock);
}

void
gaps_forget(struct gaps *g, uint64_t version)
{
	for (size_t i = 0; i < GAPS_SLOTS; i++) {
		struct slot *s = &g->slots[i];

		pthread_mutex_lock(&s->lock);
		s->floor = version;
		s->sides[0].from = s->sides[1].from = 0;
		atomic_store(&g->any[i], false);
		pthread_mutex_unlock(&s->lock);
	}
}
