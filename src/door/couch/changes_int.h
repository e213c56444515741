/* What feeds share: what is asked of them, whom they tell, how they wait. */
#ifndef FROND_DOOR_COUCH_CHANGES_INT_H
#define FROND_DOOR_COUCH_CHANGES_INT_H

#include "door/couch/couch_int.h"
#include "index/selector/selector.h"

enum {
	COUCH_DIRECT_IDS = 100, /* so few documents are looked up, not looked for */
};

enum couch_feed {
	COUCH_FEED_NORMAL,
	COUCH_FEED_LONGPOLL,
	COUCH_FEED_CONTINUOUS,
	COUCH_FEED_EVENTSOURCE,
};

enum couch_filter {
	COUCH_FILTER_NONE,
	COUCH_FILTER_DOC_IDS,
	COUCH_FILTER_DESIGN,
	COUCH_FILTER_SELECTOR,
};

struct couch_changes_args {
	enum couch_feed feed;
	enum couch_filter filter;
	bool since_now;
	struct rev_seq since;
	uint64_t limit;
	bool descending;
	bool all_leaves; /* style=all_docs */
	bool include_docs;
	bool conflicts;
	uint64_t heartbeat_ms; /* 0: none */
	uint64_t timeout_ms;   /* without a heartbeat */
	uint64_t seq_interval; /* 0: every row has its seq */
	struct str *ids;       /* of COUCH_FILTER_DOC_IDS, sorted */
	size_t ids_count;
	struct selector *selector;      /* of COUCH_FILTER_SELECTOR */
	struct selector_fields *fields; /* of its documents; NULL: all of them */
};

MUST_USE enum status couch_changes_args_read(struct couch_req *r, struct couch_changes_args *ret);

/* The parameters alone, without a filter. */
MUST_USE enum status couch_feed_args_read(struct couch_req *r, struct couch_changes_args *ret);

static inline bool
couch_feed_is_array(const struct couch_changes_args *args)
{
	return args->feed == COUCH_FEED_NORMAL || args->feed == COUCH_FEED_LONGPOLL;
}

/* ---- Filters (changes_filter.c) ---- */

MUST_USE enum status couch_changes_filter_read(struct couch_req *r,
					       const struct json_member *members, size_t count,
					       struct couch_changes_args *ret);

/* What a row tells of a document's leaves. */
struct couch_change_leaves {
	struct rev_id *revs; /* those that the filter lets pass, the winner first; none: no row */
	size_t count;
	struct rev_id only;   /* where `revs` lies if there is one */
	struct rev_tree tree; /* all of them, if they had to be read */
};

/* In the request's arena and in `ret`, which stays where it is. */
MUST_USE enum status couch_change_leaves(struct couch_req *r, struct kv_tx *tx,
					 const struct couch_changes_args *args,
					 const struct rev_change *c,
					 struct couch_change_leaves *ret);

/* Appends what the filter's list of fields shows of the winner. */
MUST_USE enum status couch_change_fields(struct couch_req *r, struct kv_tx *tx,
					 const struct couch_changes_args *args,
					 const struct rev_change *c, struct buf *out);

/* ---- Waiting (feed_wait.c) ---- */

enum couch_wake {
	COUCH_WAKE_CHANGED,
	COUCH_WAKE_OVER, /* nothing came in time, or the server stops */
};

/* A feed on its way: what keeps its client listening. */
struct couch_feed_wait {
	struct couch_stream *stream;
	const struct couch_changes_args *args;
	/* On the monotonic clock: when something was last sent; since when nothing has happened. */
	uint64_t sent_ns;
	uint64_t idle_ns;
};

void couch_feed_wait_init(struct couch_feed_wait *w, struct couch_stream *stream,
			  const struct couch_changes_args *args);
/* Something has been sent. */
void couch_feed_sent(struct couch_feed_wait *w);
/* Something has happened: the timeout begins anew. */
void couch_feed_stirred(struct couch_feed_wait *w);
/* Sends a heartbeat if one is due. */
MUST_USE enum status couch_feed_beat(struct couch_feed_wait *w);

/*
 * Waits for one of the `n` events, with heartbeats meanwhile; behind them is room for two more.
 * `at_most_ms` (or WAIT_FOREVER): then it is COUCH_WAKE_CHANGED, too. STATUS_CANCELLED when the
 * client has gone.
 */
MUST_USE enum status couch_feed_park(struct couch_feed_wait *w, struct event **events, size_t n,
				     uint64_t at_most_ms, enum couch_wake *ret);

/* Lets the time pass, whatever happens meanwhile, unless the client goes or the server stops. */
MUST_USE enum status couch_feed_pause(struct couch_feed_wait *w, uint64_t ms, enum couch_wake *ret);

/* A Sequence as a JSON string. */
void couch_seq_write(const struct rev_seq *seq, struct buf *out);

#endif
