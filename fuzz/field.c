/*
 * Any bytes as a header's value, a path and a query: what is read lies inside of what went in, and
 * what is written can be read again.
 */
#include <stdlib.h>

#include "base/arena.h"
#include "http/escape.h"
#include "http/field.h"

enum {
	MAX_BYTES = 1 << 20,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_inside(struct str part, struct str whole)
{
	if (part.len && (part.ptr < whole.ptr || part.ptr + part.len > whole.ptr + whole.len))
		abort();
}

static void
check_list(struct str text)
{
	struct str rest = text;
	struct str element;
	struct str param;
	size_t before = rest.len + 1;

	while (http_list_next(&rest, &element)) {
		if (element.len == 0 || rest.len >= before)
			abort();
		before = rest.len;
		check_inside(element, text);
		check_inside(http_field_value(element), element);
		if (http_field_param(element, STR("a"), &param))
			check_inside(param, element);
	}
	if (http_preference_of(text, STR("a")).quality > HTTP_QUALITY_MAX ||
	    http_preference_of(text, STR("a/b")).quality > HTTP_QUALITY_MAX)
		abort();
	(void)http_etag_listed(text, STR("\"a\""));
	check_inside(http_trace_id(text), text);
}

/* What is quoted is one element of a list, one parameter, and the text again. */
static void
check_quotes(struct str text)
{
	struct buf field = BUF_INIT(MAX_BYTES), back = BUF_INIT(MAX_BYTES),
		   plain = BUF_INIT(MAX_BYTES);
	struct str rest;
	struct str element;
	struct str param;

	buf_append_cstr(&field, "x; a=");
	http_quote(text, &field);
	rest = buf_str(&field);
	if (!http_list_next(&rest, &element) || rest.len ||
	    !http_field_param(element, STR("a"), &param))
		abort();
	http_unquote(param, &back);
	http_write_text(text, &plain);
	if (!str_eq(buf_str(&back), buf_str(&plain)))
		abort();
	buf_release(&field);
	buf_release(&back);
	buf_release(&plain);
}

static void
check_escapes(struct str text)
{
	struct arena *arena = arena_new(MAX_BYTES);
	struct buf escaped = BUF_INIT(MAX_BYTES);
	struct http_param *params;
	size_t count;
	struct str back;

	http_escape(&escaped, text);
	if (http_unescape(buf_str(&escaped), true, arena, &back) != STATUS_OK ||
	    !str_eq(back, text))
		abort();
	if (http_parse_query(text, arena, &params, &count) == STATUS_OK &&
	    count > HTTP_QUERY_PARAMS)
		abort();
	buf_release(&escaped);
	arena_free(arena);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = str_of(data, size);

	check_list(text);
	check_quotes(text);
	if (size)
		check_escapes(text);
	return 0;
}
