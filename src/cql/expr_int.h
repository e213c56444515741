/* Expressions as they are inside, for the files that compile and run them. */
#ifndef FROND_CQL_EXPR_INT_H
#define FROND_CQL_EXPR_INT_H

#include "cql/expr.h"

enum cql_expr_kind {
	CQL_EXPR_CONSTANT,
	CQL_EXPR_MARKER,    /* index */
	CQL_EXPR_COLUMN,    /* index */
	CQL_EXPR_CELL,      /* index, part */
	CQL_EXPR_AGGREGATE, /* index: its place among the scope's */
	CQL_EXPR_ELEMENTS,  /* a list, set or map: args */
	CQL_EXPR_FIELDS,    /* a tuple or UDT: args; NULL: null */
	CQL_EXPR_FIELD,     /* index: of a UDT */
	CQL_EXPR_ELEMENT,   /* args[0][args[1]] */
	CQL_EXPR_SLICE,     /* args[0][args[1]..args[2]], NULL: open */
	CQL_EXPR_JSON,      /* args[0] -> args[1], is_text: ->> */
	CQL_EXPR_CALL,      /* call */
};

/* Computes a call from the values of its arguments, of which none is null or unset. */
typedef enum status cql_call(const struct cql_expr *e, struct cql *q, struct cql_env *env,
			     const struct cql_value *args, struct cql_value *ret);

struct cql_expr {
	enum cql_expr_kind kind;
	unsigned index;
	enum cql_cell_part part;
	bool is_text;
	bool takes_null; /* CALL: is computed with nulls, too */
	const struct cql_type *type;
	struct cql_value value; /* CONSTANT */
	cql_call *call;
	struct str name; /* CALL: the function's, or the operator; MARKER: the receiver's */
	size_t count;
	struct cql_expr **args;
};

enum cql_aggregate_kind {
	CQL_AGGREGATE_COUNT,
	CQL_AGGREGATE_MIN,
	CQL_AGGREGATE_MAX,
	CQL_AGGREGATE_SUM,
	CQL_AGGREGATE_AVG,
};

struct cql_aggregate {
	enum cql_aggregate_kind kind;
	const struct cql_expr *argument; /* NULL: count(*) */
	const struct cql_type *type;
};

/* ---- arith.c ---- */

/* The type of left op right; NULL: there is no such operation. */
const struct cql_type *cql_arith_type(enum cql_term_kind op, const struct cql_type *left,
				      const struct cql_type *right);
struct str cql_arith_sign(enum cql_term_kind op);
/* A call with two arguments, or one (NEGATE); the expression's `index` is the term's kind. */
cql_call cql_arith_run;

/* ---- cast.c ---- */

bool cql_cast_is_possible(const struct cql_type *to, const struct cql_type *from);
/* A call with one argument. */
cql_call cql_cast_run;
/* A number of any type as a double, a varint, a decimal. */
double cql_number_to_double(const struct cql_type *type, struct str bytes);
MUST_USE enum status cql_number_to_varint(struct cql *q, const struct cql_type *type,
					  struct str bytes, struct str *ret);
MUST_USE enum status cql_number_to_decimal(struct cql *q, const struct cql_type *type,
					   struct str bytes, struct str *ret);
/* A number as one of another type, as Java narrows and widens. */
MUST_USE enum status cql_number_cast(struct cql *q, const struct cql_type *to,
				     const struct cql_type *from, struct str bytes,
				     struct str *ret);

/* ---- function.c ---- */

enum {
	CQL_FUNCTION_ARGS = 2,
	CQL_ANY_TYPE = -1,
};

struct cql_function {
	const char *name;
	enum cql_type_kind type;
	size_t count;
	int args[CQL_FUNCTION_ARGS]; /* kinds of types */
	bool takes_null;
	cql_call *run;
};

/* The functions of that name, one behind the other; NULL: there is none. */
const struct cql_function *cql_functions_of(struct str name, size_t *ret_count);
/* blobAsInt, intAsBlob: the type, and whether it is made of a blob; NULL: another name. */
const struct cql_type *cql_blob_function(struct str name, bool *ret_from_blob);
cql_call cql_blob_run, cql_token_run, cql_to_json_run, cql_from_json_run;

#endif
