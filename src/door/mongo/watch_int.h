/* What the files of change streams share. */
#ifndef FROND_DOOR_MONGO_WATCH_INT_H
#define FROND_DOOR_MONGO_WATCH_INT_H

#include "catalog/keys.h"
#include "door/mongo/data.h"
#include "door/mongo/watch.h"

enum {
	WATCH_NS_BYTES = 256,
};

/*
 * A place in all logs of the store, as clients are told it: behind the event with that Sequence.
 * Where that event ends the stream, the place is between it and its `invalidate`, or, with `ended`,
 * behind both.
 */
struct watch_place {
	struct catalog_seq seq;
	uint64_t ms; /* when it was told; 0: not known */
	bool ended;
};

enum watch_scope {
	WATCH_COLLECTION,
	WATCH_DATABASE,
	WATCH_ALL,
};

struct watch {
	enum watch_scope scope;
	char prefix[WATCH_NS_BYTES]; /* "db.collection"; "db."; empty: all */
	bool looks_up;               /* fullDocument: "updateLookup" */
	bool expanded;               /* showExpandedEvents */
	bool begun;                  /* `place` is known */
	struct watch_place place;
};

/* A collection whose log is read. */
struct watched {
	struct catalog_db *db;
	bool counted; /* it was opened; else it lies in the arena, and has another name by now */
	bool dropped;
	struct plain plain;
};

/* Something that is told. */
struct happened {
	struct catalog_seq seq;
	const struct plain_notice *notice; /* NULL: something happened to a document */
	bool invalidates;                  /* the stream ends here */
	struct plain_event event;
	struct watched *of;
	struct str ns; /* of its collection, at that time */
	bool has_full;
	struct str full; /* empty: there is no such document any more */
};

/* One look at the logs. */
struct look {
	struct call *call;
	struct watch *watch;
	struct arena_mark mark;
	size_t most;
	bool waits; /* if there is nothing, what wakes is watched */

	uint8_t incarnation; /* of the store */
	struct plain_notice *notices;
	size_t notice_count;
	struct watched *collections;
	size_t collection_count;
	struct happened *events; /* in the arena */
	size_t count, cap;
	struct catalog_seq until; /* beyond it not all is known */
	bool cut;
	struct watch_place place; /* behind what was found */
	bool ends;                /* the last event is an `invalidate` */
	struct kv_future *keys[WATCH_KEYS];
	size_t key_count;
};

void look_init(struct look *l, struct call *c, struct watch *w, int64_t batch);
void look_release(struct look *l);
/* Looks until there is something to tell, or the deadline has come. */
MUST_USE enum status look_until(struct look *l, uint64_t deadline_ns);

/* An update whose description was left out is told as a replacement. */
bool watch_has_description(const struct plain_event *e);

#endif
