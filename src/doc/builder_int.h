/* The builder's state, which builder.c and builder_order.c share. */
#ifndef FROND_DOC_BUILDER_INT_H
#define FROND_DOC_BUILDER_INT_H

#include "doc/builder.h"
#include "doc/doc_int.h"
#include "doc/json.h"

/* A growing array of plain things, on the counted heap. */
struct list {
	void *items;
	size_t count;
	size_t cap;
};

struct builder_member {
	uint64_t name_start; /* the first eight bytes of the name, for comparing */
	/* Encoded, in the key of the member's first leaf; packing: as it is, and lasting. */
	struct str name;
	size_t begin;    /* the first of its items: leaves, or bytes of the text with the comma */
	size_t items;    /* how many; known when the object ends */
	size_t mark;     /* the caller's, when the member began */
	size_t mark_end; /* …and when it ended; known when the object ends */
};

/* An open container. */
struct builder_frame {
	bool object;
	size_t path_bytes; /* of the container's own path */
	size_t begin;      /* the first of its items: leaves, or bytes of the text */
	size_t member;     /* the first of its members in the list of members */
	size_t count;      /* an array's elements */
};

struct doc_builder {
	struct doc_builder_options options;
	bool packing; /* the text is made, and no leaves */

	size_t depth;        /* frames in use */
	size_t path_max;     /* the longest path */
	size_t leaves_bytes; /* what the leaves so far take of a transaction */
	struct buf path;     /* of the current value, encoded */
	struct buf value;
	struct buf text;     /* packing: as far as it goes; a comma follows each value */
	struct list leaves;  /* struct kv_pair */
	struct list members; /* struct builder_member, of all open objects */
	struct list moved;   /* memory for putting items in order */
	struct list dropped; /* struct doc_span */
	struct builder_frame frames[JSON_DEPTH_LIMIT + 1];
};

static inline struct kv_pair *
builder_leaf(struct doc_builder *b, size_t i)
{
	return (struct kv_pair *)b->leaves.items + i;
}

/* How many items there are so far, and what one takes. */
static inline size_t
builder_items(const struct doc_builder *b)
{
	return b->packing ? b->text.len : b->leaves.count;
}

static inline size_t
builder_item_bytes(const struct doc_builder *b)
{
	return b->packing ? 1 : sizeof(struct kv_pair);
}

static inline struct builder_member *
builder_member(struct doc_builder *b, size_t i)
{
	return (struct builder_member *)b->members.items + i;
}

/* Doubles the memory of a list. False when out of memory; the list is then as it was. */
bool list_grow(struct list *l, size_t item_bytes, size_t first_cap);

/* A new item at the end, not set; NULL when out of memory. */
static inline void *
list_add(struct list *l, size_t item_bytes, size_t first_cap)
{
	if (l->count == l->cap && !list_grow(l, item_bytes, first_cap))
		return NULL;
	return (char *)l->items + l->count++ * item_bytes;
}

/* Explains STATUS_NOMEM and returns it. */
enum status builder_fail_memory(struct doc_builder *b);

/*
 * Puts the members of the object that has just ended, and their items, in order and drops all but
 * the last of each name. The members are then forgotten; `*ret_count` is how many remained. `mark`:
 * the caller's, now that the object has ended.
 */
MUST_USE enum status builder_order(struct doc_builder *b, const struct builder_frame *f,
				   size_t mark, size_t *ret_count);

#endif
