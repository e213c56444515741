/* What commands on data share: items by key, of one type; values; times. */
#ifndef FROND_DOOR_REDIS_CMD_DATA_H
#define FROND_DOOR_REDIS_CMD_DATA_H

#include "door/redis/txn/txn.h"
#include "door/redis/wire/error.h"

enum {
	DATA_VALUE_BYTES = 512 * 1024 * 1024,
	DATA_PAGE = 256,               /* members or keys that are read together */
	DATA_PART_BYTES = 1024 * 1024, /* of a value that is answered in parts */
};

/* The item of argument `i`, of that type or absent. STATUS_ANSWERED if it is of another type. */
MUST_USE enum status data_item(struct call *c, size_t i, enum timed_type type,
			       struct timed_item **ret);

/* The same for what only reads the item, although its command writes: see txn_looked_up(). */
MUST_USE enum status data_item_read(struct call *c, size_t i, enum timed_type type,
				    struct timed_item **ret);

/* All of a value of bytes; an absent one is empty. */
MUST_USE enum status data_value(struct timed_item *item, struct str *ret);

/* The same, but empty if it is longer than any number is as text. */
MUST_USE enum status data_number(struct timed_item *item, struct str *ret);

/* Answers bytes of a value, fewer where it ends. */
MUST_USE enum status data_reply_value(struct call *c, struct timed_item *item, uint64_t offset,
				      uint64_t len);

/* The word that TYPE has for it. */
const char *data_type_name(enum timed_type type);

/* What a time is that an argument has. */
struct data_time {
	bool seconds;  /* else milliseconds */
	bool absolute; /* since 1970, else from now on */
	bool positive; /* others are refused */
};

/* The same as the command's row has it. */
static inline struct data_time
data_time_of(const struct call *c)
{
	return (struct data_time){ .seconds = call_is(c, HOW_SECONDS),
				   .absolute = call_is(c, HOW_ABSOLUTE) };
}

/* The time of an expiry argument, in milliseconds since 1970. */
MUST_USE enum status data_time(struct call *c, size_t i, struct data_time how, int64_t *ret_ms);

struct timed_expiry data_expiry(int64_t at_ms);

/* Negative indexes count from the end; false if nothing is between them. */
bool data_clip_range(int64_t *from, int64_t *to, uint64_t length);

/* Removes an item that is there, with the event. */
MUST_USE enum status data_delete(struct call *c, struct timed_item *item, struct str key,
				 const char *event);

/*
 * Empties the key for a result of `count` members or elements, which is answered. The caller writes
 * them, with the event, unless there are none.
 */
MUST_USE enum status data_replace(struct call *c, struct str key, size_t count,
				  struct timed_item **ret);

/*
 * What a command is about by its group: the type of its items, and the class of its events. It is
 * one of a collection.
 */
enum timed_type data_type_of(const struct call *c);
enum event_class data_class_of(const struct call *c);

/* Tells that a collection has changed, and "del" if nothing is left of it. */
MUST_USE enum status data_changed(struct call *c, struct timed_item *item, struct str key,
				  enum event_class class, const char *event);

#endif
