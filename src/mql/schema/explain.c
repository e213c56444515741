/*
 * Why a value does not fulfil a schema, in the words of MongoDB's `errInfo`. Functions call
 * themselves for schemas inside: MQL_DEPTH deep at most.
 */
#include "mql/schema/schema_int.h"

enum {
	EXPLAIN_ITEMS = 1000, /* of an array, that a duplicate is looked for among */
};

static enum status explain_rules(const struct mql_schema *s, struct mql *q,
				 const struct bson_value *v, struct bson_builder *b);

static void
schema_explain_put(struct bson_builder *b, const char *name, const char *text)
{
	bson_put_string(b, str_from_cstr(name), str_from_cstr(text));
}

static enum status
schema_holds(const struct mql_schema *s, struct mql *q, const struct bson_value *v, bool *ret)
{
	return mql_schema_run(s, q, v, ret);
}

/* A document of that name with one member, the rules that a value does not fulfil. */
static enum status
put_details(const struct mql_schema *s, struct mql *q, const struct bson_value *v,
	    struct bson_builder *b)
{
	bson_begin_array(b, STR("details"));
	TRY(explain_rules(s, q, v, b));
	bson_end(b);
	return STATUS_OK;
}

static void
put_titles(const struct mql_schema *s, struct bson_builder *b)
{
	if (s->title.ptr)
		bson_put_string(b, STR("title"), s->title);
	if (s->description.ptr)
		bson_put_string(b, STR("description"), s->description);
}

/* ---- Rules of one value ---- */

static const char *
reason_of(enum mql_rule_op op)
{
	switch ((int)op) {
	case MQL_RULE_TYPE:
		return "type did not match";
	case MQL_RULE_ENUM:
		return "value was not found in enum";
	case MQL_RULE_MULTIPLE_OF:
		return "considered value is not a multiple of the specified value";
	case MQL_RULE_MIN_LENGTH:
	case MQL_RULE_MAX_LENGTH:
		return "specified string length was not satisfied";
	case MQL_RULE_PATTERN:
		return "regular expression did not match";
	case MQL_RULE_MIN_ITEMS:
	case MQL_RULE_MAX_ITEMS:
		return "array did not match specified length";
	case MQL_RULE_UNIQUE_ITEMS:
		return "found a duplicate item";
	case MQL_RULE_MIN_PROPERTIES:
	case MQL_RULE_MAX_PROPERTIES:
		return "specified number of properties was not satisfied";
	default:
		return "comparison failed";
	}
}

static void
put_specified(const struct mql_rule *rule, struct bson_builder *b)
{
	bson_begin_document(b, STR("specifiedAs"));
	bson_put(b, rule->keyword.name, &rule->keyword.value);
	if ((rule->op == MQL_RULE_MINIMUM || rule->op == MQL_RULE_MAXIMUM) && rule->exclusive)
		bson_put_bool(b,
			      rule->op == MQL_RULE_MINIMUM ? STR("exclusiveMinimum")
							   : STR("exclusiveMaximum"),
			      true);
	bson_end(b);
}

static void
put_duplicate(struct str array, struct bson_builder *b)
{
	struct bson_element left, right;
	struct bson_iter i, k;
	int n = 0;

	for (bson_iter_begin(&i, array); n++ < EXPLAIN_ITEMS && bson_iter_read(&i, &left);) {
		int m = n;

		for (k = i; m++ < EXPLAIN_ITEMS && bson_iter_read(&k, &right);) {
			if (bson_compare_values(&left.value, &right.value, NULL) == 0) {
				bson_put(b, STR("duplicatedValue"), &left.value);
				return;
			}
		}
	}
}

static void
explain_value(const struct mql_rule *rule, const struct bson_value *v, struct bson_builder *b)
{
	bson_put_string(b, STR("operatorName"), rule->keyword.name);
	put_specified(rule, b);
	schema_explain_put(b, "reason", reason_of(rule->op));
	if (rule->op == MQL_RULE_MIN_PROPERTIES || rule->op == MQL_RULE_MAX_PROPERTIES) {
		bson_put_int32(b, STR("numberOfProperties"), (int32_t)bson_count(bson_text(v)));
		return;
	}
	bson_put(b, STR("consideredValue"), v);
	if (rule->op == MQL_RULE_TYPE)
		schema_explain_put(b, "consideredType", bson_type_name(v->type));
	if (rule->op == MQL_RULE_UNIQUE_ITEMS)
		put_duplicate(bson_text(v), b);
}

static void
put_missing(struct str names, struct str document, struct bson_builder *b)
{
	struct bson_element e;
	struct bson_iter i;

	bson_begin_array(b, STR("missingProperties"));
	for (bson_iter_begin(&i, names); bson_iter_read(&i, &e);)
		if (!bson_find(document, bson_text(&e.value), NULL))
			bson_put(b, STR(""), &e.value);
	bson_end(b);
}

static void
explain_required(const struct mql_rule *rule, const struct bson_value *v, struct bson_builder *b)
{
	schema_explain_put(b, "operatorName", "required");
	put_specified(rule, b);
	put_missing(bson_text(&rule->keyword.value), bson_text(v), b);
}

/* ---- Items ---- */

static enum status
explain_item(const struct mql_schema *s, struct mql *q, const struct bson_value *v, int32_t at,
	     bool more, struct bson_builder *b)
{
	schema_explain_put(b, "operatorName", more ? "additionalItems" : "items");
	schema_explain_put(b, "reason",
			   more ? "At least one additional item did not match the sub-schema"
				: "At least one item did not match the sub-schema");
	bson_put_int32(b, STR("itemIndex"), at);
	return put_details(s, q, v, b);
}

static void
explain_more_items(struct str array, int32_t from, struct bson_builder *b)
{
	struct bson_element e;
	struct bson_iter i;
	int32_t at = 0;

	schema_explain_put(b, "operatorName", "additionalItems");
	bson_begin_document(b, STR("specifiedAs"));
	bson_put_bool(b, STR("additionalItems"), false);
	bson_end(b);
	schema_explain_put(b, "reason", "found additional items");
	bson_begin_array(b, STR("additionalItems"));
	for (bson_iter_begin(&i, array); bson_iter_read(&i, &e); at++)
		if (at >= from)
			bson_put(b, STR(""), &e.value);
	bson_end(b);
}

/* The first item that is not as it should be. */
static enum status
explain_items(const struct mql_rule *rule, struct mql *q, const struct bson_value *v,
	      struct bson_builder *b)
{
	const struct mql_schema_item *item = rule->items.tuple;
	struct bson_element e;
	struct bson_iter i;
	int32_t at = 0;
	bool good;

	for (bson_iter_begin(&i, bson_text(v)); bson_iter_read(&i, &e); at++) {
		bool more = !rule->items.every && !item;
		const struct mql_schema *s = rule->items.every ? rule->items.every
					     : item            ? item->schema
							       : rule->items.more.schema;

		if (more && rule->items.more.forbidden) {
			explain_more_items(bson_text(v), at, b);
			return STATUS_OK;
		}
		item = item ? item->next : NULL;
		if (!s)
			continue;
		TRY(schema_holds(s, q, &e.value, &good));
		if (!good)
			return explain_item(s, q, &e.value, at, more, b);
	}
	return STATUS_OK;
}

/* ---- Properties ---- */

static const struct mql_schema_item *
named_of(const struct mql_rule *rule, struct str name)
{
	for (size_t i = 0; i < rule->properties.named_count; i++)
		if (str_eq(rule->properties.named[i]->name, name))
			return rule->properties.named[i];
	return NULL;
}

static enum status
matches_pattern(const struct mql_rule *rule, struct mql *q, struct str name, bool *ret)
{
	*ret = false;
	for (const struct mql_schema_item *p = rule->properties.patterns; p && !*ret; p = p->next)
		TRY(mql_regex_match(p->regex, q, name, 0, ret, NULL));
	return STATUS_OK;
}

static enum status
put_property(const struct mql_schema *s, struct mql *q, const struct bson_element *e,
	     const struct mql_schema_item *pattern, struct bson_builder *b)
{
	bson_begin_document(b, STR(""));
	bson_put_string(b, STR("propertyName"), e->name);
	if (pattern)
		bson_put_string(b, STR("regexMatched"), pattern->name);
	put_titles(s, b);
	TRY(put_details(s, q, &e->value, b));
	bson_end(b);
	return STATUS_OK;
}

/* A property and the schemas that it does not fulfil, by its name or by patterns. */
static enum status
explain_property(const struct mql_rule *rule, struct mql *q, const struct bson_element *e,
		 bool patterns, struct bson_builder *b)
{
	const struct mql_schema_item *p = patterns ? rule->properties.patterns
						   : named_of(rule, e->name);
	bool good, named = true;

	for (; p; p = patterns ? p->next : NULL) {
		if (patterns)
			TRY(mql_regex_match(p->regex, q, e->name, 0, &named, NULL));
		if (!named)
			continue;
		TRY(schema_holds(p->schema, q, &e->value, &good));
		if (!good)
			TRY(put_property(p->schema, q, e, patterns ? p : NULL, b));
	}
	return STATUS_OK;
}

/* True if a property does not fulfil the schema of its name, or that of a pattern. */
static enum status
has_bad(const struct mql_rule *rule, struct mql *q, struct str document, bool patterns, bool *ret)
{
	struct mql_rule alone = *rule;
	struct mql_schema one = { .rules = &alone };
	const struct bson_value v = BSON_OF_DOCUMENT(document);

	alone.next = NULL;
	alone.properties.others = (struct mql_schema_rest){ 0 };
	if (patterns)
		alone.properties.named_count = 0;
	else
		alone.properties.patterns = NULL;
	TRY(schema_holds(&one, q, &v, ret));
	*ret = !*ret;
	return STATUS_OK;
}

/* One entry for properties, and one for patterns, if there is anything to say. */
static enum status
explain_known(const struct mql_rule *rule, struct mql *q, struct str document, bool patterns,
	      struct bson_builder *b)
{
	struct bson_element e;
	struct bson_iter i;
	bool bad;

	TRY(has_bad(rule, q, document, patterns, &bad));
	if (!bad)
		return STATUS_OK;
	bson_begin_document(b, STR(""));
	schema_explain_put(b, "operatorName", patterns ? "patternProperties" : "properties");
	bson_begin_array(b, patterns ? STR("details") : STR("propertiesNotSatisfied"));
	for (bson_iter_begin(&i, document); bson_iter_read(&i, &e);)
		TRY(explain_property(rule, q, &e, patterns, b));
	bson_end(b);
	bson_end(b);
	return STATUS_OK;
}

static enum status
is_other(const struct mql_rule *rule, struct mql *q, struct str name, bool *ret)
{
	TRY(matches_pattern(rule, q, name, ret));
	*ret = !*ret && !named_of(rule, name);
	return STATUS_OK;
}

static enum status
explain_forbidden(const struct mql_rule *rule, struct mql *q, struct str document,
		  struct bson_builder *b)
{
	struct bson_element e;
	struct bson_iter i;
	bool other;

	bson_begin_document(b, STR(""));
	schema_explain_put(b, "operatorName", "additionalProperties");
	bson_begin_document(b, STR("specifiedAs"));
	bson_put_bool(b, STR("additionalProperties"), false);
	bson_end(b);
	bson_begin_array(b, STR("additionalProperties"));
	for (bson_iter_begin(&i, document); bson_iter_read(&i, &e);) {
		TRY(is_other(rule, q, e.name, &other));
		if (other)
			bson_put_string(b, STR(""), e.name);
	}
	bson_end(b);
	bson_end(b);
	return STATUS_OK;
}

/* The first property that no other schema speaks of, and that is not as it should be. */
static enum status
explain_others(const struct mql_rule *rule, struct mql *q, struct str document,
	       struct bson_builder *b)
{
	const struct mql_schema_rest *rest = &rule->properties.others;
	struct bson_element e;
	struct bson_iter i;

	for (bson_iter_begin(&i, document); bson_iter_read(&i, &e);) {
		bool other, good = false;

		TRY(is_other(rule, q, e.name, &other));
		if (!other)
			continue;
		if (rest->forbidden)
			return explain_forbidden(rule, q, document, b);
		if (!rest->schema)
			return STATUS_OK;
		TRY(schema_holds(rest->schema, q, &e.value, &good));
		if (good)
			continue;
		bson_begin_document(b, STR(""));
		schema_explain_put(b, "operatorName", "additionalProperties");
		schema_explain_put(b, "reason",
				   "at least one additional property did not match the subschema");
		bson_put_string(b, STR("failingProperty"), e.name);
		TRY(put_details(rest->schema, q, &e.value, b));
		bson_end(b);
		return STATUS_OK;
	}
	return STATUS_OK;
}

static enum status
explain_properties(const struct mql_rule *rule, struct mql *q, const struct bson_value *v,
		   struct bson_builder *b)
{
	TRY(explain_known(rule, q, bson_text(v), false, b));
	TRY(explain_known(rule, q, bson_text(v), true, b));
	return explain_others(rule, q, bson_text(v), b);
}

static enum status
explain_dependencies(const struct mql_rule *rule, struct mql *q, const struct bson_value *v,
		     struct bson_builder *b)
{
	bool good;

	schema_explain_put(b, "operatorName", "dependencies");
	bson_begin_array(b, STR("failingDependencies"));
	for (const struct mql_schema_item *d = rule->list; d; d = d->next) {
		struct mql_rule alone = *rule;
		struct mql_schema_item item = *d;
		struct mql_schema one = { .rules = &alone };

		alone.next = NULL;
		alone.list = &item;
		item.next = NULL;
		TRY(schema_holds(&one, q, v, &good));
		if (good)
			continue;
		bson_begin_document(b, STR(""));
		bson_put_string(b, STR("conditionalProperty"), d->name);
		if (d->schema)
			TRY(put_details(d->schema, q, v, b));
		else
			put_missing(bson_text(&d->value), bson_text(v), b);
		bson_end(b);
	}
	bson_end(b);
	return STATUS_OK;
}

/* ---- Lists of schemas ---- */

static enum status
explain_failing(const struct mql_rule *rule, struct mql *q, const struct bson_value *v,
		struct bson_builder *b)
{
	int32_t at = 0;
	bool good;

	bson_begin_array(b, STR("schemasNotSatisfied"));
	for (const struct mql_schema_item *item = rule->list; item; item = item->next, at++) {
		TRY(schema_holds(item->schema, q, v, &good));
		if (good)
			continue;
		bson_begin_document(b, STR(""));
		bson_put_int32(b, STR("index"), at);
		put_titles(item->schema, b);
		TRY(put_details(item->schema, q, v, b));
		bson_end(b);
	}
	bson_end(b);
	return STATUS_OK;
}

static enum status
explain_list(const struct mql_rule *rule, struct mql *q, const struct bson_value *v,
	     struct bson_builder *b)
{
	size_t good_count = 0;
	int32_t at = 0;
	bool good;

	bson_put_string(b, STR("operatorName"), rule->keyword.name);
	if (rule->op == MQL_RULE_NOT) {
		schema_explain_put(b, "reason", "child expression matched");
		return STATUS_OK;
	}
	for (const struct mql_schema_item *item = rule->list; item; item = item->next) {
		TRY(schema_holds(item->schema, q, v, &good));
		good_count += good;
	}
	if (rule->op != MQL_RULE_ONE_OF || !good_count)
		return explain_failing(rule, q, v, b);
	schema_explain_put(b, "reason", "more than one subschema matched");
	bson_begin_array(b, STR("matchingSchemaIndexes"));
	for (const struct mql_schema_item *item = rule->list; item; item = item->next, at++) {
		TRY(schema_holds(item->schema, q, v, &good));
		if (good)
			bson_put_int32(b, STR(""), at);
	}
	bson_end(b);
	return STATUS_OK;
}

/* ---- The whole ---- */

static enum status
explain_rule(const struct mql_rule *rule, struct mql *q, const struct bson_value *v,
	     struct bson_builder *b)
{
	enum status status = STATUS_OK;

	/* These are one rule, and up to three entries. */
	if (rule->op == MQL_RULE_PROPERTIES)
		return explain_properties(rule, q, v, b);
	bson_begin_document(b, STR(""));
	if (rule->op == MQL_RULE_REQUIRED)
		explain_required(rule, v, b);
	else if (rule->op == MQL_RULE_ITEMS)
		status = explain_items(rule, q, v, b);
	else if (rule->op == MQL_RULE_DEPENDENCIES)
		status = explain_dependencies(rule, q, v, b);
	else if (rule->op >= MQL_RULE_ALL_OF)
		status = explain_list(rule, q, v, b);
	else
		explain_value(rule, v, b);
	bson_end(b);
	return status;
}

static enum status
explain_rules(const struct mql_schema *s, struct mql *q, const struct bson_value *v,
	      struct bson_builder *b)
{
	bool good;

	for (const struct mql_rule *rule = s->rules; rule; rule = rule->next) {
		struct mql_rule alone = *rule;
		struct mql_schema one = { .rules = &alone };

		alone.next = NULL;
		TRY(schema_holds(&one, q, v, &good));
		if (!good)
			TRY(explain_rule(rule, q, v, b));
		TRY(buf_status(b->out));
	}
	return STATUS_OK;
}

enum status
mql_schema_explain(const struct mql_schema *s, struct mql *q, const struct bson_value *v,
		   struct bson_builder *b)
{
	schema_explain_put(b, "operatorName", "$jsonSchema");
	put_titles(s, b);
	bson_begin_array(b, STR("schemaRulesNotSatisfied"));
	TRY(explain_rules(s, q, v, b));
	bson_end(b);
	return STATUS_OK;
}
