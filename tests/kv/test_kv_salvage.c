/*
 * A store of what is whole in a damaged one: each byte that is spoiled, in any file, costs at most
 * the keys of its block or its transaction, and every difference lies in what was told of.
 */
#include "fixture.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "kv/embedded/raw.h"
#include "kv/embedded/xxh3.h"
#include "kv/salvage.h"

enum {
	KEYS = 1500,
	KEY_BYTES = 16,
	BATCH_KEYS = 25,
	VALUE_BYTES = 900, /* most of them are shorter */
	LONG_VALUE_BYTES = 60000,
	LOSSES = 64,
	/* A block has 8 KB and is filled up to 9: so many keys have at most one block. */
	BLOCK_KEYS = 600,
	SHORT_BYTES = 100, /* of a table that is zeros */
	PLACES = 12,       /* of a file that are spoiled, one after the other */
	FILES = 64,
	PATH_BYTES = 400,
	NAME_BYTES = 100,
	TEXT_BYTES = 200,
};

struct pair {
	bool there;
	uint32_t round; /* which of the key's values */
};

struct loss {
	bool has_keys;
	char after[KEY_BYTES + 1];
	char until[KEY_BYTES + 1];
	bool endless;
	uint64_t elsewhere;
	char text[TEXT_BYTES];
};

struct salvage_test {
	struct fixture dir;
	struct pair expected[KEYS];
	struct loss losses[LOSSES];
	size_t loss_count;
	size_t missing;
	size_t other;  /* than it was last */
	size_t untold; /* differences that no loss has */
	bool has_format;
	uint64_t told; /* bytes that were read, when it was told last */
};

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

static void
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

static void
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
	assert_ok(kv_future_wait(kv_commit(tx)));
	kv_tx_free(tx);
}

/* A store with tables of two levels, deletions among them, and a log. */
static int
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

static int
salvage_teardown(void **state)
{
	struct salvage_test *t = *state;

	fixture_remove_dir(&t->dir);
	mem_free(t);
	return 0;
}

/* ---- Copies ---- */

static void
join(char *ret, size_t size, const char *first, const char *between, const char *last)
{
	int n = snprintf(ret, size, "%s%s%s", first, between, last);

	assert_true(n > 0 && (size_t)n < size);
}

static void
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
static size_t
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

static void
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

static void
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

static void
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

static void
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

static enum status
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

static struct kv_salvage_how
salvage_how(struct salvage_test *t)
{
	return (struct kv_salvage_how){ .shape = &fixture_shape,
					.lost = note_loss,
					.finish = compare_all,
					.told = note_progress,
					.arg = t };
}

static void
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
	assert_true(sum.tables + sum.logs > 0);
	assert_true(t->told > 0);
	remove_directory(target);
}

/* ---- Tests ---- */

static void
hash_of_blocks_is_that_of_its_authors(void **state)
{
	static const struct {
		size_t len;
		uint64_t hash;
	} vectors[] = {
		{ 9, 0xe9612598145bb9dc },    { 16, 0x8355e3a6f61770db },
		{ 17, 0x9ef341a99de37328 },   { 128, 0x85c6174c7ff4c46b },
		{ 129, 0xec7642b431ba3e5a },  { 240, 0x375a384d957fe865 },
		{ 241, 0x02e8cd95421c6d02 },  { 1024, 0xa870f92984398d22 },
		{ 1025, 0x78c86e91ee939852 },
	};
	uint8_t bytes[1025];

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++)
		assert_true(xxh3(bytes, vectors[i].len) == vectors[i].hash);
}

/* How a block with a right checksum is found: as so many entries, or NOT_FOUND. */
enum {
	NOT_FOUND = -1,
	PACKED_NOT = 0, /* RocksDB's numbers of compressions */
	PACKED_LZ4 = 4,
};

static int
entries_found(const char *bytes, size_t len, uint8_t packed)
{
	AUTO(buf_release) struct buf block = BUF_INIT(1024);
	struct raw_finder finder;
	struct str key, value;
	uint32_t crc = crc_begin, found;
	int entries = NOT_FOUND;

	assert_int_equal(raw_finder_init(&finder), STATUS_OK);
	buf_append(&block, bytes, len);
	buf_append_byte(&block, (char)packed);
	for (size_t i = 0; i < block.len; i++)
		crc = crc_add(finder.crc_table, crc, (uint8_t)block.ptr[i]);
	crc = htole32(crc_finish(crc));
	buf_append(&block, &crc, sizeof(crc));
	if (raw_block_find(&finder, buf_str(&block), &found)) {
		assert_int_equal(found, len);
		for (entries = 0; raw_block_next(&finder.walk, &key, &value);)
			entries++;
		assert_int_equal(finder.walk.rest.len, 0);
	}
	/* Whatever it is, without its checksum it is none. */
	block.ptr[block.len - 1] ^= 1;
	assert_false(raw_block_find(&finder, buf_str(&block), &found));
	raw_finder_fini(&finder);
	return entries;
}

static void
a_block_has_entries_and_places_up_to_its_end(void **state)
{
/* What is shared with the key before, the lengths of the rest and of the value; both. */
#define ENTRY     "\0\x08\0abcdefgh"
#define PLACE     "\0\0\0\0"
#define OF(bytes) bytes, sizeof(bytes) - 1
	static const struct {
		const char *bytes;
		size_t len;
		int entries;
	} blocks[] = {
		{ OF(ENTRY PLACE "\1\0\0\0"), 1 },
		{ OF(ENTRY "\x07\1\1iv" PLACE "\1\0\0\0"), 2 },
		{ OF("\0\5\0abcde" PLACE PLACE "\2\0\0\0"), 1 },
		/* Fewer bytes than places; no places; a first place that is not the beginning. */
		{ OF("\0\4\0abcd" PLACE PLACE "\2\0\0\0"), NOT_FOUND },
		{ OF(ENTRY PLACE "\0\0\0\0"), NOT_FOUND },
		{ OF(ENTRY "\1\0\0\0\1\0\0\0"), NOT_FOUND },
		/* An entry that goes on beyond the end, and one that shares more than there is. */
		{ OF("\0\x09\0abcdefgh" PLACE "\1\0\0\0"), NOT_FOUND },
		{ OF(ENTRY "\x09\1\1iv" PLACE "\1\0\0\0"), NOT_FOUND },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
		AUTO(buf_release) struct buf packed = BUF_INIT(1024);

		/* As it is; and packed, as literals alone, of which 15 are in the first byte. */
		assert_int_equal(entries_found(blocks[i].bytes, blocks[i].len, PACKED_NOT),
				 blocks[i].entries);
		buf_append_byte(&packed, (char)blocks[i].len);
		buf_append_byte(&packed, (char)0xf0);
		buf_append_byte(&packed, (char)(blocks[i].len - 15));
		buf_append(&packed, blocks[i].bytes, blocks[i].len);
		assert_int_equal(entries_found(packed.ptr, packed.len, PACKED_LZ4),
				 blocks[i].entries);
	}
#undef ENTRY
#undef PLACE
#undef OF
}

static void
store_without_damage_comes_back_as_it_was(void **state)
{
	struct salvage_test *t = *state;

	salvage(t, t->dir.dir);
	assert_int_equal(t->loss_count, 0);
	assert_int_equal(t->missing + t->other, 0);
	assert_true(t->has_format);
}

/* Spoils places of a file all over it; false if it is not of the kind. */
static void
spoil_places(struct salvage_test *t, const char *name, size_t most_differences)
{
	char copy[2 * PATH_BYTES], path[3 * PATH_BYTES];
	struct stat st;

	join(copy, sizeof(copy), t->dir.dir, ".", "bad");
	join(path, sizeof(path), copy, "/", name);
	copy_store(t, copy);
	assert_int_equal(stat(path, &st), 0);
	for (int i = 0; st.st_size && i < PLACES; i++) {
		off_t at = st.st_size * i / PLACES + i % 7;

		if (at >= st.st_size)
			at = st.st_size - 1;
		flip(path, at);
		salvage(t, copy);
		if (t->untold || t->missing + t->other > most_differences)
			print_message("%s, byte %lld: %zu missing, %zu others, %zu untold\n", name,
				      (long long)at, t->missing, t->other, t->untold);
		assert_int_equal(t->untold, 0);
		assert_true(t->missing + t->other <= most_differences);
		flip(path, at);
	}
	remove_directory(copy);
}

static void
spoil_files(struct salvage_test *t, const char *part, size_t most_differences)
{
	static char names[FILES][NAME_BYTES];
	size_t count = list_files(t->dir.dir, names);
	bool any = false;

	for (size_t i = 0; i < count; i++) {
		if (!strstr(names[i], part))
			continue;
		any = true;
		spoil_places(t, names[i], most_differences);
	}
	assert_true(any);
}

static void
damage_to_a_table_costs_a_block(void **state)
{
	spoil_files(*state, ".sst", BLOCK_KEYS);
}

static void
damage_to_a_log_costs_a_transaction(void **state)
{
	spoil_files(*state, ".log", BATCH_KEYS);
}

static void
other_files_are_not_needed(void **state)
{
	spoil_files(*state, "MANIFEST", 0);
	spoil_files(*state, "CURRENT", 0);
	spoil_files(*state, "OPTIONS", 0);
	spoil_files(*state, "IDENTITY", 0);
}

static void
files_that_are_gone_are_told_of(void **state)
{
	static char names[FILES][NAME_BYTES];
	struct salvage_test *t = *state;
	size_t count = list_files(t->dir.dir, names);
	char copy[2 * PATH_BYTES], path[3 * PATH_BYTES];

	join(copy, sizeof(copy), t->dir.dir, ".", "bad");
	for (size_t i = 0; i < count; i++) {
		copy_store(t, copy);
		join(path, sizeof(path), copy, "/", names[i]);
		assert_int_equal(unlink(path), 0);
		salvage(t, copy);
		/* A log that is gone looks like one that never was. */
		if (!strstr(names[i], ".log"))
			assert_int_equal(t->untold, 0);
		if (!strstr(names[i], ".log") && !strstr(names[i], ".sst"))
			assert_int_equal(t->missing + t->other, 0);
	}
	remove_directory(copy);
}

/* Its keys would come back that were cleared since; MANIFEST does not list it any more. */
static void
a_table_that_was_replaced_is_not_taken(void **state)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	static char names[FILES][NAME_BYTES];
	struct salvage_test *t = mem_zalloc(sizeof(*t));
	char from[2 * PATH_BYTES], to[2 * PATH_BYTES];
	struct kv_store *store;
	size_t count, replaced = 0;

	(void)state;
	assert_non_null(t);
	fixture_make_dir(&t->dir);
	store = fixture_open(t->dir.url, options);
	put_all(t, store, 1, 1);
	assert_ok(kv_compact(store, NULL));
	count = list_files(t->dir.dir, names);
	join(to, sizeof(to), t->dir.dir, ".", "kept");
	copy_store(t, to);
	clear_some(t, store);
	assert_ok(kv_compact(store, NULL));
	kv_close(store);
	for (size_t i = 0; i < count; i++) {
		if (!strstr(names[i], ".sst"))
			continue;
		join(from, sizeof(from), t->dir.dir, ".kept/", names[i]);
		join(to, sizeof(to), t->dir.dir, "/", names[i]);
		if (access(to, F_OK) != 0) {
			copy_file(from, to);
			replaced++;
		}
	}
	assert_true(replaced > 0);
	salvage(t, t->dir.dir);
	assert_int_equal(t->loss_count, 0);
	assert_int_equal(t->missing + t->other, 0);
	join(to, sizeof(to), t->dir.dir, ".", "kept");
	remove_directory(to);
	fixture_remove_dir(&t->dir);
	mem_free(t);
}

/* CURRENT is damaged if what it names does not lie beside it. */
static void
a_manifest_of_another_directory_is_not_taken(void **state)
{
	static char names[FILES][NAME_BYTES];
	struct salvage_test *t = *state;
	size_t count = list_files(t->dir.dir, names), manifests = 0;
	char copy[2 * PATH_BYTES], path[3 * PATH_BYTES], current[2 * NAME_BYTES];
	FILE *file;

	join(copy, sizeof(copy), t->dir.dir, ".", "bad");
	copy_store(t, copy);
	for (size_t i = 0; i < count; i++)
		if (strstr(names[i], "MANIFEST-")) {
			join(current, sizeof(current), "MANIFEST-0/../", names[i], "\n");
			manifests++;
		}
	assert_int_equal(manifests, 1);
	join(path, sizeof(path), copy, "/", "CURRENT");
	file = fopen(path, "we");
	assert_non_null(file);
	assert_true(fputs(current, file) > 0);
	assert_int_equal(fclose(file), 0);
	join(path, sizeof(path), copy, "/", "MANIFEST-0");
	assert_int_equal(mkdir(path, 0700), 0);
	salvage(t, copy);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(t->loss_count, 1);
	assert_non_null(strstr(t->losses[0].text, "CURRENT names no MANIFEST that is there"));
	assert_int_equal(t->missing + t->other, 0);
	remove_directory(copy);
}

/* Not one block of it is found, and nothing tells how many bytes of it had been data. */
static void
a_table_of_zeros_is_told_of(void **state)
{
	static char names[FILES][NAME_BYTES];
	struct salvage_test *t = *state;
	size_t count = list_files(t->dir.dir, names), tables = 0;
	char copy[2 * PATH_BYTES], path[3 * PATH_BYTES];

	join(copy, sizeof(copy), t->dir.dir, ".", "bad");
	for (size_t i = 0; i < count; i++) {
		if (!strstr(names[i], ".sst"))
			continue;
		tables++;
		copy_store(t, copy);
		join(path, sizeof(path), copy, "/", names[i]);
		assert_int_equal(truncate(path, 0), 0);
		assert_int_equal(truncate(path, SHORT_BYTES), 0);
		salvage(t, copy);
		assert_true(t->missing + t->other > 0);
		assert_int_equal(t->untold, 0);
	}
	assert_true(tables > 0);
	remove_directory(copy);
}

static enum status
compare_with_memory(const char *url, bool has_format, void *arg, struct err *err)
{
	(void)mem_fail_only(0);
	return compare_all(url, has_format, arg, err);
}

/* Whichever allocation fails: nothing is made, or what is missing is told to be lost. */
static void
short_memory_loses_nothing_silently(void **state)
{
	struct salvage_test *t = *state;
	struct kv_salvage_how how = salvage_how(t);
	char target[2 * PATH_BYTES], to[2 * PATH_BYTES];
	uint64_t shortages, failed = 0;

	how.finish = compare_with_memory;
	join(target, sizeof(target), t->dir.dir, ".", "new");
	join(to, sizeof(to), "embedded", ":", target);
	remove_directory(target);
	for (uint64_t n = 1;; n++) {
		struct kv_salvage_sum sum;
		struct err err = { 0 };
		enum status status;

		t->told = 0;
		t->loss_count = t->missing = t->other = t->untold = 0;
		shortages = mem_shortages();
		(void)mem_fail_only(n);
		status = kv_salvage(t->dir.url, to, &how, &sum, &err);
		(void)mem_fail_only(0);
		if (status != STATUS_OK) {
			assert_true(status == STATUS_NOMEM || status == STATUS_LIMIT);
			assert_int_not_equal(access(target, F_OK), 0);
			failed++;
			continue;
		}
		assert_int_equal(t->untold, 0);
		remove_directory(target);
		if (mem_shortages() == shortages)
			break;
	}
	assert_true(failed > 0);
}

static void
places_that_cannot_be_are_refused(void **state)
{
	struct salvage_test *t = *state;
	const struct kv_salvage_how how = salvage_how(t);
	char url[2 * PATH_BYTES], full[2 * PATH_BYTES];
	struct kv_salvage_sum sum;
	struct err err = { 0 };

	join(url, sizeof(url), t->dir.url, "/", "new");
	assert_int_equal(kv_salvage(t->dir.url, url, &how, &sum, &err), STATUS_INVALID);
	assert_int_equal(kv_salvage(t->dir.url, "fdb:", &how, &sum, &err), STATUS_UNSUPPORTED);
	join(url, sizeof(url), t->dir.url, ".", "none");
	assert_int_equal(kv_salvage(url, "embedded:/tmp/frond-none", &how, &sum, &err),
			 STATUS_NOT_FOUND);
	join(full, sizeof(full), t->dir.dir, ".", "full");
	join(url, sizeof(url), "embedded", ":", full);
	copy_store(t, full);
	assert_int_equal(kv_salvage(t->dir.url, url, &how, &sum, &err), STATUS_EXISTS);
	remove_directory(full);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hash_of_blocks_is_that_of_its_authors),
		cmocka_unit_test(a_block_has_entries_and_places_up_to_its_end),
		cmocka_unit_test(store_without_damage_comes_back_as_it_was),
		cmocka_unit_test(damage_to_a_table_costs_a_block),
		cmocka_unit_test(damage_to_a_log_costs_a_transaction),
		cmocka_unit_test(other_files_are_not_needed),
		cmocka_unit_test(files_that_are_gone_are_told_of),
		cmocka_unit_test(a_table_that_was_replaced_is_not_taken),
		cmocka_unit_test(a_manifest_of_another_directory_is_not_taken),
		cmocka_unit_test(a_table_of_zeros_is_told_of),
		cmocka_unit_test(short_memory_loses_nothing_silently),
		cmocka_unit_test(places_that_cannot_be_are_refused),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, salvage_setup, salvage_teardown);
}
