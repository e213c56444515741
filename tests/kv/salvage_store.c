#include "salvage_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

/* ---- Values ---- */

static void
key_write(unsigned n, char ret[KEY_BYTES])
{
	snprintf(ret, KEY_BYTES, "t/%06u", n);
}

static size_t
value_write(unsigned n, uint32_t round, char *ret)
{
	size_t len = n % 97 == 0 ? LONG_VALUE_BYTES : (n * 7919 + round * 31) % VALUE_BYTES;
	uint32_t state = n * 2654435761U + round + 1;

	/* Every third compresses well; the others do not. */
	for (size_t i = 0; i < len; i++) {
		state = state * 1103515245 + 12345;
		ret[i] = n % 3 == 0 ? (char)('a' + i % 3) : (char)(state >> 16);
	}
	len += (size_t)snprintf(ret + len, KEY_BYTES, "%u:%u", n, round);
	return len;
}

void
put_all(struct salvage_test *t, struct kv_store *store, unsigned step, uint32_t round)
{
	static char value[LONG_VALUE_BYTES + KEY_BYTES];

	for (unsigned from = 0; from < KEYS; from += BATCH_KEYS * step) {
		struct kv_tx *tx = begin(store);

		for (unsigned i = 0; i < BATCH_KEYS && from + i * step < KEYS; i++) {
			unsigned n = from + i * step;
			char key[KEY_BYTES];

			key_write(n, key);
			assert_ok(kv_set(tx, str_from_cstr(key),
					 str_of(value, value_write(n, round, value))));
			t->expected[n] = (struct pair){ true, round };
		}
		assert_ok(kv_future_wait(kv_commit(tx)));
		kv_tx_free(tx);
	}
}

void
clear_some(struct salvage_test *t, struct kv_store *store)
{
	struct kv_tx *tx = begin(store);
	char key[KEY_BYTES], end[KEY_BYTES];

	for (unsigned n = 5; n < KEYS; n += 50) {
		key_write(n, key);
		assert_ok(kv_clear(tx, str_from_cstr(key)));
		t->expected[n].there = false;
	}
	key_write(700, key);
	key_write(720, end);
	assert_ok(kv_clear_range(tx, str_from_cstr(key), str_from_cstr(end)));
	for (unsigned n = 700; n < 720; n++)
		t->expected[n].there = false;
	/* One in which the transaction has written: RocksDB deletes the range. */
	key_write(DELETED_KEYS, key);
	assert_ok(kv_set(tx, str_from_cstr(key), STR("for a moment")));
	key_write(DELETED_KEYS_END, end);
	assert_ok(kv_clear_range(tx, str_from_cstr(key), str_from_cstr(end)));
	for (unsigned n = DELETED_KEYS; n < DELETED_KEYS_END; n++)
		t->expected[n].there = false;
	assert_ok(kv_future_wait(kv_commit(tx)));
	kv_tx_free(tx);
}

/* A store with tables of two levels, deletions among them, and a log. */
int
salvage_setup(void **state)
{
	struct salvage_test *t = mem_zalloc(sizeof(*t));
	const struct kv_options options = { .create = true, .no_sync = true };
	struct kv_store *store;

	fixture_make_dir(&t->dir);
	store = fixture_open(t->dir.url, options);
	put_all(t, store, 1, 1);
	assert_ok(kv_compact(store, NULL));
	put_all(t, store, 7, 2);
	clear_some(t, store);
	kv_close(store);
	/* The next opening makes a table of the log. */
	store = fixture_open(t->dir.url, options);
	put_all(t, store, 11, 3);
	kv_close(store);
	*state = t;
	return 0;
}

int
salvage_teardown(void **state)
{
	struct salvage_test *t = *state;

	fixture_remove_dir(&t->dir);
	mem_free(t);
	return 0;
}

/* ---- Copies ---- */

void
join(char *ret, size_t size, const char *first, const char *between, const char *last)
{
	int n = snprintf(ret, size, "%s%s%s", first, between, last);

	assert_true(n > 0 && (size_t)n < size);
}

void
copy_file(const char *from, const char *to)
{
	static char bytes[1 << 20];
	int in = open(from, O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ssize_t n;

	assert_true(in >= 0 && out >= 0);
	while ((n = read(in, bytes, sizeof(bytes))) > 0)
		assert_int_equal(write(out, bytes, (size_t)n), n);
	close(in);
	close(out);
}

/* The names of the files in a directory, at most FILES. */
size_t
list_files(const char *path, char names[FILES][NAME_BYTES])
{
	DIR *dir = opendir(path);
	const struct dirent *entry;
	size_t count = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)) && count < FILES)
		if (entry->d_name[0] != '.')
			join(names[count++], NAME_BYTES, entry->d_name, "", "");
	closedir(dir);
	return count;
}

void
remove_directory(const char *path)
{
	static char names[FILES][NAME_BYTES];
	char file[2 * PATH_BYTES];
	size_t count;

	if (access(path, F_OK) != 0)
		return;
	count = list_files(path, names);
	for (size_t i = 0; i < count; i++) {
		join(file, sizeof(file), path, "/", names[i]);
		unlink(file);
	}
	assert_int_equal(rmdir(path), 0);
}

void
copy_store(const struct salvage_test *t, const char *to)
{
	static char names[FILES][NAME_BYTES];
	char from[2 * PATH_BYTES], file[2 * PATH_BYTES];
	size_t count = list_files(t->dir.dir, names);

	remove_directory(to);
	assert_int_equal(mkdir(to, 0700), 0);
	for (size_t i = 0; i < count; i++) {
		join(from, sizeof(from), t->dir.dir, "/", names[i]);
		join(file, sizeof(file), to, "/", names[i]);
		copy_file(from, file);
	}
}

void
flip(const char *path, off_t at)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	char byte;

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &byte, 1, at), 1);
	byte = (char)~byte;
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	close(fd);
}

/* ---- What comes back ---- */

void
key_copy(struct str key, char ret[KEY_BYTES + 1])
{
	size_t len = key.len < KEY_BYTES ? key.len : KEY_BYTES;

	if (len)
		memcpy(ret, key.ptr, len);
	ret[len] = '\0';
}

static void
note_loss(void *arg, const struct kv_loss *loss)
{
	struct salvage_test *t = arg;
	struct loss *l = &t->losses[t->loss_count];

	assert_true(t->loss_count < LOSSES);
	assert_non_null(loss->text);
	*l = (struct loss){ .has_keys = loss->has_keys, .elsewhere = loss->elsewhere };
	key_copy(loss->after, l->after);
	(void)snprintf(l->text, sizeof(l->text), "%s", loss->text);
	l->endless = !loss->until.ptr;
	if (!l->endless)
		key_copy(loss->until, l->until);
	t->loss_count++;
}

/* True if a loss has the key; one without keys has all. */
static bool
is_told(const struct salvage_test *t, const char *key)
{
	for (size_t i = 0; i < t->loss_count; i++) {
		const struct loss *l = &t->losses[i];

		if (!l->has_keys ||
		    (strcmp(key, l->after) >= 0 && (l->endless || strcmp(key, l->until) < 0)))
			return true;
	}
	return false;
}

static void
compare_key(struct salvage_test *t, struct kv_tx *tx, unsigned n)
{
	static char wanted[LONG_VALUE_BYTES + KEY_BYTES];
	const struct pair *p = &t->expected[n];
	char key[KEY_BYTES];
	struct kv_future *f;
	struct str value;
	bool there, same = false;

	key_write(n, key);
	f = kv_get(tx, str_from_cstr(key), KV_SNAPSHOT);
	assert_ok(kv_future_wait(f));
	there = kv_future_value(f, &value);
	if (there && p->there)
		same = str_eq(value, str_of(wanted, value_write(n, p->round, wanted)));
	if (there == p->there && (same || !there)) {
		kv_future_free(f);
		return;
	}
	/* A value that is not the last one is one of those before. */
	for (uint32_t round = 1; there && !same && round <= 3; round++)
		same = str_eq(value, str_of(wanted, value_write(n, round, wanted)));
	assert_true(!there || same);
	kv_future_free(f);
	t->missing += !there;
	t->other += there;
	t->untold += !is_told(t, key);
}

enum status
compare_all(const char *url, bool has_format, void *arg, struct err *err)
{
	struct salvage_test *t = arg;
	struct kv_store *store = fixture_open(url, (struct kv_options){ 0 });
	struct kv_tx *tx = begin_read(store);

	(void)err;
	t->has_format = has_format;
	for (unsigned n = 0; n < KEYS; n++)
		compare_key(t, tx, n);
	kv_tx_free(tx);
	kv_close(store);
	return STATUS_OK;
}

static void
note_progress(void *arg, uint64_t bytes, uint64_t total, uint64_t keys)
{
	struct salvage_test *t = arg;

	assert_true(bytes >= t->told && bytes <= total);
	assert_true(keys == 0 || bytes == total);
	t->told = bytes;
}

struct kv_salvage_how
salvage_how(struct salvage_test *t)
{
	return (struct kv_salvage_how){ .shape = &fixture_shape,
					.lost = note_loss,
					.finish = compare_all,
					.told = note_progress,
					.arg = t };
}

void
salvage(struct salvage_test *t, const char *source)
{
	const struct kv_salvage_how how = salvage_how(t);
	char from[2 * PATH_BYTES], to[2 * PATH_BYTES], target[2 * PATH_BYTES];
	struct kv_salvage_sum sum;
	struct err err = { 0 };

	t->told = 0;
	t->loss_count = t->missing = t->other = t->untold = 0;
	join(from, sizeof(from), "embedded", ":", source);
	join(target, sizeof(target), t->dir.dir, ".", "new");
	join(to, sizeof(to), "embedded", ":", target);
	remove_directory(target);
	assert_ok(kv_salvage(from, to, &how, &sum, &err));
	assert_string_equal(err.text, "");
	assert_true(sum.tables + sum.logs > 0);
	assert_true(t->told > 0);
	remove_directory(target);
}
