/*
 * How many rows a table has, about: for whoever plans. scan.c has it.
 *
 * Threading: that of the transaction.
 */
#ifndef FROND_MODEL_TIMED_TABLES_ESTIMATE_H
#define FROND_MODEL_TIMED_TABLES_ESTIMATE_H

#include "model/timed/tables/row.h"

enum {
	TABLE_ESTIMATE_PAIRS = 2500, /* that are read at most: a millisecond */
	TABLE_ESTIMATE_BYTES = 256 * 1024,
};

struct table_estimate {
	uint64_t rows;
	bool is_exact; /* all of them were counted */
};

/*
 * Counts the first rows, as far as TABLE_ESTIMATE_PAIRS and TABLE_ESTIMATE_BYTES reach. If there
 * are more, the store's estimate of the bytes (kv_estimate_bytes()) says how many times as much
 * the table has: the number is too low by as much as the store compresses, and where much was
 * written just now. Takes the arena back to what it was. May block, as reads do.
 */
MUST_USE enum status table_estimate_rows(struct timed *t, struct arena *arena,
					 struct table_estimate *ret);

#endif
