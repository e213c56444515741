/* Paths as texts to paths as steps. */
#include <stdlib.h>

#include "loop/step.h"
#include "mql/regex.h"
#include "jtree/jsonpath_int.h"

enum {
	DECIMAL_BYTES = 64, /* of a number in a filter */
};

struct parser {
	struct str text;
	size_t at;
	struct arena *arena;
	struct err *err;
	unsigned nested;   /* filters around what is read */
	unsigned brackets; /* brackets in this filter, likewise */
	bool asks_root;
};

static enum status filter_parse(struct parser *p, const struct jsonpath_filter **ret);

static enum status
parse_fail(const struct parser *p, const char *what)
{
	return err_set(p->err, STATUS_INVALID, "%s at byte %zu of the path", what, p->at + 1);
}

static enum status
parse_limit(const struct parser *p, int most, const char *what)
{
	return err_set(p->err, STATUS_LIMIT, "the path has more than %d %s", most, what);
}

/* ---- Characters ---- */

/* The next byte; 0 at the end. A NUL in the text is a byte that nothing can begin with. */
static char
peek(const struct parser *p)
{
	return p->at < p->text.len ? p->text.ptr[p->at] : 0;
}

static void
skip_spaces(struct parser *p)
{
	while (peek(p) == ' ')
		p->at++;
}

/* Passes over the text, and over spaces in front of it, if it comes next. */
static bool
take(struct parser *p, const char *text)
{
	struct str s = str_from_cstr(text);

	skip_spaces(p);
	if (!str_starts_with(str_skip(p->text, p->at), s))
		return false;
	p->at += s.len;
	return true;
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* What a name may consist of that stands in no quotes. */
static bool
is_plain(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c && strchr("-_`~+#%$^/:", c));
}

/* ---- Parts ---- */

static enum status
plain_parse(struct parser *p, struct str *ret)
{
	size_t from;

	skip_spaces(p);
	from = p->at;
	while (is_plain(peek(p)))
		p->at++;
	*ret = str_of(p->text.ptr + from, p->at - from);
	return ret->len ? STATUS_OK : parse_fail(p, "a name is missing");
}

/* Where the text in quotes ends that begins here, behind its last quote; 0: nowhere. */
static size_t
quoted_end(const struct parser *p)
{
	char quote = peek(p);

	for (size_t i = p->at + 1; i < p->text.len; i++) {
		if (p->text.ptr[i] == quote)
			return i + 1;
		if (p->text.ptr[i] == '\\')
			i++;
	}
	return 0;
}

/* A text in quotes. A backslash stands in front of a quote of that kind, or of a backslash. */
static enum status
quoted_parse(struct parser *p, struct str *ret)
{
	char quote = peek(p), *copy;
	size_t end = quoted_end(p), len = 0;

	if (!end)
		return parse_fail(p, "a quote does not end");
	copy = arena_bytes(p->arena, end - p->at);
	if (!copy)
		return STATUS_LIMIT;
	for (p->at++; p->at < end - 1; p->at++) {
		char c = p->text.ptr[p->at], next = p->text.ptr[p->at + 1];

		if (c == '\\' && (next == quote || next == '\\'))
			c = p->text.ptr[++p->at];
		copy[len++] = c;
	}
	p->at = end;
	*ret = str_of(copy, len);
	return STATUS_OK;
}

static bool
at_quote(struct parser *p)
{
	skip_spaces(p);
	return peek(p) == '\'' || peek(p) == '"';
}

static bool
at_integer(struct parser *p)
{
	skip_spaces(p);
	return is_digit(peek(p)) || peek(p) == '-';
}

static enum status
integer_parse(struct parser *p, int64_t *ret)
{
	size_t from;

	skip_spaces(p);
	from = p->at;
	if (peek(p) == '-')
		p->at++;
	while (is_digit(peek(p)))
		p->at++;
	if (!str_to_i64(str_of(p->text.ptr + from, p->at - from), ret))
		return parse_fail(p, "a number is missing or too large");
	return STATUS_OK;
}

/* ---- Brackets ---- */

static enum status
names_parse(struct parser *p, struct jsonpath_step *ret)
{
	size_t cap = 0;

	ret->kind = JSONPATH_NAMES;
	do {
		TRY(step_count(1));
		if (!at_quote(p))
			return parse_fail(p, "a name in quotes is missing");
		TRY(arena_room(p->arena, &ret->names, ret->count, &cap, sizeof(*ret->names)));
		TRY(quoted_parse(p, &ret->names[ret->count++]));
	} while (take(p, ","));
	return STATUS_OK;
}

/* What follows the first colon of a slice. */
static enum status
slice_parse(struct parser *p, int64_t from, struct jsonpath_step *ret)
{
	int64_t step = 1;

	*ret = (struct jsonpath_step){ .kind = JSONPATH_SLICE, .from = from };
	if (at_integer(p)) {
		ret->has_to = true;
		TRY(integer_parse(p, &ret->to));
	}
	if (take(p, ":") && at_integer(p))
		TRY(integer_parse(p, &step));
	if (step < 1)
		return parse_fail(p, "the step of a slice is no positive number");
	ret->step = (uint64_t)step;
	return STATUS_OK;
}

static enum status
indexes_parse(struct parser *p, struct jsonpath_step *ret)
{
	size_t cap = 0;
	int64_t n;

	do {
		TRY(step_count(1));
		TRY(integer_parse(p, &n));
		if (!ret->count && take(p, ":"))
			return slice_parse(p, n, ret);
		ret->kind = JSONPATH_INDEXES;
		TRY(arena_room(p->arena, &ret->indexes, ret->count, &cap, sizeof(*ret->indexes)));
		ret->indexes[ret->count++] = n;
	} while (take(p, ","));
	return STATUS_OK;
}

/* What stands in a bracket that was opened. */
static enum status
bracket_parse(struct parser *p, struct jsonpath_step *ret)
{
	unsigned brackets = p->brackets;

	if (take(p, "?")) {
		if (p->nested++ == JSONPATH_NESTED)
			return parse_limit(p, JSONPATH_NESTED,
					   "filters inside each other (JSONPATH_NESTED)");
		ret->kind = JSONPATH_FILTER;
		p->brackets = 0;
		TRY(filter_parse(p, &ret->filter));
		p->brackets = brackets;
		p->nested--;
	} else if (take(p, "*")) {
		ret->kind = JSONPATH_ALL;
	} else if (at_quote(p)) {
		TRY(names_parse(p, ret));
	} else if (take(p, ":")) {
		TRY(slice_parse(p, 0, ret));
	} else {
		TRY(indexes_parse(p, ret));
	}
	return take(p, "]") ? STATUS_OK : parse_fail(p, "a bracket does not end");
}

/* ---- Steps ---- */

static enum status
name_step(struct parser *p, struct jsonpath_step *ret)
{
	ret->kind = JSONPATH_NAMES;
	ret->names = arena_alloc(p->arena, sizeof(*ret->names));
	if (!ret->names)
		return STATUS_LIMIT;
	ret->count = 1;
	return plain_parse(p, ret->names);
}

/* The step that begins here; `*ret_there` is false: none does. */
static enum status
step_parse(struct parser *p, bool first, struct jsonpath_step *ret, bool *ret_there)
{
	bool dot;

	*ret = (struct jsonpath_step){ .descends = take(p, "..") };
	dot = !ret->descends && take(p, ".");
	*ret_there = true;
	if (take(p, "["))
		return bracket_parse(p, ret);
	skip_spaces(p);
	if (dot || ret->descends || (first && (is_plain(peek(p)) || peek(p) == '*'))) {
		if (!take(p, "*"))
			return name_step(p, ret);
		ret->kind = JSONPATH_ALL;
		return STATUS_OK;
	}
	*ret_there = false;
	return STATUS_OK;
}

/* The steps behind $ or @. */
static enum status
steps_parse(struct parser *p, struct jsonpath *ret)
{
	struct jsonpath_step step;
	size_t cap = 0;
	bool there;

	*ret = (struct jsonpath){ .count = 0 };
	for (;;) {
		TRY(step_count(1));
		TRY(step_parse(p, !ret->count, &step, &there));
		if (!there)
			return STATUS_OK;
		if (ret->count == JSONPATH_STEPS)
			return parse_limit(p, JSONPATH_STEPS, "steps (JSONPATH_STEPS)");
		TRY(arena_room(p->arena, &ret->steps, ret->count, &cap, sizeof(*ret->steps)));
		ret->steps[ret->count++] = step;
	}
}

/* ---- Filters ---- */

static enum status
number_parse(struct parser *p, struct jtree_node *ret)
{
	char text[DECIMAL_BYTES];
	size_t from = p->at, len;
	bool fraction = false;

	if (peek(p) == '-')
		p->at++;
	while (is_digit(peek(p)) || (!fraction && peek(p) == '.')) {
		fraction = fraction || peek(p) == '.';
		p->at++;
	}
	len = p->at - from;
	if (len >= sizeof(text) || !is_digit(p->text.ptr[p->at - 1]))
		return parse_fail(p, "a number cannot be read");
	ret->kind = JTREE_INT;
	if (str_to_i64(str_of(p->text.ptr + from, len), &ret->i))
		return STATUS_OK;
	memcpy(text, p->text.ptr + from, len);
	text[len] = 0;
	ret->kind = JTREE_DOUBLE;
	ret->d = strtod(text, NULL);
	return STATUS_OK;
}

/* A word that stands alone. */
static bool
take_word(struct parser *p, const char *word)
{
	size_t at = p->at;

	if (take(p, word) && !is_plain(peek(p)))
		return true;
	p->at = at;
	return false;
}

static enum status
literal_parse(struct parser *p, struct jtree_node *ret)
{
	if (at_quote(p)) {
		ret->kind = JTREE_TEXT;
		return quoted_parse(p, &ret->text);
	}
	if (at_integer(p))
		return number_parse(p, ret);
	if (take_word(p, "null")) {
		ret->kind = JTREE_NULL;
		return STATUS_OK;
	}
	ret->kind = JTREE_BOOL;
	ret->truth = take_word(p, "true");
	return ret->truth || take_word(p, "false") ? STATUS_OK
						   : parse_fail(p, "a filter cannot be read");
}

static enum status
term_parse(struct parser *p, struct jsonpath_term *ret)
{
	struct jsonpath *path;

	*ret = (struct jsonpath_term){ .from_root = take(p, "$") };
	p->asks_root = p->asks_root || ret->from_root;
	if (!ret->from_root && !take(p, "@")) {
		TRY(jtree_new(p->arena, JTREE_NULL, &ret->literal));
		return literal_parse(p, ret->literal);
	}
	path = arena_zalloc(p->arena, sizeof(*path));
	if (!path)
		return STATUS_LIMIT;
	ret->path = path;
	return steps_parse(p, path);
}

/* An expression that cannot be read matches nothing. */
static enum status
regex_parse(struct parser *p, struct jsonpath_term *term)
{
	struct mql q = { .arena = p->arena };
	enum status status;

	if (!term->literal || term->literal->kind != JTREE_TEXT)
		return STATUS_OK;
	status = mql_regex_compile(&q, term->literal->text, STR(""), &term->regex);
	if (status != STATUS_INVALID)
		return status;
	term->regex = NULL;
	return STATUS_OK;
}

static enum status
comparison_parse(struct parser *p, struct jsonpath_filter *ret)
{
	static const struct {
		const char *text;
		enum jsonpath_operator op;
	} operators[] = {
		{ "==", JSONPATH_EQ },           { "!=", JSONPATH_NE }, { "<=", JSONPATH_LE },
		{ ">=", JSONPATH_GE },           { "<", JSONPATH_LT },  { ">", JSONPATH_GT },
		{ "=~", JSONPATH_MATCHES_REGEX }
	};

	TRY(term_parse(p, &ret->left));
	for (size_t i = 0; i < sizeof(operators) / sizeof(*operators); i++) {
		if (!take(p, operators[i].text))
			continue;
		ret->op = operators[i].op;
		TRY(term_parse(p, &ret->right));
		return ret->op == JSONPATH_MATCHES_REGEX ? regex_parse(p, &ret->right) : STATUS_OK;
	}
	ret->op = JSONPATH_THERE;
	return STATUS_OK;
}

static enum status
part_parse(struct parser *p, const struct jsonpath_filter **ret)
{
	struct jsonpath_filter *filter;

	TRY(step_count(1));
	if (take(p, "(")) {
		if (p->brackets++ == JSONPATH_BRACKETS)
			return parse_limit(p, JSONPATH_BRACKETS,
					   "brackets inside each other (JSONPATH_BRACKETS)");
		TRY(filter_parse(p, ret));
		p->brackets--;
		return take(p, ")") ? STATUS_OK : parse_fail(p, "a bracket does not end");
	}
	filter = arena_zalloc(p->arena, sizeof(*filter));
	if (!filter)
		return STATUS_LIMIT;
	*ret = filter;
	return comparison_parse(p, filter);
}

static enum status
filter_new(struct parser *p, int kind, struct jsonpath_filter **ret)
{
	*ret = arena_zalloc(p->arena, sizeof(**ret));
	if (!*ret)
		return STATUS_LIMIT;
	(*ret)->kind = kind;
	return STATUS_OK;
}

static enum status
filter_add(struct parser *p, struct jsonpath_filter *to, const struct jsonpath_filter *part)
{
	TRY(arena_room(p->arena, &to->parts, to->count, &to->cap, sizeof(*to->parts)));
	to->parts[to->count++] = part;
	return STATUS_OK;
}

/* An OR of ANDs. */
static enum status
filter_parse(struct parser *p, const struct jsonpath_filter **ret)
{
	const struct jsonpath_filter *part;
	struct jsonpath_filter *any, *all;

	TRY(filter_new(p, JSONPATH_OR, &any));
	do {
		TRY(filter_new(p, JSONPATH_AND, &all));
		TRY(filter_add(p, any, all));
		do {
			TRY(part_parse(p, &part));
			TRY(filter_add(p, all, part));
		} while (take(p, "&&"));
	} while (take(p, "||"));
	*ret = any;
	return STATUS_OK;
}

/* ---- Whole paths ---- */

enum status
jsonpath_compile(struct str text, struct arena *arena, const struct jsonpath **ret, struct err *err)
{
	struct parser p = { .text = text, .arena = arena, .err = err };
	struct jsonpath *path = arena_zalloc(arena, sizeof(*path));

	if (!path)
		return STATUS_LIMIT;
	if (text.len > JSONPATH_BYTES)
		return parse_limit(&p, JSONPATH_BYTES, "bytes (JSONPATH_BYTES)");
	if (!take(&p, "$"))
		return parse_fail(&p, "no $");
	TRY(steps_parse(&p, path));
	path->asks_root = p.asks_root;
	skip_spaces(&p);
	if (p.at < text.len)
		return parse_fail(&p, "something that is no step");
	*ret = path;
	return STATUS_OK;
}

static bool
step_is_single(const struct jsonpath_step *step)
{
	return !step->descends && step->count == 1 &&
	       (step->kind == JSONPATH_NAMES || step->kind == JSONPATH_INDEXES);
}

bool
jsonpath_is_single(const struct jsonpath *path)
{
	for (size_t i = 0; i < path->count; i++)
		if (!step_is_single(&path->steps[i]))
			return false;
	return true;
}

bool
jsonpath_is_root(const struct jsonpath *path)
{
	return !path->count;
}

enum status
jsonpath_parent(const struct jsonpath *path, struct arena *arena, const struct jsonpath **ret,
		struct str *ret_name, bool *ret_fits)
{
	const struct jsonpath_step *last = path->count ? &path->steps[path->count - 1] : NULL;
	struct jsonpath *parent;

	*ret_fits = last && step_is_single(last);
	if (!*ret_fits)
		return STATUS_OK;
	*ret_name = last->kind == JSONPATH_NAMES ? last->names[0] : (struct str){ NULL, 0 };
	parent = arena_alloc(arena, sizeof(*parent));
	if (!parent)
		return STATUS_LIMIT;
	*parent = *path;
	parent->count--;
	*ret = parent;
	return STATUS_OK;
}
