/*
 * JSON documents as the engine indexes them: filters are selectors, texts are ordered by ICU's root
 * collation or by their bytes, and a covering entry has the columns' JSON texts. Values of
 * intervals are struct leaf_value.
 */
#ifndef FROND_INDEX_JSON_FORM_H
#define FROND_INDEX_JSON_FORM_H

#include "index/engine/form.h"

extern const struct index_form index_json_form;

/* ---- Entries as people read them, for `frond inspect` (draw.c) ---- */

/*
 * An entry's value: (1, 1984, "Dune"), the JSON texts of the columns that it has. `cut` stands in
 * front of them if the key has less than the values, and the id behind them where the key has only
 * a digest of it. False for what is no such value.
 */
bool index_json_draw_entry(struct str value, struct buf *ret);

/*
 * Draws the part of an entry's key behind (P, ENTRIES), with the values of its columns in place of
 * the components made of them: (1, "partition", 1984, "Dune", "dune"). The columns' values are
 * stored in the entry's value. False if this entry does not have them.
 */
bool index_json_draw_entry_key(struct str tail, struct str value, struct buf *ret);

#endif
