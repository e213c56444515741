#include "index/view/order.h"

#include "doc/doc_int.h"
#include "doc/json.h"
#include "doc/key.h"
#include "loop/sort.h"

/* ---- Terms ---- */

enum {
	NUMBER_BYTES = 4 * DOC_KEY_DIGITS, /* of a number's key */
};

/* What decides between tokens that stand at the same place. */
static int
token_rank(enum json_token token)
{
	static const int ranks[] = {
		[JSON_END] = 0,    [JSON_OBJECT_END] = 0,  [JSON_ARRAY_END] = 0,
		[JSON_KEY] = 1,    [JSON_NUMBER] = 2,      [JSON_FALSE] = 3,
		[JSON_NULL] = 4,   [JSON_TRUE] = 5,        [JSON_OBJECT_BEGIN] = 6,
		[JSON_STRING] = 8, [JSON_ARRAY_BEGIN] = 7,
	};

	return ranks[token];
}

/* A number of too many digits for a key counts as the double nearest to it. */
static enum status
number_key(const struct json_reader *r, struct buf *key)
{
	uint8_t magnitude[TUPLE_INT_MAX_BYTES];
	struct json_number number;
	struct doc_scalar s;
	enum status status;

	json_number_read(r->text, r->is_integer, &number);
	json_number_scalar(&number, magnitude, &s);
	status = doc_key_put(key, DOC_KEY_COUCH, &s);
	if (status != STATUS_LIMIT)
		return status;
	s = (struct doc_scalar){ .kind = DOC_DOUBLE, .d = doc_number_double(r->text) };
	return doc_key_put(key, DOC_KEY_COUCH, &s);
}

static enum status
number_cmp(const struct json_reader *a, const struct json_reader *b, int *ret)
{
	AUTO(buf_release) struct buf x = BUF_INIT(NUMBER_BYTES);
	AUTO(buf_release) struct buf y = BUF_INIT(NUMBER_BYTES);

	if (str_eq(a->text, b->text))
		return STATUS_OK;
	TRY(number_key(a, &x));
	TRY(number_key(b, &y));
	*ret = str_cmp(buf_str(&x), buf_str(&y));
	return STATUS_OK;
}

/* Both texts token by token: up to the first difference they have the same containers open. */
static enum status
readers_cmp(struct json_reader *a, struct json_reader *b, int *ret)
{
	enum json_token x, y;

	for (*ret = 0;;) {
		TRY(json_next(a, &x));
		TRY(json_next(b, &y));
		*ret = token_rank(x) - token_rank(y);
		if (*ret == 0 && x == JSON_NUMBER)
			TRY(number_cmp(a, b, ret));
		else if (*ret == 0 && (x == JSON_STRING || x == JSON_KEY))
			*ret = str_cmp(a->text, b->text);
		if (*ret || x == JSON_END)
			return STATUS_OK;
	}
}

enum status
view_term_cmp(struct str a, struct str b, int *ret)
{
	AUTO(json_reader_release) struct json_reader x = { 0 };
	AUTO(json_reader_release) struct json_reader y = { 0 };

	*ret = 0;
	if (str_eq(a, b))
		return STATUS_OK;
	json_reader_init(&x, a, NULL);
	json_reader_init(&y, b, NULL);
	return readers_cmp(&x, &y, ret);
}

/* ---- Rows ---- */

/* A row as it is sorted: a copy, so that the rows themselves can change. */
struct sorted {
	struct view_mapped row;
	struct view_mapped *at;
};

static enum status
by_component(const void *arg, const void *a, const void *b, int *ret)
{
	const struct sorted *x = a, *y = b;

	(void)arg;
	return sort_compare_strs(x->row.component, y->row.component, ret);
}

static enum status
by_term(const void *arg, const void *a, const void *b, int *ret)
{
	const struct sorted *x = a, *y = b;

	TRY(by_component(arg, a, b, ret));
	if (*ret == 0)
		TRY(view_term_cmp(x->row.key, y->row.key, ret));
	if (*ret == 0)
		TRY(view_term_cmp(x->row.value, y->row.value, ret));
	return STATUS_OK;
}

/* Sorted by place, the rows of a component are neighbours. */
static bool
has_equal_keys(const struct sorted *all, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (str_eq(all[i - 1].row.component, all[i].row.component))
			return true;
	return false;
}

/* The rows of one map. Both orders have the rows of a component at the same numbers. */
static enum status
map_order(struct view_mapped *rows, size_t count, struct arena *scratch)
{
	struct sorted *places = arena_alloc(scratch, count * sizeof(*places));
	struct sorted *terms = arena_alloc(scratch, count * sizeof(*terms));

	if (!places || !terms)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++)
		places[i] = (struct sorted){ rows[i], &rows[i] };
	TRY(sort_items(places, count, sizeof(*places), by_component, NULL, scratch));
	if (!has_equal_keys(places, count))
		return STATUS_OK;
	memcpy(terms, places, count * sizeof(*terms));
	TRY(sort_items(terms, count, sizeof(*terms), by_term, NULL, scratch));
	for (size_t i = 0; i < count; i++) {
		places[i].at->key = terms[i].row.key;
		places[i].at->value = terms[i].row.value;
	}
	return STATUS_OK;
}

enum status
view_rows_order(struct view_mapped *rows, size_t count, struct arena *scratch)
{
	size_t from = 0;

	for (size_t to = 1; to <= count; to++) {
		if (to < count && rows[to].map == rows[from].map)
			continue;
		if (to - from > 1)
			TRY(map_order(rows + from, to - from, scratch));
		from = to;
	}
	return STATUS_OK;
}
