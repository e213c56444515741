#include "settings/rules.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

/* ---- Reading a list ---- */

struct rules_reader {
	struct str rest;
	unsigned count;
	struct err *err;
};

static char
reader_peek(struct rules_reader *r)
{
	r->rest = str_trim(r->rest);
	return r->rest.len ? r->rest.ptr[0] : '\0';
}

/* Passes over `c` if it comes next. */
static bool
reader_take(struct rules_reader *r, char c)
{
	if (reader_peek(r) != c || !r->rest.len)
		return false;
	r->rest = str_skip(r->rest, 1);
	return true;
}

static enum status
reader_expect(struct rules_reader *r, char c, const char *where)
{
	if (reader_take(r, c))
		return STATUS_OK;
	return err_set(r->err, STATUS_INVALID, "a '%c' is missing %s", c, where);
}

static bool
is_letter_or_digit(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/*
 * Reads a string into `text`, of RULES_STRING_BYTES, with a NUL behind it. Erlang takes "\d" for a
 * control character and not for a digit's class, so such escapes are refused.
 */
static enum status
reader_string(struct rules_reader *r, char *text, size_t *ret_len)
{
	size_t n = 0;
	size_t at = 0;

	TRY(reader_expect(r, '"', "where a string begins"));
	for (; at < r->rest.len && r->rest.ptr[at] != '"'; at++) {
		char c = r->rest.ptr[at];

		if (c == '\\') {
			if (++at == r->rest.len)
				break;
			c = r->rest.ptr[at];
			if (is_letter_or_digit(c))
				return err_set(r->err, STATUS_INVALID,
					       "a backslash in a string is written twice");
		}
		if (n + 1 == RULES_STRING_BYTES)
			return err_set(r->err, STATUS_INVALID, "a string has more than %d bytes",
				       RULES_STRING_BYTES - 1);
		text[n++] = c;
	}
	text[n] = '\0';
	*ret_len = n;
	r->rest = str_skip(r->rest, at);
	return reader_expect(r, '"', "where a string ends");
}

/* Reads "RE", {"RE"} or {"RE", "reason"}. */
static enum status
reader_rule(struct rules_reader *r, struct rule *ret)
{
	size_t len;

	if (++r->count > RULES_COUNT)
		return err_set(r->err, STATUS_INVALID, "there are more than %d expressions",
			       RULES_COUNT);
	ret->reason[0] = '\0';
	if (reader_peek(r) == '"')
		return reader_string(r, ret->expression, &ret->expression_len);
	TRY(reader_expect(r, '{', "where an expression begins"));
	TRY(reader_string(r, ret->expression, &ret->expression_len));
	if (reader_take(r, ','))
		TRY(reader_string(r, ret->reason, &len));
	return reader_expect(r, '}', "behind an expression");
}

/* ---- Matching ---- */

static enum status
rule_compile(const struct rule *rule, pcre2_compile_context *context, pcre2_code **ret,
	     struct err *err)
{
	PCRE2_SIZE offset;
	int error;

	*ret = pcre2_compile((PCRE2_SPTR)rule->expression, rule->expression_len, 0, &error, &offset,
			     context);
	if (*ret)
		return STATUS_OK;
	if (error == PCRE2_ERROR_HEAP_FAILED)
		return STATUS_NOMEM;
	return err_set(err, STATUS_INVALID, "no regular expression: %.*s",
		       (int)rule->expression_len, rule->expression);
}

static enum status
code_match(const pcre2_code *code, struct str text, bool *ret)
{
	pcre2_match_context *context = pcre2_match_context_create(NULL);
	pcre2_match_data *data = pcre2_match_data_create(1, NULL);
	int found = PCRE2_ERROR_NOMEMORY;

	if (context && data) {
		(void)pcre2_set_match_limit(context, RULES_MATCH_CALLS);
		(void)pcre2_set_heap_limit(context, RULES_MATCH_KIB);
		found = pcre2_match(code, (PCRE2_SPTR)text.ptr, text.len, 0, 0, data, context);
	}
	pcre2_match_data_free(data);
	pcre2_match_context_free(context);
	*ret = found >= 0;
	return found == PCRE2_ERROR_NOMEMORY ? STATUS_NOMEM : STATUS_OK;
}

/* Compiles a rule, and matches it if there is a text. Without a text, it is kept. */
static enum status
rule_try(const struct rule *rule, const struct str *text, bool *ret_kept, struct err *err)
{
	pcre2_compile_context *context = pcre2_compile_context_create(NULL);
	pcre2_code *code = NULL;
	enum status status;

	*ret_kept = true;
	if (!context)
		return STATUS_NOMEM;
	(void)pcre2_set_parens_nest_limit(context, RULES_NESTING);
	status = rule_compile(rule, context, &code, err);
	if (status == STATUS_OK && text)
		status = code_match(code, *text, ret_kept);
	pcre2_code_free(code);
	pcre2_compile_context_free(context);
	return status;
}

static enum status
rules_walk(struct str rules, const struct str *text, struct rule *rule, bool *ret_kept,
	   struct err *err)
{
	struct rules_reader r = { .rest = rules, .err = err };

	*ret_kept = true;
	TRY(reader_expect(&r, '[', "where the list begins"));
	if (!reader_take(&r, ']')) {
		do {
			TRY(reader_rule(&r, rule));
			TRY(rule_try(rule, text, ret_kept, err));
			if (!*ret_kept)
				return STATUS_OK;
		} while (reader_take(&r, ','));
		TRY(reader_expect(&r, ']', "where the list ends"));
	}
	if (reader_peek(&r))
		return err_set(err, STATUS_INVALID, "there is text behind the list");
	return STATUS_OK;
}

enum status
rules_check(struct str rules, struct err *err)
{
	struct rule rule;
	bool kept;

	return rules_walk(rules, NULL, &rule, &kept, err);
}

enum status
rules_apply(struct str rules, struct str text, struct rule *ret_broken, bool *ret_kept,
	    struct err *err)
{
	return rules_walk(rules, &text, ret_broken, ret_kept, err);
}
