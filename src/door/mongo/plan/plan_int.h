/* What the files of plans share. */
#ifndef FROND_DOOR_MONGO_PLAN_PLAN_INT_H
#define FROND_DOOR_MONGO_PLAN_PLAN_INT_H

#include "door/mongo/plan/plan.h"
#include "index/bson/form.h"
#include "index/plan/choice.h"

/* What a place begins with. */
struct place_head {
	uint64_t index; /* its number; 0: the place is one by `_id` */
	uint64_t db;    /* the number of the collection */
};

/* A place has these instead of an index's number if branches are merged, forwards or in reverse. */
#define PLAN_PLACE_MERGED         UINT64_MAX
#define PLAN_PLACE_MERGED_REVERSE (UINT64_MAX - 1)

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
 * All values of a kind, since a comparison finds only values of its own. False for kinds that
 * nothing is gained by.
 */
bool plan_kind_interval(const struct bson_value *v, struct value_interval *ret);
/* Leaves what fulfils this demand, too. False in `*ret_any`: it is none that bounds. */
MUST_USE enum status plan_bounds_narrow(const struct value_order *o, const struct mql_demand *d,
					struct value_interval *bounds, bool *ret_any);

/* ---- Candidates ---- */

/* What may be asked of an index. */
struct candidate {
	const struct index_def *def;
	const struct str *names; /* of its columns */
	uint32_t arrays;         /* columns that documents may have arrays at */
	uint32_t cuts;           /* those with values that may be cut in keys */
	bool foreign; /* it orders texts otherwise than the query: only other values are asked */
	struct value_set columns[INDEX_COLUMNS];
	size_t points; /* of so many columns first, each a value by itself */
	bool bounded;  /* of one more, an interval */
	size_t ranges;
	bool sorts;  /* its entries are in the order of the sort: */
	bool merges; /* if its ranges are merged */
	bool sorts_reverse;
	struct key_ranges keys; /* of plan_candidate_ranges(); items NULL: not made yet */
	uint64_t rows;          /* of plan_candidate_count() */
	/* Instead of what columns are asked for: of `min` and `max`, one of which may be NULL. */
	bool between;
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
	struct index_work work;
	struct value_order order; /* that of the question, with this work or another one's */
	bool has_written;         /* documents may have arrays that no definition knows of yet */
	const struct mql_demand *demands;
	size_t count;
};

/* How a question with this collation orders values. */
static inline struct value_order
plan_order(const struct bson_texts *texts, struct index_work *w)
{
	return (struct value_order){ .form = &index_bson_form, .texts = texts, .w = w };
}

/* ---- Columns (plan_bounds.c) ---- */

/* True if the value, or one inside of it, is a text that a collation orders. */
bool plan_has_text(const struct bson_value *v);
/* True if the index orders texts otherwise than the query does. */
bool plan_is_foreign(const struct plan_ask *ask, const struct index_def *def);

/* Names that count elements of arrays lead entries elsewhere than filters and sorts. */
bool plan_path_has_number(struct str path);

/* ---- `min` and `max` (plan_between.c) ---- */

/*
 * Fails, as MongoDB does, for bounds that are not those of an index with this key, or that are
 * texts of a `foreign` one.
 */
MUST_USE enum status plan_between_check(struct call *c, const struct plan_ask *ask, struct str key,
					bool foreign);
/* Fails for bounds that are not in order. */
MUST_USE enum status plan_between_fail_order(struct call *c);
/* The range of the index that a hint names. */
MUST_USE enum status plan_between_make(struct call *c, const struct choosing *x,
				       const struct index_def *def, struct candidate *ret);

/* ---- Answers from an index alone (plan_cover.c) ---- */

bool plan_covers(const struct choosing *x, const struct candidate *one);
/* Of one that covers: how many columns tell all that the filter and the distinct value are. */
size_t plan_distinct_columns(const struct choosing *x, const struct candidate *one);
/* Of an index that covers: what is looked at. */
void plan_columns_choose(const struct plan_cover *cover, const struct candidate *one,
			 struct plan_columns *ret);
/* The document of an entry's values, in the arena: as much of it as is looked at. */
MUST_USE enum status plan_covered_document(const struct plan_columns *columns, struct str values,
					   struct arena *arena, struct str *ret);

/* ---- Orders (plan_sort.c) ---- */

/* Sets `sorts`, `merges`, `sorts_reverse`: whether the entries asked for give the order. */
void plan_sort_look(const struct choosing *x, struct candidate *one);

/* ---- $or (plan_or.c) ---- */

/*
 * Makes of `plan`, which is that by `_id`, one by branches, if each of them has an index. `sorts`:
 * an index gives the order that is asked for, and may read less; or NULL.
 */
MUST_USE enum status plan_or_choose(const struct choosing *x, struct candidate *sorts,
				    struct plan *plan, bool *ret_chosen);

struct mql_branch;

/* The demands of the branch with those of the filter beside the $or; `ask` is what it asks. */
MUST_USE enum status plan_or_demands(const struct choosing *x, const struct mql_branch *branch,
				     const struct plan_ask *ask, struct choosing *ret);

/* True of an index that can be used; NULL: any can. */
typedef bool plan_suits(const struct choosing *x, const struct candidate *one);

/*
 * A branch by the best index that suits. Adds the entries that it reads to `*entries`. `*ret_any`
 * is false if there is none.
 */
MUST_USE enum status plan_or_branch(const struct choosing *x, plan_suits *suits,
				    struct plan_branch *ret, uint64_t *entries, bool *ret_any);

/* ---- $or in the order of a sort (plan_or_sort.c) ---- */

/*
 * Changes `plan`, which is that by `_id`, into one that merges the branches, if each of them has an
 * index in the order of the sort. `sorts`: as above.
 */
MUST_USE enum status plan_or_sort(const struct choosing *x, struct candidate *sorts,
				  struct plan *plan, bool *ret_chosen);

/* ---- Single values (plan_points.c) ---- */

bool plan_is_text(enum bson_type type);
/* True if a demand of this value is one of keys: a collation makes other strings equal. */
bool plan_value_has_key(const struct plan_ask *ask, const struct bson_value *v);
bool plan_is_of_id(const struct mql_demand *d);
/* Which values are asked for one by one. */
struct plan_points {
	struct str path;
	bool whole;       /* not those of elements of arrays */
	bool foreign;     /* not texts */
	uint32_t refused; /* not those of these types, given as bits */
	size_t most;      /* of more values the interval that they lie in */
};

bool plan_demand_is_asked(const struct mql_demand *d, const struct plan_points *p);
/* The values that are demanded by `$eq`, or else by `$in`. False in `*ret_any`: none are. */
MUST_USE enum status plan_points_of(const struct mql_demand *demands, size_t count,
				    const struct plan_points *p, const struct value_order *o,
				    struct value_set *ret, bool *ret_any);
/* `_id`s, if the demands are for some. */
MUST_USE enum status plan_points_choose(const struct plan_ask *ask,
					const struct mql_demand *demands, size_t count,
					struct mql *q, struct value_set *ret, bool *ret_points);
/* ---- Candidates (plan_candidate.c) ---- */

void plan_choosing_begin(struct choosing *x, struct plain *p, const struct plan_ask *ask,
			 struct mql *q);
/* What is known of an index, of which nothing is asked. */
MUST_USE enum status plan_candidate_begin(const struct choosing *x, const struct index_def *def,
					  struct candidate *ret);
/*
 * What may be asked of an index: values of its first columns, and bounds of one more. Of columns
 * at which documents have arrays only one may be asked: the demands of two may be met by different
 * elements, which stand in different entries.
 */
MUST_USE enum status plan_candidate_make(const struct choosing *x, const struct index_def *def,
					 struct candidate *ret);
/* True if the index has all documents that the query can find. */
bool plan_index_has_all(const struct choosing *x, const struct index_def *def);
/* False for those that are built, or hidden. */
bool plan_index_is_usable(const struct index_def *def);
/* True if `a` is asked rather than `b`. */
bool plan_candidate_is_better(const struct candidate *a, const struct candidate *b);
/*
 * Counts one that gives the order that is asked for, if documents that match lie evenly in it, and
 * there are `found`: it is read until there are as many as are wanted.
 */
MUST_USE enum status plan_candidate_walked(const struct choosing *x, struct candidate *sorts,
					   uint64_t found, uint64_t *ret);
/* The best index for the demands, of those that suit; `def` is NULL if none is of use. */
MUST_USE enum status plan_index_best(const struct choosing *x, plan_suits *suits,
				     struct candidate *ret);
/* Makes `keys`, unless they are made. */
MUST_USE enum status plan_candidate_ranges(const struct choosing *x, struct candidate *one);
/* Sets `rows`: about how many entries a candidate reads. */
MUST_USE enum status plan_candidate_count(const struct choosing *x, struct candidate *one);
/* ---- By an index (plan_index.c): `plan` is that by `_id`, which is changed ---- */

/* By the best one, unless that by `_id` is as good. */
MUST_USE enum status plan_index_choose(struct plain *p, const struct plan_ask *ask, struct mql *q,
				       struct plan *plan);
/* By `def`, or, if that is NULL, by the one that the hint names. Fails if there is none. */
MUST_USE enum status plan_index_hinted(struct call *c, struct plain *p, const struct plan_ask *ask,
				       const struct index_def *def, struct mql *q,
				       struct plan *plan);
/* By that of a place. Fails if it is gone. */
MUST_USE enum status plan_index_resume(struct call *c, struct plain *p, const struct plan_ask *ask,
				       struct mql *q, const struct place_head *head,
				       struct plan *plan);
/* Goes on with merged branches. Fails if one of their indexes is gone. */
MUST_USE enum status plan_or_sort_resume(struct call *c, struct plain *p,
					 const struct plan_ask *ask, struct mql *q,
					 const struct place_head *head, struct plan *plan);
/* Goes on with a walk by `_id`: by branches, if they find what is left. */
MUST_USE enum status plan_or_resume(struct plain *p, const struct plan_ask *ask, struct mql *q,
				    struct plan *plan);

#endif
