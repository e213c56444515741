/*
 * client-output-buffer-limit: how much of its output a client may leave unread.
 *
 * What a client is sent without having asked for it now, messages and what MONITOR shows, is kept
 * until it reads; it is closed when that is more than a limit. Who asks reads answers, or is not
 * served further: there the limits are about one stretch of answers. Plain values; those of a door
 * are read without a lock.
 */
#ifndef FROND_DOOR_REDIS_TXN_OUTPUT_H
#define FROND_DOOR_REDIS_TXN_OUTPUT_H

#include "base/str.h"
#include "net/unread.h"

enum {
	OUTPUT_TEXT_BYTES = 256, /* of all limits as text */
};

enum output_class {
	OUTPUT_NORMAL,
	OUTPUT_REPLICA, /* there are none */
	OUTPUT_PUBSUB,  /* those that have subscriptions */
	OUTPUT_CLASSES,
};

struct output_limit {
	uint64_t hard_bytes; /* 0: none */
	uint64_t soft_bytes; /* that may be exceeded for `soft_s`; 0: none */
	uint64_t soft_s;
};

struct output_limits {
	struct output_limit of[OUTPUT_CLASSES];
};

/*
 * Changes the limits as a text such as "pubsub 32mb 8mb 60" says, of any number of classes. Returns
 * NULL, or why it cannot; the limits may have been changed then.
 */
const char *output_limits_read(struct str text, struct output_limits *limits);
/* All of them, as CONFIG GET shows them. */
void output_limits_write(const struct output_limits *limits, char ret[static OUTPUT_TEXT_BYTES]);

/* For those who go by it. */
void output_limit_set(struct net_unread_limit *now, const struct output_limit *limit);

#endif
