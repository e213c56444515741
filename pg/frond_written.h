/* A row that a statement writes, and what its client is told if frond refuses it. */
#ifndef FROND_WRITTEN_H
#define FROND_WRITTEN_H

#include "frond_pg.h"

struct frond_written {
	Relation rel;
	const struct frond_table *table;
	const int *attnums; /* of the columns that `values` has, as many as `count` */
	int count;
	const struct frows_value *key;    /* NULL: it is not known which row it was */
	const struct frows_value *values; /* NULL: none is written */
};

/* What the row has in a column; NULL: it does not write that. */
const struct frows_value *frond_written_value(const struct frond_written *w, AttrNumber attnum);
/* Raises the failure of a request of the connection, which is about this row if about any. */
void frond_fail_write(struct frows *c, const struct frond_written *w) pg_attribute_noreturn();

#endif
