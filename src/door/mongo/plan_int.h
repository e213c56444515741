/* What the files of plans share. */
#ifndef FROND_DOOR_MONGO_PLAN_INT_H
#define FROND_DOOR_MONGO_PLAN_INT_H

#include "door/mongo/plan.h"

/* What a place begins with. */
struct place_head {
	uint64_t index; /* its number; 0: the place is one by `_id` */
	uint64_t db;    /* the number of the collection */
};

static inline struct place_head
plan_place_head(struct str place)
{
	struct place_head head;

	assert(place.len >= sizeof(head));
	memcpy(&head, place.ptr, sizeof(head));
	return head;
}

/* ---- Bounds (plan_bounds.c) ---- */

/*
 * The bounds of all values of a kind, since a comparison finds only values of its own. False for
 * kinds whose bounds nothing is gained by.
 */
bool plan_kind_bounds(const struct bson_value *v, struct bson_value *ret_from,
		      struct bson_value *ret_to);
/* The narrower of the bound that is there and this one. */
void plan_bound_from(struct plan_bounds *b, const struct bson_value *v, bool open);
void plan_bound_to(struct plan_bounds *b, const struct bson_value *v, bool open);
/* Bounds that also fulfil this demand. False: it is none that bounds. */
bool plan_bounds_narrow(struct plan_bounds *b, const struct mql_demand *d);

/* ---- Candidates ---- */

/* What is asked of one column: values, or else bounds. */
struct column_ask {
	bool has_points;
	const struct bson_value *points;
	size_t count;
	struct plan_bounds bounds;
};

/* What may be asked of an index. */
struct candidate {
	const struct index_def *def;
	struct column_ask columns[INDEX_COLUMNS];
	size_t points; /* of so many columns first */
	bool bounded;  /* one more has bounds */
	size_t ranges;
	bool sorts; /* its entries are in the order of the sort */
	bool sorts_reverse;
	/* Instead of all that: of `min` and `max`, either of which may be NULL. NULL: no. */
	const struct index_range *between;
	const struct bson_value *min;
	const struct bson_value *max;
	bool covers;     /* it has all that is looked at */
	size_t distinct; /* see struct plan */
};

/* What all candidates share. */
struct choosing {
	struct plain *p;
	const struct plan_ask *ask;
	struct mql *q;
	const struct mql_demand *demands;
	size_t count;
};

/* ---- Columns (plan_bounds.c) ---- */

/* Columns that documents may have arrays at, and those with values that were cut. */
uint32_t plan_arrays_of(const struct choosing *x, const struct index_def *def);
uint32_t plan_cuts_of(const struct choosing *x, const struct index_def *def);

/* Names that count elements of arrays lead entries elsewhere than filters and sorts. */
bool plan_path_has_number(struct str path);

/* ---- `min` and `max` (plan_between.c) ---- */

/* Fails, as MongoDB does, for bounds that are not those of an index with this key. */
MUST_USE enum status plan_between_check(struct call *c, const struct plan_ask *ask, struct str key);
/* Fails for bounds that are not in order. */
MUST_USE enum status plan_between_fail_order(struct call *c);
/* The range of the index that a hint names. */
MUST_USE enum status plan_between_make(struct call *c, const struct choosing *x,
				       const struct index_def *def, struct candidate *ret);

/* ---- Answers from an index alone (plan_cover.c) ---- */

bool plan_covers(const struct choosing *x, const struct index_def *def);
/* Of one that covers: how many columns tell all that the filter and the distinct value are. */
size_t plan_distinct_columns(const struct choosing *x, const struct candidate *one);
/* Of an index that covers: what is looked at. */
void plan_columns_choose(const struct plan_cover *cover, const struct index_def *def,
			 struct plan_columns *ret);
/* The document of an entry's values, in the arena: as much of it as is looked at. */
MUST_USE enum status plan_covered_document(const struct plan_columns *columns, struct str values,
					   struct arena *arena, struct str *ret);

/* ---- Orders (plan_sort.c) ---- */

/* Sets `sorts` and `sorts_reverse`: whether the entries that are asked for give the order. */
void plan_sort_look(const struct choosing *x, struct candidate *one);

/* ---- By an index (plan_index.c): `plan` is that by `_id`, which is changed ---- */

/* By the best one, unless that by `_id` is as good. */
MUST_USE enum status plan_index_choose(struct plain *p, const struct plan_ask *ask, struct mql *q,
				       struct plan *plan);
/* By the one that the hint names. Fails if there is none. */
MUST_USE enum status plan_index_hinted(struct call *c, struct plain *p, const struct plan_ask *ask,
				       struct mql *q, struct plan *plan);
/* By that of a place. Fails if it is gone. */
MUST_USE enum status plan_index_resume(struct call *c, struct plain *p, const struct plan_ask *ask,
				       struct mql *q, const struct place_head *head,
				       struct plan *plan);

#endif
