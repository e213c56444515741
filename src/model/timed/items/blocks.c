/*
 * A skip list over the order of a list or a sorted set. Its blocks hold counts of entries, so that
 * the rank of an entry, and the entry of a rank, are found without going through all entries.
 *
 * The entries, (body, ORDER, order), are level 0. Above it, each level cuts the order into blocks.
 * A hash of an entry's order decides up to which level the entry begins a block: one entry in 32
 * begins a block of level 1, one in 1,024 also a block of level 2. A block of level l is the pair
 *
 *     (body, BLOCKS, l, order) → how many entries there are from this order to the next block's
 *
 * Each level has a first block, whose order is empty; it counts the entries before the first entry
 * that begins a block. There are as many levels as the item's height says. The height rises by one
 * when an entry comes whose level is above it, so a small collection has no blocks.
 *
 * Counts of blocks are changed by atomic adds, so that two writers of one block do not conflict.
 * An add is right only as long as blocks begin where they did. So a transaction that adds reads the
 * beginning of the block by snapshot reads and sets two conflict ranges itself: from the beginning
 * of the block to the entry, where another transaction may begin a block, and on the entry that
 * begins the block, which another transaction may remove. It does so once for each block
 * (blocks_known.c). A transaction that has a map (blocks_map.c) conflicts with whoever begins or
 * removes any block instead. A transaction that divides a block, or joins two, reads their counts,
 * and so conflicts with every transaction that adds to them.
 */
#include <assert.h>
#include <endian.h>

#include "base/hash.h"
#include "model/timed/items/item_int.h"

enum {
	LEVEL_BITS = 5,
};

/* A block: where it begins, and how many entries it has. */
struct block {
	struct str order;
	uint64_t entries;
};

/* ---- Reading blocks ---- */

static unsigned
level_of(struct timed_item *item, struct str order)
{
	uint8_t seed[HASH_SEED_BYTES] = { 0 };
	uint64_t hash;
	unsigned level = 0;

	memcpy(seed, item->id, sizeof(item->id));
	hash = hash_seeded(seed, order);
	while (level < TIMED_HEIGHT_MOST && !(hash & ((1U << LEVEL_BITS) - 1))) {
		hash >>= LEVEL_BITS;
		level++;
	}
	return level;
}

static enum status
block_parse(struct timed_item *item, const struct kv_pair *pair, struct block *ret)
{
	if (pair->value.len != sizeof(ret->entries))
		return timed_item_corrupt(item);
	memcpy(&ret->entries, pair->value.ptr, sizeof(ret->entries));
	ret->entries = le64toh(ret->entries);
	return timed_key_tail(item, pair->key, 2, &ret->order);
}

/* Asks for the block of the level that begins at the order or before it; `before`: not at it. */
static enum status
block_ask(struct timed_item *item, unsigned level, struct str order, bool before,
	  struct timed_one *ret)
{
	const struct kv_range_options options = { .limit = 1,
						  .reverse = true,
						  .mode = KV_SNAPSHOT };
	struct str begin, end;

	TRY(timed_block_key(item, level, STR(""), &begin));
	TRY(timed_block_key(item, level, order, &end));
	if (!before)
		TRY(timed_key_with(item->arena, end, CATALOG_KEY_NEXT, &end));
	return timed_one_ask(item->t, begin, end, &options, ret);
}

static enum status
block_wait(struct timed_item *item, struct timed_one *one, struct block *ret)
{
	struct kv_pair pair;
	enum status status = timed_one_wait(item->t, one, item->arena, &pair);

	if (status == STATUS_NOT_FOUND)
		return timed_item_corrupt(item);
	TRY(status);
	return block_parse(item, &pair, ret);
}

/* The blocks of all levels that the order is in. blocks[0] is what begins at the order itself. */
static enum status
blocks_of(struct timed_item *item, struct str order, struct block *blocks)
{
	struct timed_one asked[TIMED_HEIGHT_MOST + 1];

	for (unsigned l = 1; l <= item->height; l++)
		TRY(block_ask(item, l, order, false, &asked[l]));
	blocks[0] = (struct block){ .order = order };
	for (unsigned l = 1; l <= item->height; l++)
		TRY(block_wait(item, &asked[l], &blocks[l]));
	return STATUS_OK;
}

/* Stands for what comes behind every order. */
static const struct str order_end = { NULL, 0 };

/* The bounds of the blocks of a level, or of the entries, from one order to another. */
static enum status
level_bounds(struct timed_item *item, unsigned level, struct str from, struct str to,
	     struct str *ret_begin, struct str *ret_end)
{
	if (level)
		TRY(timed_block_key(item, level, from, ret_begin));
	else
		TRY(timed_order_key(item, from, ret_begin));
	if (!to.ptr)
		return level ? timed_block_key(item, level + 1, STR(""), ret_end)
			     : timed_part_key(item, TIMED_PART_BLOCKS, ret_end);
	return level ? timed_block_key(item, level, to, ret_end)
		     : timed_order_key(item, to, ret_end);
}

/* How many elements a pair of a list has. */
static enum status
entries_count(struct timed_item *item, struct str value, uint64_t *ret)
{
	struct timed_run run;

	*ret = 1;
	if (!timed_is_run(value))
		return STATUS_OK;
	if (timed_run_parse(value, &run) != STATUS_OK)
		return timed_item_corrupt(item);
	*ret = run.count;
	return STATUS_OK;
}

/* How many entries there are from one beginning of a block of the level to another. */
static enum status
level_sum(struct timed_item *item, unsigned level, struct str from, struct str to, uint64_t *ret)
{
	AUTO(timed_cursor_close) struct timed_cursor scan = { 0 };
	struct str begin, end;
	struct kv_pair pair;
	enum status status;

	TRY(level_bounds(item, level, from, to, &begin, &end));
	TRY(timed_cursor_open(&scan, item->t, begin, end, NULL));
	while ((status = timed_cursor_next(&scan, &pair)) == STATUS_OK) {
		struct block block = { .entries = 1 };

		if (level)
			TRY(block_parse(item, &pair, &block));
		else if (item->type == TIMED_LIST)
			TRY(entries_count(item, pair.value, &block.entries));
		*ret += block.entries;
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status
timed_blocks_rank(struct timed_item *item, struct str order, uint64_t *ret)
{
	struct block blocks[TIMED_HEIGHT_MOST + 1];
	uint64_t rank = 0;

	TRY(blocks_of(item, order, blocks));
	for (unsigned l = 0; l <= item->height; l++)
		TRY(level_sum(item, l, l < item->height ? blocks[l + 1].order : STR(""),
			      blocks[l].order, &rank));
	*ret = rank;
	return STATUS_OK;
}

/* Reads how many entries the block has that begins there. */
static enum status
block_read(struct timed_item *item, unsigned level, struct str order, struct block *ret)
{
	struct kv_pair pair;

	TRY(timed_block_key(item, level, order, &pair.key));
	TRY(timed_data_get(item->t, pair.key, KV_READ, item->arena, &pair.value));
	return pair.value.ptr ? block_parse(item, &pair, ret) : timed_item_corrupt(item);
}

/*
 * Goes along a level while `index` lies behind; `*at` and `*before` are where it comes to. The
 * block that it begins with is read alone: often the index is in it, as that of what is taken from
 * a queue, and what has gone behind it need not be stepped over.
 */
static enum status
level_walk(struct timed_item *item, unsigned level, uint64_t index, struct str *at,
	   uint64_t *before)
{
	AUTO(timed_cursor_close) struct timed_cursor scan = { 0 };
	struct str begin, end;
	struct kv_pair pair;
	enum status status;
	struct block block;

	TRY(block_read(item, level, *at, &block));
	if (*before + block.entries > index)
		return STATUS_OK;
	TRY(timed_block_key(item, level, *at, &begin));
	TRY(timed_key_with(item->arena, begin, CATALOG_KEY_NEXT, &begin));
	TRY(timed_block_key(item, level + 1, STR(""), &end));
	TRY(timed_cursor_open_few(&scan, item->t, begin, end,
				  &(struct kv_range_options){ .ahead = true }, 2U << LEVEL_BITS));
	while (*before + block.entries <= index) {
		status = timed_cursor_next(&scan, &pair);
		if (status == STATUS_NOT_FOUND)
			return STATUS_OK;
		TRY(status);
		*before += block.entries;
		TRY(block_parse(item, &pair, &block));
		*at = block.order;
	}
	return STATUS_OK;
}

enum status
timed_blocks_find(struct timed_item *item, uint64_t index, struct str *ret, uint64_t *ret_before)
{
	struct str at = STR("");
	uint64_t before = 0;

	/* The first entry is in the first blocks, however many these have: none need be read. */
	for (unsigned l = index ? item->height : 0; l; l--)
		TRY(level_walk(item, l, index, &at, &before));
	*ret = at;
	*ret_before = before;
	return STATUS_OK;
}

/* ---- Changing them ---- */

/* Reads the count of a block so that the transaction conflicts with whoever changes it. */
static enum status
block_lock(struct timed_item *item, unsigned level, struct block *block)
{
	if (timed_known_count(item, level, block->order, &block->entries))
		return STATUS_OK;
	TRY(block_read(item, level, block->order, block));
	timed_known_set_count(item, level, block->order, block->entries);
	return STATUS_OK;
}

static enum status
block_add(struct timed_item *item, unsigned level, struct str order, int64_t change)
{
	struct str *known = timed_known_change(item, level, order, change);
	struct str key;

	if (known && known->ptr)
		return timed_data_add(item->t, *known, change);
	TRY(timed_block_key(item, level, order, &key));
	if (known)
		*known = key;
	return timed_data_add(item->t, key, change);
}

static enum status
block_set(struct timed_item *item, unsigned level, struct str order, uint64_t entries)
{
	struct str key;

	timed_known_set_count(item, level, order, entries);
	entries = htole64(entries);
	TRY(timed_block_key(item, level, order, &key));
	return timed_data_set(item->t, key, str_of(&entries, sizeof(entries)));
}

/*
 * Has the transaction fail unless the order still lies in this block of the level at its commit,
 * and remembers the block. With a map there is nothing to do: the map remembers it, and to use the
 * map the transaction has read, with a conflict, a number that changes whenever a block begins or
 * ends.
 */
static enum status
block_keep(struct timed_item *item, unsigned level, struct str from, struct str order)
{
	struct str begin, end;

	if (item->map)
		return STATUS_OK;
	TRY(timed_block_key(item, level, from, &begin));
	TRY(timed_key_with(item->arena, begin, CATALOG_KEY_NEXT, &begin));
	TRY(timed_block_key(item, level, order, &end));
	TRY(timed_key_with(item->arena, end, CATALOG_KEY_NEXT, &end));
	TRY(kv_add_read_conflict_range(item->t->tx, begin, end));
	if (from.len) {
		TRY(timed_order_key(item, from, &begin));
		TRY(timed_key_with(item->arena, begin, CATALOG_KEY_NEXT, &end));
		TRY(kv_add_read_conflict_range(item->t->tx, begin, end));
	}
	return timed_known_add(item, level, from, order);
}

/* Finds the order's block of the level in what is known. `behind`: see timed_blocks_add(). */
static enum status
block_recall(struct timed_item *item, unsigned level, struct str order, struct str behind,
	     struct block *ret)
{
	if (timed_known_find(item, level, order, &ret->order))
		return STATUS_OK;
	ret->order = STR("");
	if (!behind.ptr || (behind.len && !timed_known_find(item, level, behind, &ret->order)))
		return STATUS_NOT_FOUND;
	/* Blocks begin with entries, and there are none between. */
	return timed_known_add(item, level, ret->order, order);
}

/* Has the block's beginning from the map; else `ret_asked` has a future. */
static enum status
block_ask_unless_mapped(struct timed_item *item, unsigned level, struct str order,
			struct block *ret, struct timed_one *ret_asked)
{
	enum status status = timed_map_find(item, level, order, &ret->order);

	*ret_asked = (struct timed_one){ 0 };
	return status == STATUS_NOT_FOUND ? block_ask(item, level, order, false, ret_asked)
					  : status;
}

/* Where the blocks of all levels begin that an order is in which is about to come or go. */
static enum status
blocks_find(struct timed_item *item, struct str order, struct str behind, struct block *blocks)
{
	struct timed_one asked[TIMED_HEIGHT_MOST + 1];
	bool missing[TIMED_HEIGHT_MOST + 1];
	enum status status;

	blocks[0] = (struct block){ .order = order };
	for (unsigned l = 1; l <= item->height; l++) {
		status = block_recall(item, l, order, behind, &blocks[l]);
		missing[l] = status == STATUS_NOT_FOUND;
		if (missing[l])
			status = block_ask_unless_mapped(item, l, order, &blocks[l], &asked[l]);
		TRY(status);
	}
	for (unsigned l = 1; l <= item->height; l++) {
		if (!missing[l])
			continue;
		if (asked[l].future)
			TRY(block_wait(item, &asked[l], &blocks[l]));
		TRY(block_keep(item, l, blocks[l].order, order));
	}
	return STATUS_OK;
}

/* Makes the first block of one more level. */
static enum status
height_raise(struct timed_item *item)
{
	uint64_t total = 0;

	TRY(level_sum(item, item->height, STR(""), order_end, &total));
	item->height++;
	TRY(timed_map_reshape(item));
	TRY(block_set(item, item->height, STR(""), total));
	return timed_item_store(item);
}

/* Begins a block at the order, inside of another one. `left`: the entries of that before it. */
static enum status
block_divide(struct timed_item *item, unsigned level, const struct block *block, struct str order,
	     uint64_t left)
{
	TRY(timed_map_reshape(item));
	timed_map_divide(item, level, block->order, order);
	TRY(block_set(item, level, block->order, left));
	TRY(timed_known_divide(item, level, order));
	return block_set(item, level, order, block->entries - left + 1);
}

bool
timed_block_begins(struct timed_item *item, struct str order)
{
	return level_of(item, order) > 0;
}

enum status
timed_blocks_add(struct timed_item *item, struct str order, struct str behind)
{
	struct block blocks[TIMED_HEIGHT_MOST + 1];
	unsigned level = level_of(item, order);
	bool first = behind.ptr && !behind.len;
	bool last = behind.len;
	uint64_t left = 0; /* entries from the beginning of the block to the order */

	if (level > item->height && item->height < TIMED_HEIGHT_MOST)
		TRY(height_raise(item));
	TRY(blocks_find(item, order, behind, blocks));
	for (unsigned l = 1; l <= item->height; l++) {
		if (l > level) {
			TRY(block_add(item, l, blocks[l].order, 1));
			continue;
		}
		if (last) { /* the other block keeps all of its entries; a list has no map */
			assert(item->type == TIMED_LIST);
			TRY(timed_known_divide(item, l, order));
			TRY(block_set(item, l, order, 1));
			continue;
		}
		TRY(block_lock(item, l, &blocks[l]));
		if (!first)
			TRY(level_sum(item, l - 1, blocks[l].order, blocks[l - 1].order, &left));
		TRY(block_divide(item, l, &blocks[l], order, left));
	}
	return STATUS_OK;
}

enum status
timed_blocks_grow(struct timed_item *item, struct str order, struct str behind, uint64_t count)
{
	struct block blocks[TIMED_HEIGHT_MOST + 1];

	TRY(blocks_find(item, order, behind, blocks));
	for (unsigned l = 1; l <= item->height; l++)
		TRY(block_add(item, l, blocks[l].order, (int64_t)count));
	return STATUS_OK;
}

/* The first entry's order if a block of the level begins there, else that of the first block. */
static enum status
block_at(struct timed_item *item, unsigned level, struct str order, struct str *ret)
{
	enum status status = timed_map_find(item, level, order, ret);
	struct str key, value;

	if (status != STATUS_NOT_FOUND)
		return status;
	TRY(timed_block_key(item, level, order, &key));
	TRY(timed_data_get(item->t, key, KV_SNAPSHOT, item->arena, &value));
	*ret = value.ptr ? order : STR("");
	return STATUS_OK;
}

/*
 * Where the blocks of all levels begin that the first entry is in: at the entry itself, or they are
 * the first blocks, since an entry that goes takes the block with it that began there. So nobody
 * has to step over the blocks that have gone, of which a queue leaves many. What begins no block of
 * a level begins none of a higher one, so mostly level 1 alone is asked.
 */
static enum status
blocks_find_first(struct timed_item *item, struct str order, struct block *blocks)
{
	bool begins = true; /* a block of the level below */

	for (unsigned l = 1; l <= item->height; l++) {
		if (!timed_known_find(item, l, order, &blocks[l].order)) {
			blocks[l].order = STR("");
			if (begins)
				TRY(block_at(item, l, order, &blocks[l].order));
			TRY(block_keep(item, l, blocks[l].order, order));
		}
		begins = str_eq(blocks[l].order, order);
	}
	return STATUS_OK;
}

enum status
timed_blocks_first(struct timed_item *item, struct str order, struct str until)
{
	struct str from;

	for (unsigned l = 1; l <= item->height; l++)
		if (!timed_known_find(item, l, order, &from))
			TRY(block_keep(item, l, STR(""), until));
	return STATUS_OK;
}

/* Where the block begins that is before the one that begins at the order. */
static enum status
block_before(struct timed_item *item, unsigned level, struct str order, struct block *ret)
{
	struct timed_one one;
	enum status status = timed_map_before(item, level, order, &ret->order);

	if (status != STATUS_NOT_FOUND)
		return status;
	TRY(block_ask(item, level, order, true, &one));
	return block_wait(item, &one, ret);
}

/*
 * Puts the block that begins at the order, which goes, into the one before it. `first`: the order
 * is the first entry's.
 */
static enum status
block_join(struct timed_item *item, unsigned level, struct block *block, bool first)
{
	struct block former = { .order = STR("") };
	struct str key;

	if (!first)
		TRY(block_before(item, level, block->order, &former));
	TRY(timed_map_reshape(item));
	timed_map_join(item, level, block->order);
	TRY(block_lock(item, level, block));
	TRY(timed_block_key(item, level, block->order, &key));
	TRY(timed_data_clear(item->t, key));
	TRY(block_keep(item, level, former.order, block->order));
	timed_known_join(item, level, former.order, block->order);
	return block_add(item, level, former.order, (int64_t)block->entries - 1);
}

enum status
timed_blocks_remove(struct timed_item *item, struct str order, bool first)
{
	struct block blocks[TIMED_HEIGHT_MOST + 1];

	if (first)
		TRY(blocks_find_first(item, order, blocks));
	else
		TRY(blocks_find(item, order, (struct str){ NULL, 0 }, blocks));
	for (unsigned l = 1; l <= item->height; l++) {
		if (str_eq(blocks[l].order, order))
			TRY(block_join(item, l, &blocks[l], first));
		else
			TRY(block_add(item, l, blocks[l].order, -1));
	}
	return STATUS_OK;
}
