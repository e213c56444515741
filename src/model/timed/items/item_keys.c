/* Keys of items and of what is in their bodies. */
#include <openssl/sha.h>

#include "doc/key.h"
#include "model/timed/items/item_int.h"

enum {
	KEY_NUMBER_BYTES = 9, /* of a number in a key, at most */
	KEY_EACH_BYTES = 8,   /* of an element of bytes beside its content, with room to spare */
};

struct buf
timed_arena_buf(struct arena *arena, size_t bytes)
{
	struct buf b = BUF_INIT(bytes);

	b.ptr = arena_bytes(arena, bytes);
	if (b.ptr)
		b.cap = bytes;
	else
		b.failed = STATUS_LIMIT;
	return b;
}

static enum status
key_done(const struct buf *key, struct str *ret)
{
	TRY(buf_status(key));
	*ret = buf_str(key);
	return STATUS_OK;
}

enum status
timed_cut(struct arena *arena, struct str name, struct str *ret)
{
	char *cut;

	*ret = name;
	if (name.len <= TIMED_WHOLE_BYTES)
		return STATUS_OK;
	cut = arena_bytes(arena, TIMED_CUT_BYTES);
	if (!cut)
		return STATUS_LIMIT;
	memcpy(cut, name.ptr, TIMED_WHOLE_BYTES);
	SHA256((const unsigned char *)name.ptr, name.len, (unsigned char *)cut + TIMED_WHOLE_BYTES);
	*ret = str_of(cut, TIMED_CUT_BYTES);
	return STATUS_OK;
}

/* (P, space, behind which `more` bytes have room, NULs among them escaped once. */
static struct buf
key_begin(const struct catalog_db *db, struct arena *arena, enum timed_space space, size_t more)
{
	struct buf key = timed_arena_buf(arena, db->prefix.len + KEY_NUMBER_BYTES + 2 * more +
							3 * KEY_EACH_BYTES);

	buf_append_str(&key, db->prefix);
	tuple_put_u64(&key, space);
	return key;
}

enum status
timed_item_row(const struct catalog_db *db, struct arena *arena, struct str name, struct str *ret)
{
	struct buf component, key;
	struct str cut;
	uint16_t hash;

	TRY(timed_cut(arena, name, &cut));
	component = timed_arena_buf(arena, 2 * cut.len + KEY_EACH_BYTES);
	buf_append_byte(&component, 0);
	buf_append_byte(&component, 0);
	TRY(buf_status(&component));
	TRY(doc_key_put(&component, DOC_KEY_TYPED,
			&(struct doc_scalar){ .kind = DOC_BYTES, .text = cut }));
	hash = timed_hash16(str_skip(buf_str(&component), TIMED_HASH_BYTES));
	component.ptr[0] = (char)(hash >> 8);
	component.ptr[1] = (char)hash;
	key = key_begin(db, arena, TIMED_SPACE_ROWS, component.len);
	tuple_put_bytes(&key, buf_str(&component));
	tuple_put_bytes(&key, STR(""));
	return key_done(&key, ret);
}

enum status
timed_body_prefix(const struct catalog_db *db, struct arena *arena,
		  const uint8_t id[TIMED_ID_BYTES], struct str *ret)
{
	struct buf key = key_begin(db, arena, TIMED_SPACE_BODY, TIMED_ID_BYTES);

	tuple_put_bytes(&key, str_of(id, TIMED_ID_BYTES));
	return key_done(&key, ret);
}

enum status
timed_gone_key(const struct timed *t, struct arena *arena, const uint8_t id[TIMED_ID_BYTES],
	       struct str *ret)
{
	struct buf key = key_begin(t->db, arena, TIMED_SPACE_GONE, TIMED_ID_BYTES);

	tuple_put_u64(&key, t->has_history ? t->state.buckets[t->state.count - 1].number : 0);
	tuple_put_bytes(&key, str_of(id, TIMED_ID_BYTES));
	return key_done(&key, ret);
}

/* ---- Keys of a body ---- */

enum status
timed_item_corrupt(struct timed_item *item)
{
	return err_set(item->t->err, STATUS_CORRUPT,
		       "an item of the database \"%.*s\" cannot be read",
		       STR_ARG(item->t->db->name));
}

/* What all keys of the body begin with, with room for two numbers and `more` bytes. */
static struct buf
body_begin(struct timed_item *item, size_t more)
{
	struct buf key = timed_arena_buf(item->arena, item->body.len + 2 * KEY_NUMBER_BYTES +
							      2 * more + KEY_EACH_BYTES);

	buf_append_str(&key, item->body);
	return key;
}

enum status
timed_part_key(struct timed_item *item, enum timed_part part, struct str *ret)
{
	struct buf key = body_begin(item, 0);

	tuple_put_u64(&key, part);
	return key_done(&key, ret);
}

enum status
timed_member_key(struct timed_item *item, struct str name, struct str *ret)
{
	struct str cut;

	TRY(timed_cut(item->arena, name, &cut));
	return timed_cut_key(item, cut, ret);
}

enum status
timed_cut_key(struct timed_item *item, struct str cut, struct str *ret)
{
	struct buf hashed, key;
	uint16_t hash = timed_hash16(cut);

	hashed = timed_arena_buf(item->arena, TIMED_HASH_BYTES + cut.len);
	buf_append_byte(&hashed, (uint8_t)(hash >> 8));
	buf_append_byte(&hashed, (uint8_t)hash);
	buf_append_str(&hashed, cut);
	TRY(buf_status(&hashed));
	key = body_begin(item, hashed.len);
	tuple_put_bytes(&key, buf_str(&hashed));
	return key_done(&key, ret);
}

enum status
timed_order_key(struct timed_item *item, struct str order, struct str *ret)
{
	struct buf key = body_begin(item, order.len);

	tuple_put_u64(&key, TIMED_PART_ORDER);
	tuple_put_bytes(&key, order);
	return key_done(&key, ret);
}

enum status
timed_block_key(struct timed_item *item, unsigned level, struct str order, struct str *ret)
{
	struct buf key = body_begin(item, order.len);

	tuple_put_u64(&key, TIMED_PART_BLOCKS);
	tuple_put_u64(&key, level);
	tuple_put_bytes(&key, order);
	return key_done(&key, ret);
}

enum status
timed_chunk_key(struct timed_item *item, uint64_t n, struct str *ret)
{
	struct buf key = body_begin(item, 0);

	tuple_put_u64(&key, TIMED_PART_CHUNKS);
	tuple_put_u64(&key, n);
	return key_done(&key, ret);
}

enum status
timed_key_tail(struct timed_item *item, struct str key, unsigned skip, struct str *ret)
{
	struct tuple_reader r = tuple_reader(str_skip(key, item->body.len));
	struct buf scratch;
	struct str tail;
	uint64_t number;

	while (skip--)
		if (tuple_next_u64(&r, &number) != STATUS_OK)
			return timed_item_corrupt(item);
	if (tuple_next_plain(&r, TUPLE_BYTES, &tail)) {
		*ret = arena_dup(item->arena, tail);
		return ret->ptr ? STATUS_OK : STATUS_LIMIT;
	}
	scratch = timed_arena_buf(item->arena, r.rest.len);
	TRY(buf_status(&scratch));
	if (tuple_next_bytes(&r, &scratch, ret) != STATUS_OK || r.rest.len)
		return timed_item_corrupt(item);
	return STATUS_OK;
}

enum status
timed_hash_key(struct arena *arena, struct str before, uint64_t hash, struct str *ret)
{
	struct buf key = timed_arena_buf(arena, before.len + KEY_EACH_BYTES);
	const uint8_t bytes[TIMED_HASH_BYTES] = { (uint8_t)(hash >> 8), (uint8_t)hash };

	buf_append_str(&key, before);
	if (hash >= TIMED_HASHES) {
		buf_append_byte(&key, TUPLE_CODE_BYTES + 1);
		return key_done(&key, ret);
	}
	tuple_put_bytes(&key, str_of(bytes, sizeof(bytes)));
	TRY(buf_status(&key));
	key.len--; /* the element goes on */
	return key_done(&key, ret);
}

enum status
timed_key_with(struct arena *arena, struct str key, uint8_t byte, struct str *ret)
{
	struct buf b = timed_arena_buf(arena, key.len + 1);

	buf_append_str(&b, key);
	buf_append_byte(&b, byte);
	return key_done(&b, ret);
}
