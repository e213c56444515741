/* The fields of $setWindowFields: what they are compiled to, and how they are computed. */
#ifndef FROND_MQL_WINDOW_INT_H
#define FROND_MQL_WINDOW_INT_H

#include "mql/stage/accum.h"
#include "mql/expr/date.h"
#include "mql/stage/stages_int.h"

enum mql_window_op {
	WINDOW_ACCUMULATOR,
	WINDOW_RANK,
	WINDOW_DENSE_RANK,
	WINDOW_NUMBER,
	WINDOW_SHIFT,
	WINDOW_DERIVATIVE,
	WINDOW_INTEGRAL,
	WINDOW_MOVING_AVERAGE,
	WINDOW_COVARIANCE_POP,
	WINDOW_COVARIANCE_SAMP,
	WINDOW_LINEAR_FILL,
	WINDOW_LOCF,
};

struct mql_window_bound {
	bool unbounded;
	struct bson_value n; /* documents, or how far the value may be; 0: current */
};

struct mql_window_field {
	struct str name;
	struct str op_name;
	enum mql_window_op op;
	struct mql_accumulator *accumulator;
	struct mql_expr *input;
	struct mql_expr *second; /* of the covariances */
	struct mql_window_bound lower, upper;
	bool has_window;
	bool range;
	int unit;        /* of the range; -1: none */
	int64_t unit_ms; /* of $derivative and $integral; 0: none */
	int64_t by;      /* $shift */
	struct bson_value otherwise;
	struct bson_value alpha; /* $expMovingAvg: a double or a Decimal128 */
};

struct mql_window_stage {
	struct str sort_path; /* of a sort by one path; ptr NULL: none */
	bool descending;
	struct mql_window_field *fields;
	size_t count;
};

/* What a field needs of a document: `second` is an accumulator's key, or a second value. */
struct mql_window_input {
	struct bson_value value, second;
};

struct mql_window_row {
	struct bson_value by; /* at the path of the sort */
	struct mql_window_input inputs[];
};

/* The documents of a partition, by what the fields need of them. */
struct mql_window_rows {
	struct mql_window_row **rows;
	size_t count;
	size_t cap;
};

/* A field that goes through a partition. */
struct mql_window_run {
	struct arena *keep; /* of the accumulator's state; NULL: none */
	struct mql_accumulator_state *state;
	bool any; /* the state has the rows from `from` to in front of `to` */
	size_t from, to;
	size_t range_from, range_to;
	size_t known;           /* the next row that has a value */
	struct bson_value last; /* $expMovingAvg, $locf */
	int64_t rank;
	double sum;    /* $integral */
	int64_t pairs; /* of the covariances: x, y, and the sum of products of deviations */
	bool decimal;
	double mean_x, mean_y, products;
	struct bson_decimal dmean_x, dmean_y, dproducts;
};

/* Compiles one field: `sorted` is false where no order was given, not even an empty one. */
MUST_USE enum status mql_window_field(struct mql_stages *c, const struct mql_window_stage *s,
				      bool sorted, const struct bson_element *e,
				      struct mql_window_field *ret);

/* The value of a field for row `at`; rows are asked for in their order. STATUS_LIMIT: no memory. */
MUST_USE enum status mql_window_value(const struct mql_window_field *f, struct mql *q,
				      const struct mql_window_rows *rows, size_t at, size_t field,
				      struct mql_window_run *run, struct bson_value *ret);

#endif
