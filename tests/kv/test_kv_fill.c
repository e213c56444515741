/* Filling behind the end of a log (kv/embedded/fill.h): when, up to where, and what is in it. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kv/embedded/fill.h"
#include "log_file.h"

enum {
	BATCH = 100,
	FIRST_BYTES = 5000, /* of a log before it is filled */
	FAR = 1 << 30,
};

static struct fill *
fill_new(void)
{
	struct fill *f = malloc(sizeof(*f));

	assert_non_null(f);
	fill_init(f);
	return f;
}

/* ---- Where a record ends ---- */

static void
a_record_has_a_header_in_each_block_that_it_is_in(void **state)
{
	static const struct {
		uint64_t at;
		size_t bytes;
		uint64_t behind;
	} cases[] = {
		{ 0, 0, LOG_HEADER_BYTES },
		{ 0, 1, LOG_HEADER_BYTES + 1 },
		{ 5, BATCH, 5 + LOG_HEADER_BYTES + BATCH },
		/* Up to the end of a block, and a byte more. */
		{ 0, LOG_BLOCK_BYTES - LOG_HEADER_BYTES, LOG_BLOCK_BYTES },
		{ 0, LOG_BLOCK_BYTES - LOG_HEADER_BYTES + 1,
		  LOG_BLOCK_BYTES + LOG_HEADER_BYTES + 1 },
		{ 0, 2 * (LOG_BLOCK_BYTES - LOG_HEADER_BYTES), 2 * LOG_BLOCK_BYTES },
		{ 3 * LOG_BLOCK_BYTES, BATCH, 3 * LOG_BLOCK_BYTES + LOG_HEADER_BYTES + BATCH },
		/* A block has room for a header alone, or for none. */
		{ LOG_BLOCK_BYTES - LOG_HEADER_BYTES, BATCH,
		  LOG_BLOCK_BYTES + LOG_HEADER_BYTES + BATCH },
		{ LOG_BLOCK_BYTES - LOG_HEADER_BYTES + 1, BATCH,
		  LOG_BLOCK_BYTES + LOG_HEADER_BYTES + BATCH },
		{ LOG_BLOCK_BYTES - 1, BATCH, LOG_BLOCK_BYTES + LOG_HEADER_BYTES + BATCH },
		{ LOG_BLOCK_BYTES - LOG_HEADER_BYTES - 1, 2,
		  LOG_BLOCK_BYTES + LOG_HEADER_BYTES + 1 },
	};
	struct fill *f = fill_new();

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		f->end = FAR;
		f->at = cases[i].at;
		assert_false(fill_is_short(f, cases[i].bytes));
		if (f->at != cases[i].behind)
			fail_msg("case %zu: %llu", i, (unsigned long long)f->at);
	}
	free(f);
}

static void
a_log_is_short_for_a_small_batch_that_ends_behind_it(void **state)
{
	static const size_t sizes[] = { BATCH, FILL_BATCH_BYTES };
	struct fill *f = fill_new();

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		const uint64_t behind = LOG_HEADER_BYTES + sizes[i];

		f->at = 0;
		f->end = behind - 1;
		assert_true(fill_is_short(f, sizes[i]));
		assert_int_equal(f->at, 0);
		f->end = behind;
		assert_false(fill_is_short(f, sizes[i]));
		assert_int_equal(f->at, behind);
	}
	/* In front of a larger one nothing is filled. */
	f->at = f->end = 0;
	assert_false(fill_is_short(f, FILL_BATCH_BYTES + 1));
	assert_int_equal(f->at, LOG_HEADER_BYTES + FILL_BATCH_BYTES + 1);
	free(f);
}

/* ---- Filling ---- */

static uint64_t
size_of_log(struct log_dir *t, const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(t->fd, name, &st, 0), 0);
	return (uint64_t)st.st_size;
}

/* The log is filled from there to its end, each byte by its place, and by no byte in front. */
static void
assert_filled_from(struct log_dir *t, const char *name, uint64_t from)
{
	uint64_t size = size_of_log(t, name);
	uint8_t page[FILL_PAGE_BYTES], *bytes = malloc(size);
	int fd = openat(t->fd, name, O_RDONLY | O_CLOEXEC);

	assert_non_null(bytes);
	assert_true(fd >= 0);
	assert_int_equal(read(fd, bytes, size), size);
	close(fd);
	fill_make(page);
	for (uint64_t at = 0; at < from; at++)
		assert_int_equal(bytes[at], 'x');
	for (uint64_t at = from; at < size; at++)
		assert_int_equal(bytes[at], page[at % FILL_PAGE_BYTES]);
	free(bytes);
}

static void
write_log(struct log_dir *t, const char *name, size_t bytes)
{
	log_dir_anew(t);
	log_file_add(&t->file, 'x', bytes);
	log_dir_write(t, name, bytes);
}

/* It goes on so far behind the record that is then written, and ends with a page. */
static uint64_t
end_of_filling(uint64_t behind)
{
	return (behind + FILL_BYTES) / FILL_PAGE_BYTES * FILL_PAGE_BYTES;
}

static void
the_newest_log_is_filled_behind_the_next_record(void **state)
{
	static const char name[] = "000010.log";
	static const size_t sizes[] = { 0, 1, FILL_PAGE_BYTES - 1, FILL_PAGE_BYTES, FIRST_BYTES };
	struct log_dir *t = *state;
	struct fill *f = fill_new();

	write_log(t, "000009.log", FIRST_BYTES);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		const uint64_t behind = sizes[i] + LOG_HEADER_BYTES + BATCH;

		fill_reset(f);
		write_log(t, name, sizes[i]);
		assert_true(fill_is_short(f, BATCH));
		fill_append(f, t->dir.dir, 1, BATCH);
		assert_int_equal(f->number, 10);
		assert_int_equal(f->at, behind);
		assert_int_equal(f->end, end_of_filling(behind));
		assert_int_equal(size_of_log(t, name), f->end);
		assert_filled_from(t, name, sizes[i]);
	}
	assert_int_equal(size_of_log(t, "000009.log"), FIRST_BYTES);
	free(f);
}

static void
a_log_that_was_filled_goes_on_where_its_records_end(void **state)
{
	static const char name[] = "000010.log";
	struct log_dir *t = *state;
	struct fill *f = fill_new();
	uint64_t at, end;

	write_log(t, name, FIRST_BYTES);
	fill_append(f, t->dir.dir, 1, BATCH);
	end = f->end;
	while (!fill_is_short(f, FILL_BATCH_BYTES))
		;
	at = f->at;
	assert_true(at <= end && at + LOG_HEADER_BYTES + FILL_BATCH_BYTES + LOG_HEADER_BYTES > end);
	fill_append(f, t->dir.dir, 2, FILL_BATCH_BYTES);
	assert_true(f->at > end);
	assert_int_equal(f->end, end_of_filling(f->at));
	assert_int_equal(size_of_log(t, name), f->end);
	assert_filled_from(t, name, FIRST_BYTES);
	/* A large batch has made it longer: the next record begins at its end. */
	write_log(t, name, f->end + 1);
	at = f->end + 1;
	fill_append(f, t->dir.dir, 2, BATCH);
	assert_int_equal(f->at, at + LOG_HEADER_BYTES + BATCH);
	assert_int_equal(f->end, end_of_filling(f->at));
	assert_filled_from(t, name, at);
	free(f);
}

static void
another_log_is_looked_for_where_the_buffer_has_fewer_entries(void **state)
{
	struct log_dir *t = *state;
	struct fill *f = fill_new();
	uint64_t size;

	write_log(t, "000010.log", FIRST_BYTES);
	fill_append(f, t->dir.dir, 7, BATCH);
	size = size_of_log(t, "000010.log");
	write_log(t, "000012.log", FIRST_BYTES);
	/* As many: it is the same log. */
	fill_append(f, t->dir.dir, 7, BATCH);
	assert_int_equal(f->number, 10);
	assert_int_equal(size_of_log(t, "000012.log"), FIRST_BYTES);
	assert_int_equal(f->end, size_of_log(t, "000010.log"));
	size = f->end;
	fill_append(f, t->dir.dir, 6, BATCH);
	assert_int_equal(f->number, 12);
	assert_int_equal(f->entries, 6);
	assert_int_equal(size_of_log(t, "000010.log"), size);
	assert_filled_from(t, "000012.log", FIRST_BYTES);
	free(f);
}

/* So much is written before it is tried again, whatever the reason. */
static void
assert_has_failed(const struct fill *f)
{
	assert_int_equal(f->number, 0);
	assert_int_equal(f->at, 0);
	assert_int_equal(f->end, FILL_RETRY_BYTES);
}

static void
a_log_that_cannot_be_filled_is_left_for_a_while(void **state)
{
	static const char name[] = "000010.log";
	struct log_dir *t = *state;
	struct fill *f = fill_new();

	fill_append(f, t->dir.dir, 1, BATCH);
	assert_has_failed(f);
	assert_false(fill_is_short(f, BATCH));
	/* It is shorter than it was: it is closed, and cut. */
	fill_reset(f);
	write_log(t, name, FIRST_BYTES);
	fill_append(f, t->dir.dir, 1, BATCH);
	write_log(t, name, f->end - 1);
	fill_append(f, t->dir.dir, 2, BATCH);
	assert_has_failed(f);
	assert_int_equal(size_of_log(t, name),
			 end_of_filling(FIRST_BYTES + LOG_HEADER_BYTES + BATCH) - 1);
	free(f);
}

#define T(name) cmocka_unit_test_setup_teardown(name, log_dir_setup, log_dir_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_record_has_a_header_in_each_block_that_it_is_in),
		cmocka_unit_test(a_log_is_short_for_a_small_batch_that_ends_behind_it),
		T(the_newest_log_is_filled_behind_the_next_record),
		T(a_log_that_was_filled_goes_on_where_its_records_end),
		T(another_log_is_looked_for_where_the_buffer_has_fewer_entries),
		T(a_log_that_cannot_be_filled_is_left_for_a_while),
	};

	return cmocka_run_group_tests_name("fill", tests, NULL, NULL);
}
