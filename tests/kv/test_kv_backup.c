/* Backups, the check of all files, and compaction of the embedded engine. */
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rand.h"
#include "fixture.h"
#include "kv/backup.h"
#include "kv/damage.h"
#include "kv/embedded/damage.h"
#include "kv/embedded/directory.h"
#include "kv/embedded/embedded_int.h"

enum {
	VALUE_BYTES = 2000,
	KEYS = 3000,
	LOG_BYTES = 1 << 20,
	MOMENT_US = 20 * 1000,
	PATIENCE_MS = 10 * 1000,
};

struct place {
	struct kv_store *store;
	struct err err;
	struct kv_backup backup;
	char top[64];
	char path[128];
	char url[160];
	char copy_path[128];
	char copy_url[160];
	char backups[128];
};

static int
setup(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	snprintf(p->top, sizeof(p->top), "/tmp/frond-backup-XXXXXX");
	assert_non_null(mkdtemp(p->top));
	snprintf(p->path, sizeof(p->path), "%s/store", p->top);
	snprintf(p->url, sizeof(p->url), "embedded:%s", p->path);
	snprintf(p->copy_path, sizeof(p->copy_path), "%s/copy", p->top);
	snprintf(p->copy_url, sizeof(p->copy_url), "embedded:%s", p->copy_path);
	snprintf(p->backups, sizeof(p->backups), "%s/backups", p->top);
	p->store = fixture_open(p->url, (struct kv_options){ .create = true });
	*state = p;
	return 0;
}

static int
teardown(void **state)
{
	struct place *p = *state;

	kv_close(p->store);
	test_remove_tree(p->top);
	free(p);
	return 0;
}

static void
make_backup(struct place *p)
{
	if (kv_backup_create(p->store, p->backups, &p->backup, &p->err) != STATUS_OK)
		fail_msg("%s", p->err.text);
}

static const struct kv_restore as_it_is = { 0 };

static enum status
restore(struct place *p, uint32_t id)
{
	return kv_backup_restore(p->backups, id, p->copy_url, &as_it_is, &p->backup, &p->err);
}

static struct kv_store *
open_copy(struct place *p)
{
	return fixture_open(p->copy_url, (struct kv_options){ 0 });
}

static size_t
count_backups(struct place *p)
{
	struct kv_backup *list;
	size_t count;

	assert_ok(kv_backup_list(p->backups, &list, &count, &p->err));
	for (size_t i = 0; i < count; i++) {
		assert_true(list[i].bytes > 0);
		assert_true(clock_wall_ms() / 1000 - list[i].time_s < 3600);
		assert_true(i == 0 || list[i].id > list[i - 1].id);
	}
	mem_free(list);
	return count;
}

/* Values that do not compress. */
static void
fill(struct place *p, char letter)
{
	char value[VALUE_BYTES];

	for (int i = 0; i < KEYS; i += 100) {
		struct kv_tx *tx = begin(p->store);

		for (int j = i; j < i + 100; j++) {
			char key[32];

			snprintf(key, sizeof(key), "t/%c%d", letter, j);
			rand_bytes(value, sizeof(value));
			assert_ok(kv_set(tx, str_from_cstr(key), str_of(value, sizeof(value))));
		}
		commit(tx);
	}
}

static uint64_t tree_bytes;

static int
add_bytes(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)path;
	(void)ftw;
	if (type == FTW_F)
		tree_bytes += (uint64_t)st->st_size;
	return 0;
}

static uint64_t
bytes_below(const char *path)
{
	tree_bytes = 0;
	nftw(path, add_bytes, 16, FTW_PHYS);
	return tree_bytes;
}

/* ---- Backups ---- */

static void
restored_store_has_what_was_acknowledged_before_the_backup(void **state)
{
	struct place *p = *state;
	struct kv_store *copy;

	put_now(p->store, "t/before", "1");
	make_backup(p);
	put_now(p->store, "t/after", "2");
	assert_ok(restore(p, 0));
	copy = open_copy(p);
	assert_stored(copy, "t/before", "1");
	assert_stored(copy, "t/after", NULL);
	kv_close(copy);
}

static void
each_backup_can_be_restored_by_its_id(void **state)
{
	struct place *p = *state;
	struct kv_store *copy;
	uint32_t first;

	put_now(p->store, "t/a", "1");
	make_backup(p);
	first = p->backup.id;
	put_now(p->store, "t/a", "2");
	make_backup(p);
	assert_true(p->backup.id > first);
	assert_int_equal(count_backups(p), 2);
	assert_ok(restore(p, first));
	assert_int_equal(p->backup.id, first);
	copy = open_copy(p);
	assert_stored(copy, "t/a", "1");
	kv_close(copy);
	test_remove_tree(p->copy_path);
	assert_ok(restore(p, 0));
	copy = open_copy(p);
	assert_stored(copy, "t/a", "2");
	kv_close(copy);
	test_remove_tree(p->copy_path);
	assert_int_equal(restore(p, 77), STATUS_NOT_FOUND);
	assert_int_equal(access(p->copy_path, F_OK), -1);
}

static void
second_backup_costs_what_has_changed(void **state)
{
	struct place *p = *state;
	uint64_t first;

	fill(p, 'a');
	/* Or the store may do it between the two, and every file is a new one. */
	assert_ok(kv_compact(p->store, &p->err));
	make_backup(p);
	first = bytes_below(p->backups);
	assert_true(first >= (uint64_t)KEYS * VALUE_BYTES);
	put_now(p->store, "t/b", "1");
	make_backup(p);
	assert_true(p->backup.bytes >= first * 9 / 10);
	assert_true(bytes_below(p->backups) < first + first / 10);
}

static void
pruning_keeps_the_newest(void **state)
{
	struct place *p = *state;
	struct kv_backup *list;
	size_t count;

	for (int i = 0; i < 4; i++) {
		put_now(p->store, "t/a", "x");
		make_backup(p);
	}
	assert_int_equal(kv_backup_prune(p->backups, 0, &p->err), STATUS_INVALID);
	assert_ok(kv_backup_prune(p->backups, 2, &p->err));
	assert_ok(kv_backup_list(p->backups, &list, &count, &p->err));
	assert_int_equal(count, 2);
	assert_int_equal(list[1].id, p->backup.id);
	mem_free(list);
	assert_ok(restore(p, 0));
}

struct writer {
	struct place *p;
	atomic_bool stop;
	atomic_int acknowledged;
};

/* Each transaction sets two keys to one number: a half of one would show. */
static void *
write_pairs(void *arg)
{
	struct writer *w = arg;

	for (int n = 1; !atomic_load(&w->stop); n++) {
		struct kv_tx *tx = begin(w->p->store);
		char text[16];

		snprintf(text, sizeof(text), "%d", n);
		put(tx, "t/x", text);
		put(tx, "t/y", text);
		commit(tx);
		atomic_store(&w->acknowledged, n);
	}
	return NULL;
}

static int
stored_number(struct kv_store *store, const char *key)
{
	struct kv_tx *tx = begin_read(store);
	struct kv_future *f = kv_get(tx, str_from_cstr(key), KV_SNAPSHOT);
	struct str value = { 0 };
	char text[16] = "";

	assert_ok(kv_future_wait(f));
	assert_true(kv_future_value(f, &value));
	assert_true(value.len < sizeof(text));
	memcpy(text, value.ptr, value.len);
	kv_tx_free(tx);
	return atoi(text);
}

static void
backup_under_writes_is_one_version_with_all_acknowledged(void **state)
{
	struct place *p = *state;
	struct writer w = { .p = p };
	struct kv_store *copy;
	pthread_t thread;
	int before;

	assert_int_equal(pthread_create(&thread, NULL, write_pairs, &w), 0);
	while (atomic_load(&w.acknowledged) < 20)
		usleep(1000);
	before = atomic_load(&w.acknowledged);
	make_backup(p);
	atomic_store(&w.stop, true);
	pthread_join(thread, NULL);
	assert_ok(restore(p, 0));
	copy = open_copy(p);
	assert_true(stored_number(copy, "t/x") >= before);
	assert_int_equal(stored_number(copy, "t/x"), stored_number(copy, "t/y"));
	kv_close(copy);
}

static uint64_t
read_version(struct kv_store *store)
{
	struct kv_tx *tx = begin_read(store);
	uint64_t version;

	assert_ok(kv_get_read_version(tx, &version));
	kv_tx_free(tx);
	return version;
}

static void
each_restore_begins_above_all_versions_before_it(void **state)
{
	struct place *p = *state;
	struct kv_store *copy;
	uint64_t newest;

	put_now(p->store, "t/a", "1");
	make_backup(p);
	put_now(p->store, "t/a", "2");
	newest = read_version(p->store);
	for (int i = 0; i < 3; i++) {
		assert_ok(restore(p, 0));
		copy = open_copy(p);
		assert_true(read_version(copy) > newest);
		put_now(copy, "t/a", "3");
		put_now(copy, "t/a", "4");
		newest = read_version(copy);
		kv_close(copy);
		test_remove_tree(p->copy_path);
	}
}

static enum status
write_mark(struct kv_tx *tx, void *arg)
{
	(void)arg;
	return kv_set(tx, STR("t/finished"), STR("yes"));
}

static enum status
finish(struct kv_store *store, void *arg, struct err *err)
{
	const struct place *p = arg;

	/* Not at its place yet. */
	assert_int_equal(access(p->copy_path, F_OK), -1);
	return kv_run(store, write_mark, NULL, NULL, err);
}

static enum status
finish_badly(struct kv_store *store, void *arg, struct err *err)
{
	(void)store;
	(void)arg;
	return err_set(err, STATUS_CORRUPT, "no");
}

/* The log that the store keeps has what came behind the backup. */
static void
a_restore_goes_on_with_the_log_until_a_moment(void **state)
{
	struct place *p = *state;
	struct kv_restore_log log = { .path = p->path };
	const struct kv_restore how = { .log = &log };
	struct kv_store *copy;

	kv_close(p->store);
	p->store = fixture_open(p->url, (struct kv_options){ .log_bytes = LOG_BYTES });
	put_now(p->store, "t/before", "1");
	make_backup(p);
	put_now(p->store, "t/after", "2");
	usleep(MOMENT_US);
	log.until_ms = clock_wall_ms();
	usleep(MOMENT_US);
	put_now(p->store, "t/late", "3");
	assert_ok(kv_backup_restore(p->backups, 0, p->copy_url, &how, &p->backup, &p->err));
	assert_int_equal(log.records, 1);
	assert_true(log.last_ms && log.last_ms <= log.until_ms);
	assert_true(log.next_ms > log.until_ms);
	copy = open_copy(p);
	assert_stored(copy, "t/before", "1");
	assert_stored(copy, "t/after", "2");
	assert_stored(copy, "t/late", NULL);
	kv_close(copy);
	test_remove_tree(p->copy_path);
	log.until_ms = log.next_ms;
	assert_ok(kv_backup_restore(p->backups, 0, p->copy_url, &how, &p->backup, &p->err));
	assert_int_equal(log.records, 2);
	assert_int_equal(log.last_ms, log.until_ms);
	assert_int_equal(log.next_ms, 0);
	copy = open_copy(p);
	assert_stored(copy, "t/late", "3");
	kv_close(copy);
}

static void
store_is_finished_before_it_is_at_its_place(void **state)
{
	struct place *p = *state;
	struct kv_store *copy;
	char half[160];

	make_backup(p);
	assert_int_equal(kv_backup_restore(p->backups, 0, p->copy_url,
					   &(struct kv_restore){ .finish = finish_badly, .arg = p },
					   &p->backup, &p->err),
			 STATUS_CORRUPT);
	assert_string_equal(p->err.text, "no");
	snprintf(half, sizeof(half), "%s.restoring", p->copy_path);
	assert_int_equal(access(p->copy_path, F_OK), -1);
	assert_int_equal(access(half, F_OK), -1);
	assert_ok(kv_backup_restore(p->backups, 0, p->copy_url,
				    &(struct kv_restore){ .finish = finish, .arg = p }, &p->backup,
				    &p->err));
	copy = open_copy(p);
	assert_stored(copy, "t/finished", "yes");
	kv_close(copy);
}

static void
restore_refuses_what_is_there(void **state)
{
	struct place *p = *state;
	char half[160];

	make_backup(p);
	assert_int_equal(kv_backup_restore(p->backups, 0, p->url, &as_it_is, &p->backup, &p->err),
			 STATUS_EXISTS);
	snprintf(half, sizeof(half), "%s.restoring", p->copy_path);
	assert_int_equal(mkdir(half, 0777), 0);
	assert_int_equal(restore(p, 0), STATUS_EXISTS);
	assert_int_equal(rmdir(half), 0);
	assert_int_equal(mkdir(p->copy_path, 0777), 0); /* an empty directory is fine */
	assert_ok(restore(p, 0));
	assert_int_equal(
		kv_backup_restore(p->backups, 0, "embedded:", &as_it_is, &p->backup, &p->err),
		STATUS_INVALID);
	assert_int_equal(kv_backup_restore(p->backups, 0, "fdb:x", &as_it_is, &p->backup, &p->err),
			 STATUS_UNSUPPORTED);
}

static void
only_backup_directories_are_used(void **state)
{
	struct place *p = *state;
	struct kv_backup *list;
	char inner[160];
	size_t count;

	assert_int_equal(kv_backup_list(p->backups, &list, &count, &p->err), STATUS_NOT_FOUND);
	assert_int_equal(kv_backup_prune(p->backups, 1, &p->err), STATUS_NOT_FOUND);
	assert_int_equal(restore(p, 0), STATUS_NOT_FOUND);
	assert_int_equal(access(p->backups, F_OK), -1);
	assert_int_equal(kv_backup_create(p->store, p->path, &p->backup, &p->err), STATUS_INVALID);
	assert_int_equal(kv_backup_list(p->path, &list, &count, &p->err), STATUS_NOT_FOUND);
	snprintf(inner, sizeof(inner), "%s/backups", p->backups);
	assert_int_equal(kv_backup_create(p->store, inner, &p->backup, &p->err), STATUS_IO);
}

static void
directory_in_use_is_locked(void **state)
{
	struct place *p = *state;
	struct kv_backup *list;
	size_t count;
	int fd;

	make_backup(p);
	fd = open(p->backups, O_RDONLY | O_DIRECTORY);
	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(kv_backup_create(p->store, p->backups, &p->backup, &p->err),
			 STATUS_LOCKED);
	assert_int_equal(kv_backup_list(p->backups, &list, &count, &p->err), STATUS_LOCKED);
	assert_int_equal(restore(p, 0), STATUS_LOCKED);
	close(fd);
	assert_int_equal(count_backups(p), 1);
}

enum damage {
	DAMAGE_FLIP,   /* a bit in the middle of the file */
	DAMAGE_CUT,    /* the file is half as long */
	DAMAGE_REMOVE, /* the file is gone */
};

/* The largest of the tables in a directory. */
static void
find_table(const char *dir_path, char *ret, size_t n, off_t *ret_bytes)
{
	const struct dirent *e;
	DIR *dir = opendir(dir_path);

	assert_non_null(dir);
	*ret_bytes = 0;
	while ((e = readdir(dir))) {
		struct stat st;

		if (strstr(e->d_name, ".sst") && fstatat(dirfd(dir), e->d_name, &st, 0) == 0 &&
		    st.st_size > *ret_bytes) {
			*ret_bytes = st.st_size;
			snprintf(ret, n, "%s/%s", dir_path, e->d_name);
		}
	}
	closedir(dir);
	assert_true(*ret_bytes > 0);
}

static void
flip_bit(const char *file, off_t at)
{
	int fd = open(file, O_RDWR);
	char byte;

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &byte, 1, at), 1);
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	close(fd);
}

static void
damage_shared_file(struct place *p, enum damage damage)
{
	char dir[160], file[512];
	off_t bytes;

	snprintf(dir, sizeof(dir), "%s/shared_checksum", p->backups);
	find_table(dir, file, sizeof(file), &bytes);
	switch (damage) {
	case DAMAGE_FLIP:
		flip_bit(file, bytes / 2);
		break;
	case DAMAGE_CUT:
		assert_int_equal(truncate(file, bytes / 2), 0);
		break;
	case DAMAGE_REMOVE:
		assert_int_equal(unlink(file), 0);
		break;
	}
}

static void
damaged_backup_is_refused(void **state)
{
	struct place *p = *state;

	fill(p, 'a');
	make_backup(p);
	assert_ok(emb_backup_find_damage(p->backups, p->backup.id, &p->err));
	damage_shared_file(p, DAMAGE_FLIP);
	assert_int_equal(restore(p, 0), STATUS_CORRUPT);
	assert_non_null(strstr(p->err.text, "is damaged: shared_checksum/"));
	assert_int_equal(access(p->copy_path, F_OK), -1);
	damage_shared_file(p, DAMAGE_CUT);
	assert_int_equal(restore(p, 0), STATUS_CORRUPT);
	assert_int_equal(access(p->copy_path, F_OK), -1);
	assert_int_equal(count_backups(p), 1);
	damage_shared_file(p, DAMAGE_REMOVE);
	assert_int_equal(count_backups(p), 0);
	assert_int_equal(restore(p, 0), STATUS_NOT_FOUND);
}

/* ---- Checks of all files ---- */

struct told {
	unsigned count;
	char file[128];
	char first[32], last[32], before[32];
};

static void
text_of(struct str s, char ret[32])
{
	snprintf(ret, 32, "%.*s", STR_ARG(s));
}

static void
told_of(void *arg, const struct kv_damaged_file *file)
{
	struct told *t = arg;

	t->count++;
	snprintf(t->file, sizeof(t->file), "%s", file->file);
	text_of(file->first, t->first);
	text_of(file->last, t->last);
	text_of(file->before, t->before);
}

static void
a_damaged_file_is_told_of_once(void **state)
{
	struct place *p = *state;
	struct told told = { 0 };
	char file[512];
	off_t bytes;

	fill(p, 'a');
	assert_ok(kv_compact(p->store, &p->err));
	assert_ok(kv_files_check(p->store, told_of, &told, &p->err));
	assert_int_equal(told.count, 0);
	kv_close(p->store);
	find_table(p->path, file, sizeof(file), &bytes);
	/* Two blocks: one near the beginning, and one near the end. */
	flip_bit(file, bytes / 8);
	flip_bit(file, bytes - bytes / 8);
	p->store = fixture_open(p->url, (struct kv_options){ 0 });
	assert_ok(kv_files_check(p->store, told_of, &told, &p->err));
	assert_int_equal(told.count, 1);
	assert_non_null(strstr(file, told.file));
	assert_true(strcmp(told.first, told.before) < 0 && strcmp(told.before, told.last) < 0);
}

/* A read from that key fails with RocksDB's words. */
static enum status
meet(struct place *p, const char *key, const char *words)
{
	return emb_read_error((struct emb_store *)p->store, str_from_cstr(key), strdup(words),
			      "reading", &p->err);
}

static void
meet_damage(struct place *p, unsigned file, const char *key)
{
	char words[256];

	snprintf(words, sizeof(words), "Corruption: block checksum mismatch in %s/%06u.sst",
		 p->path, file);
	assert_int_equal(meet(p, key, words), STATUS_CORRUPT);
}

static void
damaged_files_are_remembered_once_each(void **state)
{
	static const unsigned files[] = { 1, 2, 1, 3, 2, 1, 3 };
	static struct kv_damage met[2 * KV_DAMAGES_KEPT];
	static char long_name[2 * KV_DAMAGE_FILE_BYTES];
	static char long_key[2 * KV_DAMAGE_KEY_BYTES];
	struct place *p = *state;
	char key[16], file[16];

	assert_int_equal(kv_damages(p->store, 0, met, KV_DAMAGES_KEPT), 0);
	for (unsigned i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(key, sizeof(key), "key%u", i);
		meet_damage(p, files[i], key);
	}
	/* What is no damage, or names no file. */
	assert_int_equal(meet(p, "x", "IO error: no such file: 000004.sst"), STATUS_IO);
	assert_int_equal(meet(p, "x", "Corruption: in no file"), STATUS_CORRUPT);
	snprintf(long_name, sizeof(long_name), "Corruption: %0*u.sst",
		 KV_DAMAGE_FILE_BYTES - (int)strlen(".sst"), 5);
	assert_int_equal(meet(p, "x", long_name), STATUS_CORRUPT);
	assert_int_equal(kv_damages(p->store, 0, met, KV_DAMAGES_KEPT), 3);
	assert_string_equal(met[0].file, "000001.sst");
	assert_non_null(strstr(met[0].text, "checksum mismatch"));
	assert_int_equal(met[0].key_len, 4);
	assert_memory_equal(met[0].key, "key0", 4);
	assert_string_equal(met[1].file, "000002.sst");
	assert_string_equal(met[2].file, "000003.sst");
	assert_memory_equal(met[2].key, "key3", 4);
	/* Some of them. */
	memset(met, 0, sizeof(met));
	assert_int_equal(kv_damages(p->store, 1, met, 1), 3);
	assert_string_equal(met[0].file, "000002.sst");
	assert_string_equal(met[1].file, "");
	assert_int_equal(kv_damages(p->store, 3, met, 1), 3);
	assert_string_equal(met[0].file, "000002.sst");
	/* As many as there is room for. */
	memset(long_key, 'k', sizeof(long_key) - 1);
	for (unsigned i = 1; i <= KV_DAMAGES_KEPT + 2; i++)
		meet_damage(p, i, long_key);
	assert_int_equal(kv_damages(p->store, 0, met, 2 * KV_DAMAGES_KEPT), KV_DAMAGES_KEPT);
	snprintf(file, sizeof(file), "%06u.sst", KV_DAMAGES_KEPT);
	assert_string_equal(met[KV_DAMAGES_KEPT - 1].file, file);
	assert_int_equal(met[KV_DAMAGES_KEPT - 1].key_len, KV_DAMAGE_KEY_BYTES);
	assert_string_equal(met[KV_DAMAGES_KEPT].file, "");
}

/* ---- Compaction ---- */

static void
compaction_gives_back_what_was_deleted(void **state)
{
	struct place *p = *state;
	struct kv_tx *tx;
	uint64_t before;

	fill(p, 'a');
	fill(p, 'b');
	before = kv_store_stats(p->store).disk_bytes;
	tx = begin(p->store);
	assert_ok(kv_clear_range(tx, STR("t/a"), STR("t/b")));
	commit(tx);
	assert_ok(kv_compact(p->store, &p->err));
	assert_true(kv_store_stats(p->store).disk_bytes < before * 6 / 10);
	assert_true(kv_store_stats(p->store).disk_bytes > before * 4 / 10);
	tx = begin_read(p->store);
	assert_get(tx, "t/a0", NULL);
	kv_tx_free(tx);
}

static void
store_open_for_reading_is_neither_compacted_nor_backed_up(void **state)
{
	struct place *p = *state;
	struct kv_store *reader = fixture_open(p->url, (struct kv_options){ .read_only = true });

	assert_int_equal(kv_compact(reader, &p->err), STATUS_FORBIDDEN);
	assert_int_equal(kv_backup_create(reader, p->backups, &p->backup, &p->err),
			 STATUS_FORBIDDEN);
	kv_close(reader);
}

static void
set_database(struct emb_store *store, rocksdb_t *db)
{
	assert_true(gate_close(&store->gate, clock_after_ms(PATIENCE_MS)));
	store->db = db;
	gate_open(&store->gate);
}

/* The store is not opened again while there is one. */
static void
long_uses_are_over_however_they_end(void **state)
{
	struct place *p = *state;
	struct emb_store *store = (struct emb_store *)p->store;
	rocksdb_t *db = store->db;

	fill(p, 'a');
	assert_ok(kv_compact(p->store, &p->err));
	make_backup(p);
	assert_int_equal(atomic_load(&store->health.long_uses), 0);
	/* As after a failure of the disk that lasts. */
	set_database(store, NULL);
	assert_int_equal(kv_compact(p->store, &p->err), STATUS_UNAVAILABLE);
	assert_int_equal(kv_backup_create(p->store, p->backups, &p->backup, &p->err),
			 STATUS_UNAVAILABLE);
	set_database(store, db);
	assert_int_equal(atomic_load(&store->health.long_uses), 0);
}

#define BACKUP_TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		BACKUP_TEST(restored_store_has_what_was_acknowledged_before_the_backup),
		BACKUP_TEST(each_backup_can_be_restored_by_its_id),
		BACKUP_TEST(second_backup_costs_what_has_changed),
		BACKUP_TEST(pruning_keeps_the_newest),
		BACKUP_TEST(backup_under_writes_is_one_version_with_all_acknowledged),
		BACKUP_TEST(each_restore_begins_above_all_versions_before_it),
		BACKUP_TEST(a_restore_goes_on_with_the_log_until_a_moment),
		BACKUP_TEST(store_is_finished_before_it_is_at_its_place),
		BACKUP_TEST(restore_refuses_what_is_there),
		BACKUP_TEST(only_backup_directories_are_used),
		BACKUP_TEST(directory_in_use_is_locked),
		BACKUP_TEST(damaged_backup_is_refused),
		BACKUP_TEST(a_damaged_file_is_told_of_once),
		BACKUP_TEST(damaged_files_are_remembered_once_each),
		BACKUP_TEST(compaction_gives_back_what_was_deleted),
		BACKUP_TEST(long_uses_are_over_however_they_end),
		BACKUP_TEST(store_open_for_reading_is_neither_compacted_nor_backed_up),
	};

	return cmocka_run_group_tests_name("kv_backup", tests, NULL, NULL);
}
