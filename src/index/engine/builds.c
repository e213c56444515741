/* What the builds of a process share: which stretches its threads are at. */
#include <pthread.h>

#include "index/engine/build.h"

enum {
	BUILDS_CLAIMS = 256, /* that are noted at a time; more than the threads that build */
};

struct claim {
	uint64_t db_number;
	uint64_t number; /* of the index */
	uint64_t stretch;
};

/* Owns the claims. It is held while they are gone through, and never over anything else. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct claim claims[BUILDS_CLAIMS];
static size_t count;

/* With the lock held: the place of the claim, or `count`. */
static size_t
claim_find(const struct index_build_key *key, uint64_t stretch)
{
	size_t i = 0;

	while (i < count && (claims[i].db_number != key->db_number ||
			     claims[i].number != key->number || claims[i].stretch != stretch))
		i++;
	return i;
}

bool
index_builds_claim(const struct index_build_key *key, uint64_t stretch)
{
	bool is_free;

	pthread_mutex_lock(&lock);
	is_free = claim_find(key, stretch) == count;
	/* Without room for it nobody is told, and two threads may do the same: no harm is done. */
	if (is_free && count < BUILDS_CLAIMS)
		claims[count++] = (struct claim){ .db_number = key->db_number,
						  .number = key->number,
						  .stretch = stretch };
	pthread_mutex_unlock(&lock);
	return is_free;
}

void
index_builds_leave(const struct index_build_key *key, uint64_t stretch)
{
	size_t at;

	pthread_mutex_lock(&lock);
	at = claim_find(key, stretch);
	if (at < count)
		claims[at] = claims[--count];
	pthread_mutex_unlock(&lock);
}
