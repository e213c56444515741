/* What commands on streams share: ids as arguments and in answers. */
#ifndef FROND_DOOR_REDIS_CMD_STREAM_H
#define FROND_DOOR_REDIS_CMD_STREAM_H

#include "door/redis/cmd/data.h"

#define STREAM_ID_FIRST ((struct timed_stream_id){ 0, 0 })
#define STREAM_ID_LAST  ((struct timed_stream_id){ UINT64_MAX, UINT64_MAX })

/* "5-1", or "5" with the given second number. False: it is none. */
bool stream_id_read(struct str text, uint64_t seq, struct timed_stream_id *ret);
/* The same of argument `i`. */
MUST_USE enum status stream_id_arg(struct call *c, size_t i, uint64_t seq,
				   struct timed_stream_id *ret);

/* "-" or "+". False: it is neither. */
bool stream_id_read_end(struct str text, struct timed_stream_id *ret);
/* One end of a range, in argument `i`: "-", "+", an id, or "(" and an id. */
MUST_USE enum status stream_range_arg(struct call *c, size_t i, bool lower,
				      struct timed_stream_id *ret);

void stream_answer_id(struct reply *r, struct timed_stream_id id);
void stream_answer_entry(struct reply *r, const struct timed_entry *entry);
void stream_answer_entries(struct reply *r, const struct timed_entries *entries);

#endif
