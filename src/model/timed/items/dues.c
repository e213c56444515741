/*
 * Members of a hash that expire by themselves. Beside the entry of EXPIRY, by which the sweep finds
 * such a member, its body has an entry of its own, and counts those:
 *
 *     (P, BODY, b"id", DUE, ms, b"hash16 name") → ''
 *     (P, BODY, b"id", DUES)                    → how many there are
 *
 * So it takes a few keys to say whether a hash has a member that is not hidden, and how many are
 * hidden are the entries up to now, which the sweep removes.
 */
#include <endian.h>

#include "model/timed/items/item_int.h"

enum {
	DUE_KEY_BYTES = 24,    /* of the two numbers */
	EXPIRY_KEY_BYTES = 32, /* of an entry, before the id */
};

enum status
timed_count_get(struct timed_item *item, struct str key, uint64_t *ret)
{
	struct str value;

	*ret = 0;
	TRY(timed_data_get(item->t, key, KV_READ, item->arena, &value));
	if (value.ptr && value.len != sizeof(*ret))
		return timed_item_corrupt(item);
	if (value.ptr)
		memcpy(ret, value.ptr, sizeof(*ret));
	*ret = le64toh(*ret);
	return STATUS_OK;
}

enum status
timed_count_part(struct timed_item *item, enum timed_part part, uint64_t *ret)
{
	struct str key;

	*ret = 0;
	TRY(timed_part_key(item, part, &key));
	return timed_count_get(item, key, ret);
}

/* The entry of the member whose key goes on with `tail` behind the body. */
static enum status
due_key(struct timed_item *item, uint64_t ms, struct str tail, struct str *ret)
{
	struct buf key = timed_arena_buf(item->arena, item->body.len + DUE_KEY_BYTES + tail.len);

	buf_append_str(&key, item->body);
	tuple_put_u64(&key, TIMED_PART_DUE);
	tuple_put_u64(&key, ms);
	buf_append_str(&key, tail);
	*ret = buf_str(&key);
	return buf_status(&key);
}

/* Writes the entry by which the sweep finds the member, and the owner of the body. */
static enum status
member_entry(struct timed_item *item, struct str member_key, uint64_t ms)
{
	struct str tail = str_skip(member_key, item->body.len), owner;
	struct buf key = timed_arena_buf(item->arena, EXPIRY_KEY_BYTES + item->t->db->prefix.len +
							      2 * TIMED_ID_BYTES + tail.len);

	buf_append_str(&key, item->t->db->prefix);
	tuple_put_u64(&key, TIMED_SPACE_EXPIRY);
	tuple_put_u64(&key, item->id[0] % TIMED_EXPIRY_SHARDS);
	tuple_put_u64(&key, ms);
	tuple_put_null(&key);
	tuple_put_bytes(&key, str_of(item->id, sizeof(item->id)));
	buf_append_str(&key, tail);
	TRY(buf_status(&key));
	TRY(timed_part_key(item, TIMED_PART_OWNER, &owner));
	timed_note_expiry(item->t, ms);
	TRY(kv_set(item->t->tx, owner, item->row));
	return kv_set(item->t->tx, buf_str(&key), STR(""));
}

enum status
timed_due_change(struct timed_item *item, struct str member_key, uint64_t old_ms, uint64_t new_ms)
{
	struct str tail = str_skip(member_key, item->body.len), key;
	int change = (new_ms != 0) - (old_ms != 0);

	if (old_ms && old_ms != new_ms) {
		TRY(due_key(item, old_ms, tail, &key));
		TRY(timed_data_clear(item->t, key));
	}
	if (new_ms && old_ms != new_ms) {
		TRY(due_key(item, new_ms, tail, &key));
		TRY(timed_data_set(item->t, key, STR("")));
	}
	if (new_ms)
		TRY(member_entry(item, member_key, new_ms));
	if (!change)
		return STATUS_OK;
	TRY(timed_part_key(item, TIMED_PART_DUES, &key));
	return timed_data_add(item->t, key, change);
}

static uint64_t
now_ms(const struct timed_item *item)
{
	return item->t->now_us / TIMED_US_PER_MS;
}

enum status
timed_dues_hidden(struct timed_item *item, uint64_t *ret)
{
	AUTO(timed_cursor_close) struct timed_cursor scan = { 0 };
	struct kv_pair ignored;
	struct str begin, end;
	enum status status;

	*ret = 0;
	TRY(timed_part_key(item, TIMED_PART_DUE, &begin));
	TRY(due_key(item, now_ms(item) + 1, STR(""), &end));
	TRY(timed_cursor_open(&scan, item->t, begin, end, NULL));
	while ((status = timed_cursor_next(&scan, &ignored)) == STATUS_OK)
		++*ret;
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* True if the first member of all does not expire by itself. */
static enum status
first_lasts(struct timed_item *item, struct timed_one *one, bool *ret)
{
	struct timed_leaf_record leaf;
	struct kv_pair pair;
	enum status status = timed_one_wait(item->t, one, item->arena, &pair);

	*ret = false;
	if (status != STATUS_OK)
		return status == STATUS_NOT_FOUND ? STATUS_OK : status;
	TRY(timed_leaf_read(item, pair.value, &leaf));
	*ret = !leaf.expires_ms;
	return STATUS_OK;
}

/* True if there are more members than such that expire by themselves. */
static enum status
some_last(struct timed_item *item, bool *ret)
{
	uint64_t members, dues;

	TRY(timed_count_part(item, TIMED_PART_COUNT, &members));
	TRY(timed_count_part(item, TIMED_PART_DUES, &dues));
	*ret = members != dues;
	return STATUS_OK;
}

enum status
timed_dues_look(struct timed_item *item)
{
	const struct kv_range_options options = { .limit = 1 };
	struct timed_one later, first;
	struct str begin, end;
	struct kv_pair ignored;
	bool lasts;
	enum status status;

	if (item->type != TIMED_HASH || !item->has_dues)
		return STATUS_OK;
	TRY(due_key(item, now_ms(item) + 1, STR(""), &begin));
	TRY(timed_part_key(item, TIMED_PART_DUE, &end));
	TRY(timed_key_with(item->arena, end, CATALOG_KEY_LAST, &end));
	TRY(timed_one_ask(item->t, begin, end, &options, &later));
	TRY(timed_hash_key(item->arena, item->body, 0, &begin));
	TRY(timed_hash_key(item->arena, item->body, TIMED_HASHES, &end));
	TRY(timed_one_ask(item->t, begin, end, &options, &first));
	status = timed_one_wait(item->t, &later, item->arena, &ignored);
	if (status != STATUS_NOT_FOUND)
		return status;
	TRY(first_lasts(item, &first, &lasts));
	if (!lasts)
		TRY(some_last(item, &lasts));
	if (lasts)
		return STATUS_OK;
	item->type = TIMED_LEAF;
	item->expires_ms = 0;
	item->emptied = true;
	return STATUS_OK;
}
