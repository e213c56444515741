/*
 * Transactions that have ended, and that emb_begin() takes instead of making one (tx.c). Any thread
 * may begin and free transactions.
 */
#ifndef FROND_KV_EMBEDDED_SPARES_H
#define FROND_KV_EMBEDDED_SPARES_H

#include <pthread.h>
#include <stddef.h>

enum {
	EMB_SPARE_TXS = 32,              /* each with 16 KiB of its arena */
	EMB_SPARE_SCRATCH_BYTES = 16384, /* of a buffer that such a transaction keeps */
};

struct emb_store;
struct emb_tx;

struct emb_spares {
	pthread_mutex_t lock;
	struct emb_tx *first; /* by `open_next` */
	size_t count;
};

void emb_spares_init(struct emb_store *store);
void emb_spares_fini(struct emb_store *store);

#endif
