/*
 * Decides whether reading an index gives documents in the order that a question wants them sorted
 * by, so that they need not be sorted.
 *
 * The index gives that order if the question's fields are columns of the index, in the same
 * sequence, and if all fields have the direction of their column, or all have the opposite one (the
 * index is then read backwards). The index may have further columns in between:
 *
 * - A column in which all entries that are read have the same value does not change the order.
 * - A column for which a few single values are read, each with key ranges of its own, does not
 *   either if merge.h merges these ranges by the columns behind it.
 *
 * The planner of a query language calls order_take() with one field after the other. `look` is its
 * callback, which tells what is known of a column. Names are compared byte by byte. These are plain
 * values, without memory of their own, for any thread.
 */
#ifndef FROND_INDEX_PLAN_ORDER_H
#define FROND_INDEX_PLAN_ORDER_H

#include <stddef.h>

#include "base/str.h"

/* What is known of a column. */
enum order_fact {
	ORDER_DESCENDING = 1, /* the keys descend while the values ascend */
	ORDER_FIXED = 2,      /* all entries that are read have the same value in this column */
	ORDER_POINTS = 4,     /* each range that is read has a single value in this column */
	ORDER_MERGES = 8,     /* likewise, and these ranges can be merged by the columns behind */
	ORDER_CUT = 16,       /* long values are cut in keys, so their order may be another one */
	ORDER_MANY = 32,      /* one document may have entries with several values */
	/*
	 * The keys never give the order of documents, even if all keys have the same value: they
	 * are hashes, or they have other array elements than the ones that documents are sorted by.
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
	size_t count; /* number of columns */
	/* The field by which entries with equal columns are sorted; empty if it is not known. */
	struct str id;
	/* Columns may be skipped only in front of the first field, and not between two fields. */
	bool adjacent;

	/* The result so far. */
	bool reverse; /* the index has to be read backwards */
	bool merges;  /* ranges have to be merged */

	/* Private to order.c. */
	bool turned;  /* `reverse` is decided */
	bool several; /* the column of a field that was found has ORDER_POINTS */
	bool begun;   /* the first field was found */
	bool ended;   /* the last field was `id`: no two documents share it, so nothing follows */
	size_t at;    /* the next column */
};

/* Takes the next field of the order. Returns false if reading the index does not give it. */
bool order_take(struct order *o, struct str name, bool descending);

#endif
