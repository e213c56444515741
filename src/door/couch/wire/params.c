/* The text of one parameter of a query as a value. */
#include "base/quote.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/params.h"

static bool
params_all_digits(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.ptr[i] < '0' || s.ptr[i] > '9')
			return false;
	return s.len > 0;
}

bool
couch_integer_parse(struct str text, int64_t *ret)
{
	bool negative = text.len && text.ptr[0] == '-';
	bool sign = negative || (text.len && text.ptr[0] == '+');

	if (str_to_i64(text, ret))
		return true;
	if (!params_all_digits(str_skip(text, sign)))
		return false;
	*ret = negative ? INT64_MIN : INT64_MAX;
	return true;
}

enum status
couch_count_parse(struct couch_req *r, struct str text, uint64_t *ret)
{
	int64_t n;

	if (!couch_integer_parse(text, &n))
		return couch_fail_set(&r->fail, COUCH_ERROR_QUERY_PARSE,
				      "Invalid value for integer: \"%s\"", QUOTE_SHOW(text));
	if (n < 0)
		return couch_fail_set(&r->fail, COUCH_ERROR_QUERY_PARSE,
				      "Invalid value for positive integer: \"%s\"",
				      QUOTE_SHOW(text));
	*ret = (uint64_t)n;
	return STATUS_OK;
}

enum status
couch_flag_parse(struct couch_req *r, struct str text, bool *ret)
{
	bool on = str_eq_nocase(text, STR("true"));

	if (!on && !str_eq_nocase(text, STR("false")))
		return couch_fail_set(&r->fail, COUCH_ERROR_QUERY_PARSE,
				      "Invalid boolean parameter: \"%s\"", QUOTE_SHOW(text));
	*ret = on;
	return STATUS_OK;
}
