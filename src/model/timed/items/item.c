/*
 * Items: their headers. An item's header lies in ROWS under its key; what it consists of lies in a
 * body under an id, so that whoever deletes, replaces or renames it writes headers alone:
 *
 *     (P, ROWS, b"hash16 key", b"")  → header
 *     (P, BODY, b"id", …)            → what item_int.h and README.md list
 *     (P, GONE, b"id")               → '': a body that is to be cleared (gone.c)
 *     (P, COUNT, shard)              → how many headers there are, by the hash of their keys
 */
#include <assert.h>
#include <endian.h>

#include "base/hash.h"
#include "kv/many.h"
#include "model/timed/items/item_int.h"
#include "model/timed/items/items.h"
#include "model/timed/versions.h"

enum {
	COUNT_KEY_BYTES = 2 * 9, /* two numbers behind the prefix */
};

/* ---- Reading ---- */

enum status
timed_item_name(struct timed *t, struct str key, struct arena *arena, struct timed_item *ret)
{
	*ret = (struct timed_item){ .t = t, .arena = arena, .key = key };
	if (key.len > TIMED_ITEM_KEY_BYTES)
		return err_set(t->err, STATUS_KEY_TOO_LARGE,
			       "a key may have %d bytes (TIMED_ITEM_KEY_BYTES)",
			       TIMED_ITEM_KEY_BYTES);
	TRY(timed_ask(t));
	TRY(timed_item_row(t->db, arena, key, &ret->row));
	return STATUS_OK;
}

enum status
timed_item_ask(struct timed *t, struct str key, struct arena *arena, struct timed_item *ret)
{
	TRY(timed_item_name(t, key, arena, ret));
	ret->has_asked = true;
	return timed_data_ask(t, ret->row, KV_READ, &ret->asked);
}

void
timed_items_ask(struct timed *t, struct timed_item *const *items, size_t count)
{
	struct timed_got got[KV_MANY];
	struct str rows[KV_MANY];

	assert(count && count <= KV_MANY);
	for (size_t i = 0; i < count; i++)
		rows[i] = items[i]->row;
	timed_data_ask_many(t, rows, count, KV_READ, got);
	for (size_t i = 0; i < count; i++) {
		items[i]->has_asked = true;
		items[i]->asked = got[i];
	}
}

enum status
timed_item_take(struct timed_item *item, const struct timed_header *h)
{
	if (h->whole.len && !str_eq(h->whole, item->key))
		return timed_item_corrupt(item);
	item->stored = true;
	item->write_us = h->write_us;
	item->due_ms = h->expires_ms;
	if (h->has_body) {
		memcpy(item->id, h->id, sizeof(item->id));
		TRY(timed_body_prefix(item->t->db, item->arena, item->id, &item->body));
	}
	if (h->expires_ms && h->expires_ms <= item->t->now_us / TIMED_US_PER_MS)
		return STATUS_OK;
	item->type = h->type;
	item->expires_ms = h->expires_ms;
	item->value = h->value;
	item->packed = h->packed;
	if (timed_has_text(h->type))
		item->length = h->length;
	else if (h->packed)
		item->count = h->length;
	else if (h->length > TIMED_HEIGHT_MOST)
		return timed_item_corrupt(item);
	else if (h->type == TIMED_HASH)
		item->has_dues = h->length;
	else
		item->height = (unsigned)h->length;
	return STATUS_OK;
}

enum status
timed_item_wait(struct timed_item *item)
{
	struct timed_header h;
	enum status status;
	struct str value;

	if (!item->has_asked)
		return STATUS_OK;
	item->has_asked = false;
	TRY(timed_now(item->t));
	TRY(timed_data_wait(item->t, &item->asked, item->arena, &value));
	if (!value.ptr)
		return STATUS_OK;
	status = timed_header_parse(value, &h, item->t->err);
	if (status == STATUS_CORRUPT)
		return timed_item_corrupt(item);
	TRY(status);
	TRY(timed_item_take(item, &h));
	return timed_dues_look(item);
}

enum status
timed_item_open(struct timed *t, struct str key, struct arena *arena, struct timed_item *ret)
{
	TRY(timed_item_ask(t, key, arena, ret));
	return timed_item_wait(ret);
}

enum status
timed_item_watch(struct timed_item *item, struct kv_future *ret[static TIMED_WATCHES])
{
	struct str stamp;

	ret[0] = kv_watch(item->t->tx, item->row);
	ret[1] = NULL;
	if (item->type != TIMED_STREAM)
		return STATUS_OK;
	TRY(timed_part_key(item, TIMED_PART_STAMP, &stamp));
	ret[1] = kv_watch(item->t->tx, stamp);
	return STATUS_OK;
}

enum status
timed_item_version_ask(struct timed_item *item, struct kv_future **ret)
{
	struct str key;

	*ret = NULL;
	if (item->type == TIMED_LEAF || !item->body.len || item->stamped)
		return STATUS_OK;
	TRY(timed_part_key(item, TIMED_PART_STAMP, &key));
	*ret = kv_get(item->t->tx, key, KV_READ);
	return STATUS_OK;
}

enum status
timed_item_version(struct timed_item *item, struct kv_future *asked, struct str *ret)
{
	struct buf version;
	uint64_t number;
	struct str stamp;

	*ret = STR("");
	if (item->type == TIMED_LEAF)
		return STATUS_OK;
	version = timed_arena_buf(item->arena, TIMED_BASE_BYTES);
	number = item->t->db->number;
	buf_append(&version, &number, sizeof(number));
	buf_append(&version, &item->write_us, sizeof(item->write_us));
	if (item->body.len)
		buf_append(&version, item->id, sizeof(item->id));
	if (asked) {
		TRY(kv_future_wait(asked));
		if (kv_future_value(asked, &stamp))
			buf_append_str(&version, stamp);
	} else if (item->body.len) {
		/* This transaction changes the body: no stored stamp is of that length. */
		buf_append_byte(&version, 0);
	}
	*ret = buf_str(&version);
	return buf_status(&version);
}

/* ---- The count of items ---- */

static enum status
items_add(struct timed_item *item, int64_t change)
{
	struct buf key = timed_arena_buf(item->arena, item->t->db->prefix.len + COUNT_KEY_BYTES);
	struct str tail = str_skip(item->row, item->t->db->prefix.len + TIMED_SPACE_BYTES);

	/* timed_key_space() would forget that the arena had no room for the buffer. */
	buf_append_str(&key, item->t->db->prefix);
	tuple_put_u64(&key, TIMED_SPACE_COUNT);
	/* By the hash that the item's key begins with. */
	tuple_put_u64(&key, (uint8_t)tail.ptr[2] % TIMED_COUNT_SHARDS);
	TRY(buf_status(&key));
	return timed_data_add(item->t, buf_str(&key), change);
}

/* ---- Bodies ---- */

void
timed_item_forget(struct timed_item *item)
{
	item->counted = false;
	item->count_key = (struct str){ NULL, 0 };
	item->known = NULL;
	item->recent = NULL;
	item->rest = (struct str){ NULL, 0 };
	item->popping = NULL;
	item->ends[0] = item->ends[1] = (struct str){ NULL, 0 };
	item->pushed = NULL;
	timed_map_drop(item);
}

/*
 * An id that no other body has: it consists of a hash of the key, of the moment, and of how many
 * bodies the transaction has made. Two transactions that make a body for one key conflict for its
 * header, and otherwise differ in their moments.
 */
enum status
timed_body_make(struct timed_item *item)
{
	static const uint8_t seed[HASH_SEED_BYTES];
	uint64_t hash = hash_seeded(seed, item->key) + item->t->bodies++;

	for (size_t i = 0; i < sizeof(hash); i++)
		item->id[i] = (uint8_t)(hash >> 8 * i);
	for (size_t i = sizeof(hash); i < TIMED_ID_BYTES; i++)
		item->id[i] = (uint8_t)(item->t->now_us >> 8 * (i - sizeof(hash)));
	item->stamped = false;
	timed_item_forget(item);
	return timed_body_prefix(item->t->db, item->arena, item->id, &item->body);
}

enum status
timed_body_drop(struct timed_item *item)
{
	struct kv_tx *tx = item->t->tx;
	struct str key;

	timed_item_forget(item);
	if (!item->body.len)
		return STATUS_OK;
	if (!item->t->has_history && kv_clears_cheaply(kv_tx_store(tx))) {
		TRY(timed_key_with(item->arena, item->body, CATALOG_KEY_LAST, &key));
		TRY(kv_clear_range(tx, item->body, key));
	} else {
		TRY(timed_gone_key(item->t, item->arena, item->id, &key));
		TRY(timed_gone_put(item->t, key));
	}
	item->body = STR("");
	return STATUS_OK;
}

enum status
timed_item_write_begin(struct timed_item *item)
{
	TRY(timed_write_begin(item->t));
	return timed_version_note(item->t, item->row, &item->noted_us);
}

enum status
timed_item_touch(struct timed_item *item)
{
	struct buf value;
	struct str key;

	TRY(timed_item_write_begin(item));
	/* Whatever changes a member comes here before. */
	item->recent = NULL;
	item->popping = NULL;
	if (item->stamped)
		return STATUS_OK;
	item->stamped = true;
	value = timed_arena_buf(item->arena, KV_VERSIONSTAMP_BYTES);
	for (size_t i = 0; i < KV_VERSIONSTAMP_BYTES; i++)
		buf_append_byte(&value, 0);
	TRY(buf_status(&value));
	TRY(timed_part_key(item, TIMED_PART_STAMP, &key));
	return kv_set_versionstamped_value(item->t->tx, key, buf_str(&value), 0);
}

enum status
timed_item_add(struct timed_item *item, int64_t change)
{
	if (!change)
		return STATUS_OK;
	item->count += (uint64_t)change;
	if (!item->count_key.ptr)
		TRY(timed_part_key(item, TIMED_PART_COUNT, &item->count_key));
	return timed_data_add(item->t, item->count_key, change);
}

enum status
timed_count(struct timed_item *item, uint64_t *ret)
{
	uint64_t hidden = 0;

	*ret = 0;
	if (item->packed)
		*ret = item->count;
	if (item->type == TIMED_LEAF || !item->body.len)
		return STATUS_OK;
	if (!item->counted)
		TRY(timed_count_part(item, TIMED_PART_COUNT, &item->count));
	item->counted = true;
	if (item->has_dues)
		TRY(timed_dues_hidden(item, &hidden));
	*ret = item->count - hidden;
	return STATUS_OK;
}

/* ---- Headers ---- */

uint64_t
timed_expiry_ms(const struct timed *t, struct timed_expiry expiry)
{
	uint64_t now_ms = t->now_us / TIMED_US_PER_MS;
	uint64_t ttl_ms = t->db->options[TIMED_OPTION_TTL_MS];

	switch (expiry.kind) {
	case TIMED_EXPIRY_DEFAULT:
		return ttl_ms ? now_ms + ttl_ms : 0;
	case TIMED_EXPIRY_NEVER:
		return 0;
	case TIMED_EXPIRY_AFTER:
		return now_ms + expiry.ms;
	case TIMED_EXPIRY_AT:
		return expiry.ms ? expiry.ms : 1;
	}
	return 0;
}

enum status
timed_item_renew(struct timed_item *item, enum timed_type type)
{
	TRY(timed_item_write_begin(item));
	TRY(timed_body_drop(item));
	if (!item->stored)
		TRY(items_add(item, 1));
	item->stored = true;
	item->type = type;
	item->expires_ms = 0;
	item->value = STR("");
	item->length = 0;
	item->height = 0;
	item->packed = item->has_dues = item->emptied = false;
	return timed_has_text(type) ? STATUS_OK : timed_body_make(item);
}

enum status
timed_item_store(struct timed_item *item)
{
	AUTO(buf_release) struct buf entry = CATALOG_KEY_INIT;
	struct timed_header h = {
		.type = item->type,
		.write_us = timed_write_us(item->t),
		.expires_ms = item->expires_ms,
		.whole = item->key.len > TIMED_WHOLE_BYTES ? item->key : STR(""),
		.value = item->value,
		.has_body = item->body.len > 0,
		.packed = item->packed,
		.length = timed_has_text(item->type) ? item->length
			  : item->packed             ? item->count
			  : item->type == TIMED_HASH ? item->has_dues
						     : item->height,
	};
	struct buf value = timed_arena_buf(item->arena,
					   TIMED_HEADER_BYTES + h.whole.len + h.value.len);

	memcpy(h.id, item->id, sizeof(h.id));
	item->write_us = h.write_us;
	timed_header_put(&h, &value);
	TRY(buf_status(&value));
	/* A write time that is given may have moved the moment on. */
	TRY(timed_version_note(item->t, item->row, &item->noted_us));
	TRY(timed_data_set(item->t, item->row, buf_str(&value)));
	/* Its entry stays until the moment has come, whatever becomes of the item meanwhile. */
	if (!item->expires_ms || item->expires_ms == item->due_ms)
		return STATUS_OK;
	item->due_ms = item->expires_ms;
	timed_note_expiry(item->t, item->expires_ms);
	TRY(timed_key_expiry(item->t->db, item->row, item->expires_ms, &entry));
	return kv_set(item->t->tx, buf_str(&entry), STR(""));
}

enum status
timed_item_delete(struct timed_item *item)
{
	if (item->type == TIMED_LEAF)
		return STATUS_OK;
	return timed_item_remove(item);
}

enum status
timed_item_sweep(struct timed_item *item, enum timed_swept *ret)
{
	*ret = TIMED_SWEPT_NOTHING;
	if (!item->stored || item->type != TIMED_LEAF)
		return STATUS_OK;
	*ret = item->emptied ? TIMED_SWEPT_EMPTIED : TIMED_SWEPT_EXPIRED;
	return timed_item_remove(item);
}

enum status
timed_item_remove(struct timed_item *item)
{
	if (!item->stored)
		return STATUS_OK;
	TRY(timed_item_write_begin(item));
	TRY(timed_body_drop(item));
	TRY(items_add(item, -1));
	item->stored = false;
	item->type = TIMED_LEAF;
	item->expires_ms = 0;
	item->packed = false;
	return timed_data_clear(item->t, item->row);
}

enum status
timed_item_clear(struct timed_item *item, struct str key)
{
	if (item->rest.ptr && str_eq(item->rest, key))
		item->rest = (struct str){ NULL, 0 };
	return timed_data_clear(item->t, key);
}

/* Where the pairs lie of which there is one for each member or element, or a few elements. */
static enum status
rest_bounds(struct timed_item *item, struct str *ret_begin, struct str *ret_end)
{
	bool ordered = item->type == TIMED_LIST || item->type == TIMED_ZSET;

	*ret_begin = item->body;
	if (ordered)
		TRY(timed_part_key(item, TIMED_PART_ORDER, ret_begin));
	return timed_key_with(item->arena, *ret_begin,
			      ordered ? CATALOG_KEY_LAST : TUPLE_CODE_BYTES + 1, ret_end);
}

/*
 * Reads one of these pairs; of a sorted set the last one, since those that go are mostly the first.
 * The transaction conflicts with whoever changes that pair, and not with those who put others
 * beside it.
 */
static enum status
rest_read(struct timed_item *item)
{
	const struct kv_range_options options = { .limit = 1,
						  .reverse = item->type == TIMED_ZSET,
						  .mode = KV_SNAPSHOT };
	struct str begin, end;
	struct timed_one one;
	struct kv_pair pair;
	enum status status;

	TRY(rest_bounds(item, &begin, &end));
	TRY(timed_one_ask(item->t, begin, end, &options, &one));
	status = timed_one_wait(item->t, &one, item->arena, &pair);
	if (status == STATUS_NOT_FOUND)
		TRY(kv_add_read_conflict_range(item->t->tx, begin, end));
	TRY(status);
	item->rest = arena_dup(item->arena, pair.key);
	if (!item->rest.ptr)
		return STATUS_LIMIT;
	TRY(timed_key_with(item->arena, item->rest, CATALOG_KEY_NEXT, &end));
	return kv_add_read_conflict_range(item->t->tx, item->rest, end);
}

enum status
timed_item_delete_empty(struct timed_item *item)
{
	enum status status;

	if (item->has_dues) {
		TRY(timed_dues_look(item));
		return item->type == TIMED_LEAF ? timed_item_remove(item) : STATUS_OK;
	}
	if ((item->counted && item->count) || item->rest.ptr)
		return STATUS_OK;
	status = rest_read(item);
	return status == STATUS_NOT_FOUND ? timed_item_remove(item) : status;
}

enum status
timed_item_expire(struct timed_item *item, struct timed_expiry expiry)
{
	if (item->type == TIMED_LEAF)
		return STATUS_OK;
	TRY(timed_item_write_begin(item));
	item->expires_ms = timed_expiry_ms(item->t, expiry);
	return timed_item_store(item);
}

void
timed_item_lapse(struct timed_item *item)
{
	if (!item->expires_ms || item->expires_ms > item->t->now_us / TIMED_US_PER_MS)
		return;
	item->type = TIMED_LEAF;
	item->expires_ms = 0;
	item->value = STR("");
	item->length = 0;
	item->height = 0;
	item->packed = item->has_dues = item->counted = false;
	item->recent = NULL;
}

enum status
timed_item_replace(struct timed_item *to, const struct timed_item *item)
{
	TRY(timed_item_renew(to, TIMED_VALUE));
	to->type = item->type;
	to->expires_ms = item->expires_ms;
	to->value = item->value;
	to->length = item->length;
	to->height = item->height;
	to->has_dues = item->has_dues;
	to->packed = item->packed;
	to->count = item->packed ? item->count : 0;
	/* The bytes of a pack are written over when the item is changed. */
	return item->packed ? arena_copy(to->arena, item->value, &to->value) : STATUS_OK;
}

enum status
timed_item_rename(struct timed_item *item, struct timed_item *to)
{
	struct str owner;

	TRY(timed_item_replace(to, item));
	TRY(timed_version_share(item->t, item->body));
	to->body = item->body;
	to->stamped = item->stamped;
	memcpy(to->id, item->id, sizeof(to->id));
	TRY(timed_item_store(to));
	if (to->type == TIMED_HASH && !to->packed) {
		TRY(timed_part_key(to, TIMED_PART_OWNER, &owner));
		TRY(kv_set(to->t->tx, owner, to->row));
	}
	item->body = STR("");
	return timed_item_remove(item);
}
