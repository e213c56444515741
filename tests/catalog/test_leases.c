/* What is stored of leases: keys, and values of this format and of newer ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "catalog/lease.h"
#include "kv/keyspace.h"
#include "kv/tuple.h"

static const char process[] = "0123456789abcdef";

static void
a_lease_comes_back_as_it_was_put(void **state)
{
	const struct lease_record lease = {
		.process = str_of(process, LEASE_PROCESS_BYTES),
		.texts = { STR("a doc"), STR("{\"job\":1}"), STR(""), STR("\xff") },
	};
	struct arena *arena = arena_new(1 << 16);
	struct buf value = BUF_INIT(1 << 16);
	struct lease_record back;
	uint64_t format;

	(void)state;
	lease_record_put(&lease, LEASE_TEXTS_MAX, &value);
	assert_int_equal(buf_status(&value), STATUS_OK);
	assert_int_equal(
		lease_record_parse(buf_str(&value), LEASE_TEXTS_MAX, arena, &back, &format),
		STATUS_OK);
	assert_int_equal(format, LEASE_FORMAT);
	assert_true(str_eq(back.process, lease.process));
	for (size_t i = 0; i < LEASE_TEXTS_MAX; i++)
		assert_true(str_eq(back.texts[i], lease.texts[i]));
	/* Every shorter value is cut off. */
	for (size_t n = 0; n < value.len; n++)
		assert_int_equal(lease_record_parse(str_of(value.ptr, n), LEASE_TEXTS_MAX, arena,
						    &back, &format),
				 STATUS_CORRUPT);
	buf_release(&value);
	arena_free(arena);
}

static void
a_lease_of_a_newer_format_is_told_from_a_broken_one(void **state)
{
	struct arena *arena = arena_new(1 << 16);
	struct buf value = BUF_INIT(1 << 16);
	struct lease_record back;
	uint64_t format;

	(void)state;
	tuple_put_u64(&value, 7);
	tuple_put_bytes(&value, STR("whatever it is"));
	assert_int_equal(
		lease_record_parse(buf_str(&value), LEASE_TEXTS_MAX, arena, &back, &format),
		STATUS_NEWER);
	assert_int_equal(format, 7);
	for (size_t len = LEASE_PROCESS_BYTES - 1; len <= LEASE_PROCESS_BYTES + 1; len++) {
		buf_clear(&value);
		tuple_put_bytes(&value, str_of("0123456789abcdefg", len));
		assert_int_equal(lease_record_parse(buf_str(&value), 0, arena, &back, &format),
				 len == LEASE_PROCESS_BYTES ? STATUS_OK : STATUS_CORRUPT);
		assert_int_equal(format, LEASE_FORMAT);
	}
	buf_release(&value);
	arena_free(arena);
}

/* Processes of older versions read them, and theirs are read. */
static void
keys_and_values_are_the_same_bytes_in_every_version(void **state)
{
	const struct lease_record lease = {
		.process = str_of(process, LEASE_PROCESS_BYTES),
		.texts = { STR("d"), STR("j"), STR(""), STR("x") },
	};
	struct buf out = BUF_INIT(LEASE_KEY_BYTES);

	(void)state;
	assert_int_equal(lease_record_key(LEASE_BEATS, STR("p"), &out), STATUS_OK);
	assert_true(str_eq(buf_str(&out), STR("\x14\x15\x08\x15\x01\x01p\0")));
	assert_int_equal(lease_record_key(LEASE_JOBS, STR("job"), &out), STATUS_OK);
	assert_true(str_eq(buf_str(&out), STR("\x14\x15\x08\x15\x02\x01job\0")));
	assert_int_equal(lease_record_key(LEASE_CHORES, STR("c"), &out), STATUS_OK);
	assert_true(str_eq(buf_str(&out), STR("\x14\x15\x08\x15\x03\x01"
					      "c\0")));
	buf_clear(&out);
	lease_record_put(&lease, LEASE_TEXTS_MAX, &out);
	assert_true(str_eq(buf_str(&out), STR("\x01"
					      "0123456789abcdef\0\x01"
					      "d\0\x01"
					      "j\0\x01\0\x01"
					      "x\0")));
	buf_clear(&out);
	lease_record_put_beat(5, LEASE_MS, &out);
	assert_true(str_eq(buf_str(&out), STR("\x15\x05")));
	buf_release(&out);
}

static void
a_beat_tells_the_time_of_its_process(void **state)
{
	struct buf value = BUF_INIT(LEASE_KEY_BYTES);

	(void)state;
	lease_record_put_beat(5, LEASE_LEAST_MS, &value);
	assert_int_equal(lease_record_beat_ms(buf_str(&value)), LEASE_LEAST_MS);
	/* Of an older process, and of one that is said to be silent for longer than any may be. */
	assert_int_equal(lease_record_beat_ms(STR("\x15\x05")), LEASE_MS);
	assert_int_equal(lease_record_beat_ms(STR("\x15\x05\x17\xff\xff\xff")), LEASE_MS);
	assert_int_equal(lease_record_beat_ms(STR("")), LEASE_MS);
	buf_release(&value);
}

static void
keys_have_names_behind_their_space(void **state)
{
	struct buf prefix = BUF_INIT(LEASE_KEY_BYTES);
	struct buf key = BUF_INIT(LEASE_KEY_BYTES);
	struct buf scratch = BUF_INIT(LEASE_KEY_BYTES);
	struct str name;

	(void)state;
	assert_int_equal(lease_record_key(LEASE_JOBS, (struct str){ NULL, 0 }, &prefix), STATUS_OK);
	assert_int_equal(lease_record_key(LEASE_JOBS, STR("a\0b"), &key), STATUS_OK);
	assert_true(str_starts_with(buf_str(&key), buf_str(&prefix)));
	assert_int_equal(lease_record_key_name(buf_str(&key), prefix.len, &scratch, &name),
			 STATUS_OK);
	assert_true(str_eq(name, STR("a\0b")));
	assert_int_equal(lease_record_key_name(buf_str(&prefix), prefix.len, &scratch, &name),
			 STATUS_CORRUPT);
	buf_release(&prefix);
	buf_release(&key);
	buf_release(&scratch);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lease_comes_back_as_it_was_put),
		cmocka_unit_test(a_lease_of_a_newer_format_is_told_from_a_broken_one),
		cmocka_unit_test(keys_and_values_are_the_same_bytes_in_every_version),
		cmocka_unit_test(a_beat_tells_the_time_of_its_process),
		cmocka_unit_test(keys_have_names_behind_their_space),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
