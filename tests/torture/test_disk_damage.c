/* Logs that end in the middle of a record, and logs and tables with wrong bytes in them. */
#include "../kv/fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rand.h"
#include "kv/embedded/fill.h"

enum {
	COMMITS = 50, /* in a log of two blocks */
	VALUE_BYTES = 1000,
	BLOCK_BYTES = 32 * 1024,
	SECTOR_BYTES = 512,
	CUT_BYTES = 4 * VALUE_BYTES, /* at most so much is cut off */
	/* Each look opens the store; the seeds of many turns come to all places. */
	CUT_STEP = 101,
	FLIPS = 60,
	HEADERS_BYTES = 24, /* of a record, and of the batch in it */
	LAST_SECTORS = 5,   /* that the last transaction may lie in */
	HOLES = 20,
	PATH_BYTES = 600,
};

struct log {
	char path[PATH_BYTES];
	char *bytes;
	size_t len; /* without the filling behind it */
	size_t filled_len;
};

/* ---- A store that was killed, with all of its data in one log ---- */

static void
put_numbered(struct kv_store *store, int i)
{
	static char value[VALUE_BYTES];
	struct kv_tx *tx = begin(store);
	char key[16];

	memset(value, 'a' + i % 26, sizeof(value));
	/* Two keys: half a transaction would show. */
	for (int half = 0; half < 2; half++) {
		snprintf(key, sizeof(key), "t/%d/%03d", half, i);
		assert_ok(kv_set(tx, str_from_cstr(key), str_of(value, sizeof(value) / 2)));
	}
	commit(tx);
}

static _Noreturn void
write_and_die(const char *url)
{
	struct kv_store *store = fixture_open(url, (struct kv_options){ .create = true });

	for (int i = 0; i < COMMITS; i++)
		put_numbered(store, i);
	kill(getpid(), SIGKILL);
	abort();
}

static void
find_file(const char *dir_path, const char *suffix, char ret[PATH_BYTES])
{
	DIR *dir = opendir(dir_path);
	const struct dirent *e;
	off_t largest = -1;
	struct stat st;

	assert_non_null(dir);
	while ((e = readdir(dir))) {
		size_t len = strlen(e->d_name);

		if (len < 4 || strcmp(e->d_name + len - 4, suffix) != 0 ||
		    fstatat(dirfd(dir), e->d_name, &st, 0) != 0 || st.st_size <= largest)
			continue;
		largest = st.st_size;
		snprintf(ret, PATH_BYTES, "%s/%s", dir_path, e->d_name);
	}
	closedir(dir);
	assert_true(largest > 0);
}

static void
read_file(struct log *log)
{
	FILE *f = fopen(log->path, "r");
	struct stat st;

	assert_non_null(f);
	assert_int_equal(fstat(fileno(f), &st), 0);
	log->len = (size_t)st.st_size;
	log->bytes = malloc(log->len);
	assert_int_equal(fread(log->bytes, 1, log->len, f), log->len);
	fclose(f);
}

static void
write_file(const struct log *log, const char *bytes, size_t len)
{
	FILE *f = fopen(log->path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

struct damage {
	struct fixture fixture;
	struct log log;
	bool filled; /* the filling stays behind the log */
};

static int
setup(void **state)
{
	struct damage *d = calloc(1, sizeof(*d));
	int status;
	pid_t pid;

	fixture_make_dir(&d->fixture);
	pid = fork();
	if (pid == 0) {
		execl("/proc/self/exe", "test_disk_damage", d->fixture.url, (char *)NULL);
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	find_file(d->fixture.dir, ".log", d->log.path);
	read_file(&d->log);
	d->log.filled_len = d->log.len;
	while (fill_is((const uint8_t *)d->log.bytes + d->log.len - 1, 1))
		d->log.len--;
	assert_true(d->log.len < d->log.filled_len);
	assert_true(d->log.len > BLOCK_BYTES && d->log.len % BLOCK_BYTES > CUT_BYTES);
	*state = d;
	return 0;
}

static int
teardown(void **state)
{
	struct damage *d = *state;

	fixture_remove_dir(&d->fixture);
	free(d->log.bytes);
	free(d);
	return 0;
}

/* ---- Looking at it ---- */

/* How many transactions are there: the first ones, and whole, or the test fails. */
static int
count_whole(struct kv_store *store)
{
	struct kv_tx *tx = begin_read(store);
	int count[2] = { 0 };

	for (int half = 0; half < 2; half++) {
		bool present = true;

		for (int i = 0; i < COMMITS; i++) {
			struct kv_future *f;
			struct str value;
			char key[16];

			snprintf(key, sizeof(key), "t/%d/%03d", half, i);
			f = kv_get(tx, str_from_cstr(key), KV_READ);
			assert_ok(kv_future_wait(f));
			if (kv_future_value(f, &value)) {
				assert_true(present);
				assert_int_equal(value.ptr[0], 'a' + i % 26);
				count[half]++;
			} else {
				present = false;
			}
		}
	}
	assert_int_equal(count[0], count[1]);
	kv_tx_free(tx);
	return count[0];
}

/* Opens without writing. The number of transactions, or -1: refused as corrupt. */
static int
look(struct damage *d)
{
	const struct kv_options options = { .read_only = true };
	struct err err = { 0 };
	struct kv_store *store;
	int count;

	if (kv_open(d->fixture.url, &options, &store, &err) != STATUS_OK) {
		if (err.status != STATUS_CORRUPT)
			fail_msg("%s: %s", status_name(err.status), err.text);
		assert_true(strlen(err.text) > 10);
		return -1;
	}
	count = count_whole(store);
	kv_close(store);
	return count;
}

static void
damage_byte(struct damage *d, size_t at, uint8_t mask)
{
	size_t len = d->filled ? d->log.filled_len : d->log.len;
	char *copy = malloc(len);
	int count;

	memcpy(copy, d->log.bytes, len);
	copy[at] = (char)(copy[at] ^ mask);
	write_file(&d->log, copy, len);
	free(copy);
	count = look(d);
	if (count >= 0 && count != COMMITS)
		fail_msg("byte %zu of %zu, bits %02x: %d transactions are left, without a word", at,
			 d->log.len, mask, count);
}

/* ---- The tests ---- */

static void
torn_log_loses_its_last_transactions_whole(void **state)
{
	struct damage *d = *state;
	struct rand_seq rand = { test_seed() };
	int last = COMMITS;

	for (size_t cut = rand_seq_below(&rand, CUT_STEP); cut < CUT_BYTES; cut += CUT_STEP) {
		int count;

		write_file(&d->log, d->log.bytes, d->log.len - cut);
		count = look(d);
		/* A torn end is what a crash leaves: never refused. */
		assert_true(count >= 0 && count <= last);
		assert_true(count >= COMMITS - (int)(cut / VALUE_BYTES) - 1);
		last = count;
	}
	assert_true(last < COMMITS);
}

/* What some file systems leave after a power cut. */
static void
zeros_behind_the_log_are_its_end(void **state)
{
	struct damage *d = *state;
	size_t len = d->log.len + BLOCK_BYTES;
	char *copy = calloc(1, len);

	memcpy(copy, d->log.bytes, d->log.len);
	write_file(&d->log, copy, len);
	free(copy);
	assert_int_equal(look(d), COMMITS);
}

static void
store_goes_on_after_a_torn_log(void **state)
{
	struct damage *d = *state;
	struct kv_store *store;
	uint64_t version[2];
	struct kv_tx *tx;

	write_file(&d->log, d->log.bytes, d->log.len - VALUE_BYTES / 2);
	for (int i = 0; i < 2; i++) {
		store = fixture_open(d->fixture.url, (struct kv_options){ 0 });
		assert_int_equal(count_whole(store), COMMITS - 1);
		put_now(store, "t/z", "more");
		tx = begin_read(store);
		assert_ok(kv_get_read_version(tx, &version[i]));
		kv_tx_free(tx);
		kv_close(store);
	}
	assert_true(version[1] > version[0]);
}

static void
wrong_byte_in_a_log_is_corrupt_and_loses_nothing_in_silence(void **state)
{
	struct damage *d = *state;
	struct rand_seq rand = { test_seed() };

	for (int i = 0; i < FLIPS; i++)
		damage_byte(d, rand_seq_below(&rand, d->log.len),
			    (uint8_t)(1 + rand_seq_below(&rand, 255)));
	/* The first header of each block; what is in it decides about the whole block. */
	for (size_t block = 0; block < d->log.len; block += BLOCK_BYTES)
		for (size_t i = 0; i < 7; i++)
			damage_byte(d, block + i, (uint8_t)(1 << rand_seq_below(&rand, 8)));
}

/* The header of the n-th record from the end, of the records that lie in one piece. */
static size_t
record_from_end(const struct log *log, int n)
{
	size_t at = log->len / BLOCK_BYTES * BLOCK_BYTES;
	size_t starts[COMMITS] = { 0 };
	int count = 0;

	while (at + 7 <= log->len) {
		const uint8_t *header = (const uint8_t *)log->bytes + at;

		starts[count++] = at;
		at += 7 + (size_t)header[4] + ((size_t)header[5] << 8);
	}
	assert_int_equal(at, log->len);
	assert_true(count > n);
	return starts[count - n];
}

/* Such a length points behind the end of the file, as that of an unfinished record does. */
static void
wrong_length_in_a_log_is_no_torn_end(void **state)
{
	struct damage *d = *state;

	for (int n = 1; n <= 3; n++) {
		size_t at = record_from_end(&d->log, n);

		for (int bit = 0; bit < 16; bit++) {
			size_t byte = at + 4 + (size_t)bit / 8;

			damage_byte(d, byte, (uint8_t)(1 << bit % 8));
		}
	}
}

/* Of all kinds, those of recycled logs among them. */
static void
wrong_kind_in_a_log_is_no_end(void **state)
{
	struct damage *d = *state;

	for (int n = 1; n <= 3; n++) {
		size_t at = record_from_end(&d->log, n) + 6;

		for (int kind = 0; kind < 16; kind++)
			if (kind != d->log.bytes[at])
				damage_byte(d, at, (uint8_t)(d->log.bytes[at] ^ kind));
	}
}

static void
hole_in_a_log_is_no_end(void **state)
{
	struct damage *d = *state;
	size_t sectors = d->log.len / SECTOR_BYTES;
	struct rand_seq rand = { test_seed() };

	for (int i = 0; i < HOLES; i++) {
		/* The blocks' first sectors, too, where a header goes with the rest. */
		size_t at = i < 2 ? (size_t)i * BLOCK_BYTES
				  : rand_seq_below(&rand, sectors) * SECTOR_BYTES;
		char *copy = malloc(d->log.len);
		int count;

		memcpy(copy, d->log.bytes, d->log.len);
		memset(copy + at, 0, SECTOR_BYTES);
		write_file(&d->log, copy, d->log.len);
		free(copy);
		count = look(d);
		if (count != -1)
			fail_msg("a hole at %zu of %zu: %d transactions", at, d->log.len, count);
	}
}

static void
wrong_byte_in_a_table_is_corrupt_when_it_is_read(void **state)
{
	struct damage *d = *state;
	struct log table = { .bytes = NULL };
	int corrupt = 0;

	/* Opening writes the log's data to a table. */
	kv_close(fixture_open(d->fixture.url, (struct kv_options){ 0 }));
	find_file(d->fixture.dir, ".sst", table.path);
	read_file(&table);
	for (size_t at = 0; at < table.len; at += table.len / 20) {
		const struct kv_options options = { .read_only = true };
		struct err err = { 0 };
		struct kv_store *store;
		enum status status;

		table.bytes[at] ^= 0x10;
		write_file(&table, table.bytes, table.len);
		table.bytes[at] ^= 0x10;
		status = kv_open(d->fixture.url, &options, &store, &err);
		if (status == STATUS_OK) {
			struct kv_tx *tx = begin_read(store);
			struct kv_future *f = kv_get_range(tx, STR("t/"), STR("t0"), NULL);

			status = kv_future_wait(f);
			if (status == STATUS_OK)
				assert_int_equal(kv_future_range(f).count, 2 * COMMITS);
			kv_tx_free(tx);
			kv_close(store);
		}
		assert_true(status == STATUS_OK || status == STATUS_CORRUPT);
		corrupt += status == STATUS_CORRUPT;
	}
	assert_true(corrupt > 5);
	free(table.bytes);
}

/* ---- With the filling behind it ---- */

static void
filling_behind_the_log_is_its_end(void **state)
{
	struct damage *d = *state;

	assert_int_equal(look(d), COMMITS);
	kv_close(fixture_open(d->fixture.url, (struct kv_options){ 0 }));
	assert_int_equal(look(d), COMMITS);
}

static void
wrong_byte_in_front_of_a_filling_is_corrupt(void **state)
{
	struct damage *d = *state;
	struct rand_seq rand = { test_seed() };
	size_t last = record_from_end(&d->log, 1);
	size_t content = last + HEADERS_BYTES;

	d->filled = true;
	wrong_byte_in_a_log_is_corrupt_and_loses_nothing_in_silence(state);
	wrong_length_in_a_log_is_no_torn_end(state);
	wrong_kind_in_a_log_is_no_end(state);
	for (size_t at = last; at < content; at++)
		damage_byte(d, at, 1);
	for (size_t at = content + rand_seq_below(&rand, CUT_STEP); at < d->log.len; at += CUT_STEP)
		damage_byte(d, at, 1);
}

/* Puts the filling of its place into the sector, from the byte `from` on. */
static void
unwrite(char *log, size_t sector, size_t from)
{
	uint8_t page[FILL_PAGE_BYTES];

	fill_make(page);
	for (size_t at = sector * SECTOR_BYTES; at < (sector + 1) * SECTOR_BYTES; at++)
		if (at >= from)
			log[at] = (char)page[at % FILL_PAGE_BYTES];
}

/* A disk takes the sectors of one write in any order, and a power cut may come in between. */
static void
unwritten_sectors_of_the_last_transaction_are_an_unfinished_write(void **state)
{
	struct damage *d = *state;
	size_t from = record_from_end(&d->log, 1);
	size_t first = from / SECTOR_BYTES;
	size_t count = (d->log.len - 1) / SECTOR_BYTES - first + 1;
	char *copy = malloc(d->log.filled_len);
	char newer[PATH_BYTES];

	assert_in_range(count, 2, LAST_SECTORS);
	for (unsigned lost = 1; lost < 1U << count; lost++) {
		memcpy(copy, d->log.bytes, d->log.filled_len);
		for (size_t i = 0; i < count; i++)
			if (lost & 1U << i)
				unwrite(copy, first + i, from);
		write_file(&d->log, copy, d->log.filled_len);
		if (look(d) != COMMITS - 1)
			fail_msg("sectors %x of %zu: %d transactions", lost, count, look(d));
	}
	free(copy);
	/* An opening that was ended has made a new log already. */
	snprintf(newer, sizeof(newer), "%s/000999.log", d->fixture.dir);
	assert_int_equal(close(creat(newer, 0600)), 0);
	assert_int_equal(look(d), COMMITS - 1);
	/* The last of them: opened for writing. */
	kv_close(fixture_open(d->fixture.url, (struct kv_options){ 0 }));
	assert_int_equal(look(d), COMMITS - 1);
}

/*
 * RocksDB deletes a log some time after it has opened the store, and a power cut may bring it back
 * afterwards, beside a newer one that ends in an unfinished write, too.
 */
static void
unfinished_write_is_gone_once_there_is_a_newer_log(void **state)
{
	struct damage *d = *state;
	size_t from = record_from_end(&d->log, 1);
	char *copy = malloc(d->log.filled_len);
	char kept[PATH_BYTES];
	struct kv_store *store;
	struct log log;

	snprintf(kept, sizeof(kept), "%s-kept", d->fixture.dir);
	memcpy(copy, d->log.bytes, d->log.filled_len);
	unwrite(copy, d->log.len / SECTOR_BYTES, from);
	write_file(&d->log, copy, d->log.filled_len);
	free(copy);
	assert_int_equal(link(d->log.path, kept), 0);
	store = fixture_open(d->fixture.url, (struct kv_options){ 0 });
	put_now(store, "t/z", "more");
	snprintf(log.path, sizeof(log.path), "%s", kept);
	read_file(&log);
	assert_int_equal(log.len, from);
	free(log.bytes);
	kv_close(store);
	if (access(d->log.path, F_OK) != 0)
		assert_int_equal(rename(kept, d->log.path), 0);
	(void)unlink(kept);
	assert_int_equal(look(d), COMMITS - 1);
}

static void
last_transaction_may_end_anywhere_in_front_of_the_filling(void **state)
{
	struct damage *d = *state;
	size_t from = record_from_end(&d->log, 1);
	char *copy = malloc(d->log.filled_len);
	uint8_t page[FILL_PAGE_BYTES];

	fill_make(page);
	memcpy(copy, d->log.bytes, d->log.filled_len);
	for (size_t end = d->log.len; end-- > from;) {
		copy[end] = (char)page[end % FILL_PAGE_BYTES];
		if (d->log.len - end < 8 || end % CUT_STEP)
			continue;
		write_file(&d->log, copy, d->log.filled_len);
		if (look(d) != COMMITS - 1)
			fail_msg("%zu bytes are left: %d transactions", end - from, look(d));
	}
	free(copy);
}

static void
unwritten_sector_in_front_of_the_last_transaction_is_corrupt(void **state)
{
	struct damage *d = *state;
	size_t sectors = record_from_end(&d->log, 1) / SECTOR_BYTES;
	char *copy = malloc(d->log.filled_len);
	struct rand_seq rand = { test_seed() };

	for (int i = 0; i < HOLES; i++) {
		size_t sector = i < 2   ? (size_t)i * (BLOCK_BYTES / SECTOR_BYTES)
				: i < 4 ? sectors - (size_t)i + 1
					: rand_seq_below(&rand, sectors);

		memcpy(copy, d->log.bytes, d->log.filled_len);
		unwrite(copy, sector, 0);
		write_file(&d->log, copy, d->log.filled_len);
		if (look(d) != -1)
			fail_msg("sector %zu of %zu: %d transactions", sector, sectors, look(d));
	}
	free(copy);
}

static off_t
log_bytes(const struct damage *d)
{
	char path[PATH_BYTES];
	struct stat st;

	find_file(d->fixture.dir, ".log", path);
	assert_int_equal(stat(path, &st), 0);
	return st.st_size;
}

/* Commits so many bytes and more. Returns how often the log became longer. */
static int
lengthen_log(const struct damage *d, struct kv_store *store, size_t bytes)
{
	int longer = 0;
	off_t before;

	put_numbered(store, 0);
	before = log_bytes(d);
	for (size_t done = 0; done < bytes; done += VALUE_BYTES) {
		put_numbered(store, 0);
		longer += log_bytes(d) != before;
		before = log_bytes(d);
	}
	assert_int_equal(before % FILL_PAGE_BYTES, 0);
	return longer;
}

/* Each sync of a file that has grown would wait for the file system's journal. */
static void
small_commits_seldom_make_the_log_longer(void **state)
{
	struct damage *d = *state;
	struct kv_store *store = fixture_open(d->fixture.url, (struct kv_options){ 0 });
	struct err err = { 0 };

	assert_in_range(lengthen_log(d, store, 3 * FILL_BYTES), 3, 5);
	/* A compaction begins another log, which is filled in turn. */
	assert_ok(kv_compact(store, &err));
	(void)lengthen_log(d, store, 3 * FILL_BYTES);
	assert_in_range(lengthen_log(d, store, 3 * FILL_BYTES), 3, 5);
	kv_close(store);
}

static void
closing_leaves_no_filling(void **state)
{
	struct damage *d = *state;
	struct kv_store *store = fixture_open(d->fixture.url, (struct kv_options){ 0 });
	struct log log = { .bytes = NULL };

	put_numbered(store, 0);
	kv_close(store);
	find_file(d->fixture.dir, ".log", log.path);
	read_file(&log);
	assert_in_range(log.len, VALUE_BYTES, 2 * VALUE_BYTES);
	free(log.bytes);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		T(torn_log_loses_its_last_transactions_whole),
		T(zeros_behind_the_log_are_its_end),
		T(store_goes_on_after_a_torn_log),
		T(wrong_byte_in_a_log_is_corrupt_and_loses_nothing_in_silence),
		T(wrong_length_in_a_log_is_no_torn_end),
		T(wrong_kind_in_a_log_is_no_end),
		T(hole_in_a_log_is_no_end),
		T(wrong_byte_in_a_table_is_corrupt_when_it_is_read),
		T(filling_behind_the_log_is_its_end),
		T(wrong_byte_in_front_of_a_filling_is_corrupt),
		T(unwritten_sectors_of_the_last_transaction_are_an_unfinished_write),
		T(unfinished_write_is_gone_once_there_is_a_newer_log),
		T(last_transaction_may_end_anywhere_in_front_of_the_filling),
		T(unwritten_sector_in_front_of_the_last_transaction_is_corrupt),
		T(small_commits_seldom_make_the_log_longer),
		T(closing_leaves_no_filling),
	};

	if (argc == 2)
		write_and_die(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
