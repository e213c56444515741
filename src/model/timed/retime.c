/*
 * Changing the default of a database: how long after its write expires what says nothing else.
 *
 * Reads compute the expiry of a cell from the default, so they need nothing. The sweep finds what
 * has expired by entries of EXPIRY, which were written by the former default. So a change leaves
 *
 *     (P, RETIME) → (format, b"a key of ROWS behind P"): cells before it have their entries
 *
 * and the sweep goes through the rows from there and writes the entries that the present default
 * asks for. Writers go by the present default from the transaction on that has changed it.
 */
#include <assert.h>

#include "catalog/format.h"
#include "model/timed/timed_int.h"

enum {
	RETIME_FORMAT = 1,
	RETIME_VALUE_BYTES = 2 * KV_LIMIT_KEY_BYTES, /* what is escaped may double */
};

enum status
timed_retime_key(const struct catalog_db *db, struct buf *key)
{
	timed_key_space(key, db, TIMED_SPACE_RETIME);
	return catalog_key_status(key);
}

/* Says that the cells from this key on are to be looked at. */
static enum status
retime_write(struct timed *t, struct str from)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(RETIME_VALUE_BYTES);

	TRY(timed_retime_key(t->db, &key));
	tuple_put_u64(&value, RETIME_FORMAT);
	tuple_put_bytes(&value, str_skip(from, t->db->prefix.len));
	TRY(buf_status(&value));
	return kv_set(t->tx, buf_str(&key), buf_str(&value));
}

/* `*ret` is in the scratch buffer or in the value. */
static enum status
retime_parse(struct str value, struct buf *scratch, struct str *ret, struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	uint64_t format;

	TRY(catalog_format_next(&r, "place in rows", RETIME_FORMAT, &format, err));
	return tuple_next_bytes(&r, scratch, ret);
}

bool
timed_retime_is_good(struct str value)
{
	AUTO(buf_release) struct buf scratch = CATALOG_KEY_INIT;
	struct str from;

	return retime_parse(value, &scratch, &from, NULL) == STATUS_OK;
}

enum status
timed_ttl_set(struct timed *t, uint64_t ttl_ms)
{
	AUTO(buf_release) struct buf from = CATALOG_KEY_INIT;

	if (!timed_kind_of(t->db)->defaults)
		return err_set(t->err, STATUS_INVALID,
			       "a database of this kind has no default for expiry");
	TRY(timed_write_begin(t));
	TRY(catalog_option_set(t->tx, t->db, TIMED_OPTION_TTL_MS, ttl_ms, t->err));
	timed_key_space(&from, t->db, TIMED_SPACE_ROWS);
	TRY(catalog_key_status(&from));
	return retime_write(t, buf_str(&from));
}

/* Writes the entry of a cell, if it expires by the default. */
static enum status
retime_cell(struct timed *t, const struct kv_pair *pair)
{
	AUTO(buf_release) struct buf entry = CATALOG_KEY_INIT;
	struct timed_cell cell;
	uint64_t ms;

	TRY(timed_cell_parse(pair->value, &cell, t->err));
	ms = timed_cell_expires_ms(t->db, &cell);
	/* The entry of the former default stays until the sweep finds that it is not so. */
	if (!cell.by_default || !ms)
		return STATUS_OK;
	TRY(timed_key_expiry(t->db, pair->key, ms, &entry));
	return kv_set(t->tx, buf_str(&entry), STR(""));
}

static enum status
retime_slice(struct timed *t, struct str from, bool *ret_more)
{
	const struct kv_range_options options = { .limit = TIMED_SWEEP_KEYS, .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct kv_range range;
	struct kv_future *f;

	timed_key_space(&end, t->db, TIMED_SPACE_ROWS);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&end));
	f = kv_get_range(t->tx, from, buf_str(&end), &options);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	for (size_t i = 0; i < range.count; i++)
		TRY(retime_cell(t, &range.pairs[i]));
	*ret_more = range.more;
	if (!range.more) {
		TRY(timed_retime_key(t->db, &key));
		return kv_clear(t->tx, buf_str(&key));
	}
	assert(range.count); /* there is no more behind nothing */
	buf_append_str(&key, range.pairs[range.count - 1].key);
	buf_append_byte(&key, CATALOG_KEY_NEXT);
	TRY(buf_status(&key));
	return retime_write(t, buf_str(&key));
}

enum status
timed_retime(struct timed *t, uint64_t *ret_done, bool *ret_more)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf scratch = CATALOG_KEY_INIT;
	struct kv_future *f;
	struct str value, from;
	bool more;

	TRY(timed_retime_key(t->db, &key));
	f = kv_get(t->tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &value))
		return STATUS_OK;
	if (retime_parse(value, &scratch, &from, t->err) != STATUS_OK)
		return err_set(t->err, STATUS_CORRUPT, "a place in rows cannot be read");
	buf_clear(&key);
	buf_append_str(&key, t->db->prefix);
	buf_append_str(&key, from);
	TRY(buf_status(&key));
	TRY(retime_slice(t, buf_str(&key), &more));
	++*ret_done;
	*ret_more = *ret_more || more;
	return STATUS_OK;
}
