/*
 * What indexes compute of rows (computed.c): expressions, and conditions that frond does not know.
 * Their values are in columns of frond's, whose numbers follow those of PostgreSQL's columns.
 */
#ifndef FROND_PG_FROND_COMPUTED_H
#define FROND_PG_FROND_COMPUTED_H

#include "frond_pg.h"

struct frond_computed {
	const char *name; /* of the column in frond */
	Expr *expression; /* its Vars have the number 1; NULL: PostgreSQL's catalog lacks it */
	Bitmapset *used;  /* the columns of the table that it is computed of, as attnums */
	int index;        /* whose it is: its place in the table's indexes */
};

/* Whether a column of frond's is one of these, by its name. */
bool frond_computed_is(const char *name, size_t len);

/* ---- While a table is loaded ---- */

/* Makes t->columns and t->computed, of which the latter have no expressions yet. */
void frond_computed_find(const struct frows_table *f, struct frond_table *t);
/* Takes the expressions of an index from PostgreSQL's catalog. Gives its condition, if that is
 * computed. */
List *frond_computed_load(struct frond_table *t, int index, Oid oid,
			  const struct frows_index *from);
/* Notes whether another PostgreSQL computes some of them, when all indexes were loaded. */
void frond_computed_check(struct frond_table *t);

/* ---- Expressions ---- */

/* The one whose value a column of that number has; NULL: it is one of PostgreSQL's columns. */
static inline const struct frond_computed *
frond_computed_of(const struct frond_table *t, AttrNumber attnum)
{
	return attnum > t->natts ? &t->computed[attnum - t->natts - 1] : NULL;
}
/* A copy, whose Vars have the number of a relation. */
Expr *frond_computed_expression(const struct frond_table *t, AttrNumber attnum, Index rti);

/* ---- Values ---- */

struct frond_computing;
/* Lives as long as the query. */
struct frond_computing *frond_computing_new(const struct frond_table *t, EState *estate);
/* The value of a row, in the current memory context. */
struct frows_value frond_computing_value(struct frond_computing *c, AttrNumber attnum,
					 TupleTableSlot *slot);

/* Makes a column in frond for each expression: *ret are their ids. */
void frond_computed_make(struct frows *c, const struct frond_table *t, List *expressions,
			 uint32 *ret);
/* Fills such columns in all rows that are there. */
void frond_computed_fill(Relation rel, List *expressions, const uint32 *ids);

#endif
