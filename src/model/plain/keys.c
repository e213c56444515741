#include <openssl/sha.h>

#include "bson/order.h"
#include "model/plain/plain_int.h"

/*
 * A record's key is (P, RECORDS, key), where `key` is the component of its `_id` as an element of
 * bytes. Behind it come the steps of a path: a member's name is a string, an array's position an
 * integer, so a name of digits is a name.
 */

enum {
	SPACE_BYTES = 2, /* of the number of a subspace in a key */
	POSITION_DIGITS = 9,
	KEY_ROOM = 128, /* for the key of an `_id`, which is mostly short */
};

void
plain_key_space(struct buf *key, const struct catalog_db *db, enum plain_space space)
{
	buf_clear(key);
	buf_append_str(key, db->prefix);
	tuple_put_u64(key, space);
}

/* Of a long key the beginning, and a hash of all of it. */
static enum status
id_key_cut(const struct bson_value *id, struct buf *ret)
{
	/* The key of a value is not longer than twice the value, and its frame. */
	const size_t most = 4 * (size_t)PLAIN_ID_VALUE_BYTES;
	AUTO(buf_release) struct buf whole = BUF_INIT(BSON_KEY_ROOM(most));
	uint8_t hash[SHA256_DIGEST_LENGTH];
	bool cut = false;

	TRY(bson_key_put(&whole, id, most, NULL, &cut));
	SHA256((const uint8_t *)whole.ptr, whole.len, hash);
	buf_append(ret, hash, sizeof(hash));
	return buf_status(ret);
}

static enum status
id_check_length(const struct bson_value *id, struct err *err)
{
	AUTO(buf_release) struct buf value = BUF_INIT(PLAIN_ID_VALUE_BYTES);

	/* Those that most documents have are short. */
	if (bson_is_number(id) || id->type == BSON_OBJECT_ID ||
	    (id->type == BSON_STRING && bson_text(id).len < PLAIN_ID_VALUE_BYTES / 2))
		return STATUS_OK;
	bson_value_write(&value, id);
	if (buf_status(&value) == STATUS_LIMIT)
		return err_set(err, STATUS_INVALID,
			       "an _id may have %d bytes (PLAIN_ID_VALUE_BYTES)",
			       PLAIN_ID_VALUE_BYTES);
	return buf_status(&value);
}

enum status
plain_id_key(const struct bson_value *id, struct buf *ret, struct err *err)
{
	bool cut = false;

	TRY(id_check_length(id, err));
	TRY(bson_key_put(ret, id, PLAIN_ID_BYTES, NULL, &cut));
	return cut ? id_key_cut(id, ret) : STATUS_OK;
}

static enum status
record_key_put(const struct catalog_db *db, const struct bson_value *id, struct buf *id_key,
	       struct buf *ret, struct err *err)
{
	TRY(plain_id_key(id, id_key, err));
	plain_key_space(ret, db, PLAIN_SPACE_RECORDS);
	tuple_put_bytes(ret, buf_str(id_key));
	return catalog_key_status(ret);
}

enum status
plain_key_record(const struct catalog_db *db, const struct bson_value *id, struct buf *ret,
		 struct err *err)
{
	AUTO(buf_release) struct buf key = BUF_INIT(BSON_KEY_ROOM(PLAIN_ID_BYTES));
	char room[KEY_ROOM];
	struct buf small = { .ptr = room, .cap = sizeof(room), .max_bytes = sizeof(room) };

	/* A key that was cut is longer than this room. */
	if (record_key_put(db, id, &small, ret, err) == STATUS_OK)
		return STATUS_OK;
	return record_key_put(db, id, &key, ret, err);
}

enum status
plain_key_record_bytes(const struct catalog_db *db, struct str key, size_t *ret)
{
	size_t at = db->prefix.len + SPACE_BYTES;

	*ret = at < key.len ? tuple_skip(key, at, TUPLE_SKIP_TEXT) : 0;
	return *ret ? STATUS_OK : STATUS_CORRUPT;
}

void
plain_key_text(const struct catalog_db *db, const uint8_t text[PLAIN_TEXT_ID_BYTES],
	       struct buf *ret)
{
	plain_key_space(ret, db, PLAIN_SPACE_TEXTS);
	tuple_put_uuid(ret, text);
}

void
plain_key_staged(const struct catalog_db *db, const uint8_t text[PLAIN_TEXT_ID_BYTES],
		 struct buf *ret)
{
	plain_key_space(ret, db, PLAIN_SPACE_STAGED);
	tuple_put_uuid(ret, text);
}

enum status
plain_key_single(const struct catalog_db *db, enum plain_space space, struct buf *ret)
{
	plain_key_space(ret, db, space);
	return catalog_key_status(ret);
}

enum status
plain_key_end(struct str key, struct buf *ret)
{
	buf_clear(ret);
	buf_append_str(ret, key);
	buf_append_byte(ret, CATALOG_KEY_LAST);
	return catalog_key_status(ret);
}

bool
plain_step_is_position(struct str step, uint32_t *ret)
{
	uint64_t n;

	if (!step.len || step.len > POSITION_DIGITS || (step.ptr[0] == '0' && step.len > 1) ||
	    !str_to_u64(step, &n))
		return false;
	*ret = (uint32_t)n;
	return true;
}
