#include "doc/doc_int.h"

enum {
	DRAWN_BYTES = 200,
};

bool
doc_pointer_position(struct str token, uint64_t *ret)
{
	if (!token.len || (token.ptr[0] == '0' && token.len > 1))
		return false;
	for (size_t i = 0; i < token.len; i++)
		if (token.ptr[i] < '0' || token.ptr[i] > '9')
			return false;
	return str_to_u64(token, ret) && *ret <= UINT32_MAX;
}

static void
draw_token(struct str name, struct buf *ret)
{
	for (size_t i = 0; i < name.len; i++) {
		uint8_t c = (uint8_t)name.ptr[i];

		if (c == '~')
			buf_append(ret, "~0", 2);
		else if (c == '/')
			buf_append(ret, "~1", 2);
		else if (c < 0x20 || c == 0x7f)
			buf_printf(ret, "\\u%04x", c);
		else
			buf_append_byte(ret, c);
		/* In a tuple a NUL is followed by 0xff, which is no part of the name. */
		if (c == 0)
			i++;
	}
}

void
doc_path_draw(struct str path, struct buf *ret)
{
	struct tuple_reader r = tuple_reader(path);
	struct tuple_elem e;
	size_t begin = ret->len;

	while (ret->len - begin <= DRAWN_BYTES && tuple_next(&r, &e) == STATUS_OK) {
		if (e.kind == TUPLE_INT) {
			buf_append_byte(ret, '/');
			buf_append_u64(ret, e.magnitude);
		} else if (e.kind == TUPLE_STRING) {
			/* A NUL in a name is drawn as its escape: this is for people. */
			struct str name = e.raw;

			if (name.len > DRAWN_BYTES + 4)
				name.len = DRAWN_BYTES + 4;
			buf_append_byte(ret, '/');
			draw_token(name, ret);
		} else {
			break; /* null: what follows is the number of a piece */
		}
	}
	if (ret->len - begin <= DRAWN_BYTES)
		return;
	ret->len = begin + DRAWN_BYTES;
	while (ret->len > begin && ((uint8_t)ret->ptr[ret->len] & 0xc0) == 0x80)
		ret->len--;
	buf_append(ret, "...", 3);
}
