/*
 * A store of what is whole in a damaged one: each byte that is spoiled, in any file, costs at most
 * the keys of its block or its transaction, and every difference lies in what was told of.
 */
#include "salvage_store.h"

#include <endian.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "kv/embedded/raw.h"
#include "kv/embedded/salvage_int.h"
#include "kv/embedded/xxh3.h"

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

/* Where nothing can be written, each table that is there is taken, and that is told. */
static void
a_manifest_that_cannot_be_copied_is_done_without(void **state)
{
	struct salvage_test *t = *state;
	const struct kv_salvage_how how = salvage_how(t);
	struct salvage_files files = { .how = &how };
	struct salvage_spans losses = { 0 };
	char scratch[2 * PATH_BYTES];
	struct err err = { 0 };

	files.arena = arena_new(ARENA_BYTES);
	assert_non_null(files.arena);
	files.dir = open(t->dir.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(files.dir >= 0);
	join(scratch, sizeof(scratch), t->dir.dir, ".", "nowhere");
	t->told = 0;
	assert_int_equal(salvage_files_read(&files, t->dir.dir, scratch, &losses, &err), STATUS_OK);
	assert_int_equal(losses.count, 1);
	assert_non_null(strstr(losses.all[0].text, "cannot be read (writing "));
	assert_non_null(strstr(losses.all[0].text, ".nowhere/MANIFEST-"));
	assert_false(losses.all[0].has_keys);
	assert_false(files.has_manifest);
	assert_true(files.table_count > 0);
	for (size_t i = 0; i < files.table_count; i++)
		assert_true(files.tables[i].taken && !files.tables[i].listed);
	assert_true(files.bytes == files.total && files.total > 0);
	close(files.dir);
	arena_free(files.arena);
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
	err.text[0] = '\0';
	assert_int_equal(kv_salvage(t->dir.url, url, &how, &sum, &err), STATUS_EXISTS);
	assert_non_null(strstr(err.text, full));
	remove_directory(full);
}

/* Also where nothing but memory is to blame. */
static void
what_fails_for_want_of_memory_says_so(void **state)
{
	struct salvage_test *t = *state;
	const struct kv_salvage_how how = salvage_how(t);
	char url[2 * PATH_BYTES];

	join(url, sizeof(url), t->dir.url, ".", "new");
	for (uint64_t nth = 1; nth <= 3; nth++) {
		struct kv_salvage_sum sum;
		struct err err = { 0 };

		(void)mem_fail_only(nth);
		assert_int_equal(kv_salvage(t->dir.url, url, &how, &sum, &err), STATUS_NOMEM);
		(void)mem_fail_only(0);
		assert_string_equal(err.text, status_name(STATUS_NOMEM));
	}
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
		cmocka_unit_test(a_manifest_that_cannot_be_copied_is_done_without),
		cmocka_unit_test(a_table_of_zeros_is_told_of),
		cmocka_unit_test(places_that_cannot_be_are_refused),
		cmocka_unit_test(what_fails_for_want_of_memory_says_so),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, salvage_setup, salvage_teardown);
}
