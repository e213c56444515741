/*
 * The form in which the index engine sees rows of tables: a row is a list of typed values, each
 * with the id of its column. A column of an index is made from one column of the table, or from a
 * part of a collection; its path says which, and index_typed_path() writes the path:
 *
 *     a column      its value
 *     keys          the keys of a map, the members of a set
 *     values        the values of a map or a list
 *     entries       the pairs of a map
 *     json          what lies at a path in a document of JSON, as it is written there
 *     json text     the same, of a string what is between its quotes; nothing where null is
 *     order         what stands for all values that are equal to it (order.h)
 *
 * A row has an entry for each different value of the first column, and none where that is null.
 * Other columns may be null. Components are those of doc/key.h in the order DOC_KEY_TYPED: values
 * of one column are of one type. Values of intervals are struct index_typed_value.
 *
 * An index may carry further columns, each with a single value. An entry then has the values of
 * these and of the index's own columns, so that a reader need not look at the row:
 *
 *     … flags, (column, scalar)…        by the ids of columns; one that is null is left out
 *
 * An entry carries values only if they last as long as the entry itself: none of its cells expires
 * by itself, and at least one of them is not of the key. A row exists because it has such a cell;
 * of the key alone it cannot be told whether the row still exists. An entry carries nothing if its
 * values have more than INDEX_PAYLOAD_BYTES.
 *
 * Everything is borrowed. Threading: none.
 */
#ifndef FROND_INDEX_TYPED_FORM_H
#define FROND_INDEX_TYPED_FORM_H

#include "index/engine/def.h"

extern const struct index_form index_typed_form;

/* Stored as words in paths of definitions: see index_typed_path(). */
enum index_typed_part {
	INDEX_TYPED_COLUMN,
	INDEX_TYPED_KEYS,
	INDEX_TYPED_VALUES,
	INDEX_TYPED_ENTRIES,
	INDEX_TYPED_JSON,
	INDEX_TYPED_JSON_TEXT,
	INDEX_TYPED_ORDER,
};

/* What a column of an index is made of. */
struct index_typed_origin {
	uint64_t column;
	enum index_typed_part part;
	/* Of JSON and JSON_TEXT: names of members, numbers of elements. Of ORDER: its name. */
	const struct str *steps;
	size_t step_count;
};

/* True of a part that a row has once at most. */
bool index_typed_is_single(enum index_typed_part part);
/* True of a part that is at a path in a document. */
bool index_typed_is_json(enum index_typed_part part);
/* True if a column of the part may have these steps. */
bool index_typed_steps_fit(enum index_typed_part part, const struct str *steps, size_t count);
bool index_typed_same_origin(const struct index_typed_origin *a,
			     const struct index_typed_origin *b);

/* A value of a column, or an element of a collection. */
struct index_typed_cell {
	uint64_t column;
	struct doc_scalar element; /* of a map its key, of a set its member; else not looked at */
	struct doc_scalar value;
	bool is_key;  /* the row's key has it, and entries need not carry it */
	bool expires; /* at a time of its own */
};

/* A row that entries are made of (struct index_source has it in `row`). */
struct index_typed_row {
	const struct index_typed_cell *cells; /* by the ids of columns */
	size_t count;
};

/* What a column of an index has in one entry: a value, or the pair of a map. */
struct index_typed_value {
	struct doc_scalar first;
	const struct doc_scalar *second; /* NULL: there is no pair */
};

/* What a column of an index is made of, as a path. In the arena; STATUS_LIMIT. */
MUST_USE enum status index_typed_path(const struct index_typed_origin *origin, struct arena *arena,
				      struct index_column *ret);
/* The other way round; the steps are borrowed. False: the path is none. */
bool index_typed_path_read(const struct index_column *column, struct index_typed_origin *ret);

/*
 * Takes the next value off `*values`, which an entry carries (struct index_entry): `*ret` is the
 * scalar as doc_scalar_put() writes it, borrowed. STATUS_NOT_FOUND: there are no more.
 */
MUST_USE enum status index_typed_carried_next(struct str *values, uint64_t *ret_column,
					      struct str *ret);

#endif
