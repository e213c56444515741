#include "index/typed/filter.h"

enum {
	RAW_BYTES = 512 * 1024, /* of a component */
};

static const char *const operators[] = {
	[INDEX_TYPED_EQ] = "=",        [INDEX_TYPED_NE] = "!=", [INDEX_TYPED_LT] = "<",
	[INDEX_TYPED_LE] = "<=",       [INDEX_TYPED_GT] = ">",  [INDEX_TYPED_GE] = ">=",
	[INDEX_TYPED_NOT_NULL] = "is",
};

enum {
	OPERATORS = sizeof(operators) / sizeof(operators[0]),
};

/* ---- The text: "4 >= 0a1b;7 is ;", a column's id, an operator, a scalar's bytes ---- */

enum status
index_typed_filter_put(const struct index_typed_condition *conditions, size_t count,
		       struct buf *ret)
{
	for (size_t i = 0; i < count; i++) {
		const struct index_typed_condition *c = &conditions[i];
		AUTO(buf_release) struct buf scalar = BUF_INIT(INDEX_FILTER_BYTES);

		if (c->op != INDEX_TYPED_NOT_NULL)
			doc_scalar_put(&scalar, &c->value);
		TRY(buf_status(&scalar));
		buf_printf(ret, "%llu %s ", (unsigned long long)c->column, operators[c->op]);
		buf_append_hex(ret, buf_str(&scalar));
		buf_append_byte(ret, ';');
	}
	return buf_status(ret);
}

static enum status
read_scalar(struct str hex, struct arena *arena, struct doc_scalar *ret)
{
	AUTO(buf_release) struct buf scratch = BUF_INIT(INDEX_FILTER_BYTES);
	char *bytes = arena_bytes(arena, hex.len / 2 + 1);
	enum status status;

	if (!bytes)
		return STATUS_LIMIT;
	if (!hex.len || hex.len % 2 || !str_from_hex(hex, bytes))
		return STATUS_INVALID;
	status = doc_scalar_read(str_of(bytes, hex.len / 2), &scratch, ret);
	if (status == STATUS_CORRUPT)
		return STATUS_INVALID;
	TRY(status);
	return arena_copy(arena, ret->text, &ret->text);
}

static enum status
read_condition(struct str text, struct arena *arena, struct index_typed_condition *ret)
{
	struct str column = str_cut(&text, ' '), op = str_cut(&text, ' ');

	*ret = (struct index_typed_condition){ .value = { .kind = DOC_NULL } };
	if (!str_to_u64(column, &ret->column))
		return STATUS_INVALID;
	for (unsigned i = 0; i < OPERATORS; i++) {
		if (!str_eq(op, str_from_cstr(operators[i])))
			continue;
		ret->op = (enum index_typed_operator)i;
		if (ret->op != INDEX_TYPED_NOT_NULL)
			return read_scalar(text, arena, &ret->value);
		return text.len ? STATUS_INVALID : STATUS_OK;
	}
	return STATUS_INVALID;
}

enum status
index_typed_filter_read(struct str text, struct arena *arena, struct index_typed_filter *ret)
{
	struct index_typed_condition *conditions = arena_alloc(arena, INDEX_TYPED_CONDITIONS *
									      sizeof(*conditions));

	*ret = (struct index_typed_filter){ .conditions = conditions };
	if (!conditions)
		return STATUS_LIMIT;
	while (text.len) {
		struct str one = str_cut(&text, ';');

		if (ret->count == INDEX_TYPED_CONDITIONS)
			return STATUS_INVALID;
		TRY(read_condition(one, arena, &conditions[ret->count++]));
	}
	return ret->count ? STATUS_OK : STATUS_INVALID;
}

/* ---- Values ---- */

enum status
index_typed_put(struct buf *raw, const struct doc_scalar *s)
{
	const struct doc_scalar empty = { .kind = DOC_NULL };

	if (s->kind == DOC_BYTES && !s->text.len)
		s = &empty;
	return doc_key_put(raw, DOC_KEY_TYPED, s);
}

enum status
index_typed_compare(const struct doc_scalar *a, const struct doc_scalar *b, int *ret)
{
	AUTO(buf_release) struct buf x = BUF_INIT(RAW_BYTES);
	AUTO(buf_release) struct buf y = BUF_INIT(RAW_BYTES);

	TRY(index_typed_put(&x, a));
	TRY(index_typed_put(&y, b));
	*ret = str_cmp(buf_str(&x), buf_str(&y));
	return STATUS_OK;
}

static bool
order_is(int order, enum index_typed_operator op)
{
	switch (op) {
	case INDEX_TYPED_EQ:
		return order == 0;
	case INDEX_TYPED_NE:
		return order != 0;
	case INDEX_TYPED_LT:
		return order < 0;
	case INDEX_TYPED_LE:
		return order <= 0;
	case INDEX_TYPED_GT:
		return order > 0;
	case INDEX_TYPED_GE:
		return order >= 0;
	case INDEX_TYPED_NOT_NULL:
		break;
	}
	return true;
}

enum status
index_typed_holds(const struct index_typed_condition *condition, const struct doc_scalar *value,
		  bool *ret)
{
	int order = 0;

	if (condition->op != INDEX_TYPED_NOT_NULL)
		TRY(index_typed_compare(value, &condition->value, &order));
	*ret = order_is(order, condition->op);
	return STATUS_OK;
}
