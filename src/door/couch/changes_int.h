/* What is asked of _changes. */
#ifndef FROND_DOOR_COUCH_CHANGES_INT_H
#define FROND_DOOR_COUCH_CHANGES_INT_H

#include "door/couch/couch_int.h"

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
};

MUST_USE enum status couch_changes_args_read(struct couch_req *r, struct couch_changes_args *ret);

/* Whether the filter lets a document's changes pass. */
bool couch_changes_wanted(const struct couch_changes_args *args, struct str id);

#endif
