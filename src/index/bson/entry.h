/*
 * The entries of BSON documents: functions of the form, and what readers of such an index know of
 * them. Their values are documents of the columns' values.
 *
 * Ownership: what is read is borrowed from the entry. Threading: that of the work.
 */
#ifndef FROND_INDEX_BSON_ENTRY_H
#define FROND_INDEX_BSON_ENTRY_H

#include "index/engine/scan.h"

/* ---- For the form ---- */

/* A value is a struct bson_value. */
MUST_USE enum status index_bson_component_put(struct buf *key, const struct index_def *def,
					      size_t column, const void *value,
					      struct index_work *w, bool *ret_cut);
MUST_USE enum status index_bson_entries(struct index_making *m);
MUST_USE enum status index_bson_parse_values(const struct index_def *def, struct tuple_reader *r,
					     uint64_t flags, struct arena *arena,
					     struct index_entry *ret);

/* ---- For readers ---- */

/* The columns' values in an entry, by its value. False if it has none. */
bool index_bson_values(struct str value, struct str *ret);

#endif
