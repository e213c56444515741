/* Inflating what another server has compressed: piece by piece, and nothing but gzip. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "http/gunzip.h"
#include "http/gzip.h"

enum {
	TEXT_BYTES = 4 << 20,
};

/* `n` times the same byte, compressed. */
static void
pack_bytes(char c, size_t n, struct buf *out)
{
	struct buf text = BUF_INIT(TEXT_BYTES);
	struct gzip *g = gzip_new(9);
	struct str in, piece;

	assert_non_null(g);
	for (size_t i = 0; i < n; i++)
		buf_append_byte(&text, (uint8_t)c);
	in = buf_str(&text);
	while ((piece = gzip_next(g, GZIP_END, &in)).len)
		buf_append_str(out, piece);
	assert_int_equal(buf_status(out), STATUS_OK);
	gzip_free(g);
	buf_release(&text);
}

/* Inflates the text, which comes in pieces of `piece` bytes, and counts the bytes that come out. */
static enum status
inflate_text(struct str text, size_t piece, size_t *ret_bytes, bool *ret_complete)
{
	struct gunzip *g = gunzip_new();
	enum status status = STATUS_NOT_FOUND;

	assert_non_null(g);
	*ret_bytes = 0;
	while (text.len && status == STATUS_NOT_FOUND) {
		struct str in = str_of(text.ptr, text.len < piece ? text.len : piece);
		struct str out;

		text = str_skip(text, in.len);
		while ((status = gunzip_next(g, &in, &out)) == STATUS_OK) {
			assert_in_range(out.len, 1, GUNZIP_PIECE_BYTES);
			*ret_bytes += out.len;
		}
		assert_true(status == STATUS_CORRUPT || in.len == 0);
	}
	*ret_complete = gunzip_is_complete(g);
	gunzip_free(g);
	return status;
}

static void
a_bomb_comes_out_in_small_pieces(void **state)
{
	struct buf packed = BUF_INIT(TEXT_BYTES);
	size_t bytes;
	bool complete;

	(void)state;
	pack_bytes(' ', TEXT_BYTES, &packed);
	assert_true(packed.len < TEXT_BYTES / 500);
	for (size_t piece = 1; piece < 2 * packed.len; piece = piece * 7 + 1) {
		assert_int_equal(inflate_text(buf_str(&packed), piece, &bytes, &complete),
				 STATUS_NOT_FOUND);
		assert_int_equal(bytes, TEXT_BYTES);
		assert_true(complete);
	}
	buf_release(&packed);
}

static void
what_is_cut_off_is_not_complete(void **state)
{
	struct buf packed = BUF_INIT(TEXT_BYTES);
	size_t bytes;
	bool complete;

	(void)state;
	pack_bytes('a', 1000, &packed);
	for (size_t len = 1; len < packed.len; len++) {
		assert_int_equal(inflate_text(str_of(packed.ptr, len), len, &bytes, &complete),
				 STATUS_NOT_FOUND);
		assert_false(complete);
	}
	buf_release(&packed);
}

static void
what_is_no_gzip_is_corrupt(void **state)
{
	struct buf packed = BUF_INIT(TEXT_BYTES);
	size_t bytes;
	bool complete;

	(void)state;
	assert_int_equal(inflate_text(STR("{\"results\":[]}"), 100, &bytes, &complete),
			 STATUS_CORRUPT);
	pack_bytes('a', 1000, &packed);
	buf_append_byte(&packed, 'x'); /* behind the end */
	assert_int_equal(inflate_text(buf_str(&packed), packed.len, &bytes, &complete),
			 STATUS_CORRUPT);
	packed.ptr[packed.len - 3] ^= 1; /* in the trailer */
	assert_int_equal(inflate_text(buf_str(&packed), packed.len, &bytes, &complete),
			 STATUS_CORRUPT);
	buf_release(&packed);
}

static void
a_lack_of_memory_is_told(void **state)
{
	(void)state;
	for (uint64_t after = 1; after <= 2; after++) {
		mem_fail_after(after);
		assert_null(gunzip_new());
		mem_fail_after(0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bomb_comes_out_in_small_pieces),
		cmocka_unit_test(what_is_cut_off_is_not_complete),
		cmocka_unit_test(what_is_no_gzip_is_corrupt),
		cmocka_unit_test(a_lack_of_memory_is_told),
	};

	return cmocka_run_group_tests_name("gunzip", tests, NULL, NULL);
}
