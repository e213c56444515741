/*
 * `index` of collMod: an index is hidden, or shown again, or documents get another time to live.
 *
 * Plain functions on the caller's memory.
 */
#ifndef FROND_DOOR_MONGO_INDEX_INDEX_MOD_H
#define FROND_DOOR_MONGO_INDEX_INDEX_MOD_H

#include "door/mongo/index/index.h"

struct data;

/* What is asked for, and what was done by the last transaction. */
struct index_mod {
	bool asked;
	struct str name; /* ptr NULL: by `key` */
	struct str key;
	bool has_hidden, hidden;
	bool has_seconds;
	int64_t seconds;

	bool changed_hidden;
	bool had_seconds;
	int64_t old_seconds;
};

/* Reads the member, of which `ret` borrows. Fails with MongoDB's codes. */
MUST_USE enum status index_mod_read(struct call *c, const struct bson_value *v,
				    struct index_mod *ret);

/* Changes the index of the collection that `d` has opened in this transaction. */
MUST_USE enum status index_mod_run(struct data *d, struct kv_tx *tx, struct index_mod *mod);

/* Appends what was, and what is now. */
void index_mod_put(const struct index_mod *mod, struct bson_builder *b);

#endif
