/* What a first gives its standbys: records to the byte, copies, who follows, what is kept. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/big_endian.h"
#include "base/mem.h"
#include "base/metric.h"
#include "fixture.h"
#include "kv/embedded/kept.h"
#include "kv/log.h"

enum {
	LOG_BYTES = 1 << 28,
	ANSWER_BYTES = 64 * 1024,
	ROOM = 1024 * 1024,
};

struct first {
	struct kv_store *store;
	struct buf records;
	struct err err;
	char top[64];
	char path[128];
	char url[160];
	char standby_url[160];
};

static void
first_open(struct first *p, uint64_t log_bytes)
{
	p->store = fixture_open(p->url,
				(struct kv_options){ .create = true, .log_bytes = log_bytes });
}

static int
setup(void **state)
{
	struct first *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	(void)snprintf(p->top, sizeof(p->top), "/tmp/frond-first-XXXXXX");
	assert_non_null(mkdtemp(p->top));
	(void)snprintf(p->path, sizeof(p->path), "%s/first", p->top);
	(void)snprintf(p->url, sizeof(p->url), "embedded:%s", p->path);
	(void)snprintf(p->standby_url, sizeof(p->standby_url), "embedded:%s/standby", p->top);
	buf_init(&p->records, ROOM);
	first_open(p, LOG_BYTES);
	*state = p;
	return 0;
}

static int
teardown(void **state)
{
	struct first *p = *state;

	kv_close(p->store);
	buf_release(&p->records);
	test_remove_tree(p->top);
	free(p);
	return 0;
}

/* So many commits, each of another key. */
static void
write_some(struct first *p, int commits)
{
	for (int i = 0; i < commits; i++) {
		struct kv_tx *tx = begin(p->store);
		char key[16];

		(void)snprintf(key, sizeof(key), "k%03d", i);
		put(tx, key, "value");
		commit(tx);
	}
}

/* The first series of the metric; false if nobody reports it. */
static bool
metric_is_told(const char *name, int64_t *ret)
{
	const struct metric *m = metric_find(name);
	bool told;

	assert_non_null(m);
	metric_hold();
	told = metric_value(m, 0, ret);
	metric_release();
	return told;
}

static void
a_record_is_there_whole_or_not_at_all(void **state)
{
	struct first *p = *state;
	uint8_t header[KV_LOG_HEADER_BYTES] = { 0 };
	uint64_t version = 0;
	struct str payload;
	struct err err = { 0 };

	kept_put_record(&p->records, 7, STR("abc"));
	assert_int_equal(p->records.len, KV_LOG_HEADER_BYTES + 3);
	for (size_t len = 0; len < p->records.len; len++)
		assert_int_equal(
			kv_log_record(str_of(p->records.ptr, len), &version, &payload, &err),
			STATUS_NOT_FOUND);
	/* What is behind it is not looked at. */
	buf_append_byte(&p->records, 'd');
	for (size_t cut = 0; cut <= 1; cut++) {
		struct str records = str_of(p->records.ptr, p->records.len - cut);

		assert_int_equal(kv_log_record(records, &version, &payload, &err), STATUS_OK);
		assert_int_equal(version, 7);
		assert_true(str_eq(payload, STR("abc")));
	}
	/* As long as one may be, of which nothing is there yet, and longer. */
	big_endian_put_32(header + sizeof(uint64_t), KV_LOG_RECORD_BYTES);
	assert_int_equal(kv_log_record(str_of(header, sizeof(header)), &version, &payload, &err),
			 STATUS_NOT_FOUND);
	assert_string_equal(err.text, "");
	big_endian_put_32(header + sizeof(uint64_t), KV_LOG_RECORD_BYTES + 1);
	assert_int_equal(kv_log_record(str_of(header, sizeof(header)), &version, &payload, &err),
			 STATUS_CORRUPT);
	assert_non_null(strstr(err.text, "a record of the log has 67108865 bytes"));
}

static void
a_copy_is_loaded_of_batches_alone(void **state)
{
	static const char empty[KEPT_BATCH_HEADER_BYTES];
	struct first *p = *state;
	struct kv_store *copy;

	assert_int_equal(kv_log_copy_make(p->standby_url, &fixture_shape, &copy, &p->err),
			 STATUS_OK);
	assert_int_equal(kv_log_copy_load(copy, str_of(empty, sizeof(empty) - 1), &p->err),
			 STATUS_CORRUPT);
	assert_non_null(strstr(p->err.text, "a record of the copy is too short"));
	assert_int_equal(kv_log_copy_load(copy, str_of(empty, sizeof(empty)), &p->err), STATUS_OK);
	kv_close(copy);
}

/* How many bytes the first record of a copy has, of which about so many are wanted. */
static size_t
copy_record_bytes(struct first *p, size_t most)
{
	struct kv_log_copy *copy;
	struct str payload;
	uint64_t version;
	bool done = true;

	assert_int_equal(kv_log_copy_begin(p->store, &copy, &p->err), STATUS_OK);
	buf_clear(&p->records);
	assert_int_equal(kv_log_copy_next(copy, most, &p->records, &done, &p->err), STATUS_OK);
	assert_false(done);
	assert_int_equal(kv_log_record(buf_str(&p->records), &version, &payload, &p->err),
			 STATUS_OK);
	kv_log_copy_end(copy);
	return payload.len;
}

static void
a_record_of_a_copy_ends_where_it_has_what_is_wanted(void **state)
{
	struct first *p = *state;
	size_t one;

	write_some(p, 10);
	one = copy_record_bytes(p, KEPT_BATCH_HEADER_BYTES + 1);
	assert_true(one > KEPT_BATCH_HEADER_BYTES + 1);
	assert_int_equal(copy_record_bytes(p, one), one);
	assert_true(copy_record_bytes(p, one + 1) > one);
}

/* What is written beside the place, in a directory, has a path that the system takes. */
static void
a_place_of_a_copy_has_a_path_up_to_the_limit(void **state)
{
	static const char scheme[] = "embedded:", suffix[] = ".copying";
	struct first *p = *state;
	char url[PATH_MAX + 32];
	struct kv_store *copy;

	memset(url, 'x', sizeof(url));
	memcpy(url, "embedded:/", strlen("embedded:/"));
	url[strlen(scheme) + PATH_MAX - strlen(suffix)] = '\0';
	assert_int_equal(kv_log_copy_make(url, &fixture_shape, &copy, &p->err), STATUS_INVALID);
	assert_non_null(strstr(p->err.text, "the path of the store is too long"));
	/* It is no longer the length of the path, but that of the name in it. */
	url[strlen(scheme) + PATH_MAX - strlen(suffix) - 1] = '\0';
	assert_int_equal(kv_log_copy_make(url, &fixture_shape, &copy, &p->err), STATUS_IO);
}

static void
ask_as(struct first *p, const char *name, uint64_t after)
{
	buf_clear(&p->records);
	assert_int_equal(kv_log_read(p->store, str_from_cstr(name), after, ANSWER_BYTES,
				     &p->records, &p->err),
			 STATUS_OK);
}

static int64_t
metric_told(const char *name)
{
	int64_t value = -1;

	assert_true(metric_is_told(name, &value));
	return value;
}

static void
the_standby_that_is_furthest_behind_is_told_of(void **state)
{
	static const char *const behind[] = {
		"frond_followers_behind_versions",
		"frond_followers_behind_seconds",
		"frond_followers_behind_bytes",
	};
	struct first *p = *state;
	uint64_t versions[3];
	int64_t value;

	assert_int_equal(metric_told("frond_followers"), 0);
	for (size_t i = 0; i < 3; i++)
		assert_false(metric_is_told(behind[i], &value));
	for (size_t i = 0; i < 3; i++) {
		write_some(p, 3);
		versions[i] = kv_log_published(p->store);
	}
	ask_as(p, "middle", versions[1]);
	assert_int_equal(metric_told("frond_followers"), 1);
	assert_int_equal(metric_told(behind[0]), versions[2] - versions[1]);
	ask_as(p, "last", versions[0]);
	ask_as(p, "best", versions[2]);
	assert_int_equal(metric_told("frond_followers"), 3);
	assert_int_equal(metric_told(behind[0]), versions[2] - versions[0]);
	assert_true(metric_told(behind[1]) > 0);
	write_some(p, 1);
	assert_true(metric_told(behind[2]) > 0);
	ask_as(p, "last", kv_log_published(p->store));
	ask_as(p, "middle", kv_log_published(p->store));
	assert_int_equal(metric_told(behind[0]), kv_log_published(p->store) - versions[2]);
	ask_as(p, "best", kv_log_published(p->store));
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(metric_told(behind[i]), 0);
	assert_int_equal(metric_told("frond_followers"), 3);
}

static void
the_standby_that_has_been_away_for_longest_makes_room(void **state)
{
	struct first *p = *state;
	uint64_t before = kv_log_published(p->store);
	char name[16];

	for (int i = 0; i < KV_LOG_FOLLOWERS; i++) {
		(void)snprintf(name, sizeof(name), "s%d", i);
		ask_as(p, name, before);
	}
	write_some(p, 1);
	/* All but one in the middle come again. */
	for (int i = KV_LOG_FOLLOWERS; i-- > 0;) {
		(void)snprintf(name, sizeof(name), "s%d", i);
		if (i != KV_LOG_FOLLOWERS / 2)
			ask_as(p, name, kv_log_published(p->store));
	}
	assert_int_equal(metric_told("frond_followers"), KV_LOG_FOLLOWERS);
	assert_true(metric_told("frond_followers_behind_versions") > 0);
	ask_as(p, "new", kv_log_published(p->store));
	assert_int_equal(metric_told("frond_followers"), KV_LOG_FOLLOWERS);
	assert_int_equal(metric_told("frond_followers_behind_versions"), 0);
}

/* The directory of its log is there, so it is kept; the setting is what standbys need. */
static void
a_log_that_is_kept_without_the_setting_is_given_to_nobody(void **state)
{
	struct first *p = *state;
	struct kv_log_copy *copy;

	write_some(p, 1);
	assert_int_equal(kv_compact(p->store, &p->err), STATUS_OK);
	kv_close(p->store);
	first_open(p, 0);
	assert_int_equal(kv_log_read(p->store, STR("one"), kv_log_published(p->store), ANSWER_BYTES,
				     &p->records, &p->err),
			 STATUS_FORBIDDEN);
	assert_int_equal(kv_log_copy_begin(p->store, &copy, &p->err), STATUS_FORBIDDEN);
	assert_non_null(strstr(p->err.text, "keep_log_bytes is not set"));
}

static void
files_of_the_log_go_where_they_are_more_than_is_kept(void **state)
{
	struct first *p = *state;
	struct kept *kept = ((struct emb_store *)p->store)->kept;
	uint64_t *numbers, bytes = 0;
	size_t count, left;

	for (int i = 0; i < 3; i++) {
		write_some(p, 3);
		assert_int_equal(kv_compact(p->store, &p->err), STATUS_OK);
	}
	assert_ok(kept_list(p->path, false, &numbers, &count, &p->err));
	assert_true(count >= 2);
	for (size_t i = 0; i < count; i++)
		bytes += kept_file_bytes(p->path, numbers[i]);
	for (uint64_t less = 0; less <= 1; less++) {
		uint64_t *after;

		kept->log_bytes = bytes - less;
		kv_log_prune(p->store);
		assert_ok(kept_list(p->path, false, &after, &left, &p->err));
		assert_int_equal(left, count - less);
		assert_int_equal(after[0], numbers[less]);
		mem_free(after);
	}
	mem_free(numbers);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(a_record_is_there_whole_or_not_at_all),
		T(a_copy_is_loaded_of_batches_alone),
		T(a_record_of_a_copy_ends_where_it_has_what_is_wanted),
		T(a_place_of_a_copy_has_a_path_up_to_the_limit),
		T(the_standby_that_is_furthest_behind_is_told_of),
		T(the_standby_that_has_been_away_for_longest_makes_room),
		T(a_log_that_is_kept_without_the_setting_is_given_to_nobody),
		T(files_of_the_log_go_where_they_are_more_than_is_kept),
#undef T
	};

	return cmocka_run_group_tests_name("kv_first", tests, NULL, NULL);
}
