#include "http/field.h"

#include "http/escape.h"

/*
 * Where the next `separator` outside of quoted strings is, or the length of `s`. In quoted strings
 * a backslash takes the meaning from the character behind it, but not in entity tags, which only
 * look like quoted strings (RFC 9110, section 8.8.3).
 */
static size_t
find_separator(struct str s, char separator, bool backslashes)
{
	bool quoted = false;

	/* Most values have no quotes, and libc is quicker than a loop. */
	if (s.len == 0 || !memchr(s.ptr, '"', s.len)) {
		const char *found = s.len ? memchr(s.ptr, separator, s.len) : NULL;

		return found ? (size_t)(found - s.ptr) : s.len;
	}
	for (size_t i = 0; i < s.len; i++) {
		char c = s.ptr[i];

		if (c == '"')
			quoted = !quoted;
		else if (c == '\\' && quoted && backslashes)
			i++;
		else if (c == separator && !quoted)
			return i;
	}
	return s.len;
}

/* Takes the part in front of the next separator off `*rest`, and the separator with it. */
static struct str
cut_part(struct str *rest, char separator, bool backslashes)
{
	size_t end = find_separator(*rest, separator, backslashes);
	struct str part = str_of(rest->ptr, end);

	if (end < rest->len)
		*rest = str_skip(*rest, end + 1);
	else
		rest->len = 0;
	return str_trim(part);
}

static bool
next_element(struct str *rest, bool backslashes, struct str *ret)
{
	while (rest->len) {
		struct str element = cut_part(rest, ',', backslashes);

		if (element.len) {
			*ret = element;
			return true;
		}
	}
	return false;
}

bool
http_list_next(struct str *rest, struct str *ret)
{
	return next_element(rest, true, ret);
}

struct str
http_field_value(struct str field)
{
	return cut_part(&field, ';', true);
}

bool
http_field_param(struct str field, struct str name, struct str *ret)
{
	(void)cut_part(&field, ';', true);
	while (field.len) {
		struct str value = cut_part(&field, ';', true);
		struct str found = str_trim(str_cut(&value, '='));

		if (found.len && str_eq_nocase(found, name)) {
			*ret = str_trim(value);
			return true;
		}
	}
	return false;
}

void
http_unquote(struct str written, struct buf *ret)
{
	if (written.len == 0 || written.ptr[0] != '"') {
		buf_append_str(ret, written);
		return;
	}
	for (size_t i = 1; i < written.len && written.ptr[i] != '"'; i++) {
		if (written.ptr[i] == '\\' && i + 1 < written.len)
			i++;
		buf_append_byte(ret, (uint8_t)written.ptr[i]);
	}
}

static bool
is_control(char c)
{
	return (unsigned char)c < ' ' || c == 0x7f;
}

static void
write_escape(char c, struct buf *out)
{
	char escape[HTTP_ESCAPE_BYTES];

	http_escape_byte((uint8_t)c, escape);
	buf_append(out, escape, sizeof(escape));
}

void
http_quote(struct str text, struct buf *out)
{
	buf_append_byte(out, '"');
	for (size_t i = 0; i < text.len; i++) {
		char c = text.ptr[i];

		if (is_control(c)) {
			write_escape(c, out);
			continue;
		}
		if (c == '"' || c == '\\')
			buf_append_byte(out, '\\');
		buf_append_byte(out, (uint8_t)c);
	}
	buf_append_byte(out, '"');
}

void
http_write_text(struct str text, struct buf *out)
{
	for (size_t i = 0; i < text.len; i++) {
		if (is_control(text.ptr[i]))
			write_escape(text.ptr[i], out);
		else
			buf_append_byte(out, (uint8_t)text.ptr[i]);
	}
}

/* ---- Preferences ---- */

/* "0.5" is 500. The RFC allows three decimals; of more, none makes a zero of what is not one. */
static unsigned
parse_quality(struct str text)
{
	unsigned scale = HTTP_QUALITY_MAX;
	unsigned quality = 0;
	bool fraction = false;
	bool any = false;

	for (size_t i = 0; i < text.len; i++) {
		char c = text.ptr[i];

		if (c == '.' && !fraction) {
			fraction = true;
			continue;
		}
		if (c < '0' || c > '9' || (any && !fraction))
			return HTTP_QUALITY_MAX;
		any = true;
		if (fraction)
			scale /= 10;
		quality += (unsigned)(c - '0') * scale;
		if (scale == 0 && c != '0' && quality == 0)
			quality = 1;
	}
	return any && quality < HTTP_QUALITY_MAX ? quality : HTTP_QUALITY_MAX;
}

static enum http_match
match_name(struct str element, struct str name)
{
	const char *slash = name.len ? memchr(name.ptr, '/', name.len) : NULL;
	size_t family; /* the length of "text/" */

	if (str_eq_nocase(element, name))
		return HTTP_MATCH_NAME;
	if (!slash)
		return str_eq(element, STR("*")) ? HTTP_MATCH_ANY : HTTP_MATCH_NONE;
	if (str_eq(element, STR("*/*")))
		return HTTP_MATCH_ANY;
	family = (size_t)(slash - name.ptr) + 1;
	return element.len == family + 1 && element.ptr[family] == '*' &&
			       str_eq_nocase(str_of(element.ptr, family), str_of(name.ptr, family))
		       ? HTTP_MATCH_FAMILY
		       : HTTP_MATCH_NONE;
}

struct http_preference
http_preference_of(struct str list, struct str name)
{
	struct http_preference best = { HTTP_MATCH_NONE, 0 };
	struct str element;

	while (http_list_next(&list, &element)) {
		struct http_preference this = { match_name(http_field_value(element), name),
						HTTP_QUALITY_MAX };
		struct str quality;

		if (this.match == HTTP_MATCH_NONE)
			continue;
		if (http_field_param(element, STR("q"), &quality))
			this.quality = parse_quality(quality);
		if (this.match > best.match ||
		    (this.match == best.match && this.quality > best.quality))
			best = this;
	}
	return best;
}

/* ---- Entity tags ---- */

static struct str
without_weakness(struct str tag)
{
	return str_starts_with(tag, STR("W/")) ? str_skip(tag, 2) : tag;
}

bool
http_etag_listed(struct str list, struct str tag)
{
	struct str element;

	tag = without_weakness(tag);
	while (next_element(&list, false, &element))
		if (str_eq(without_weakness(element), tag))
			return true;
	return false;
}

/* `n` hexadecimal digits in lower case, not all of them 0 unless `zero`, and what follows. */
static bool
trace_take(struct str *rest, size_t n, bool zero, struct str *ret)
{
	bool all_zero = true;

	if (rest->len < n)
		return false;
	for (size_t i = 0; i < n; i++) {
		char c = rest->ptr[i];

		if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f'))
			return false;
		all_zero = all_zero && c == '0';
	}
	*ret = str_of(rest->ptr, n);
	*rest = str_skip(*rest, n);
	return zero || !all_zero;
}

static bool
trace_take_dash(struct str *rest)
{
	if (!rest->len || *rest->ptr != '-')
		return false;
	*rest = str_skip(*rest, 1);
	return true;
}

struct str
http_trace_id(struct str traceparent)
{
	struct str rest = str_trim(traceparent), version, trace, parent, flags;
	const struct str none = { 0 };

	if (!trace_take(&rest, 2, true, &version) || str_eq(version, STR("ff")) ||
	    !trace_take_dash(&rest) || !trace_take(&rest, 32, false, &trace) ||
	    !trace_take_dash(&rest) || !trace_take(&rest, 16, false, &parent) ||
	    !trace_take_dash(&rest) || !trace_take(&rest, 2, true, &flags))
		return none;
	/* Later versions may have more behind that. */
	if (rest.len && (str_eq(version, STR("00")) || *rest.ptr != '-'))
		return none;
	return trace;
}
