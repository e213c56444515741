#include "doc/doc_int.h"

void
doc_term_u32(struct buf *term, uint32_t n)
{
	n = htobe32(n);
	buf_append(term, &n, sizeof(n));
}

void
doc_term_binary(struct buf *term, struct str s)
{
	uint32_t n = htobe32((uint32_t)s.len);
	char *at;

	if (!buf_reserve(term, 1 + sizeof(n) + s.len))
		return;
	at = term->ptr + term->len;
	*at++ = TERM_BINARY;
	memcpy(at, &n, sizeof(n));
	if (s.len)
		memcpy(at + sizeof(n), s.ptr, s.len);
	term->len += 1 + sizeof(n) + s.len;
}

void
doc_term_atom(struct buf *term, struct str name)
{
	buf_append_byte(term, TERM_ATOM);
	buf_append_byte(term, 0);
	buf_append_byte(term, (uint8_t)name.len);
	buf_append_str(term, name);
}
