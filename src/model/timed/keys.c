#include <assert.h>

#include "kv/tuple.h"
#include "model/timed/timed_int.h"

/*
 * A row's key is two elements of bytes: the hash and the hash components, and the range components,
 * each of them a row of components of doc/key.h. So every key is a tuple whatever the components
 * are, and the first element alone names the rows that are stored together.
 */

uint16_t
timed_hash16(struct str bytes)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < bytes.len; i++)
		hash = (hash ^ (uint8_t)bytes.ptr[i]) * UINT64_C(0x100000001b3);
	hash ^= hash >> 32;
	return (uint16_t)(hash ^ hash >> 16);
}

enum status
timed_key_expiry(const struct catalog_db *db, struct str key, uint64_t ms, struct buf *ret)
{
	struct str tail = str_skip(key, db->prefix.len + TIMED_SPACE_BYTES);

	/* An element of bytes begins with its code, and then the hash, whose NULs are escaped. */
	timed_key_space(ret, db, TIMED_SPACE_EXPIRY);
	tuple_put_u64(ret, (uint8_t)tail.ptr[2] % TIMED_EXPIRY_SHARDS);
	tuple_put_u64(ret, ms);
	buf_append_str(ret, tail);
	return catalog_key_status(ret);
}

enum status
timed_history_key(const struct catalog_db *db, struct buf *key)
{
	timed_key_space(key, db, TIMED_SPACE_HISTORY);
	return catalog_key_status(key);
}

/* ---- Writing components ---- */

static enum status
key_fail_too_long(struct timed *t)
{
	return err_set(t->err, STATUS_KEY_TOO_LARGE,
		       "the key of a row and a path in it may have %d bytes (TIMED_KEY_BYTES)",
		       TIMED_KEY_BYTES);
}

static bool
kind_can_be_key(enum doc_kind kind)
{
	switch ((int)kind) {
	case DOC_BOOL:
	case DOC_TEXT:
	case DOC_BYTES:
	case DOC_INT8:
	case DOC_INT16:
	case DOC_INT32:
	case DOC_INT64:
	case DOC_INTEGER:
	case DOC_DECIMAL:
	case DOC_DECIMAL128:
	case DOC_FLOAT:
	case DOC_DOUBLE:
	case DOC_UUID:
	case DOC_TIMEUUID:
	case DOC_DATE:
	case DOC_DAY:
	case DOC_TIME:
	case DOC_INET:
		return true;
	default:
		return false;
	}
}

enum status
timed_key_component(struct timed *t, const struct doc_scalar *s, bool descending, struct buf *to)
{
	size_t from = to->len;
	enum status status;

	if (!kind_can_be_key(s->kind))
		return err_set(t->err, STATUS_INVALID,
			       "a value of this type cannot be part of a key");
	status = doc_key_put(to, DOC_KEY_TYPED, s);
	if (status == STATUS_LIMIT)
		return key_fail_too_long(t);
	TRY(status);
	if (descending)
		doc_key_invert(to, from);
	return STATUS_OK;
}

enum status
timed_key_check_bytes(struct timed *t, const struct buf *key)
{
	TRY(catalog_key_status(key));
	/* Of the two elements and a path, whatever the number of the database is. */
	if (key->len - t->db->prefix.len - TIMED_SPACE_BYTES > TIMED_KEY_BYTES)
		return key_fail_too_long(t);
	return STATUS_OK;
}

void
timed_key_element_open(struct buf *key)
{
	assert(key->len && !key->ptr[key->len - 1]);
	key->len--;
}

enum status
timed_key_close_range(enum timed_bound_kind from, enum timed_bound_kind to, struct buf *begin,
		      struct buf *end)
{
	if (from == TIMED_BOUND_EXCLUSIVE)
		buf_append_byte(begin, CATALOG_KEY_LAST);
	if (to != TIMED_BOUND_EXCLUSIVE)
		buf_append_byte(end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(begin));
	TRY(catalog_key_status(end));
	if (str_cmp(buf_str(begin), buf_str(end)) > 0) {
		buf_clear(end);
		buf_append_buf(end, begin);
	}
	return catalog_key_status(end);
}

/* ---- Reading the key of a row ---- */

enum status
timed_key_row_bytes(const struct catalog_db *db, struct str key, size_t *ret)
{
	size_t at = db->prefix.len + TIMED_SPACE_BYTES;

	for (int i = 0; i < 2; i++) {
		at = at < key.len ? tuple_skip(key, at, TUPLE_SKIP_TEXT) : 0;
		if (!at)
			return STATUS_CORRUPT;
	}
	*ret = at;
	return STATUS_OK;
}

static enum status
components_parse(struct str bytes, const struct timed_key_column *columns, size_t count,
		 struct arena *arena, struct doc_scalar *ret)
{
	for (size_t i = 0; i < count; i++) {
		enum status status;
		size_t len;

		status = doc_key_read(bytes, columns ? columns[i].descending : false, arena,
				      &ret[i], &len);
		if (status == STATUS_INVALID)
			return STATUS_CORRUPT;
		TRY(status);
		bytes = str_skip(bytes, len);
	}
	return bytes.len ? STATUS_CORRUPT : STATUS_OK;
}

/* Steps until the end of the key. */
static enum status
path_parse(struct tuple_reader *r, struct arena *arena, struct timed_path *ret)
{
	struct timed_step *steps = NULL;
	size_t count = 0, cap = 0;
	struct tuple_elem e;
	enum status status;

	while ((status = tuple_next(r, &e)) == STATUS_OK) {
		AUTO(buf_release) struct buf scratch = BUF_INIT(KV_LIMIT_KEY_BYTES);
		struct timed_step step = { 0 };

		if (e.kind == TUPLE_INT && !e.negative && e.magnitude) {
			step.column = e.magnitude;
		} else if (e.kind == TUPLE_BYTES) {
			tuple_unescape(&e, &scratch);
			TRY(buf_status(&scratch));
			TRY(components_parse(buf_str(&scratch), NULL, 1, arena, &step.key));
		} else {
			return STATUS_CORRUPT;
		}
		if (count == TIMED_PATH_STEPS)
			return STATUS_CORRUPT;
		steps = arena_grow(arena, steps, count, &cap, sizeof(*steps));
		if (!steps)
			return STATUS_LIMIT;
		steps[count++] = step;
	}
	*ret = (struct timed_path){ steps, count };
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status
timed_place_parse(const struct timed_schema *schema, struct str tail, struct arena *arena,
		  struct timed_place *ret)
{
	AUTO(buf_release) struct buf scratch = BUF_INIT(KV_LIMIT_KEY_BYTES);
	struct tuple_reader r = tuple_reader(tail);
	size_t range_count = schema->key_count - schema->hash_count;
	struct str hash, range;

	assert(schema->hash_count && schema->hash_count <= schema->key_count);
	ret->key = arena_zalloc(arena, schema->key_count * sizeof(*ret->key));
	if (!ret->key)
		return STATUS_LIMIT;
	TRY(tuple_next_bytes(&r, &scratch, &hash));
	if (hash.len < TIMED_HASH_BYTES)
		return STATUS_CORRUPT;
	ret->hash = (uint16_t)((uint8_t)hash.ptr[0] << 8 | (uint8_t)hash.ptr[1]);
	hash = str_skip(hash, TIMED_HASH_BYTES);
	if (timed_hash16(hash) != ret->hash)
		return STATUS_CORRUPT;
	TRY(components_parse(hash, schema->key, schema->hash_count, arena, ret->key));
	buf_clear(&scratch);
	TRY(tuple_next_bytes(&r, &scratch, &range));
	TRY(components_parse(range, schema->key + schema->hash_count, range_count, arena,
			     ret->key + schema->hash_count));
	return path_parse(&r, arena, &ret->path);
}
