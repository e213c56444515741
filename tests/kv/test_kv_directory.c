/* Where the embedded engine makes a store and finds one, and what it does not take for one. */
#include "fixture.h"

#include "base/mem.h"
#include "kv/embedded/directory.h"
#include "kv/embedded/log_record.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <rocksdb/c.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct kv_options fresh = { .create = true, .no_sync = true };

static void
missing_store_is_not_found(void **state)
{
	char url[400];
	struct err err = { 0 };

	snprintf(url, sizeof(url), "%s/absent", url_of(state));
	assert_int_equal(open_status(url, (struct kv_options){ 0 }, &err), STATUS_NOT_FOUND);
	assert_non_null(strstr(err.text, "absent"));
	assert_int_equal(
		open_status(url, (struct kv_options){ .create = true, .read_only = true }, &err),
		STATUS_NOT_FOUND);
	/* An empty directory is no store either. */
	assert_int_equal(open_status(url_of(state), (struct kv_options){ 0 }, &err),
			 STATUS_NOT_FOUND);
	assert_int_equal(open_status("embedded:/dev/null", fresh, &err), STATUS_INVALID);
}

static void
second_opening_finds_it_locked(void **state)
{
	struct kv_store *store = fixture_open(url_of(state), fresh);
	struct err err = { 0 };

	assert_int_equal(open_status(url_of(state), fresh, &err), STATUS_LOCKED);
	assert_non_null(strstr(err.text, "in use"));
	kv_close(store);
	kv_close(fixture_open(url_of(state), fresh));
}

static void
put_file(const struct fixture *f, const char *name)
{
	char path[400];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
}

static void
remove_file(const struct fixture *f, const char *name)
{
	char path[400];

	snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	assert_return_code(unlink(path), errno);
}

static void
directory_with_files_of_others_is_refused(void **state)
{
	static const char *const foreign[] = { "notes.txt", ".bashrc", "LOG.txt" };
	const struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
		struct err err = { 0 };

		put_file(f, foreign[i]);
		assert_int_equal(open_status(f->url, fresh, &err), STATUS_EXISTS);
		assert_non_null(strstr(err.text, foreign[i]));
		remove_file(f, foreign[i]);
	}
	/* Nothing was left behind by the attempts: a new store can be made. */
	kv_close(fixture_open(f->url, fresh));
}

static void
directory_of_a_file_system_or_an_unfinished_store_becomes_one(void **state)
{
	const struct fixture *f = *state;

	put_file(f, "lost+found");
	put_file(f, "LOCK");
	put_file(f, "LOG");
	put_file(f, "IDENTITY");
	put_file(f, "000001.dbtmp");
	kv_close(fixture_open(f->url, fresh));
	/* Nobody minds what is put beside a store later. */
	put_file(f, "notes.txt");
	kv_close(fixture_open(f->url, fresh));
	remove_file(f, "notes.txt");
	remove_file(f, "lost+found");
}

/* RocksDB would make a new store, and remove the files of the old one. */
static void
store_without_its_current_file_is_not_made_anew(void **state)
{
	const struct fixture *f = *state;
	struct kv_store *store = fixture_open(f->url, fresh);
	struct err err = { 0 };

	put_now(store, "a", "1");
	kv_close(store);
	remove_file(f, "CURRENT");
	assert_int_equal(open_status(f->url, fresh, &err), STATUS_CORRUPT);
	assert_non_null(strstr(err.text, "CURRENT"));
	put_file(f, "CURRENT");
	assert_int_equal(open_status(f->url, fresh, &err), STATUS_CORRUPT);
}

static void
foreign_database_is_refused(void **state)
{
	const struct fixture *f = *state;
	rocksdb_options_t *o = rocksdb_options_create();
	rocksdb_writeoptions_t *w = rocksdb_writeoptions_create();
	struct err err = { 0 };
	char *error = NULL;
	rocksdb_t *db;

	rocksdb_options_set_create_if_missing(o, 1);
	db = rocksdb_open(o, f->dir, &error);
	assert_null(error);
	rocksdb_put(db, w, "a", 1, "b", 1, &error);
	assert_null(error);
	rocksdb_close(db);
	rocksdb_options_destroy(o);
	rocksdb_writeoptions_destroy(w);
	assert_int_equal(open_status(f->url, fresh, &err), STATUS_CORRUPT);
}

static void
read_only_store_reads_and_refuses_writes(void **state)
{
	struct kv_store *store = fixture_open(url_of(state), fresh);
	struct kv_tx *tx;

	put_now(store, "t/a", "1");
	kv_close(store);
	store = fixture_open(url_of(state), (struct kv_options){ .read_only = true });
	tx = begin(store);
	assert_get(tx, "t/a", "1");
	assert_int_equal(kv_set(tx, STR("t/a"), STR("2")), STATUS_FORBIDDEN);
	commit(tx);
	kv_close(store);
}

static void
a_file_that_cannot_be_synced_is_told_of(void **state)
{
	const struct fixture *f = *state;
	struct err err = { 0 };
	char path[400];

	put_file(f, "a");
	assert_int_equal(emb_directory_sync_all(f->dir, &err), STATUS_OK);
	/* A device has nothing to sync. */
	snprintf(path, sizeof(path), "%s/null", f->dir);
	assert_return_code(symlink("/dev/null", path), errno);
	assert_int_equal(emb_directory_sync_all(f->dir, &err), STATUS_IO);
	assert_non_null(strstr(err.text, "syncing null"));
	remove_file(f, "null");
	assert_int_equal(emb_directory_sync_all(f->dir, &err), STATUS_OK);
	remove_file(f, "a");
}

/* The file is written with its content, or replaced. */
static void
write_file(const struct fixture *f, const char *name, const char *content)
{
	char path[400];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, strlen(content)), strlen(content));
	close(fd);
}

static void
the_manifest_is_the_file_that_current_names(void **state)
{
	static const struct {
		const char *current, *name;
		uint64_t bytes;
	} cases[] = {
		{ "MANIFEST-000005\n", "MANIFEST-000005", 7 },
		{ "MANIFEST-000005", "MANIFEST-000005", 7 },
		{ "MANIFEST-000006\n", "MANIFEST-000006", 0 }, /* it is not there */
		{ "\n", "", 0 },
		{ "", "", 0 },
	};
	const struct fixture *f = *state;
	struct emb_manifest one, other;

	emb_manifest_look(f->dir, &one);
	assert_string_equal(one.name, "");
	write_file(f, "MANIFEST-000005", "1234567");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		write_file(f, "CURRENT", cases[i].current);
		emb_manifest_look(f->dir, &one);
		assert_string_equal(one.name, cases[i].name);
		assert_int_equal(one.bytes, cases[i].bytes);
	}
	/* It is another one if it has another name, or has been appended to. */
	write_file(f, "CURRENT", "MANIFEST-000005\n");
	emb_manifest_look(f->dir, &one);
	emb_manifest_look(f->dir, &other);
	assert_true(emb_manifest_eq(&one, &other));
	write_file(f, "MANIFEST-000005", "12345678");
	emb_manifest_look(f->dir, &other);
	assert_false(emb_manifest_eq(&one, &other));
	write_file(f, "MANIFEST-000006", "1234567");
	write_file(f, "CURRENT", "MANIFEST-000006\n");
	emb_manifest_look(f->dir, &other);
	assert_false(emb_manifest_eq(&one, &other));
	remove_file(f, "CURRENT");
	remove_file(f, "MANIFEST-000005");
	remove_file(f, "MANIFEST-000006");
}

static void
a_directory_is_tried_with_a_file_that_is_removed_again(void **state)
{
	const struct fixture *f = *state;
	struct err err = { 0 };
	bool empty = false;
	char path[400];

	for (unsigned syncs = 0; syncs <= 1; syncs++) {
		assert_int_equal(emb_directory_probe(f->dir, 0, syncs), 0);
		assert_int_equal(emb_directory_probe(f->dir, 1, syncs), 0);
		assert_int_equal(emb_directory_probe(f->dir, UINT64_MAX, syncs), ENOSPC);
	}
	assert_int_equal(emb_directory_is_empty(f->dir, &empty, &err), STATUS_OK);
	assert_true(empty);
	snprintf(path, sizeof(path), "%s/frond.probe", f->dir);
	assert_int_equal(emb_directory_probe(path, 0, true), ENOENT);
	assert_return_code(mkdir(path, 0700), errno);
	assert_int_equal(emb_directory_probe(f->dir, 0, true), EISDIR);
	assert_int_equal(emb_directory_is_empty(f->dir, &empty, &err), STATUS_OK);
	assert_false(empty);
	assert_return_code(rmdir(path), errno);
	/* What is written cannot be brought to a disk, which nobody asks for without syncs. */
	assert_return_code(symlink("/dev/null", path), errno);
	assert_int_equal(emb_directory_probe(f->dir, 0, true), EINVAL);
	assert_return_code(symlink("/dev/null", path), errno);
	assert_int_equal(emb_directory_probe(f->dir, 0, false), 0);
	/* A device that is full for ever. */
	assert_return_code(symlink("/dev/full", path), errno);
	assert_int_equal(emb_directory_probe(f->dir, 0, false), ENOSPC);
	put_file(f, "a");
	snprintf(path, sizeof(path), "%s/a", f->dir);
	assert_int_equal(emb_directory_probe(path, 0, true), ENOTDIR);
	assert_int_equal(emb_directory_is_empty(path, &empty, &err), STATUS_IO);
	remove_file(f, "a");
	assert_int_equal(emb_directory_is_empty(path, &empty, &err), STATUS_NOT_FOUND);
}

static void
tables_of_a_directory_are_counted_by_their_names(void **state)
{
	static const char *const names[] = { "000007.sst", "12.sst", "x.sst", "000008.log",
					     "000009.sst.tmp" };
	const struct fixture *f = *state;
	char path[400];

	assert_int_equal(emb_directory_tables(f->dir), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		put_file(f, names[i]);
	assert_int_equal(emb_directory_tables(f->dir), 2);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		remove_file(f, names[i]);
	snprintf(path, sizeof(path), "%s/absent", f->dir);
	assert_int_equal(emb_directory_tables(path), 0);
}

/* One that is as long as a block is read once more, and has nothing left. */
static void
a_checksum_is_of_a_file_that_can_be_read(void **state)
{
	const struct fixture *f = *state;
	char path[400], block[LOG_BLOCK_BYTES] = { 0 };
	uint32_t whole = 0, again = 1;
	int fd;

	snprintf(path, sizeof(path), "%s/block", f->dir);
	assert_false(emb_file_crc(path, &whole));
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, block, sizeof(block)), sizeof(block));
	close(fd);
	assert_true(emb_file_crc(path, &whole));
	assert_true(emb_file_crc(path, &again));
	assert_int_equal(whole, again);
	(void)mem_fail_after(1);
	assert_false(emb_file_crc(path, &again));
	(void)mem_fail_after(0);
	remove_file(f, "block");
	assert_false(emb_file_crc(f->dir, &again));
}

/* ---- Logs whose last commits have failed ---- */

/* A log as RocksDB writes it: a record for each commit, of which one ends with the first block. */
struct made_log {
	uint8_t bytes[2 * LOG_BLOCK_BYTES];
	size_t len;
	size_t before[4]; /* where the commits of versions 1, 2, 3 and 4 begin */
};

enum {
	COMMIT_BYTES = 100, /* of a payload */
	JUNK_BYTES = 3,
};

static void
log_add_commit(struct made_log *log, uint8_t version, size_t payload)
{
	static const char put[] = "\x01\x09\xff/version\x08";
	uint8_t *header = log->bytes + log->len;
	uint8_t *end = header + LOG_HEADER_BYTES + payload - LOG_BATCH_END_BYTES;
	uint32_t table[CRC_TABLE];
	uint32_t crc;

	crc_make_table(table);
	log->before[version - 1] = log->len;
	memcpy(end, put, LOG_BATCH_END_VALUE);
	end[LOG_BATCH_END_BYTES - 1] = version;
	header[LOG_RECORD_LENGTH] = (uint8_t)payload;
	header[LOG_RECORD_LENGTH + 1] = (uint8_t)(payload >> 8);
	header[LOG_RECORD_TYPE] = LOG_RECORD_FULL;
	crc = crc_add(table, crc_begin, LOG_RECORD_FULL);
	for (size_t i = 0; i < payload; i++)
		crc = crc_add(table, crc, header[LOG_HEADER_BYTES + i]);
	crc = htole32(crc_finish(crc));
	memcpy(header, &crc, sizeof(crc));
	log->len += LOG_HEADER_BYTES + payload;
}

static void
log_make(struct made_log *log)
{
	*log = (struct made_log){ .len = 0 };
	log_add_commit(log, 1, COMMIT_BYTES);
	log_add_commit(log, 2, LOG_BLOCK_BYTES - log->len - LOG_HEADER_BYTES);
	assert_int_equal(log->len, LOG_BLOCK_BYTES);
	log_add_commit(log, 3, COMMIT_BYTES);
	log_add_commit(log, 4, COMMIT_BYTES);
	/* What was torn off; no record ends with it. */
	memset(log->bytes + log->len, 'x', JUNK_BYTES);
	log->len += JUNK_BYTES;
}

/* How long the log is when what is newer than a version was taken out. */
static size_t
length_of_cut(const struct fixture *f, const struct made_log *log, uint64_t published, bool is_new)
{
	struct err err = { 0 };
	char path[400];
	uint64_t bytes;
	int fd;

	snprintf(path, sizeof(path), "%s/000007.log", f->dir);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, log->bytes, log->len), log->len);
	close(fd);
	if (emb_logs_cut(f->dir, published, is_new, &err) != STATUS_OK)
		fail_msg("%s", err.text);
	bytes = emb_logs_bytes(f->dir);
	remove_file(f, "000007.log");
	return bytes;
}

static void
a_log_is_cut_behind_the_last_version_and_nowhere_else(void **state)
{
	const struct fixture *f = *state;
	struct made_log *log = mem_alloc(sizeof(*log));

	assert_non_null(log);
	log_make(log);
	assert_int_equal(length_of_cut(f, log, 0, false), 0);
	assert_int_equal(length_of_cut(f, log, 1, false), log->before[1]);
	assert_int_equal(length_of_cut(f, log, 2, false), log->before[2]);
	assert_int_equal(length_of_cut(f, log, 3, false), log->before[3]);
	assert_int_equal(length_of_cut(f, log, 4, false), log->len - JUNK_BYTES);
	/* All of it was published before: RocksDB judges what is no record. */
	assert_int_equal(length_of_cut(f, log, 5, false), log->len);
	assert_int_equal(length_of_cut(f, log, 5, true), 0);
	mem_free(log);
}

/* Cut to the longest that there may be, it would name another file. */
static void
a_log_whose_path_is_too_long_is_not_opened(void **state)
{
	const struct fixture *f = *state;
	char path[PATH_MAX];
	uint64_t number = 7;
	size_t len;
	int fd;

	put_file(f, "0");
	put_file(f, "000007.log");
	len = (size_t)snprintf(path, sizeof(path), "%s", f->dir);
	fd = emb_logs_open_to_append(path, &number);
	assert_true(fd >= 0);
	close(fd);
	/* Behind as many slashes as leave room for one more and the first digit of the name. */
	memset(path + len, '/', sizeof(path) - len);
	path[sizeof(path) - 3] = '\0';
	assert_int_equal(emb_logs_open_to_append(path, &number), -1);
	assert_int_equal(errno, ENAMETOOLONG);
	remove_file(f, "0");
	remove_file(f, "000007.log");
}

#define T(name) cmocka_unit_test_setup_teardown(name, fixture_dir_setup, fixture_dir_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(missing_store_is_not_found),
		T(a_file_that_cannot_be_synced_is_told_of),
		T(the_manifest_is_the_file_that_current_names),
		T(a_directory_is_tried_with_a_file_that_is_removed_again),
		T(tables_of_a_directory_are_counted_by_their_names),
		T(a_checksum_is_of_a_file_that_can_be_read),
		T(a_log_whose_path_is_too_long_is_not_opened),
		T(a_log_is_cut_behind_the_last_version_and_nowhere_else),
		T(second_opening_finds_it_locked),
		T(directory_with_files_of_others_is_refused),
		T(directory_of_a_file_system_or_an_unfinished_store_becomes_one),
		T(store_without_its_current_file_is_not_made_anew),
		T(foreign_database_is_refused),
		T(read_only_store_reads_and_refuses_writes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
