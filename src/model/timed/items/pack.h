/*
 * A pack: all members of a small hash, set or sorted set, in the header of the item in place of a
 * body:
 *
 *     pack   = least write time of a member, 8 bytes; member, …
 *     member = of a hash:       hash, age, length of the name, length of the value, name, value
 *              of a set:        hash, age, length of the name, name
 *              of a sorted set: score, age, length of the name, name
 *
 * A hash has 2 bytes and is the one that keys of members begin with; a score has 8 bytes. The age
 * is by how many microseconds the member was written later than the pack says, and like lengths a
 * number of 7 bits in a byte, the lowest first, where all bytes but the last have their highest bit
 * set. Members are in the order in which pairs of a body would be: of the hash and the name, or of
 * the score and the name. No name is longer than TIMED_WHOLE_BYTES.
 *
 * pack.c knows the bytes; packed.c has what members.c and zset.c do with items that are packed.
 */
#ifndef FROND_MODEL_TIMED_ITEMS_PACK_H
#define FROND_MODEL_TIMED_ITEMS_PACK_H

#include "base/buf.h"
#include "model/timed/items/item.h"

enum {
	/* A collection with more lies in a body. Stored: who raises these needs another format. */
	TIMED_PACK_MEMBERS = 64,
	TIMED_PACK_BYTES = 2048,
};

struct timed_pack_member {
	struct str name;
	struct str value;  /* of a hash */
	double score;      /* of a sorted set */
	uint64_t write_us; /* since 1970 */
	uint16_t hash;     /* of a hash or a set */
};

struct timed_pack {
	enum timed_type type;
	size_t count;
	struct timed_pack_member members[TIMED_PACK_MEMBERS];
};

/* True for the types whose members may lie in a pack. */
static inline bool
timed_pack_has(enum timed_type type)
{
	return type == TIMED_HASH || type == TIMED_SET || type == TIMED_ZSET;
}

/*
 * Reads a pack; names and values lie in its bytes. What is accepted is written as the same bytes.
 * STATUS_CORRUPT.
 */
MUST_USE enum status timed_pack_parse(enum timed_type type, struct str bytes,
				      struct timed_pack *ret);
/* Writes the pack; the buffer fails if it has no room for that. */
void timed_pack_put(const struct timed_pack *pack, struct buf *bytes);
/* True unless hashes differ from those of the names, or two members have the same name. */
bool timed_pack_is_sound(const struct timed_pack *pack);

/* The member of that name; NULL: there is none. It is valid until the next change of the pack. */
struct timed_pack_member *timed_pack_find(struct timed_pack *pack, struct str name);
/*
 * Adds a member, which is not there. False: a pack cannot have it, and nothing has changed. Whether
 * all of them together have too many bytes shows timed_pack_put().
 */
MUST_USE bool timed_pack_add(struct timed_pack *pack, const struct timed_pack_member *member);
void timed_pack_remove(struct timed_pack *pack, struct timed_pack_member *member);
/* How many members of a sorted set come before an order, as timed_zset_order() has them. */
size_t timed_pack_rank(const struct timed_pack *pack, struct str order);

/* ---- Members in the header (packed.c): item->packed ---- */

/* Reads the pack; what it has lies in the item, up to the next change of the item. */
MUST_USE enum status timed_packed_read(struct timed_item *item, struct timed_pack *ret);
/* The same, of which names and values stay when the item is changed. */
MUST_USE enum status timed_packed_keep(struct timed_item *item, struct timed_pack *ret);
/* Moves the members into a body. */
MUST_USE enum status timed_packed_unfold(struct timed_item *item);
/*
 * timed_members_put() to an item that is packed, or not there. `*ret_done` false: the caller puts
 * them into a body, which the item has now if it was there; nothing is told of the members.
 */
MUST_USE enum status timed_packed_put(struct timed_item *item, enum timed_type type,
				      struct timed_member *members, size_t count, bool *ret_done);
/* timed_members_get(), timed_members_delete(); `*ret_done` as above. */
MUST_USE enum status timed_packed_get(struct timed_item *item, struct timed_member *members,
				      size_t count);
MUST_USE enum status timed_packed_delete(struct timed_item *item, struct timed_member *members,
					 size_t count, bool *ret_done);
/* All members with these hashes, in their order. */
MUST_USE enum status timed_packed_between(struct timed_item *item, uint64_t from, uint64_t to,
					  struct timed_members *ret);
/*
 * Members of a sorted set by their ranks, from the least; `reverse`: the last one first. The pack
 * has been read to be kept.
 */
MUST_USE enum status timed_packed_ranks(struct timed_item *item, const struct timed_pack *pack,
					uint64_t from, uint64_t to, bool reverse,
					struct timed_members *ret);
/* timed_zset_pop(); `*ret_done` as above. */
MUST_USE enum status timed_packed_pop(struct timed_item *item, bool greatest, uint64_t most,
				      struct timed_members *ret, bool *ret_done);

#endif
