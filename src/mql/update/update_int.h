/* A compiled update, and the tree of a document that is being updated. */
#ifndef FROND_MQL_UPDATE_INT_H
#define FROND_MQL_UPDATE_INT_H

#include "mql/match/match.h"
#include "mql/update/update.h"
#include "mql/value_set.h"

enum mql_update_op {
	MQL_UPDATE_SET,
	MQL_UPDATE_SET_ON_INSERT,
	MQL_UPDATE_UNSET,
	MQL_UPDATE_INC,
	MQL_UPDATE_MUL,
	MQL_UPDATE_MIN,
	MQL_UPDATE_MAX,
	MQL_UPDATE_RENAME, /* `value`: the path of the source */
	MQL_UPDATE_SOURCE, /* of a $rename: not done by itself, it only conflicts */
	MQL_UPDATE_CURRENT_DATE,
	MQL_UPDATE_PUSH,
	MQL_UPDATE_ADD_TO_SET,
	MQL_UPDATE_POP,
	MQL_UPDATE_PULL,
	MQL_UPDATE_PULL_ALL,
	MQL_UPDATE_BIT,
};

struct mql_array_filter {
	struct str name;
	struct mql_match *match;
	struct mql_array_filter *next;
	bool used;
};

/* A field that $sort of $push compares documents by. */
struct mql_push_key {
	struct str path;
	bool descending;
};

/* What stands beside $each in a $push. It is done in this order. */
struct mql_push {
	int64_t position; /* where the new elements go: from the end if less than 0 */
	bool sort;
	bool descending;                 /* where elements are compared as a whole */
	const struct mql_push_key *keys; /* compared one after the other; NULL: as a whole */
	size_t key_count;
	int64_t slice; /* how many elements stay: the last ones if less than 0 */
};

struct mql_modifier {
	enum mql_update_op op;
	size_t number; /* in the order of the update */
	struct str path;
	struct bson_value value;
	bool each;                /* of $push, $addToSet: `value` is the array of $each */
	struct mql_value_set set; /* of $pullAll, and of $addToSet with $each: their values */
	struct mql_match *match;  /* of $pull with conditions */
	struct mql_push *push;    /* of $push with more than $each; else NULL */
};

struct mql_update {
	bool replacement;
	struct str document;
	const struct mql_modifier **modifiers; /* by path */
	size_t count;
	struct mql_array_filter *filters;
};

/*
 * Compares two paths name by name. A path comes before those below it, and nothing else is between;
 * `*ret_below` if they are the same, or one is below the other.
 */
int mql_update_compare_paths(struct str a, struct str b, bool *ret_below);

/*
 * True if a name in a path is `$[x]`, which stands for elements of an array: `*ret` is the
 * identifier x, which is empty for `$[]`. `$` alone stands for one element; any other name is that
 * of a field, also if it begins with `$`.
 */
bool mql_update_name_is_filtered(struct str name, struct str *ret);

/* ---- The tree (tree.c) ---- */

/* A value of the document. What no path leads into stays the bytes that it was. */
struct mql_tree {
	struct str name; /* in a document */
	struct bson_value value;
	bool open; /* its members are nodes; `value` has the type alone */
	struct mql_tree *first, *last;
	struct mql_tree *next, *prev; /* beside it, of its parent's members */
	size_t count;
	unsigned finds; /* how often a member was looked for, until there is an index */
	struct mql_tree_index *index;
};

/* Makes nodes of the members of a document or an array. */
MUST_USE enum status mql_tree_open(struct mql *q, struct mql_tree *node);
/* The member of that name or position; NULL. The node is open. */
MUST_USE enum status mql_tree_find(struct mql *q, struct mql_tree *node, struct str name,
				   struct mql_tree **ret);
/* Links the members anew, in the order of `members`: these, and no others, are the node's. */
void mql_tree_link(struct mql_tree *node, struct mql_tree **members, size_t count);
MUST_USE enum status mql_tree_append(struct mql *q, struct mql_tree *node, struct str name,
				     const struct bson_value *v, struct mql_tree **ret);
void mql_tree_remove(struct mql_tree *node, struct mql_tree *member);
/* The value of a node, whose bytes are made anew if it was opened. */
MUST_USE enum status mql_tree_value(struct mql *q, const struct mql_tree *node,
				    struct bson_value *ret);
MUST_USE enum status mql_tree_write(struct mql *q, const struct mql_tree *root, bool id_first,
				    struct str *ret);

/* ---- What operators do (op.c) ---- */

/*
 * Applies a modifier at a node that exists, or at NULL: none, and `*ret` is then the value to be
 * created, if `*ret_create`. `*ret_appended`: how many elements have been put behind an array's
 * others, if that is all that has happened to it.
 */
struct mql_applied {
	bool changed;
	bool create, remove;
	struct bson_value value; /* to be created */
	size_t appended;
};
MUST_USE enum status mql_update_apply(struct mql *q, const struct mql_modifier *m,
				      struct mql_tree *node, struct mql_applied *ret);

/* ---- $push with more than $each (push.c) ---- */

/* Reads $position, $sort or $slice into m->push; false in `*ret` if `e` is none of them. */
MUST_USE enum status mql_push_compile(struct mql *q, struct mql_modifier *m,
				      const struct bson_element *e, bool *ret);
/* `array` is open. `*ret_appended` as in struct mql_applied; `*ret_changed`: not as it was. */
MUST_USE enum status mql_push_run(struct mql *q, const struct mql_modifier *m,
				  struct mql_tree *array, size_t *ret_appended, bool *ret_changed);

#endif
