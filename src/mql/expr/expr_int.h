/*
 * How operators are added. Each is a row of the table of its theme; ops.c lists the tables.
 *
 * The usual operator has run(): its arguments are evaluated before, MQL_MISSING among them. If they
 * all are constants, it is run once, at compilation. Operators that evaluate only some of their
 * arguments, or that bind variables, have compile() and make a node with a run function of its own.
 */
#ifndef FROND_MQL_EXPR_INT_H
#define FROND_MQL_EXPR_INT_H

#include "mql/expr/expr.h"
#include "mql/mql_int.h"

struct mql_expr_op;

typedef enum status mql_expr_run_fn(const struct mql_expr *e, struct mql *q,
				    const struct mql_env *env, struct bson_value *ret);

/* A node. */
struct mql_expr {
	mql_expr_run_fn *run;
	const struct mql_expr_op *op; /* NULL: no operator */
	struct mql_expr **args;       /* an argument that is left out is NULL */
	size_t count;
	const void *more;        /* of the operator that has made the node */
	size_t number;           /* likewise */
	struct bson_value value; /* of a constant */
};

/* What is wrong with an object of named arguments. */
enum mql_expr_fault {
	MQL_FAULT_NOT_OBJECT, /* "$filter only supports an object as its argument" */
	MQL_FAULT_UNKNOWN,    /* "Unrecognized parameter to $filter: x" */
	MQL_FAULT_MISSING,    /* "Missing 'input' parameter to $filter" */
	MQL_FAULTS,
};

struct mql_expr_op {
	const char *name; /* "$add" */

	/* How many arguments; `most` -1: any number. {$op: x} without an array has one, x. */
	int least, most;

	/*
	 * The names of members, and NULL behind them: the operator has one argument, an object of
	 * those members. run() gets their values in this order, MQL_MISSING for a member that is
	 * left out. `required` has a bit for each member that must be there. `codes` are MongoDB's
	 * numbers for the faults. fault() is set where MongoDB's texts are special: it fails with
	 * them.
	 */
	const char *const *names;
	unsigned required;
	int codes[MQL_FAULTS];
	enum status (*fault)(struct mql *q, const struct mql_expr_op *op, enum mql_expr_fault fault,
			     struct str name, const struct bson_value *arg);

	enum status (*run)(struct mql *q, const struct bson_value *args, size_t count,
			   struct bson_value *ret);
	/* Instead of run(); it looks at `arg` by itself, though mql_expr_args() helps. */
	enum status (*compile)(struct mql *q, const struct mql_expr_op *op,
			       const struct bson_value *arg, const struct mql_scope *scope,
			       struct mql_expr **ret);
	int number; /* for operators that share a function: which it is */
	/* Like run(), for those that share a function. */
	enum status (*run_op)(struct mql *q, const struct mql_expr_op *op,
			      const struct bson_value *args, size_t count, struct bson_value *ret);
};

/* The tables of the themes, each ended by a row without a name. */
extern const struct mql_expr_op mql_expr_arith_ops[];
extern const struct mql_expr_op mql_expr_array_ops[];
extern const struct mql_expr_op mql_expr_bind_ops[];
extern const struct mql_expr_op mql_expr_bits_ops[];
extern const struct mql_expr_op mql_expr_convert_ops[];
extern const struct mql_expr_op mql_expr_date_ops[];
extern const struct mql_expr_op mql_expr_hash_ops[];
extern const struct mql_expr_op mql_expr_logic_ops[];
extern const struct mql_expr_op mql_expr_number_ops[];
extern const struct mql_expr_op mql_expr_object_ops[];
extern const struct mql_expr_op mql_expr_regex_ops[];
extern const struct mql_expr_op mql_expr_script_ops[];
extern const struct mql_expr_op mql_expr_set_ops[];
extern const struct mql_expr_op mql_expr_span_ops[];
extern const struct mql_expr_op mql_expr_string_ops[];
extern const struct mql_expr_op mql_expr_total_ops[];
extern const struct mql_expr_op mql_expr_trig_ops[];

/* NULL: no operator has this name. */
const struct mql_expr_op *mql_expr_op_of(struct str name);

/* ---- Compiling ---- */

MUST_USE enum status mql_expr_new(struct mql *q, const struct mql_expr_op *op, mql_expr_run_fn *run,
				  size_t count, struct mql_expr **ret);

/* Arguments by position, or by op->names: a node with them compiled, that is run by `run`. */
MUST_USE enum status mql_expr_args(struct mql *q, const struct mql_expr_op *op,
				   const struct bson_value *arg, const struct mql_scope *scope,
				   mql_expr_run_fn *run, struct mql_expr **ret);

/*
 * Reads an object of op->names without compiling: `ret` has room for all of them, and MQL_MISSING
 * for those that are left out.
 */
MUST_USE enum status mql_expr_named(struct mql *q, const struct mql_expr_op *op,
				    const struct bson_value *arg, struct bson_value *ret);

/* The values of all arguments, MQL_MISSING for those that are NULL: `ret` has room for e->count. */
MUST_USE enum status mql_expr_run_args(const struct mql_expr *e, struct mql *q,
				       const struct mql_env *env, struct bson_value *ret);

/* Makes a node a constant if all of its arguments are and it can be run; never fails otherwise. */
MUST_USE enum status mql_expr_fold(struct mql *q, struct mql_expr *e);

MUST_USE enum status mql_expr_of_value(struct mql *q, const struct bson_value *v,
				       struct mql_expr **ret);

/* ---- Values ---- */

/* True, and null in `*ret`, if a value is nullish. */
static inline bool
mql_gives_null(const struct bson_value *v, struct bson_value *ret)
{
	if (!mql_is_nullish(v))
		return false;
	*ret = BSON_OF_NULL;
	return true;
}

/* As errors have it: "missing" for a value that is not there. */
static inline const char *
mql_expr_type(const struct bson_value *v)
{
	return mql_is_missing(v) ? "missing" : bson_type_name(v->type);
}

/* What MongoDB takes for true; a missing value is false. */
static inline bool
mql_expr_true(const struct bson_value *v)
{
	return !mql_is_missing(v) && bson_is_true(v);
}

/* As bson_compare_values(), with the collation; a missing value comes right behind MinKey. */
int mql_expr_compare(const struct mql *q, const struct bson_value *a, const struct bson_value *b);

/* An integer that fits 32 bits, of any type of number; false for all other values. */
bool mql_expr_int32(const struct bson_value *v, int32_t *ret);

/* The elements of an array, in the arena. */
MUST_USE enum status mql_expr_values(struct mql *q, const struct bson_value *array,
				     struct bson_value **ret, size_t *ret_count);

/* An array of values; those that are missing become null. */
MUST_USE enum status mql_expr_array(struct mql *q, const struct bson_value *values, size_t count,
				    struct bson_value *ret);

/* A document; members whose value is missing are left out. */
MUST_USE enum status mql_expr_document(struct mql *q, const struct str *names,
				       const struct bson_value *values, size_t count,
				       struct bson_value *ret);

/* The members of a document that is made: a name that is set again keeps its place. */
struct mql_members {
	struct str *names;
	struct bson_value *values;
	size_t count, cap;
	uint32_t *slots; /* by name: 1 and more, the place; 0: none */
	size_t slot_count;
};

/* Starts as {0}. A member whose value is missing is left out in the end. */
MUST_USE enum status mql_members_set(struct mql *q, struct mql_members *m, struct str name,
				     const struct bson_value *v);
MUST_USE enum status mql_members_set_all(struct mql *q, struct mql_members *m, struct str document);
MUST_USE enum status mql_members_end(struct mql *q, const struct mql_members *m,
				     struct bson_value *ret);

#endif
