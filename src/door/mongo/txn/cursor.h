/*
 * Cursors: where a query goes on when its client asks for more.
 *
 * A cursor keeps no transaction and no version, only the place behind the last document that was
 * sent. It lies in the memory of the process, belongs to the person who made it, and is used by one
 * command at a time. One that nobody asks for is removed after MONGO_CURSOR_MS.
 *
 * All that a cursor keeps is drawn from the memory of all requests, as that of a request which
 * lasts as long as its client likes (net/memory.h): cursors that nobody asks for leave short
 * requests their part, and end when others wait. A pipeline that goes on (`live`) has a part of its
 * own. A cursor whose number has not reached its client ends with the command that has made it.
 *
 * Thread-safe; a cursor that was taken belongs to its taker.
 */
#ifndef FROND_DOOR_MONGO_TXN_CURSOR_H
#define FROND_DOOR_MONGO_TXN_CURSOR_H

#include "base/budget.h"
#include "base/buf.h"
#include "door/mongo/txn/mongo_int.h"

enum {
	MONGO_CURSOR_MS = 10 * 60 * 1000,
	MONGO_CURSORS = 10000, /* of the process */
	CURSOR_PLACE_BYTES = 16 * 1024,
	CURSOR_REQUEST_BYTES = 48000000, /* of one command */
	CURSOR_ROWS_BYTES = 128 * 1024 * 1024,
	CURSOR_BATCH_BYTES = 16 * 1024 * 1024, /* behind which a batch gets no more documents */
	CURSOR_SHORT_BYTES = 64 * 1024,        /* of a batch that waits for no turn */
	CURSOR_NS_BYTES = 256,
	CURSOR_USER_BYTES = 257,
};

struct call;
struct session_pattern;
struct watch;

struct cursor {
	struct expiring_entry entry; /* first */
	int64_t id;
	char ns[CURSOR_NS_BYTES];
	char user[CURSOR_USER_BYTES];
	uint8_t session[16];
	bool has_session;
	int64_t txn;     /* txnNumber of the transaction that it belongs to; -1: none */
	bool stays;      /* noCursorTimeout */
	bool lists;      /* it is of no documents, and also for people who administer */
	uint64_t max_ns; /* what its queries have not used of maxTimeMS yet; 0: no limit */
	uint64_t skip;
	uint64_t left;            /* of the limit; UINT64_MAX: none */
	struct budget_part part;  /* of these buffers, and of the cursor itself */
	struct budget_part *kept; /* of most of what it keeps: this one, or that of what goes on */
	struct buf request;       /* the command that has made it */
	struct buf place;
	struct buf rows; /* instead of a place: the documents that are left, one behind the other */
	size_t rows_at;
	void *live; /* instead of both: a pipeline that goes on */
	void (*live_free)(void *live);
	struct watch *watch; /* of a change stream, which has its own place; NULL: of a query */
	void (*watch_free)(struct watch *w);
};

/* Of a batch that has become long: waits for a turn to read first. */
bool cursor_long_batch_has_room(struct call *c, size_t bytes);

/*
 * True if a batch of so many bytes may get more of them: up to CURSOR_BATCH_BYTES, or less while
 * memory is short.
 */
static inline bool
cursor_batch_has_room(struct call *c, size_t bytes)
{
	return bytes < CURSOR_SHORT_BYTES || cursor_long_batch_has_room(c, bytes);
}

void cursors_init(struct expiring *cursors);
/* When the door ends: all of them, which may wait for files. */
void cursors_end(struct mongo *m);

/*
 * A new cursor of the command's person, session and transaction. It is busy until cursor_keep() or
 * cursor_free(). Fails, explained, if there are MONGO_CURSORS already, or no memory for one more of
 * them. STATUS_NOMEM.
 */
MUST_USE enum status cursor_begin(struct call *c, struct str ns, struct cursor **ret);
/* Keeps the command, and where the query goes on. STATUS_LIMIT: there is no memory for cursors. */
MUST_USE enum status cursor_set(struct cursor *c, struct str request, struct str place);
/* Likewise the documents that are left, each as it is sent. Takes the buffer over. */
MUST_USE enum status cursor_set_rows(struct cursor *c, struct buf *rows);
/* Busy from now on. NULL: there is none for that person, or another command has it. */
struct cursor *cursor_take(struct mongo *m, int64_t id, struct str ns, const char *user);
/*
 * Gives a new cursor back for the next command, whose number goes to `*ret_id`. `status` is that of
 * cursor_set() or cursor_set_rows(): if it is a failure, the cursor is freed, and the failure is
 * returned, explained where there is no memory for cursors.
 */
MUST_USE enum status cursor_keep(struct call *c, struct cursor *cursor, enum status status,
				 int64_t *ret_id);
/* Gives it back for the next command. */
void cursor_give(struct mongo *m, struct cursor *c);
/* One that was taken. */
void cursor_free(struct mongo *m, struct cursor *c);
/* False: there is none. */
bool cursor_kill(struct mongo *m, int64_t id, struct str ns, const char *user);
/* All of these sessions. */
void cursor_kill_sessions(struct mongo *m, const struct session_pattern *which);

#endif
