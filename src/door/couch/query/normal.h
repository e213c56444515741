/*
 * Selectors in CouchDB's normal form, for the planner and for what clients see of it: each field's
 * whole path beside its condition, an explicit operator in each condition, negations pushed down to
 * the conditions.
 *
 * A selector is compiled for matching by index/selector, which also checks it. What is made here is
 * a second reading of the same text that keeps each argument as it was written. It lives in the
 * arena and is never changed afterwards; any thread may read it.
 */
#ifndef FROND_DOOR_COUCH_QUERY_NORMAL_H
#define FROND_DOOR_COUCH_QUERY_NORMAL_H

#include "base/arena.h"
#include "base/buf.h"
#include "doc/json_value.h"
#include "index/selector/selector.h"

enum normal_kind {
	NORMAL_ANYTHING, /* {} */
	NORMAL_AND,
	NORMAL_OR,
	NORMAL_NOT, /* only inside of $elemMatch, $allMatch and $keyMapMatch */
	NORMAL_NOR, /* likewise */
	NORMAL_FIELD,
};

enum normal_op {
#define NORMAL_OP_CONSTANT(op, name, opposite) NORMAL_##op,
	SELECTOR_OPERATORS(NORMAL_OP_CONSTANT)
#undef NORMAL_OP_CONSTANT
};

/* The names on the way to a field, taken apart: "a.b\\.c" is a, b.c. */
struct normal_path {
	struct str *names;
	size_t count;
	struct str joined; /* with dots, without escapes, as CouchDB shows it */
};

struct normal_node {
	enum normal_kind kind;
	struct normal_node *first; /* AND, OR, NOT, NOR: the first of the nodes inside */
	struct normal_node *next;

	/* FIELD */
	struct normal_path path;
	enum normal_op op;
	bool negated;            /* {"$not":{op:…}}, of operators without an opposite */
	struct json_value arg;   /* as it was written */
	bool exists;             /* EXISTS */
	struct normal_node *sub; /* ELEM_MATCH, ALL_MATCH, KEY_MAP_MATCH */
};

/*
 * Reads a selector that selector_compile() has accepted. STATUS_LIMIT when the arena is full; the
 * failures of the JSON reader and of step_count().
 */
MUST_USE enum status normal_read(struct str text, struct arena *arena, struct normal_node **ret);

/* Appends the selector as JSON text, as CouchDB's _explain and its design documents show it. */
void normal_write(const struct normal_node *n, struct buf *out);

/* Takes the name of a field apart. STATUS_INVALID for an empty name in it; STATUS_LIMIT. */
MUST_USE enum status normal_path_read(struct str field, struct arena *arena,
				      struct normal_path *ret);

bool normal_path_eq(const struct normal_path *a, const struct normal_path *b);

/* True if the path is the one name. */
bool normal_path_is(const struct normal_path *path, const char *name);

/*
 * True if every document that matches has a value at `path`, as CouchDB decides it: from $and and
 * $or, and from conditions that are false for a field that is not there.
 */
bool normal_requires(const struct normal_node *n, const struct normal_path *path);

/* True if a document matches only with one value at `path`, by an $eq that every match needs. */
bool normal_is_constant(const struct normal_node *n, const struct normal_path *path);

#endif
