/*
 * What is looked at in a store's logs before RocksDB reads them, and what is cut off them
 * (directory.h): logs that the test makes byte by byte, cut and spoiled everywhere.
 */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rand.h"
#include "kv/embedded/directory.h"
#include "kv/embedded/fill.h"
#include "kv/embedded/log_record.h"
#include "file_faults.h"
#include "log_file.h"

enum {
	BATCHES = 5,
	SECTOR_BYTES = 512,
	FILLED_BYTES = 16 * 1024,
	TORN_ROUNDS = 150,
	FIRST_VERSION = 10,
	TEXT_BYTES = 64,
};

/* The unfinished write that the last check has found. */
static struct log_torn torn;

static void
add_filling(struct log_dir *t, size_t end)
{
	uint8_t page[FILL_PAGE_BYTES];

	fill_make(page);
	while (t->file.bytes.len < end)
		buf_append_byte(&t->file.bytes, page[t->file.bytes.len % FILL_PAGE_BYTES]);
}

static enum status
check(struct log_dir *t)
{
	t->err = (struct err){ 0 };
	return emb_logs_check(t->dir.dir, &torn, &t->err);
}

static enum status
check_log(struct log_dir *t, size_t len)
{
	log_dir_write(t, "000007.log", len);
	return check(t);
}

/* The check has told of that byte, and how. */
static void
assert_told(const struct log_dir *t, size_t at, const char *how)
{
	char expected[TEXT_BYTES];

	snprintf(expected, sizeof(expected), "damaged at byte %zu: %s", at, how);
	if (!strstr(t->err.text, expected))
		fail_msg("\"%s\" is not in \"%s\"", expected, t->err.text);
}

/* ---- Damage that RocksDB would take for the end ---- */

static void
a_log_that_is_cut_is_an_unfinished_write(void **state)
{
	struct log_dir *t = *state;

	for (size_t i = 0; i < BATCHES; i++)
		log_dir_add_version(t, FIRST_VERSION + i, 10);
	for (size_t len = 0; len <= t->file.bytes.len; len++) {
		assert_ok(check_log(t, len));
		assert_int_equal(torn.number, 0);
	}
	/* Zeros behind it are nothing, whatever there are. */
	log_file_add(&t->file, 0, 30);
	for (size_t len = t->file.bytes.len - 30; len <= t->file.bytes.len; len++)
		assert_ok(check_log(t, len));
}

static void
headers_that_end_a_log_too_early_are_damage(void **state)
{
	struct log_dir *t = *state;

	for (size_t i = 0; i < BATCHES; i++)
		log_dir_add_version(t, FIRST_VERSION + i, 10);
	for (size_t i = 0; i < BATCHES; i++) {
		const size_t at = t->file.batches[i].begin, end = t->file.batches[i].end;
		uint8_t *header = (uint8_t *)t->file.bytes.ptr + at;
		uint8_t kept[LOG_HEADER_BYTES];

		memcpy(kept, header, sizeof(kept));
		/* A length beyond the end of the file. */
		header[LOG_RECORD_LENGTH + 1] = 0x40;
		assert_int_equal(check_log(t, t->file.bytes.len), STATUS_CORRUPT);
		assert_told(t, at, "a record has a wrong length");
		/* It is an unfinished write if a byte of what there is is wrong, too. */
		header[LOG_HEADER_BYTES + 3] ^= 1;
		assert_ok(check_log(t, t->file.bytes.len));
		header[LOG_HEADER_BYTES + 3] ^= 1;
		/* Likewise if what follows is no record. */
		if (i + 1 < BATCHES) {
			t->file.bytes.ptr[end] ^= 1;
			assert_ok(check_log(t, t->file.bytes.len));
			t->file.bytes.ptr[end] ^= 1;
		}
		/* The file ends in the record: it may be as long as it says. */
		assert_ok(check_log(t, end - 1));
		memcpy(header, kept, sizeof(kept));
		/* Types of recycled logs. */
		for (unsigned type = 0; type <= 9; type++) {
			header[LOG_RECORD_TYPE] = (uint8_t)type;
			if (type <= LOG_RECORD_LAST) {
				assert_ok(check_log(t, t->file.bytes.len));
				continue;
			}
			assert_int_equal(check_log(t, t->file.bytes.len), STATUS_CORRUPT);
			assert_told(t, at, "a record is of a wrong kind");
			assert_int_equal(check_log(t, end), STATUS_CORRUPT);
			/* Cut besides, it is an unfinished write, but for a block's first. */
			assert_int_equal(check_log(t, end - 1), i ? STATUS_OK : STATUS_CORRUPT);
		}
		memcpy(header, kept, sizeof(kept));
		/* No header at all. */
		memset(header, 0, sizeof(kept));
		assert_int_equal(check_log(t, t->file.bytes.len), STATUS_CORRUPT);
		assert_told(t, at, "it has a hole");
		assert_ok(check_log(t, at + LOG_HEADER_BYTES));
		/* A length with a type of zero, and the other way round, is RocksDB's to judge. */
		header[LOG_RECORD_LENGTH] = kept[LOG_RECORD_LENGTH];
		assert_ok(check_log(t, t->file.bytes.len));
		memcpy(header, kept, sizeof(kept));
	}
	assert_ok(check_log(t, t->file.bytes.len));
}

/* The same in the second block, and with zeros up to the end of the first. */
static void
holes_are_found_over_the_ends_of_blocks(void **state)
{
	struct log_dir *t = *state;
	const struct log_file_batch *all = t->file.batches;

	log_dir_add_version(t, FIRST_VERSION, LOG_BLOCK_BYTES - 300);
	log_dir_add_version(t, FIRST_VERSION + 1, 100);
	log_dir_add_version(t, FIRST_VERSION + 2, 200);
	log_dir_add_version(t, FIRST_VERSION + 3, 10);
	assert_true(all[2].begin < LOG_BLOCK_BYTES && all[2].end > LOG_BLOCK_BYTES);
	assert_ok(check_log(t, t->file.bytes.len));
	memset(t->file.bytes.ptr + all[1].begin, 0, LOG_BLOCK_BYTES - all[1].begin);
	assert_int_equal(check_log(t, t->file.bytes.len), STATUS_CORRUPT);
	assert_told(t, LOG_BLOCK_BYTES, "it has a hole");
	assert_ok(check_log(t, LOG_BLOCK_BYTES));
	memset(t->file.bytes.ptr + LOG_BLOCK_BYTES, 0, t->file.bytes.len - LOG_BLOCK_BYTES);
	assert_ok(check_log(t, t->file.bytes.len));
	t->file.bytes.ptr[t->file.bytes.len - 1] = 1;
	assert_int_equal(check_log(t, t->file.bytes.len), STATUS_CORRUPT);
	/* Likewise a filling with something behind it. */
	log_dir_anew(t);
	log_dir_add_version(t, FIRST_VERSION, 100);
	add_filling(t, 2 * LOG_BLOCK_BYTES);
	assert_ok(check_log(t, t->file.bytes.len));
	assert_int_equal(torn.number, 0);
	t->file.bytes.ptr[t->file.bytes.len - 1] = 'x';
	(void)check_log(t, t->file.bytes.len);
	assert_true(torn.number == 7 || t->err.status == STATUS_CORRUPT);
}

/* A filling up to the end of a block, and behind it records that are whole. */
static void
a_filling_ends_the_log(void **state)
{
	struct log_dir *t = *state;

	for (int zeros = 0; zeros <= 1; zeros++) {
		log_dir_anew(t);
		log_dir_add_version(t, FIRST_VERSION, 100);
		if (zeros)
			log_file_add(&t->file, 0, LOG_BLOCK_BYTES - t->file.bytes.len);
		else
			add_filling(t, LOG_BLOCK_BYTES);
		log_dir_add_version(t, FIRST_VERSION + 1, 100);
		assert_int_equal(check_log(t, t->file.bytes.len), STATUS_CORRUPT);
		assert_told(t, LOG_BLOCK_BYTES, zeros ? "it has a hole" : "it has a gap");
	}
}

/* Whichever of several logs is damaged, and whichever order they come in. */
static void
a_damaged_log_is_found_among_others(void **state)
{
	struct log_dir *t = *state;

	for (size_t i = 0; i < BATCHES; i++)
		log_dir_add_version(t, FIRST_VERSION + i, 10);
	for (unsigned i = 1; i <= 8; i++) {
		char name[TEXT_BYTES];

		for (unsigned n = 1; n <= 8; n++) {
			snprintf(name, sizeof(name), "%06u.log", n);
			t->file.bytes.ptr[LOG_RECORD_TYPE] = n == i ? 9 : LOG_RECORD_FULL;
			log_dir_write(t, name, t->file.bytes.len);
		}
		t->file.bytes.ptr[LOG_RECORD_TYPE] = LOG_RECORD_FULL;
		snprintf(name, sizeof(name), "%06u.log", i);
		assert_int_equal(check(t), STATUS_CORRUPT);
		assert_non_null(strstr(t->err.text, name));
		assert_told(t, 0, "a record is of a wrong kind");
		assert_int_equal(emb_logs_find_damage(t->dir.dir, &t->err), STATUS_CORRUPT);
		assert_non_null(strstr(t->err.text, name));
	}
}

static void
other_files_are_not_looked_at(void **state)
{
	struct log_dir *t = *state;
	char path[400];

	for (size_t i = 0; i < 2; i++)
		log_dir_add_version(t, FIRST_VERSION + i, 10);
	t->file.bytes.ptr[LOG_RECORD_TYPE] = 9;
	log_dir_write(t, "LOG", t->file.bytes.len);
	log_dir_write(t, ".log", t->file.bytes.len);
	log_dir_write(t, "000007.logs", t->file.bytes.len);
	log_dir_write(t, "a000007.log", t->file.bytes.len);
	assert_ok(check(t));
	assert_int_equal(emb_logs_bytes(t->dir.dir), 0);
	log_dir_write(t, "7.log", t->file.bytes.len);
	assert_int_equal(check(t), STATUS_CORRUPT);
	assert_non_null(strstr(t->err.text, "7.log"));
	assert_int_equal(emb_logs_bytes(t->dir.dir), t->file.bytes.len);
	log_dir_write(t, "8.log", 3);
	assert_int_equal(emb_logs_bytes(t->dir.dir), t->file.bytes.len + 3);
	assert_int_equal(unlinkat(t->fd, "7.log", 0), 0);
	assert_int_equal(unlinkat(t->fd, "8.log", 0), 0);
	/* What cannot be opened, and what is not there. */
	assert_int_equal(symlinkat("000009.log", t->fd, "000009.log"), 0);
	assert_int_equal(check(t), STATUS_IO);
	assert_int_equal(emb_logs_cut(t->dir.dir, 1, false, &t->err), STATUS_IO);
	assert_int_equal(unlinkat(t->fd, "000009.log", 0), 0);
	assert_int_equal(symlinkat("none", t->fd, "000009.log"), 0);
	assert_ok(check(t));
	assert_ok(emb_logs_cut(t->dir.dir, 1, false, &t->err));
	assert_ok(emb_logs_check("/none/at/all", &torn, &t->err));
	/* A file in the place of a directory. */
	log_dir_write(t, "file", 0);
	snprintf(path, sizeof(path), "%s/file", t->dir.dir);
	assert_int_equal(emb_logs_check(path, &torn, &t->err), STATUS_IO);
}

/* ---- Unfinished writes over a filling ---- */

/* Puts the filling into a sector as far as it lies in the batch. */
static void
unwrite_sector(struct log_dir *t, size_t sector)
{
	uint8_t page[FILL_PAGE_BYTES];

	fill_make(page);
	for (size_t at = sector * SECTOR_BYTES; at < (sector + 1) * SECTOR_BYTES; at++)
		if (at >= t->file.batches[1].begin && at < t->file.batches[1].end)
			t->file.bytes.ptr[at] = (char)page[at % FILL_PAGE_BYTES];
}

static void
a_write_without_some_of_its_sectors_is_torn(void **state)
{
	struct rand_seq r = { test_seed() };
	struct log_dir *t = *state;

	for (int round = 0; round < TORN_ROUNDS; round++) {
		const size_t before = 1 + rand_seq_below(&r, 3000);
		const size_t bytes = 1 + rand_seq_below(&r, 4000);
		size_t first, last;

		log_dir_anew(t);
		log_dir_add_version(t, FIRST_VERSION, before);
		log_dir_add_version(t, FIRST_VERSION + 1, bytes);
		add_filling(t, FILLED_BYTES);
		first = t->file.batches[1].begin / SECTOR_BYTES;
		last = (t->file.batches[1].end - 1) / SECTOR_BYTES;
		assert_ok(check_log(t, t->file.bytes.len));
		assert_int_equal(torn.number, 0);
		/* One sector, or several, or all of them. */
		unwrite_sector(t, first + rand_seq_below(&r, last - first + 1));
		for (size_t i = first; i <= last; i++)
			if (rand_seq_below(&r, 4) == 0)
				unwrite_sector(t, i);
		assert_ok(check_log(t, t->file.bytes.len));
		if (torn.number) {
			assert_int_equal(torn.number, 7);
			assert_int_equal(torn.bytes, t->file.batches[1].begin);
		} else {
			/* Nothing of it was written, so there is nothing to end. */
			for (size_t at = t->file.batches[1].begin; at < t->file.bytes.len; at++)
				assert_true(fill_is((uint8_t *)t->file.bytes.ptr + at, 1));
		}
	}
}

/* A batch of several sectors whose middle was not written: a log as `add` leaves it behind that. */
static void
make_torn(struct log_dir *t)
{
	log_dir_anew(t);
	log_dir_add_version(t, FIRST_VERSION, 100);
	log_dir_add_version(t, FIRST_VERSION + 1, 3000);
	unwrite_sector(t, 3);
}

static void
what_is_written_behind_tells_that_it_was_damaged(void **state)
{
	struct log_dir *t = *state;
	size_t at;

	make_torn(t);
	add_filling(t, FILLED_BYTES);
	assert_ok(check_log(t, t->file.bytes.len));
	assert_int_equal(torn.number, 7);
	/* A later batch, in one record or several. */
	for (uint8_t type = LOG_RECORD_FULL; type <= LOG_RECORD_LAST; type++) {
		make_torn(t);
		log_file_add_record(&t->file, type, STR("a batch, or the beginning of one"));
		add_filling(t, FILLED_BYTES);
		(void)check_log(t, t->file.bytes.len);
		assert_int_equal(torn.number,
				 type == LOG_RECORD_FULL || type == LOG_RECORD_FIRST ? 0 : 7);
	}
	/* The same up to the file's end, and over some bytes that look like the filling. */
	make_torn(t);
	log_file_add_record(&t->file, LOG_RECORD_FULL, STR(""));
	(void)check_log(t, t->file.bytes.len);
	assert_int_equal(torn.number, 0);
	/* All of it is written, and a byte is wrong: damaged. */
	for (size_t back = 1; back <= 1500; back += 100) {
		log_dir_anew(t);
		log_dir_add_version(t, FIRST_VERSION, 100);
		log_dir_add_version(t, FIRST_VERSION + 1, 3000);
		at = t->file.bytes.len - back;
		t->file.bytes.ptr[at] = 'x';
		add_filling(t, FILLED_BYTES);
		(void)check_log(t, t->file.bytes.len);
		assert_int_equal(torn.number, 0);
	}
	/* The checksum is right for a part of what was written, which is no more than chance. */
	log_dir_anew(t);
	log_dir_add_version(t, FIRST_VERSION, 100);
	log_dir_add_version(t, FIRST_VERSION + 1, 100);
	t->file.bytes.ptr[t->file.batches[1].begin + LOG_RECORD_LENGTH + 1] = 4;
	log_file_add(&t->file, 'x', 30);
	add_filling(t, FILLED_BYTES);
	assert_ok(check_log(t, t->file.bytes.len));
	assert_int_equal(torn.number, 7);
	assert_int_equal(torn.bytes, t->file.batches[1].begin);
	/* Only its length is wrong: all that was written has its checksum. */
	for (int more = -40; more <= 40; more += 8) {
		uint8_t *header;

		log_dir_anew(t);
		log_dir_add_version(t, FIRST_VERSION, 100);
		log_dir_add_version(t, FIRST_VERSION + 1, 100);
		add_filling(t, FILLED_BYTES);
		header = (uint8_t *)t->file.bytes.ptr + t->file.batches[1].begin;
		header[LOG_RECORD_LENGTH] = (uint8_t)(header[LOG_RECORD_LENGTH] + more);
		(void)check_log(t, t->file.bytes.len);
		assert_int_equal(torn.number, 0);
	}
}

/* Of the last bytes of a write some are not there; a few may look like the filling by chance. */
static void
a_write_without_its_end_is_torn(void **state)
{
	struct log_dir *t = *state;

	for (size_t missing = 0; missing <= 20; missing++) {
		size_t same = 0, end;

		log_dir_anew(t);
		log_dir_add_version(t, FIRST_VERSION, 100);
		log_dir_add_version(t, FIRST_VERSION + 1, 100);
		end = t->file.bytes.len;
		t->file.bytes.len -= missing;
		/* How many bytes in front of what is missing are those of the filling anyway. */
		add_filling(t, end);
		while (same < 20 && t->file.bytes.ptr[end - missing - 1 - same] >= 5 &&
		       t->file.bytes.ptr[end - missing - 1 - same] <= 8)
			same++;
		add_filling(t, FILLED_BYTES);
		assert_ok(check_log(t, t->file.bytes.len));
		if (!same)
			assert_int_equal(torn.number, missing >= 4 ? 7 : 0);
		else if (missing >= 4)
			assert_int_equal(torn.number, 7);
		if (torn.number)
			assert_int_equal(torn.bytes, t->file.batches[1].begin);
	}
}

/* Of the last sector it has a few bytes, which were not written, and the file ends there. */
static void
the_last_sector_may_be_cut_by_the_end_of_the_file(void **state)
{
	struct log_dir *t = *state;

	for (size_t bytes = 1; bytes <= 6; bytes++) {
		size_t more = 0, end;

		do {
			log_dir_anew(t);
			log_dir_add_version(t, FIRST_VERSION, 100 + more++);
			log_dir_add_version(t, FIRST_VERSION + 1, 100);
			end = t->file.bytes.len;
		} while (end % SECTOR_BYTES != bytes);
		unwrite_sector(t, end / SECTOR_BYTES);
		assert_ok(check_log(t, end));
		assert_int_equal(torn.number, 7);
		assert_int_equal(torn.bytes, t->file.batches[1].begin);
	}
}

/* Its first record is whole, and a later one is not. */
static void
a_batch_of_several_records_may_be_torn(void **state)
{
	struct log_dir *t = *state;

	for (size_t blocks = 1; blocks <= 2; blocks++)
		for (size_t at = 2 * SECTOR_BYTES; at <= 6 * SECTOR_BYTES; at += SECTOR_BYTES) {
			log_dir_anew(t);
			log_dir_add_version(t, FIRST_VERSION, LOG_BLOCK_BYTES - 1000);
			log_dir_add_version(t, FIRST_VERSION + 1,
					    (blocks - 1) * LOG_BLOCK_BYTES + 5000);
			unwrite_sector(t, (blocks * LOG_BLOCK_BYTES + at) / SECTOR_BYTES);
			add_filling(t, (blocks + 1) * LOG_BLOCK_BYTES);
			assert_ok(check_log(t, t->file.bytes.len));
			assert_int_equal(torn.number, 7);
			assert_int_equal(torn.bytes, t->file.batches[1].begin);
		}
}

/* Only the newest log that has a batch can end in an unfinished write. */
static void
only_the_newest_log_may_be_torn(void **state)
{
	struct log_dir *t = *state;

	make_torn(t);
	add_filling(t, FILLED_BYTES);
	log_dir_write(t, "000007.log", t->file.bytes.len);
	assert_ok(check(t));
	assert_int_equal(torn.number, 7);
	/* Newer ones with nothing, with a filling, and with batches without a write. */
	log_dir_write(t, "000008.log", 0);
	log_dir_anew(t);
	add_filling(t, 3000);
	log_dir_write(t, "000009.log", t->file.bytes.len);
	log_dir_anew(t);
	for (size_t i = 0; i < 3; i++)
		log_file_add_record(&t->file, LOG_RECORD_FULL, STR("123456789012"));
	log_dir_write(t, "000010.log", t->file.bytes.len);
	add_filling(t, 3000);
	log_dir_write(t, "000011.log", t->file.bytes.len);
	add_filling(t, LOG_BLOCK_BYTES + 3000);
	log_dir_write(t, "000012.log", t->file.bytes.len);
	log_dir_write(t, "000013.log", LOG_BLOCK_BYTES);
	log_dir_anew(t);
	log_file_add_record(&t->file, LOG_RECORD_FULL, STR("123456789012"));
	log_file_add_record(&t->file, LOG_RECORD_FULL, STR(""));
	log_dir_write(t, "000013.log", t->file.bytes.len);
	assert_ok(check(t));
	assert_int_equal(torn.number, 7);
	/* One with a batch, also behind a whole block without. */
	log_dir_anew(t);
	log_file_add_record(&t->file, LOG_RECORD_FULL, STR("1234567890123"));
	log_dir_write(t, "000014.log", t->file.bytes.len);
	assert_ok(check(t));
	assert_int_equal(torn.number, 0);
	assert_int_equal(unlinkat(t->fd, "000014.log", 0), 0);
	assert_ok(check(t));
	assert_int_equal(torn.number, 7);
	log_dir_anew(t);
	add_filling(t, LOG_BLOCK_BYTES);
	log_dir_add_version(t, FIRST_VERSION, 10);
	log_dir_write(t, "000014.log", t->file.bytes.len);
	(void)check(t);
	assert_int_equal(torn.number == 7, false);
	assert_int_equal(unlinkat(t->fd, "000014.log", 0), 0);
	/* All that older ones have is to be whole. */
	log_dir_anew(t);
	log_dir_add_version(t, FIRST_VERSION - 1, 10);
	log_dir_write(t, "000006.log", t->file.bytes.len);
	assert_ok(check(t));
	assert_int_equal(torn.number, 7);
	log_dir_write(t, "000006.log", t->file.bytes.len - 1);
	assert_ok(check(t));
	assert_int_equal(torn.number, 0);
}

static void
an_unfinished_write_is_cut_off(void **state)
{
	struct log_dir *t = *state;
	struct stat st;
	int fd;

	make_torn(t);
	add_filling(t, FILLED_BYTES);
	assert_ok(check_log(t, t->file.bytes.len));
	fd = emb_logs_open_torn(t->dir.dir, &torn);
	assert_true(fd >= 0);
	assert_ok(emb_logs_end_torn(fd, &torn, &t->err));
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, t->file.batches[1].begin);
	/* It is that already: the file is not made longer. */
	torn.bytes += 100;
	assert_ok(emb_logs_end_torn(fd, &torn, &t->err));
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, t->file.batches[1].begin);
	close(fd);
	/* A file that cannot be written to. */
	fd = openat(t->fd, "000007.log", O_RDONLY | O_CLOEXEC);
	torn.bytes = 1;
	assert_int_equal(emb_logs_end_torn(fd, &torn, &t->err), STATUS_IO);
	close(fd);
	assert_int_equal(emb_logs_end_torn(fd, &torn, &t->err), STATUS_IO);
}

/* ---- Commits that have failed ---- */

/* A batch whose end goes over the end of a block, at each of its bytes. */
static void
versions_are_read_over_the_ends_of_blocks(void **state)
{
	struct log_dir *t = *state;

	for (size_t left = 0; left <= LOG_BATCH_END_BYTES + 2 * LOG_HEADER_BYTES; left++) {
		const struct log_file_batch *all = t->file.batches;
		struct stat st;
		size_t lens[3];

		log_dir_anew(t);
		log_dir_add_version(t, FIRST_VERSION, LOG_BLOCK_BYTES - 400);
		log_dir_add_version(t, FIRST_VERSION + 1, 200 + left);
		log_dir_add_version(t, FIRST_VERSION + 2, 100);
		lens[0] = all[0].end;
		lens[1] = all[1].end;
		lens[2] = all[2].end;
		for (size_t i = 0; i < 3; i++) {
			log_dir_write(t, "000007.log", t->file.bytes.len);
			assert_ok(emb_logs_cut(t->dir.dir, FIRST_VERSION + i, false, &t->err));
			assert_int_equal(fstatat(t->fd, "000007.log", &st, 0), 0);
			assert_int_equal(st.st_size, lens[i]);
			/* What is newer goes even if the version itself is in another log. */
			log_dir_write(t, "000007.log", t->file.bytes.len);
			assert_ok(emb_logs_cut(t->dir.dir, FIRST_VERSION + i - 1, false, &t->err));
			assert_int_equal(fstatat(t->fd, "000007.log", &st, 0), 0);
			assert_int_equal(st.st_size, i ? lens[i - 1] : 0);
		}
	}
}

/* The version itself is in another log; of a batch the end is in its second record, or third. */
static void
what_is_newer_is_cut_without_the_version_itself(void **state)
{
	struct log_dir *t = *state;

	for (size_t blocks = 1; blocks <= 2; blocks++)
		for (size_t left = 0; left <= LOG_BATCH_END_BYTES + 2 * LOG_HEADER_BYTES; left++) {
			const struct log_file_batch *all = t->file.batches;
			struct stat st;

			log_dir_anew(t);
			log_dir_add_version(t, FIRST_VERSION, LOG_BLOCK_BYTES - 400);
			log_dir_add_version(t, FIRST_VERSION + 2,
					    200 + left + (blocks - 1) * LOG_BLOCK_BYTES);
			log_dir_add_version(t, FIRST_VERSION + 4, 100);
			for (size_t i = 0; i < 3; i++) {
				log_dir_write(t, "000007.log", t->file.bytes.len);
				assert_ok(emb_logs_cut(t->dir.dir, FIRST_VERSION + 2 * i + 1, false,
						       &t->err));
				assert_int_equal(fstatat(t->fd, "000007.log", &st, 0), 0);
				/* What a block has left at its end stays. */
				assert_int_equal(st.st_size, i < 2 ? all[i + 1].begin : all[i].end);
			}
		}
}

/* A value that looks like the end of a batch, where its first record ends, is not one. */
static void
only_the_last_record_of_a_batch_tells_its_version(void **state)
{
	AUTO(buf_release) struct buf b = BUF_INIT(1000);
	struct log_dir *t = *state;
	size_t at, whole;
	struct stat st;

	log_dir_add_version(t, FIRST_VERSION, 10);
	at = t->file.bytes.len;
	log_batch_begin(&b, 100, 2);
	log_batch_version_end(&b, FIRST_VERSION + 7);
	log_file_add_record(&t->file, LOG_RECORD_FIRST, buf_str(&b));
	log_file_add_record(&t->file, LOG_FILE_MIDDLE, buf_str(&b));
	buf_clear(&b);
	log_batch_version_end(&b, FIRST_VERSION + 1);
	log_file_add_record(&t->file, LOG_RECORD_LAST, buf_str(&b));
	whole = t->file.bytes.len;
	log_dir_add_version(t, FIRST_VERSION + 2, 10);
	log_dir_write(t, "000007.log", t->file.bytes.len);
	assert_ok(emb_logs_cut(t->dir.dir, FIRST_VERSION + 1, false, &t->err));
	assert_int_equal(fstatat(t->fd, "000007.log", &st, 0), 0);
	assert_int_equal(st.st_size, whole);
	assert_ok(emb_logs_cut(t->dir.dir, FIRST_VERSION, false, &t->err));
	assert_int_equal(fstatat(t->fd, "000007.log", &st, 0), 0);
	assert_int_equal(st.st_size, at);
}

/* Nothing is cut off behind a record that is not whole. */
static void
what_is_no_record_is_not_cut(void **state)
{
	struct log_dir *t = *state;

	for (size_t i = 0; i < BATCHES; i++)
		log_dir_add_version(t, FIRST_VERSION + i, 10);
	for (size_t i = 0, at = 0; at < t->file.bytes.len; at++) {
		struct stat st;

		if (at == t->file.batches[i].end)
			i++;
		t->file.bytes.ptr[at] ^= 0x7f;
		log_dir_write(t, "000007.log", t->file.bytes.len);
		assert_ok(emb_logs_cut(t->dir.dir, FIRST_VERSION + 2, false, &t->err));
		assert_int_equal(fstatat(t->fd, "000007.log", &st, 0), 0);
		assert_int_equal(st.st_size, i <= 2 ? t->file.bytes.len : t->file.batches[2].end);
		t->file.bytes.ptr[at] ^= 0x7f;
	}
}

static void
only_the_newest_log_is_emptied(void **state)
{
	struct log_dir *t = *state;
	size_t one;

	log_dir_add_version(t, FIRST_VERSION, 10);
	one = t->file.bytes.len;
	log_dir_write(t, "000007.log", one);
	log_dir_write(t, "000009.log", one);
	log_dir_write(t, "000008.log", one);
	assert_ok(emb_logs_cut(t->dir.dir, FIRST_VERSION + 1, false, &t->err));
	assert_int_equal(emb_logs_bytes(t->dir.dir), 3 * one);
	assert_ok(emb_logs_cut(t->dir.dir, FIRST_VERSION + 1, true, &t->err));
	assert_int_equal(emb_logs_bytes(t->dir.dir), 2 * one);
	(void)mem_fail_only(1);
	assert_int_equal(emb_logs_cut(t->dir.dir, 0, false, &t->err), STATUS_NOMEM);
	(void)mem_fail_only(0);
	assert_int_equal(emb_logs_bytes(t->dir.dir), 2 * one);
}

static void
the_newest_log_is_opened_to_append(void **state)
{
	struct log_dir *t = *state;
	uint64_t number = 0;
	int fd;

	assert_int_equal(emb_logs_open_to_append(t->dir.dir, &number), -1);
	log_dir_add_version(t, FIRST_VERSION, 10);
	log_dir_write(t, "000007.log", 5);
	log_dir_write(t, "000010.log", 7);
	log_dir_write(t, "000009.log", 9);
	fd = emb_logs_open_to_append(t->dir.dir, &number);
	assert_int_equal(number, 10);
	assert_int_equal(write(fd, "abc", 3), 3);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 10);
	close(fd);
	number = 9;
	fd = emb_logs_open_to_append(t->dir.dir, &number);
	assert_int_equal(lseek(fd, 0, SEEK_END), 9);
	close(fd);
	number = 8;
	assert_int_equal(emb_logs_open_to_append(t->dir.dir, &number), -1);
}

/* ---- Which record does not match its checksum ---- */

static void
damage_is_found_at_the_record_that_has_it(void **state)
{
	struct log_dir *t = *state;
	size_t count;

	log_dir_add_version(t, FIRST_VERSION, 10);
	log_dir_add_version(t, FIRST_VERSION + 1, LOG_BLOCK_BYTES - 200);
	for (size_t i = 2; i < BATCHES; i++)
		log_dir_add_version(t, FIRST_VERSION + i, 30);
	count = t->file.count;
	log_dir_write(t, "000007.log", t->file.bytes.len);
	assert_ok(emb_logs_find_damage(t->dir.dir, &t->err));
	for (size_t i = 0; i < count; i++)
		for (size_t n = 0; n < 40; n += 13) {
			const size_t at = t->file.batches[i].begin + n;
			size_t record = t->file.batches[i].begin;

			t->file.bytes.ptr[at] ^= 0x40;
			log_dir_write(t, "000007.log", t->file.bytes.len);
			t->err = (struct err){ 0 };
			assert_int_equal(emb_logs_find_damage(t->dir.dir, &t->err), STATUS_CORRUPT);
			/* One of them has its second record in the next block. */
			if (t->file.batches[i].begin < LOG_BLOCK_BYTES && at >= LOG_BLOCK_BYTES)
				record = LOG_BLOCK_BYTES;
			assert_told(t, record, "a record does not match its checksum");
			t->file.bytes.ptr[at] ^= 0x40;
		}
	/* Less than a header is at the end; a filling, or zeros. */
	for (size_t more = 0; more < LOG_HEADER_BYTES; more++) {
		log_dir_write(t, "000007.log", t->file.bytes.len);
		assert_ok(emb_logs_find_damage(t->dir.dir, &t->err));
		log_file_add(&t->file, 'x', 1);
	}
	t->file.bytes.len -= LOG_HEADER_BYTES;
	count = t->file.bytes.len;
	log_file_add(&t->file, 0, 1000);
	log_dir_write(t, "000007.log", t->file.bytes.len);
	assert_ok(emb_logs_find_damage(t->dir.dir, &t->err));
	t->file.bytes.len = count;
	add_filling(t, count + 1000);
	log_dir_write(t, "000007.log", t->file.bytes.len);
	assert_ok(emb_logs_find_damage(t->dir.dir, &t->err));
	assert_ok(emb_logs_find_damage("/none/at/all", &t->err));
}

/* Of a log of which some blocks end with less than a header. */
static void
the_ends_of_blocks_are_no_damage(void **state)
{
	struct log_dir *t = *state;

	for (size_t more = 0; more < 20; more++) {
		log_dir_anew(t);
		log_dir_add_version(t, FIRST_VERSION, LOG_BLOCK_BYTES - 110 + more);
		log_dir_add_version(t, FIRST_VERSION + 1, 10);
		log_dir_add_version(t, FIRST_VERSION + 2, 10);
		log_dir_write(t, "000007.log", t->file.bytes.len);
		assert_ok(check(t));
		assert_ok(emb_logs_find_damage(t->dir.dir, &t->err));
		for (size_t i = 0; i < 3; i++) {
			t->file.bytes.ptr[t->file.batches[i].begin] ^= 1;
			log_dir_write(t, "000007.log", t->file.bytes.len);
			t->err = (struct err){ 0 };
			assert_int_equal(emb_logs_find_damage(t->dir.dir, &t->err), STATUS_CORRUPT);
			assert_told(t, t->file.batches[i].begin, "a record");
			t->file.bytes.ptr[t->file.batches[i].begin] ^= 1;
		}
	}
}

/* ---- Disks that fail ---- */

static void
reads_that_are_interrupted_go_on(void **state)
{
	struct log_dir *t = *state;
	uint32_t crc, again;
	char path[400];

	for (size_t i = 0; i < BATCHES; i++)
		log_dir_add_version(t, FIRST_VERSION + i, LOG_BLOCK_BYTES / 2);
	snprintf(path, sizeof(path), "%s/000007.log", t->dir.dir);
	log_dir_write(t, "000007.log", t->file.bytes.len);
	assert_true(emb_file_crc(path, &crc));
	file_faults_interrupt();
	assert_ok(check(t));
	assert_ok(emb_logs_find_damage(t->dir.dir, &t->err));
	assert_true(emb_file_crc(path, &again));
	assert_int_equal(crc, again);
	assert_ok(emb_logs_cut(t->dir.dir, FIRST_VERSION + 3, false, &t->err));
	assert_int_equal(emb_logs_bytes(t->dir.dir), t->file.batches[3].end);
	/* Damage is found, at the same place. */
	t->file.bytes.ptr[t->file.batches[2].begin + LOG_RECORD_TYPE] = 9;
	assert_int_equal(check_log(t, t->file.bytes.len), STATUS_CORRUPT);
	assert_told(t, t->file.batches[2].begin, "a record is of a wrong kind");
	assert_true(file_faults_end());
}

static void
reads_that_fail_are_told_of(void **state)
{
	struct log_dir *t = *state;
	unsigned n;
	char path[400];
	uint32_t crc;

	for (size_t i = 0; i < BATCHES; i++)
		log_dir_add_version(t, FIRST_VERSION + i, LOG_BLOCK_BYTES / 2);
	/* So that no other check is spared. */
	t->file.bytes.len--;
	snprintf(path, sizeof(path), "%s/000007.log", t->dir.dir);
	log_dir_write(t, "000006.log", 0);
	log_dir_write(t, "000007.log", t->file.bytes.len);
	for (n = 1;; n++) {
		enum status status;

		file_faults_fail(n);
		status = check(t);
		if (!file_faults_end())
			break;
		assert_int_equal(status, STATUS_IO);
	}
	assert_true(n > 5);
	assert_int_equal(unlinkat(t->fd, "000006.log", 0), 0);
	for (n = 1;; n++) {
		enum status status;

		file_faults_fail(n);
		status = emb_logs_cut(t->dir.dir, FIRST_VERSION + 3, false, &t->err);
		if (!file_faults_end())
			break;
		assert_int_equal(status, STATUS_IO);
		assert_int_equal(emb_logs_bytes(t->dir.dir), t->file.bytes.len);
	}
	assert_true(n > 3);
	assert_int_equal(emb_logs_bytes(t->dir.dir), t->file.batches[3].end);
	for (n = 1;; n++) {
		enum status status;

		file_faults_fail(n);
		status = emb_logs_find_damage(t->dir.dir, &t->err);
		if (!file_faults_end())
			break;
		assert_int_equal(status, STATUS_IO);
	}
	assert_true(n > 1);
	for (n = 1;; n++) {
		bool ok;

		file_faults_fail(n);
		ok = emb_file_crc(path, &crc);
		if (!file_faults_end())
			break;
		assert_false(ok);
	}
	assert_true(n > 2);
}

/* Another process cuts the log while it is read: what there still is is looked at. */
static void
a_log_that_is_cut_while_it_is_read_is_read_to_its_end(void **state)
{
	struct log_dir *t = *state;

	for (size_t i = 0; i < BATCHES; i++)
		log_dir_add_version(t, FIRST_VERSION + i, 30);
	t->file.bytes.ptr[t->file.batches[3].begin + LOG_HEADER_BYTES] ^= 1;
	log_dir_write(t, "000007.log", t->file.bytes.len);
	for (size_t i = 0; i < BATCHES; i++) {
		file_faults_cut(t->file.batches[i].end);
		t->err = (struct err){ 0 };
		assert_int_equal(emb_logs_find_damage(t->dir.dir, &t->err),
				 i < 3 ? STATUS_OK : STATUS_CORRUPT);
		assert_ok(check(t));
		assert_int_equal(file_faults_end(), i + 1 < BATCHES);
	}
}

/* A process without a standard input gets its number for the file. */
static void
a_file_may_have_the_number_zero(void **state)
{
	struct log_dir *t = *state;
	const int input = fcntl(0, F_DUPFD_CLOEXEC, 3);
	uint32_t crc, again;
	char path[400];

	log_dir_add_version(t, FIRST_VERSION, 10);
	log_dir_write(t, "000007.log", t->file.bytes.len);
	snprintf(path, sizeof(path), "%s/000007.log", t->dir.dir);
	assert_true(emb_file_crc(path, &crc));
	close(0);
	assert_true(emb_file_crc(path, &again));
	assert_int_equal(crc, again);
	assert_ok(check(t));
	assert_ok(emb_logs_find_damage(t->dir.dir, &t->err));
	assert_ok(emb_logs_cut(t->dir.dir, FIRST_VERSION - 1, false, &t->err));
	assert_int_equal(emb_logs_bytes(t->dir.dir), 0);
	/* None of them has left it open. */
	assert_int_equal(open("/dev/null", O_RDONLY | O_CLOEXEC), 0);
	close(0);
	if (input >= 0) {
		assert_int_equal(dup2(input, 0), 0);
		close(input);
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, log_dir_setup, log_dir_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_log_that_is_cut_is_an_unfinished_write),
		T(headers_that_end_a_log_too_early_are_damage),
		T(holes_are_found_over_the_ends_of_blocks),
		T(a_filling_ends_the_log),
		T(a_damaged_log_is_found_among_others),
		T(other_files_are_not_looked_at),
		T(a_write_without_some_of_its_sectors_is_torn),
		T(what_is_written_behind_tells_that_it_was_damaged),
		T(a_write_without_its_end_is_torn),
		T(the_last_sector_may_be_cut_by_the_end_of_the_file),
		T(a_batch_of_several_records_may_be_torn),
		T(only_the_newest_log_may_be_torn),
		T(an_unfinished_write_is_cut_off),
		T(versions_are_read_over_the_ends_of_blocks),
		T(what_is_newer_is_cut_without_the_version_itself),
		T(only_the_last_record_of_a_batch_tells_its_version),
		T(what_is_no_record_is_not_cut),
		T(only_the_newest_log_is_emptied),
		T(the_newest_log_is_opened_to_append),
		T(damage_is_found_at_the_record_that_has_it),
		T(the_ends_of_blocks_are_no_damage),
		T(reads_that_are_interrupted_go_on),
		T(reads_that_fail_are_told_of),
		T(a_log_that_is_cut_while_it_is_read_is_read_to_its_end),
		T(a_file_may_have_the_number_zero),
	};

	return cmocka_run_group_tests_name("logs", tests, NULL, NULL);
}
