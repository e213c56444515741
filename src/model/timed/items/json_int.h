/* What the files about documents share: keys and leaves. */
#ifndef FROND_MODEL_TIMED_ITEMS_JSON_INT_H
#define FROND_MODEL_TIMED_ITEMS_JSON_INT_H

#include "model/timed/items/item_int.h"
#include "model/timed/items/json.h"

enum {
	JSON_STEP_MORE = 12,  /* bytes of a number, or around a name, in a key */
	JSON_LEAF_MORE = 40,  /* bytes of a leaf beside its text */
	JSON_PAIR_MORE = 100, /* that a transaction counts for a pair beside its bytes */
};

/* Bounds of what a leaf may say: nothing that is counted from there passes what a number holds. */
#define JSON_CHILDREN (UINT64_C(1) << 40)
#define JSON_PLACES   (INT64_C(1) << 60)

/*
 * The step in front of the number of a piece: empty bytes, which are no name and no place. It
 * cannot be null, by which history tells where a key ends.
 */
static inline void
json_put_pieces(struct buf *key)
{
	tuple_put_bytes(key, STR(""));
}

static inline bool
json_is_pieces(const struct tuple_elem *step)
{
	return step->kind == TUPLE_BYTES && !step->raw.len;
}

/* (body, TREE), behind which steps follow. */
MUST_USE enum status json_root_key(struct timed_item *item, struct buf *ret);
/* The key of a node, with room for `more` bytes. In the item's arena. */
MUST_USE enum status json_node_key(struct timed_item *item, const struct jtree_node *node,
				   size_t more, struct buf *ret);
/* All keys of what is below a key, without its own pair. */
MUST_USE enum status json_below(struct timed_item *item, struct str key, struct str *ret_begin,
				struct str *ret_end);

/* What a leaf says of a scalar, or of a container with nothing known of what is in it. */
MUST_USE enum status json_leaf_node(struct timed_item *item, const struct timed_json_leaf *leaf,
				    struct jtree_node **ret);
/* Writes the node's own pair. */
MUST_USE enum status json_leaf_write(struct timed_item *item, struct str key,
				     const struct jtree_node *node);
/* Writes a whole node with all that is below it; its ordinal, or its place, is set. */
MUST_USE enum status json_leaves_write(struct timed_item *item, struct jtree_node *node);
/* How many bytes that would be, and of the longest way, from the node on. */
MUST_USE enum status json_leaves_measure(const struct jtree_node *node, size_t way,
					 size_t *ret_bytes, size_t *ret_way);

/* ---- Reading (json_read.c) ---- */

MUST_USE enum status json_read_root(struct timed_json *j);
/* Reads the document's text, which lies in chunks. */
MUST_USE enum status json_read_text(struct timed_item *item, struct jtree_node **ret);
void json_source_init(struct timed_json *j);

/* ---- Checking (json_verify.c) ---- */

struct json_checked {
	size_t key_len;
	enum timed_json_form form;
	uint64_t expected; /* children, or bytes */
	uint64_t found;
	int64_t next;
};

/* The leaves of one body, in the order of their keys. */
struct json_check {
	bool there;
	bool broken; /* something cannot be where it is, or is not as much as it is said to be */
	size_t depth;
	struct buf key;     /* of the innermost one */
	struct buf scratch; /* a text or a name with NULs; too large for a fiber's stack */
	struct json_checked stack[JTREE_DEPTH + 1];
};

#define JSON_CHECK_INIT                                                                            \
	((struct json_check){ .key = CATALOG_KEY_INIT, .scratch = BUF_INIT(KV_LIMIT_VALUE_BYTES) })

/* A check of another body. */
void json_check_begin(struct json_check *c);
/* `steps` is the key of a pair behind the part's number. Fails only for want of memory. */
MUST_USE enum status json_check_take(struct json_check *c, struct str steps, struct str value);
/* False: the leaves do not fit together. */
bool json_check_end(struct json_check *c);
void json_check_release(struct json_check *c);
/* True for a text that timed_json_set() writes. */
MUST_USE enum status json_check_text(struct str text, struct arena *arena, bool *ret);

#endif
