/*
 * INSERT, UPDATE and DELETE: compiled (modify_compile.c), their conditions (condition.c), and what
 * they write (modify.c).
 *
 * All of it lies in the request's arena. Threading: on the connection's fiber.
 */
#ifndef FROND_DOOR_CQL_RUN_MODIFY_H
#define FROND_DOOR_CQL_RUN_MODIFY_H

#include "door/cql/run/metadata.h"
#include "door/cql/run/where.h"

enum {
	MODIFY_TTL_MOST_S = 20 * 365 * 24 * 60 * 60,
};

/* What becomes of a column, or of a part of it. */
struct modify_change {
	enum cql_assign_kind kind;
	const struct schema_column *column;
	struct cql_expr *key;   /* of an element */
	struct cql_expr *value; /* NULL: it is deleted */
	size_t field;           /* of CQL_ASSIGN_FIELD */
	struct json_path path;  /* of CQL_ASSIGN_JSON */
	struct cql_value json;  /* of INSERT JSON: the value, with `is_json` */
	bool is_json;
};

/* A condition of IF. */
struct modify_condition {
	const struct cql_relation *relation;
	const struct schema_column *column;
	const struct cql_type *type; /* of what is compared */
	size_t field;                /* of CQL_LEFT_FIELD */
	struct json_path path;       /* of CQL_LEFT_JSON */
	struct cql_expr *key;
	struct cql_expr **exprs;
	size_t count;
};

struct modify {
	struct run *run;
	enum cql_statement_kind kind;
	const struct cql_if *condition;
	const struct cql_using *using;
	struct cql_expr *timestamp, *ttl;
	struct modify_change *changes;
	size_t change_count;
	/* INSERT: the values of the key, by the numbers of columns; NULL: not given. */
	struct cql_expr **key;
	struct cql_expr *json; /* INSERT JSON: its text */
	bool json_default_unset;
	struct where where; /* UPDATE, DELETE */
	struct where_plan plan;
	struct modify_condition *conditions;
	size_t condition_count;
	struct table_wanted wanted; /* the columns that the conditions are about */
	bool of_statics;            /* it is about a partition, and not about rows */
	bool ranged;                /* DELETE: of rows by ranges, or of whole partitions */

	/* Behind modify_prepare(). */
	struct timed *timed;
	struct timed_expiry expiry;
	bool has_stamp;               /* the client says what orders the writes */
	bool stamp_is_said;           /* by USING */
	int64_t stamp;                /* in microseconds, if has_stamp */
	struct cql_value *key_values; /* INSERT */

	/* Behind modify_ask(), if `is_made`: what INSERT writes of its row, and asked for. */
	bool is_made;
	struct table_write write;
	struct table_look *look;
};

/* True if the statement has an IF. */
bool modify_is_conditional(const struct cql_statement *s);

/* modify_compile.c: the terms, once the table is open. */
MUST_USE enum status modify_compile(struct modify *m, struct run *run);
/*
 * The statement of a transaction, whose terms are compiled, or were before (run->compiled), up to
 * run_bind().
 */
MUST_USE enum status modify_begin(struct modify *m, struct run *run);
/* Behind run_bind(): values, plan, expiry. `timed` is the transaction of the table. */
MUST_USE enum status modify_prepare(struct modify *m, struct timed *timed);

/* condition.c: a row, or what there is of it, as conditions see it. */
struct condition_state {
	struct row row;
	bool exists; /* the row, or with only static columns in question the partition's */
	bool has_statics;
};

/*
 * Reads the row, or the static columns of the partition, that the statement's conditions look at:
 * the columns that they name, or with `all` every column, for an answer that shows the row. Where
 * they name none, and not `all`, `ret->row` is empty.
 */
MUST_USE enum status condition_read(struct modify *m, bool all, struct condition_state *ret);
MUST_USE enum status condition_holds(struct modify *m, const struct condition_state *state,
				     bool *ret);
/* Appends the RESULT of a conditional statement. */
MUST_USE enum status condition_answer(struct modify *m, const struct condition_state *state,
				      bool applied);

/* modify.c: writes. */
MUST_USE enum status modify_apply(struct modify *m);
/*
 * Asks for what the statement has to read of its row, if it is an INSERT that does, before
 * modify_apply() waits for it: until then none but such statements write. The caller calls
 * table_look_end() with m->look in any case.
 */
MUST_USE enum status modify_ask(struct modify *m);
/*
 * A statement that is no part of a batch, whose table is open: with its RESULT. `timed` is the
 * transaction of the table.
 */
MUST_USE enum status modify_run(struct run *run, struct timed *timed);

/*
 * Behind modify_prepare(): the values of the partition key, one for each column of it. NULL: the
 * statement is not about one partition.
 */
const struct cql_value *modify_partition(const struct modify *m);

/* modify_key.c: the key of a row of the plan, or of its partition where `range` is NULL. */
MUST_USE enum status modify_key_of(struct modify *m, const struct where_partition *part,
				   const struct where_range *range, struct table_key *ret);
/* The key of the one row, or the one partition, that the statement names. */
MUST_USE enum status modify_key(struct modify *m, struct table_key *ret);

#endif
