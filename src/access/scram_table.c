#include "access/scram_table.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

struct scram_entry {
	uint8_t hash[VERIFIER_HASH_BYTES];
	size_t hash_len; /* 0: the entry is free */
	struct scram scram;
};

struct scram_table {
	pthread_mutex_t lock;
	struct scram_entry *entries;
	size_t count;
	size_t next;
};

static struct scram_entry people_entries[SCRAM_TABLE_ENTRIES];
static struct scram_entry admin_entries[SCRAM_ADMIN_ENTRIES];

static struct scram_table people = { .lock = PTHREAD_MUTEX_INITIALIZER,
				     .entries = people_entries,
				     .count = SCRAM_TABLE_ENTRIES };
static struct scram_table admins = { .lock = PTHREAD_MUTEX_INITIALIZER,
				     .entries = admin_entries,
				     .count = SCRAM_ADMIN_ENTRIES };
static atomic_bool admins_wanted;

static void
table_add(struct scram_table *t, const struct verifier *of, const struct scram *scram)
{
	struct scram_entry *e;

	pthread_mutex_lock(&t->lock);
	e = &t->entries[t->next++ % t->count];
	assert(of->hash_len <= sizeof(e->hash));
	memcpy(e->hash, of->hash, of->hash_len);
	e->hash_len = of->hash_len;
	e->scram = *scram;
	pthread_mutex_unlock(&t->lock);
}

static bool
table_find(struct scram_table *t, const struct verifier *of, struct scram *ret)
{
	bool found = false;

	pthread_mutex_lock(&t->lock);
	for (size_t i = 0; i < t->count && !found; i++) {
		found = t->entries[i].hash_len == of->hash_len &&
			memcmp(t->entries[i].hash, of->hash, of->hash_len) == 0;
		if (found)
			*ret = t->entries[i].scram;
	}
	pthread_mutex_unlock(&t->lock);
	return found;
}

void
scram_table_add(const struct verifier *of, const struct scram *scram)
{
	table_add(&people, of, scram);
}

bool
scram_table_find(const struct verifier *of, struct scram *ret)
{
	return table_find(&people, of, ret);
}

void
scram_admins_want(void)
{
	atomic_store(&admins_wanted, true);
}

bool
scram_admins_are_wanted(void)
{
	return atomic_load(&admins_wanted);
}

void
scram_admins_add(const struct verifier *of, const struct scram *scram)
{
	table_add(&admins, of, scram);
}

bool
scram_admins_find(const struct verifier *of, struct scram *ret)
{
	return table_find(&admins, of, ret);
}
