/* $regexMatch, $regexFind, $regexFindAll. */
#include "mql/expr/text.h"
#include "mql/regex.h"

enum regex_op {
	REGEX_MATCH,
	REGEX_FIND,
	REGEX_FIND_ALL,
};

enum {
	REGEX_FIND_MEMBERS = 3,
};

/* A pattern with its options, and the code once it was compiled. */
struct regex_spec {
	struct str pattern, options;
	struct mql_regex *regex; /* NULL: there is no pattern */
};

static enum status
read_pattern(struct mql *q, const char *name, const struct bson_value *v, struct str *ret,
	     struct str *ret_flags)
{
	*ret_flags = STR("");
	if (v->type == BSON_STRING) {
		*ret = bson_text(v);
		return STATUS_OK;
	}
	if (v->type != BSON_REGEX)
		return mql_fail(q, 51105, "%s needs 'regex' to be of type string or regex", name);
	*ret = bson_text(v);
	*ret_flags = bson_more(v);
	return STATUS_OK;
}

/* The options of BSON that PCRE2 has; others in a regular expression's value mean nothing. */
static enum status
keep_flags(struct mql *q, struct str flags, struct str *ret)
{
	char *kept = arena_bytes(q->arena, flags.len);
	size_t len = 0;

	if (!kept)
		return mql_full(q);
	for (size_t i = 0; i < flags.len; i++) {
		if (memchr("imsxu", flags.ptr[i], 5))
			kept[len++] = flags.ptr[i];
	}
	*ret = str_of(kept, len);
	return STATUS_OK;
}

static enum status
check_texts(struct mql *q, const char *name, const struct regex_spec *spec)
{
	for (size_t i = 0; i < spec->options.len; i++) {
		if (!spec->options.ptr[i])
			return mql_fail(q, 51110,
					"%s: regular expression options cannot contain an embedded "
					"null byte",
					name);
	}
	if (spec->pattern.len && memchr(spec->pattern.ptr, 0, spec->pattern.len))
		return mql_fail(q, 51109,
				"%s: regular expression cannot contain an embedded null byte",
				name);
	return STATUS_OK;
}

/* Makes the code of a pattern and options that were evaluated. */
static enum status
read_spec(struct mql *q, const char *name, const struct bson_value *regex,
	  const struct bson_value *options, struct regex_spec *ret)
{
	struct str flags = STR("");
	enum status status;

	*ret = (struct regex_spec){ .options = STR("") };
	if (!mql_is_nullish(regex))
		TRY(read_pattern(q, name, regex, &ret->pattern, &flags));
	TRY(keep_flags(q, flags, &flags));
	if (!mql_is_nullish(options)) {
		if (options->type != BSON_STRING)
			return mql_fail(q, 51106, "%s needs 'options' to be of type string", name);
		if (flags.len)
			return mql_fail(q, 51107,
					"%s found regex option(s) specified in both 'regex' and "
					"'option' fields",
					name);
		flags = bson_text(options);
	}
	ret->options = flags;
	if (mql_is_nullish(regex))
		return STATUS_OK;
	TRY(check_texts(q, name, ret));
	status = mql_regex_compile(q, ret->pattern, ret->options, &ret->regex);
	if (status == STATUS_INVALID && q->code == 51091)
		q->code = 51111;
	return status;
}

/* ---- Matches ---- */

static enum status
write_captures(struct mql *q, struct str text, const size_t *places, uint32_t groups,
	       struct bson_value *ret)
{
	struct bson_value *values = arena_alloc(q->arena, groups * sizeof(*values));

	if (!values)
		return mql_full(q);
	for (uint32_t i = 0; i < groups; i++) {
		size_t from = places[2 * (i + 1)], to = places[2 * (i + 1) + 1];

		values[i] = BSON_OF_NULL;
		if (from != SIZE_MAX)
			TRY(mql_expr_text(q, str_of(text.ptr + from, to - from), &values[i]));
	}
	return mql_expr_array(q, values, groups, ret);
}

static enum status
write_match(struct mql *q, const struct mql_regex *regex, struct str text, const size_t *places,
	    size_t chars, struct bson_value *ret)
{
	const struct str names[REGEX_FIND_MEMBERS] = { STR("match"), STR("idx"), STR("captures") };
	struct bson_value values[REGEX_FIND_MEMBERS];

	TRY(mql_expr_text(q, str_of(text.ptr + places[0], places[1] - places[0]), &values[0]));
	values[1] = BSON_OF_INT32((int64_t)chars);
	TRY(write_captures(q, text, places, mql_regex_groups(regex), &values[2]));
	return mql_expr_document(q, names, values, REGEX_FIND_MEMBERS, ret);
}

static enum status
find_all(struct mql *q, const struct mql_regex *regex, struct str text, struct bson_value *ret)
{
	size_t count = 0, cap = 0, at = 0, counted = 0, chars = 0;
	struct bson_value *found = NULL;
	const size_t *places;
	bool matches;

	while (at <= text.len) {
		TRY(mql_regex_match(regex, q, text, at, &matches, &places));
		if (!matches)
			break;
		found = arena_grow(q->arena, found, count, &cap, sizeof(*found));
		if (!found)
			return mql_full(q);
		chars += mql_count_chars(str_of(text.ptr + counted, places[0] - counted));
		counted = places[0];
		TRY(write_match(q, regex, text, places, chars, &found[count++]));
		at = places[1];
		/* Behind an empty match the next one begins one character further on. */
		if (places[1] == places[0])
			at += at < text.len ? mql_char_bytes(str_skip(text, at)) : 1;
	}
	return mql_expr_array(q, found, count, ret);
}

static enum status
run_on_text(struct mql *q, enum regex_op op, const struct mql_regex *regex, struct str text,
	    struct bson_value *ret)
{
	const size_t *places;
	bool matches;

	if (op == REGEX_FIND_ALL)
		return find_all(q, regex, text, ret);
	TRY(mql_regex_match(regex, q, text, 0, &matches, op == REGEX_FIND ? &places : NULL));
	if (op == REGEX_MATCH)
		*ret = BSON_OF_BOOL(matches);
	else if (matches)
		return write_match(q, regex, text, places,
				   mql_count_chars(str_of(text.ptr, places[0])), ret);
	return STATUS_OK;
}

static enum status
run_regex(const struct mql_expr *e, struct mql *q, const struct mql_env *env,
	  struct bson_value *ret)
{
	struct bson_value input, regex, options = MQL_NO_VALUE;
	const struct regex_spec *spec = e->more;
	struct regex_spec made;

	TRY(mql_expr_run(e->args[0], q, env, &input));
	if (!spec) {
		TRY(mql_expr_run(e->args[1], q, env, &regex));
		if (e->args[2])
			TRY(mql_expr_run(e->args[2], q, env, &options));
		TRY(read_spec(q, e->op->name, &regex, &options, &made));
		spec = &made;
	}
	if (!mql_is_nullish(&input) && input.type != BSON_STRING)
		return mql_fail(q, 51104, "%s needs 'input' to be of type string", e->op->name);
	*ret = e->op->number == REGEX_MATCH      ? BSON_OF_BOOL(false)
	       : e->op->number == REGEX_FIND_ALL ? BSON_OF_ARRAY(BSON_EMPTY)
						 : BSON_OF_NULL;
	if (mql_is_nullish(&input) || !spec->regex)
		return STATUS_OK;
	TRY(step_count_bytes(bson_text(&input).len));
	return run_on_text(q, (enum regex_op)e->op->number, spec->regex, bson_text(&input), ret);
}

/* A constant pattern is compiled once. If that fails, running the expression tells. */
static enum status
compile_constant(struct mql *q, struct mql_expr *e)
{
	struct bson_value regex, options = MQL_NO_VALUE;
	struct regex_spec *spec;
	struct err *err = q->err;
	enum status status;

	if (!mql_expr_constant(e->args[1], &regex) ||
	    (e->args[2] && !mql_expr_constant(e->args[2], &options)))
		return STATUS_OK;
	spec = arena_alloc(q->arena, sizeof(*spec));
	if (!spec)
		return mql_full(q);
	q->err = NULL;
	status = read_spec(q, e->op->name, &regex, &options, spec);
	q->err = err;
	if (status == STATUS_OK)
		e->more = spec;
	if (status != STATUS_INVALID)
		return status == STATUS_LIMIT ? mql_full(q) : status;
	q->code = 0;
	return STATUS_OK;
}

static enum status
compile_regex(struct mql *q, const struct mql_expr_op *op, const struct bson_value *arg,
	      const struct mql_scope *scope, struct mql_expr **ret)
{
	TRY(mql_expr_args(q, op, arg, scope, run_regex, ret));
	TRY(compile_constant(q, *ret));
	return mql_expr_fold(q, *ret);
}

static enum status
fault_regex(struct mql *q, const struct mql_expr_op *op, enum mql_expr_fault fault, struct str name,
	    const struct bson_value *arg)
{
	switch ((int)fault) {
	case MQL_FAULT_NOT_OBJECT:
		return mql_fail(q, 51103, "%s expects an object of named arguments but found: %s",
				op->name, mql_expr_type(arg));
	case MQL_FAULT_UNKNOWN:
		return mql_fail(q, 31024, "%s found an unknown argument: %.*s", op->name,
				STR_ARG(name));
	default:
		return mql_fail(q, mql_is(name, "input") ? 31022 : 31023,
				"%s requires '%.*s' parameter", op->name, STR_ARG(name));
	}
}

static const char *const regex_names[] = { "input", "regex", "options", NULL };

#define REGEX(text, which)                                                                         \
	{                                                                                          \
		.name = text, .names = regex_names, .required = 3, .fault = fault_regex,           \
		.compile = compile_regex, .number = which                                          \
	}

const struct mql_expr_op mql_expr_regex_ops[] = {
	REGEX("$regexMatch", REGEX_MATCH),
	REGEX("$regexFind", REGEX_FIND),
	REGEX("$regexFindAll", REGEX_FIND_ALL),
	{ 0 },
};
