/*
 * Expiry of members of hashes, and the removal of items and members that have expired.
 *
 *     (P, EXPIRY, shard, ms, hash components, range components)  → '': an item, as any row
 *     (P, EXPIRY, shard, ms, null, b"id", b"hash16 name")        → '': a member
 *     (P, EXPIRY, shard, ms, null, b"id")                        → '': a body that is staged
 *
 * dues.c writes the latter. A member's entry names its body, which stays the same when the item is
 * renamed; the body's OWNER is then the key of the header, which goes with the last member.
 */
#include "model/timed/items/item_int.h"

/* ---- Removing ---- */

/* The value of a key; ptr NULL: there is none. */
static enum status
value_read(struct timed *t, struct str key, struct str *ret)
{
	struct kv_future *f = kv_get(t->tx, key, KV_READ);

	TRY(kv_future_wait(f));
	if (!kv_future_value(f, ret))
		*ret = (struct str){ NULL, 0 };
	return STATUS_OK;
}

/* The item whose header is at the key. Its own key may be unknown: it is only to be removed. */
static enum status
item_load(struct timed *t, struct arena *arena, struct str row, struct str value,
	  struct timed_item *ret, uint64_t *ret_expires_ms)
{
	struct timed_header h;
	enum status status = timed_header_parse(value, &h, t->err);

	*ret = (struct timed_item){ .t = t, .arena = arena, .row = row };
	if (status == STATUS_CORRUPT)
		return timed_item_corrupt(ret);
	TRY(status);
	ret->key = h.whole;
	*ret_expires_ms = h.expires_ms;
	return timed_item_take(ret, &h);
}

/* What the listener is told of the item whose header is at the key. */
static enum status
expired_of(struct timed_item *item, struct timed_expired *ret)
{
	AUTO(buf_release) struct buf space = CATALOG_KEY_INIT;
	struct timed_place place;

	*ret = (struct timed_expired){ .key = item->key };
	if (!item->key.len) {
		timed_key_space(&space, item->t->db, TIMED_SPACE_ROWS);
		TRY(buf_status(&space));
		TRY(timed_place_parse(timed_schema_of(item->t->db), str_skip(item->row, space.len),
				      item->arena, &place));
		ret->key = place.key[0].text;
	}
	ret->key = arena_dup(item->arena, ret->key);
	return ret->key.ptr ? STATUS_OK : STATUS_LIMIT;
}

/*
 * Reads the key of the header that a body belongs to; ptr NULL: it is not known. OWNER has the key
 * with the number that the database had when OWNER was written. A move gives the database another
 * number, so the number in OWNER is not used.
 */
static enum status
owner_read(struct timed_item *body, struct str *ret)
{
	struct str prefix = body->t->db->prefix, owner;
	struct buf key;
	size_t number;

	TRY(timed_part_key(body, TIMED_PART_OWNER, &owner));
	TRY(value_read(body->t, owner, ret));
	if (!ret->ptr)
		return STATUS_OK;
	number = tuple_skip(*ret, 0, TUPLE_SKIP_INT);
	if (!number)
		return timed_item_corrupt(body);
	key = timed_arena_buf(body->arena, prefix.len + ret->len);
	buf_append_str(&key, prefix);
	buf_append_str(&key, str_skip(*ret, number));
	*ret = buf_str(&key);
	return buf_status(&key);
}

/* Removes a member of the body that `body` is, which has expired. */
static enum status
member_remove(struct timed_item *body, struct str member_key, const struct timed_leaf_record *leaf,
	      struct timed_expired *ret)
{
	struct timed_item item;
	struct str owner, value = { NULL, 0 };
	uint64_t ignored;

	TRY(timed_write_begin(body->t));
	TRY(owner_read(body, &owner));
	if (owner.ptr)
		TRY(value_read(body->t, owner, &value));
	if (!value.ptr)
		return STATUS_OK;
	TRY(item_load(body->t, body->arena, owner, value, &item, &ignored));
	if (!str_eq(item.body, body->body))
		return STATUS_OK; /* the body is gone, and will be cleared as a whole */
	TRY(timed_data_clear(body->t, member_key));
	TRY(timed_leaf_drop(&item, &leaf->pieces));
	TRY(timed_due_change(&item, member_key, leaf->expires_ms, 0));
	TRY(timed_item_touch(&item));
	TRY(timed_item_add(&item, -1));
	TRY(expired_of(&item, ret));
	TRY(timed_item_delete_empty(&item));
	ret->member = true;
	ret->emptied = !item.stored;
	return STATUS_OK;
}

/* Removes a body that was staged and not published. The caller clears the entry. */
static enum status
stage_sweep(struct timed_item *body, uint64_t ms, bool *ret_done)
{
	struct str entry, value;

	/* The sweep has read the entry by a snapshot; whoever publishes the body clears it. */
	TRY(timed_stage_key(body->t->db, body->arena, body->id, ms, &entry));
	TRY(value_read(body->t, entry, &value));
	*ret_done = value.ptr != NULL;
	return *ret_done ? timed_body_drop(body) : STATUS_OK;
}

static enum status
member_sweep(struct timed *t, struct arena *arena, uint64_t ms, struct tuple_reader r,
	     struct timed_expired *ret, bool *ret_done)
{
	struct timed_item body = { .t = t, .arena = arena };
	struct buf id = timed_arena_buf(arena, TIMED_ID_BYTES);
	struct timed_leaf_record leaf;
	struct tuple_elem e;
	struct buf key;
	struct str value;

	TRY(buf_status(&id));
	if (tuple_next(&r, &e) != STATUS_OK || e.kind != TUPLE_BYTES)
		return timed_item_corrupt(&body);
	tuple_unescape(&e, &id);
	if (buf_status(&id) != STATUS_OK || id.len != TIMED_ID_BYTES)
		return timed_item_corrupt(&body);
	memcpy(body.id, id.ptr, sizeof(body.id));
	TRY(timed_body_prefix(t->db, arena, body.id, &body.body));
	if (!r.rest.len)
		return stage_sweep(&body, ms, ret_done);
	key = timed_arena_buf(arena, body.body.len + r.rest.len);
	buf_append_str(&key, body.body);
	buf_append_str(&key, r.rest);
	TRY(buf_status(&key));
	TRY(value_read(t, buf_str(&key), &value));
	if (!value.ptr)
		return STATUS_OK;
	TRY(timed_leaf_parse(value, &leaf, t->err));
	if (leaf.expires_ms != ms)
		return STATUS_OK;
	TRY(member_remove(&body, buf_str(&key), &leaf, ret));
	*ret_done = ret->key.ptr != NULL;
	return STATUS_OK;
}

enum status
timed_items_due_sweep(struct timed *t, const struct timed_due *due, struct kv_future *asked,
		      struct arena *arena, struct timed_due_swept *ret)
{
	struct tuple_reader r = tuple_reader(due->tail);
	struct timed_item item;
	struct tuple_elem e;
	uint64_t expires_ms;
	struct str value;

	(void)asked; /* an entry before this one may have changed what it reads */
	TRY(tuple_next_elem(&r, &e));
	if (e.kind == TUPLE_NULL) {
		TRY(member_sweep(t, arena, due->ms, r, &ret->what, &ret->done));
		ret->more = ret->done;
		return STATUS_OK;
	}
	TRY(value_read(t, due->key, &value));
	if (!value.ptr)
		return STATUS_OK;
	TRY(item_load(t, arena, due->key, value, &item, &expires_ms));
	if (expires_ms != due->ms)
		return STATUS_OK;
	ret->done = true;
	ret->more = true; /* its body may have to be cleared */
	TRY(expired_of(&item, &ret->what));
	return timed_item_remove(&item);
}
