/*
 * Groups of consumers of a stream: which entries a group has been given (`last`), its consumers,
 * and the entries that are pending, which means that a consumer has been given them and nobody has
 * acknowledged them yet. README.md has the layout.
 *
 * The functions take an item as those of item.h do: it is a stream, or not there (TIMED_LEAF),
 * where nothing is found. They do not change the item's version (timed_item_version()), but for
 * timed_group_drop(): who watches a stream watches its entries. What is returned lies in the item's
 * arena.
 */
#ifndef FROND_MODEL_TIMED_ITEMS_GROUP_H
#define FROND_MODEL_TIMED_ITEMS_GROUP_H

#include "model/timed/items/item.h"

enum {
	TIMED_GROUP_NAME_BYTES = 60000, /* of the name of a group or a consumer */
	TIMED_GROUP_UNREAD = -1,        /* instead of a number of entries: nobody knows it */
};

/* ---- Groups ---- */

struct timed_group {
	struct str name;
	struct timed_stream_id last; /* up to here its consumers have been given entries */
	int64_t read;                /* how many entries that are; or TIMED_GROUP_UNREAD */

	/* Private. */
	uint8_t id[TIMED_ID_BYTES];
};

struct timed_groups {
	struct timed_group *groups;
	size_t count;
};

/* STATUS_NOT_FOUND: there is none of that name. One key. */
MUST_USE enum status timed_group_get(struct timed_item *item, struct str name,
				     struct timed_group *ret);
/*
 * Adds a group that is not there, and makes the item if that is not there. Fills in what is
 * private. STATUS_KEY_TOO_LARGE, explained.
 */
MUST_USE enum status timed_group_add(struct timed_item *item, struct timed_group *group);
/* Writes a group that was got. */
MUST_USE enum status timed_group_set(struct timed_item *item, const struct timed_group *group);
/*
 * Removes a group with all it has, which is cleared as bodies are. Changes the item's version, so
 * that those who wait for it hear of it (timed_item_watch()).
 */
MUST_USE enum status timed_group_drop(struct timed_item *item, const struct timed_group *group);
/* At most `limit` groups behind the one named `after` (NULL bytes: all), in the order of names. */
MUST_USE enum status timed_groups_page(struct timed_item *item, struct str after, size_t limit,
				       struct timed_groups *ret);
MUST_USE enum status timed_groups_count(struct timed_item *item, uint64_t *ret);

/* ---- Consumers of a group ---- */

struct timed_consumer {
	struct str name;
	uint64_t seen_ms; /* since 1970 */
};

struct timed_consumers {
	struct timed_consumer *consumers;
	size_t count;
};

/* STATUS_NOT_FOUND: there is none of that name. */
MUST_USE enum status timed_consumer_get(struct timed_item *item, const struct timed_group *group,
					struct str name, struct timed_consumer *ret);
/* Writes a consumer; `is_new`: it is not there yet. STATUS_KEY_TOO_LARGE, explained. */
MUST_USE enum status timed_consumer_put(struct timed_item *item, const struct timed_group *group,
					const struct timed_consumer *consumer, bool is_new);
/* Removes a consumer that is there, and what is pending for it: so many entries. */
MUST_USE enum status timed_consumer_drop(struct timed_item *item, const struct timed_group *group,
					 struct str name, uint64_t *ret_pending);
/* As timed_groups_page() and timed_groups_count(). */
MUST_USE enum status timed_consumers_page(struct timed_item *item, const struct timed_group *group,
					  struct str after, size_t limit,
					  struct timed_consumers *ret);
MUST_USE enum status timed_consumers_count(struct timed_item *item, const struct timed_group *group,
					   uint64_t *ret);

/* ---- Pending entries ---- */

struct timed_pending {
	struct timed_stream_id id;
	bool found;            /* it is pending */
	struct str consumer;   /* whose it is; a long name as timed_pending_owner() explains */
	uint64_t delivered_ms; /* since 1970: when it was given to the consumer */
	uint64_t times;        /* how often that was */
};

struct timed_pendings {
	struct timed_pending *entries;
	size_t count;
};

/* Looks for entries by their ids, a point read each, side by side. */
MUST_USE enum status timed_pending_get(struct timed_item *item, const struct timed_group *group,
				       struct timed_pending *entries, size_t count);
/*
 * Makes entries pending for a consumer that is there, with the time and number that they have.
 * `found` and `consumer` are what timed_pending_get() has said; they then say what is so now.
 */
MUST_USE enum status timed_pending_give(struct timed_item *item, const struct timed_group *group,
					struct str name, struct timed_pending *entries,
					size_t count);
/* Removes those of the entries that timed_pending_get() has found; no id is there twice. */
MUST_USE enum status timed_pending_drop(struct timed_item *item, const struct timed_group *group,
					const struct timed_pending *entries, size_t count);

/* Entries of one consumer (NULL bytes: of all) from one id up to another, both included. */
struct timed_pending_range {
	struct str consumer;
	struct timed_stream_id from;
	struct timed_stream_id to;
	bool reverse;
	size_t limit; /* not 0 */
};

MUST_USE enum status timed_pending_range(struct timed_item *item, const struct timed_group *group,
					 const struct timed_pending_range *range,
					 struct timed_pendings *ret);
/* How many entries are pending for the consumer; NULL bytes: for all. One key. */
MUST_USE enum status timed_pending_count(struct timed_item *item, const struct timed_group *group,
					 struct str consumer, uint64_t *ret);
/*
 * The name of the consumer whose entry this is. An entry has a name of more than TIMED_WHOLE_BYTES
 * only as keys have it: then this reads the consumer.
 */
MUST_USE enum status timed_pending_owner(struct timed_item *item, const struct timed_group *group,
					 const struct timed_pending *entry, struct str *ret);
/* True if the entry is pending for that consumer. */
MUST_USE enum status timed_pending_is_of(struct timed_item *item, const struct timed_pending *entry,
					 struct str name, bool *ret);

#endif
