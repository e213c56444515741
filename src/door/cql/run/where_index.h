/*
 * Which index serves a SELECT, and what is asked of it.
 *
 * An index is asked for values of its first columns, and for a range of the column behind them. A
 * range of its first column alone is no reason to read an index unless ALLOW FILTERING is said:
 * Cassandra wants that. All relations are checked again with each row, so what is asked has only to
 * be wide enough.
 *
 * All of it lies in the request's arena. Threading: none.
 */
#ifndef FROND_DOOR_CQL_RUN_WHERE_INDEX_H
#define FROND_DOOR_CQL_RUN_WHERE_INDEX_H

#include "door/cql/run/where.h"
#include "model/timed/tables/index.h"

struct where_index {
	const struct table_index *index; /* NULL: none */
	uint64_t number;                 /* what tells it from others of the table; 0: none */
	struct table_index_interval interval;
	bool *served; /* by the statement's terms: the index answers it */
};

/*
 * The index that answers most of the statement. `allows`: ALLOW FILTERING was said. `number`: only
 * this one, which a page before has read; 0: any. Fails where an index that would be chosen is
 * still being built, and no other way was allowed.
 */
MUST_USE enum status where_index_choose(struct run *run, const struct where *w, bool allows,
					uint64_t number, struct where_index *ret);

#endif
