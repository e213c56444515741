/*
 * Keys of rows: two elements of bytes behind the subspace, the token with the hash components, and
 * the range components, each of them a row of components of doc/key.h; then the column, and an
 * element in it. The row of a partition's static columns has an element without components, which
 * lies before all others, since every component begins with a byte above 0.
 */
#include <assert.h>
#include <endian.h>

#include "kv/tuple.h"
#include "model/timed/tables/tables_int.h"

#define TOKEN_SIGN (UINT64_C(1) << 63)

enum {
	/* Behind the key of static columns, and before that of every other row. */
	STATICS_END = 0x01,
	SHORT_BYTES = 256,       /* of an element that is made on the stack */
	SHORT_NUMBER_BYTES = 32, /* of a component but for its text, at most */
};

/* Big-endian, so that the order of the bytes is that of signed numbers. */
static void
token_put(int64_t token, struct buf *ret)
{
	uint64_t bytes = htobe64((uint64_t)token ^ TOKEN_SIGN);

	buf_append(ret, (const char *)&bytes, sizeof(bytes));
}

static int64_t
token_get(struct str bytes)
{
	uint64_t token;

	assert(bytes.len >= TABLE_TOKEN_BYTES);
	memcpy(&token, bytes.ptr, sizeof(token));
	return (int64_t)(be64toh(token) ^ TOKEN_SIGN);
}

/* ---- Writing ---- */

/* A component; null is one, too: an empty value of a type whose values have a length. */
static enum status
component_put(struct timed *t, const struct doc_scalar *s, bool descending, struct buf *ret)
{
	size_t from = ret->len;

	if (s->kind != DOC_NULL)
		return timed_key_component(t, s, descending, ret);
	TRY(doc_key_put(ret, DOC_KEY_TYPED, s));
	if (descending)
		doc_key_invert(ret, from);
	return STATUS_OK;
}

/* The components of the key's columns from `from` to `to`, behind what is in the buffer. */
static enum status
components_put(struct timed *t, const struct doc_scalar *parts, size_t from, size_t to,
	       struct buf *ret)
{
	const struct table_schema *schema = table_schema_of(t->db);

	for (size_t i = from; i < to; i++)
		TRY(component_put(t, &parts[i - from], schema->columns[i].descending, ret));
	return STATUS_OK;
}

static enum status
element_make(struct timed *t, const struct table_key *key, size_t from, size_t to, struct buf *ret)
{
	if (!from)
		token_put(key->token, ret);
	return components_put(t, key->parts + from, from, to, ret);
}

/* True if the components surely have less than SHORT_BYTES, as nearly all have. */
static bool
element_is_short(const struct table_key *key, size_t from, size_t to)
{
	size_t bytes = TABLE_TOKEN_BYTES;

	for (size_t i = from; i < to && bytes < SHORT_BYTES; i++)
		bytes += SHORT_NUMBER_BYTES + 2 * key->parts[i].text.len;
	return bytes < SHORT_BYTES;
}

/* Appends the element of a key that has these components, the first of all behind the token. */
static enum status
element_put(struct timed *t, const struct table_key *key, size_t from, size_t to, struct buf *ret)
{
	AUTO(buf_release) struct buf components = BUF_INIT(TIMED_KEY_BYTES);
	char room[SHORT_BYTES];
	struct buf few = { .ptr = room, .cap = sizeof(room), .max_bytes = sizeof(room) };
	bool is_short = element_is_short(key, from, to);

	TRY(element_make(t, key, from, to, is_short ? &few : &components));
	tuple_put_bytes(ret, buf_str(is_short ? &few : &components));
	return STATUS_OK;
}

enum status
table_key_partition(struct timed *t, const struct table_key *key, struct buf *ret)
{
	const struct table_schema *schema = table_schema_of(t->db);

	if (key->count != schema->hash_count && key->count != schema->key_count)
		return err_set(t->err, STATUS_INVALID,
			       "the key of a row has %zu components here, that of a partition %zu",
			       schema->key_count, schema->hash_count);
	timed_key_space(ret, t->db, table_space(schema));
	TRY(element_put(t, key, 0, schema->hash_count, ret));
	return timed_key_check_bytes(t, ret);
}

enum status
table_key_row(struct timed *t, const struct table_key *key, struct buf *ret)
{
	const struct table_schema *schema = table_schema_of(t->db);
	size_t to = table_key_is_static(schema, key) ? schema->hash_count : schema->key_count;

	TRY(table_key_partition(t, key, ret));
	TRY(element_put(t, key, schema->hash_count, to, ret));
	return timed_key_check_bytes(t, ret);
}

enum status
table_key_token(struct timed *t, int64_t token, struct buf *ret)
{
	char room[TABLE_TOKEN_BYTES];
	struct buf bytes = { .ptr = room, .cap = sizeof(room), .max_bytes = sizeof(room) };

	timed_key_space(ret, t->db, table_space(table_schema_of(t->db)));
	token_put(token, &bytes);
	tuple_put_bytes(ret, buf_str(&bytes));
	TRY(catalog_key_status(ret));
	timed_key_element_open(ret);
	return STATUS_OK;
}

/* Appends the range components of the edge as the beginning of an element of bytes. */
static enum status
edge_put(struct timed *t, const struct table_edge *edge, struct buf *key)
{
	const struct table_schema *schema = table_schema_of(t->db);
	AUTO(buf_release) struct buf components = BUF_INIT(TIMED_KEY_BYTES);
	size_t most = schema->key_count - schema->hash_count;

	if (!edge->count || edge->count > most)
		return err_set(t->err, STATUS_INVALID,
			       "an edge of a range has 1 to %zu components here", most);
	TRY(components_put(t, edge->parts, schema->hash_count, schema->hash_count + edge->count,
			   &components));
	tuple_put_bytes(key, buf_str(&components));
	TRY(buf_status(key));
	timed_key_element_open(key);
	return timed_key_check_bytes(t, key);
}

enum status
table_key_range(struct timed *t, const struct table_key *partition, const struct table_edge *from,
		const struct table_edge *to, struct buf *begin, struct buf *end)
{
	static const char behind_statics[] = { TUPLE_CODE_BYTES, STATICS_END };
	const struct table_schema *schema = table_schema_of(t->db);

	TRY(table_key_partition(t, partition, begin));
	buf_clear(end);
	buf_append_buf(end, begin);
	if (from->kind != TIMED_BOUND_END)
		TRY(edge_put(t, from, begin));
	else if (schema->key_count > schema->hash_count)
		buf_append(begin, behind_statics, sizeof(behind_statics));
	if (to->kind != TIMED_BOUND_END)
		TRY(edge_put(t, to, end));
	return timed_key_close_range(from->kind, to->kind, begin, end);
}

enum status
table_key_cell(struct timed *t, uint64_t column, const struct doc_scalar *element, struct buf *key)
{
	AUTO(buf_release) struct buf component = BUF_INIT(TIMED_KEY_BYTES);

	tuple_put_u64(key, column);
	if (element) {
		TRY(component_put(t, element, false, &component));
		tuple_put_bytes(key, buf_str(&component));
	}
	return timed_key_check_bytes(t, key);
}

/* ---- Reading ---- */

/* All components of the columns, which the bytes end with. */
static enum status
components_get(struct str bytes, const struct table_column *columns, size_t count,
	       struct arena *arena, struct doc_scalar *ret)
{
	for (size_t i = 0; i < count; i++) {
		enum status status;
		size_t len;

		status = doc_key_read(bytes, columns[i].descending, arena, &ret[i], &len);
		if (status == STATUS_INVALID)
			return STATUS_CORRUPT;
		TRY(status);
		bytes = str_skip(bytes, len);
	}
	return bytes.len ? STATUS_CORRUPT : STATUS_OK;
}

/* The content of an element of bytes: borrowed, or in the arena where NULs in it are escaped. */
static enum status
element_get(struct tuple_reader *r, struct arena *arena, struct str *ret)
{
	struct tuple_elem e;
	struct buf plain;

	if (tuple_next_plain(r, TUPLE_BYTES, ret))
		return STATUS_OK;
	if (tuple_next(r, &e) != STATUS_OK || e.kind != TUPLE_BYTES)
		return STATUS_CORRUPT;
	plain = BUF_INIT(e.raw.len);
	plain.ptr = arena_bytes(arena, e.raw.len);
	plain.cap = e.raw.len;
	if (!plain.ptr)
		return STATUS_LIMIT;
	tuple_unescape(&e, &plain);
	*ret = buf_str(&plain);
	return buf_status(&plain);
}

/* The element with the range components. */
static enum status
range_get(const struct table_schema *schema, struct tuple_reader *r, struct arena *arena,
	  struct table_place *ret)
{
	size_t range_count = schema->key_count - schema->hash_count;
	struct str bytes;

	TRY(element_get(r, arena, &bytes));
	/* Without components it is the row of the static columns. */
	if (bytes.len || !range_count) {
		TRY(components_get(bytes, schema->columns + schema->hash_count, range_count, arena,
				   ret->key + schema->hash_count));
		ret->key_count = schema->key_count;
	}
	return STATUS_OK;
}

enum status
table_place_row(const struct table_schema *schema, struct str tail, struct arena *arena,
		struct table_place *ret, size_t *ret_len)
{
	struct tuple_reader r = tuple_reader(tail);
	struct str bytes;

	*ret = (struct table_place){ .key_count = schema->hash_count };
	ret->key = arena_zalloc(arena, schema->key_count * sizeof(*ret->key));
	if (!ret->key)
		return STATUS_LIMIT;
	TRY(element_get(&r, arena, &bytes));
	if (bytes.len < TABLE_TOKEN_BYTES)
		return STATUS_CORRUPT;
	ret->hash = (uint16_t)((uint8_t)bytes.ptr[0] << 8 | (uint8_t)bytes.ptr[1]);
	ret->token = token_get(bytes);
	TRY(components_get(str_skip(bytes, TABLE_TOKEN_BYTES), schema->columns, schema->hash_count,
			   arena, ret->key));
	TRY(range_get(schema, &r, arena, ret));
	*ret_len = tail.len - r.rest.len;
	return STATUS_OK;
}

enum status
table_place_row_beside(const struct table_schema *schema, const struct table_place *of,
		       struct str rest, struct arena *arena, struct table_place *ret)
{
	struct tuple_reader r = tuple_reader(rest);

	*ret = (struct table_place){ .key_count = schema->hash_count,
				     .hash = of->hash,
				     .token = of->token };
	ret->key = arena_zalloc(arena, schema->key_count * sizeof(*ret->key));
	if (!ret->key)
		return STATUS_LIMIT;
	memcpy(ret->key, of->key, schema->hash_count * sizeof(*ret->key));
	return range_get(schema, &r, arena, ret);
}

enum status
table_place_column(struct str rest, uint64_t *ret)
{
	struct tuple_reader r = tuple_reader(rest);

	*ret = 0;
	if (!rest.len)
		return STATUS_OK;
	if (tuple_next_u64(&r, ret) != STATUS_OK || !*ret)
		return STATUS_CORRUPT;
	return STATUS_OK;
}

/* The number of a piece, if the key goes on. */
static enum status
piece_get(struct tuple_reader *r, struct table_place *ret)
{
	ret->is_piece = r->rest.len > 0;
	if (!ret->is_piece)
		return STATUS_OK;
	return tuple_next_u64(r, &ret->piece) == STATUS_OK && !r->rest.len ? STATUS_OK
									   : STATUS_CORRUPT;
}

enum status
table_place_cell(struct str rest, struct arena *arena, struct table_place *ret)
{
	struct tuple_reader r = tuple_reader(rest);
	enum status status;
	struct str bytes;
	size_t len;

	ret->has_element = ret->is_piece = false;
	ret->column = 0;
	if (!rest.len)
		return STATUS_OK;
	if (tuple_next_u64(&r, &ret->column) != STATUS_OK || !ret->column)
		return STATUS_CORRUPT;
	ret->has_element = r.rest.len && r.rest.ptr[0] == TUPLE_CODE_BYTES;
	if (!ret->has_element)
		return piece_get(&r, ret);
	TRY(element_get(&r, arena, &bytes));
	status = doc_key_read(bytes, false, arena, &ret->element, &len);
	if (status == STATUS_INVALID || (status == STATUS_OK && len != bytes.len))
		return STATUS_CORRUPT;
	TRY(status);
	return piece_get(&r, ret);
}

enum status
table_place_parse(const struct table_schema *schema, struct str tail, struct arena *arena,
		  struct table_place *ret)
{
	size_t len;

	TRY(table_place_row(schema, tail, arena, ret, &len));
	return table_place_cell(str_skip(tail, len), arena, ret);
}
