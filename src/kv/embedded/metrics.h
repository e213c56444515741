/* What a store tells about itself to metrics (base/metric.h), as long as it is open. */
#ifndef FROND_KV_EMBEDDED_METRICS_H
#define FROND_KV_EMBEDDED_METRICS_H

#include "kv/embedded/embedded_int.h"

/*
 * The store's values can be asked for, on any thread, from the first call to the second, which
 * waits for a thread that is asking. By the thread that opens and closes the store.
 */
void emb_metrics_begin(struct emb_store *store);
void emb_metrics_end(struct emb_store *store);

#endif
