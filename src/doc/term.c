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
	buf_append_byte(term, TERM_BINARY);
	doc_term_u32(term, (uint32_t)s.len);
	buf_append_str(term, s);
}

void
doc_term_atom(struct buf *term, struct str name)
{
	buf_append_byte(term, TERM_ATOM);
	buf_append_byte(term, 0);
	buf_append_byte(term, (uint8_t)name.len);
	buf_append_str(term, name);
}
