/*
 * Images of Lua states (lua/image.h): blocks of a region do not overlap, a region becomes what was
 * noted of it, and a list keeps those that were used last.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/rand.h"
#include "lua/image.h"

enum {
	BLOCKS = 400,
	STEPS = 20000,
	BLOCK_BYTES = 900, /* more than what is used again */
	KEYS = 3,
};

static struct str
key_of(char room[SCRIPT_IMAGE_KEY_BYTES + 1], unsigned number)
{
	(void)snprintf(room, SCRIPT_IMAGE_KEY_BYTES + 1, "%041u", number);
	return str_of(room, SCRIPT_IMAGE_KEY_BYTES);
}

static struct script_image *
new_image(unsigned number)
{
	char room[SCRIPT_IMAGE_KEY_BYTES + 1];
	struct script_image *i = image_new(key_of(room, number));

	assert_non_null(i);
	return i;
}

/* ---- Regions ---- */

/* Each block is filled with a byte of its own. */
struct block {
	uint8_t *at;
	size_t bytes;
	uint8_t fill;
};

struct blocks {
	struct block blocks[BLOCKS];
	uint8_t fill;
};

static void
block_check(const struct block *b)
{
	for (size_t i = 0; i < b->bytes; i++)
		assert_int_equal(b->at[i], b->fill);
}

static void
blocks_check(const struct blocks *all)
{
	for (size_t i = 0; i < BLOCKS; i++)
		block_check(&all->blocks[i]);
}

/* Allocates and frees in no order. */
static void
blocks_step(struct blocks *all, struct region *r, struct rand_seq *rand, unsigned steps)
{
	for (unsigned i = 0; i < steps; i++) {
		struct block *b = &all->blocks[rand_seq_below(rand, BLOCKS)];

		if (b->at && rand_seq_below(rand, 3) == 0) {
			size_t left = 1 + (size_t)rand_seq_below(rand, b->bytes);

			region_shrink(r, b->at, b->bytes, left);
			b->bytes = left;
			continue;
		}
		if (b->at) {
			block_check(b);
			region_free(r, b->at, b->bytes);
			*b = (struct block){ 0 };
			continue;
		}
		b->bytes = 1 + (size_t)rand_seq_below(rand, BLOCK_BYTES);
		b->at = region_alloc(r, b->bytes);
		if (!b->at) {
			b->bytes = 0;
			continue;
		}
		assert_int_equal((uintptr_t)b->at % REGION_UNIT_BYTES,
				 (uintptr_t)r->base % REGION_UNIT_BYTES);
		assert_true(region_has(r, b->at) && region_has(r, b->at + b->bytes - 1));
		assert_true(r->used <= r->most && r->most <= SCRIPT_REGION_BYTES);
		b->fill = ++all->fill;
		memset(b->at, b->fill, b->bytes);
	}
	blocks_check(all);
}

static void
a_region_is_what_was_noted_whatever_happened_in_it(void **state)
{
	struct rand_seq rand = { 1 };
	struct script_image *i = new_image(0);
	static struct blocks noted, all;
	size_t most = 0;

	(void)state;
	blocks_step(&noted, &i->region, &rand, STEPS);
	assert_true(image_note(i, NULL, 7));
	for (int round = 0; round < 20; round++) {
		all = noted;
		/* Blocks that were noted are freed as well, and their memory is used again. */
		blocks_step(&all, &i->region, &rand, STEPS / 10);
		if (round % 2)
			memset(i->region.base, round, SCRIPT_REGION_BYTES);
		most = i->region.most > most ? i->region.most : most;
		image_restore(i);
		blocks_check(&noted);
		assert_int_equal(i->region.used, i->noted.used);
		/* What was touched stays touched. */
		assert_int_equal(i->region.most, most);
	}
	image_free(i);
}

static void
a_region_gives_what_it_has(void **state)
{
	struct script_image *i = new_image(0);
	struct region *r = &i->region;
	char *all, *first, *second;

	(void)state;
	assert_null(region_alloc(r, SCRIPT_REGION_BYTES + 1));
	all = region_alloc(r, SCRIPT_REGION_BYTES);
	assert_non_null(all);
	assert_null(region_alloc(r, 1));
	/* What lies last is room again. */
	region_free(r, all, SCRIPT_REGION_BYTES);
	first = region_alloc(r, 100);
	second = region_alloc(r, 100);
	assert_ptr_equal(first, all);
	/* What lies in front of others is for blocks of its size. */
	region_free(r, first, 100);
	assert_ptr_not_equal(region_alloc(r, 200), first);
	assert_ptr_equal(region_alloc(r, 98), first);
	assert_true(region_fits(100, 98) && !region_fits(100, 96) && !region_fits(100, 113));
	/* What a block needs no more is room again. */
	all = region_alloc(r, 400);
	assert_non_null(region_alloc(r, 1));
	region_shrink(r, all, 400, 100);
	assert_ptr_equal(region_alloc(r, 400 - 112), all + 112);
	region_shrink(r, all, 100, 98);
	assert_false(region_has(r, r->base + SCRIPT_REGION_BYTES));
	assert_false(region_has(r, r->base - 1));
	assert_true(region_has(r, second));
	image_free(i);
}

/* ---- Lists ---- */

/* An image with a state of so many bytes, in the list. */
static void
give(struct script_images *images, unsigned number, size_t bytes)
{
	struct script_image *i = new_image(number);

	assert_non_null(region_alloc(&i->region, bytes));
	assert_true(image_note(i, NULL, bytes));
	script_images_give(images, i);
}

static struct script_image *
take(struct script_images *images, unsigned number)
{
	char room[SCRIPT_IMAGE_KEY_BYTES + 1];

	return script_images_take(images, key_of(room, number));
}

static void
an_image_is_taken_by_its_key(void **state)
{
	struct script_images *images = script_images_new();
	struct script_image *taken[2];

	(void)state;
	assert_non_null(images);
	for (unsigned i = 0; i < KEYS; i++)
		give(images, i, 100);
	give(images, 1, 200);
	/* There may be several of one key, each for who has taken it. */
	taken[0] = take(images, 1);
	taken[1] = take(images, 1);
	assert_non_null(taken[0]);
	assert_non_null(taken[1]);
	assert_null(take(images, 1));
	assert_null(take(images, KEYS));
	script_images_give(images, taken[0]);
	assert_ptr_equal(take(images, 1), taken[0]);
	/* What was not noted is not kept. */
	image_free(taken[0]);
	image_free(taken[1]);
	script_images_give(images, new_image(5));
	assert_null(take(images, 5));
	assert_true(script_images_bytes(images) > 0);
	script_images_clear(images);
	assert_int_equal(script_images_bytes(images), 0);
	assert_null(take(images, 0));
	script_images_free(images);
}

static void
those_that_were_used_longest_ago_go(void **state)
{
	struct script_images *images = script_images_new();
	const size_t bytes = 256 * 1024;
	const unsigned few = SCRIPT_IMAGES_BYTES / (2 * 256 * 1024) / 2;
	struct script_image *used;

	(void)state;
	assert_non_null(images);
	for (unsigned i = 0; i < 4 * few; i++) {
		give(images, i, bytes);
		assert_true(script_images_bytes(images) <= SCRIPT_IMAGES_BYTES);
		used = take(images, 0);
		assert_non_null(used);
		script_images_give(images, used);
	}
	used = take(images, 4 * few - 1);
	assert_non_null(used);
	image_free(used);
	assert_null(take(images, 1));
	script_images_free(images);
}

static void
without_memory_there_is_no_image(void **state)
{
	char room[SCRIPT_IMAGE_KEY_BYTES + 1];
	struct script_image *i;

	(void)state;
	for (unsigned failed = 1; failed <= 2; failed++) {
		(void)mem_fail_only(failed);
		assert_null(image_new(key_of(room, 0)));
	}
	(void)mem_fail_only(1);
	assert_null(script_images_new());
	(void)mem_fail_only(0);
	i = new_image(0);
	assert_non_null(region_alloc(&i->region, 1));
	(void)mem_fail_only(1);
	assert_false(image_note(i, NULL, 1));
	(void)mem_fail_only(0);
	image_free(i);
	image_free(NULL);
	script_images_free(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_region_is_what_was_noted_whatever_happened_in_it),
		cmocka_unit_test(a_region_gives_what_it_has),
		cmocka_unit_test(an_image_is_taken_by_its_key),
		cmocka_unit_test(those_that_were_used_longest_ago_go),
		cmocka_unit_test(without_memory_there_is_no_image),
	};

	return cmocka_run_group_tests_name("image", tests, NULL, NULL);
}
