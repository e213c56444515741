#include "doc/doc_int.h"

enum {
	DRAWN_BYTES = 200,
};

static void
draw_token(struct str name, struct buf *ret)
{
	for (size_t i = 0; i < name.len; i++) {
		uint8_t c = (uint8_t)name.ptr[i];

		if (c == '~')
			buf_append(ret, "~0", 2);
		else if (c == '/')
			buf_append(ret, "~1", 2);
		else
			buf_append_byte(ret, c < 0x20 || c == 0x7f ? '?' : c);
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
			/* An escaped NUL is not worth unescaping here. */
			struct str name = e.raw;

			if (name.len > DRAWN_BYTES + 4)
				name.len = DRAWN_BYTES + 4;
			buf_append_byte(ret, '/');
			draw_token(name, ret);
		} else {
			break; /* a split string's piece */
		}
	}
	if (ret->len - begin <= DRAWN_BYTES)
		return;
	ret->len = begin + DRAWN_BYTES;
	while (ret->len > begin && ((uint8_t)ret->ptr[ret->len] & 0xc0) == 0x80)
		ret->len--;
	buf_append(ret, "...", 3);
}
