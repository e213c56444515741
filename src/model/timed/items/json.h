/*
 * Documents: items that are a JSON value (TIMED_JSON). A small one lies in the item's header as
 * text; all others lie in leaves, a pair each, so that a part is read and changed without the
 * rest. What cannot be leaves (names that are too long for a key, more leaves than a transaction
 * writes) is a text in chunks. README.md has the layout.
 *
 * Whoever works on a document opens it, looks for nodes by member(), element() or JSONPaths, and
 * changes them by the functions below. In leaves each change is written at once; otherwise
 * timed_json_finish() writes the document. All of it lies in the item's arena.
 *
 * Failures beside those of reading and writing: STATUS_PATH_TOO_LONG, a change that leaves cannot
 * hold, before anything of it is written: see timed_json_fits(); STATUS_VALUE_TOO_LARGE, a document
 * that lies in no form, explained.
 */
#ifndef FROND_MODEL_TIMED_ITEMS_JSON_H
#define FROND_MODEL_TIMED_ITEMS_JSON_H

#include "model/timed/items/item.h"
#include "jtree/jtree.h"

enum {
	TIMED_JSON_PACKED_BYTES = 4096,    /* of text: a document with more lies in leaves */
	TIMED_JSON_PATH_BYTES = 8000,      /* of the way to a leaf in its key */
	TIMED_JSON_LEAVES_BYTES = 6000000, /* of leaves that are written together */
	TIMED_JSON_PIECE_BYTES = 60000,    /* of a text that is in pieces */
};

struct timed_json {
	struct timed_item *item;
	struct jtree_node *root; /* NULL: the item is not there */
	bool leaves;             /* it lies in leaves */
	bool changed;            /* otherwise: it is to be written */
	struct jtree_source source;
};

/* The item is a document, or not there. It outlives the struct, and both stay where they are. */
MUST_USE enum status timed_json_open(struct timed_item *item, struct timed_json *ret);

/*
 * Makes the item this whole document, whatever was there; one that is there keeps its expiry. The
 * value stays as it is; its nodes then say where they lie.
 */
MUST_USE enum status timed_json_set(struct timed_item *item, struct jtree_node *root);

/*
 * Whether leaves can hold the value below, or in place of, each of these nodes; `name`: of a member
 * that it becomes, or empty. If not, the caller has all of the document read by
 * timed_json_unfold(), and looks for its nodes again.
 */
MUST_USE enum status timed_json_fits(struct timed_json *j, struct jtree_node *const *nodes,
				     size_t count, struct str name, const struct jtree_node *value,
				     bool *ret);
MUST_USE enum status timed_json_unfold(struct timed_json *j);

/* Reads all that is below the node. */
MUST_USE enum status timed_json_load(struct timed_json *j, struct jtree_node *node);
/* The member of that name; NULL: there is none. */
MUST_USE enum status timed_json_member(struct timed_json *j, struct jtree_node *object,
				       struct str name, struct jtree_node **ret);

/* What is passed as a value is whole, in no tree, and belongs to the document afterwards. */

/* Gives a node another value. */
MUST_USE enum status timed_json_assign(struct timed_json *j, struct jtree_node *node,
				       struct jtree_node *value);
/* Adds a member to an object that has none of that name. */
MUST_USE enum status timed_json_add(struct timed_json *j, struct jtree_node *object,
				    struct str name, struct jtree_node *value);
/* Puts elements into an array, in front of the one at that index. */
MUST_USE enum status timed_json_insert(struct timed_json *j, struct jtree_node *array, uint64_t at,
				       struct jtree_node *const *values, size_t count);
/* Takes elements out of an array. */
MUST_USE enum status timed_json_cut(struct timed_json *j, struct jtree_node *array, uint64_t at,
				    uint64_t count);
/* Takes nodes out. None is below another one, none is named twice, none is the root. */
MUST_USE enum status timed_json_remove(struct timed_json *j, struct jtree_node *const *nodes,
				       size_t count);
/* Merges a value into a node (RFC 7396); the value stays as it is. */
MUST_USE enum status timed_json_merge(struct timed_json *j, struct jtree_node *node,
				      const struct jtree_node *patch);
/* Writes what was changed. Behind the last change. */
MUST_USE enum status timed_json_finish(struct timed_json *j);

/* ---- Documents as they lie, for dumps (json_leaf.c, json_dump.c) ---- */

enum timed_json_form {
	TIMED_JSON_SCALAR = 1, /* stored: never renumber */
	TIMED_JSON_LONG = 2,   /* a text in pieces */
	TIMED_JSON_OBJECT = 3,
	TIMED_JSON_ARRAY = 4,
};

/* What a pair of a document in leaves says. */
struct timed_json_leaf {
	enum timed_json_form form;
	uint64_t ordinal;         /* among the members of its object; of an element 0 */
	struct jtree_node scalar; /* SCALAR: `kind` and the value; its text is borrowed */
	uint64_t count;           /* LONG: bytes; OBJECT: members; ARRAY: elements */
	int64_t next; /* OBJECT: the ordinal of the next member; ARRAY: the first place */
};

void timed_json_leaf_put(const struct timed_json_leaf *leaf, struct buf *value);
/* `scratch` takes a text with NULs. STATUS_CORRUPT. */
MUST_USE enum status timed_json_leaf_parse(struct str value, struct buf *scratch,
					   struct timed_json_leaf *ret, struct err *err);

/* A pair of a document in leaves. */
struct timed_json_step {
	bool element; /* else a member */
	int64_t place;
	struct str name;
};

struct timed_json_pair {
	struct timed_json_step *steps;
	size_t count;
	bool is_piece; /* of a long text: the nth bytes; else a leaf */
	uint64_t n;
	struct str bytes;
	struct timed_json_leaf leaf;
};

/* Calls `fn` for each pair of a document in leaves, in their order. `pair` lasts for the call. */
MUST_USE enum status
timed_json_each(struct timed_item *item,
		enum status (*fn)(void *arg, const struct timed_json_pair *pair), void *arg);
/* Bytes of a document that is a text. */
MUST_USE enum status timed_json_text(struct timed_item *item, uint64_t offset, uint64_t len,
				     struct str *ret);

/*
 * Writes a document as another one has lain, pair by pair or in parts of its text, in as many
 * transactions as it takes. The item is not there before the first one. Nobody checks whether they
 * fit together, but for a text that is short: `frond verify` does. STATUS_INVALID, explained.
 */
MUST_USE enum status timed_json_put_pair(struct timed_item *item,
					 const struct timed_json_pair *pair);
MUST_USE enum status timed_json_put_text(struct timed_item *item, uint64_t offset,
					 struct str bytes);

#endif
