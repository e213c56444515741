/*
 * Why a document does not match a filter, in the words of MongoDB's `errInfo`. The filter is read
 * as it was written: each condition is compiled by itself, and run, to see which ones do not hold.
 * Inside of $nor and $not the question is which ones do. Functions call themselves as deep as
 * filters go, MQL_DEPTH at most, which compiling them has checked.
 */
#include "mql/match/match_int.h"
#include "mql/mql_int.h"

enum {
	EXPLAIN_VALUES = 10, /* that are told of one path */
};

struct why {
	struct mql *q;
	struct str document;
	struct bson_builder *b;
	bool inverted; /* why it does match */
};

static enum status explain_filter(struct why *w, struct str filter);

static void
match_explain_put(struct bson_builder *b, const char *name, const char *text)
{
	bson_put_string(b, str_from_cstr(name), str_from_cstr(text));
}

/* True if the filter is to be told about: it does not hold, or does where that is the question. */
static enum status
is_guilty(struct why *w, struct str filter, bool *ret)
{
	struct mql_match *match;

	TRY(mql_match_compile(w->q, filter, &match));
	TRY(mql_match_run(match, w->q, w->document, ret, NULL));
	*ret = *ret == w->inverted;
	return STATUS_OK;
}

/* A filter of one condition, in the arena: {path: value}, or {path: {operator: value}}. */
static enum status
filter_of(struct why *w, struct str path, struct str operator, const struct bson_value * v,
	  struct str *ret)
{
	struct buf AUTO(buf_release) made = mql_buf(w->q, 2 * BSON_MOST_BYTES);
	struct bson_builder b;

	bson_builder_init(&b, &made);
	bson_begin(&b);
	if (operator.len) {
		bson_begin_document(&b, path);
		bson_put(&b, operator, v);
		bson_end(&b);
	} else {
		bson_put(&b, path, v);
	}
	bson_end(&b);
	TRY(buf_status(&made));
	*ret = buf_dup(&made, w->q->arena);
	return ret->ptr ? STATUS_OK : mql_full(w->q);
}

/* ---- Conditions on paths ---- */

/* Reasons, where a condition does not hold and where it does. */
static const struct {
	const char *name;
	const char *reasons[2];
} operators[] = {
	{ "$in", { "no matching value found in array", "matching value found in array" } },
	{ "$nin", { "matching value found in array", "no matching value found in array" } },
	{ "$type", { "type did not match", "type did match" } },
	{ "$exists", { "path does not exist", "path does exist" } },
	{ "$regex", { "regular expression did not match", "regular expression did match" } },
	{ "$mod",
	  { "$mod did not evaluate to expected remainder", "$mod did evaluate to expected "
							   "remainder" } },
	{ "$size",
	  { "array length was not equal to given size", "array length was equal to given size" } },
	{ "$elemMatch",
	  { "array did not satisfy the child predicate",
	    "array did satisfy the child predicate" } },
	{ "$all",
	  { "array did not contain all specified values",
	    "array did contain all specified values" } },
	{ "$bitsAllSet", { "bitwise operator failed to match", "bitwise operator matched" } },
	{ "$bitsAllClear", { "bitwise operator failed to match", "bitwise operator matched" } },
	{ "$bitsAnySet", { "bitwise operator failed to match", "bitwise operator matched" } },
	{ "$bitsAnyClear", { "bitwise operator failed to match", "bitwise operator matched" } },
};

static const char *
reason_of(struct str operator, bool inverted)
{
	for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++)
		if (str_eq(operator, str_from_cstr(operators[i].name)))
			return operators[i].reasons[inverted];
	return inverted ? "comparison succeeded" : "comparison failed";
}

struct values {
	struct bson_value list[EXPLAIN_VALUES];
	size_t count;
	bool is_cut;
};

static void
values_add(struct values *all, const struct bson_value *v)
{
	if (all->count < EXPLAIN_VALUES)
		all->list[all->count++] = *v;
	else
		all->is_cut = true;
}

/* What is at a path, through arrays; as deep as the path has names. */
static void
values_find(struct values *all, const struct bson_value *v, struct str path)
{
	struct str rest = path, name;
	struct bson_value member;
	struct bson_element e;
	struct bson_iter i;

	if (!path.len) {
		for (bson_iter_begin(&i, v->type == BSON_ARRAY ? bson_text(v) : BSON_EMPTY);
		     !all->is_cut && bson_iter_read(&i, &e);)
			values_add(all, &e.value);
		values_add(all, v);
		return;
	}
	if (v->type == BSON_ARRAY) {
		for (bson_iter_begin(&i, bson_text(v)); !all->is_cut && bson_iter_read(&i, &e);)
			if (e.value.type == BSON_DOCUMENT)
				values_find(all, &e.value, path);
		return;
	}
	name = str_cut(&rest, '.');
	if (v->type == BSON_DOCUMENT && bson_find(bson_text(v), name, &member))
		values_find(all, &member, rest);
}

static void
put_values(struct why *w, struct str path, struct str operator)
{
	const struct bson_value root = BSON_OF_DOCUMENT(w->document);
	struct values all = { .count = 0 };

	values_find(&all, &root, path);
	if (!all.count) {
		match_explain_put(w->b, "reason", "field was missing");
		return;
	}
	match_explain_put(w->b, "reason", reason_of(operator, w->inverted));
	if (str_eq(operator, STR("$exists")))
		return;
	if (all.count == 1) {
		bson_put(w->b, STR("consideredValue"), &all.list[0]);
		if (str_eq(operator, STR("$type")))
			match_explain_put(w->b, "consideredType", bson_type_name(all.list[0].type));
		return;
	}
	bson_begin_array(w->b, STR("consideredValues"));
	for (size_t i = 0; i < all.count; i++)
		bson_put(w->b, STR(""), &all.list[i]);
	bson_end(w->b);
	if (all.is_cut)
		bson_put_bool(w->b, STR("consideredValuesTruncated"), true);
}

/* `filter`: {path: …}, as it was written. An empty operator is an equality, or an expression. */
static enum status
explain_leaf(struct why *w, struct str filter, struct str path, struct str operator,
	     const struct bson_value * v)
{
	bool missing_exists = str_eq(operator, STR("$exists")) && !w->inverted;

	if (!operator.len)
		operator= v->type == BSON_REGEX ? STR("$regex") : STR("$eq");
	bson_put_string(w->b, STR("operatorName"), operator);
	bson_put_document(w->b, STR("specifiedAs"), filter);
	if (missing_exists)
		match_explain_put(w->b, "reason",
				  bson_is_true(v) ? "path does not exist" : "path does exist");
	else
		put_values(w, path, operator);
	return buf_status(w->b->out);
}

/* {path: {$not: …}}: why what is inside holds. */
static enum status
explain_not(struct why *w, struct str path, const struct bson_value *v)
{
	struct why inside = *w;
	struct str filter;

	inside.inverted = !w->inverted;
	match_explain_put(w->b, "operatorName", "$not");
	bson_begin_document(w->b, STR("details"));
	TRY(filter_of(w, path, STR(""), v, &filter));
	TRY(explain_filter(&inside, filter));
	bson_end(w->b);
	return STATUS_OK;
}

/* ---- Conditions of a filter, one by one ---- */

/* A condition of a filter: a member of it, or one operator of a path's. */
struct clause {
	struct str filter;   /* of it alone */
	struct str name;     /* $and, …, or a path */
	struct str operator; /* of a path; empty: none */
	struct bson_value value;
};

static bool
has_operators(const struct bson_value *v)
{
	struct bson_element e;
	struct bson_iter i;

	if (v->type != BSON_DOCUMENT)
		return false;
	bson_iter_begin(&i, bson_text(v));
	return bson_iter_read(&i, &e) && e.name.len && e.name.ptr[0] == '$' &&
	       !str_eq(e.name, STR("$ref")) && !str_eq(e.name, STR("$id")) &&
	       !str_eq(e.name, STR("$db"));
}

typedef enum status take_clause(struct why *w, const struct clause *c, void *arg);

/* The operators of a path; $options goes with its $regex. */
static enum status
each_operator(struct why *w, const struct bson_element *of, take_clause *take, void *arg)
{
	struct bson_element e, options = { 0 };
	struct bson_iter i;
	bool has = bson_find(bson_text(&of->value), STR("$options"), &options.value);

	options.name = STR("$options");
	for (bson_iter_begin(&i, bson_text(&of->value)); bson_iter_read(&i, &e);) {
		bool regex = str_eq(e.name, STR("$regex"));
		struct clause c = { .name = of->name, .operator= e.name, .value = e.value };

		if (str_eq(e.name, STR("$options")))
			continue;
		if (regex && has) {
			struct buf AUTO(buf_release) made = mql_buf(w->q, 2 * BSON_MOST_BYTES);
			struct bson_builder b;

			bson_builder_init(&b, &made);
			bson_begin(&b);
			bson_begin_document(&b, of->name);
			bson_put(&b, STR("$regex"), &e.value);
			bson_put(&b, STR("$options"), &options.value);
			bson_end(&b);
			bson_end(&b);
			TRY(buf_status(&made));
			c.filter = buf_dup(&made, w->q->arena);
			if (!c.filter.ptr)
				return mql_full(w->q);
		} else {
			TRY(filter_of(w, of->name, e.name, &e.value, &c.filter));
		}
		TRY(take(w, &c, arg));
	}
	return STATUS_OK;
}

static enum status
each_clause(struct why *w, struct str filter, take_clause *take, void *arg)
{
	struct bson_element e;
	struct bson_iter i;

	for (bson_iter_begin(&i, filter); bson_iter_read(&i, &e);) {
		struct clause c = { .name = e.name, .value = e.value };

		if (str_eq(e.name, STR("$comment")))
			continue;
		if (e.name.len && e.name.ptr[0] != '$' && has_operators(&e.value)) {
			TRY(each_operator(w, &e, take, arg));
			continue;
		}
		TRY(filter_of(w, e.name, STR(""), &e.value, &c.filter));
		TRY(take(w, &c, arg));
	}
	return STATUS_OK;
}

/* {$or: […]} and its kin. */
static enum status
explain_tree(struct why *w, const struct clause *c)
{
	struct why inside = *w;
	struct bson_element e;
	struct bson_iter i;
	int32_t at = 0;
	bool guilty;

	inside.inverted = w->inverted != str_eq(c->name, STR("$nor"));
	bson_put_string(w->b, STR("operatorName"), c->name);
	bson_begin_array(w->b,
			 inside.inverted ? STR("clausesSatisfied") : STR("clausesNotSatisfied"));
	for (bson_iter_begin(&i, bson_text(&c->value)); bson_iter_read(&i, &e); at++) {
		TRY(is_guilty(&inside, bson_text(&e.value), &guilty));
		if (!guilty)
			continue;
		bson_begin_document(w->b, STR(""));
		bson_put_int32(w->b, STR("index"), at);
		bson_begin_document(w->b, STR("details"));
		TRY(explain_filter(&inside, bson_text(&e.value)));
		bson_end(w->b);
		bson_end(w->b);
	}
	bson_end(w->b);
	return STATUS_OK;
}

static enum status
explain_schema(struct why *w, const struct clause *c)
{
	const struct bson_value v = BSON_OF_DOCUMENT(w->document);
	struct mql_schema *schema;

	if (w->inverted) {
		match_explain_put(w->b, "operatorName", "$jsonSchema");
		match_explain_put(w->b, "reason", "schema matched");
		return STATUS_OK;
	}
	TRY(mql_schema_compile(w->q, &c->value, 0, &schema));
	return mql_schema_explain(schema, w->q, &v, w->b);
}

static enum status
explain_clause(struct why *w, const struct clause *c)
{
	if (str_eq(c->name, STR("$and")) || str_eq(c->name, STR("$or")) ||
	    str_eq(c->name, STR("$nor")))
		return explain_tree(w, c);
	if (str_eq(c->name, STR("$jsonSchema")))
		return explain_schema(w, c);
	if (c->name.len && c->name.ptr[0] == '$') {
		bson_put_string(w->b, STR("operatorName"), c->name);
		bson_put_document(w->b, STR("specifiedAs"), c->filter);
		match_explain_put(w->b, "reason",
				  w->inverted ? "expression did match"
					      : "expression did not match");
		if (str_eq(c->name, STR("$expr")))
			bson_put_bool(w->b, STR("expressionResult"), w->inverted);
		return buf_status(w->b->out);
	}
	if (str_eq(c->operator, STR("$not")))
		return explain_not(w, c->name, &c->value);
	return explain_leaf(w, c->filter, c->name, c->operator, & c->value);
}

/* ---- The whole ---- */

static enum status
count_clause(struct why *w, const struct clause *c, void *arg)
{
	size_t *count = arg;

	(void)w;
	(void)c;
	(*count)++;
	return STATUS_OK;
}

static enum status
take_only(struct why *w, const struct clause *c, void *arg)
{
	(void)arg;
	return explain_clause(w, c);
}

static enum status
take_of_many(struct why *w, const struct clause *c, void *arg)
{
	int32_t *at = arg, index = (*at)++;
	bool guilty;

	TRY(is_guilty(w, c->filter, &guilty));
	if (!guilty)
		return STATUS_OK;
	bson_begin_document(w->b, STR(""));
	bson_put_int32(w->b, STR("index"), index);
	bson_begin_document(w->b, STR("details"));
	TRY(explain_clause(w, c));
	bson_end(w->b);
	bson_end(w->b);
	return STATUS_OK;
}

/* A filter of several conditions is an $and of them. */
static enum status
explain_filter(struct why *w, struct str filter)
{
	size_t count = 0;
	int32_t at = 0;

	TRY(each_clause(w, filter, count_clause, &count));
	if (count == 1)
		return each_clause(w, filter, take_only, NULL);
	match_explain_put(w->b, "operatorName", "$and");
	bson_begin_array(w->b, w->inverted ? STR("clausesSatisfied") : STR("clausesNotSatisfied"));
	TRY(each_clause(w, filter, take_of_many, &at));
	bson_end(w->b);
	return STATUS_OK;
}

enum status
mql_match_explain(struct mql *q, struct str filter, struct str document, struct bson_builder *b)
{
	struct why w = { .q = q, .document = document, .b = b };

	return explain_filter(&w, filter);
}
