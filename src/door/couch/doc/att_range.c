/* The Range header (RFC 7233), as CouchDB takes it. */
#include "door/couch/doc/att_range.h"
#include "http/field.h"

/* Digits alone; `*ret_given` is false for an empty text. */
static bool
range_parse_position(struct str text, bool *ret_given, uint64_t *ret)
{
	*ret_given = text.len > 0;
	*ret = 0;
	return text.len == 0 || (text.ptr[0] >= '0' && text.ptr[0] <= '9' && str_to_u64(text, ret));
}

enum parsed {
	PARSED_RANGE,
	PARSED_ALL,     /* the whole is wanted, or this is no range */
	PARSED_NOWHERE, /* it has no byte of the attachment */
};

/* "0-499", "500-", "-500" of `length` bytes. */
static enum parsed
range_parse_one(struct str text, uint64_t length, struct couch_range *ret)
{
	const char *dash = text.len ? memchr(text.ptr, '-', text.len) : NULL;
	bool has_first;
	bool has_last;
	uint64_t first;
	uint64_t last;

	if (!dash ||
	    !range_parse_position(str_of(text.ptr, (size_t)(dash - text.ptr)), &has_first,
				  &first) ||
	    !range_parse_position(str_skip(text, (size_t)(dash - text.ptr) + 1), &has_last,
				  &last) ||
	    (!has_first && !has_last))
		return PARSED_ALL;
	if (has_first && !has_last && first == 0)
		return PARSED_ALL;
	if (!has_first) {
		first = last < length ? length - last : 0;
		has_last = false;
	}
	if (has_last && last < first)
		return PARSED_NOWHERE;
	if (first >= length)
		return PARSED_NOWHERE;
	ret->begin = first;
	ret->end = has_last && last < length - 1 ? last + 1 : length;
	return PARSED_RANGE;
}

bool
couch_ranges_parse(struct str header, uint64_t length, struct couch_range ret[COUCH_RANGES],
		   size_t *ret_count)
{
	struct str element;
	size_t count = 0;

	*ret_count = 0;
	header = str_trim(header);
	if (!str_starts_with(header, STR("bytes=")))
		return true;
	header = str_skip(header, 6);
	while (http_list_next(&header, &element)) {
		struct couch_range range;
		enum parsed parsed = range_parse_one(element, length, &range);

		if (parsed != PARSED_RANGE)
			return parsed == PARSED_ALL;
		if (count < COUCH_RANGES)
			ret[count] = range;
		count++;
	}
	*ret_count = count < COUCH_RANGES ? count : 0;
	return true;
}
