/*
 * Definitions and entries as people read them, for `frond inspect`.
 *
 * Ownership: everything is appended to the buffer given. Threading: none.
 */
#ifndef FROND_INDEX_ENGINE_DRAW_H
#define FROND_INDEX_ENGINE_DRAW_H

#include "index/engine/entry.h"

/* "ready" */
const char *index_state_name(enum index_state state);

/*
 * A definition's record:
 *
 *     (1, ready, "year" of "_design/by-year", on ["year", desc "cast" "name"], sparse, covering)
 *
 * with the columns that have arrays or cut values, the filter, the collation, the Sequence of its
 * creation and its failure behind it, as far as there are any. False for what is no such record, of
 * which nothing is drawn.
 */
bool index_draw_def(struct str value, struct buf *ret);

/*
 * An entry's value: (1, 1984, "Dune"), the JSON texts of the columns that it has. `cut` stands in
 * front of them if the key has less than the values, and the id behind them where the key has only
 * a digest of it. False for what is no such value.
 */
bool index_draw_entry(struct str value, struct buf *ret);

/*
 * Draws the part of an entry's key behind (P, ENTRIES), with the values of its columns in place of
 * the components made of them: (1, "partition", 1984, "Dune", "dune"). The columns' values are
 * stored in the entry's value. False if this entry does not have them.
 */
bool index_draw_entry_key(struct str tail, struct str value, struct buf *ret);

#endif
