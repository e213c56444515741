/*
 * An ordered map from keys to structs that embed a node: a treap, so that it stays balanced without
 * bookkeeping. It allocates nothing; nodes and the bytes of their keys belong to the caller and
 * must stay where they are while they are in the tree. Not thread-safe.
 */
#ifndef FROND_KV_EMBEDDED_TREE_H
#define FROND_KV_EMBEDDED_TREE_H

#include <stdbool.h>

#include "base/str.h"

struct tree_node {
	struct str key;
	struct tree_node *left;
	struct tree_node *right;
	struct tree_node *parent;
	uint32_t priority;
};

struct tree {
	struct tree_node *root;
	uint32_t random;
};

void tree_init(struct tree *t);

/* The node with this key, or NULL. */
struct tree_node *tree_find(const struct tree *t, struct str key);

/* The first node with a key >= `key`, or NULL. */
struct tree_node *tree_at_or_after(const struct tree *t, struct str key);

/* The last node with a key < `key`, or NULL. */
struct tree_node *tree_before(const struct tree *t, struct str key);

struct tree_node *tree_first(const struct tree *t);
struct tree_node *tree_next(const struct tree_node *n);

/*
 * Puts in `n`, whose key is set. When the key is there already nothing changes and the node that
 * has it is returned; otherwise NULL.
 */
struct tree_node *tree_insert(struct tree *t, struct tree_node *n);

/*
 * The same, beginning at `near`, a node of the tree or NULL: quick if the key comes right behind
 * that one's or right before it, and hardly slower if not.
 */
struct tree_node *tree_insert_near(struct tree *t, struct tree_node *near, struct tree_node *n);

void tree_remove(struct tree *t, struct tree_node *n);

#endif
