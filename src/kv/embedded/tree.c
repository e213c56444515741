/*
 * == Invariant ==
 *
 * A treap: by its keys a search tree, by its priorities a heap. Every node has a priority that is
 * drawn when it is put in and is at least as high as those of its children. That makes the shape of
 * the tree the one it would have if the nodes had been put in by falling priority, which is to say
 * in random order: its depth is logarithmic, whatever the order of the keys.
 */
#include "kv/embedded/tree.h"

#include <assert.h>

void
tree_init(struct tree *t)
{
	*t = (struct tree){ .random = 0x9e3779b9 };
}

/* Xorshift. For balance it is enough that the numbers have nothing to do with the keys. */
static uint32_t
tree_next_priority(struct tree *t)
{
	t->random ^= t->random << 13;
	t->random ^= t->random >> 17;
	t->random ^= t->random << 5;
	return t->random;
}

struct tree_node *
tree_find(const struct tree *t, struct str key)
{
	struct tree_node *n = t->root;

	while (n) {
		int c = str_cmp(key, n->key);

		if (c == 0)
			break;
		n = c < 0 ? n->left : n->right;
	}
	return n;
}

struct tree_node *
tree_at_or_after(const struct tree *t, struct str key)
{
	struct tree_node *n = t->root;
	struct tree_node *found = NULL;

	while (n) {
		int c = str_cmp(key, n->key);

		if (c == 0)
			return n;
		if (c < 0)
			found = n;
		n = c < 0 ? n->left : n->right;
	}
	return found;
}

struct tree_node *
tree_before(const struct tree *t, struct str key)
{
	struct tree_node *n = t->root;
	struct tree_node *found = NULL;

	while (n) {
		bool after = str_cmp(n->key, key) < 0;

		if (after)
			found = n;
		n = after ? n->right : n->left;
	}
	return found;
}

struct tree_node *
tree_first(const struct tree *t)
{
	struct tree_node *n = t->root;

	while (n && n->left)
		n = n->left;
	return n;
}

struct tree_node *
tree_next(const struct tree_node *n)
{
	struct tree_node *next = n->right;

	if (next) {
		while (next->left)
			next = next->left;
		return next;
	}
	for (next = n->parent; next && next->right == n; next = next->parent)
		n = next;
	return next;
}

static struct tree_node *
tree_prev(const struct tree_node *n)
{
	struct tree_node *prev = n->left;

	if (prev) {
		while (prev->right)
			prev = prev->right;
		return prev;
	}
	for (prev = n->parent; prev && prev->left == n; prev = prev->parent)
		n = prev;
	return prev;
}

/* The pointer of the tree, or of a parent, that leads to `n`. */
static struct tree_node **
tree_link_to(struct tree *t, const struct tree_node *n)
{
	if (!n->parent)
		return &t->root;
	return n->parent->left == n ? &n->parent->left : &n->parent->right;
}

/* Moves `n` up to the place of its parent, which becomes its child. The order of keys stays. */
static void
tree_rotate_up(struct tree *t, struct tree_node *n)
{
	struct tree_node *parent = n->parent;
	struct tree_node *moved;

	assert(parent && (parent->left == n || parent->right == n));
	*tree_link_to(t, parent) = n;
	n->parent = parent->parent;
	parent->parent = n;
	if (parent->left == n) {
		moved = n->right;
		n->right = parent;
		parent->left = moved;
	} else {
		moved = n->left;
		n->left = parent;
		parent->right = moved;
	}
	if (moved)
		moved->parent = parent;
}

/* Puts `n` in at `link`, which is NULL, and moves it up until the priorities are in order. */
static void
tree_place(struct tree *t, struct tree_node *n, struct tree_node *parent, struct tree_node **link)
{
	assert(!*link);
	n->left = NULL;
	n->right = NULL;
	n->parent = parent;
	n->priority = tree_next_priority(t);
	*link = n;
	while (n->parent && n->parent->priority < n->priority)
		tree_rotate_up(t, n);
	assert((!n->left || n->left->parent == n) && (!n->right || n->right->parent == n));
}

struct tree_node *
tree_insert(struct tree *t, struct tree_node *n)
{
	struct tree_node **link = &t->root;
	struct tree_node *parent = NULL;

	while (*link) {
		int c = str_cmp(n->key, (*link)->key);

		if (c == 0)
			return *link;
		parent = *link;
		link = c < 0 ? &parent->left : &parent->right;
	}
	tree_place(t, n, parent, link);
	return NULL;
}

/* The same right before `near`, which is behind it. */
static struct tree_node *
tree_insert_before(struct tree *t, struct tree_node *near, struct tree_node *n)
{
	struct tree_node *prev = tree_prev(near);
	int c = prev ? str_cmp(n->key, prev->key) : 1;

	if (c < 0)
		return tree_insert(t, n);
	if (c == 0)
		return prev;
	/* As below, with the sides exchanged. */
	assert(!prev || !near->left || !prev->right);
	if (prev && near->left)
		tree_place(t, n, prev, &prev->right);
	else
		tree_place(t, n, near, &near->left);
	return NULL;
}

struct tree_node *
tree_insert_near(struct tree *t, struct tree_node *near, struct tree_node *n)
{
	struct tree_node *next;
	int c;

	if (!near)
		return tree_insert(t, n);
	c = str_cmp(n->key, near->key);
	if (c < 0)
		return tree_insert_before(t, near, n);
	if (c == 0)
		return near;
	next = tree_next(near);
	c = next ? str_cmp(n->key, next->key) : -1;
	if (c > 0)
		return tree_insert(t, n);
	if (c == 0)
		return next;
	/*
	 * The key belongs between `near` and `next`, which are neighbours. One of two neighbours is
	 * an ancestor of the other, and the lower one has no child on the side of the upper one:
	 * that is the place.
	 */
	assert(!next || !near->right || !next->left);
	if (next && near->right)
		tree_place(t, n, next, &next->left);
	else
		tree_place(t, n, near, &near->right);
	return NULL;
}

void
tree_remove(struct tree *t, struct tree_node *n)
{
	struct tree_node *child;

	/* Down to a place with one child at most, which takes the node's place. */
	while (n->left && n->right)
		tree_rotate_up(t, n->left->priority > n->right->priority ? n->left : n->right);
	child = n->left ? n->left : n->right;
	assert(!child || child->parent == n);
	*tree_link_to(t, n) = child;
	if (child)
		child->parent = n->parent;
}
