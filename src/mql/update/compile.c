/* Updates into modifiers, sorted by their paths. */
#include <ctype.h>

#include "mql/mql_int.h"
#include "mql/sort_values.h"
#include "mql/update/update_int.h"

struct compile {
	struct mql *q;
	struct mql_update *update;
	const struct mql_modifier **all;
	size_t cap;
};

static const struct {
	const char *name;
	enum mql_update_op op;
} update_operators[] = {
	{ "$set", MQL_UPDATE_SET },
	{ "$setOnInsert", MQL_UPDATE_SET_ON_INSERT },
	{ "$unset", MQL_UPDATE_UNSET },
	{ "$inc", MQL_UPDATE_INC },
	{ "$mul", MQL_UPDATE_MUL },
	{ "$min", MQL_UPDATE_MIN },
	{ "$max", MQL_UPDATE_MAX },
	{ "$rename", MQL_UPDATE_RENAME },
	{ "$currentDate", MQL_UPDATE_CURRENT_DATE },
	{ "$push", MQL_UPDATE_PUSH },
	{ "$addToSet", MQL_UPDATE_ADD_TO_SET },
	{ "$pop", MQL_UPDATE_POP },
	{ "$pull", MQL_UPDATE_PULL },
	{ "$pullAll", MQL_UPDATE_PULL_ALL },
	{ "$bit", MQL_UPDATE_BIT },
};

/* ---- Paths ---- */

static bool
begins_with_digit(struct str name)
{
	return name.len && isdigit((unsigned char)name.ptr[0]);
}

/*
 * Positions come before other names that begin with a digit. By their bytes alone "10" would be
 * less than "1x", and "1x" less than "2": in no order a path would be sure to be beside its equal.
 */
static int
compare_names(struct str a, struct str b)
{
	uint32_t left, right;
	bool left_is = mql_is_position(a, &left), right_is = mql_is_position(b, &right);

	if (left_is && right_is)
		return (left > right) - (left < right);
	if (left_is != right_is && begins_with_digit(a) && begins_with_digit(b))
		return left_is ? -1 : 1;
	return str_cmp(a, b);
}

int
mql_update_compare_paths(struct str a, struct str b, bool *ret_below)
{
	*ret_below = false;
	for (;;) {
		bool more_a = memchr(a.ptr, '.', a.len), more_b = memchr(b.ptr, '.', b.len);
		int order = compare_names(str_cut(&a, '.'), str_cut(&b, '.'));

		if (order)
			return order;
		if (!more_a || !more_b) {
			*ret_below = true;
			return (int)more_a - (int)more_b;
		}
	}
}

static int
compare_modifiers(const void *a, const void *b, const void *arg)
{
	const struct mql_modifier *left = a, *right = b;
	bool below;

	(void)arg;
	return mql_update_compare_paths(left->path, right->path, &below);
}

bool
mql_update_name_is_filtered(struct str name, struct str *ret)
{
	if (!str_starts_with(name, STR("$[")) || name.ptr[name.len - 1] != ']')
		return false;
	*ret = str_of(name.ptr + 2, name.len - 3);
	return true;
}

/* True for a path with `$`, `$[]` or `$[x]`. */
static bool
path_is_dynamic(struct str path)
{
	struct str name, id;

	while (path.len) {
		name = str_cut(&path, '.');
		if (mql_is(name, "$") || mql_update_name_is_filtered(name, &id))
			return true;
	}
	return false;
}

static enum status
check_name(struct compile *c, struct str path, struct str name, size_t step, bool *any)
{
	struct mql *q = c->q;
	struct str id;
	struct mql_array_filter *f = c->update->filters;
	bool filtered = mql_update_name_is_filtered(name, &id);

	if (!name.len)
		return mql_fail(q, MQL_EMPTY_FIELD_NAME,
				"The update path '%.*s' contains an empty field name, which is not "
				"allowed.",
				STR_ARG(path));
	if (name.ptr[0] != '$')
		return STATUS_OK;
	/* A field's name. One of the document itself is only for a document that is inserted. */
	if (!filtered && !mql_is(name, "$"))
		return STATUS_OK;
	if (!step)
		return mql_fail(q, MQL_BAD_VALUE,
				"Cannot have positional (i.e. '$') element in the first position "
				"in path '%.*s'",
				STR_ARG(path));
	if (!filtered) {
		if (*any)
			return mql_fail(q, MQL_BAD_VALUE,
					"Too many positional (i.e. '$') elements found in path "
					"'%.*s'",
					STR_ARG(path));
		*any = true;
		return STATUS_OK;
	}
	while (f && !str_eq(f->name, id))
		f = f->next;
	if (f)
		f->used = true;
	else if (id.len)
		return mql_fail(q, MQL_BAD_VALUE,
				"No array filter found for identifier '%.*s' in path '%.*s'",
				STR_ARG(id), STR_ARG(path));
	return STATUS_OK;
}

static enum status
check_path(struct compile *c, struct str path)
{
	struct str rest = path;
	bool more, any = false;
	size_t step = 0;

	if (!path.len)
		return mql_fail(c->q, MQL_EMPTY_FIELD_NAME, "An empty update path is not valid.");
	do {
		TRY(step_count(1));
		more = memchr(rest.ptr, '.', rest.len) != NULL;
		TRY(check_name(c, path, str_cut(&rest, '.'), step, &any));
		if (++step > MQL_UPDATE_STEPS)
			return mql_fail(c->q, MQL_OVERFLOW,
					"A path of an update has more than %d names",
					MQL_UPDATE_STEPS);
	} while (more);
	return STATUS_OK;
}

/* ---- Operators ---- */

static enum status
modifier_new(struct compile *c, enum mql_update_op op, struct str path, const struct bson_value *v,
	     struct mql_modifier **ret)
{
	struct mql *q = c->q;
	struct mql_modifier *m;

	TRY(check_path(c, path));
	if (c->update->count == MQL_UPDATE_PATHS)
		return mql_fail(q, MQL_BAD_VALUE, "An update has more than %d paths",
				MQL_UPDATE_PATHS);
	m = arena_zalloc(q->arena, sizeof(*m));
	if (m)
		c->all = arena_grow(q->arena, (void *)c->all, c->update->count, &c->cap,
				    sizeof(*c->all));
	if (!m || !c->all)
		return mql_full(q);
	*m = (struct mql_modifier){
		.op = op, .number = c->update->count, .path = path, .value = *v
	};
	c->all[c->update->count++] = m;
	*ret = m;
	return STATUS_OK;
}

static enum status
update_check_number(struct mql *q, const struct mql_modifier *m)
{
	if (bson_is_number(&m->value))
		return STATUS_OK;
	return mql_fail(q, MQL_TYPE_MISMATCH, "Cannot %s with non-numeric argument: {%s}",
			m->op == MQL_UPDATE_INC ? "increment" : "multiply",
			mql_text(q, m->path, &m->value));
}

static enum status
compile_rename(struct compile *c, struct mql_modifier *m, const struct bson_element *e)
{
	const struct bson_value none = BSON_OF_NULL;

	if (e->value.type != BSON_STRING)
		return mql_fail(c->q, MQL_BAD_VALUE,
				"The 'to' field for $rename must be a string: %s",
				mql_text(c->q, e->name, &e->value));
	if (memchr(bson_text(&e->value).ptr, 0, bson_text(&e->value).len))
		return mql_fail(c->q, MQL_BAD_VALUE,
				"The 'to' field for $rename cannot contain an embedded null byte");
	if (str_eq(e->name, bson_text(&e->value)))
		return mql_fail(c->q, MQL_BAD_VALUE,
				"The source and target field for $rename must differ: %s",
				mql_text(c->q, e->name, &e->value));
	if (path_is_dynamic(bson_text(&e->value)) || path_is_dynamic(e->name))
		return mql_fail(c->q, MQL_BAD_VALUE,
				"The source and target field for $rename may not be dynamic: %.*s",
				STR_ARG(e->name));
	TRY(check_path(c, bson_text(&e->value)));
	m->path = bson_text(&e->value);
	m->value = BSON_OF_STRING(e->name);
	return modifier_new(c, MQL_UPDATE_SOURCE, e->name, &none, &m);
}

static enum status
compile_current_date(struct mql *q, struct mql_modifier *m)
{
	struct bson_value type = { .type = BSON_NULL };
	bool timestamp;

	if (m->value.type == BSON_BOOL)
		return STATUS_OK;
	if (m->value.type != BSON_DOCUMENT)
		return mql_fail(q, MQL_BAD_VALUE,
				"%s is not valid type for $currentDate. Please use a boolean "
				"('true') or a $type expression ({$type: 'timestamp/date'}).",
				mql_type_name(&m->value));
	if (bson_count(bson_text(&m->value)) == 1)
		(void)bson_find(bson_text(&m->value), STR("$type"), &type);
	timestamp = type.type == BSON_STRING && mql_is(bson_text(&type), "timestamp");
	if (!timestamp && (type.type != BSON_STRING || !mql_is(bson_text(&type), "date")))
		return mql_fail(q, MQL_BAD_VALUE,
				"The '$type' string field is required to be 'date' or 'timestamp': "
				"{$currentDate: {field : {$type: 'date'}}}");
	m->value.type = timestamp ? BSON_TIMESTAMP : BSON_DATE;
	return STATUS_OK;
}

/* True if the element is not the first one of its name. */
static bool
is_given_again(struct str document, struct str name)
{
	struct bson_element e;
	struct bson_iter i;

	bson_iter_begin(&i, document);
	while (bson_iter_read(&i, &e) && !str_eq(e.name, name))
		;
	return e.name.ptr != name.ptr;
}

static enum status
compile_each(struct mql *q, struct mql_modifier *m)
{
	const char *name = m->op == MQL_UPDATE_PUSH ? "$push" : "$addToSet";
	struct bson_value each;
	struct bson_iter i;
	struct bson_element e;
	bool known;

	if (m->value.type != BSON_DOCUMENT || !bson_find(bson_text(&m->value), STR("$each"), &each))
		return STATUS_OK;
	for (bson_iter_begin(&i, bson_text(&m->value)); bson_iter_read(&i, &e);) {
		if (is_given_again(bson_text(&m->value), e.name))
			return mql_fail(q, MQL_BAD_VALUE, "Only one %.*s is supported.",
					STR_ARG(e.name));
		known = mql_is(e.name, "$each");
		if (!known && m->op == MQL_UPDATE_PUSH)
			TRY(mql_push_compile(q, m, &e, &known));
		if (!known)
			return mql_fail(q, MQL_BAD_VALUE, "Unrecognized clause in %s: %.*s", name,
					STR_ARG(e.name));
	}
	if (each.type != BSON_ARRAY)
		return mql_fail(q, m->op == MQL_UPDATE_PUSH ? MQL_BAD_VALUE : MQL_TYPE_MISMATCH,
				"The argument to $each in %s must be an array but it was of type: "
				"%s",
				name, mql_type_name(&each));
	m->value = each;
	m->each = true;
	return m->op == MQL_UPDATE_ADD_TO_SET
		       ? mql_value_set_of(q, bson_text(&each), q->texts, &m->set)
		       : STATUS_OK;
}

static enum status
compile_pop(struct mql *q, struct mql_modifier *m)
{
	int64_t n;

	if (!bson_is_number(&m->value))
		return mql_fail(q, MQL_FAILED_TO_PARSE, "Expected a number in: %s",
				mql_text(q, m->path, &m->value));
	if (!bson_to_int64(&m->value, &n) || (n != 1 && n != -1))
		return mql_fail(q, MQL_FAILED_TO_PARSE, "$pop expects 1 or -1, found: %s",
				mql_text(q, STR(""), &m->value));
	m->value = BSON_OF_INT32(n);
	return STATUS_OK;
}

static enum status
compile_pull(struct mql *q, struct mql_modifier *m)
{
	const struct bson_value *v = &m->value;
	struct buf out = mql_buf(q, BSON_MOST_BYTES);
	struct bson_builder b;
	struct str filter;

	if (v->type == BSON_DOCUMENT)
		return mql_match_compile_value(q, bson_text(v), &m->match);
	if (v->type != BSON_REGEX)
		return STATUS_OK;
	bson_builder_init(&b, &out);
	bson_begin(&b);
	bson_put(&b, STR("$regex"), v);
	bson_end(&b);
	TRY(mql_keep(q, &out, &filter));
	return mql_match_compile_value(q, filter, &m->match);
}

static enum status
compile_bit(struct mql *q, struct mql_modifier *m)
{
	struct bson_iter i;
	struct bson_element e;

	if (m->value.type != BSON_DOCUMENT)
		return mql_fail(
			q, MQL_BAD_VALUE,
			"The $bit modifier is not compatible with a %s. You must pass in an "
			"embedded document: {$bit: {field: {and/or/xor: #}}",
			mql_type_name(&m->value));
	if (bson_is_empty(bson_text(&m->value)))
		return mql_fail(q, MQL_BAD_VALUE,
				"You must pass in at least one bitwise operation. The format is: "
				"{$bit: {field: {and/or/xor: #}}");
	for (bson_iter_begin(&i, bson_text(&m->value)); bson_iter_read(&i, &e);) {
		if (!mql_is(e.name, "and") && !mql_is(e.name, "or") && !mql_is(e.name, "xor"))
			return mql_fail(
				q, MQL_BAD_VALUE,
				"The $bit modifier only supports 'and', 'or', and 'xor', not "
				"'%.*s' which is an unknown operator: {%s}",
				STR_ARG(e.name), mql_text(q, e.name, &e.value));
		if (e.value.type != BSON_INT32 && e.value.type != BSON_INT64)
			return mql_fail(q, MQL_BAD_VALUE,
					"The $bit modifier field must be an Integer(32/64 bit); a "
					"'%s' is not supported here: {%s}",
					mql_type_name(&e.value), mql_text(q, e.name, &e.value));
	}
	return STATUS_OK;
}

static enum status
compile_modifier(struct compile *c, enum mql_update_op op, const struct bson_element *e)
{
	struct mql_modifier *m;

	TRY(modifier_new(c, op, e->name, &e->value, &m));
	switch (op) {
	case MQL_UPDATE_INC:
	case MQL_UPDATE_MUL:
		return update_check_number(c->q, m);
	case MQL_UPDATE_RENAME:
		return compile_rename(c, m, e);
	case MQL_UPDATE_CURRENT_DATE:
		return compile_current_date(c->q, m);
	case MQL_UPDATE_PUSH:
	case MQL_UPDATE_ADD_TO_SET:
		return compile_each(c->q, m);
	case MQL_UPDATE_POP:
		return compile_pop(c->q, m);
	case MQL_UPDATE_PULL:
		return compile_pull(c->q, m);
	case MQL_UPDATE_PULL_ALL:
		if (e->value.type != BSON_ARRAY)
			return mql_fail(c->q, MQL_BAD_VALUE,
					"$pullAll requires an array argument but was given a %s",
					mql_type_name(&e->value));
		return mql_value_set_of(c->q, bson_text(&e->value), c->q->texts, &m->set);
	case MQL_UPDATE_BIT:
		return compile_bit(c->q, m);
	case MQL_UPDATE_SET:
	case MQL_UPDATE_SET_ON_INSERT:
	case MQL_UPDATE_UNSET:
	case MQL_UPDATE_MIN:
	case MQL_UPDATE_MAX:
	case MQL_UPDATE_SOURCE:
		break;
	}
	return STATUS_OK;
}

static enum status
update_compile_operator(struct compile *c, const struct bson_element *operator)
{
	size_t at = 0, count = sizeof(update_operators) / sizeof(update_operators[0]);
	struct bson_iter i;
	struct bson_element e;

	while (at < count && !mql_is(operator->name, update_operators[at].name))
		at++;
	if (at == count)
		return mql_fail(c->q, MQL_FAILED_TO_PARSE,
				"Unknown modifier: %.*s. Expected a valid update modifier or "
				"pipeline-style update specified as an array",
				STR_ARG(operator->name));
	if (operator->value.type != BSON_DOCUMENT)
		return mql_fail(c->q, MQL_FAILED_TO_PARSE,
				"Modifiers operate on fields but we found type %s instead. For "
				"example: {$mod: {<field>: ...}} not {%s}",
				mql_type_name(&operator->value),
				mql_text(c->q, operator->name, &operator->value));
	for (bson_iter_begin(&i, bson_text(&operator->value)); bson_iter_read(&i, &e);) {
		TRY(step_count_bytes(e.bytes.len));
		TRY(compile_modifier(c, update_operators[at].op, &e));
	}
	return STATUS_OK;
}

/* ---- Array filters ---- */

static bool
filter_name_is_sound(struct str name)
{
	for (size_t i = 0; i < name.len; i++)
		if (!isalnum((unsigned char)name.ptr[i]))
			return false;
	return name.len > 0 && islower((unsigned char)name.ptr[0]);
}

/* The one name that a filter's paths begin with. Goes into $and, $or and $nor by their first. */
static enum status
filter_name(struct mql *q, struct str filter, struct str *ret)
{
	struct bson_iter i;
	struct bson_element e;
	struct str found = STR("");

	for (int depth = 0; depth < MQL_DEPTH; depth++) {
		struct bson_value inner;

		bson_iter_begin(&i, filter);
		if (!bson_iter_read(&i, &e))
			return mql_fail(q, MQL_FAILED_TO_PARSE,
					"Cannot use an expression without a top-level field name "
					"in arrayFilters");
		found = e.name;
		if (e.name.len && e.name.ptr[0] != '$') {
			found = str_cut(&e.name, '.');
			*ret = found;
			if (filter_name_is_sound(found))
				return STATUS_OK;
			break;
		}
		if (e.value.type != BSON_ARRAY ||
		    !bson_find(bson_text(&e.value), STR("0"), &inner) ||
		    inner.type != BSON_DOCUMENT)
			break;
		filter = bson_text(&inner);
	}
	if (mql_is(found, "$expr"))
		return mql_fail(
			q, 224,
			"Error parsing array filter :: caused by :: $expr is not allowed in "
			"this context");
	return mql_fail(q, MQL_BAD_VALUE,
			"Error parsing array filter :: caused by :: The top-level field name must "
			"be an alphanumeric string beginning with a lowercase letter, found '%.*s'",
			STR_ARG(found));
}

static enum status
compile_filters(struct mql *q, struct str filters, struct mql_array_filter **ret)
{
	struct mql_array_filter *f;
	struct bson_iter i;
	struct bson_element e;

	for (bson_iter_begin(&i, filters); bson_iter_read(&i, &e);) {
		TRY(step_count_bytes(e.bytes.len));
		if (e.value.type != BSON_DOCUMENT)
			return mql_fail(q, MQL_TYPE_MISMATCH,
					"BSON field 'arrayFilters.%.*s' is the wrong type '%s', "
					"expected type 'object'",
					STR_ARG(e.name), mql_type_name(&e.value));
		f = arena_zalloc(q->arena, sizeof(*f));
		if (!f)
			return mql_full(q);
		TRY(filter_name(q, bson_text(&e.value), &f->name));
		for (const struct mql_array_filter *other = *ret; other; other = other->next) {
			TRY(step_count(1));
			if (str_eq(other->name, f->name))
				return mql_fail(q, MQL_FAILED_TO_PARSE,
						"Found multiple array filters with the same "
						"top-level field name %.*s",
						STR_ARG(f->name));
		}
		TRY(mql_match_compile(q, bson_text(&e.value), &f->match));
		f->next = *ret;
		*ret = f;
	}
	return STATUS_OK;
}

/* ---- The whole ---- */

static enum status
check_conflicts(struct mql *q, const struct mql_update *u)
{
	for (size_t i = 1; i < u->count; i++) {
		const struct mql_modifier *a = u->modifiers[i - 1], *b = u->modifiers[i];
		bool below;

		(void)mql_update_compare_paths(a->path, b->path, &below);
		if (below)
			return mql_fail(q, MQL_CONFLICTING_UPDATE,
					"Updating the path '%.*s' would create a conflict at "
					"'%.*s'",
					STR_ARG((a->number > b->number ? a : b)->path),
					STR_ARG(a->path));
	}
	return STATUS_OK;
}

static enum status
compile_replacement(struct mql *q, struct str document)
{
	struct bson_iter i;
	struct bson_element e;

	for (bson_iter_begin(&i, document); bson_iter_read(&i, &e);) {
		if (str_starts_with(e.name, STR("$")))
			return mql_fail(
				q, MQL_DOLLAR_PREFIXED,
				"The dollar ($) prefixed field '%.*s' in '%.*s' is not "
				"allowed in the context of an update's replacement document. "
				"Consider using an aggregation pipeline with $replaceWith.",
				STR_ARG(e.name), STR_ARG(e.name));
	}
	return STATUS_OK;
}

enum status
mql_update_compile(struct mql *q, struct str update, struct str array_filters,
		   struct mql_update **ret)
{
	struct compile c = { .q = q, .update = arena_zalloc(q->arena, sizeof(*c.update)) };
	struct bson_iter i;
	struct bson_element e;

	if (!c.update)
		return mql_full(q);
	c.update->document = update;
	bson_iter_begin(&i, update);
	c.update->replacement = !bson_iter_read(&i, &e) || !str_starts_with(e.name, STR("$"));
	TRY(compile_filters(q, array_filters, &c.update->filters));
	if (c.update->replacement)
		TRY(compile_replacement(q, update));
	else
		for (bson_iter_begin(&i, update); bson_iter_read(&i, &e);)
			TRY(update_compile_operator(&c, &e));
	for (const struct mql_array_filter *f = c.update->filters; f; f = f->next) {
		if (!f->used)
			return mql_fail(
				q, MQL_FAILED_TO_PARSE,
				"The array filter for identifier '%.*s' was not used in the "
				"update",
				STR_ARG(f->name));
	}
	TRY(mql_sort(q, (const void **)c.all, c.update->count, compare_modifiers, NULL));
	c.update->modifiers = c.all;
	TRY(check_conflicts(q, c.update));
	*ret = c.update;
	return STATUS_OK;
}

bool
mql_update_is_replacement(const struct mql_update *u)
{
	return u->replacement;
}
