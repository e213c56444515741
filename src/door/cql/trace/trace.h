/*
 * What a request did, for a client that asks to be told (system_traces). While the request runs,
 * its trace lies in the request's arena, so its memory counts as the client's. A process keeps
 * copies of the latest CQL_TRACES; nothing of them is in the store.
 *
 * Threading: a trace is its request's; the table of copies may be used by any thread.
 */
#ifndef FROND_DOOR_CQL_TRACE_TRACE_H
#define FROND_DOOR_CQL_TRACE_TRACE_H

#include "base/arena.h"
#include "serve/expiring.h"

enum {
	CQL_TRACES = 100,    /* that a process keeps */
	TRACE_ID_BYTES = 16, /* a UUID */
	TRACE_EVENTS = 20,   /* of a request; later ones are left out */
	TRACE_EVENT_BYTES = 160,
	TRACE_TEXT_BYTES = 1000, /* of a statement; what is longer is cut */
	TRACE_USER_BYTES = 256,
	TRACE_KEY_BYTES = 16, /* what tells two people apart who have had one name */
	TRACE_ADDRESS_BYTES = 16,
};

struct trace_event {
	uint64_t after_us; /* microseconds from the beginning of the request */
	char text[TRACE_EVENT_BYTES];
};

struct trace {
	struct expiring_entry entry;
	uint8_t id[TRACE_ID_BYTES];
	uint64_t began_us;   /* since 1970 */
	uint64_t began_ns;   /* clock_mono_ns() */
	uint64_t took_us;    /* of a copy that is kept */
	const char *message; /* such as "QUERY"; static */
	uint8_t client[TRACE_ADDRESS_BYTES];
	size_t client_len; /* 4 or 16 */
	size_t text_len;
	char text[TRACE_TEXT_BYTES]; /* of the statement */
	char user[TRACE_USER_BYTES]; /* who may read it, with this key; superusers may, too */
	uint8_t key[TRACE_KEY_BYTES];
	struct trace_event events[TRACE_EVENTS];
	size_t event_count;
};

/*
 * A new one, in the arena, which begins now. The caller fills in the client and the credential.
 * NULL when the arena is full.
 */
struct trace *trace_begin(struct arena *arena, const char *message, struct str user);

/* Both do nothing if `t` is NULL. What is too long is cut, a statement between two characters. */
void trace_set_text(struct trace *t, struct str text);
__attribute__((format(printf, 2, 3))) void trace_note(struct trace *t, const char *fmt, ...);

/* ---- Those of the process ---- */

struct traces {
	struct expiring all; /* the oldest one goes when another comes */
};

void traces_init(struct traces *traces);
void traces_fini(struct traces *traces);

/* The request is answered: keeps a copy of its trace, if there is memory for one. */
void trace_keep(struct traces *traces, const struct trace *t);

/* Calls `take` for each, in no order, under the lock. A failure ends it. */
typedef enum status trace_take(void *arg, const struct trace *t);
MUST_USE enum status traces_each(struct traces *traces, trace_take *take, void *arg);

#endif
