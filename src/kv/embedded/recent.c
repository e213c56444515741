#include "kv/embedded/recent.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

enum {
	UNIT = 8,        /* entries begin at multiples of it */
	WAYS = 8,        /* entries of a bucket */
	SEEN = 4,        /* keys that a bucket remembers to have been asked for */
	INDEX_SHARE = 4, /* the index takes one such part of all memory */
	LINE_BYTES = 64,
	/* A key that was found absent is often written next: room for a small value. */
	ABSENT_ROOM = 32,
};

/* In the ring: this, then the key, then room for the value. */
struct entry {
	uint64_t version; /* from which on it holds */
	uint32_t bucket;
	uint32_t size; /* with all that belongs to it, a multiple of UNIT */
	uint16_t key_len;
	uint16_t value_len;
	bool present;
	bool dead; /* the index does not have it any more */
	bool hit;  /* read since it was put here */
	bool part; /* it has the first KV_HEAD_BYTES bytes of a longer value */
};

/*
 * A cache line of the index. An entry's place is its offset in the ring, in units, counted from 1;
 * 0 is none. A tag is a part of the hash.
 */
struct bucket {
	_Alignas(LINE_BYTES)
		uint64_t written; /* the version at which a key of it was last written */
	uint32_t places[WAYS];
	uint16_t tags[WAYS];
	uint16_t seen[SEEN]; /* tags of keys that were asked for and not kept */
};

_Static_assert(sizeof(struct bucket) == LINE_BYTES, "a bucket is a cache line");
_Static_assert(sizeof(struct entry) % UNIT == 0, "the key lies right behind it");
_Static_assert(RECENT_PAIR_BYTES <= UINT16_MAX, "lengths have 16 bits");

/*
 * The ring's entries lie in [tail, head), or if it has wrapped in [tail, end) and [0, head). The
 * lock guards all of it.
 */
struct shard {
	_Alignas(LINE_BYTES) pthread_mutex_t lock;
	uint64_t floor; /* nothing from before this version counts */
	char *ring;
	struct bucket *buckets;
	size_t head; /* where the next entry goes */
	size_t tail; /* the oldest entry */
	size_t end;  /* of what was in the ring when it wrapped */
	bool wrapped;
	bool full; /* it has wrapped once: what is new pushes out what is old */
	size_t used;
	uint64_t hits;
	uint64_t misses;
};

struct recent {
	size_t shard_count;  /* a power of two */
	size_t bucket_count; /* of a shard, a power of two */
	size_t ring_bytes;   /* of a shard */
	size_t most_bytes;   /* of a pair that is kept */
	char *rings;
	struct shard *shards; /* behind them, the buckets of all */
};

/* A key's place in the index. */
struct spot {
	struct shard *shard;
	struct bucket *bucket;
	uint32_t at; /* of the bucket, in its shard */
	uint16_t tag;
};

/* ---- Making ---- */

static size_t
rings_bytes(const struct recent *r)
{
	return r->ring_bytes * r->shard_count;
}

static size_t
shards_bytes(const struct recent *r)
{
	return r->shard_count * (sizeof(struct shard) + r->bucket_count * sizeof(struct bucket));
}

static void
recent_shape(struct recent *r, size_t bytes)
{
	size_t index = bytes / INDEX_SHARE;

	r->shard_count = RECENT_SHARDS;
	while (r->shard_count > 1 && bytes / r->shard_count < (size_t)RECENT_RING_BYTES * 2)
		r->shard_count /= 2;
	r->ring_bytes = (bytes - index) / r->shard_count / LINE_BYTES * LINE_BYTES;
	if (r->ring_bytes < RECENT_RING_BYTES)
		r->ring_bytes = RECENT_RING_BYTES;
	assert(r->ring_bytes / UNIT < UINT32_MAX);
	r->most_bytes = r->ring_bytes / RECENT_RING_PAIRS - sizeof(struct entry) - ABSENT_ROOM;
	if (r->most_bytes > RECENT_PAIR_BYTES)
		r->most_bytes = RECENT_PAIR_BYTES;
	r->bucket_count = 1;
	while (r->bucket_count * 2 * sizeof(struct bucket) * r->shard_count <= index)
		r->bucket_count *= 2;
}

struct recent *
recent_new(size_t bytes)
{
	struct bucket *buckets;
	struct recent *r;

	assert(bytes);
	r = mem_zalloc(sizeof(*r));
	if (!r)
		return NULL;
	recent_shape(r, bytes);
	r->rings = mem_map(rings_bytes(r));
	r->shards = mem_map(shards_bytes(r));
	if (!r->rings || !r->shards) {
		recent_free(r);
		return NULL;
	}
	buckets = (struct bucket *)(void *)(r->shards + r->shard_count);
	for (size_t i = 0; i < r->shard_count; i++) {
		struct shard *s = &r->shards[i];

		pthread_mutex_init(&s->lock, NULL);
		s->ring = r->rings + i * r->ring_bytes;
		s->buckets = buckets + i * r->bucket_count;
	}
	return r;
}

void
recent_free(struct recent *r)
{
	if (!r)
		return;
	for (size_t i = 0; r->shards && r->rings && i < r->shard_count; i++)
		pthread_mutex_destroy(&r->shards[i].lock);
	mem_unmap(r->rings, rings_bytes(r));
	mem_unmap(r->shards, shards_bytes(r));
	mem_free(r);
}

/* ---- The index ---- */

static struct spot
spot_of(struct recent *r, struct str key)
{
	/* A client that chooses keys of one bucket gets cache misses, and nothing worse. */
	uint64_t h = hash_quick(key);
	struct spot spot = {
		.shard = &r->shards[h >> 58 & (r->shard_count - 1)],
		.at = (uint32_t)(h >> 26 & (r->bucket_count - 1)),
		.tag = (uint16_t)(h >> 10),
	};

	_Static_assert(RECENT_SHARDS <= 64, "of 6 bits of the hash");
	spot.bucket = &spot.shard->buckets[spot.at];
	return spot;
}

static struct entry *
entry_at(const struct shard *s, size_t offset)
{
	assert(offset % UNIT == 0);
	return (struct entry *)(void *)(s->ring + offset);
}

static struct entry *
place_entry(const struct shard *s, uint32_t place)
{
	return entry_at(s, (size_t)(place - 1) * UNIT);
}

static uint32_t
place_of(const struct shard *s, const struct entry *e)
{
	return (uint32_t)((size_t)((const char *)e - s->ring) / UNIT + 1);
}

static char *
entry_key(struct entry *e)
{
	return (char *)(e + 1);
}

static char *
entry_value(struct entry *e)
{
	return entry_key(e) + e->key_len;
}

static size_t
entry_room(const struct entry *e)
{
	return e->size - sizeof(*e) - e->key_len;
}

/* The entry of the key, whether it counts or not; NULL: there is none. */
static struct entry *
spot_entry(const struct spot *spot, struct str key)
{
	for (int i = 0; i < WAYS; i++) {
		struct entry *e;

		if (spot->bucket->tags[i] != spot->tag || !spot->bucket->places[i])
			continue;
		e = place_entry(spot->shard, spot->bucket->places[i]);
		if (e->key_len == key.len && memcmp(entry_key(e), key.ptr, key.len) == 0)
			return e;
	}
	return NULL;
}

/* Has the processor fetch what is most likely the entry of the key, without waiting for it. */
static void
spot_fetch(const struct spot *spot)
{
	for (int i = 0; i < WAYS; i++) {
		if (spot->bucket->tags[i] != spot->tag || !spot->bucket->places[i])
			continue;
		const char *e = (const char *)place_entry(spot->shard, spot->bucket->places[i]);

		__builtin_prefetch(e, 1);
		__builtin_prefetch(e + LINE_BYTES);
	}
}

/* Puts another place, or none, where the index has that of the entry. */
static void
index_replace(struct shard *s, struct entry *e, uint32_t place)
{
	struct bucket *b = &s->buckets[e->bucket];
	uint32_t old = place_of(s, e);
	int i = 0;

	while (i < WAYS && b->places[i] != old)
		i++;
	assert(i < WAYS && !e->dead);
	b->places[i] = place;
	e->dead = !place;
}

/* How far the entry at the place is behind the head. The oldest entry is the farthest. */
static size_t
place_age(const struct recent *r, const struct shard *s, uint32_t place)
{
	size_t offset = (size_t)(place - 1) * UNIT;

	return offset < s->head ? s->head - offset : s->head + r->ring_bytes - offset;
}

/*
 * A free way of the bucket. If there is none, the oldest of its entries goes; but those that have
 * been read since they came stay longer than others.
 */
static int
index_make_way(struct recent *r, const struct spot *spot)
{
	const struct shard *s = spot->shard;
	struct bucket *b = spot->bucket;
	size_t most = 0;
	int victim = 0;

	for (int i = 0; i < WAYS; i++) {
		size_t age;

		if (!b->places[i])
			return i;
		age = place_age(r, s, b->places[i]);
		if (!place_entry(s, b->places[i])->hit)
			age += r->ring_bytes;
		if (age > most) {
			most = age;
			victim = i;
		}
	}
	index_replace(spot->shard, place_entry(s, b->places[victim]), 0);
	return victim;
}

/* ---- The ring ---- */

/*
 * The oldest entry leaves its place. It goes in front if it has been read since it came and there
 * are chances left: the place that it leaves is right behind the free one, so it fits.
 */
static void
ring_pass_oldest(struct recent *r, struct shard *s, int *chances)
{
	struct entry *e = entry_at(s, s->tail), *moved;
	size_t size = e->size;

	assert(s->wrapped && s->head <= s->tail && s->tail < s->end);
	s->tail += size;
	if (s->tail == s->end) {
		s->tail = 0;
		s->end = r->ring_bytes;
		s->wrapped = false;
	}
	if (e->dead)
		return;
	if (!e->hit || e->version < s->floor || !*chances) {
		index_replace(s, e, 0);
		return;
	}
	--*chances;
	e->hit = false;
	moved = entry_at(s, s->head);
	index_replace(s, e, place_of(s, moved));
	memmove(moved, e, size);
	s->head += size;
}

/* Where the ring has room for an entry of so many bytes, after the oldest ones have left. */
static struct entry *
ring_take(struct recent *r, struct shard *s, size_t size)
{
	int chances = RECENT_CHANCES;
	struct entry *e;

	assert(size % UNIT == 0 && size <= r->ring_bytes / RECENT_RING_PAIRS);
	for (;;) {
		if (s->wrapped && s->tail - s->head >= size)
			break;
		if (s->wrapped) {
			ring_pass_oldest(r, s, &chances);
			continue;
		}
		if (r->ring_bytes - s->head >= size)
			break;
		assert(s->tail == 0 && s->head > 0);
		s->end = s->head;
		s->head = 0;
		s->wrapped = s->full = true;
	}
	e = entry_at(s, s->head);
	s->head += size;
	if (s->used < s->head)
		s->used = s->head;
	return e;
}

/* What an entry is to have: a cell, or the beginning of one. */
struct content {
	struct cell cell;
	bool part;
};

static struct content
content_of(struct cell cell, bool head)
{
	struct content c = { cell, head && cell.value.len > KV_HEAD_BYTES };

	if (c.part)
		c.cell.value.len = KV_HEAD_BYTES;
	return c;
}

/* Makes an entry of the key, which has none. */
static void
spot_add(struct recent *r, const struct spot *spot, struct str key, struct content c,
	 uint64_t version)
{
	const struct cell cell = c.cell;
	size_t room = cell.present ? cell.value.len : ABSENT_ROOM;
	size_t size = (sizeof(struct entry) + key.len + room + UNIT - 1) / UNIT * UNIT;
	struct shard *s = spot->shard;
	struct entry *e = ring_take(r, s, size);
	/* After the ring has let go of entries, which may leave a way in this bucket. */
	int way = index_make_way(r, spot);

	*e = (struct entry){
		.version = version,
		.bucket = spot->at,
		.size = (uint32_t)size,
		.key_len = (uint16_t)key.len,
		.value_len = (uint16_t)cell.value.len,
		.present = cell.present,
		.part = c.part,
	};
	memcpy(entry_key(e), key.ptr, key.len);
	if (cell.value.len)
		memcpy(entry_value(e), cell.value.ptr, cell.value.len);
	spot->bucket->places[way] = place_of(s, e);
	spot->bucket->tags[way] = spot->tag;
}

static bool
pair_fits(const struct recent *r, struct str key, struct cell cell)
{
	return key.len && key.len + cell.value.len <= r->most_bytes;
}

/* Gives the entry of the key another value, in its place or another one, or drops it. */
static void
spot_change(struct recent *r, const struct spot *spot, struct entry *e, struct str key,
	    struct content c, uint64_t version)
{
	const struct cell cell = c.cell;

	if (cell.value.len <= entry_room(e)) {
		e->version = version;
		e->present = cell.present;
		e->part = c.part;
		e->value_len = (uint16_t)cell.value.len;
		if (cell.value.len)
			memcpy(entry_value(e), cell.value.ptr, cell.value.len);
		return;
	}
	index_replace(spot->shard, e, 0);
	if (pair_fits(r, key, cell))
		spot_add(r, spot, key, c, version);
}

/* ---- Reading ---- */

void
recent_expect(struct recent *r, const struct str *keys, size_t count)
{
	struct spot spots[RECENT_EXPECTED];

	assert(count <= RECENT_EXPECTED);
	if (!r || count < 2)
		return;
	for (size_t i = 0; i < count; i++) {
		spots[i] = spot_of(r, keys[i]);
		__builtin_prefetch(spots[i].bucket);
	}
	for (size_t i = 0; i < count; i++) {
		pthread_mutex_lock(&spots[i].shard->lock);
		spot_fetch(&spots[i]);
		pthread_mutex_unlock(&spots[i].shard->lock);
	}
}

bool
recent_find(struct recent *r, struct str key, uint64_t version, bool head,
	    struct recent_answer *ret)
{
	struct spot spot;
	struct entry *e;
	bool found;

	if (!r)
		return false;
	spot = spot_of(r, key);
	pthread_mutex_lock(&spot.shard->lock);
	e = spot_entry(&spot, key);
	found = e && e->version >= spot.shard->floor && e->version <= version && (head || !e->part);
	if (found) {
		e->hit = true;
		ret->present = e->present;
		ret->len = head && e->value_len > KV_HEAD_BYTES ? KV_HEAD_BYTES : e->value_len;
		memcpy(ret->value, entry_value(e), ret->len);
		spot.shard->hits++;
	} else {
		spot.shard->misses++;
	}
	pthread_mutex_unlock(&spot.shard->lock);
	return found;
}

/*
 * False if the ring has been full and the key has not been asked for lately: then it is asked for
 * now, and kept the next time.
 */
static bool
spot_is_wanted(const struct spot *spot)
{
	uint16_t *seen = spot->bucket->seen;

	if (!spot->shard->full)
		return true;
	for (int i = 0; i < SEEN; i++)
		if (seen[i] == spot->tag)
			return true;
	memmove(seen + 1, seen, (SEEN - 1) * sizeof(*seen));
	seen[0] = spot->tag;
	return false;
}

/* A reader at `version` has found the cell, and `from` is the version from which on it holds. */
static void
spot_keep(struct recent *r, const struct spot *spot, struct str key, struct content c,
	  uint64_t from)
{
	struct entry *e = spot_entry(spot, key);

	assert(!e || e->version <= from);
	if (!e && spot_is_wanted(spot))
		spot_add(r, spot, key, c, from);
	else if (e && (e->version < spot->shard->floor || (e->part && !c.part)))
		spot_change(r, spot, e, key, c, from);
}

void
recent_keep(struct recent *r, struct str key, struct cell cell, uint64_t version, bool head)
{
	struct content c = content_of(cell, head);
	struct spot spot;
	uint64_t from;

	if (!r || !pair_fits(r, key, c.cell))
		return;
	spot = spot_of(r, key);
	pthread_mutex_lock(&spot.shard->lock);
	from = spot.bucket->written;
	if (from < spot.shard->floor)
		from = spot.shard->floor;
	if (from <= version)
		spot_keep(r, &spot, key, c, from);
	pthread_mutex_unlock(&spot.shard->lock);
}

/* ---- Writing ---- */

/* With the shard's lock held. */
static void
spot_write(struct recent *r, const struct spot *spot, struct str key, struct cell cell,
	   uint64_t version)
{
	struct entry *e;

	assert(spot->bucket->written <= version && spot->shard->floor <= version);
	spot->bucket->written = version;
	e = spot_entry(spot, key);
	if (e)
		spot_change(r, spot, e, key, content_of(cell, e->part), version);
}

void
recent_write(struct recent *r, const struct recent_pair *pairs, size_t count, uint64_t version)
{
	struct spot spots[RECENT_WRITES];

	assert(count <= RECENT_WRITES);
	if (!r)
		return;
	/* The buckets lie anywhere in megabytes: they are fetched together, and then used. */
	for (size_t i = 0; i < count; i++) {
		spots[i] = spot_of(r, pairs[i].key);
		__builtin_prefetch(spots[i].bucket, 1);
	}
	for (size_t i = 0; i < count; i++) {
		pthread_mutex_lock(&spots[i].shard->lock);
		spot_write(r, &spots[i], pairs[i].key, pairs[i].cell, version);
		pthread_mutex_unlock(&spots[i].shard->lock);
	}
}

void
recent_forget(struct recent *r, uint64_t version)
{
	for (size_t i = 0; r && i < r->shard_count; i++) {
		struct shard *s = &r->shards[i];

		pthread_mutex_lock(&s->lock);
		assert(s->floor <= version);
		s->floor = version;
		pthread_mutex_unlock(&s->lock);
	}
}

/* ---- Telling ---- */

struct recent_stats
recent_stats(struct recent *r)
{
	struct recent_stats stats = { 0 };

	if (!r)
		return stats;
	stats.bytes = r->shard_count * r->bucket_count * sizeof(struct bucket);
	stats.most_bytes = stats.bytes + rings_bytes(r);
	for (size_t i = 0; i < r->shard_count; i++) {
		struct shard *s = &r->shards[i];

		pthread_mutex_lock(&s->lock);
		stats.hits += s->hits;
		stats.misses += s->misses;
		stats.bytes += s->used;
		pthread_mutex_unlock(&s->lock);
	}
	return stats;
}
