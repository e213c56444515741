/* What the kind's table names, and other files define. */
#ifndef FROND_MODEL_KIND_INT_H
#define FROND_MODEL_KIND_INT_H

#include "model/revisioned/revisioned_int.h"

/* Drawing (inspect.c). */
const char *rev_summary(const struct catalog_db *db);
const char *rev_space_name(uint64_t space);
bool rev_draw_key(uint64_t space, struct str tail, struct str value, struct buf *ret);
bool rev_draw_value(uint64_t space, struct str key, struct str value, struct buf *ret);
MUST_USE enum status rev_inspect(struct kv_tx *tx, const struct catalog_db *db, struct str id,
				 struct arena *arena, catalog_draw_prefix *draw, void *arg);

/* A document a line (dump.c). */
MUST_USE enum status rev_dump(const struct catalog_dump *dump);

#endif
