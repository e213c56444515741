/*
 * Which order an index gives: the fields that a question wants documents sorted by, beside the
 * columns of an index.
 *
 * Entries come in the order of fields that are columns, one behind the other, all of them in their
 * columns' directions or all against them. A column in between does no harm if all entries that are
 * read have one value there. Neither does one with several values, each of which has ranges of its
 * own, if these ranges are merged by what is behind the column (merge.h).
 *
 * A language takes the fields one by one, and tells what is known of a column when it is asked.
 * Names are compared byte by byte. Plain values; any thread.
 */
#ifndef FROND_INDEX_PLAN_ORDER_H
#define FROND_INDEX_PLAN_ORDER_H

#include <stddef.h>

#include "base/str.h"

/* What is known of a column. */
enum order_fact {
	ORDER_DESCENDING = 1, /* keys descend where values ascend */
	ORDER_FIXED = 2,      /* all entries that are read have one value there */
	ORDER_POINTS = 4,     /* the ranges that are read have single values there */
	ORDER_MERGES = 8,     /* they have, and can be merged by what is behind the column */
	ORDER_CUT = 16,       /* values may be cut in keys, which are then in another order */
	ORDER_MANY = 32,      /* documents may have entries of several values */
	/*
	 * Keys do not give the order of documents, not even if all have one value: they are
	 * hashes, or those of other elements than the ones that documents are sorted by.
	 */
	ORDER_NONE = 64,
};

struct order_column {
	struct str name;
	unsigned facts;
};

typedef struct order_column order_look(const void *arg, size_t column);

struct order {
	order_look *look;
	const void *arg;
	size_t count; /* of columns */
	/* The field that entries with the same columns are sorted by; empty: that is not known. */
	struct str id;
	/* Columns are passed only in front of the first field: the others follow each other. */
	bool adjacent;

	/* What has been found so far; the others are private. */
	bool reverse; /* it is the order of reading backwards */
	bool merges;  /* and of merged ranges */

	bool turned;  /* `reverse` is decided */
	bool several; /* a column whose ranges have several values gives a part of the order */
	bool begun, ended;
	size_t at; /* the column that is next */
};

/* Takes the next field of the order. False if reading the index does not give it. */
bool order_take(struct order *o, struct str name, bool descending);

#endif
