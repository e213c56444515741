#include "net/tls_list.h"

/* Trims white space, and one pair of enclosing characters if the text has both. */
static struct str
tls_list_strip(struct str s, char open, char close)
{
	s = str_trim(s);
	if (s.len >= 2 && s.ptr[0] == open && s.ptr[s.len - 1] == close)
		s = str_trim(str_of(s.ptr + 1, s.len - 2));
	return s;
}

bool
tls_list_next(struct str *rest, struct str *ret)
{
	*rest = tls_list_strip(*rest, '[', ']');
	while (str_list_next(rest, ret)) {
		*ret = tls_list_strip(tls_list_strip(*ret, '\'', '\''), '"', '"');
		if (ret->len)
			return true;
	}
	return false;
}
