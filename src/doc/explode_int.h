/* Taking a document apart: the state that explode.c and explode_order.c share. */
#ifndef FROND_DOC_EXPLODE_INT_H
#define FROND_DOC_EXPLODE_INT_H

#include "doc/doc.h"
#include "doc/doc_int.h"

/* A growing array of plain things, on the counted heap. */
struct list {
	void *items;
	size_t count;
	size_t cap;
};

struct member {
	uint64_t name_start; /* the first eight bytes of the name, for comparing */
	/* Encoded, in the key of the member's first leaf; packing: as it is, and lasting. */
	struct str name;
	size_t begin;    /* the first of its items: leaves, or bytes of the text with the comma */
	size_t items;    /* how many; known when the object ends */
	size_t term;     /* where its pair starts in the term... */
	size_t term_end; /* ...and ends; known when the object ends */
};

/* A container that the reader is inside of. */
struct frame {
	bool object;
	bool all_bytes;    /* an array of nothing but integers from 0 to 255, so far */
	size_t path_bytes; /* of the container's own path */
	size_t begin;      /* the first of its items: leaves, or bytes of the text */
	size_t member;     /* the first of its members in the list of members */
	size_t count;      /* an array's elements */
	size_t term;       /* where its list starts in the term */
};

struct hole {
	size_t begin;
	size_t end;
};

struct exploder {
	struct json_reader *r;
	struct arena *arena;
	const struct doc_limits *limits;
	size_t prefix_bytes;
	struct err *err;
	bool packing; /* the text is made, and no leaves */

	const char *begin; /* of the document's text */
	size_t specials_bytes;
	size_t depth;    /* frames in use */
	size_t path_max; /* the longest path */
	struct buf path;
	struct buf value;
	struct buf term;
	struct buf text;     /* packing: as far as it goes; a comma follows each value */
	struct list leaves;  /* struct kv_pair */
	struct list members; /* struct member, of all open objects */
	struct list moved;   /* room for putting items in order */
	struct list holes;   /* struct hole */
	struct list specials;
	struct frame frames[JSON_DEPTH_LIMIT + 1];
};

static inline struct kv_pair *
leaf_at(struct exploder *x, size_t i)
{
	return (struct kv_pair *)x->leaves.items + i;
}

/* How many items there are so far, and what one takes. */
static inline size_t
items_count(const struct exploder *x)
{
	return x->packing ? x->text.len : x->leaves.count;
}

static inline size_t
item_bytes(const struct exploder *x)
{
	return x->packing ? 1 : sizeof(struct kv_pair);
}

static inline struct member *
member_at(struct exploder *x, size_t i)
{
	return (struct member *)x->members.items + i;
}

/* A new item at the end, not set; NULL when out of memory. */
void *explode_list_add(struct list *l, size_t item_bytes, size_t first_cap);

/* Explains STATUS_NOMEM and returns it. */
enum status explode_fail_memory(struct exploder *x);

/*
 * Puts the members of the object that has just ended, and their items, in order and drops all but
 * the last of each name. The members are then forgotten; `*ret_count` is how many remained.
 */
MUST_USE enum status explode_order(struct exploder *x, const struct frame *f, size_t *ret_count);

/* The term without what dropped members left in it, in the arena; ptr is NULL when that is full. */
struct str explode_copy_term(struct exploder *x);

#endif
