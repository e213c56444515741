/* Compressing as it is written: nothing is lost, and a flush can be read at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/rand.h"
#include "http/gzip.h"

enum {
	MAX_BYTES = 1 << 24,
};

static void
pack(struct gzip *g, enum gzip_step step, struct str in, struct buf *out)
{
	struct str piece;

	while ((piece = gzip_next(g, step, &in)).len)
		buf_append_str(out, piece);
	assert_int_equal(in.len, 0);
}

/* What of `in` can be read; true if it is a whole file. */
static bool
expand(const struct buf *in, struct buf *out)
{
	z_stream z = { .next_in = (Bytef *)in->ptr, .avail_in = (uInt)in->len };
	Bytef piece[4096];
	int result = Z_OK;

	buf_clear(out);
	assert_int_equal(inflateInit2(&z, 31), Z_OK);
	while (result == Z_OK) {
		z.next_out = piece;
		z.avail_out = sizeof(piece);
		result = inflate(&z, Z_SYNC_FLUSH);
		buf_append(out, piece, sizeof(piece) - z.avail_out);
		if (z.avail_in == 0 && z.avail_out)
			break;
	}
	(void)inflateEnd(&z);
	return result == Z_STREAM_END;
}

static void
what_goes_in_comes_out(void **state)
{
	struct rand_seq rand = { 7 };
	struct buf all = BUF_INIT(MAX_BYTES);
	struct buf packed = BUF_INIT(MAX_BYTES);
	struct buf back = BUF_INIT(MAX_BYTES);
	struct gzip *g = gzip_new(1);

	(void)state;
	assert_non_null(g);
	for (int i = 0; i < 200; i++) {
		size_t begin = all.len;
		size_t n = rand_seq_below(&rand, 20000);
		/* Some of it cannot be compressed. */
		uint64_t letters = i % 3 ? 4 : 256;

		for (size_t j = 0; j < n; j++)
			buf_append_byte(&all, (uint8_t)rand_seq_below(&rand, letters));
		pack(g, GZIP_MORE, str_skip(buf_str(&all), begin), &packed);
		if (i % 10)
			continue;
		pack(g, GZIP_FLUSH, STR(""), &packed);
		assert_false(expand(&packed, &back));
		assert_true(str_eq(buf_str(&back), buf_str(&all)));
		/* Again, with nothing new. */
		pack(g, GZIP_FLUSH, STR(""), &packed);
	}
	pack(g, GZIP_END, STR(""), &packed);
	assert_true(expand(&packed, &back));
	assert_true(str_eq(buf_str(&back), buf_str(&all)));
	gzip_free(g);
	buf_release(&all);
	buf_release(&packed);
	buf_release(&back);
}

static void
nothing_at_all_is_a_whole_file(void **state)
{
	struct buf packed = BUF_INIT(MAX_BYTES);
	struct buf back = BUF_INIT(MAX_BYTES);
	struct gzip *g = gzip_new(9);

	(void)state;
	pack(g, GZIP_END, STR(""), &packed);
	assert_true(expand(&packed, &back));
	assert_int_equal(back.len, 0);
	gzip_free(g);
	gzip_free(NULL);
	buf_release(&packed);
	buf_release(&back);
}

static void
without_memory_there_is_none(void **state)
{
	uint64_t needed;

	(void)state;
	(void)mem_fail_after(0);
	gzip_free(gzip_new(1));
	needed = mem_fail_after(0);
	assert_true(needed > 1);
	for (uint64_t i = 1; i <= needed; i++) {
		(void)mem_fail_after(i);
		assert_null(gzip_new(1));
	}
	(void)mem_fail_after(0);
}

static void
header_tells_whether_gzip_is_taken(void **state)
{
	static const struct str yes[] = {
		STR("gzip"), STR("GZIP"),         STR("deflate, gzip;q=1.0"), STR("x-gzip"),
		STR("*"),    STR("gzip;q=0.001"), STR("br;q=0, gzip"),        STR("*;q=0.1, br;q=0")
	};
	static const struct str no[] = { { NULL, 0 },          STR(""),
					 STR("identity"),      STR("gzip;q=0"),
					 STR("gzip; q=0.000"), STR("*, gzip;q=0"),
					 STR("*;q=0"),         STR("gzipped, br") };

	(void)state;
	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
		assert_true(gzip_accepted(yes[i]));
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		assert_false(gzip_accepted(no[i]));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_goes_in_comes_out),
		cmocka_unit_test(nothing_at_all_is_a_whole_file),
		cmocka_unit_test(without_memory_there_is_none),
		cmocka_unit_test(header_tells_whether_gzip_is_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
