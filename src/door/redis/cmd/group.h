/* What commands on groups of consumers of streams share: how far one is, and reading in it. */
#ifndef FROND_DOOR_REDIS_CMD_GROUP_H
#define FROND_DOOR_REDIS_CMD_GROUP_H

#include "door/redis/cmd/stream.h"

enum {
	GROUP_PAGE = 256, /* groups, consumers or pending entries that are read together */
	/*
	 * What one command writes of pending entries, at most: it reads or claims no more than fit
	 * into that. With history it is twice as much, and a transaction has 10,000,000 bytes.
	 */
	GROUP_WRITE_BYTES = 4000000,
	GROUP_ENTRY_BYTES = 300, /* of a pending entry, beside three times its consumer's name */
};

#define GROUP_NO_NAME ((struct str){ NULL, 0 })

/* ---- How far a group is ---- */

/* What a stream has, and has had. */
struct stream_extent {
	struct timed_stream stream;
	uint64_t length;
	struct timed_stream_id first; /* the first entry, if there is one */
};

MUST_USE enum status stream_extent_get(struct timed_item *item, struct stream_extent *ret);
/*
 * How many entries the stream ever had up to that id, as far as that can be told without looking
 * at them; or TIMED_GROUP_UNREAD.
 */
int64_t stream_extent_up_to(const struct stream_extent *e, struct timed_stream_id id);
/* Moves the group on to an entry that one of its consumers gets. */
void group_advance(struct timed_group *group, const struct stream_extent *e,
		   struct timed_stream_id id);
/* Answers how many entries the group has not read: null, where nobody can tell. */
void group_answer_lag(struct reply *r, const struct stream_extent *e,
		      const struct timed_group *group);
void group_answer_read(struct reply *r, const struct timed_group *group);

/* ---- Consumers ---- */

/* Notes that the consumer was seen now, and makes it, with its event, if it is not there. */
MUST_USE enum status group_see_consumer(struct call *c, struct str key, struct timed_item *item,
					const struct timed_group *group, struct str name);
/* How many pending entries one command may write for the consumer. */
size_t group_write_limit(struct str consumer);

/* ---- Reading in a group ---- */

struct group_read {
	struct str key;
	struct timed_group *group;
	struct str consumer;
	bool noack;
	bool history;                 /* what the consumer has got, else what nobody has got */
	struct timed_stream_id after; /* history: entries behind this one */
	size_t limit;                 /* 0: as many as one command may write */
	/* Answers what comes before the entries. */
	void (*begin)(void *arg);
	void *arg;
};

/* Reads for XREADGROUP, and answers. `*ret_any` is false if there is nothing new: no answer. */
MUST_USE enum status group_read(struct call *c, struct timed_item *item,
				const struct group_read *read, bool *ret_any);

#endif
