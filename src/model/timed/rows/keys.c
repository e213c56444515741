/* Keys of rows as they are written; ../keys.c reads them. */
#include <assert.h>

#include "kv/tuple.h"
#include "model/timed/rows/rows_int.h"

enum {
	COMPONENTS_BYTES = TIMED_KEY_BYTES,
};

/* The components from `from` to `to`, behind the hash where they are the hash components. */
static enum status
key_put_components(struct timed *t, const struct timed_key *key, size_t from, size_t to,
		   struct buf *ret)
{
	const struct timed_schema *schema = timed_schema_of(t->db);
	AUTO(buf_release) struct buf components = BUF_INIT(COMPONENTS_BYTES);
	bool hashed = from == 0;

	assert(from <= to && to <= key->count && to <= schema->key_count);
	if (hashed) {
		buf_append_byte(&components, 0);
		buf_append_byte(&components, 0);
	}
	for (size_t i = from; i < to; i++)
		TRY(timed_key_component(t, &key->parts[i], schema->key[i].descending, &components));
	TRY(buf_status(&components));
	if (hashed) {
		uint16_t hash = timed_hash16(str_skip(buf_str(&components), TIMED_HASH_BYTES));

		components.ptr[0] = (char)(hash >> 8);
		components.ptr[1] = (char)hash;
	}
	tuple_put_bytes(ret, buf_str(&components));
	return STATUS_OK;
}

enum status
timed_key_hash(struct timed *t, const struct timed_key *hash, struct buf *ret)
{
	const struct timed_schema *schema = timed_schema_of(t->db);

	if (hash->count < schema->hash_count)
		return err_set(t->err, STATUS_INVALID, "a hash component of the key is missing");
	timed_key_space(ret, t->db, TIMED_SPACE_ROWS);
	TRY(key_put_components(t, hash, 0, schema->hash_count, ret));
	return timed_key_check_bytes(t, ret);
}

enum status
timed_key_row(struct timed *t, const struct timed_key *key, struct buf *ret)
{
	const struct timed_schema *schema = timed_schema_of(t->db);

	if (key->count != schema->key_count)
		return err_set(t->err, STATUS_INVALID, "a row's key has %zu components here",
			       schema->key_count);
	TRY(timed_key_hash(t, key, ret));
	TRY(key_put_components(t, key, schema->hash_count, schema->key_count, ret));
	return timed_key_check_bytes(t, ret);
}

/* Appends the components of the edge as the beginning of an element of bytes. */
static enum status
key_put_edge(struct timed *t, const struct timed_edge *edge, struct buf *key)
{
	const struct timed_schema *schema = timed_schema_of(t->db);
	const struct timed_key_column *columns = schema->key + schema->hash_count;
	AUTO(buf_release) struct buf components = BUF_INIT(COMPONENTS_BYTES);

	if (edge->count > schema->key_count - schema->hash_count)
		return err_set(t->err, STATUS_INVALID, "a row's key has %zu range components here",
			       schema->key_count - schema->hash_count);
	for (size_t i = 0; i < edge->count; i++)
		TRY(timed_key_component(t, &edge->parts[i], columns[i].descending, &components));
	tuple_put_bytes(key, buf_str(&components));
	TRY(buf_status(key));
	timed_key_element_open(key);
	return timed_key_check_bytes(t, key);
}

enum status
timed_key_rows(struct timed *t, const struct timed_rows *rows, struct buf *begin, struct buf *end)
{
	TRY(timed_key_hash(t, rows->hash, begin));
	buf_append_buf(end, begin);
	if (rows->from.kind != TIMED_BOUND_END)
		TRY(key_put_edge(t, &rows->from, begin));
	if (rows->to.kind != TIMED_BOUND_END)
		TRY(key_put_edge(t, &rows->to, end));
	return timed_key_close_range(rows->from.kind, rows->to.kind, begin, end);
}

enum status
timed_key_path(struct timed *t, const struct timed_path *path, struct buf *key)
{
	AUTO(buf_release) struct buf component = BUF_INIT(COMPONENTS_BYTES);

	for (size_t i = 0; i < path->count; i++) {
		const struct timed_step *step = &path->steps[i];

		if (step->column) {
			tuple_put_u64(key, step->column);
			continue;
		}
		buf_clear(&component);
		TRY(timed_key_component(t, &step->key, false, &component));
		tuple_put_bytes(key, buf_str(&component));
	}
	if (path->count > TIMED_PATH_STEPS)
		return err_set(t->err, STATUS_INVALID,
			       "a path may have %d steps (TIMED_PATH_STEPS)", TIMED_PATH_STEPS);
	return timed_key_check_bytes(t, key);
}
