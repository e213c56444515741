/*
 * Definitions as people read them, for `frond inspect`.
 *
 * Ownership: everything is appended to the buffer given. Threading: none.
 */
#ifndef FROND_INDEX_ENGINE_DRAW_H
#define FROND_INDEX_ENGINE_DRAW_H

#include "index/engine/def.h"

/* "ready" */
const char *index_state_name(enum index_state state);

/*
 * A definition's record:
 *
 *     (1, ready, "year" of "_design/by-year", on ["year", desc "cast" "name"], sparse, covering)
 *
 * with the columns that have arrays or cut values, the filter, the collation, the Sequence of its
 * creation and its failure behind it, as far as there are any. After a failure nothing is drawn:
 * STATUS_CORRUPT is that of bytes that are no such record, or whose filter is damaged.
 */
MUST_USE enum status index_draw_def(const struct index_form *form, struct str value,
				    struct buf *ret);

#endif
