/* Schemas into rules. */
#include "bson/decimal.h"
#include "mql/schema/schema_int.h"
#include "mql/sort_values.h"

/* A schema while it is compiled. */
struct compile {
	struct mql *q;
	unsigned depth;
	struct str document;
	struct mql_schema *schema;
	struct mql_rule **tail;
};

enum expected {
	EXPECT_NUMBER,
	EXPECT_STRING,
	EXPECT_BOOL,
	EXPECT_OBJECT,
	EXPECT_ARRAY,
};

static enum status
check_type(struct mql *q, const struct bson_element *e, enum expected expected)
{
	static const char *const names[] = { "a number", "a string", "a boolean", "an object",
					     "an array" };
	static const enum bson_type types[] = { BSON_DOUBLE, BSON_STRING, BSON_BOOL, BSON_DOCUMENT,
						BSON_ARRAY };

	if (expected == EXPECT_NUMBER ? bson_is_number(&e->value)
				      : e->value.type == types[expected])
		return STATUS_OK;
	return mql_fail(q, MQL_TYPE_MISMATCH, "$jsonSchema keyword '%.*s' must be %s",
			STR_ARG(e->name), names[expected]);
}

static enum status
check_filled(struct mql *q, const struct bson_element *e)
{
	if (!bson_is_empty(bson_text(&e->value)))
		return STATUS_OK;
	return mql_fail(q, MQL_FAILED_TO_PARSE, "$jsonSchema keyword '%.*s' cannot be an empty %s",
			STR_ARG(e->name), e->value.type == BSON_ARRAY ? "array" : "object");
}

static enum status
rule_new(struct compile *c, enum mql_rule_op op, const struct bson_element *e,
	 struct mql_rule **ret)
{
	struct mql_rule *rule = arena_zalloc(c->q->arena, sizeof(*rule));

	if (!rule)
		return mql_full(c->q);
	rule->op = op;
	rule->keyword = *e;
	*c->tail = rule;
	c->tail = &rule->next;
	*ret = rule;
	return STATUS_OK;
}

static enum status
item_new(struct compile *c, struct str name, struct mql_schema_item ***tail,
	 struct mql_schema_item **ret)
{
	struct mql_schema_item *item;

	TRY(step_count(1));
	item = arena_zalloc(c->q->arena, sizeof(*item));
	if (!item)
		return mql_full(c->q);
	item->name = name;
	**tail = item;
	*tail = &item->next;
	*ret = item;
	return STATUS_OK;
}

static enum status
compile_inner(struct compile *c, const struct bson_value *v, struct mql_schema **ret)
{
	return mql_schema_compile(c->q, v, c->depth + 1, ret);
}

/* ---- Types ---- */

/* The names that JSON Schema has for types. */
static bool
json_type_of(struct str name, enum bson_type *ret)
{
	static const struct {
		const char *name;
		enum bson_type type;
	} types[] = {
		{ "array", BSON_ARRAY },   { "boolean", BSON_BOOL },
		{ "null", BSON_NULL },     { "object", BSON_DOCUMENT },
		{ "string", BSON_STRING }, { "number", (enum bson_type)0 },
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (mql_is(name, types[i].name)) {
			*ret = types[i].type;
			return true;
		}
	}
	return false;
}

static enum status
add_type(struct mql *q, const struct bson_element *e, const struct bson_value *v,
	 struct mql_types *types)
{
	bool json = mql_is(e->name, "type");
	enum bson_type type;

	if (v->type != BSON_STRING)
		return mql_fail(q, MQL_TYPE_MISMATCH,
				"$jsonSchema keyword '%.*s' must be either a string or an array of "
				"strings",
				STR_ARG(e->name));
	if (mql_is(bson_text(v), "integer"))
		return mql_fail(q, MQL_FAILED_TO_PARSE,
				"$jsonSchema type 'integer' is not currently supported.");
	if (!(json ? json_type_of(bson_text(v), &type) : bson_type_of_name(bson_text(v), &type)))
		return mql_fail(q, MQL_BAD_VALUE, "Unknown type name alias: %.*s",
				STR_ARG(bson_text(v)));
	if (type == BSON_MIN_KEY)
		types->min = true;
	else if (type == BSON_MAX_KEY)
		types->max = true;
	else if (!type)
		types->low |= 1U << BSON_DOUBLE | 1U << BSON_INT32 | 1U << BSON_INT64 |
			      1U << BSON_DECIMAL;
	else
		types->low |= 1U << type;
	return STATUS_OK;
}

static enum status
compile_type(struct compile *c, const struct bson_element *e)
{
	struct mql_rule *rule;
	struct bson_iter i, before;
	struct bson_element type, other;

	if (mql_is(e->name, "type") && bson_find(c->document, STR("bsonType"), NULL))
		return mql_fail(c->q, MQL_FAILED_TO_PARSE,
				"Cannot specify both $jsonSchema keywords 'type' and 'bsonType'");
	TRY(rule_new(c, MQL_RULE_TYPE, e, &rule));
	if (e->value.type != BSON_ARRAY)
		return add_type(c->q, e, &e->value, &rule->types);
	TRY(check_filled(c->q, e));
	for (bson_iter_begin(&i, bson_text(&e->value)); bson_iter_read(&i, &type);) {
		TRY(step_count(1));
		TRY(add_type(c->q, e, &type.value, &rule->types));
		/* Names of types are few: a longer list has one twice. */
		bson_iter_begin(&before, bson_text(&e->value));
		while (bson_iter_read(&before, &other) && other.bytes.ptr != type.bytes.ptr) {
			if (other.value.type == BSON_STRING &&
			    str_eq(bson_text(&other.value), bson_text(&type.value)))
				return mql_fail(c->q, MQL_FAILED_TO_PARSE,
						"$jsonSchema keyword '%.*s' has duplicate value: "
						"%.*s",
						STR_ARG(e->name), STR_ARG(bson_text(&type.value)));
		}
	}
	return STATUS_OK;
}

/* ---- Numbers, strings, arrays ---- */

static enum status
compile_bound(struct compile *c, enum mql_rule_op op, const struct bson_element *e)
{
	struct str exclusive = op == MQL_RULE_MINIMUM ? STR("exclusiveMinimum")
						      : STR("exclusiveMaximum");
	struct mql_rule *rule;
	struct bson_element x = { .name = exclusive };

	TRY(check_type(c->q, e, EXPECT_NUMBER));
	TRY(rule_new(c, op, e, &rule));
	rule->bound = e->value;
	if (!bson_find(c->document, exclusive, &x.value))
		return STATUS_OK;
	TRY(check_type(c->q, &x, EXPECT_BOOL));
	rule->exclusive = bson_truth(&x.value);
	return STATUS_OK;
}

/* exclusiveMinimum, exclusiveMaximum, additionalItems: what they belong to reads them. */
static enum status
compile_beside(struct compile *c, const struct bson_element *e, struct str needed)
{
	TRY(check_type(c->q, e, EXPECT_BOOL));
	if (bson_find(c->document, needed, NULL))
		return STATUS_OK;
	return mql_fail(c->q, MQL_FAILED_TO_PARSE,
			"$jsonSchema keyword '%.*s' must be a present if %.*s is present",
			STR_ARG(needed), STR_ARG(e->name));
}

static enum status
compile_multiple(struct compile *c, const struct bson_element *e)
{
	const struct bson_value zero = BSON_OF_INT32(0);
	struct mql_rule *rule;

	TRY(check_type(c->q, e, EXPECT_NUMBER));
	if (bson_compare_numbers(&e->value, &zero) <= 0 ||
	    bson_decimal_is_infinite(bson_decimal_of(&e->value)))
		return mql_fail(c->q, MQL_FAILED_TO_PARSE,
				"$jsonSchema keyword '%.*s' must have a positive value",
				STR_ARG(e->name));
	TRY(rule_new(c, MQL_RULE_MULTIPLE_OF, e, &rule));
	rule->bound = e->value;
	return STATUS_OK;
}

static enum status
compile_count(struct compile *c, enum mql_rule_op op, const struct bson_element *e)
{
	struct mql_rule *rule;
	const char *text = mql_text(c->q, e->name, &e->value);

	TRY(rule_new(c, op, e, &rule));
	if (!bson_is_number(&e->value))
		return mql_fail(c->q, MQL_FAILED_TO_PARSE, "Expected a number in: %s", text);
	if (!bson_to_int64(&e->value, &rule->count))
		return mql_fail(c->q, MQL_FAILED_TO_PARSE, "Expected an integer: %s", text);
	if (rule->count < 0)
		return mql_fail(c->q, MQL_FAILED_TO_PARSE, "Expected a non-negative number in: %s",
				text);
	return STATUS_OK;
}

static enum status
compile_pattern(struct compile *c, const struct bson_element *e)
{
	struct mql_rule *rule;

	TRY(check_type(c->q, e, EXPECT_STRING));
	TRY(rule_new(c, MQL_RULE_PATTERN, e, &rule));
	return mql_regex_compile(c->q, bson_text(&e->value), STR(""), &rule->regex);
}

static enum status
compile_enum(struct compile *c, const struct bson_element *e)
{
	struct mql_value_set values;
	struct mql_rule *rule;

	TRY(check_type(c->q, e, EXPECT_ARRAY));
	TRY(check_filled(c->q, e));
	TRY(mql_value_set_of(c->q, bson_text(&e->value), NULL, &values));
	if (values.count < values.all_count)
		return mql_fail(
			c->q, MQL_FAILED_TO_PARSE,
			"$jsonSchema keyword 'enum' array cannot contain duplicate values.");
	TRY(rule_new(c, MQL_RULE_ENUM, e, &rule));
	rule->values = values;
	return STATUS_OK;
}

static enum status
compile_unique(struct compile *c, const struct bson_element *e)
{
	struct mql_rule *rule;

	TRY(check_type(c->q, e, EXPECT_BOOL));
	return bson_truth(&e->value) ? rule_new(c, MQL_RULE_UNIQUE_ITEMS, e, &rule) : STATUS_OK;
}

static enum status
compile_rest(struct compile *c, struct str name, struct mql_schema_rest *ret)
{
	struct bson_value v;

	if (!bson_find(c->document, name, &v))
		return STATUS_OK;
	if (v.type == BSON_DOCUMENT)
		return compile_inner(c, &v, &ret->schema);
	if (v.type != BSON_BOOL)
		return mql_fail(c->q, MQL_TYPE_MISMATCH,
				"$jsonSchema keyword '%.*s' must be either an object or a boolean, "
				"but got a %s",
				STR_ARG(name), mql_type_name(&v));
	ret->forbidden = !bson_truth(&v);
	return STATUS_OK;
}

static enum status
compile_items(struct compile *c, const struct bson_element *e)
{
	struct mql_schema_item *item, **tail;
	struct mql_rule *rule;
	struct bson_iter i;
	struct bson_element each;

	TRY(rule_new(c, MQL_RULE_ITEMS, e, &rule));
	if (e->value.type == BSON_DOCUMENT)
		return compile_inner(c, &e->value, &rule->items.every);
	if (e->value.type != BSON_ARRAY)
		return mql_fail(c->q, MQL_TYPE_MISMATCH,
				"$jsonSchema keyword 'items' must be an array or an object, not %s",
				mql_type_name(&e->value));
	tail = &rule->items.tuple;
	for (bson_iter_begin(&i, bson_text(&e->value)); bson_iter_read(&i, &each);) {
		if (each.value.type != BSON_DOCUMENT)
			return mql_fail(c->q, MQL_TYPE_MISMATCH,
					"$jsonSchema keyword 'items' requires that each element of "
					"the array is an object, but found a %s",
					mql_type_name(&each.value));
		TRY(item_new(c, each.name, &tail, &item));
		TRY(compile_inner(c, &each.value, &item->schema));
	}
	return compile_rest(c, STR("additionalItems"), &rule->items.more);
}

/* ---- Objects ---- */

static enum status
compile_required(struct compile *c, const struct bson_element *e)
{
	struct mql_value_set names;
	struct mql_rule *rule;
	struct bson_iter i;
	struct bson_element name;

	TRY(check_type(c->q, e, EXPECT_ARRAY));
	TRY(check_filled(c->q, e));
	for (bson_iter_begin(&i, bson_text(&e->value)); bson_iter_read(&i, &name);) {
		if (name.value.type != BSON_STRING)
			return mql_fail(c->q, MQL_TYPE_MISMATCH,
					"$jsonSchema keyword '%.*s' must be an array of strings, "
					"but found an element of type %s",
					STR_ARG(e->name), mql_type_name(&name.value));
	}
	TRY(mql_value_set_of(c->q, bson_text(&e->value), NULL, &names));
	if (names.count < names.all_count)
		return mql_fail(c->q, MQL_FAILED_TO_PARSE,
				"$jsonSchema keyword '%.*s' array cannot contain duplicate values",
				STR_ARG(e->name));
	return rule_new(c, MQL_RULE_REQUIRED, e, &rule);
}

static int
compare_names(const void *a, const void *b, const void *arg)
{
	const struct mql_schema_item *left = a, *right = b;

	(void)arg;
	return str_cmp(left->name, right->name);
}

static enum status
compile_named(struct compile *c, const struct bson_element *e, struct mql_rule *rule)
{
	struct mql_schema_item *list = NULL, **tail = &list, *item;
	size_t count = bson_count(bson_text(&e->value));
	const struct mql_schema_item **named;
	struct bson_iter i;
	struct bson_element property;

	named = arena_alloc(c->q->arena, count * sizeof(*named));
	if (!named)
		return mql_full(c->q);
	rule->properties.named = named;
	for (bson_iter_begin(&i, bson_text(&e->value)); bson_iter_read(&i, &property);) {
		if (property.value.type != BSON_DOCUMENT)
			return mql_fail(c->q, MQL_TYPE_MISMATCH,
					"Nested schema for $jsonSchema property '%.*s' must be an "
					"object",
					STR_ARG(property.name));
		TRY(item_new(c, property.name, &tail, &item));
		TRY(compile_inner(c, &property.value, &item->schema));
		named[rule->properties.named_count++] = item;
	}
	return mql_sort(c->q, (const void **)named, count, compare_names, NULL);
}

static enum status
compile_patterns(struct compile *c, const struct bson_element *e, struct mql_rule *rule)
{
	struct mql_schema_item **tail = &rule->properties.patterns, *item;
	struct bson_iter i;
	struct bson_element pattern;

	for (bson_iter_begin(&i, bson_text(&e->value)); bson_iter_read(&i, &pattern);) {
		enum status status;

		if (pattern.value.type != BSON_DOCUMENT)
			return mql_fail(c->q, MQL_TYPE_MISMATCH,
					"$jsonSchema keyword 'patternProperties' has property "
					"'%.*s' which is not an object",
					STR_ARG(pattern.name));
		TRY(item_new(c, pattern.name, &tail, &item));
		status = mql_regex_compile(c->q, pattern.name, STR(""), &item->regex);
		if (status == STATUS_INVALID)
			return mql_fail(c->q, MQL_BAD_VALUE,
					"Invalid regular expression in $jsonSchema keyword "
					"'patternProperties': %.*s",
					STR_ARG(pattern.name));
		TRY(status);
		TRY(compile_inner(c, &pattern.value, &item->schema));
	}
	return STATUS_OK;
}

/* The three keywords of properties are one rule, which the first of them makes. */
static enum status
compile_properties(struct compile *c, const struct bson_element *e)
{
	struct bson_element part;
	struct mql_rule *rule;

	for (const struct mql_rule *r = c->schema->rules; r; r = r->next) {
		if (r->op == MQL_RULE_PROPERTIES)
			return STATUS_OK;
	}
	TRY(rule_new(c, MQL_RULE_PROPERTIES, e, &rule));
	part.name = STR("properties");
	if (bson_find(c->document, part.name, &part.value)) {
		TRY(check_type(c->q, &part, EXPECT_OBJECT));
		TRY(compile_named(c, &part, rule));
	}
	part.name = STR("patternProperties");
	if (bson_find(c->document, part.name, &part.value)) {
		TRY(check_type(c->q, &part, EXPECT_OBJECT));
		TRY(compile_patterns(c, &part, rule));
	}
	return compile_rest(c, STR("additionalProperties"), &rule->properties.others);
}

static enum status
compile_dependencies(struct compile *c, const struct bson_element *e)
{
	struct mql_schema_item **tail, *item;
	struct mql_rule *rule;
	struct bson_iter i, names;
	struct bson_element d, name;

	TRY(check_type(c->q, e, EXPECT_OBJECT));
	TRY(rule_new(c, MQL_RULE_DEPENDENCIES, e, &rule));
	tail = &rule->list;
	for (bson_iter_begin(&i, bson_text(&e->value)); bson_iter_read(&i, &d);) {
		TRY(item_new(c, d.name, &tail, &item));
		item->value = d.value;
		if (d.value.type == BSON_DOCUMENT) {
			TRY(compile_inner(c, &d.value, &item->schema));
			continue;
		}
		if (d.value.type != BSON_ARRAY)
			return mql_fail(
				c->q, MQL_TYPE_MISMATCH,
				"$jsonSchema keyword 'dependencies' property '%.*s' must be "
				"either an object or an array",
				STR_ARG(d.name));
		if (bson_is_empty(bson_text(&d.value)))
			return mql_fail(c->q, MQL_FAILED_TO_PARSE,
					"Property '%.*s' in $jsonSchema keyword 'dependencies' "
					"cannot be an empty array",
					STR_ARG(d.name));
		for (bson_iter_begin(&names, bson_text(&d.value)); bson_iter_read(&names, &name);) {
			TRY(step_count(1));
			if (name.value.type != BSON_STRING)
				return mql_fail(c->q, MQL_TYPE_MISMATCH,
						"Property '%.*s' in $jsonSchema keyword "
						"'dependencies' must be an array of strings",
						STR_ARG(d.name));
		}
	}
	return STATUS_OK;
}

/* ---- Schemas of schemas ---- */

static enum status
compile_list(struct compile *c, enum mql_rule_op op, const struct bson_element *e)
{
	struct mql_schema_item **tail, *item;
	struct mql_rule *rule;
	struct bson_iter i;
	struct bson_element each;

	TRY(check_type(c->q, e, EXPECT_ARRAY));
	TRY(check_filled(c->q, e));
	TRY(rule_new(c, op, e, &rule));
	tail = &rule->list;
	for (bson_iter_begin(&i, bson_text(&e->value)); bson_iter_read(&i, &each);) {
		if (each.value.type != BSON_DOCUMENT)
			return mql_fail(c->q, MQL_TYPE_MISMATCH,
					"$jsonSchema keyword '%.*s' must be an array of objects, "
					"but found an element of type %s",
					STR_ARG(e->name), mql_type_name(&each.value));
		TRY(item_new(c, each.name, &tail, &item));
		TRY(compile_inner(c, &each.value, &item->schema));
	}
	return STATUS_OK;
}

static enum status
compile_not(struct compile *c, const struct bson_element *e)
{
	struct mql_schema_item **tail, *item;
	struct mql_rule *rule;

	TRY(check_type(c->q, e, EXPECT_OBJECT));
	TRY(rule_new(c, MQL_RULE_NOT, e, &rule));
	tail = &rule->list;
	TRY(item_new(c, e->name, &tail, &item));
	return compile_inner(c, &e->value, &item->schema);
}

/* ---- Which keyword it is ---- */

enum keyword {
	KEYWORD_TYPE,
	KEYWORD_BOUND,
	KEYWORD_EXCLUSIVE,
	KEYWORD_MULTIPLE,
	KEYWORD_COUNT,
	KEYWORD_PATTERN,
	KEYWORD_ENUM,
	KEYWORD_UNIQUE,
	KEYWORD_ITEMS,
	KEYWORD_ADDITIONAL_ITEMS,
	KEYWORD_REQUIRED,
	KEYWORD_PROPERTIES,
	KEYWORD_DEPENDENCIES,
	KEYWORD_LIST,
	KEYWORD_NOT,
	KEYWORD_TITLE,
	KEYWORD_DESCRIPTION,
	KEYWORD_REFUSED,
};

static const struct {
	const char *name;
	enum keyword keyword;
	enum mql_rule_op op;
} keywords[] = {
	{ "bsonType", KEYWORD_TYPE, MQL_RULE_TYPE },
	{ "type", KEYWORD_TYPE, MQL_RULE_TYPE },
	{ "enum", KEYWORD_ENUM, MQL_RULE_ENUM },
	{ "minimum", KEYWORD_BOUND, MQL_RULE_MINIMUM },
	{ "maximum", KEYWORD_BOUND, MQL_RULE_MAXIMUM },
	{ "exclusiveMinimum", KEYWORD_EXCLUSIVE, MQL_RULE_MINIMUM },
	{ "exclusiveMaximum", KEYWORD_EXCLUSIVE, MQL_RULE_MAXIMUM },
	{ "multipleOf", KEYWORD_MULTIPLE, MQL_RULE_MULTIPLE_OF },
	{ "minLength", KEYWORD_COUNT, MQL_RULE_MIN_LENGTH },
	{ "maxLength", KEYWORD_COUNT, MQL_RULE_MAX_LENGTH },
	{ "pattern", KEYWORD_PATTERN, MQL_RULE_PATTERN },
	{ "minItems", KEYWORD_COUNT, MQL_RULE_MIN_ITEMS },
	{ "maxItems", KEYWORD_COUNT, MQL_RULE_MAX_ITEMS },
	{ "uniqueItems", KEYWORD_UNIQUE, MQL_RULE_UNIQUE_ITEMS },
	{ "items", KEYWORD_ITEMS, MQL_RULE_ITEMS },
	{ "additionalItems", KEYWORD_ADDITIONAL_ITEMS, MQL_RULE_ITEMS },
	{ "minProperties", KEYWORD_COUNT, MQL_RULE_MIN_PROPERTIES },
	{ "maxProperties", KEYWORD_COUNT, MQL_RULE_MAX_PROPERTIES },
	{ "required", KEYWORD_REQUIRED, MQL_RULE_REQUIRED },
	{ "properties", KEYWORD_PROPERTIES, MQL_RULE_PROPERTIES },
	{ "patternProperties", KEYWORD_PROPERTIES, MQL_RULE_PROPERTIES },
	{ "additionalProperties", KEYWORD_PROPERTIES, MQL_RULE_PROPERTIES },
	{ "dependencies", KEYWORD_DEPENDENCIES, MQL_RULE_DEPENDENCIES },
	{ "allOf", KEYWORD_LIST, MQL_RULE_ALL_OF },
	{ "anyOf", KEYWORD_LIST, MQL_RULE_ANY_OF },
	{ "oneOf", KEYWORD_LIST, MQL_RULE_ONE_OF },
	{ "not", KEYWORD_NOT, MQL_RULE_NOT },
	{ "title", KEYWORD_TITLE, MQL_RULE_TYPE },
	{ "description", KEYWORD_DESCRIPTION, MQL_RULE_TYPE },
	{ "$ref", KEYWORD_REFUSED, MQL_RULE_TYPE },
	{ "$schema", KEYWORD_REFUSED, MQL_RULE_TYPE },
	{ "default", KEYWORD_REFUSED, MQL_RULE_TYPE },
	{ "definitions", KEYWORD_REFUSED, MQL_RULE_TYPE },
	{ "format", KEYWORD_REFUSED, MQL_RULE_TYPE },
	{ "id", KEYWORD_REFUSED, MQL_RULE_TYPE },
};

static enum status
compile_keyword(struct compile *c, size_t at, const struct bson_element *e)
{
	struct mql_schema_rest unused;
	struct bson_value items = BSON_OF_NULL;

	switch (keywords[at].keyword) {
	case KEYWORD_TYPE:
		return compile_type(c, e);
	case KEYWORD_BOUND:
		return compile_bound(c, keywords[at].op, e);
	case KEYWORD_EXCLUSIVE:
		return compile_beside(c, e,
				      keywords[at].op == MQL_RULE_MINIMUM ? STR("minimum")
									  : STR("maximum"));
	case KEYWORD_MULTIPLE:
		return compile_multiple(c, e);
	case KEYWORD_COUNT:
		return compile_count(c, keywords[at].op, e);
	case KEYWORD_PATTERN:
		return compile_pattern(c, e);
	case KEYWORD_ENUM:
		return compile_enum(c, e);
	case KEYWORD_UNIQUE:
		return compile_unique(c, e);
	case KEYWORD_ITEMS:
		return compile_items(c, e);
	case KEYWORD_ADDITIONAL_ITEMS:
		/* Beside a list of `items` it is compiled with them; else only checked. */
		if (bson_find(c->document, STR("items"), &items) && items.type == BSON_ARRAY)
			return STATUS_OK;
		return compile_rest(c, e->name, &unused);
	case KEYWORD_REQUIRED:
		return compile_required(c, e);
	case KEYWORD_PROPERTIES:
		return compile_properties(c, e);
	case KEYWORD_DEPENDENCIES:
		return compile_dependencies(c, e);
	case KEYWORD_LIST:
		return compile_list(c, keywords[at].op, e);
	case KEYWORD_NOT:
		return compile_not(c, e);
	case KEYWORD_TITLE:
		TRY(check_type(c->q, e, EXPECT_STRING));
		c->schema->title = bson_text(&e->value);
		return STATUS_OK;
	case KEYWORD_DESCRIPTION:
		TRY(check_type(c->q, e, EXPECT_STRING));
		c->schema->description = bson_text(&e->value);
		return STATUS_OK;
	case KEYWORD_REFUSED:
		break;
	}
	return mql_fail(c->q, MQL_FAILED_TO_PARSE,
			"$jsonSchema keyword '%.*s' is not currently supported", STR_ARG(e->name));
}

enum status
mql_schema_compile(struct mql *q, const struct bson_value *v, unsigned depth,
		   struct mql_schema **ret)
{
	struct compile c = { .q = q, .depth = depth };
	size_t at, count = sizeof(keywords) / sizeof(keywords[0]);
	struct bson_iter i;
	struct bson_element e;

	if (v->type != BSON_DOCUMENT)
		return mql_fail(q, MQL_TYPE_MISMATCH, "$jsonSchema must be an object");
	c.document = bson_text(v);
	if (depth > MQL_DEPTH)
		return mql_fail(q, MQL_OVERFLOW,
				"Maximum number of nested $jsonSchema levels exceeded: %d",
				MQL_DEPTH);
	c.schema = arena_zalloc(q->arena, sizeof(*c.schema));
	if (!c.schema)
		return mql_full(q);
	c.tail = &c.schema->rules;
	for (bson_iter_begin(&i, bson_text(v)); bson_iter_read(&i, &e);) {
		TRY(step_count_bytes(bson_text(v).len));
		for (at = 0; at < count && !mql_is(e.name, keywords[at].name);)
			at++;
		if (at == count)
			return mql_fail(q, MQL_FAILED_TO_PARSE, "Unknown $jsonSchema keyword: %.*s",
					STR_ARG(e.name));
		TRY(compile_keyword(&c, at, &e));
	}
	*ret = c.schema;
	return STATUS_OK;
}
