/*
 * Documents that a stage has to put aside: in memory first, and from MQL_SPILL_BYTES on in a file
 * without a name, which the system frees with its descriptor. They are read in the order in which
 * they were put, as often as wanted.
 */
#ifndef FROND_MQL_SPOOL_H
#define FROND_MQL_SPOOL_H

#include "mql/stage/stages_int.h"

struct mql_spool {
	int fd; /* -1: none yet */
	uint64_t file_bytes;
	struct buf tail; /* behind the file's bytes */
};

/* A part of a spool that is being read. */
struct mql_spool_reader {
	struct mql_spool *spool;
	uint64_t at, end;
	struct buf window;
	uint64_t window_at; /* of its first byte */
};

void mql_spool_init(struct mql_spool *s, struct mql_stage_run *r);
void mql_spool_fini(struct mql_spool *s);
/* It is empty again; nobody reads it. */
void mql_spool_clear(struct mql_spool *s);
/* A document. Without files, what is kept is limited as the stage's memory is. */
MUST_USE enum status mql_spool_put(struct mql_spool *s, struct mql_stage_run *r, struct str doc);
uint64_t mql_spool_end(const struct mql_spool *s);

/* From `at` to `end`, which mql_spool_end() has told before and after. */
void mql_spool_read(struct mql_spool_reader *reader, struct mql_spool *s, struct mql_stage_run *r,
		    uint64_t at, uint64_t end);
/* Valid until the next call, and until something is put. STATUS_NOT_FOUND at the end. */
MUST_USE enum status mql_spool_next(struct mql_spool_reader *reader, struct mql_stage_run *r,
				    struct str *ret);
void mql_spool_reader_fini(struct mql_spool_reader *reader);

#endif
