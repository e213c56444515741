/*
 * Files of the store with bytes that do not match their checksums. See kv/damage.h.
 *
 * Threading: any thread.
 */
#ifndef FROND_KV_EMBEDDED_DAMAGE_H
#define FROND_KV_EMBEDDED_DAMAGE_H

#include <pthread.h>

#include "kv/damage.h"

struct emb_store;

/* What reads have met, each file once. */
struct emb_damages {
	pthread_mutex_t lock;  /* of the rest; nothing is waited for while it is held */
	struct kv_damage *all; /* room for KV_DAMAGES_KEPT, made at the first one */
	size_t count;
};

/* For a store that is being opened and closed. */
void emb_damages_init(struct emb_damages *d);
void emb_damages_release(struct emb_damages *d);

/* As emb_error(), of a read at `key`: remembers the file if it is damage. */
MUST_USE enum status emb_read_error(struct emb_store *store, struct str key, char *rocksdb_error,
				    const char *what, struct err *err);

/* The functions of the engine. */
size_t emb_damages_list(struct kv_store *base, size_t from, struct kv_damage *ret, size_t most);
MUST_USE enum status emb_files_check(struct kv_store *base, kv_damaged_found *found, void *arg,
				     struct err *err);

#endif
