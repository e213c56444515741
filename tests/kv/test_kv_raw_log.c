/*
 * Logs, read without RocksDB (kv/embedded/raw.h): logs that the test makes byte by byte, cut at
 * each length and spoiled at each byte.
 */
#include "fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/mem.h"
#include "file_faults.h"
#include "kv/embedded/fill.h"
#include "kv/embedded/log_record.h"
#include "kv/embedded/raw.h"
#include "log_file.h"

enum {
	ARENA_BYTES = 64 * 1024 * 1024,
	TAG_LOG_DATA = 3, /* of a batch, beside the types of entries */
	TAG_NOOP = 13,
	BATCHES = 6,
	MANY_ENTRIES = 300,
	TEXT_BYTES = 64,
	HOLES_TEXT_BYTES = 200,
};

struct logs_test {
	struct fixture dir;
	int fd;
	struct log_file file;
	struct arena *arena;
	struct raw_log log;
	char holes[HOLES_TEXT_BYTES];
};

static int
logs_setup(void **state)
{
	struct logs_test *t = calloc(1, sizeof(*t));

	assert_non_null(t);
	fixture_make_dir(&t->dir);
	t->fd = open(t->dir.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(t->fd >= 0);
	log_file_init(&t->file);
	*state = t;
	return 0;
}

static int
logs_teardown(void **state)
{
	struct logs_test *t = *state;

	arena_free(t->arena);
	log_file_fini(&t->file);
	close(t->fd);
	fixture_remove_dir(&t->dir);
	free(t);
	return 0;
}

static void
log_anew(struct logs_test *t)
{
	log_file_fini(&t->file);
	log_file_init(&t->file);
}

/* Reads the first `len` bytes of the log; `holes` then has "begin-end", with a "!" if it is cut. */
static void
log_look(struct logs_test *t, size_t len)
{
	struct err err = { 0 };

	arena_free(t->arena);
	t->arena = arena_new(ARENA_BYTES);
	log_file_write(&t->file, t->fd, "1.log", len);
	assert_ok(raw_log_read(t->fd, "1.log", t->arena, &t->log, &err));
	t->holes[0] = '\0';
	for (size_t i = 0; i < t->log.hole_count; i++) {
		const struct raw_hole *h = &t->log.holes[i];
		const size_t n = strlen(t->holes);

		snprintf(t->holes + n, sizeof(t->holes) - n, "%s%llu-%llu%s", i ? " " : "",
			 (unsigned long long)h->begin, (unsigned long long)h->end,
			 h->cut ? "!" : "");
	}
}

static void
assert_hole(const struct logs_test *t, size_t begin, size_t end, bool cut)
{
	char expected[TEXT_BYTES];

	snprintf(expected, sizeof(expected), "%zu-%zu%s", begin, end, cut ? "!" : "");
	assert_string_equal(t->holes, expected);
}

/* The number of the first entry of batch `i`, each of which has three. */
static uint64_t
sequence_of(size_t i)
{
	return 100 + 3 * i;
}

static struct str
key_of(size_t i, char room[TEXT_BYTES])
{
	snprintf(room, TEXT_BYTES, "key %zu", i);
	return str_from_cstr(room);
}

/* A batch that has so many bytes of a value. */
static void
add_numbered(struct logs_test *t, size_t i, size_t value_bytes)
{
	AUTO(buf_release) struct buf b = BUF_INIT(LOG_FILE_MOST_BYTES);
	AUTO(buf_release) struct buf value = BUF_INIT(LOG_FILE_MOST_BYTES);
	char room[TEXT_BYTES];

	for (size_t n = 0; n < value_bytes; n++)
		buf_append_byte(&value, (uint8_t)('A' + (n + i) % 26));
	log_batch_begin(&b, sequence_of(i), 3);
	log_batch_entry(&b, RAW_PUT, key_of(i, room),
			str_of(value.ptr ? value.ptr : "", value_bytes));
	log_batch_entry(&b, RAW_DELETE, STR("deleted"), (struct str){ 0 });
	log_batch_entry(&b, RAW_DELETE_RANGE, STR("from"), STR("to"));
	log_file_add_batch(&t->file, buf_str(&b));
}

/* Entries are those of all batches up to `count` but one. */
static void
assert_batches_but(const struct logs_test *t, size_t count, size_t gone)
{
	const struct raw_entry *e = t->log.entries;

	assert_int_equal(t->log.batches, count - (gone < count));
	assert_int_equal(t->log.count, 3 * t->log.batches);
	for (size_t i = 0; i < count; i++) {
		char room[TEXT_BYTES];

		if (i == gone)
			continue;
		assert_true(str_eq(e[0].key, key_of(i, room)));
		assert_true(e[0].sequence == sequence_of(i) && e[0].type == RAW_PUT);
		if (e[0].value.len)
			assert_int_equal(e[0].value.ptr[0], 'A' + i % 26);
		assert_true(str_eq(e[1].key, STR("deleted")) && e[1].type == RAW_DELETE);
		assert_true(e[1].sequence == sequence_of(i) + 1);
		assert_true(str_eq(e[2].key, STR("from")) && str_eq(e[2].value, STR("to")));
		assert_true(e[2].sequence == sequence_of(i) + 2 && e[2].type == RAW_DELETE_RANGE);
		e += 3;
	}
}

static void
a_log_that_is_cut_has_the_batches_before(void **state)
{
	struct logs_test *t = *state;
	const struct log_file_batch *all = t->file.batches;

	for (size_t i = 0; i < BATCHES; i++)
		add_numbered(t, i, 5 * i);
	for (size_t len = 0; len <= t->file.bytes.len; len++) {
		size_t count = 0;

		while (count < BATCHES && all[count].end <= len)
			count++;
		log_look(t, len);
		assert_batches_but(t, count, BATCHES);
		/* Less than a header is nothing. */
		if (count < BATCHES && len >= all[count].begin + LOG_HEADER_BYTES)
			assert_hole(t, all[count].begin, len, true);
		else
			assert_string_equal(t->holes, "");
	}
}

static void
a_byte_that_is_spoiled_costs_its_batch(void **state)
{
	struct logs_test *t = *state;
	const struct log_file_batch *all = t->file.batches;

	for (size_t i = 0; i < BATCHES; i++)
		add_numbered(t, i, 5 * i);
	for (size_t i = 0, at = 0; at < t->file.bytes.len; at++) {
		uint8_t *bytes = (uint8_t *)t->file.bytes.ptr;
		size_t told;

		if (at == all[i].end)
			i++;
		bytes[at] ^= 0xff;
		log_look(t, t->file.bytes.len);
		assert_batches_but(t, BATCHES, i);
		/* What says that it is longer than the file looks as if it were cut. */
		told = all[i].begin + LOG_HEADER_BYTES + log_record_length(bytes + all[i].begin);
		assert_hole(t, all[i].begin, all[i].end,
			    i + 1 == BATCHES && told > t->file.bytes.len);
		bytes[at] ^= 0xff;
	}
}

/* What a log may have behind its last batch. */
static void
filling_and_zeros_at_the_end_are_nothing(void **state)
{
	struct logs_test *t = *state;
	uint8_t page[FILL_PAGE_BYTES];
	size_t end;

	fill_make(page);
	for (unsigned zeros = 0; zeros <= 20; zeros += 10)
		for (size_t filled = 0; filled <= 20; filled += 10) {
			log_anew(t);
			add_numbered(t, 0, 10);
			log_file_add(&t->file, 0, zeros);
			buf_append(&t->file.bytes, page, filled);
			log_look(t, t->file.bytes.len);
			assert_batches_but(t, 1, 1);
			assert_string_equal(t->holes, "");
			/* In front of a batch, or of something else, it is damage. */
			end = t->file.bytes.len;
			log_file_add(&t->file, 'x', 10);
			log_look(t, t->file.bytes.len);
			assert_batches_but(t, 1, 1);
			assert_int_equal(t->log.hole_count, 1);
			assert_int_equal(t->log.holes[0].begin, t->file.batches[0].end);
			assert_int_equal(t->log.holes[0].end, end + 10);
			t->file.bytes.len = end;
			add_numbered(t, 1, 10);
			log_look(t, t->file.bytes.len);
			assert_batches_but(t, 2, 2);
			if (end > t->file.batches[0].end)
				assert_hole(t, t->file.batches[0].end, end, false);
			else
				assert_string_equal(t->holes, "");
		}
	/* Filling first, then zeros. */
	log_anew(t);
	add_numbered(t, 0, 10);
	end = t->file.bytes.len;
	buf_append(&t->file.bytes, page, 10);
	log_file_add(&t->file, 0, 10);
	log_look(t, t->file.bytes.len);
	assert_int_equal(t->log.hole_count, 1);
	assert_int_equal(t->log.holes[0].begin, end);
}

/* How many bytes of a value make a batch end so many bytes in front of the end of its block. */
static size_t
value_up_to(struct logs_test *t, size_t left)
{
	size_t wanted = LOG_BLOCK_BYTES - left - t->file.bytes.len % LOG_BLOCK_BYTES;
	struct logs_test *other;
	void *room = NULL;
	size_t bytes;

	(void)logs_setup(&room);
	other = room;
	/* Three bytes say how long the value is, from 16 KB on. */
	add_numbered(other, 0, 20000);
	bytes = other->file.bytes.len - 20000;
	(void)logs_teardown(&room);
	assert_true(wanted > bytes + 17000);
	return wanted - bytes;
}

static void
the_end_of_a_block_that_is_too_short_for_a_header_is_empty(void **state)
{
	struct logs_test *t = *state;

	for (size_t left = 0; left <= LOG_HEADER_BYTES + 2; left++) {
		size_t at;

		log_anew(t);
		add_numbered(t, 0, value_up_to(t, left));
		assert_int_equal(t->file.bytes.len, LOG_BLOCK_BYTES - left);
		add_numbered(t, 1, 30);
		add_numbered(t, 2, 30);
		log_look(t, t->file.bytes.len);
		assert_batches_but(t, 3, 3);
		assert_string_equal(t->holes, "");
		/* The file ends with the block, or within the next record's header there. */
		log_look(t, LOG_BLOCK_BYTES);
		assert_batches_but(t, 1, 1);
		if (left < LOG_HEADER_BYTES)
			assert_string_equal(t->holes, "");
		else
			assert_hole(t, LOG_BLOCK_BYTES - left, LOG_BLOCK_BYTES, true);
		/* A batch on either side of it is spoiled. */
		for (size_t i = 0; i < 3; i++) {
			at = t->file.batches[i].end - 1;
			t->file.bytes.ptr[at] ^= 1;
			log_look(t, t->file.bytes.len);
			assert_batches_but(t, 3, i);
			assert_hole(t, t->file.batches[i].begin,
				    i < 2 ? t->file.batches[i + 1].begin : t->file.bytes.len,
				    false);
			t->file.bytes.ptr[at] ^= 1;
		}
	}
}

/* Each record of a batch that goes through several blocks is spoiled, and lost, in turn. */
static void
a_batch_of_several_records_needs_all_of_them(void **state)
{
	struct logs_test *t = *state;
	const struct log_file_batch *all = t->file.batches;
	const size_t places[] = { 0,
				  100,
				  LOG_BLOCK_BYTES,
				  LOG_BLOCK_BYTES + LOG_RECORD_TYPE,
				  LOG_BLOCK_BYTES + 500,
				  2 * LOG_BLOCK_BYTES + 5,
				  2 * LOG_BLOCK_BYTES + 900 };

	add_numbered(t, 0, 20);
	add_numbered(t, 1, 2 * LOG_BLOCK_BYTES + 1000);
	add_numbered(t, 2, 20);
	log_look(t, t->file.bytes.len);
	assert_batches_but(t, 3, 3);
	assert_string_equal(t->holes, "");
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		const size_t in = places[i] < LOG_BLOCK_BYTES ? all[1].begin : 0;
		const size_t at = in + places[i];

		t->file.bytes.ptr[at] ^= 0x10;
		log_look(t, t->file.bytes.len);
		assert_batches_but(t, 3, 1);
		assert_hole(t, all[1].begin, all[2].begin, false);
		/* It is the last one: damaged, not cut, though its first records are whole. */
		log_look(t, all[1].end);
		assert_batches_but(t, 1, 1);
		assert_int_equal(t->log.hole_count, 1);
		assert_false(t->log.holes[0].cut && at % LOG_BLOCK_BYTES > 5);
		t->file.bytes.ptr[at] ^= 0x10;
	}
	for (size_t block = 1; block <= 2; block++)
		for (size_t more = 0; more < 40; more++) {
			log_look(t, block * LOG_BLOCK_BYTES + more);
			assert_batches_but(t, 1, 1);
			assert_hole(t, all[1].begin, block * LOG_BLOCK_BYTES + more, true);
		}
}

static void
only_records_of_a_batch_that_has_begun_count(void **state)
{
	AUTO(buf_release) struct buf b = BUF_INIT(1000);
	struct logs_test *t = *state;
	size_t at;

	log_batch_begin(&b, sequence_of(0), 3);
	log_batch_entry(&b, RAW_PUT, STR("key 0"), STR("A"));
	log_batch_entry(&b, RAW_DELETE, STR("deleted"), (struct str){ 0 });
	log_batch_entry(&b, RAW_DELETE_RANGE, STR("from"), STR("to"));
	for (unsigned type = 0; type <= UINT8_MAX; type++) {
		log_anew(t);
		log_file_add_record(&t->file, (uint8_t)type, buf_str(&b));
		log_look(t, t->file.bytes.len);
		assert_batches_but(t, type == LOG_RECORD_FULL, 1);
		if (type == LOG_RECORD_FULL)
			assert_string_equal(t->holes, "");
		else
			assert_int_equal(t->log.hole_count, 1);
	}
	/* Nor is it the middle of one. */
	for (unsigned type = 0; type <= UINT8_MAX; type++) {
		const bool middle = type == LOG_FILE_MIDDLE;

		if (type >= LOG_RECORD_FULL && type <= LOG_RECORD_LAST && !middle)
			continue;
		log_anew(t);
		log_file_add_record(&t->file, LOG_RECORD_FIRST, str_of(b.ptr, 15));
		log_file_add_record(&t->file, (uint8_t)type, str_of(b.ptr + 15, 5));
		log_file_add_record(&t->file, LOG_RECORD_LAST, str_skip(buf_str(&b), 20));
		log_look(t, t->file.bytes.len);
		assert_batches_but(t, middle, 1);
	}
	/* One that has begun ends where the next one begins. */
	for (uint8_t type = LOG_RECORD_FULL; type <= LOG_RECORD_FIRST; type++) {
		log_anew(t);
		log_file_add_record(&t->file, LOG_RECORD_FIRST, STR("the beginning of something"));
		at = t->file.bytes.len;
		log_file_add_record(&t->file, type, buf_str(&b));
		if (type == LOG_RECORD_FIRST)
			log_file_add_record(&t->file, LOG_RECORD_LAST, STR(""));
		log_look(t, t->file.bytes.len);
		assert_batches_but(t, 1, 1);
		assert_hole(t, 0, at, false);
	}
	/* What comes behind one that has ended is no part of it. */
	log_anew(t);
	log_file_add_record(&t->file, LOG_RECORD_FULL, buf_str(&b));
	at = t->file.bytes.len;
	log_file_add_record(&t->file, LOG_FILE_MIDDLE, STR("\15\15\15"));
	log_file_add_record(&t->file, LOG_RECORD_LAST, STR("\15\15\15"));
	log_look(t, t->file.bytes.len);
	assert_batches_but(t, 1, 1);
	assert_hole(t, at, t->file.bytes.len, true);
}

/* A batch of all that one can have, cut at each length: whole where an entry ends. */
static void
a_batch_counts_if_it_ends_where_an_entry_does(void **state)
{
	AUTO(buf_release) struct buf b = BUF_INIT(1000);
	struct logs_test *t = *state;
	size_t ends[8], counts[8], n = 0, next = 0;

	log_batch_begin(&b, 7, 5);
	ends[n] = b.len, counts[n++] = 0;
	log_batch_entry(&b, RAW_PUT, STR("put"), STR("value"));
	ends[n] = b.len, counts[n++] = 1;
	log_batch_entry(&b, TAG_LOG_DATA, STR("data"), (struct str){ 0 });
	ends[n] = b.len, counts[n++] = 1;
	buf_append_byte(&b, TAG_NOOP);
	ends[n] = b.len, counts[n++] = 1;
	log_batch_entry(&b, RAW_DELETE_SINGLE, STR("single"), (struct str){ 0 });
	ends[n] = b.len, counts[n++] = 2;
	log_batch_entry(&b, RAW_DELETE_RANGE, STR("from"), STR("to"));
	ends[n] = b.len, counts[n++] = 3;
	log_batch_entry(&b, RAW_DELETE, STR("deleted"), (struct str){ 0 });
	ends[n] = b.len, counts[n++] = 4;
	for (size_t len = 0; len <= b.len; len++) {
		const bool whole = len == ends[next];

		log_anew(t);
		log_file_add_record(&t->file, LOG_RECORD_FULL, str_of(b.ptr, len));
		log_look(t, t->file.bytes.len);
		assert_int_equal(t->log.hole_count, !whole);
		assert_int_equal(t->log.count, whole ? counts[next] : 0);
		assert_int_equal(t->log.batches, whole && counts[next]);
		next += whole;
	}
	assert_int_equal(next, n);
	assert_int_equal(t->log.entries[3].sequence, 10);
	/* Types that nobody writes. */
	for (unsigned type = 0; type <= UINT8_MAX; type++) {
		const bool known = raw_type_known(type) || type == TAG_LOG_DATA || type == TAG_NOOP;

		log_anew(t);
		buf_clear(&b);
		log_batch_begin(&b, 7, 1);
		buf_append_byte(&b, (uint8_t)type);
		if (type != TAG_NOOP)
			buf_append(&b, "\1k", 2);
		if (type == RAW_PUT || type == RAW_DELETE_RANGE)
			buf_append(&b, "\1v", 2);
		log_file_add_record(&t->file, LOG_RECORD_FULL, buf_str(&b));
		log_look(t, t->file.bytes.len);
		assert_int_equal(t->log.hole_count, !known);
		assert_int_equal(t->log.count, raw_type_known(type));
		/* What follows one does not make it good. */
		if (known)
			continue;
		b.len -= 2;
		buf_append_byte(&b, TAG_NOOP);
		log_anew(t);
		log_file_add_record(&t->file, LOG_RECORD_FULL, buf_str(&b));
		log_look(t, t->file.bytes.len);
		assert_int_equal(t->log.hole_count, 1);
	}
}

static void
batches_count_in_the_order_of_their_numbers(void **state)
{
	AUTO(buf_release) struct buf b = BUF_INIT(1000);
	struct logs_test *t = *state;

	add_numbered(t, 1, 10);
	/* One from before is a value of somebody's, or a log that is used again. */
	add_numbered(t, 0, 10);
	log_look(t, t->file.bytes.len);
	assert_int_equal(t->log.batches, 1);
	assert_hole(t, t->file.batches[1].begin, t->file.batches[1].end, true);
	add_numbered(t, 2, 10);
	log_look(t, t->file.bytes.len);
	assert_int_equal(t->log.batches, 2);
	assert_hole(t, t->file.batches[1].begin, t->file.batches[1].end, false);
	assert_true(t->log.entries[3].sequence == sequence_of(2));
	/* An empty one has the number of what follows. */
	log_anew(t);
	add_numbered(t, 0, 10);
	log_batch_begin(&b, sequence_of(1), 0);
	log_file_add_batch(&t->file, buf_str(&b));
	add_numbered(t, 1, 10);
	log_look(t, t->file.bytes.len);
	assert_batches_but(t, 2, 2);
	assert_string_equal(t->holes, "");
}

/* A value with the bytes of a log in it, in a batch that is spoiled: what they say is not taken. */
static void
records_in_the_value_of_a_spoiled_one_are_not_looked_for(void **state)
{
	AUTO(buf_release) struct buf b = BUF_INIT(10000), inner = BUF_INIT(1000);
	struct logs_test *t = *state;
	size_t at;

	add_numbered(t, 50, 10);
	buf_append_str(&inner, buf_str(&t->file.bytes));
	log_anew(t);
	add_numbered(t, 0, 10);
	log_batch_begin(&b, sequence_of(1), 1);
	log_batch_entry(&b, RAW_PUT, STR("key"), buf_str(&inner));
	log_batch_entry(&b, RAW_DELETE, STR("the end"), (struct str){ 0 });
	/* It ends anywhere, or up to ten bytes in front of the end of its block. */
	for (size_t left = 0; left <= 11; left++) {
		log_anew(t);
		if (left < 11) {
			const size_t more = LOG_HEADER_BYTES + b.len;

			add_numbered(t, 0, value_up_to(t, left + more));
		} else {
			add_numbered(t, 0, 10);
		}
		log_file_add_batch(&t->file, buf_str(&b));
		add_numbered(t, 2, 10);
		log_look(t, t->file.bytes.len);
		assert_int_equal(t->log.batches, 3);
		at = t->file.batches[1].end - 1;
		t->file.bytes.ptr[at] ^= 1;
		log_look(t, t->file.bytes.len);
		assert_int_equal(t->log.batches, 2);
		assert_hole(t, t->file.batches[1].begin, t->file.batches[2].begin, false);
		assert_true(t->log.entries[3].sequence == sequence_of(2));
	}
}

/* Whether the file ends inside a record is told by the first one that is not whole. */
static void
what_is_not_whole_at_the_end_is_cut_if_it_tells_of_more(void **state)
{
	AUTO(buf_release) struct buf rest = BUF_INIT(LOG_FILE_MOST_BYTES);
	struct logs_test *t = *state;

	/* A header alone, with no payload and a wrong checksum. */
	add_numbered(t, 0, 10);
	buf_append(&t->file.bytes, "xxxx\0\0\1", LOG_HEADER_BYTES);
	log_look(t, t->file.bytes.len);
	assert_hole(t, t->file.batches[0].end, t->file.bytes.len, false);
	t->file.bytes.ptr[t->file.bytes.len - 3] = 1;
	log_look(t, t->file.bytes.len);
	assert_hole(t, t->file.batches[0].end, t->file.bytes.len, true);
	/* Such a header at the end of its block, behind the beginning of a batch. */
	for (size_t left = LOG_HEADER_BYTES - 1; left <= LOG_HEADER_BYTES; left++) {
		log_anew(t);
		buf_clear(&rest);
		while (rest.len < LOG_BLOCK_BYTES - LOG_HEADER_BYTES - left)
			buf_append_byte(&rest, 'r');
		log_file_add_record(&t->file, LOG_RECORD_FIRST, buf_str(&rest));
		buf_append(&t->file.bytes, "xxxx\0\0\3", left);
		log_file_add(&t->file, 'x', 20);
		log_look(t, t->file.bytes.len);
		assert_hole(t, 0, t->file.bytes.len, left < LOG_HEADER_BYTES);
	}
}

static void
a_log_is_read_whole_or_memory_is_short(void **state)
{
	AUTO(buf_release) struct buf b = BUF_INIT(10000);
	struct logs_test *t = *state;
	size_t failed = 0;

	for (size_t i = 0; i < BATCHES; i++)
		add_numbered(t, i, 1000);
	t->file.bytes.ptr[t->file.batches[1].begin + 20] ^= 1;
	t->file.bytes.ptr[t->file.batches[BATCHES - 1].begin + 20] ^= 1;
	log_look(t, t->file.bytes.len);
	assert_int_equal(t->log.batches, BATCHES - 2);
	for (uint64_t n = 1;; n++) {
		uint64_t shortages = mem_shortages();
		struct err err = { 0 };
		enum status status;

		arena_free(t->arena);
		t->arena = arena_new(ARENA_BYTES);
		(void)mem_fail_only(n);
		status = raw_log_read(t->fd, "1.log", t->arena, &t->log, &err);
		(void)mem_fail_only(0);
		if (mem_shortages() == shortages)
			break;
		assert_int_equal(status, STATUS_NOMEM);
		failed++;
	}
	assert_true(failed > 1);
	assert_int_equal(t->log.batches, BATCHES - 2);
	assert_int_equal(t->log.hole_count, 2);
	/* An arena that has too little room for all of it, or for one batch of many entries. */
	for (size_t limit = 0;; limit += 50) {
		struct err err = { 0 };
		enum status status;

		arena_free(t->arena);
		t->arena = arena_new(limit);
		status = raw_log_read(t->fd, "1.log", t->arena, &t->log, &err);
		if (status == STATUS_OK)
			break;
		assert_int_equal(status, STATUS_NOMEM);
	}
	assert_int_equal(t->log.batches, BATCHES - 2);
	assert_int_equal(t->log.hole_count, 2);
	log_batch_begin(&b, 1, MANY_ENTRIES);
	for (size_t i = 0; i < MANY_ENTRIES; i++)
		log_batch_entry(&b, RAW_DELETE, STR("k"), (struct str){ 0 });
	log_anew(t);
	log_file_add_batch(&t->file, buf_str(&b));
	log_look(t, t->file.bytes.len);
	for (size_t limit = 0;; limit += 500) {
		struct err err = { 0 };
		enum status status;

		arena_free(t->arena);
		t->arena = arena_new(limit);
		status = raw_log_read(t->fd, "1.log", t->arena, &t->log, &err);
		if (status == STATUS_OK)
			break;
		assert_int_equal(status, STATUS_NOMEM);
	}
	assert_int_equal(t->log.count, MANY_ENTRIES);
}

static void
files_that_cannot_be_read_are_told_apart(void **state)
{
	struct logs_test *t = *state;
	struct err err = { 0 };
	struct raw_table table;
	uint8_t bytes[8];
	size_t len;
	int fd;

	t->arena = arena_new(ARENA_BYTES);
	assert_int_equal(raw_log_read(t->fd, "none", t->arena, &t->log, &err), STATUS_NOT_FOUND);
	assert_int_equal(raw_table_survey(t->fd, "none", t->arena, &table, &err), STATUS_NOT_FOUND);
	len = sizeof(bytes);
	assert_int_equal(raw_read(t->fd, "none", 0, bytes, &len, &err), STATUS_NOT_FOUND);
	assert_int_equal(symlinkat("itself", t->fd, "itself"), 0);
	assert_int_equal(raw_log_read(t->fd, "itself", t->arena, &t->log, &err), STATUS_IO);
	len = sizeof(bytes);
	assert_int_equal(raw_read(t->fd, "itself", 0, bytes, &len, &err), STATUS_IO);
	/* Larger than RocksDB makes them. */
	fd = openat(t->fd, "large", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)LOG_MOST_BYTES + 1), 0);
	assert_int_equal(raw_log_read(t->fd, "large", t->arena, &t->log, &err), STATUS_CORRUPT);
	assert_int_equal(raw_table_survey(t->fd, "large", t->arena, &table, &err), STATUS_CORRUPT);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(write(fd, "abcdef", 6), 6);
	close(fd);
	for (size_t at = 0; at <= 7; at++)
		for (size_t wanted = 0; wanted <= sizeof(bytes); wanted++) {
			const size_t there = at < 6 ? 6 - at : 0;

			memset(bytes, '!', sizeof(bytes));
			len = wanted;
			assert_ok(raw_read(t->fd, "large", at, bytes, &len, &err));
			assert_int_equal(len, wanted < there ? wanted : there);
			if (len)
				assert_memory_equal(bytes, &"abcdef"[at], len);
			if (len < sizeof(bytes))
				assert_int_equal(bytes[len], '!');
		}
}

/* Pages that the disk does not give are zeros; the others come. */
static void
pages_that_the_disk_does_not_give_are_zeros(void **state)
{
	enum {
		PAGE = 4096,
		BYTES = 5 * PAGE + 100,
		AT = 50,
	};
	struct logs_test *t = *state;
	uint8_t *got = malloc(BYTES);
	struct err err = { 0 };
	size_t len;

	assert_non_null(got);
	for (size_t i = 0; i < BYTES; i++)
		log_file_add(&t->file, (uint8_t)(1 + i % 200), 1);
	log_file_write(&t->file, t->fd, "file", BYTES);
	for (size_t spoilt = 0; spoilt < BYTES; spoilt += 700) {
		const size_t begin = spoilt < AT ? 0 : (spoilt - AT) / PAGE * PAGE;

		len = BYTES;
		file_faults_spoil(spoilt, spoilt + 1);
		assert_ok(raw_read(t->fd, "file", AT, got, &len, &err));
		assert_int_equal(file_faults_end(), spoilt >= AT);
		assert_int_equal(len, BYTES - AT);
		for (size_t i = 0; i < len; i++) {
			const bool gone = spoilt >= AT && i >= begin && i < begin + PAGE;

			assert_int_equal(got[i], gone ? 0 : 1 + (i + AT) % 200);
		}
	}
	/* Little at a time, and interrupted. */
	len = BYTES;
	file_faults_interrupt();
	assert_ok(raw_read(t->fd, "file", AT, got, &len, &err));
	assert_true(file_faults_end());
	assert_int_equal(len, BYTES - AT);
	free(got);
}

#define LOGS(name) cmocka_unit_test_setup_teardown(name, logs_setup, logs_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		LOGS(a_log_that_is_cut_has_the_batches_before),
		LOGS(a_byte_that_is_spoiled_costs_its_batch),
		LOGS(filling_and_zeros_at_the_end_are_nothing),
		LOGS(the_end_of_a_block_that_is_too_short_for_a_header_is_empty),
		LOGS(a_batch_of_several_records_needs_all_of_them),
		LOGS(only_records_of_a_batch_that_has_begun_count),
		LOGS(a_batch_counts_if_it_ends_where_an_entry_does),
		LOGS(batches_count_in_the_order_of_their_numbers),
		LOGS(records_in_the_value_of_a_spoiled_one_are_not_looked_for),
		LOGS(what_is_not_whole_at_the_end_is_cut_if_it_tells_of_more),
		LOGS(a_log_is_read_whole_or_memory_is_short),
		LOGS(files_that_cannot_be_read_are_told_apart),
		LOGS(pages_that_the_disk_does_not_give_are_zeros),
	};

	return cmocka_run_group_tests_name("raw_log", tests, NULL, NULL);
}
