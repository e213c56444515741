/*
 * SELECT: what it asks for (select_compile.c), what becomes of each row (select_emit.c), and how
 * the rows are come by (select.c).
 *
 * All of it lies in the request's arena. Threading: on the connection's fiber.
 */
#ifndef FROND_DOOR_CQL_RUN_SELECT_H
#define FROND_DOOR_CQL_RUN_SELECT_H

#include "door/cql/run/metadata.h"
#include "door/cql/run/page.h"
#include "door/cql/run/where_index.h"

enum {
	SELECT_SORT_ROWS = 100000, /* that ORDER BY sorts, of several partitions */
};

/* A row of ORDER BY over several partitions. */
struct select_sorted {
	struct cql_value *by;
	struct str cells; /* as they are sent */
};

struct select {
	struct run *run;
	const struct cql_select *s;
	struct where where;
	struct where_plan plan;
	struct where_index index;

	/* What is asked for. `exprs` are as many as `asked`. */
	struct cql_expr **exprs;
	struct result_column *asked;
	size_t count;
	struct result_columns result; /* what clients are told: with JSON one column */
	/* Of the partition key, that DISTINCT does not ask for. */
	const struct schema_column *missing;
	struct cql_expr *limit, *part_limit, *offset, *as_of;
	bool groups; /* aggregates, or GROUP BY */
	const struct schema_column **group_by;
	size_t group_count;
	const struct schema_column **order_by;
	size_t order_count;
	bool reverse;

	/* While it runs. */
	bool checked;                 /* where_check() has found nothing, whatever the values are */
	struct table_wanted wanted;   /* the columns that the statement names, but for the key's */
	struct table_wanted of_entry; /* of a row that an index has found by its values */
	bool *selected; /* by the places of columns: what is asked for names them, not WHERE */
	bool statics;   /* static ones are among them */
	bool carried;   /* the row comes from the entry of an index (table_index_is_carried()) */
	struct row row;
	struct buf rows; /* the cells of the rows, as they are sent */
	size_t row_count;
	size_t most;    /* rows of a page; 0: all */
	uint64_t left;  /* rows by LIMIT */
	uint64_t skip;  /* rows that OFFSET still leaves out */
	uint64_t at_us; /* AS OF: a moment by the wall clock, since 1970; 0: the present */
	uint64_t part_left;
	uint64_t part_most; /* by PER PARTITION LIMIT; UINT64_MAX: any */
	uint64_t now_ms;

	/* The group that is gathered. */
	struct cql_aggregate_state *states;
	bool has_group;
	struct cql_value
		*first;       /* the values of its first row; the last group's, once it has ended */
	uint64_t part_groups; /* of that partition, so far */
	struct arena_mark mark; /* what is above goes with each row */

	struct select_sorted *sorted;
	size_t sorted_count, sorted_cap;
};

/*
 * select_compile.c: the statement's terms, and what follows from these alone, once the table is
 * open.
 */
MUST_USE enum status select_compile(struct select *s, struct run *run);
/*
 * What can be said of WHERE without its values. `goes_on`: it is a page behind another, which may
 * read through an index that the statement would not choose now.
 */
MUST_USE enum status select_check(struct select *s, bool goes_on);
/*
 * The statement of a transaction, whose terms are compiled, or were before (run->compiled), up to
 * run_bind(). The caller calls select_release() in any case.
 */
MUST_USE enum status select_begin(struct select *s, struct run *run);
/* Behind run_bind(): the values of its relations and limits, its plan, its order. */
MUST_USE enum status select_prepare(struct select *s, const struct params *p);

/* True of a condition on a path that rows of the index's entries fulfil: only with an index. */
bool select_is_settled(const struct select *s, size_t term);

/* select_emit.c: a row that matches. `*ret_more`: more rows are wanted. */
MUST_USE enum status select_emit(struct select *s, bool *ret_more);
/* All rows were seen: ends the last group, and sorts. */
MUST_USE enum status select_finish(struct select *s);
void select_release(struct select *s);

/*
 * select.c: runs a SELECT in a transaction, whose table is open, and appends its RESULT. `p` may
 * have a paging state.
 */
MUST_USE enum status select_run(struct run *run, const struct params *p);

#endif
