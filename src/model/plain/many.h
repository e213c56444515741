/* Reading many documents at once. */
#ifndef FROND_MODEL_PLAIN_MANY_H
#define FROND_MODEL_PLAIN_MANY_H

#include "kv/many.h"
#include "model/plain/plain.h"

/* plain_ask_key() of `count` documents, at most KV_MANY, together. */
MUST_USE enum status plain_ask_keys(struct plain *p, const struct str *id_keys, size_t count,
				    enum kv_read mode, struct arena *arena, struct plain_got *ret);

#endif
