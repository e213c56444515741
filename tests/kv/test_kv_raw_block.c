/*
 * Blocks of tables, read without RocksDB (kv/embedded/raw.h): blocks that the test makes byte by
 * byte, packed and not, whole, cut, spoiled, and with sizes at the edge of what there is.
 */
#include "fixture.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rand.h"
#include "kv/embedded/raw.h"
#include "kv/embedded/xxh3.h"

enum {
	PACKED_NOT = 0, /* RocksDB's numbers of compressions */
	PACKED_LZ4 = 4,
	DRAWN_BLOCKS = 60,
	DRAWN_ENTRIES = 40,
	TEXT_BYTES = 64,
};

/* ---- Numbers ---- */

static void
put_varint(struct buf *b, uint64_t n)
{
	for (; n > 0x7f; n >>= 7)
		buf_append_byte(b, (uint8_t)(n | 0x80));
	buf_append_byte(b, (uint8_t)n);
}

static void
numbers_have_ten_bytes_at_most(void **state)
{
	(void)state;
	for (unsigned bits = 0; bits < 64; bits++) {
		AUTO(buf_release) struct buf b = BUF_INIT(20);
		const uint64_t n = UINT64_MAX >> bits;
		struct str rest;
		uint64_t got;

		put_varint(&b, n);
		buf_append_byte(&b, 'x');
		for (size_t cut = 0; cut + 1 < b.len; cut++) {
			rest = str_of(b.ptr, cut);
			assert_false(raw_varint(&rest, &got));
			assert_int_equal(rest.len, cut);
		}
		rest = buf_str(&b);
		assert_true(raw_varint(&rest, &got));
		assert_true(got == n);
		assert_int_equal(rest.len, 1);
	}
	for (size_t len = 9; len <= 11; len++) {
		char bytes[11];
		struct str rest = str_of(bytes, len);
		uint64_t got;

		memset(bytes, '\x80', sizeof(bytes));
		bytes[len - 1] = 0;
		assert_int_equal(raw_varint(&rest, &got), len <= 10);
	}
}

static void
bytes_end_where_their_length_says(void **state)
{
	struct str rest = STR("\3abcd"), got;

	(void)state;
	assert_true(raw_bytes(&rest, &got));
	assert_true(str_eq(got, STR("abc")) && str_eq(rest, STR("d")));
	rest = STR("\3abc");
	assert_true(raw_bytes(&rest, &got));
	assert_true(str_eq(got, STR("abc")) && !rest.len);
	rest = STR("\4abc");
	assert_false(raw_bytes(&rest, &got));
	rest = STR("\x84");
	assert_false(raw_bytes(&rest, &got));
	rest = STR("\0");
	assert_true(raw_bytes(&rest, &got));
	assert_int_equal(got.len, 0);
}

/* ---- Blocks ---- */

/* What goes behind a block: its compression, and a checksum of one of the two kinds. */
static void
add_trailer(struct buf *block, uint8_t packed, bool hashed)
{
	uint32_t table[CRC_TABLE], sum = crc_begin;
	const size_t len = block->len;
	uint8_t bytes[4];

	buf_append_byte(block, packed);
	if (hashed) {
		sum = (uint32_t)xxh3((const uint8_t *)block->ptr, len) ^ packed * 0x6b9083d9U;
	} else {
		crc_make_table(table);
		for (size_t i = 0; i < block->len; i++)
			sum = crc_add(table, sum, (uint8_t)block->ptr[i]);
		sum = crc_finish(sum);
	}
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(sum >> 8 * i);
	buf_append(block, bytes, sizeof(bytes));
}

/* How many entries are found in the block, which has its trailer; -1: it is none. */
static int
entries_of(struct raw_finder *f, struct str block)
{
	struct str key, value;
	uint32_t bytes;
	int count = 0;

	if (!raw_block_find(f, block, &bytes))
		return -1;
	assert_true(bytes + RAW_TRAILER_BYTES <= block.len);
	while (raw_block_next(&f->walk, &key, &value))
		count++;
	return count;
}

/* So many entries of an eight byte trailer each, none of which shares anything. */
static void
make_entries(struct buf *b, size_t count)
{
	for (size_t i = 0; i < count; i++)
		buf_append(b, "\0\x08\0abcdefgh", 11);
}

static void
make_places(struct buf *b, uint32_t count)
{
	const uint8_t number[4] = { (uint8_t)count, (uint8_t)(count >> 8), (uint8_t)(count >> 16),
				    (uint8_t)(count >> 24) };

	for (uint32_t i = 0; i < count; i++)
		buf_append(b, "\0\0\0\0", 4);
	buf_append(b, number, sizeof(number));
}

static void
a_block_has_so_many_places_at_most(void **state)
{
	static const struct {
		size_t entries;
		uint32_t places;
		int found;
	} blocks[] = {
		{ 4000, 4096, 4000 },
		{ 4000, 4097, -1 },
		{ 1, 1, 1 },
		{ 1, 0, -1 },
	};
	struct raw_finder f;

	(void)state;
	assert_ok(raw_finder_init(&f));
	for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
		AUTO(buf_release) struct buf b = BUF_INIT(RAW_BLOCK_BYTES);

		make_entries(&b, blocks[i].entries);
		make_places(&b, blocks[i].places);
		add_trailer(&b, PACKED_NOT, true);
		assert_int_equal(entries_of(&f, buf_str(&b)), blocks[i].found);
	}
	raw_finder_fini(&f);
}

/* Entries in any order, that share anything with those before them. */
struct drawn {
	struct buf block; /* as it is unpacked */
	char keys[DRAWN_ENTRIES][TEXT_BYTES];
	size_t key_lens[DRAWN_ENTRIES];
	struct str values[DRAWN_ENTRIES];
	char value_bytes[DRAWN_ENTRIES][TEXT_BYTES * 4];
	size_t count;
};

static void
draw_block(struct drawn *d, struct rand_seq *r)
{
	size_t before = 0;

	buf_clear(&d->block);
	d->count = 1 + rand_seq_below(r, DRAWN_ENTRIES);
	for (size_t i = 0; i < d->count; i++) {
		size_t shared = rand_seq_below(r, before + 1);
		size_t len = shared < 10 ? 10 + rand_seq_below(r, TEXT_BYTES - 10) : shared;
		size_t value_len = rand_seq_below(r, sizeof(d->value_bytes[i]));

		if (i)
			memcpy(d->keys[i], d->keys[i - 1], shared);
		for (size_t k = shared; k < len; k++)
			d->keys[i][k] = (char)rand_seq_below(r, 256);
		d->key_lens[i] = before = len;
		/* Much of it repeats, so that it can be packed. */
		for (size_t k = 0; k < value_len; k++)
			d->value_bytes[i][k] = k >= 2 && rand_seq_below(r, 8)
						       ? d->value_bytes[i][k - 2]
						       : (char)rand_seq_below(r, 256);
		d->values[i] = str_of(d->value_bytes[i], value_len);
		put_varint(&d->block, shared);
		put_varint(&d->block, len - shared);
		put_varint(&d->block, value_len);
		buf_append(&d->block, d->keys[i] + shared, len - shared);
		buf_append_str(&d->block, d->values[i]);
	}
	make_places(&d->block, 1 + (uint32_t)rand_seq_below(r, 3));
	assert_ok(buf_status(&d->block));
}

static void
put_length(struct buf *to, size_t n)
{
	if (n < 15)
		return;
	for (n -= 15; n >= 255; n -= 255)
		buf_append_byte(to, 255);
	buf_append_byte(to, (uint8_t)n);
}

static void
put_sequence(struct buf *to, struct str literals, size_t back, size_t match)
{
	const size_t beyond = match ? match - 4 : 0;

	buf_append_byte(to, (uint8_t)((literals.len < 15 ? literals.len : 15) << 4 |
				      (beyond < 15 ? beyond : 15)));
	put_length(to, literals.len);
	buf_append_str(to, literals);
	if (!match)
		return;
	buf_append_byte(to, (uint8_t)back);
	buf_append_byte(to, (uint8_t)(back >> 8));
	put_length(to, beyond);
}

/*
 * Packs by LZ4. Matches may overlap themselves and end where all does: then an empty sequence
 * follows.
 */
static void
pack(struct buf *to, struct str from)
{
	size_t begin = 0;

	put_varint(to, from.len);
	for (size_t at = 0; at < from.len;) {
		size_t best = 0, best_back = 0;

		for (size_t back = 1; back <= at && back < UINT16_MAX; back++) {
			size_t n = 0;

			while (at + n < from.len && from.ptr[at + n] == from.ptr[at + n - back])
				n++;
			if (n > best) {
				best = n;
				best_back = back;
			}
		}
		if (best < 4) {
			at++;
			continue;
		}
		put_sequence(to, str_of(from.ptr + begin, at - begin), best_back, best);
		at += best;
		begin = at;
	}
	put_sequence(to, str_skip(from, begin), 0, 0);
	assert_ok(buf_status(to));
}

static void
check_drawn(struct raw_finder *f, const struct drawn *d, struct str whole)
{
	struct str key, value;
	uint32_t bytes;

	assert_true(raw_block_find(f, whole, &bytes));
	assert_true(bytes + RAW_TRAILER_BYTES <= whole.len);
	for (size_t i = 0; i < d->count; i++) {
		assert_true(raw_block_next(&f->walk, &key, &value));
		assert_true(str_eq(key, str_of(d->keys[i], d->key_lens[i])));
		assert_true(str_eq(value, d->values[i]));
	}
	assert_false(raw_block_next(&f->walk, &key, &value));
	assert_int_equal(f->walk.rest.len, 0);
}

/* A copy that ends where its memory does, so that sanitizers see what reads on. */
static bool
is_found_cut(struct raw_finder *f, struct str whole, size_t len)
{
	char *copy = malloc(len + !len);
	uint32_t bytes;
	bool found;

	assert_non_null(copy);
	if (len)
		memcpy(copy, whole.ptr, len);
	found = raw_block_find(f, str_of(copy, len), &bytes);
	free(copy);
	return found;
}

static void
blocks_come_back_whole_and_never_else(void **state)
{
	struct rand_seq r = { test_seed() };
	struct drawn *d = calloc(1, sizeof(*d));
	struct raw_finder f;

	(void)state;
	assert_non_null(d);
	d->block = BUF_INIT(RAW_BLOCK_BYTES);
	assert_ok(raw_finder_init(&f));
	for (int n = 0; n < DRAWN_BLOCKS; n++) {
		AUTO(buf_release) struct buf b = BUF_INIT(RAW_BLOCK_BYTES);
		const bool packed = n % 2, hashed = n / 2 % 2;
		size_t whole, step;

		draw_block(d, &r);
		if (packed)
			pack(&b, buf_str(&d->block));
		else
			buf_append_str(&b, buf_str(&d->block));
		add_trailer(&b, packed ? PACKED_LZ4 : PACKED_NOT, hashed);
		whole = b.len;
		step = 1 + whole / 60;
		check_drawn(&f, d, buf_str(&b));
		/* Something follows it. */
		buf_append(&b, "\0\0\0\0\0\0\0\0 more of the file", 25);
		check_drawn(&f, d, buf_str(&b));
		for (size_t i = rand_seq_below(&r, step); i < whole; i += step) {
			const char kept = b.ptr[i];

			assert_false(is_found_cut(&f, buf_str(&b), i));
			b.ptr[i] ^= (char)(1 << rand_seq_below(&r, 8));
			assert_int_equal(entries_of(&f, str_of(b.ptr, whole)), -1);
			b.ptr[i] = kept;
		}
	}
	raw_finder_fini(&f);
	buf_release(&d->block);
	free(d);
}

/* ---- Packed blocks, sequence by sequence ---- */

enum {
	RUN = 40, /* bytes of a value that repeat */
	ONE_BYTES = 11 + RUN + 8,
};

/* A block with one entry, whose value is a run, packed as literals up to the run's first byte. */
static void
pack_begin(struct buf *b, size_t wanted)
{
	const uint8_t entry[12] = { 0, 8, RUN, 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'v' };

	put_varint(b, wanted);
	put_sequence(b, str_of(entry, sizeof(entry)), 1, RUN - 1);
}

static int
entries_packed(struct raw_finder *f, struct str packed)
{
	AUTO(buf_release) struct buf b = BUF_INIT(RAW_BLOCK_BYTES * 2);

	buf_append_str(&b, packed);
	add_trailer(&b, PACKED_LZ4, false);
	return entries_of(f, buf_str(&b));
}

static void
a_packed_block_ends_where_its_length_says(void **state)
{
	const struct str end = STR("\0\0\0\0\1\0\0\0");
	struct raw_finder f;

	(void)state;
	assert_ok(raw_finder_init(&f));
	/* One byte less and one more than there are. */
	for (int more = -1; more <= 1; more++) {
		AUTO(buf_release) struct buf b = BUF_INIT(1000);

		pack_begin(&b, (size_t)(ONE_BYTES + more));
		put_sequence(&b, end, 0, 0);
		assert_int_equal(entries_packed(&f, buf_str(&b)), more ? -1 : 1);
		/* However it is cut, with a checksum that is right. */
		for (size_t cut = 9; cut < b.len; cut++)
			assert_int_equal(entries_packed(&f, str_of(b.ptr, cut)), -1);
	}
	raw_finder_fini(&f);
}

/*
 * Two entries of a key of one byte, 256 places, and their number: which has the bytes of an entry,
 * so it can be a match of the block's first bytes.
 */
static void
a_match_may_reach_from_the_beginning_to_the_end_and_not_beyond(void **state)
{
	enum {
		PLACES = 256,
		AT = 8 + 4 * PLACES, /* of the number */
	};
	static const struct {
		size_t back;
		size_t match;
		bool closed; /* a sequence of nothing follows */
		int found;
	} cases[] = {
		{ AT, 4, true, 2 },          { AT - 4, 4, true, 2 }, { AT, 4, false, -1 },
		{ AT + 1, 4, true, -1 },     { 0, 4, true, -1 },     { AT, 5, true, -1 },
		{ UINT16_MAX, 4, true, -1 },
	};
	struct raw_finder f;

	(void)state;
	assert_ok(raw_finder_init(&f));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		AUTO(buf_release) struct buf b = BUF_INIT(1000);

		put_varint(&b, AT + 4);
		put_sequence(&b, STR("\0\1\0\0\0\1\0\0\0"), 1, AT - 9);
		put_sequence(&b, STR(""), cases[i].back, cases[i].match);
		if (cases[i].closed)
			put_sequence(&b, STR(""), 0, 0);
		assert_int_equal(entries_packed(&f, buf_str(&b)), cases[i].found);
	}
	raw_finder_fini(&f);
}

/*
 * Behind each of these, which are no packed blocks, a checksum is right. What a block that was
 * found before has left in memory would make them one.
 */
static void
what_cannot_be_unpacked_is_no_block(void **state)
{
	static const size_t backs[] = { 0, ONE_BYTES, 1 }, matches[] = { 4, 4, 9 };
	struct raw_finder f;
	int kind = 0;

	(void)state;
	assert_ok(raw_finder_init(&f));
	for (bool more = true; more; kind++) {
		AUTO(buf_release) struct buf good = BUF_INIT(1000);
		AUTO(buf_release) struct buf b = BUF_INIT(RAW_BLOCK_BYTES * 2);

		pack_begin(&good, ONE_BYTES);
		put_sequence(&good, STR("\0\0\0\0\1\0\0\0"), 0, 0);
		assert_int_equal(entries_packed(&f, buf_str(&good)), 1);
		switch (kind) {
		case 0: /* the last literals would go beyond the end */
			pack_begin(&b, ONE_BYTES);
			buf_append_byte(&b, 9 << 4);
			break;
		case 1: /* a match from no byte, from in front of the first, and beyond the last */
			pack_begin(&b, ONE_BYTES);
			put_sequence(&b, STR("1234"), 0, 4);
			break;
		case 2:
			pack_begin(&b, ONE_BYTES);
			put_sequence(&b, STR("1234"), ONE_BYTES - 3, 4);
			break;
		case 3:
			pack_begin(&b, ONE_BYTES);
			put_sequence(&b, STR("1234"), 1, 5);
			break;
		case 4: /* a value from in front of the first byte */
			put_varint(&b, 23);
			put_sequence(&b, STR("\0\x08\4abcdefgh"), 12, 4);
			put_sequence(&b, STR("\0\0\0\0\1\0\0\0"), 0, 0);
			break;
		case 5: /* such matches, behind which all is there that they had to bring */
		case 6:
		case 7:
			pack_begin(&b, ONE_BYTES);
			put_sequence(&b, STR(""), backs[kind - 5], matches[kind - 5]);
			put_sequence(&b, STR("\0\0\0\0\1\0\0\0"), 0, 0);
			break;
		default:
			more = false;
			continue;
		}
		assert_int_equal(entries_packed(&f, buf_str(&b)), -1);
	}
	assert_int_equal(kind, 9);
	/* Other compressions, which frond's stores have not. */
	for (unsigned packed = 0; packed <= UINT8_MAX; packed++) {
		AUTO(buf_release) struct buf b = BUF_INIT(1000);

		pack_begin(&b, ONE_BYTES);
		put_sequence(&b, STR("\0\0\0\0\1\0\0\0"), 0, 0);
		add_trailer(&b, (uint8_t)packed, packed % 2);
		assert_int_equal(entries_of(&f, buf_str(&b)), packed == PACKED_LZ4 ? 1 : -1);
	}
	raw_finder_fini(&f);
}

/* A block of so many bytes, packed or not, that has one entry. */
static int
entries_of_size(struct raw_finder *f, size_t bytes, bool packed)
{
	AUTO(buf_release) struct buf b = BUF_INIT(2 * RAW_BLOCK_BYTES);
	AUTO(buf_release) struct buf entry = BUF_INIT(100);
	/* Lengths of values from 16 KB to 2 MB have three bytes. */
	const size_t value = bytes < 100 ? bytes - 19 : bytes - 21;

	buf_append(&entry, "\0\x08", 2);
	put_varint(&entry, value);
	buf_append(&entry, "abcdefgh", 8);
	if (packed) {
		put_varint(&b, bytes);
		if (value) {
			buf_append_byte(&entry, 'v');
			put_sequence(&b, buf_str(&entry), 1, value - 1);
		} else {
			put_sequence(&b, buf_str(&entry), 0, 0);
			b.len = 1;
			buf_append(&entry, "\0\0\0\0\1\0\0\0", 8);
		}
		put_sequence(&b, value ? STR("\0\0\0\0\1\0\0\0") : buf_str(&entry), 0, 0);
	} else {
		buf_append_str(&b, buf_str(&entry));
		for (size_t i = 0; i < value; i++)
			buf_append_byte(&b, 'v');
		buf_append(&b, "\0\0\0\0\1\0\0\0", 8);
		assert_int_equal(b.len, bytes);
	}
	add_trailer(&b, packed ? PACKED_LZ4 : PACKED_NOT, true);
	return entries_of(f, buf_str(&b));
}

static void
blocks_have_so_many_bytes_at_least_and_at_most(void **state)
{
	struct raw_finder f;

	(void)state;
	assert_ok(raw_finder_init(&f));
	assert_int_equal(entries_of_size(&f, 19, false), 1);
	assert_int_equal(entries_of_size(&f, 19, true), 1);
	assert_int_equal(entries_of_size(&f, RAW_BLOCK_BYTES, true), 1);
	assert_int_equal(entries_of_size(&f, RAW_BLOCK_BYTES + 1, true), -1);
	assert_int_equal(entries_of_size(&f, RAW_BLOCK_BYTES - RAW_TRAILER_BYTES, false), 1);
	assert_int_equal(entries_of_size(&f, RAW_BLOCK_BYTES - RAW_TRAILER_BYTES + 1, false), -1);
	/* Of eighteen bytes, without a byte of the key. */
	for (int packed = 0; packed <= 1; packed++) {
		AUTO(buf_release) struct buf b = BUF_INIT(100);

		if (packed) {
			put_varint(&b, 18);
			put_sequence(&b, STR("\0\7\0abcdefg\0\0\0\0\1\0\0\0"), 0, 0);
		} else {
			buf_append(&b, "\0\7\0abcdefg\0\0\0\0\1\0\0\0", 18);
		}
		add_trailer(&b, packed ? PACKED_LZ4 : PACKED_NOT, true);
		buf_append(&b, "\0\0\0\0\0\0\0\0", 8);
		assert_int_equal(entries_of(&f, buf_str(&b)), -1);
	}
	raw_finder_fini(&f);
}

static void
an_entry_is_there_whole_or_not_at_all(void **state)
{
	const struct str bytes = STR("\3\2\4xyWORD");

	(void)state;
	for (size_t before = 2; before <= 4; before++)
		for (size_t len = 0; len <= bytes.len; len++) {
			struct raw_walk w = RAW_WALK_INIT;
			char *copy = malloc(len + !len);
			struct str key, value;
			bool there;

			assert_non_null(copy);
			memcpy(copy, bytes.ptr, len);
			w.rest = str_of(copy, len);
			buf_append(&w.key, "abcd", before);
			there = raw_block_next(&w, &key, &value);
			assert_int_equal(there, before >= 3 && len == bytes.len);
			if (there) {
				assert_true(str_eq(key, STR("abcxy")));
				assert_true(str_eq(value, STR("WORD")));
				assert_int_equal(w.rest.len, 0);
			}
			buf_release(&w.key);
			free(copy);
		}
}

static void
an_entry_without_memory_for_its_key_is_the_last(void **state)
{
	struct raw_walk w = RAW_WALK_INIT;
	struct str key, value;

	(void)state;
	w.rest = STR("\0\2\4xyWORD");
	(void)mem_fail_only(1);
	assert_false(raw_block_next(&w, &key, &value));
	(void)mem_fail_only(0);
	assert_int_equal(w.rest.len, 9);
	buf_release(&w.key);
}

static void
a_key_of_a_table_ends_with_its_number_and_its_type(void **state)
{
	(void)state;
	for (unsigned type = 0; type <= UINT8_MAX; type++) {
		const bool known = type == RAW_DELETE || type == RAW_PUT ||
				   type == RAW_DELETE_SINGLE || type == RAW_DELETE_RANGE;
		char key[] = { 'k', (char)type, 3, 2, 1, 0, 0, 0, 0 };
		struct raw_entry e;

		assert_int_equal(raw_type_known(type), known);
		assert_int_equal(raw_entry_parse(str_of(key, 9), STR("v"), &e), known);
		if (!known)
			continue;
		assert_true(str_eq(e.key, STR("k")) && str_eq(e.value, STR("v")));
		assert_true(e.sequence == 0x010203 && e.type == (enum raw_type)type);
		/* A key without bytes is one, too. */
		assert_true(raw_entry_parse(str_of(key + 1, 8), STR("v"), &e));
		assert_int_equal(e.key.len, 0);
		assert_false(raw_entry_parse(str_of(key + 1, 7), STR("v"), &e));
	}
	assert_false(raw_type_known(256 + RAW_PUT));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_have_ten_bytes_at_most),
		cmocka_unit_test(bytes_end_where_their_length_says),
		cmocka_unit_test(a_block_has_so_many_places_at_most),
		cmocka_unit_test(blocks_come_back_whole_and_never_else),
		cmocka_unit_test(a_packed_block_ends_where_its_length_says),
		cmocka_unit_test(a_match_may_reach_from_the_beginning_to_the_end_and_not_beyond),
		cmocka_unit_test(blocks_have_so_many_bytes_at_least_and_at_most),
		cmocka_unit_test(an_entry_is_there_whole_or_not_at_all),
		cmocka_unit_test(what_cannot_be_unpacked_is_no_block),
		cmocka_unit_test(an_entry_without_memory_for_its_key_is_the_last),
		cmocka_unit_test(a_key_of_a_table_ends_with_its_number_and_its_type),
	};

	return cmocka_run_group_tests_name("raw_block", tests, NULL, NULL);
}
