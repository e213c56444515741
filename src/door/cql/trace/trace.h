/*
 * What a request did, for a client that asks to be told (system_traces). A process keeps the latest
 * CQL_TRACES of them in memory; nothing of them is in the store.
 *
 * Threading: a trace is its request's until trace_keep(); the table may be used by any thread.
 */
#ifndef FROND_DOOR_CQL_TRACE_TRACE_H
#define FROND_DOOR_CQL_TRACE_TRACE_H

#include "serve/expiring.h"

enum {
	CQL_TRACES = 100,    /* that a process keeps */
	TRACE_ID_BYTES = 16, /* a UUID */
	TRACE_EVENTS = 20,   /* of a request; later ones are left out */
	TRACE_EVENT_BYTES = 160,
	TRACE_TEXT_BYTES = 1000, /* of a statement; what is longer is cut */
	TRACE_USER_BYTES = 256,
	TRACE_ADDRESS_BYTES = 16,
};

struct trace_event {
	uint64_t after_us; /* the request began */
	char text[TRACE_EVENT_BYTES];
};

struct trace {
	struct expiring_entry entry;
	uint8_t id[TRACE_ID_BYTES];
	uint64_t began_us;   /* since 1970 */
	uint64_t began_ns;   /* clock_mono_ns() */
	uint64_t took_us;    /* 0: it goes on */
	const char *message; /* such as "QUERY"; static */
	uint8_t client[TRACE_ADDRESS_BYTES];
	size_t client_len; /* 4 or 16 */
	size_t text_len;
	char text[TRACE_TEXT_BYTES]; /* of the statement */
	char user[TRACE_USER_BYTES]; /* who may read it, as administrators may */
	struct trace_event events[TRACE_EVENTS];
	size_t event_count;
};

/* A new one, which begins now; the caller fills in the client. NULL without memory. */
struct trace *trace_begin(const char *message, struct str user);
void trace_free(struct trace *t); /* NULL is fine */

/* What is done, cut to the whole characters that there is room for. `t` NULL: nothing happens. */
void trace_set_text(struct trace *t, struct str text);
__attribute__((format(printf, 2, 3))) void trace_note(struct trace *t, const char *fmt, ...);

/* ---- Those of the process ---- */

struct traces {
	struct expiring all; /* the oldest one goes when another comes */
};

void traces_init(struct traces *traces);
void traces_fini(struct traces *traces);

/* The request is answered: the trace is the table's from now on. NULL is fine. */
void trace_keep(struct traces *traces, struct trace *t);

/* Calls `take` for each, in no order, under the lock. A failure ends it. */
typedef enum status trace_take(void *arg, const struct trace *t);
MUST_USE enum status traces_each(struct traces *traces, trace_take *take, void *arg);

#endif
