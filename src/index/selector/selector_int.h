/* What the files of the selector language share. */
#ifndef FROND_INDEX_SELECTOR_SELECTOR_INT_H
#define FROND_INDEX_SELECTOR_SELECTOR_INT_H

#include "doc/json.h"
#include "index/selector/selector.h"

/* ---- Paths (path.c) ---- */

enum {
	SELECTOR_NAME_STEPS = 4, /* what looking up one name costs: a binary search */
};

/* One name of a path, ready to be looked up as a member and, if it is a number, as a position. */
struct selector_name {
	struct str text;
	struct str member; /* encoded */
	struct str index;  /* encoded; empty when it is no position */
};

struct selector_path {
	struct selector_name *names;
	size_t count;
};

/*
 * Splits a field's name at its dots: "a.b\\.c" is a, b.c. Appends to the path, whose array has room
 * for SELECTOR_PATH_NAMES.
 */
MUST_USE enum status selector_path_add(struct str field, struct arena *arena,
				       struct selector_path *path, enum selector_error *error,
				       struct err *err);

enum selector_found {
	SELECTOR_FOUND,
	SELECTOR_NO_MEMBER, /* the value is an object without that member */
	SELECTOR_BAD_PATH,  /* the value is neither an object nor an array that is long enough */
};

MUST_USE enum status selector_step(const struct leaf_value *v, const struct selector_name *name,
				   struct leaf_value *ret, enum selector_found *ret_found);

/*
 * Follows the path down from a document. An empty path leads to the document without its special
 * members.
 */
MUST_USE enum status selector_lookup(const struct selector_doc *doc,
				     const struct selector_path *path, struct leaf_value *ret,
				     enum selector_found *ret_found);

/* ---- Conditions ---- */

enum selector_op {
	SELECTOR_EQ_ANY, /* equal to a value of the list; made by selector_fold() */
#define SELECTOR_OP_CONSTANT(op, name, opposite) SELECTOR_##op,
	SELECTOR_OPERATORS(SELECTOR_OP_CONSTANT)
#undef SELECTOR_OP_CONSTANT
};

struct selector_node;

/* A condition on a value. Which of the arguments is set depends on the operator. */
struct selector_cond {
	enum selector_op op;
	bool negated;
	bool by_bytes;             /* comparisons: the value is the document's _id */
	struct leaf_value operand; /* comparisons */
	/*
	 * $in, $nin, $all, EQ_ANY: the values, each once. In the order of selector_compare(); for
	 * $all in that of collate_exactly().
	 */
	struct leaf_value *list;
	size_t list_count;
	bool list_single; /* $all: the argument is an array of one value */
	struct str text;  /* $type, $beginsWith */
	int64_t divisor;  /* $mod */
	int64_t number;   /* $mod, $size */
	bool exists;      /* $exists */
	struct selector_regex *regex;
	struct selector_node *sub; /* $elemMatch, $allMatch, $keyMapMatch */
};

enum selector_node_kind {
	SELECTOR_AND,
	SELECTOR_OR,
	SELECTOR_NOT,
	SELECTOR_FIELD,
	SELECTOR_ANYTHING, /* {} */
};

struct selector_node {
	enum selector_node_kind kind;
	struct selector_node *first; /* AND, OR, NOT: the first of the nodes inside */
	struct selector_node *next;  /* the next one inside the same node */
	struct str member;           /* the name in the object that the node was compiled from */
	size_t place;                /* of that member in its object, while it is compiled */
	struct selector_path path;   /* FIELD */
	struct selector_cond cond;   /* FIELD */
};

struct selector {
	struct selector_node *root;
};

/* ---- Comparing, and lists of values (list.c) ---- */

/*
 * Compares a value with an operand, as the condition's comparisons do: by collation, and the
 * document's _id byte by byte.
 */
MUST_USE enum status selector_compare(const struct selector_cond *c, const struct leaf_value *v,
				      const struct leaf_value *operand, struct index_work *w,
				      int *ret);

/* Puts the list of a condition of $in, $nin or $all in order, and keeps each value once. */
MUST_USE enum status selector_list_sort(struct selector_cond *c, struct index_work *w);

/* Searches the list for a value that is equal. `*ret_at` is its place if `*ret_found` is true. */
MUST_USE enum status selector_list_find(const struct selector_cond *c, const struct leaf_value *v,
					struct index_work *w, size_t *ret_at, bool *ret_found);

/*
 * Sorts pointers; equal ones keep their order. `compare` may fail, and its failure is returned; the
 * array then holds nothing of use.
 */
typedef enum status (*selector_compare_fn)(const void *arg, const void *a, const void *b,
					   struct index_work *w, int *ret);
MUST_USE enum status selector_sort(const void **items, size_t count, selector_compare_fn compare,
				   const void *arg, struct index_work *w);

/*
 * Joins the members of a compiled $or or $and that compare the same field by $eq, or in an $and by
 * $ne, into one condition. Members may change their order, which means nothing.
 */
MUST_USE enum status selector_fold(struct selector_node *list, struct index_work *w);

/* ---- Compiling (compile.c, operator.c) ---- */

struct selector_compiler {
	struct json_reader reader;
	struct index_work *work;
	struct arena *arena; /* that of `work` */
	enum selector_error *error;
	struct err *err;
	struct selector_path path; /* the path to the place that the compiler has reached */
	struct selector_path kept; /* a copy of it in the arena; names NULL: there is none yet */
	/* For the paths inside of one $elemMatch, of one inside of that, and so on. */
	struct selector_name *names[SELECTOR_DEPTH + 1];
	unsigned depth;
	size_t conditions;
	unsigned inside; /* how many of $elemMatch, $allMatch and $keyMapMatch are around */
};

/* Reads the value that begins with `first` to its end. `*ret_string`: the content of a string. */
MUST_USE enum status selector_take(struct selector_compiler *c, enum json_token first,
				   struct str *ret_text, struct str *ret_string);

/*
 * Reads a condition's argument, whose first token `first` has been read. Not for $elemMatch,
 * $allMatch and $keyMapMatch. The caller has set `by_bytes` of the condition.
 */
MUST_USE enum status selector_read_argument(struct selector_compiler *c, const char *name,
					    enum selector_op op, enum json_token first,
					    struct selector_cond *ret);

/* Records the error as CouchDB words it; `argument` is written as JSON. */
enum status selector_bad_arg(struct selector_compiler *c, const char *op, struct str argument);

/* ---- Regular expressions (regex.c) ---- */

struct selector_regex;

/*
 * STATUS_INVALID if the pattern is not a regular expression, or one that is too large for PCRE2.
 * STATUS_LIMIT if the arena is full. Both functions return the failures of index_count().
 */
MUST_USE enum status selector_regex_compile(struct str pattern, struct index_work *w,
					    struct selector_regex **ret);
MUST_USE enum status selector_regex_match(const struct selector_regex *regex, struct str text,
					  struct index_work *w, bool *ret);

#endif
