/*
 * Components of JSON values: what an index's keys, and those of views, have in their place.
 *
 * Threading: that of the work.
 */
#ifndef FROND_INDEX_JSON_COMPONENT_H
#define FROND_INDEX_JSON_COMPONENT_H

#include "index/json/source.h"

/*
 * Appends the component of a value in this column, cut to its share: then *ret_cut is set, and
 * otherwise it is left alone. A value that was not found is null. Of the definition it looks at the
 * order and the columns.
 */
MUST_USE enum status index_json_component_put(struct buf *key, const struct index_def *def,
					      size_t column, const struct index_value *value,
					      struct index_work *w, bool *ret_cut);

/*
 * Appends the component of a value, uncut and in the form of doc_key_put(). The value is JSON text
 * with any white space and members in any order. `order` is DOC_KEY_COUCH or DOC_KEY_RAW. The text
 * is checked as it is read. STATUS_KEY_TOO_LARGE, and nothing is appended, if the component has
 * more than `most` bytes or a number has too many digits. It also fails as the JSON reader and
 * collate_sort_key() do.
 */
MUST_USE enum status index_json_component_of_text(struct buf *raw, enum doc_key_order order,
						  struct str text, size_t most,
						  struct index_work *w);

#endif
