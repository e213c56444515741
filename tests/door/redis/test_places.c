/* Places as scores, and HyperLogLogs as bytes: numbers that Redis has. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "door/redis/wire/geohash.h"
#include "door/redis/wire/hyperloglog.h"

static const struct geohash_place palermo = { 13.361389, 38.115556 };
static const struct geohash_place catania = { 15.087269, 37.502669 };

/* ---- Places ---- */

static void
places_have_the_scores_of_redis(void **state)
{
	char text[GEOHASH_TEXT_BYTES];

	(void)state;
	assert_true(geohash_encode(palermo) == UINT64_C(3479099956230698));
	assert_true(geohash_encode(catania) == UINT64_C(3479447370796909));
	geohash_text(palermo, text);
	assert_memory_equal(text, "sqc8b49rny0", GEOHASH_TEXT_BYTES);
	geohash_text(catania, text);
	assert_memory_equal(text, "sqdtr74hyu0", GEOHASH_TEXT_BYTES);
	assert_true(fabs(geohash_distance(geohash_decode(3479099956230698.0),
					  geohash_decode(3479447370796909.0)) -
			 166274.1516) < 0.0001);
}

static void
scores_that_are_no_places_are_decoded(void **state)
{
	static const double scores[] = {
		0, -5, 1e30, -1e30, 9223372036854775808.0, 4503599627370496
	};

	(void)state;
	for (size_t i = 0; i < sizeof(scores) / sizeof(*scores); i++) {
		struct geohash_place at = geohash_decode(scores[i]);

		assert_true(fabs(at.longitude) <= GEOHASH_LONGITUDE_MOST);
		assert_true(fabs(at.latitude) <= GEOHASH_LATITUDE_MOST);
	}
}

static void
a_search_looks_where_places_are(void **state)
{
	const struct geohash_shape circle = { .center = { 15, 37 }, .radius = 200, .unit = 1000 };
	const struct geohash_shape box = {
		.center = { 15, 37 }, .is_box = true, .width = 400, .height = 400, .unit = 1000
	};
	struct geohash_box boxes[GEOHASH_BOXES];
	double distance;

	(void)state;
	assert_true(geohash_within(&circle, palermo, &distance));
	assert_true(fabs(distance - 190442.4) < 1);
	assert_true(geohash_within(&box, palermo, &distance));
	assert_false(geohash_within(&circle, (struct geohash_place){ 15, 39 }, &distance));
	for (unsigned i = 0; i < 2; i++) {
		unsigned count = geohash_boxes(i ? &box : &circle, boxes);
		double score = (double)geohash_encode(palermo);
		bool found = false;

		assert_in_range(count, 1, GEOHASH_BOXES);
		for (unsigned k = 0; k < count; k++)
			found |= score >= boxes[k].from && score < boxes[k].to;
		assert_true(found);
	}
}

/* ---- HyperLogLogs ---- */

enum {
	ROOM = HLL_BYTES + HLL_SPARE_BYTES,
};

static uint8_t bytes[2][ROOM], scratch[HLL_REGISTERS], registers[HLL_REGISTERS];

static struct hll
hll_make(unsigned which)
{
	struct hll h = { .bytes = bytes[which], .room = ROOM, .scratch = scratch };

	hll_init(&h);
	return h;
}

static enum hll_change
hll_add_number(struct hll *h, unsigned n, size_t most)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u", n);

	return hll_add(h, str_of(text, (size_t)len), most);
}

static uint64_t
hll_count_of(const struct hll *h)
{
	memset(registers, 0, sizeof(registers));
	assert_true(hll_merge(h, registers));
	return hll_count(registers);
}

static void
what_was_added_is_counted_as_by_redis(void **state)
{
	struct hll h = hll_make(0);

	(void)state;
	assert_true(hll_is_sound(str_of(h.bytes, h.len)));
	assert_int_equal(hll_count_of(&h), 0);
	for (unsigned i = 0; i < 1000; i++)
		(void)hll_add_number(&h, i, 3000);
	assert_in_range(hll_count_of(&h), 980, 1020);
	assert_int_equal(hll_add_number(&h, 5, 3000), HLL_SAME);
}

/* The form that one has makes no difference to what it counts. */
static void
sparse_and_dense_ones_are_the_same(void **state)
{
	struct hll sparse = hll_make(0), dense = hll_make(1);

	(void)state;
	assert_true(hll_make_dense(&dense));
	for (unsigned i = 0; i < 2000; i++) {
		assert_int_equal(hll_add_number(&sparse, i, HLL_BYTES),
				 hll_add_number(&dense, i, HLL_BYTES));
		if (i % 500 == 0)
			assert_int_equal(hll_count_of(&sparse), hll_count_of(&dense));
	}
	assert_false(hll_is_dense(&sparse));
	assert_true(hll_make_dense(&sparse));
	assert_memory_equal(sparse.bytes + HLL_HEADER_BYTES, dense.bytes + HLL_HEADER_BYTES,
			    HLL_DENSE_BYTES - HLL_HEADER_BYTES);
}

static void
one_that_grows_becomes_dense(void **state)
{
	struct hll h = hll_make(0);
	unsigned i = 0;

	(void)state;
	while (!hll_is_dense(&h)) {
		assert_true(h.len <= 300);
		(void)hll_add_number(&h, i++, 300);
	}
	assert_int_equal(h.len, HLL_DENSE_BYTES);
	assert_true(i > 50);
}

static void
damaged_ones_are_found(void **state)
{
	struct hll h = hll_make(0);

	(void)state;
	for (unsigned i = 0; i < 100; i++)
		(void)hll_add_number(&h, i, 3000);
	assert_false(hll_is_sound(STR("HYLL")));
	assert_false(hll_is_sound(str_of(h.bytes + 1, h.len - 1)));
	/* Runs that are too few, and too many. */
	h.bytes[--h.len] = 0;
	memset(registers, 0, sizeof(registers));
	assert_false(hll_merge(&h, registers));
	assert_false(hll_make_dense(&h));
	h.bytes[h.len++] = 0x7f;
	h.bytes[h.len++] = 0xff;
	assert_false(hll_merge(&h, registers));
	/* 255 registers, and a run that lacks its second byte: with 0 there, it would be whole. */
	h = hll_make(0);
	memcpy(h.bytes + HLL_HEADER_BYTES, "\x40\xfe\x7f", 4);
	h.len = HLL_HEADER_BYTES + 3;
	assert_false(hll_merge(&h, registers));
	assert_int_equal(hll_add_number(&h, 1, 3000), HLL_UNSOUND);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places_have_the_scores_of_redis),
		cmocka_unit_test(scores_that_are_no_places_are_decoded),
		cmocka_unit_test(a_search_looks_where_places_are),
		cmocka_unit_test(what_was_added_is_counted_as_by_redis),
		cmocka_unit_test(sparse_and_dense_ones_are_the_same),
		cmocka_unit_test(one_that_grows_becomes_dense),
		cmocka_unit_test(damaged_ones_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
