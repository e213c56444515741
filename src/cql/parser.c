#include "cql/parse_int.h"

#include <stdio.h>

void
cql_parser_init(struct cql_parser *p, struct cql *q, struct str text)
{
	*p = (struct cql_parser){ .q = q, .text = text, .token = cql_token_at(text, 0) };
}

bool
cql_is_word(const struct cql_parser *p, struct cql_token t, const char *word)
{
	return t.kind == CQL_TOKEN_WORD && str_eq_nocase(cql_token_text(p, t), str_from_cstr(word));
}

bool
cql_is_sign(const struct cql_parser *p, struct cql_token t, const char *sign)
{
	return t.kind == CQL_TOKEN_SIGN && str_eq(cql_token_text(p, t), str_from_cstr(sign));
}

bool
cql_at_word(const struct cql_parser *p, const char *word)
{
	return cql_is_word(p, p->token, word);
}

bool
cql_at_sign(const struct cql_parser *p, const char *sign)
{
	return cql_is_sign(p, p->token, sign);
}

bool
cql_skip_word(struct cql_parser *p, const char *word)
{
	bool there = cql_at_word(p, word);

	if (there)
		cql_next(p);
	return there;
}

bool
cql_skip_sign(struct cql_parser *p, const char *sign)
{
	bool there = cql_at_sign(p, sign);

	if (there)
		cql_next(p);
	return there;
}

bool
cql_skip_words(struct cql_parser *p, const char *first, const char *second)
{
	if (!cql_at_word(p, first) || !cql_is_word(p, cql_peek(p), second))
		return false;
	cql_next(p);
	cql_next(p);
	return true;
}

/* Lines from 1, columns from 0, as Cassandra's parser counts. */
static void
position(const struct cql_parser *p, size_t *ret_line, size_t *ret_column)
{
	size_t begin = 0;

	*ret_line = 1;
	for (size_t i = 0; i < p->token.at && i < p->text.len; i++) {
		if (p->text.ptr[i] == '\n') {
			++*ret_line;
			begin = i + 1;
		}
	}
	*ret_column = p->token.at - begin;
}

/* The error with line, column and up to two more arguments. */
static void
fail_here(struct cql_parser *p, enum cql_error e, struct str first, struct str second)
{
	char numbers[2][24];
	size_t line, column;
	struct str args[4] = { { NULL, 0 }, { NULL, 0 }, first, second };

	position(p, &line, &column);
	snprintf(numbers[0], sizeof(numbers[0]), "%zu", line);
	snprintf(numbers[1], sizeof(numbers[1]), "%zu", column);
	args[0] = str_from_cstr(numbers[0]);
	args[1] = str_from_cstr(numbers[1]);
	cql_fail_with(p->q, e, args, 4);
}

/* The token's text, cut between characters. */
static struct str
shown(const struct cql_parser *p)
{
	struct str text = cql_token_text(p, p->token);

	if (p->token.kind == CQL_TOKEN_END)
		return STR("<EOF>");
	if (text.len > CQL_SHOWN_BYTES) {
		text.len = CQL_SHOWN_BYTES;
		while (text.len && ((uint8_t)text.ptr[text.len] & 0xc0) == 0x80)
			text.len--;
	}
	return text;
}

enum status
cql_unexpected(struct cql_parser *p)
{
	fail_here(p, p->token.kind == CQL_TOKEN_BAD ? CQL_E_CHARACTER : CQL_E_SYNTAX, shown(p),
		  STR(""));
	return STATUS_INVALID;
}

enum status
cql_fail_at(struct cql_parser *p, enum cql_error e, struct str what)
{
	fail_here(p, e, what, STR(""));
	return STATUS_INVALID;
}

static enum status
mismatch(struct cql_parser *p, const char *wanted)
{
	if (p->token.kind == CQL_TOKEN_BAD)
		return cql_unexpected(p);
	if (p->token.kind == CQL_TOKEN_END)
		fail_here(p, CQL_E_MISMATCH_END, str_from_cstr(wanted), STR(""));
	else
		fail_here(p, CQL_E_MISMATCH, shown(p), str_from_cstr(wanted));
	return STATUS_INVALID;
}

enum status
cql_take_word(struct cql_parser *p, const char *word)
{
	return cql_skip_word(p, word) ? STATUS_OK : mismatch(p, word);
}

enum status
cql_take_sign(struct cql_parser *p, const char *sign)
{
	return cql_skip_sign(p, sign) ? STATUS_OK : mismatch(p, sign);
}

/* The word in lower case: borrowed where it is so already. */
static enum status
fold(struct cql_parser *p, struct str word, struct str *ret)
{
	char *folded;
	size_t i = 0;

	while (i < word.len && !(word.ptr[i] >= 'A' && word.ptr[i] <= 'Z'))
		i++;
	if (i == word.len) {
		*ret = word;
		return STATUS_OK;
	}
	folded = arena_bytes(p->q->arena, word.len);
	if (!folded)
		return STATUS_LIMIT;
	for (i = 0; i < word.len; i++) {
		char c = word.ptr[i];

		folded[i] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
	}
	*ret = str_of(folded, word.len);
	return STATUS_OK;
}

enum status
cql_unquote(struct cql_parser *p, struct cql_token t, struct str *ret)
{
	struct str text = cql_token_text(p, t);
	char quote = text.ptr[0], *bytes;
	size_t used = 0;

	if (quote == '$') {
		*ret = str_of(text.ptr + 2, text.len - 4);
		return STATUS_OK;
	}
	text = str_of(text.ptr + 1, text.len - 2);
	if (!text.len || !memchr(text.ptr, quote, text.len)) {
		*ret = text;
		return STATUS_OK;
	}
	bytes = arena_bytes(p->q->arena, text.len);
	if (!bytes)
		return STATUS_LIMIT;
	for (size_t i = 0; i < text.len; i++) {
		bytes[used++] = text.ptr[i];
		if (text.ptr[i] == quote)
			i++; /* quotes are doubled */
	}
	*ret = str_of(bytes, used);
	return STATUS_OK;
}

bool
cql_token_is_name(const struct cql_parser *p, struct cql_token t)
{
	char folded[16]; /* every reserved word fits */
	struct str word = cql_token_text(p, t);

	if (t.kind == CQL_TOKEN_QUOTED)
		return true;
	if (t.kind != CQL_TOKEN_WORD)
		return false;
	if (word.len > sizeof(folded))
		return true;
	for (size_t i = 0; i < word.len; i++) {
		char c = word.ptr[i];

		folded[i] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
	}
	return !cql_word_is_reserved(str_of(folded, word.len));
}

enum status
cql_take_name(struct cql_parser *p, struct str *ret)
{
	if (!cql_token_is_name(p, p->token))
		return cql_unexpected(p);
	return cql_take_word_name(p, ret);
}

enum status
cql_take_word_name(struct cql_parser *p, struct str *ret)
{
	if (p->token.kind == CQL_TOKEN_QUOTED)
		TRY(cql_unquote(p, p->token, ret));
	else if (p->token.kind == CQL_TOKEN_WORD)
		TRY(fold(p, cql_token_text(p, p->token), ret));
	else
		return cql_unexpected(p);
	if (ret->len > CQL_COLUMN_BYTES || ret->len == 0)
		return cql_unexpected(p);
	cql_next(p);
	return STATUS_OK;
}

static enum status
check_name(struct cql_parser *p, const char *what, struct str name)
{
	bool right = name.len > 0 && name.len <= CQL_NAME_BYTES;

	for (size_t i = 0; i < name.len && right; i++) {
		char c = name.ptr[i];

		right = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			(c >= '0' && c <= '9') || c == '_';
	}
	if (right)
		return STATUS_OK;
	return cql_fail(p->q, CQL_E_NAME_TOO_LONG, str_from_cstr(what), STR("48"), name);
}

enum status
cql_take_keyspace(struct cql_parser *p, struct str *ret)
{
	TRY(cql_take_name(p, ret));
	return check_name(p, "Keyspace", *ret);
}

enum status
cql_take_qualified(struct cql_parser *p, const char *what, struct cql_name *ret)
{
	*ret = (struct cql_name){ 0 };
	TRY(cql_take_name(p, &ret->name));
	if (cql_skip_sign(p, ".")) {
		ret->keyspace = ret->name;
		TRY(check_name(p, "Keyspace", ret->keyspace));
		TRY(cql_take_name(p, &ret->name));
	}
	return check_name(p, what, ret->name);
}

enum status
cql_take_string(struct cql_parser *p, struct str *ret)
{
	if (p->token.kind != CQL_TOKEN_STRING)
		return mismatch(p, "STRING_LITERAL");
	TRY(cql_unquote(p, p->token, ret));
	cql_next(p);
	return STATUS_OK;
}

enum status
cql_add_marker(struct cql_parser *p, struct str name, unsigned *ret)
{
	if (p->marker_count == CQL_MARKERS)
		return cql_fail_at(p, CQL_E_TOO_MANY_MARKERS, STR("65535"));
	TRY(arena_room(p->q->arena, &p->markers, p->marker_count, &p->marker_cap,
		       sizeof(*p->markers)));
	*ret = (unsigned)p->marker_count;
	p->markers[p->marker_count++] = name;
	return STATUS_OK;
}

enum status
cql_enter(struct cql_parser *p)
{
	if (p->depth == CQL_DEPTH)
		return cql_fail_at(p, CQL_E_TOO_DEEP, STR("64"));
	p->depth++;
	return STATUS_OK;
}

void
cql_leave(struct cql_parser *p)
{
	p->depth--;
}
