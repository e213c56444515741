#include "access/lockout_int.h"

#include <assert.h>
#include <pthread.h>

#include "base/clock.h"
#include "base/mem.h"

enum {
	LOCKOUT_WAYS = 8, /* entries of a set; the key decides the set */
};

struct lockout_entry {
	struct lockout_key key;
	uint64_t first_ns; /* the first failure, on the monotonic clock */
	uint64_t failures; /* 0: the entry is free */
};

static struct {
	pthread_mutex_t lock; /* guards what follows */
	struct lockout_entry *entries;
	size_t sets;
} table = { .lock = PTHREAD_MUTEX_INITIALIZER };

/*
 * Finds the set of a key, whose bytes are a digest and so evenly spread. NULL: no failure was
 * counted yet, so there is no table.
 */
static struct lockout_entry *
lockout_set(const struct lockout_key *key)
{
	uint64_t n;

	memcpy(&n, key->bytes, sizeof(n));
	return table.entries ? table.entries + n % table.sets * LOCKOUT_WAYS : NULL;
}

static bool
entry_is_over(const struct lockout_entry *e, const struct lockout_rules *rules, uint64_t now)
{
	return !e->failures || now - e->first_ns >= rules->lifetime_ms * CLOCK_NS_PER_MS;
}

/* Finds the key's entry unless it has expired; called with the lock held. May be NULL. */
static struct lockout_entry *
lockout_find(const struct lockout_rules *rules, const struct lockout_key *key, uint64_t now)
{
	struct lockout_entry *set = lockout_set(key);

	for (size_t i = 0; set && i < LOCKOUT_WAYS; i++)
		if (!entry_is_over(&set[i], rules, now) &&
		    memcmp(&set[i].key, key, sizeof(*key)) == 0)
			return &set[i];
	return NULL;
}

bool
lockout_reached(const struct lockout_rules *rules, const struct lockout_key *key)
{
	return lockout_reached_at(rules, key, clock_mono_ns());
}

bool
lockout_reached_at(const struct lockout_rules *rules, const struct lockout_key *key,
		   uint64_t now_ns)
{
	const struct lockout_entry *e;
	bool reached;

	if (rules->mode == LOCKOUT_OFF)
		return false;
	pthread_mutex_lock(&table.lock);
	e = lockout_find(rules, key, now_ns);
	reached = e && e->failures >= rules->threshold;
	pthread_mutex_unlock(&table.lock);
	return reached;
}

/* With the lock held. */
static void
lockout_make_table(const struct lockout_rules *rules)
{
	size_t sets = (rules->objects + LOCKOUT_WAYS - 1) / LOCKOUT_WAYS;

	if (table.entries)
		return;
	assert(sets > 0);
	table.entries = mem_zalloc(sets * LOCKOUT_WAYS * sizeof(*table.entries));
	table.sets = sets;
}

void
lockout_count(const struct lockout_rules *rules, const struct lockout_key *key)
{
	lockout_count_at(rules, key, clock_mono_ns());
}

void
lockout_count_at(const struct lockout_rules *rules, const struct lockout_key *key, uint64_t now_ns)
{
	struct lockout_entry *set;
	struct lockout_entry *e;

	if (rules->mode == LOCKOUT_OFF)
		return;
	pthread_mutex_lock(&table.lock);
	lockout_make_table(rules);
	set = lockout_set(key);
	e = lockout_find(rules, key, now_ns);
	if (set && !e) {
		e = set;
		for (size_t i = 0; i < LOCKOUT_WAYS; i++) {
			if (entry_is_over(&set[i], rules, now_ns)) {
				e = &set[i];
				break;
			}
			if (set[i].first_ns < e->first_ns)
				e = &set[i];
		}
		assert(e >= set && e < set + LOCKOUT_WAYS);
		*e = (struct lockout_entry){ .key = *key, .first_ns = now_ns };
	}
	if (e)
		e->failures++;
	pthread_mutex_unlock(&table.lock);
}
