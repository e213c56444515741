/* Values that operators make: texts, arrays and documents in the arena. */
#include <assert.h>
#include <endian.h>

#include "base/hash.h"
#include "mql/expr/expr_int.h"

enum {
	POSITION_BYTES = 10,   /* of the name of an array's element */
	LEAST_LEVEL_BYTES = 7, /* that a container adds to the one around it */
};

int
mql_expr_compare(const struct mql *q, const struct bson_value *a, const struct bson_value *b)
{
	bool no_a = mql_is_missing(a), no_b = mql_is_missing(b);

	if (no_a && no_b)
		return 0;
	if (no_a)
		return b->type == BSON_MIN_KEY ? 1 : -1;
	if (no_b)
		return a->type == BSON_MIN_KEY ? -1 : 1;
	return bson_compare_values(a, b, q->texts);
}

bool
mql_expr_int32(const struct bson_value *v, int32_t *ret)
{
	int64_t n;

	if (!bson_to_int64(v, &n) || n < INT32_MIN || n > INT32_MAX)
		return false;
	*ret = (int32_t)n;
	return true;
}

enum status
mql_expr_values(struct mql *q, const struct bson_value *array, struct bson_value **ret,
		size_t *ret_count)
{
	size_t count = bson_count(bson_text(array)), n = 0;
	struct bson_value *values = arena_alloc(q->arena, count * sizeof(*values));
	struct bson_iter i;
	struct bson_element e;

	if (!values)
		return mql_full(q);
	TRY(step_count_bytes(bson_text(array).len));
	for (bson_iter_begin(&i, bson_text(array)); n < count && bson_iter_read(&i, &e);)
		values[n++] = e.value;
	*ret = values;
	*ret_count = count;
	return STATUS_OK;
}

/* ---- Building ---- */

/* What bson_value_write() writes. */
static size_t
value_bytes(const struct bson_value *v)
{
	switch (v->type) {
	case BSON_DOUBLE:
	case BSON_DATE:
	case BSON_TIMESTAMP:
	case BSON_INT64:
		return sizeof(uint64_t);
	case BSON_STRING:
	case BSON_CODE:
	case BSON_SYMBOL:
		return sizeof(uint32_t) + bson_text(v).len + 1;
	case BSON_DOCUMENT:
	case BSON_ARRAY:
	case BSON_OBJECT_ID:
		return bson_text(v).len;
	case BSON_BINARY:
		return sizeof(uint32_t) + 1 + bson_text(v).len;
	case BSON_BOOL:
		return 1;
	case BSON_INT32:
		return sizeof(uint32_t);
	case BSON_REGEX:
		return bson_text(v).len + 1 + bson_more(v).len + 1;
	case BSON_DB_POINTER:
		return sizeof(uint32_t) + bson_text(v).len + 1 + bson_more(v).len;
	case BSON_CODE_SCOPE:
		return 2 * sizeof(uint32_t) + bson_text(v).len + 1 + bson_more(v).len;
	case BSON_DECIMAL:
		return BSON_DECIMAL_BYTES;
	case BSON_UNDEFINED:
	case BSON_NULL:
	case BSON_MIN_KEY:
	case BSON_MAX_KEY:
		break;
	}
	return 0;
}

static bool
value_inside(const struct bson_value *v, struct str *ret)
{
	if (v->type == BSON_CODE_SCOPE)
		*ret = bson_more(v);
	else if (bson_is_container(v))
		*ret = bson_text(v);
	else
		return false;
	return true;
}

/* Whether a container around the value would be deeper than documents may be. */
static bool
value_is_too_deep(const struct bson_value *v)
{
	struct bson_iter levels[BSON_DEPTH];
	struct bson_element e;
	struct str inside;
	size_t depth = 1;

	if (!value_inside(v, &inside) || inside.len < (size_t)LEAST_LEVEL_BYTES * (BSON_DEPTH - 1))
		return false;
	bson_iter_begin(&levels[0], inside);
	while (depth) {
		if (!bson_iter_read(&levels[depth - 1], &e)) {
			depth--;
		} else if (value_inside(&e.value, &inside)) {
			if (depth == BSON_DEPTH - 1)
				return true;
			bson_iter_begin(&levels[depth++], inside);
		}
	}
	return false;
}

static size_t
put_position(uint32_t n, char ret[POSITION_BYTES])
{
	char digits[POSITION_BYTES];
	size_t len = 0;

	do {
		digits[len++] = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	for (size_t i = 0; i < len; i++)
		ret[i] = digits[len - 1 - i];
	return len;
}

/* The name of the element, or its position, which is written to `digits`. */
static struct str
name_of(const struct str *names, size_t i, char digits[POSITION_BYTES])
{
	return names ? names[i] : str_of(digits, put_position((uint32_t)i, digits));
}

static enum status
measure(struct mql *q, const struct str *names, const struct bson_value *values, size_t count,
	size_t *ret)
{
	char digits[POSITION_BYTES];
	size_t bytes = BSON_EMPTY_BYTES;

	for (size_t i = 0; i < count; i++) {
		const struct bson_value *v = &values[i];

		if (mql_is_missing(v) && names)
			continue;
		bytes += 1 + name_of(names, i, digits).len + 1 +
			 (mql_is_missing(v) ? 0 : value_bytes(v));
		if (bytes > BSON_MOST_BYTES)
			return mql_fail(q, MQL_TOO_LARGE,
					"BSONObj size: %zu (0x%zX) is invalid. Size must be "
					"between 0 and %d(16MB)",
					bytes, bytes, BSON_MOST_BYTES);
	}
	TRY(step_count_bytes(bytes));
	for (size_t i = 0; i < count; i++) {
		if (value_is_too_deep(&values[i]))
			return mql_fail(q, MQL_OVERFLOW,
					"a value has more than %d objects and arrays inside each "
					"other",
					BSON_DEPTH);
	}
	*ret = bytes;
	return STATUS_OK;
}

/* Without names an array. The memory is measured first, so the buffer never grows. */
static enum status
build(struct mql *q, const struct str *names, const struct bson_value *values, size_t count,
      struct str *ret)
{
	char digits[POSITION_BYTES];
	struct buf out;
	size_t bytes;
	uint32_t length;

	TRY(measure(q, names, values, count, &bytes));
	out = (struct buf){ .ptr = arena_bytes(q->arena, bytes), .cap = bytes, .max_bytes = bytes };
	if (!out.ptr)
		return mql_full(q);
	length = htole32((uint32_t)bytes);
	buf_append(&out, &length, sizeof(length));
	for (size_t i = 0; i < count; i++) {
		const struct bson_value *v = &values[i];

		if (mql_is_missing(v) && names)
			continue;
		buf_append_byte(&out, mql_is_missing(v) ? BSON_NULL : (uint8_t)v->type);
		buf_append_str(&out, name_of(names, i, digits));
		buf_append_byte(&out, 0);
		if (!mql_is_missing(v))
			bson_value_write(&out, v);
	}
	buf_append_byte(&out, 0);
	assert(buf_status(&out) == STATUS_OK && out.len == bytes);
	*ret = buf_str(&out);
	return STATUS_OK;
}

enum status
mql_expr_array(struct mql *q, const struct bson_value *values, size_t count, struct bson_value *ret)
{
	struct str bytes;

	TRY(build(q, NULL, values, count, &bytes));
	*ret = BSON_OF_ARRAY(bytes);
	return STATUS_OK;
}

enum status
mql_expr_document(struct mql *q, const struct str *names, const struct bson_value *values,
		  size_t count, struct bson_value *ret)
{
	static const struct str none[1];
	struct str bytes;

	TRY(build(q, count ? names : none, values, count, &bytes));
	*ret = BSON_OF_DOCUMENT(bytes);
	return STATUS_OK;
}

/* ---- Members by name ---- */

enum {
	SLOTS_LEAST = 16,
};

static uint32_t *
members_slot(const struct mql_members *m, struct str name)
{
	size_t at = hash_keyed(0, name) & (m->slot_count - 1);

	while (m->slots[at] && !str_eq(m->names[m->slots[at] - 1], name))
		at = (at + 1) & (m->slot_count - 1);
	return &m->slots[at];
}

/* Room for one more; at most half of the slots are used. */
static enum status
members_grow(struct mql *q, struct mql_members *m)
{
	size_t cap = m->cap ? 2 * m->cap : SLOTS_LEAST / 2;
	struct str *names = arena_alloc(q->arena, cap * sizeof(*names));
	struct bson_value *values = arena_alloc(q->arena, cap * sizeof(*values));
	uint32_t *slots = arena_zalloc(q->arena, 2 * cap * sizeof(*slots));

	if (!names || !values || !slots)
		return mql_full(q);
	TRY(step_count_bytes(cap * sizeof(*values)));
	if (m->count) {
		memcpy(names, m->names, m->count * sizeof(*names));
		memcpy(values, m->values, m->count * sizeof(*values));
	}
	m->names = names;
	m->values = values;
	m->slots = slots;
	m->cap = cap;
	m->slot_count = 2 * cap;
	for (size_t i = 0; i < m->count; i++)
		*members_slot(m, names[i]) = (uint32_t)i + 1;
	return STATUS_OK;
}

enum status
mql_members_set(struct mql *q, struct mql_members *m, struct str name, const struct bson_value *v)
{
	uint32_t *slot;

	TRY(step_count(1));
	if (m->count == m->cap)
		TRY(members_grow(q, m));
	slot = members_slot(m, name);
	if (!*slot) {
		*slot = (uint32_t)++m->count;
		m->names[*slot - 1] = name;
	}
	m->values[*slot - 1] = *v;
	return STATUS_OK;
}

enum status
mql_members_set_all(struct mql *q, struct mql_members *m, struct str document)
{
	struct bson_iter i;
	struct bson_element e;

	for (bson_iter_begin(&i, document); bson_iter_read(&i, &e);)
		TRY(mql_members_set(q, m, e.name, &e.value));
	return STATUS_OK;
}

enum status
mql_members_end(struct mql *q, const struct mql_members *m, struct bson_value *ret)
{
	return mql_expr_document(q, m->names, m->values, m->count, ret);
}
