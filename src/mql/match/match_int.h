/* A compiled filter: compile.c makes it, run.c runs it. */
#ifndef FROND_MQL_MATCH_INT_H
#define FROND_MQL_MATCH_INT_H

#include "mql/expr/expr.h"
#include "mql/match/match.h"
#include "mql/match/branches.h"
#include "mql/regex.h"
#include "mql/schema/schema.h"
#include "mql/expr/script.h"
#include "mql/value_set.h"

enum mql_node_op {
	/* Of nodes: `first` and what follows it. */
	MQL_NODE_AND,
	MQL_NODE_OR,
	MQL_NODE_NOR,
	MQL_NODE_NOT, /* of one node */
	MQL_NODE_CONSTANT,
	MQL_NODE_SAMPLE,
	/* Of the document as a whole. */
	MQL_NODE_SCHEMA,
	MQL_NODE_EXPR,
	MQL_NODE_WHERE,
	/* Of the value at `path`. */
	MQL_NODE_EQ,
	MQL_NODE_GT,
	MQL_NODE_GTE,
	MQL_NODE_LT,
	MQL_NODE_LTE,
	MQL_NODE_IN,
	MQL_NODE_EXISTS,
	MQL_NODE_TYPE,
	MQL_NODE_MOD,
	MQL_NODE_REGEX,
	MQL_NODE_BITS,
	MQL_NODE_ALL, /* of many values at once: each is equal to one at the path */
	/* Likewise, and of an array as a whole. */
	MQL_NODE_SIZE,
	MQL_NODE_ELEM_VALUE,  /* `first`: of an element as a value */
	MQL_NODE_ELEM_OBJECT, /* `first`: of an element as a document */
};

struct mql_regex_item {
	struct mql_regex *regex;
	struct bson_value value; /* equal to this one matches, too */
	struct mql_regex_item *next;
};

struct mql_bits {
	bool set; /* what the bits have to be */
	bool any; /* one of them suffices */
	const uint32_t *positions;
	size_t count;
	struct str mask; /* instead of positions: little-endian bytes */
};

struct mql_node {
	enum mql_node_op op;
	struct str path;
	struct mql_node *next;
	struct mql_node *first;
	struct bson_value value; /* what to compare with; of IN, the array */
	union {
		bool truth; /* CONSTANT */
		struct mql_schema *schema;
		struct mql_expr *expr;
		const struct mql_script *script;
		double rate; /* SAMPLE */
		struct {
			struct mql_value_set set;
			struct mql_regex_item *regexes; /* which are in `set`, too */
		} in;
		struct {
			uint32_t low; /* a bit a type, from 0 to 31 */
			bool min, max;
		} types;
		struct {
			int64_t divisor, remainder;
		} mod;
		struct mql_regex_item regex;
		struct mql_bits bits;
		struct mql_value_set set; /* ALL; of its regular expressions nothing is asked */
		int64_t size;             /* -1: none has it */
	};
};

struct mql_match {
	struct mql_node *root;
	bool of_value; /* the root's conditions are of a value, not of a document's paths */
	const struct mql_demand *demands;
	size_t demand_count;
	const struct mql_branch *branches; /* of the first $or outside of all others; or none */
	size_t branch_count;
};

#endif
