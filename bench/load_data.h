/*
 * The documents that the load generator writes: the same ones on every machine and in every run.
 *
 * A document has ten members and 1,000 bytes of JSON, the members that begin with an underscore
 * not counted: text, numbers, a flag, a time, an array, an object. Its id is "bench-" and ten
 * digits.
 */
#ifndef FROND_BENCH_LOAD_DATA_H
#define FROND_BENCH_LOAD_DATA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

enum {
	DATA_ID_BYTES = 16,
	DATA_DOC_BYTES = 1000,
	DATA_KINDS = 4096, /* documents differ in all their text up to this many */
};

/* The member "number" of the first document; the next ones' are higher by one each. */
#define DATA_NUMBER UINT64_C(1000000000)

/* Makes the texts that documents are cut from; once, before all others. False: out of memory. */
bool data_init(void);

/* Ids in an order of their own instead of ascending ones. */
void data_scatter_ids(void);

/* The id of document `i`, below 10^10. */
void data_id(uint64_t i, char ret[DATA_ID_BYTES + 1]);

/* The JSON of document `i`; with its _id if `with_id`, with a _rev if that is not empty. */
void data_append_doc(struct buf *b, uint64_t i, bool with_id, struct str rev);

/*
 * The JSON of a nested document of at least `bytes`: an object of sections, each of twenty entries
 * as a table of features has them. data_big_path() is one entry's value in the middle of it.
 */
void data_append_big(struct buf *b, size_t bytes);
void data_big_path(char *ret, size_t room, size_t bytes);

#endif
