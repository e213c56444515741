/* What a client asks of a feed. A plain value; what it points to lies in the request's arena. */
#ifndef FROND_DOOR_COUCH_LIST_FEED_H
#define FROND_DOOR_COUCH_LIST_FEED_H

#include "door/couch/list/id_set.h"
#include "index/selector/selector.h"
#include "model/revisioned/revisioned.h"

enum {
	COUCH_DIRECT_IDS = 100, /* up to so many documents are looked up one by one */
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
	COUCH_FILTER_FUNCTION, /* of a design document */
};

struct couch_filter_function;

struct couch_changes_args {
	enum couch_feed feed;
	struct str filter_name; /* as it was given; empty: none */
	enum couch_filter filter;
	bool since_now;
	struct catalog_seq since;
	uint64_t limit;
	bool descending;
	bool all_heads; /* style=all_docs */
	bool include_docs;
	bool conflicts;
	unsigned doc_flags;      /* of enum couch_doc_flags: how documents show their attachments */
	uint64_t heartbeat_ms;   /* 0: none */
	uint64_t timeout_ms;     /* without a heartbeat */
	uint64_t seq_interval;   /* 0: every row has its seq */
	struct couch_id_set ids; /* of COUCH_FILTER_DOC_IDS */
	struct selector *selector;                    /* of COUCH_FILTER_SELECTOR */
	struct selector_fields *fields;               /* of its documents; NULL: all of them */
	const struct couch_filter_function *function; /* of COUCH_FILTER_FUNCTION */
};

/* True if the client wants everything, and has named no place to go on from. */
static inline bool
couch_feed_is_from_beginning(const struct couch_changes_args *args)
{
	const struct catalog_seq beginning = { 0 };

	return catalog_seq_cmp(&args->since, &beginning) == 0;
}

static inline bool
couch_feed_is_array(const struct couch_changes_args *args)
{
	return args->feed == COUCH_FEED_NORMAL || args->feed == COUCH_FEED_LONGPOLL;
}

#endif
