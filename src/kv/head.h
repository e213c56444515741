/* Reading the beginnings of values. */
#ifndef FROND_KV_HEAD_H
#define FROND_KV_HEAD_H

#include "kv/kv.h"

enum {
	KV_HEAD_BYTES = 64,
};

/*
 * As kv_get(), for a caller that looks at the first KV_HEAD_BYTES bytes of the value only: the
 * answer has these, and may or may not have what is behind them. An engine that keeps what was
 * read lately then keeps the beginning, and so remembers more keys whose values are long.
 */
struct kv_future *kv_get_head(struct kv_tx *tx, struct str key, enum kv_read mode);

#endif
