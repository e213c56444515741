/* What the files of change streams share. */
#ifndef FROND_DOOR_MONGO_WATCH_WATCH_INT_H
#define FROND_DOOR_MONGO_WATCH_WATCH_INT_H

#include "catalog/keys.h"
#include "door/mongo/txn/data.h"
#include "door/mongo/watch/watch.h"
#include "mql/stage/stages.h"

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
	/*
	 * A time that no event behind this place is older than: that of the event itself, or, of a
	 * place that stands behind no event, when it was told. 0: not known.
	 */
	uint64_t ms;
	bool ended;
	uint8_t fragment; /* how many fragments of the event were told; 0: the whole event was */
};

enum watch_scope {
	WATCH_COLLECTION,
	WATCH_DATABASE,
	WATCH_ALL,
};

/* What a stream wants of the documents before and after events. */
enum watch_image {
	WATCH_IMAGE_OFF,
	WATCH_IMAGE_LOOKUP, /* the document as it is when the event is read */
	WATCH_IMAGE_WHEN_AVAILABLE,
	WATCH_IMAGE_REQUIRED,
};

struct watch_stages;

struct watch {
	enum watch_scope scope;
	char prefix[WATCH_NS_BYTES]; /* "db.collection"; "db."; empty: all */
	enum watch_image full;       /* fullDocument */
	enum watch_image before;     /* fullDocumentBeforeChange */
	bool expanded;               /* showExpandedEvents */
	bool splits;                 /* $changeStreamSplitLargeEvent */
	bool begun;                  /* `place` is known */
	struct watch_place place;
	uint64_t look_ns;            /* the next look comes no sooner; 0: at once */
	struct watch_stages *stages; /* behind $changeStream; NULL: none */
};

/* A collection whose log is read. */
struct watched {
	struct catalog_db *db;
	bool counted; /* it was opened; else it lies in the arena, and has another name by now */
	bool dropped;
	uint64_t dropped_ms; /* when it was dropped */
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
	bool has_before;
	struct str before; /* empty: it was not kept */
};

/* The place behind an event: the same for everybody who reads the event, at any time. */
struct watch_place happened_place(const struct happened *h);

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

/* Fails for one who may not read what the stream tells: of its database, or of all. */
MUST_USE enum status watch_check_rights(struct call *c, const struct watch *w);

void look_init(struct look *l, struct call *c, struct watch *w, int64_t batch);
void look_release(struct look *l);
/*
 * Looks until there is something to tell, or the deadline has come. Fails once the person may not
 * read that any more, also while it waits.
 */
MUST_USE enum status look_until(struct look *l, uint64_t deadline_ns);

/* An update whose description was left out becomes a replacement. */
bool watch_has_description(const struct plain_event *e);

/* ---- Large events (watch_split.c) ---- */

struct watch_field {
	struct bson_element e;
	size_t bytes;
};

/* How an event is split into several documents. All of it lies in the call's arena. */
struct watch_split {
	size_t count;
	struct watch_field *fields;
	size_t *ends; /* of each fragment, in `fields` */
};

bool watch_split_is_needed(struct str event);
/* STATUS_INVALID, explained, if one of the fields is too large for a document. */
MUST_USE enum status watch_split(struct call *c, struct str event, struct watch_split *ret);
/* Appends what the nth fragment has but the `_id`. */
void watch_split_put(struct bson_builder *b, const struct watch_split *s, size_t n);

/* ---- Stages (watch_stages.c) ---- */

/* Where events come from, one by one. */
struct watch_source {
	struct mql_source source; /* first: its `next` gives an event */
	struct str id;            /* the resume token of that one: a document */
};

/*
 * Compiles what stands behind $changeStream in a pipeline. `*ret` is NULL if that is nothing, but
 * for $changeStreamSplitLargeEvent, which `*ret_splits` tells. `let` and `collation` are
 * documents, or empty.
 */
MUST_USE enum status watch_stages_new(struct call *c, struct str pipeline, struct str let,
				      struct str collation, struct watch_stages **ret,
				      bool *ret_splits);
void watch_stages_free(struct watch_stages *s); /* NULL is fine */

/* Is given what the stages make of events, one by one. False in `*ret_more`: no more of them. */
typedef enum status watch_put(struct watch_source *from, struct str event, bool *ret_more);

/* Events for as long as more are wanted. `s` NULL: as they are. */
MUST_USE enum status watch_stages_run(struct watch_stages *s, struct call *c,
				      struct watch_source *from, watch_put *put);

#endif
