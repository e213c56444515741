#include "access/scram_table.h"

#include <pthread.h>

static struct {
	pthread_mutex_t lock;
	struct {
		uint8_t hash[VERIFIER_HASH_BYTES];
		size_t hash_len; /* 0: the entry is free */
		struct scram scram;
	} entries[SCRAM_TABLE_ENTRIES];
	size_t next;
} table = { .lock = PTHREAD_MUTEX_INITIALIZER };

void
scram_table_add(const struct verifier *of, const struct scram *scram)
{
	size_t at;

	pthread_mutex_lock(&table.lock);
	at = table.next++ % SCRAM_TABLE_ENTRIES;
	memcpy(table.entries[at].hash, of->hash, of->hash_len);
	table.entries[at].hash_len = of->hash_len;
	table.entries[at].scram = *scram;
	pthread_mutex_unlock(&table.lock);
}

bool
scram_table_find(const struct verifier *of, struct scram *ret)
{
	bool found = false;

	pthread_mutex_lock(&table.lock);
	for (size_t i = 0; i < SCRAM_TABLE_ENTRIES && !found; i++) {
		found = table.entries[i].hash_len == of->hash_len &&
			memcmp(table.entries[i].hash, of->hash, of->hash_len) == 0;
		if (found)
			*ret = table.entries[i].scram;
	}
	pthread_mutex_unlock(&table.lock);
	return found;
}
