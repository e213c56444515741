/*
 * Change streams: what happens to the documents of a collection, of a database, or of all, from the
 * logs of the collections (model/plain), and what becomes of these, from its notices. A stream is a
 * cursor that does not end: it keeps the place behind the last event that was given, and a getMore
 * that finds nothing waits.
 *
 * A place is a Sequence. A resume token has the Sequence of the event, its time, whether the stream
 * has ended behind the event, and, if the event was split, which of its fragments were told. One
 * that is behind no event that is known has the time at which the client got it.
 *
 * Threading: a stream belongs to the command that has taken its cursor.
 */
#ifndef FROND_DOOR_MONGO_WATCH_WATCH_H
#define FROND_DOOR_MONGO_WATCH_WATCH_H

#include "door/mongo/txn/command.h"

struct cursor;
struct watch;

enum {
	WATCH_COLLECTIONS = 1000,             /* that one stream follows */
	WATCH_EVENTS = 250,                   /* in one answer */
	WATCH_BATCH_BYTES = 16 * 1024 * 1024, /* behind which an answer gets no more events */
	WATCH_FRAGMENTS = 255,                /* of an event */
	WATCH_NOTICES = 10000, /* of what became of collections, that one look reads */
	WATCH_KEYS = 64,       /* that a stream waits for; with more it looks again soon */
	WATCH_LOOK_MS = 200,   /* between two looks of such a one, or at the client */
	WATCH_AWAIT_MS = 1000, /* that a getMore waits, unless the client says otherwise */
	/*
	 * After a look that has found n events and left none, the next look waits n times this
	 * long: so where much is written, one look and one answer bring many events, and a lone
	 * event is told at once.
	 */
	WATCH_PACE_US = 500,
	WATCH_PACE_MOST_US = 10 * 1000,
	/* Events are kept for a day. Of those behind a younger token than this none is cleared. */
	WATCH_SURE_MS = 23 * 60 * 60 * 1000,
};

/*
 * True if the first stage of a pipeline makes a change stream; `*ret` are its options, or a value
 * of another type.
 */
bool watch_is_wanted(struct str pipeline, struct bson_value *ret);

struct watch_ask {
	struct str pipeline;
	struct str let; /* documents, or empty */
	struct str collation;
};

/* Answers such an aggregate on `collection`, which is empty for all of a database. */
MUST_USE enum status watch_open(struct call *c, struct str collection, const struct watch_ask *ask,
				int64_t batch);

/* Answers a getMore; `batch` 0: any number. `*ret_ends`: the cursor is to be freed. */
MUST_USE enum status watch_more(struct call *c, struct cursor *cursor, int64_t batch,
				bool *ret_ends);

void watch_free(struct watch *w); /* NULL is fine */

#endif
