/* Going through all pairs of a subspace, some in each turn of the sweep. */
#include <assert.h>

#include "catalog/format.h"
#include "model/timed/timed_int.h"

enum {
	WALK_FORMAT = 1,
	WALK_VALUE_BYTES = 2 * KV_LIMIT_KEY_BYTES, /* what is escaped may double */
};

enum status
timed_walk_key(const struct catalog_db *db, enum timed_space record, struct buf *key)
{
	timed_key_space(key, db, record);
	return catalog_key_status(key);
}

static enum status
walk_write(struct timed *t, enum timed_space record, struct str from)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(WALK_VALUE_BYTES);

	TRY(timed_walk_key(t->db, record, &key));
	tuple_put_u64(&value, WALK_FORMAT);
	tuple_put_bytes(&value, str_skip(from, t->db->prefix.len));
	TRY(buf_status(&value));
	return kv_set(t->tx, buf_str(&key), buf_str(&value));
}

/* `*ret` is in the scratch buffer or in the value. */
static enum status
walk_parse(struct str value, struct buf *scratch, struct str *ret, struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	uint64_t format;

	TRY(catalog_format_next(&r, "place of a walk", WALK_FORMAT, &format, err));
	return tuple_next_bytes(&r, scratch, ret);
}

bool
timed_walk_is_good(struct str value)
{
	AUTO(buf_release) struct buf scratch = CATALOG_KEY_INIT;
	struct str from;

	return walk_parse(value, &scratch, &from, NULL) == STATUS_OK;
}

enum status
timed_walk_begin(struct timed *t, enum timed_space record, enum timed_space space)
{
	AUTO(buf_release) struct buf from = CATALOG_KEY_INIT;

	timed_key_space(&from, t->db, space);
	TRY(catalog_key_status(&from));
	return walk_write(t, record, buf_str(&from));
}

static enum status
walk_slice(struct timed *t, const struct timed_walk *walk, struct str from, bool *ret_more)
{
	const struct kv_range_options options = { .limit = TIMED_SWEEP_KEYS, .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct kv_range range;
	struct kv_future *f;

	timed_key_space(&end, t->db, walk->space);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&end));
	f = kv_get_range(t->tx, from, buf_str(&end), &options);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	for (size_t i = 0; i < range.count; i++)
		TRY(walk->look(t, &range.pairs[i], walk->arg));
	*ret_more = range.more;
	if (!range.more) {
		TRY(timed_walk_key(t->db, walk->record, &key));
		return kv_clear(t->tx, buf_str(&key));
	}
	assert(range.count); /* there is no more behind nothing */
	buf_append_str(&key, range.pairs[range.count - 1].key);
	buf_append_byte(&key, CATALOG_KEY_NEXT);
	TRY(buf_status(&key));
	return walk_write(t, walk->record, buf_str(&key));
}

enum status
timed_walk_turn(struct timed *t, const struct timed_walk *walk, uint64_t *ret_done, bool *ret_more)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf scratch = CATALOG_KEY_INIT;
	struct kv_future *f;
	struct str value, from;
	bool more;

	TRY(timed_walk_key(t->db, walk->record, &key));
	f = kv_get(t->tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &value))
		return STATUS_OK;
	if (walk_parse(value, &scratch, &from, t->err) != STATUS_OK)
		return err_set(t->err, STATUS_CORRUPT, "the place of a walk cannot be read");
	buf_clear(&key);
	buf_append_str(&key, t->db->prefix);
	buf_append_str(&key, from);
	TRY(buf_status(&key));
	TRY(walk_slice(t, walk, buf_str(&key), &more));
	++*ret_done;
	*ret_more = *ret_more || more;
	return STATUS_OK;
}
