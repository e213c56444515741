/*
 * A salvage of a store of which one part is damaged: what is told to be lost is exactly that, also
 * where memory is short.
 */
#include "salvage_store.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/mem.h"
#include "kv/embedded/raw.h"

/* ---- Each part of a table ---- */

/* A table of a copy of the store, and what it has while it is whole. */
struct spoilt {
	char copy[2 * PATH_BYTES], path[3 * PATH_BYTES];
	int dir;
	struct arena *arena;
	struct raw_table whole;
	uint8_t *bytes;
	size_t len;
	struct raw_finder finder;
};

static void
spoilt_begin(struct spoilt *s, const struct salvage_test *t, const char *name)
{
	struct err err = { 0 };
	uint64_t size;

	join(s->copy, sizeof(s->copy), t->dir.dir, ".", "bad");
	join(s->path, sizeof(s->path), s->copy, "/", name);
	copy_store(t, s->copy);
	s->dir = open(s->copy, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(s->dir >= 0);
	s->arena = arena_new(ARENA_BYTES);
	assert_ok(raw_table_survey(s->dir, name, s->arena, &s->whole, &err));
	assert_ok(raw_size(s->dir, name, &size, &err));
	s->len = size;
	s->bytes = arena_alloc(s->arena, s->len);
	assert_ok(raw_read(s->dir, name, 0, s->bytes, &s->len, &err));
	assert_ok(raw_finder_init(&s->finder));
	assert_true(s->whole.block_count > 0 && s->whole.told);
	assert_int_equal(s->whole.gap_count, 0);
}

static void
spoilt_end(struct spoilt *s)
{
	raw_finder_fini(&s->finder);
	arena_free(s->arena);
	close(s->dir);
	remove_directory(s->copy);
}

/* The first key of a block, or the last. */
static void
spoilt_key(struct spoilt *s, const struct raw_block *block, bool last, char ret[KEY_BYTES + 1])
{
	struct str key, value;
	struct raw_entry entry;
	uint32_t bytes;

	assert_true(raw_block_find(&s->finder, str_of(s->bytes + block->at, s->len - block->at),
				   &bytes));
	assert_int_equal(bytes, block->bytes);
	do {
		if (!raw_block_next(&s->finder.walk, &key, &value))
			break;
		assert_true(raw_entry_parse(key, value, &entry));
		key_copy(entry.key, ret);
	} while (last);
}

/* Of the first block, the one behind it, or the last: told to the byte, and to the key. */
static void
a_block_that_is_gone_is_told_with_the_keys_beside_it(void **state)
{
	static char names[FILES][NAME_BYTES];
	struct salvage_test *t = *state;
	size_t count = list_files(t->dir.dir, names);

	for (size_t i = 0; i < count; i++) {
		struct spoilt s;

		if (!strstr(names[i], ".sst"))
			continue;
		spoilt_begin(&s, t, names[i]);
		for (size_t b = 0; b < s.whole.block_count; b++) {
			const struct raw_block *block = &s.whole.blocks[b];
			char first[KEY_BYTES + 1], last[KEY_BYTES + 1], text[TEXT_BYTES];
			const struct loss *l = &t->losses[0];

			if (b > 1 && b + 1 < s.whole.block_count)
				continue;
			flip(s.path, (off_t)(block->at + block->bytes / 2));
			salvage(t, s.copy);
			flip(s.path, (off_t)(block->at + block->bytes / 2));
			assert_int_equal(t->untold, 0);
			assert_int_equal(t->loss_count, 1);
			assert_true(l->has_keys && !l->endless);
			snprintf(
				text, sizeof(text), "%.40s is damaged from byte %llu to %llu",
				names[i], (unsigned long long)block->at,
				(unsigned long long)(block->at + block->bytes + RAW_TRAILER_BYTES));
			assert_string_equal(l->text, text);
			if (b > 0)
				spoilt_key(&s, block - 1, true, first);
			else
				spoilt_key(&s, block, false, first);
			if (b > 0 || s.whole.range_count == 0)
				assert_string_equal(l->after, first);
			if (b + 1 < s.whole.block_count)
				spoilt_key(&s, block + 1, false, last);
			else
				spoilt_key(&s, block, true, last);
			if (b + 1 < s.whole.block_count || s.whole.range_count == 0)
				assert_string_equal(l->until, last);
		}
		spoilt_end(&s);
	}
}

/* Behind the data: deletions of ranges, without which keys come back, and what nobody misses. */
static void
what_lies_behind_the_data_of_a_table_is_needed_for_deletions_alone(void **state)
{
	static char names[FILES][NAME_BYTES];
	struct salvage_test *t = *state;
	size_t count = list_files(t->dir.dir, names), ranges = 0, deleted = 0;

	/* Some have been written since. */
	for (size_t n = DELETED_KEYS; n < DELETED_KEYS_END; n++)
		deleted += !t->expected[n].there;
	assert_true(deleted > 0);
	for (size_t i = 0; i < count; i++) {
		const struct raw_block *end;
		struct spoilt s;

		if (!strstr(names[i], ".sst"))
			continue;
		spoilt_begin(&s, t, names[i]);
		end = &s.whole.blocks[s.whole.block_count - 1];
		for (size_t at = end->at + end->bytes + RAW_TRAILER_BYTES; at < s.len;) {
			struct str key, value;
			struct raw_entry entry;
			uint32_t bytes;
			char text[TEXT_BYTES];

			if (!raw_block_find(&s.finder, str_of(s.bytes + at, s.len - at), &bytes)) {
				at++;
				continue;
			}
			assert_true(raw_block_next(&s.finder.walk, &key, &value));
			flip(s.path, (off_t)(at + bytes / 2));
			salvage(t, s.copy);
			flip(s.path, (off_t)(at + bytes / 2));
			assert_int_equal(t->untold, 0);
			if (raw_entry_parse(key, value, &entry) && entry.type == RAW_DELETE_RANGE) {
				const struct loss *l = &t->losses[0];

				ranges++;
				assert_int_equal(t->loss_count, 1);
				assert_true(l->has_keys && !l->endless);
				snprintf(text, sizeof(text),
					 "%.40s has lost %llu deletions of ranges", names[i],
					 (unsigned long long)s.whole.told_ranges);
				assert_int_equal(strncmp(l->text, text, strlen(text)), 0);
				assert_int_equal(t->other + t->missing, deleted);
				/* From the table's first key to behind its last one. */
				assert_true(strcmp(l->after, "t/000800") <= 0);
				assert_true(strcmp(l->until, "t/000815") >= 0);
			} else if (!s.whole.range_count) {
				assert_int_equal(t->loss_count, 0);
				assert_int_equal(t->missing + t->other, 0);
			}
			at += bytes + RAW_TRAILER_BYTES;
		}
		spoilt_end(&s);
	}
	assert_int_equal(ranges, 1);
}

/* ---- Memory ---- */

static enum status
compare_with_memory(const char *url, bool has_format, void *arg, struct err *err)
{
	(void)mem_fail_only(0);
	return compare_all(url, has_format, arg, err);
}

/* Whichever allocation fails: nothing is made, or as much is told to be lost as otherwise. */
static void
check_short_memory(struct salvage_test *t, const char *source)
{
	struct kv_salvage_how how = salvage_how(t);
	char from[2 * PATH_BYTES], target[2 * PATH_BYTES], to[2 * PATH_BYTES];
	uint64_t shortages, failed = 0;
	size_t losses;

	salvage(t, source);
	losses = t->loss_count;
	how.finish = compare_with_memory;
	join(from, sizeof(from), "embedded", ":", source);
	join(target, sizeof(target), t->dir.dir, ".", "new");
	join(to, sizeof(to), "embedded", ":", target);
	remove_directory(target);
	/* Those at first are of what is read, those later of pairs. */
	for (uint64_t n = 1;; n += 1 + n / 10) {
		struct kv_salvage_sum sum;
		struct err err = { 0 };
		enum status status;

		t->told = 0;
		t->loss_count = t->missing = t->other = t->untold = 0;
		shortages = mem_shortages();
		(void)mem_fail_only(n);
		status = kv_salvage(from, to, &how, &sum, &err);
		(void)mem_fail_only(0);
		if (status != STATUS_OK) {
			assert_true(status == STATUS_NOMEM || status == STATUS_LIMIT);
			assert_int_not_equal(access(target, F_OK), 0);
			failed++;
			continue;
		}
		assert_int_equal(t->untold, 0);
		assert_true(t->loss_count >= losses);
		remove_directory(target);
		if (mem_shortages() == shortages)
			break;
	}
	assert_true(failed > 0);
}

static void
short_memory_loses_nothing_silently(void **state)
{
	static char names[FILES][NAME_BYTES];
	struct salvage_test *t = *state;
	size_t count = list_files(t->dir.dir, names);
	char copy[2 * PATH_BYTES], path[3 * PATH_BYTES];
	struct stat st;

	check_short_memory(t, t->dir.dir);
	/* The same of a store in which all kinds of files are damaged. */
	join(copy, sizeof(copy), t->dir.dir, ".", "bad");
	copy_store(t, copy);
	for (size_t i = 0; i < count; i++) {
		const bool table = strstr(names[i], ".sst");

		join(path, sizeof(path), copy, "/", names[i]);
		assert_int_equal(stat(path, &st), 0);
		if (st.st_size && (table || strstr(names[i], ".log")))
			flip(path, st.st_size / 3);
	}
	for (size_t i = 0; i < count; i++)
		if (strstr(names[i], "MANIFEST-")) {
			join(path, sizeof(path), copy, "/", names[i]);
			assert_int_equal(truncate(path, 10), 0);
			flip(path, 5);
		}
	check_short_memory(t, copy);
	assert_true(t->loss_count >= 3);
	remove_directory(copy);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_block_that_is_gone_is_told_with_the_keys_beside_it),
		cmocka_unit_test(
			what_lies_behind_the_data_of_a_table_is_needed_for_deletions_alone),
		cmocka_unit_test(short_memory_loses_nothing_silently),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, salvage_setup, salvage_teardown);
}
