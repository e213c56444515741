/* What the files about JSONPath share: what a path is compiled to. */
#ifndef FROND_JTREE_JSONPATH_INT_H
#define FROND_JTREE_JSONPATH_INT_H

#include "jtree/jsonpath.h"

struct mql_regex;
struct jsonpath_filter;

enum jsonpath_kind {
	JSONPATH_NAMES,
	JSONPATH_INDEXES,
	JSONPATH_SLICE,
	JSONPATH_ALL,
	JSONPATH_FILTER,
};

struct jsonpath_step {
	enum jsonpath_kind kind;
	bool descends; /* of the node and of all that is below it */
	size_t count;  /* names or indexes */
	union {
		struct str *names;
		int64_t *indexes;
		const struct jsonpath_filter *filter;
		struct {
			int64_t from;
			int64_t to; /* if has_to */
			uint64_t step;
			bool has_to;
		};
	};
};

struct jsonpath {
	struct jsonpath_step *steps;
	size_t count;
	bool asks_root; /* one of its filters has a path from the root */
};

enum jsonpath_operator {
	JSONPATH_THERE, /* the path leads to a node */
	JSONPATH_EQ,
	JSONPATH_NE,
	JSONPATH_LT,
	JSONPATH_LE,
	JSONPATH_GT,
	JSONPATH_GE,
	JSONPATH_MATCHES_REGEX,
};

/* A side of a comparison: a path, or a literal. */
struct jsonpath_term {
	const struct jsonpath *path; /* NULL: a literal */
	bool from_root;
	struct jtree_node *literal;
	struct mql_regex *regex; /* of a text; NULL: not compiled, or it is no expression */
};

struct jsonpath_filter {
	enum {
		JSONPATH_TERM,
		JSONPATH_AND,
		JSONPATH_OR
	} kind;
	const struct jsonpath_filter **parts; /* AND, OR */
	size_t count, cap;
	enum jsonpath_operator op; /* TERM */
	struct jsonpath_term left, right;
};

#endif
