/*
 * Rows that the transaction has changed, as it sees them (own.c).
 *
 * Errors, memory and threads are as frond_pg.h says.
 */
#ifndef FROND_PG_FROND_OWN_H
#define FROND_PG_FROND_OWN_H

#include "frond_pg.h"

/* So many rows are kept at most: those that were changed last. */
#define FROND_OWN_ROWS 8

/* Another number than before says that rows were noted or forgotten in between. */
uint32 frond_own_mark(void);
/* A row that was read in the transaction, and that an update which frond has got, or gets with the
 * next request, has made this. `values`: of the columns by attnum - 1. Both are copied. */
void frond_own_note(const struct frond_table *t, Oid user, const struct frows_value *key,
		    const struct frows_value *values);
/* The columns of a row by attnum - 1, until the next row is noted or forgotten. NULL: it is not
 * kept, and frond has to be asked. */
const struct frows_value *frond_own_find(const struct frond_table *t, Oid user,
					 const struct frows_value *key);
/* Forgets the rows of a table, or with InvalidOid all: others were written, or may be undone. */
void frond_own_forget(Oid relid);

#endif
