/*
 * Reading on in a log that is kept (kv/embedded/kept.h): logs that the test makes byte by byte, of
 * several files, cut and spoiled everywhere.
 */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "file_faults.h"
#include "kv/embedded/kept.h"
#include "kv/embedded/log_record.h"
#include "kv/log.h"
#include "log_file.h"

enum {
	BATCHES = 5,
	FIRST_VERSION = 10,
	TEXT_BYTES = 64,
	MOST = 1 << 20, /* of what is read at once */
	FILES = 3,
	VERSIONS_EACH = 4,
	LAST_VERSION = FIRST_VERSION + FILES * VERSIONS_EACH - 1,
};

/* A log of several files, the first of which is in the archive. */
static void
make_kept(struct log_dir *t)
{
	static const char *const names[FILES] = { KEPT_ARCHIVE "/000007.log", "000009.log",
						  "000010.log" };
	uint64_t version = FIRST_VERSION;

	for (size_t i = 0; i < FILES; i++) {
		log_dir_anew(t);
		/* A batch of RocksDB's own, which makes no version. */
		log_file_add_batch(&t->file, STR("123456789012"));
		for (size_t n = 0; n < VERSIONS_EACH; n++, version++) {
			log_dir_add_version(t, version, version % 5 ? 10 : LOG_BLOCK_BYTES);
			/* A mark: the version is the same. */
			if (version % 3 == 0)
				log_dir_add_version(t, version, 1);
		}
		log_dir_write(t, names[i], t->file.bytes.len);
	}
}

/* Reads at most so many bytes behind the place, and returns how many versions there were. */
static size_t
read_on(struct log_dir *t, struct kept_place *place, uint64_t published, size_t most)
{
	AUTO(buf_release) struct buf got = BUF_INIT(MOST);
	uint64_t version = place->version;
	struct str rest;
	size_t count = 0;

	assert_ok(kept_read(t->dir.dir, place, published, most, &got, &t->err));
	for (rest = buf_str(&got); rest.len; count++) {
		const uint8_t *header = (const uint8_t *)rest.ptr;
		uint32_t len, crc;

		assert_true(rest.len >= KV_LOG_HEADER_BYTES);
		len = (uint32_t)header[8] << 24 | (uint32_t)header[9] << 16 |
		      (uint32_t)header[10] << 8 | header[11];
		crc = (uint32_t)header[12] << 24 | (uint32_t)header[13] << 16 |
		      (uint32_t)header[14] << 8 | header[15];
		assert_int_equal(header[7], version + 1 + count);
		rest = str_skip(rest, KV_LOG_HEADER_BYTES);
		assert_true(len <= rest.len);
		assert_int_equal(kept_crc(str_of(rest.ptr, len)), crc);
		assert_true(log_link_of(rest.ptr, len).version == version + 1 + count);
		rest = str_skip(rest, len);
	}
	assert_true(place->version == version + count);
	return count;
}

static void
what_follows_a_version_is_read_in_order(void **state)
{
	struct log_dir *t = *state;

	make_kept(t);
	for (uint64_t from = FIRST_VERSION; from <= LAST_VERSION; from++)
		for (uint64_t published = from; published <= LAST_VERSION; published++) {
			struct kept_place place = { .version = from };

			assert_int_equal(read_on(t, &place, published, MOST), published - from);
			/* The place is behind it: what has been published since follows. */
			assert_int_equal(read_on(t, &place, LAST_VERSION, MOST),
					 LAST_VERSION - published);
			place = (struct kept_place){ .version = from };
			for (uint64_t v = from; v < published; v++)
				assert_int_equal(read_on(t, &place, published, 1), 1);
			assert_int_equal(read_on(t, &place, published, 1), 0);
		}
}

static void
a_version_that_the_log_has_not_is_told_of(void **state)
{
	AUTO(buf_release) struct buf got = BUF_INIT(MOST);
	struct log_dir *t = *state;
	struct kept_place place = { .version = FIRST_VERSION - 1 };

	make_kept(t);
	assert_int_equal(kept_read(t->dir.dir, &place, LAST_VERSION, MOST, &got, &t->err),
			 STATUS_NOT_FOUND);
	place.version = LAST_VERSION + 5;
	assert_int_equal(kept_read(t->dir.dir, &place, LAST_VERSION + 9, MOST, &got, &t->err),
			 STATUS_NOT_FOUND);
	/* A version is missing in between, at the end of a file or within it. */
	log_dir_anew(t);
	log_dir_add_version(t, FIRST_VERSION + 5, 10);
	log_dir_add_version(t, FIRST_VERSION + 7, 10);
	log_dir_write(t, "000009.log", t->file.bytes.len);
	place.version = FIRST_VERSION + 6;
	assert_int_equal(kept_read(t->dir.dir, &place, LAST_VERSION, MOST, &got, &t->err),
			 STATUS_NOT_FOUND);
	assert_non_null(strstr(t->err.text, "does not reach back to version 16"));
	place.version = FIRST_VERSION + 2;
	assert_int_equal(kept_read(t->dir.dir, &place, LAST_VERSION, MOST, &got, &t->err),
			 STATUS_NOT_FOUND);
	assert_int_equal(place.version, FIRST_VERSION + 3);
	assert_non_null(strstr(t->err.text, "behind version 13: what follows there is version 15"));
	place.version = FIRST_VERSION + 5;
	assert_int_equal(kept_read(t->dir.dir, &place, LAST_VERSION, MOST, &got, &t->err),
			 STATUS_NOT_FOUND);
	assert_int_equal(place.version, FIRST_VERSION + 5);
}

/* A commit without a link: an older frond has written it. */
static void
a_commit_that_does_not_tell_what_was_before_ends_the_log(void **state)
{
	AUTO(buf_release) struct buf got = BUF_INIT(MOST), b = BUF_INIT(1000);
	struct kept_place place = { .version = FIRST_VERSION };
	struct log_dir *t = *state;

	log_dir_add_version(t, FIRST_VERSION, 10);
	log_batch_begin(&b, 100, 2);
	log_batch_entry(&b, 1, STR("key"), STR("a value that is longer than a link is"));
	log_batch_version_end(&b, FIRST_VERSION + 1);
	log_file_add_batch(&t->file, buf_str(&b));
	log_dir_write(t, "000007.log", t->file.bytes.len);
	assert_int_equal(kept_read(t->dir.dir, &place, FIRST_VERSION + 1, MOST, &got, &t->err),
			 STATUS_NOT_FOUND);
	assert_int_equal(got.len, 0);
}

/* The newest file is written to while it is read. */
static void
a_log_is_read_as_far_as_it_is_whole(void **state)
{
	struct log_dir *t = *state;

	for (size_t i = 0; i < BATCHES; i++)
		log_dir_add_version(t, FIRST_VERSION + i, 10);
	log_dir_write(t, "000007.log", t->file.batches[0].end);
	for (size_t len = t->file.batches[0].end; len <= t->file.bytes.len; len++) {
		struct kept_place place = { .version = FIRST_VERSION };
		size_t whole = 1;

		while (whole < BATCHES && t->file.batches[whole].end <= len)
			whole++;
		log_dir_write(t, "000007.log", len);
		assert_int_equal(read_on(t, &place, FIRST_VERSION + BATCHES - 1, MOST), whole - 1);
		log_dir_write(t, "000007.log", t->file.bytes.len);
		assert_int_equal(read_on(t, &place, FIRST_VERSION + BATCHES - 1, MOST),
				 BATCHES - whole);
	}
	/* A byte is wrong: nothing behind it is read. */
	for (size_t i = 1, at = t->file.batches[0].end; at < t->file.bytes.len; at++) {
		struct kept_place place = { .version = FIRST_VERSION };

		if (at == t->file.batches[i].end)
			i++;
		t->file.bytes.ptr[at] ^= 0x7f;
		log_dir_write(t, "000007.log", t->file.bytes.len);
		assert_int_equal(read_on(t, &place, FIRST_VERSION + BATCHES - 1, MOST), i - 1);
		t->file.bytes.ptr[at] ^= 0x7f;
	}
}

/* Records that belong to no batch, of which some were begun and not ended. */
static void
parts_of_batches_are_not_read(void **state)
{
	struct log_dir *t = *state;

	for (uint8_t type = 0; type <= 6; type++)
		for (int begun = 0; begun <= 1; begun++) {
			struct kept_place place = { .version = FIRST_VERSION };
			AUTO(buf_release) struct buf b = BUF_INIT(1000);

			if (type == LOG_FILE_MIDDLE)
				continue;
			log_dir_anew(t);
			log_dir_add_version(t, FIRST_VERSION, 10);
			log_batch_begin(&b, 100, 2);
			log_batch_link(&b, FIRST_VERSION, 1, "history");
			log_batch_version_end(&b, FIRST_VERSION + 1);
			if (begun)
				log_file_add_record(&t->file, LOG_RECORD_FIRST, str_of(b.ptr, 15));
			log_file_add_record(&t->file, type,
					    begun ? str_skip(buf_str(&b), 15) : buf_str(&b));
			log_dir_write(t, "000007.log", t->file.bytes.len);
			assert_int_equal(read_on(t, &place, FIRST_VERSION + 1, MOST),
					 begun ? type == LOG_RECORD_LAST : type == LOG_RECORD_FULL);
		}
}

static void
a_file_that_has_moved_or_gone_is_looked_for(void **state)
{
	struct log_dir *t = *state;
	struct kept_place place = { .version = FIRST_VERSION + VERSIONS_EACH }, behind;

	make_kept(t);
	assert_int_equal(read_on(t, &place, LAST_VERSION, 1), 1);
	assert_int_equal(place.number, 9);
	assert_int_equal(renameat(t->fd, "000009.log", t->fd, KEPT_ARCHIVE "/000009.log"), 0);
	behind = place;
	assert_int_equal(read_on(t, &place, LAST_VERSION, 1), 1);
	/* The version is in another file by now. */
	behind.number = 8;
	assert_int_equal(read_on(t, &behind, LAST_VERSION, 1), 1);
	assert_int_equal(behind.number, 9);
	/* A file that cannot be opened. */
	kept_remove(t->dir.dir, 9);
	assert_int_equal(symlinkat("000009.log", t->fd, "000009.log"), 0);
	t->err = (struct err){ 0 };
	{
		AUTO(buf_release) struct buf got = BUF_INIT(MOST);

		assert_int_equal(kept_read(t->dir.dir, &place, LAST_VERSION, MOST, &got, &t->err),
				 STATUS_IO);
		place.number = 0;
		assert_int_equal(kept_read(t->dir.dir, &place, LAST_VERSION, MOST, &got, &t->err),
				 STATUS_IO);
	}
}

static void
reading_on_without_memory_fails(void **state)
{
	struct log_dir *t = *state;
	size_t failed = 0;

	make_kept(t);
	for (uint64_t n = 1;; n++) {
		AUTO(buf_release) struct buf got = BUF_INIT(MOST);
		struct kept_place place = { .version = FIRST_VERSION };
		uint64_t shortages = mem_shortages();
		enum status status;

		(void)mem_fail_only(n);
		status = kept_read(t->dir.dir, &place, LAST_VERSION, MOST, &got, &t->err);
		(void)mem_fail_only(0);
		if (mem_shortages() == shortages)
			break;
		/* What of a record did not fit counts as not there yet. */
		assert_true(status == STATUS_OK || status == STATUS_NOMEM ||
			    status == STATUS_NOT_FOUND);
		assert_true(status != STATUS_OK || place.version <= LAST_VERSION);
		failed++;
	}
	assert_true(failed > 2);
}

static void
files_of_a_log_are_listed_in_order_and_once(void **state)
{
	struct log_dir *t = *state;
	uint64_t *numbers;
	size_t count;

	for (unsigned live = 0; live <= 1; live++) {
		assert_ok(kept_list(t->dir.dir, live, &numbers, &count, &t->err));
		assert_int_equal(count, 0);
		mem_free(numbers);
	}
	log_dir_add_version(t, FIRST_VERSION, 100);
	log_dir_write(t, "000010.log", 40);
	log_dir_write(t, "000009.log", 30);
	log_dir_write(t, "9.logs", 30);
	log_dir_write(t, ".log", 30);
	log_dir_write(t, "LOG", 30);
	for (uint64_t i = 200; i > 7; i -= 2) {
		char name[TEXT_BYTES];

		snprintf(name, sizeof(name), KEPT_ARCHIVE "/%06u.log", (unsigned)i);
		log_dir_write(t, name, 20);
	}
	assert_ok(kept_list(t->dir.dir, false, &numbers, &count, &t->err));
	assert_int_equal(count, 97);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(numbers[i], 8 + 2 * i);
	mem_free(numbers);
	assert_ok(kept_list(t->dir.dir, true, &numbers, &count, &t->err));
	assert_int_equal(count, 98);
	assert_int_equal(numbers[0], 8);
	assert_int_equal(numbers[1], 9);
	assert_int_equal(numbers[2], 10);
	mem_free(numbers);
	/* The file itself counts, where there is one, and what is behind a place. */
	assert_int_equal(kept_file_bytes(t->dir.dir, 10), 40);
	assert_int_equal(kept_file_bytes(t->dir.dir, 12), 20);
	assert_int_equal(kept_file_bytes(t->dir.dir, 11), 0);
	for (uint64_t at = 0; at <= 22; at++) {
		struct kept_place place = { .number = 198, .at = at };

		assert_int_equal(kept_bytes_behind(t->dir.dir, &place),
				 20 + (at < 20 ? 20 - at : 0));
	}
	for (uint64_t n = 1; n <= 3; n++) {
		(void)mem_fail_only(n);
		assert_int_equal(kept_list(t->dir.dir, true, &numbers, &count, &t->err),
				 n <= 2 ? STATUS_NOMEM : STATUS_OK);
		(void)mem_fail_only(0);
	}
	mem_free(numbers);
	kept_remove(t->dir.dir, 10);
	assert_int_equal(faccessat(t->fd, "000010.log", F_OK, 0), 0);
	assert_int_not_equal(faccessat(t->fd, KEPT_ARCHIVE "/000010.log", F_OK, 0), 0);
}

/* The path of the store with slashes behind it, so long that `rest` more bytes are one too many. */
static void
path_too_long(const struct log_dir *t, size_t rest, char ret[PATH_MAX])
{
	size_t len = (size_t)snprintf(ret, PATH_MAX, "%s", t->dir.dir);

	assert_true(len + rest < PATH_MAX);
	memset(ret + len, '/', PATH_MAX - rest - len);
	ret[PATH_MAX - rest] = '\0';
}

/* Cut to the longest that there may be, they would be others, which are there. */
static void
paths_that_are_too_long_are_not_looked_at(void **state)
{
	static const char file[] = "/000007.log", archive[] = "/" KEPT_ARCHIVE;
	struct log_dir *t = *state;
	char path[PATH_MAX];
	uint64_t *numbers;
	size_t count;
	int fd;

	log_dir_add_version(t, FIRST_VERSION, 100);
	log_dir_write(t, "000007.log", 30);
	log_dir_write(t, "000007.lo", 20);
	path_too_long(t, strlen(file), path);
	errno = 0;
	assert_int_equal(kept_open_file(path, 7), -1);
	assert_int_equal(errno, ENAMETOOLONG);
	assert_int_equal(kept_file_bytes(path, 7), 0);
	path[strlen(path) - 1] = '\0';
	fd = kept_open_file(path, 7);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(kept_file_bytes(path, 7), 30);
	/* Nor is what is not there, and would be too long in the archive. */
	assert_int_equal(kept_open_file(path, 8), -1);
	assert_int_equal(errno, ENAMETOOLONG);
	path_too_long(t, strlen(archive), path);
	assert_int_equal(kept_list(path, false, &numbers, &count, &t->err), STATUS_INVALID);
	assert_non_null(strstr(t->err.text, "the path of the store is too long"));
	path[strlen(path) - 1] = '\0';
	assert_ok(kept_list(path, true, &numbers, &count, &t->err));
	assert_int_equal(count, 1);
	mem_free(numbers);
	/* A file in the place of a directory. */
	(void)snprintf(path, sizeof(path), "%s/000007.log", t->dir.dir);
	assert_int_equal(kept_list(path, true, &numbers, &count, &t->err), STATUS_IO);
	assert_int_equal(kept_open_file(path, 7), -1);
	assert_int_equal(errno, ENOTDIR);
}

struct told {
	char text[200];
	enum status status;
};

static enum status
tell_key(void *arg, const struct kv_log_key *key)
{
	struct told *t = arg;
	const size_t n = strlen(t->text);

	snprintf(t->text + n, sizeof(t->text) - n, "%.*s-%.*s@%llu,%llu ", STR_ARG(key->key),
		 (int)key->end.len, key->end.ptr ? key->end.ptr : "",
		 (unsigned long long)key->version, (unsigned long long)key->time_ms);
	return t->status;
}

static void
keys_that_a_batch_has_written_are_told(void **state)
{
	const struct log_link link = { .version = 5, .time_ms = 9 };
	AUTO(buf_release) struct buf b = BUF_INIT(1000);
	struct told told = { .status = STATUS_OK };
	struct log_dir *t = *state;
	size_t ends[5], next = 0;

	ends[0] = 0;
	log_batch_entry(&b, 1, STR("put"), STR("value"));
	ends[1] = b.len;
	log_batch_entry(&b, 0, STR("gone"), (struct str){ 0 });
	ends[2] = b.len;
	log_batch_entry(&b, 15, STR("a"), STR("b"));
	ends[3] = b.len;
	log_batch_version_end(&b, 5);
	ends[4] = b.len;
	for (size_t len = 0; len <= b.len; len++) {
		enum status status;

		told.text[0] = '\0';
		status = kept_tell_keys(str_of(b.ptr, len), &link, tell_key, &told, &t->err);
		assert_int_equal(status, len == ends[next] ? STATUS_OK : STATUS_CORRUPT);
		next += status == STATUS_OK;
	}
	assert_int_equal(next, 5);
	assert_string_equal(told.text, "put-@5,9 gone-@5,9 a-b@5,9 ");
	/* A key without bytes is one of the engine's, which has none. */
	told.text[0] = '\0';
	assert_ok(kept_tell_keys(STR("\0\0"), &link, tell_key, &told, &t->err));
	assert_string_equal(told.text, "");
	assert_int_equal(kept_tell_keys(STR("\2\1k"), &link, tell_key, &told, &t->err),
			 STATUS_CORRUPT);
	told.status = STATUS_LIMIT;
	assert_int_equal(kept_tell_keys(buf_str(&b), &link, tell_key, &told, &t->err),
			 STATUS_LIMIT);
	assert_string_equal(told.text, "put-@5,9 ");
}

static void
reads_that_are_interrupted_go_on(void **state)
{
	struct log_dir *t = *state;
	struct kept_place place = { .version = FIRST_VERSION };

	for (size_t i = 0; i < BATCHES; i++)
		log_dir_add_version(t, FIRST_VERSION + i, LOG_BLOCK_BYTES / 2);
	log_dir_write(t, "000007.log", t->file.bytes.len);
	file_faults_interrupt();
	assert_int_equal(read_on(t, &place, FIRST_VERSION + BATCHES - 1, MOST), BATCHES - 1);
	assert_true(file_faults_end());
}

/* What cannot be read once is not there yet, and is read anew. */
static void
a_read_that_fails_once_is_made_again(void **state)
{
	struct log_dir *t = *state;
	unsigned n;

	for (size_t i = 0; i < BATCHES; i++)
		log_dir_add_version(t, FIRST_VERSION + i, LOG_BLOCK_BYTES / 2);
	log_dir_write(t, "000007.log", t->file.bytes.len);
	for (n = 1;; n++) {
		struct kept_place place = { .version = FIRST_VERSION };
		AUTO(buf_release) struct buf got = BUF_INIT(MOST);

		file_faults_fail(n);
		assert_ok(kept_read(t->dir.dir, &place, FIRST_VERSION + 3, MOST, &got, &t->err));
		if (!file_faults_end())
			break;
		assert_int_equal(place.version, FIRST_VERSION + 3);
	}
	assert_true(n > 3);
}

#define T(name) cmocka_unit_test_setup_teardown(name, log_dir_setup, log_dir_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(what_follows_a_version_is_read_in_order),
		T(a_version_that_the_log_has_not_is_told_of),
		T(a_commit_that_does_not_tell_what_was_before_ends_the_log),
		T(a_log_is_read_as_far_as_it_is_whole),
		T(parts_of_batches_are_not_read),
		T(a_file_that_has_moved_or_gone_is_looked_for),
		T(reading_on_without_memory_fails),
		T(files_of_a_log_are_listed_in_order_and_once),
		T(paths_that_are_too_long_are_not_looked_at),
		T(keys_that_a_batch_has_written_are_told),
		T(reads_that_are_interrupted_go_on),
		T(a_read_that_fails_once_is_made_again),
	};

	return cmocka_run_group_tests_name("log_read", tests, NULL, NULL);
}
