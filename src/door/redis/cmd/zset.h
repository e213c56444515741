/* What commands on sorted sets share. */
#ifndef FROND_DOOR_REDIS_CMD_ZSET_H
#define FROND_DOOR_REDIS_CMD_ZSET_H

#include "door/redis/cmd/data.h"

/* Removes at most `most` of the least or the greatest, with the event. */
MUST_USE enum status zset_pop(struct call *c, struct timed_item *item, struct str key,
			      bool greatest, uint64_t most, struct timed_members *ret);

/* An array of members, with their scores or without; in RESP3 a pair is an array of its own. */
void zset_answer_begin(struct reply *r, size_t count, bool scores);
void zset_answer(struct reply *r, struct str name, double score, bool scores);

/* "(1.5", "-inf"; false for what is no bound. */
bool zset_read_score(struct str s, struct timed_bound *ret);
/* "[a", "(a", "-", "+"; `*ret_below` and `*ret_above`: it is before or behind all names. */
bool zset_read_name(struct str s, struct timed_bound *ret, bool *ret_below, bool *ret_above);

#endif
