/* Reading many keys at once. Everything that kv.h says of kv_get() holds for each of them. */
#ifndef FROND_KV_MANY_H
#define FROND_KV_MANY_H

#include "kv/kv.h"

enum {
	KV_MANY = 16, /* keys of one call */
};

/*
 * Asks for `count` keys, at most KV_MANY, together: as kv_get() for each of them, whose futures are
 * put into `ret` in the order of the keys. Where an engine looks keys up itself, many of them that
 * are asked for together take it less than one after the other.
 */
void kv_get_many(struct kv_tx *tx, const struct str *keys, size_t count, enum kv_read mode,
		 struct kv_future **ret);

#endif
