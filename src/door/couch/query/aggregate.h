/*
 * `aggregate` in _find: what is to be computed of the documents that match, instead of showing
 * them. Plain values in the request's arena.
 *
 *     aggregate.c       what a request asks for
 *     find_aggregate.c  how it is planned, and computed
 */
#ifndef FROND_DOOR_COUCH_QUERY_AGGREGATE_H
#define FROND_DOOR_COUCH_QUERY_AGGREGATE_H

#include "door/couch/query/members.h"
#include "door/couch/query/normal.h"

enum {
	AGGREGATE_GROUP_FIELDS = 16, /* of one query */
	AGGREGATE_FUNCTIONS = 64,    /* likewise: fields of which something is computed */
};

enum aggregate_kind {
	AGGREGATE_SUM,
	AGGREGATE_MIN,
	AGGREGATE_MAX,
	AGGREGATE_AVG,
	AGGREGATE_KINDS,
};

struct aggregate {
	bool counts; /* "count": true */
	/* The fields that make groups, and behind them those of the functions. */
	struct str *fields;
	struct normal_path *paths;
	enum aggregate_kind *kinds; /* of fields[i], from group_count on; ascending */
	size_t group_count;
	size_t count; /* of all fields */
};

/*
 * Reads the value of `aggregate` into a `struct aggregate *` (struct query_member). What is wrong
 * in it is refused as invalid_aggregate.
 */
MUST_USE enum status aggregate_read(struct couch_req *r, const struct json_value *v, void *into);

/* "sum" */
const char *aggregate_kind_name(enum aggregate_kind kind);

/* Appends what was asked for, as members without the braces around them. */
void aggregate_write(const struct aggregate *a, struct buf *out);

#endif
