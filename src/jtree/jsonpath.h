/*
 * JSONPath, as RedisJSON 2.x has it: which nodes of a tree a path leads to.
 *
 *     $                      the root
 *     .name  ['name', "x"]   members
 *     [0]  [-1, 2]           elements, negative ones from the end
 *     [1:5]  [:-1]  [::2]    slices of arrays
 *     .*  [*]                all members or elements
 *     ..name  ..*  ..[0]     the same of the node and of all that is below it
 *     [?(@.a > 1 && …)]      members or elements of which a filter holds
 *
 * A filter compares, by == != < <= > >= and =~ (a regular expression), literals with what a path
 * from the element (@) or from the root ($) leads to, if that is one node; a path alone asks
 * whether it leads to one. && binds tighter than ||. Values of different kinds are neither equal
 * nor ordered; != is the opposite of ==.
 *
 * A path is compiled once, into an arena, borrows from its text and never changes. Failures:
 * STATUS_INVALID, explained; STATUS_LIMIT, the arena is full or one of the limits below is passed,
 * explained; those of step_count().
 */
#ifndef FROND_JTREE_JSONPATH_H
#define FROND_JTREE_JSONPATH_H

#include "jtree/jtree.h"

enum {
	JSONPATH_BYTES = 64 * 1024, /* of a path */
	JSONPATH_STEPS = 256,       /* of one path, or one path in a filter */
	JSONPATH_NESTED = 8,        /* filters inside each other */
	JSONPATH_BRACKETS = 32,     /* brackets inside each other in a filter */
	JSONPATH_MATCHES = 1000000, /* nodes that a path may lead to */
	JSONPATH_VISITS = 20000000, /* nodes that one evaluation may look at */
};

struct jsonpath;

MUST_USE enum status jsonpath_compile(struct str text, struct arena *arena,
				      const struct jsonpath **ret, struct err *err);

/* True if each step of it names one member or one element, so that it leads to one node at most. */
bool jsonpath_is_single(const struct jsonpath *path);
/* True for the root alone. */
bool jsonpath_is_root(const struct jsonpath *path);
/*
 * The path without its last step, which names one member or one element; false: it does not.
 * `*ret_name` is NULL if it is an element.
 */
MUST_USE enum status jsonpath_parent(const struct jsonpath *path, struct arena *arena,
				     const struct jsonpath **ret, struct str *ret_name,
				     bool *ret_fits);

struct jsonpath_matches {
	struct jtree_node **nodes;
	size_t count;
	size_t cap;
};

/*
 * The nodes that the path leads to, in the order in which they are met; one may be there twice.
 * What is not in memory is read from `source`, which may be NULL for a whole tree; all that is
 * below a step that is not of one name or one element is then in memory.
 */
MUST_USE enum status jsonpath_find(const struct jsonpath *path, struct jtree_node *root,
				   const struct jtree_source *source, struct arena *arena,
				   struct jsonpath_matches *ret, struct err *err);

#endif
