/* The tree that patches work on: patch_tree.c builds it, patch.c and patch_merge.c change it. */
#ifndef FROND_DOC_PATCH_INT_H
#define FROND_DOC_PATCH_INT_H

#include "doc/doc_int.h"
#include "doc/patch.h"

/*
 * A value. At first it is a run of leaves, which several nodes may share and which never change.
 * Before a container is changed it is opened into its children, each of which is a run again.
 */
struct patch_child;

struct patch_node {
	enum {
		PATCH_RUN,
		PATCH_OBJECT, /* children in the order of their encoded names */
		PATCH_ARRAY,
	} kind;
	size_t count; /* leaves of a run, or children */
	union {
		const struct kv_pair *leaves;
		struct patch_child *children;
	};
	union {
		size_t skip; /* RUN: the bytes of each key that lead to the value */
		size_t cap;  /* room for children */
	};
};

struct patch_child {
	struct str name; /* of an object's: as a tuple element */
	struct patch_node node;
};

enum patch_type {
	PATCH_TYPE_SCALAR,
	PATCH_TYPE_OBJECT,
	PATCH_TYPE_ARRAY,
};

struct patch_tree {
	struct arena *arena;
	struct err *err;
	struct patch_node root;
	size_t steps; /* of DOC_PATCH_STEPS */
	struct buf path;
};

/* `path` is to be released. */
void patch_tree_init(struct patch_tree *t, struct arena *arena, struct err *err);

/* The leaves of a document, or of an array, as a value. No leaves are an empty object. */
struct patch_node patch_run(const struct kv_pair *leaves, size_t count);

/* Counts work; STATUS_LIMIT when it is too much. */
MUST_USE enum status patch_work(struct patch_tree *t, size_t steps);

MUST_USE enum status patch_fail_memory(struct patch_tree *t);

MUST_USE enum status patch_type(const struct patch_node *node, enum patch_type *ret);

bool patch_is_null(const struct patch_node *node);

/* Opens a container, unless it is open. */
MUST_USE enum status patch_open(struct patch_tree *t, struct patch_node *node);

/* True if the object has that member, an encoded name; `*ret` is where it is, or belongs. */
bool patch_find(const struct patch_node *object, struct str name, size_t *ret);

/* Puts a child (its name in the arena or empty) in place `at` of an open container. */
MUST_USE enum status patch_insert(struct patch_tree *t, struct patch_node *container, size_t at,
				  struct str name, struct patch_node value);

MUST_USE enum status patch_remove(struct patch_tree *t, struct patch_node *container, size_t at);

/*
 * The value as one run with keys of its own. STATUS_PATH_TOO_LONG and STATUS_JSON_DEPTH for what no
 * document may hold.
 */
MUST_USE enum status patch_flatten(struct patch_tree *t, const struct patch_node *node,
				   struct patch_node *ret);

/* Whether two runs are the same JSON value; numbers are, if they are numerically equal. */
MUST_USE enum status patch_equal(struct patch_tree *t, const struct patch_node *a,
				 const struct patch_node *b, bool *ret);

/* Merges the object `changes` into `target` (RFC 7396), which becomes an object if it is none. */
MUST_USE enum status patch_merge(struct patch_tree *t, struct patch_node *target,
				 struct patch_node changes);

#endif
