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

/*
 * True if the engine looks keys up itself, in this process: then some that are named take it less
 * than a range that they lie in. Otherwise each is asked of a server, as a range is.
 */
bool kv_looks_up(const struct kv_tx *tx);

/*
 * True where several keys at once may be found sooner than a range with all of them is read: the
 * engine looks keys up itself, and the transaction may write. A range would have to step over older
 * versions of what is changed often, and first have all that was written sorted into it. Elsewhere
 * each key is a request of its own, or a range of few pairs takes less.
 */
bool kv_finds_together(const struct kv_tx *tx);

#endif
