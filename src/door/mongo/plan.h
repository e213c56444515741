/*
 * Plans: how a query comes by documents, before it looks whether they match.
 *
 * A plan is chosen in a transaction, by what the filter demands. Walking it gives each document
 * once, and a place behind it, from which another transaction goes on with the same plan. What a
 * plan gives need not match: the caller runs the filter on it.
 */
#ifndef FROND_DOOR_MONGO_PLAN_H
#define FROND_DOOR_MONGO_PLAN_H

#include "door/mongo/command.h"
#include "model/plain/plain.h"
#include "mql/match.h"

enum {
	/* Of an `_id` that bounds a range: the keys of longer ones are not in their order. */
	PLAN_BOUND_BYTES = 300,
	/* MongoDB's numbers for `min` and `max` without their index. */
	PLAN_NO_HINT = 51173,
	PLAN_OTHER_KEY = 51174,
};

enum plan_kind {
	PLAN_POINTS, /* by `_id`, one document after the other */
	PLAN_RANGE,  /* in the order of `_id`; without bounds all of the collection */
};

struct plan {
	enum plan_kind kind;
	bool reverse;
	const struct bson_value *ids; /* of PLAN_POINTS, in order, each of them once */
	size_t count;
	struct bson_value from, to; /* of PLAN_RANGE */
	bool has_from, has_to;
	bool from_open, to_open;
};

struct plan_ask {
	const struct mql_match *match;
	const struct bson_value *hint;  /* an index, by its name or its key; NULL: none */
	const struct bson_texts *texts; /* the collation; NULL: by bytes */
	const struct bson_value *min;   /* {_id: value}, the first key; NULL: none */
	const struct bson_value *max;   /* likewise, the one behind the last */
	int order;                      /* by `_id`: 1, or -1 for descending; 0: any */
};

/* In the arena of `q`. A hint that names no index fails as MongoDB does. */
MUST_USE enum status plan_choose(struct call *c, struct plain *p, const struct plan_ask *ask,
				 struct mql *q, struct plan *ret);

/* A walk in one transaction. Private, but for the functions below. */
struct plan_walk {
	const struct plan *plan;
	struct plain *p;
	enum kv_read mode;
	struct plain_scan scan;
	uint64_t at; /* how many of the points were read */
};

/* `place`: that of an earlier walk, to go on behind it; or empty. */
MUST_USE enum status plan_walk_open(struct plan_walk *w, const struct plan *plan, struct plain *p,
				    enum kv_read mode, struct str place);
/* The next document, in the arena. STATUS_NOT_FOUND at the end. */
MUST_USE enum status plan_walk_next(struct plan_walk *w, struct arena *arena, struct str *ret);
/* Behind the document that was read last; valid until the next one is read. */
struct str plan_walk_place(const struct plan_walk *w);
void plan_walk_close(struct plan_walk *w); /* also one that is all zero */

#endif
