/* Reads and checks the arguments of operators, and prepares them for comparisons. */
#include "base/quote.h"
#include "index/selector/selector_int.h"

enum status
selector_bad_arg(struct selector_compiler *c, const char *op, struct str argument)
{
	*c->error = SELECTOR_ERROR_BAD_ARG;
	return err_set(c->err, STATUS_INVALID, "Bad argument for operator %s: %s", op,
		       QUOTE_SHOW(argument));
}

enum status
selector_take(struct selector_compiler *c, enum json_token first, struct str *ret_text,
	      struct str *ret_string)
{
	if (first == JSON_STRING) {
		TRY(arena_copy(c->arena, c->reader.text, ret_string));
	}
	TRY(json_skip(&c->reader, first, ret_text));
	return index_count_bytes(c->work, ret_text->len);
}

static enum status
operator_read_list(struct selector_compiler *c, const char *name, enum json_token first,
		   struct str text, struct selector_cond *ret)
{
	struct leaf_value array;
	struct leaf_iter iter;
	struct tuple_elem position;
	uint64_t count;

	if (first != JSON_ARRAY_BEGIN)
		return selector_bad_arg(c, name, text);
	TRY(leaf_parse(text, c->arena, &array, c->err));
	TRY(leaf_array_count(&array, &count));
	ret->list_single = count == 1;
	ret->list = arena_alloc(c->arena, (size_t)(count + 1) * sizeof(*ret->list));
	if (!ret->list)
		return STATUS_LIMIT;
	iter.rest = array;
	for (ret->list_count = 0; ret->list_count < count; ret->list_count++) {
		TRY(leaf_next(&iter, &position, &ret->list[ret->list_count]));
		TRY(index_count(c->work, 1));
	}
	return selector_list_sort(ret, c->work);
}

/* Reads the argument of $mod: [divisor, remainder], both integers. */
static bool
operator_read_mod(struct str text, struct selector_cond *ret)
{
	struct json_reader AUTO(json_reader_release) r;
	int64_t *const parts[] = { &ret->divisor, &ret->number };
	enum json_token token;

	json_reader_init(&r, text, NULL);
	if (json_next(&r, &token) != STATUS_OK || token != JSON_ARRAY_BEGIN)
		return false;
	for (size_t i = 0; i < 2; i++) {
		if (json_next(&r, &token) != STATUS_OK || token != JSON_NUMBER || !r.is_integer ||
		    !str_to_i64(r.text, parts[i]))
			return false;
	}
	return json_next(&r, &token) == STATUS_OK && token == JSON_ARRAY_END && ret->divisor != 0;
}

/* CouchDB knows $regex and $beginsWith only with strings. */
static enum status
operator_refuse(struct selector_compiler *c, const char *name)
{
	*c->error = SELECTOR_ERROR_INVALID_OPERATOR;
	return err_set(c->err, STATUS_INVALID, "Invalid operator: %s", name);
}

static enum status
operator_read_regex(struct selector_compiler *c, const char *name, enum json_token first,
		    struct str text, struct str pattern, struct selector_cond *ret)
{
	enum status status;

	if (first != JSON_STRING)
		return operator_refuse(c, name);
	status = selector_regex_compile(pattern, c->work, &ret->regex);
	return status == STATUS_INVALID ? selector_bad_arg(c, name, text) : status;
}

enum status
selector_read_argument(struct selector_compiler *c, const char *name, enum selector_op op,
		       enum json_token first, struct selector_cond *ret)
{
	bool is_integer = first == JSON_NUMBER && c->reader.is_integer;
	struct str text;
	struct str string = { NULL, 0 };

	TRY(selector_take(c, first, &text, &string));
	*ret = (struct selector_cond){ .op = op, .by_bytes = ret->by_bytes };
	switch (op) {
	case SELECTOR_LT:
	case SELECTOR_LTE:
	case SELECTOR_EQ:
	case SELECTOR_NE:
	case SELECTOR_GTE:
	case SELECTOR_GT:
		return leaf_parse(text, c->arena, &ret->operand, c->err);
	case SELECTOR_IN:
	case SELECTOR_NIN:
	case SELECTOR_ALL:
		return operator_read_list(c, name, first, text, ret);
	case SELECTOR_EXISTS:
		ret->exists = first == JSON_TRUE;
		if (first == JSON_TRUE || first == JSON_FALSE)
			return STATUS_OK;
		break;
	case SELECTOR_BEGINS_WITH:
		ret->text = string;
		return first == JSON_STRING ? STATUS_OK : operator_refuse(c, name);
	case SELECTOR_TYPE:
		ret->text = string;
		if (first == JSON_STRING)
			return STATUS_OK;
		break;
	case SELECTOR_SIZE:
		if (!is_integer || (text.ptr[0] == '-' && !str_eq(text, STR("-0"))))
			break;
		/* No array has as many elements as what does not fit into 64 bits. */
		if (!str_to_i64(text, &ret->number))
			ret->number = INT64_MAX;
		return STATUS_OK;
	case SELECTOR_MOD:
		if (operator_read_mod(text, ret))
			return STATUS_OK;
		break;
	case SELECTOR_REGEX:
		return operator_read_regex(c, name, first, text, string, ret);
	case SELECTOR_EQ_ANY:
	case SELECTOR_ELEM_MATCH:
	case SELECTOR_ALL_MATCH:
	case SELECTOR_KEY_MAP_MATCH:
		break;
	}
	return selector_bad_arg(c, name, text);
}
