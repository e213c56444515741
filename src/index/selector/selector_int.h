/* What the files of the selector language share. */
#ifndef FROND_INDEX_SELECTOR_SELECTOR_INT_H
#define FROND_INDEX_SELECTOR_SELECTOR_INT_H

#include "doc/json.h"
#include "index/selector/selector.h"

/* ---- Paths (path.c) ---- */

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
	SELECTOR_NO_MEMBER, /* an object without it */
	SELECTOR_BAD_PATH,  /* neither an object, nor an array that is long enough */
};

MUST_USE enum status selector_step(const struct leaf_value *v, const struct selector_name *name,
				   struct leaf_value *ret, enum selector_found *ret_found);

/* From a document down the path; an empty one is the document itself, without its specials. */
MUST_USE enum status selector_lookup(const struct selector_doc *doc,
				     const struct selector_path *path, struct leaf_value *ret,
				     enum selector_found *ret_found);

/* ---- Conditions ---- */

enum selector_op {
	SELECTOR_LT,
	SELECTOR_LTE,
	SELECTOR_EQ,
	SELECTOR_NE,
	SELECTOR_GTE,
	SELECTOR_GT,
	SELECTOR_IN,
	SELECTOR_NIN,
	SELECTOR_EXISTS,
	SELECTOR_TYPE,
	SELECTOR_SIZE,
	SELECTOR_MOD,
	SELECTOR_REGEX,
	SELECTOR_BEGINS_WITH,
	SELECTOR_ALL,
	SELECTOR_ELEM_MATCH,
	SELECTOR_ALL_MATCH,
	SELECTOR_KEY_MAP_MATCH,
};

struct selector_node;

/* A condition on a value. Which of the arguments is set depends on the operator. */
struct selector_cond {
	enum selector_op op;
	bool negated;
	bool by_bytes;             /* comparisons: the value is the document's _id */
	struct leaf_value operand; /* comparisons */
	struct leaf_value *list;   /* $in, $nin, $all */
	size_t list_count;
	struct str text; /* $type, $beginsWith */
	int64_t divisor; /* $mod */
	int64_t number;  /* $mod, $size */
	bool exists;     /* $exists */
	struct selector_regex *regex;
	struct selector_node *sub; /* the ...Match ones */
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
	struct selector_node *first; /* AND, OR, NOT: what it holds... */
	struct selector_node *next;  /* ...one after the other */
	struct str member;           /* of the object that it came from */
	struct selector_path path;   /* FIELD */
	struct selector_cond cond;   /* FIELD */
};

struct selector {
	struct selector_node *root;
};

/* ---- Compiling (compile.c, operator.c) ---- */

struct selector_compiler {
	struct json_reader reader;
	struct arena *arena;
	enum selector_error *error;
	struct err *err;
	struct selector_path path; /* down to where the compiler is */
	unsigned depth;
	size_t conditions;
	bool inside; /* of $elemMatch and its kin */
};

/* Reads the value that begins with `first` whole; `*ret_string`, the content, is for strings. */
MUST_USE enum status selector_take(struct selector_compiler *c, enum json_token first,
				   struct str *ret_text, struct str *ret_string);

/* A condition with its operator's argument, of which `first` is read. Not for the ...Match ones. */
MUST_USE enum status selector_read_argument(struct selector_compiler *c, const char *name,
					    enum selector_op op, enum json_token first,
					    struct selector_cond *ret);

/* Records CouchDB's complaint; `argument` is drawn as JSON. */
enum status selector_bad_arg(struct selector_compiler *c, const char *op, struct str argument);

/* ---- Regular expressions (regex.c) ---- */

struct selector_regex;

/* STATUS_INVALID if the pattern is none. */
MUST_USE enum status selector_regex_compile(struct str pattern, struct arena *arena,
					    struct selector_regex **ret);
MUST_USE enum status selector_regex_match(const struct selector_regex *regex, struct str text,
					  bool *ret);

#endif
