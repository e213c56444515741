#include "cql/parse_int.h"

#include "base/utf8.h"

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool
is_word_char(char c)
{
	return is_digit(c) || is_letter(c) || c == '_';
}

/* The character there, or NUL behind the end. */
static char
at(struct str text, size_t i)
{
	return i < text.len ? text.ptr[i] : '\0';
}

static bool
starts(struct str text, size_t i, const char *what)
{
	return i <= text.len && str_starts_with(str_skip(text, i), str_from_cstr(what));
}

/* The end of the line's or block's comment that begins there; a block without an end takes all. */
static size_t
comment_end(struct str text, size_t i)
{
	bool block = text.ptr[i] == '/' && text.ptr[i + 1] == '*';

	for (i += 2; i < text.len; i++) {
		if (block && starts(text, i, "*/"))
			return i + 2;
		if (!block && (text.ptr[i] == '\n' || text.ptr[i] == '\r'))
			return i;
	}
	return i;
}

static size_t
skip_space(struct str text, size_t i)
{
	while (i < text.len) {
		char c = text.ptr[i];

		if (c == ' ' || c == '\t' || c == '\n' || c == '\r')
			i++;
		else if (starts(text, i, "--") || starts(text, i, "//") || starts(text, i, "/*"))
			i = comment_end(text, i);
		else
			break;
	}
	return i;
}

/* The end of what stands in quotes, a quote in it doubled; 0: it has no end. */
static size_t
quoted_end(struct str text, size_t i, char quote)
{
	for (i++; i < text.len; i++) {
		if (text.ptr[i] != quote)
			continue;
		if (at(text, i + 1) != quote)
			return i + 1;
		i++;
	}
	return 0;
}

static size_t
dollars_end(struct str text, size_t i)
{
	for (i += 2; i + 1 < text.len; i++)
		if (text.ptr[i] == '$' && text.ptr[i + 1] == '$')
			return i + 2;
	return 0;
}

/* The end of a UUID that begins there; 0: none does. */
static size_t
uuid_end(struct str text, size_t from)
{
	enum {
		UUID_TEXT = 36
	};

	if (text.len - from < UUID_TEXT)
		return 0;
	for (size_t i = 0; i < UUID_TEXT; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? text.ptr[from + i] != '-' : str_hex_digit(text.ptr[from + i]) < 0)
			return 0;
	}
	return is_word_char(at(text, from + UUID_TEXT)) ? 0 : from + UUID_TEXT;
}

static size_t
digits_end(struct str text, size_t i)
{
	while (is_digit(at(text, i)))
		i++;
	return i;
}

/* The length of a duration's unit that begins there; 0: none does. */
static size_t
unit_length(struct str text, size_t i)
{
	static const char *const units[] = { "mo", "ms", "us", "\xc2\xb5s", "ns", "y",
					     "w",  "d",  "h",  "m",         "s" };

	for (size_t n = 0; n < sizeof(units) / sizeof(units[0]); n++) {
		struct str unit = str_from_cstr(units[n]);

		if (text.len - i >= unit.len &&
		    str_bytes_eq_nocase(text.ptr + i, unit.ptr, unit.len) &&
		    !is_letter(at(text, i + unit.len)))
			return unit.len;
	}
	return 0;
}

/* The end of a duration such as 1h30m that begins there; 0: none does. */
static size_t
duration_end(struct str text, size_t i)
{
	do {
		size_t digits = digits_end(text, i), unit = unit_length(text, digits);

		if (digits == i || !unit)
			return 0;
		i = digits + unit;
	} while (is_digit(at(text, i)));
	return is_word_char(at(text, i)) ? 0 : i;
}

/* Digits and a letter of `letters`, in their order, each at most once. */
static size_t
iso_fields_end(struct str text, size_t i, const char *letters)
{
	for (;;) {
		size_t digits = digits_end(text, i);
		const char *found;

		if (digits == i || !at(text, digits))
			return i;
		found = strchr(letters, at(text, digits));
		if (!found)
			return i;
		letters = found + 1;
		i = digits + 1;
	}
}

/* P0001-02-03T04:05:06. */
static size_t
iso_date_end(struct str text, size_t from)
{
	static const char form[] = "P0000-00-00T00:00:00";

	for (size_t i = 0; form[i]; i++) {
		char c = at(text, from + i);

		if (form[i] == '0' ? !is_digit(c) : c != form[i])
			return 0;
	}
	return from + sizeof(form) - 1;
}

/* The end of a duration in the forms of ISO 8601; 0: none begins there. */
static size_t
iso_end(struct str text, size_t from)
{
	size_t end = iso_date_end(text, from), i;

	if (end)
		return is_word_char(at(text, end)) ? 0 : end;
	i = iso_fields_end(text, from + 1, "W");
	if (i == from + 1)
		i = iso_fields_end(text, from + 1, "YMD");
	if (at(text, i) == 'T') {
		end = iso_fields_end(text, i + 1, "HMS");
		if (end == i + 1)
			return 0;
		i = end;
	}
	return i == from + 1 || is_word_char(at(text, i)) ? 0 : i;
}

static size_t
exponent_end(struct str text, size_t i)
{
	size_t digits;

	if (at(text, i) != 'e' && at(text, i) != 'E')
		return i;
	digits = i + 1 + (at(text, i + 1) == '-' || at(text, i + 1) == '+');
	return digits_end(text, digits) > digits ? digits_end(text, digits) : i;
}

static size_t
number_end(struct str text, size_t from, enum cql_token_kind *ret_kind)
{
	size_t i, whole;

	if ((at(text, from + 1) == 'x' || at(text, from + 1) == 'X') && text.ptr[from] == '0') {
		*ret_kind = CQL_TOKEN_BLOB;
		for (i = from + 2; str_hex_digit(at(text, i)) >= 0;)
			i++;
		return i;
	}
	i = duration_end(text, from);
	if (i) {
		*ret_kind = CQL_TOKEN_DURATION;
		return i;
	}
	whole = digits_end(text, from);
	i = whole;
	/* "1..2" is a slice of two integers, "1...2" one that begins with a double. */
	if (at(text, i) == '.' && (at(text, i + 1) != '.' || at(text, i + 2) == '.'))
		i = digits_end(text, i + 1);
	i = exponent_end(text, i);
	*ret_kind = i > whole ? CQL_TOKEN_FLOAT : CQL_TOKEN_INTEGER;
	return i;
}

static size_t
sign_end(struct str text, size_t i)
{
	static const char *const longer[] = { "->>", "->", "<=", ">=", "!=", "+=", "-=", ".." };

	for (size_t n = 0; n < sizeof(longer) / sizeof(longer[0]); n++)
		if (starts(text, i, longer[n]))
			return i + strlen(longer[n]);
	return text.ptr[i] && strchr("<>=+-*/%.,;:?()[]{}", text.ptr[i]) ? i + 1 : 0;
}

static size_t
word_end(struct str text, size_t i)
{
	while (is_word_char(at(text, i)))
		i++;
	return i;
}

/* The end and kind of the token that begins there; 0: no token does. */
static size_t
token_end(struct str text, size_t i, enum cql_token_kind *ret_kind)
{
	char c = text.ptr[i];
	size_t end;

	*ret_kind = CQL_TOKEN_UUID;
	if (str_hex_digit(c) >= 0 && (end = uuid_end(text, i)))
		return end;
	if (is_digit(c))
		return number_end(text, i, ret_kind);
	*ret_kind = CQL_TOKEN_DURATION;
	if (c == 'P' && (end = iso_end(text, i)))
		return end;
	*ret_kind = CQL_TOKEN_WORD;
	if (is_letter(c) || c == '_')
		return word_end(text, i);
	*ret_kind = CQL_TOKEN_QUOTED;
	if (c == '"')
		return quoted_end(text, i, c);
	*ret_kind = CQL_TOKEN_STRING;
	if (c == '\'')
		return quoted_end(text, i, c);
	if (starts(text, i, "$$"))
		return dollars_end(text, i);
	*ret_kind = CQL_TOKEN_SIGN;
	return sign_end(text, i);
}

struct cql_token
cql_token_at(struct str text, size_t from)
{
	struct cql_token t = { .kind = CQL_TOKEN_END,
			       .at = skip_space(text, from),
			       .before = from };
	size_t end;

	if (t.at >= text.len)
		return t;
	end = token_end(text, t.at, &t.kind);
	if (!end) {
		t.kind = CQL_TOKEN_BAD;
		end = t.at + 1;
		while (end < text.len && ((uint8_t)text.ptr[end] & 0xc0) == 0x80)
			end++;
	}
	t.length = end - t.at;
	return t;
}
