/*
 * Looking for what belongs to one thing, where filters tell which tables to ask: how its keys
 * begin, and that nothing is missed in a store of any age and of any shape. The rest is the random
 * test's.
 *
 * data/store-1 is a store as frond wrote them when there was one shape only, of format 1: the
 * things 0 to KEPT - 1 of write_some() in tables of two levels and in a log.
 */
#include "fixture.h"

#include <dirent.h>

#include <rocksdb/c.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "kv/brief.h"
#include "kv/embedded/embedded_int.h"
#include "kv/tuple.h"

enum {
	KEY_BYTES = 64,
	/* Enough for some partitions of the filters: these are of 4 KB, 10 bits a key. */
	ENTITIES = 12000,
	TABLES = 3,
	A_TX = 2000,
	KEPT = 600,
	CHECKED_EVERY = 3,
	SPACE_OF_ROWS = 32,    /* two elements of any kind make an entity */
	SPACE_OF_RECORDS = 33, /* one does */
};

/* That of the fixture, and two subspaces more. */
static const struct kv_shape wide_shape = {
	.others = { 1, { TUPLE_SKIP_TEXT } },
	.space_count = 3,
	.spaces = {
		{ FIXTURE_SPACE_OF_SIX,
		  { 4, { TUPLE_SKIP_TEXT, TUPLE_SKIP_BOOL, TUPLE_SKIP_INT, TUPLE_SKIP_TEXT } } },
		{ SPACE_OF_ROWS, { 2, { TUPLE_SKIP_ANY, TUPLE_SKIP_ANY } } },
		{ SPACE_OF_RECORDS, { 1, { TUPLE_SKIP_ANY } } },
	},
};

static struct emb_entities
entities_of(const struct kv_shape *shape)
{
	struct emb_entities entities;

	assert_ok(emb_entities_init(&entities, shape, NULL));
	return entities;
}

/* ---- Keys ---- */

/* Each beginning of the key has the same entity, whatever lies in memory behind it. */
static void
assert_ends(const struct emb_entities *entities, struct str key)
{
	static const char behind[] = "\xff\0\1\2\x14\x15\x26\x27";
	char copy[KEY_BYTES];

	assert_true(key.len < sizeof(copy));
	for (size_t len = 0; len <= key.len; len++) {
		size_t first = SIZE_MAX;

		for (size_t i = 0; i < sizeof(behind) - 1; i++) {
			size_t found;

			memset(copy, behind[i], sizeof(copy));
			memcpy(copy, key.ptr, len);
			found = emb_entity_len(entities, str_of(copy, len));
			first = i ? first : found;
			assert_int_equal(found, first);
			assert_true(found <= len);
		}
	}
}

static void
entity_is_two_numbers_a_name_and_a_version(void **state)
{
	static const struct {
		struct str key;
		size_t len;
	} cases[] = {
		{ STR("\x15\x01\x15\x03\x02"
		      "a\x00"),
		  7 },
		{ STR("\x15\x01\x15\x03\x02"
		      "a\x00\x27\x15\x01"),
		  7 },
		{ STR("\x15\x01\x15\x03\x01"
		      "a\x00\x27\x15\x01"),
		  7 },
		{ STR("\x14\x16\x01\x02\x02\x00\x02"
		      "b\x00"),
		  6 },
		{ STR("\x13\xfe\x14\x02"
		      "a\x00\xff"
		      "b\x00\x05"),
		  9 },
		{ STR("\x15\x01\x15\x04\x02"
		      "a\x00\x27\x15\x07\x01"
		      "h\x00\x02leaf\x00"),
		  13 },
		{ STR("\x15\x01\x15\x04\x02"
		      "a\x00\x26\x14\x01"
		      "h\x00\xff\x00"),
		  14 },
		{ STR("\x15\x01\x15\x04\x02"
		      "a\x00\x27\x15\x07"),
		  0 },
		{ STR("\x15\x01\x15\x04\x02"
		      "a\x00"),
		  0 },
		/* The first number, or that of the subspace, may have any length. */
		{ STR("\x14\x15\x04\x02"
		      "a\x00\x27\x15\x07\x01"
		      "h\x00"),
		  12 },
		{ STR("\x14\x15\x04\x02"
		      "a\x00"),
		  0 },
		{ STR("\x16\x01\x02\x15\x04\x02"
		      "a\x00\x27\x15\x07\x01"
		      "h\x00"),
		  14 },
		{ STR("\x14\x15\x03\x02"
		      "a\x00"),
		  6 },
		{ STR("\x15\x01\x14\x02"
		      "a\x00"),
		  6 },
		{ STR("\x15\x01\x15\x03\x02"
		      "a\x00\xff"),
		  0 },
		{ STR("\x15\x01\x15\x03\x02"
		      "a"),
		  0 },
		{ STR("\x15\x01\x15\x03\x02"), 0 },
		{ STR("\x15\x01\x15\x03"), 0 },
		{ STR("\x15\x01\x15\x03\x15\x02"), 0 },
		{ STR("\x15\x01\x02"
		      "a\x00"),
		  0 },
		{ STR("\x15\x01\x16\x03"), 0 },
		{ STR("\x15\x01\x16\x03\x02"
		      "a\x00"),
		  0 },
		{ STR("\x16\x01\x15\x03\x02"
		      "a\x00"),
		  0 },
		{ STR("\x1c\x01"), 0 },
		{ STR("\x1d\x01\x01\x14\x02\x00"), 0 },
		{ STR("\xff/version"), 0 },
		{ STR(""), 0 },
	};

	const struct emb_entities narrow = entities_of(&fixture_shape);
	const struct emb_entities wide = entities_of(&wide_shape);
	const struct emb_entities none = entities_of(NULL);

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(emb_entity_len(&narrow, cases[i].key), cases[i].len);
		assert_int_equal(emb_entity_len(&wide, cases[i].key), cases[i].len);
		assert_int_equal(emb_entity_len(&none, cases[i].key), 0);
		assert_ends(&narrow, cases[i].key);
		assert_ends(&wide, cases[i].key);
	}
}

/* The subspace 0 is written without a byte. */
static void
subspace_zero_has_an_entity_of_its_own(void **state)
{
	static const struct kv_shape shape = {
		.others = { 1, { TUPLE_SKIP_TEXT } },
		.space_count = 1,
		.spaces = { { 0, { 2, { TUPLE_SKIP_INT, TUPLE_SKIP_INT } } } },
	};
	const struct emb_entities entities = entities_of(&shape);

	(void)state;
	assert_int_equal(emb_entity_len(&entities, STR("\x15\x01\x14\x15\x05\x15\x06")), 7);
	assert_int_equal(emb_entity_len(&entities, STR("\x14\x14\x14\x14\x14")), 4);
	assert_int_equal(emb_entity_len(&entities, STR("\x15\x01\x14\x15\x05")), 0);
	assert_int_equal(emb_entity_len(&entities, STR("\x15\x01\x14\x02"
						       "a\x00")),
			 0);
	assert_int_equal(emb_entity_len(&entities, STR("\x14\x15\x01\x02"
						       "a\x00")),
			 6);
	/* A number of several bytes is none of those with entities of their own. */
	assert_int_equal(emb_entity_len(&entities, STR("\x15\x01\x16\x01\x01\x02"
						       "a\x00")),
			 8);
}

/* Elements of any kind, one after the other, as primary keys may have them. */
static void
entity_may_have_elements_of_any_kind(void **state)
{
	static const struct str elements[] = {
		STR("\x00"),                                         /* null */
		STR("\x01h\x00\xffi\x00"),                           /* bytes with a NUL */
		STR("\x02text\x00"),                                 /* a string */
		STR("\x05\x02x\x00\x00\xff\x05\x15\x07\x00\x00"),    /* ("x", null, (7)) */
		STR("\x05\x00"),                                     /* () */
		STR("\x0b\xf6\xfe\xff\xff\xff\xff\xff\xff\xff\xff"), /* below -2^63 */
		STR("\x13\xfe"),                                     /* -1 */
		STR("\x14"),                                         /* 0 */
		STR("\x1c\x01\x02\x03\x04\x05\x06\x07\x08"),
		STR("\x1d\x09\x01\x02\x03\x04\x05\x06\x07\x08\x09"),
		STR("\x20\x80\x00\x00\x00"),
		STR("\x21\x80\x00\x00\x00\x00\x00\x00\x00"),
		STR("\x26"),
		STR("\x27"),
		STR("\x30"
		    "0123456789abcdef"),
		STR("\x33"
		    "0123456789ab"),
	};
	const struct emb_entities wide = entities_of(&wide_shape);
	size_t count = sizeof(elements) / sizeof(elements[0]);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		struct buf key AUTO(buf_release) = BUF_INIT(KEY_BYTES * 2);
		size_t one, two;

		buf_append_str(&key, STR("\x15\x07\x15\x21"));
		assert_int_equal(emb_entity_len(&wide, buf_str(&key)), 0);
		buf_append_str(&key, elements[i]);
		one = key.len;
		assert_int_equal(emb_entity_len(&wide, buf_str(&key)), one);
		buf_append_str(&key, elements[(i + 3) % count]);
		two = key.len;
		/* The next element is none of this entity, and its kind does not matter. */
		assert_int_equal(emb_entity_len(&wide, buf_str(&key)), one);
		key.ptr[3] = SPACE_OF_ROWS;
		assert_int_equal(emb_entity_len(&wide, buf_str(&key)), two);
		assert_int_equal(emb_entity_len(&wide, str_of(key.ptr, one)), 0);
		/* Cut in its middle it is no element. */
		if (elements[(i + 3) % count].len > 1)
			assert_int_equal(emb_entity_len(&wide, str_of(key.ptr, two - 1)), 0);
		buf_append_str(&key, STR("\x02row\x00"));
		assert_int_equal(emb_entity_len(&wide, buf_str(&key)), two);
	}
}

/* Tables of all stores there are have been written under this name, and with this meaning. */
static void
shape_of_stores_of_before_keeps_its_name(void **state)
{
	const struct emb_entities narrow = entities_of(&fixture_shape);
	const struct emb_entities wide = entities_of(&wide_shape);
	const struct emb_entities none = entities_of(NULL);

	(void)state;
	assert_string_equal(narrow.name, "frond.entities");
	assert_string_equal(wide.name, "frond.entities *:t 4:tbit 32:aa 33:a");
	assert_string_equal(none.name, "frond.entities *:");
}

static void
shape_that_makes_no_sense_is_refused(void **state)
{
	struct kv_shape shape = wide_shape;
	struct emb_entities entities;

	(void)state;
	shape.spaces[1].space = FIXTURE_SPACE_OF_SIX;
	assert_int_equal(emb_entities_init(&entities, &shape, NULL), STATUS_INVALID);
	shape = wide_shape;
	shape.spaces[2].space = KV_SHAPE_SPACE_MOST + 1;
	assert_int_equal(emb_entities_init(&entities, &shape, NULL), STATUS_INVALID);
	shape = wide_shape;
	shape.others.element_count = KV_ENTITY_ELEMENTS + 1;
	assert_int_equal(emb_entities_init(&entities, &shape, NULL), STATUS_INVALID);
	shape = wide_shape;
	shape.space_count = KV_SHAPE_SPACES + 1;
	assert_int_equal(emb_entities_init(&entities, &shape, NULL), STATUS_INVALID);
}

static void
shape_may_have_as_much_as_there_is_room_for(void **state)
{
	struct kv_shape shape = { .space_count = KV_SHAPE_SPACES };
	struct emb_entities entities;

	(void)state;
	shape.others.element_count = KV_ENTITY_ELEMENTS;
	assert_int_equal(
		emb_entities_init(&entities, &(struct kv_shape){ .others = shape.others }, NULL),
		STATUS_OK);
	for (size_t i = 0; i < KV_SHAPE_SPACES; i++)
		shape.spaces[i] = (struct kv_shape_space){
			.space = KV_SHAPE_SPACE_MOST + 1 - KV_SHAPE_SPACES + i,
			.entity = { .element_count = i ? 1 : KV_ENTITY_ELEMENTS },
		};
	assert_int_equal(emb_entities_init(&entities, &shape, NULL), STATUS_OK);
	shape.spaces[0].entity.element_count++;
	assert_int_equal(emb_entities_init(&entities, &shape, NULL), STATUS_INVALID);
}

static void
range_within_an_entity_has_no_other_key(void **state)
{
	const struct str a = STR("\x14\x14\x02"
				 "a\x00");
	const struct str a_row = STR("\x14\x14\x02"
				     "a\x00\x27");
	const struct str a_last = STR("\x14\x14\x02"
				      "a\x00\xff");
	const struct str a_nul_b = STR("\x14\x14\x02"
				       "a\x00\xff"
				       "b\x00");
	const struct str b = STR("\x14\x14\x02"
				 "b\x00");
	const struct str b_row = STR("\x14\x14\x02"
				     "b\x00\x27");
	const struct str a_rows = STR("\x14\x14\x02"
				      "a\x00\x27\xff\xff");
	const struct emb_entities narrow = entities_of(&fixture_shape);

	(void)state;
	assert_true(emb_range_entity_len(&narrow, a, a_row));
	assert_true(emb_range_entity_len(&narrow, a, a_last));
	assert_true(emb_range_entity_len(&narrow, a_row, a_last));
	assert_false(emb_range_entity_len(&narrow, a, a_nul_b));
	assert_false(emb_range_entity_len(&narrow, a, b));
	assert_false(emb_range_entity_len(&narrow, a_last, a_nul_b));
	/* Of another entity, however its keys go on. */
	assert_false(emb_range_entity_len(&narrow, a, b_row));
	assert_false(emb_range_entity_len(&narrow, a_row, b_row));
	assert_int_equal(emb_range_entity_len(&narrow, b, b_row), b.len);
	assert_int_equal(emb_range_entity_len(&narrow, a, a_row), a.len);
	assert_int_equal(emb_range_entity_len(&narrow, a, a_last), a.len);
	assert_int_equal(emb_range_entity_len(&narrow, a_row, a_rows), a.len);
	assert_false(emb_range_entity_len(&narrow, a, a));
	assert_false(emb_range_entity_len(&narrow, STR("a"), STR("b")));
	assert_false(emb_range_entity_len(&narrow, STR(""), STR("\xff")));
}

/* ---- Stores ---- */

/* Things are rows and records instead of documents, with keys that are no text. */
static bool things_of_any_kind;

static void
put_primary_key(struct buf *b, size_t n)
{
	/* In no order, so that each table has some of all. */
	uint32_t mixed = (uint32_t)(n * 2654435761u);

	switch (n / 2 % 5) {
	case 0:
		tuple_put_i64(b, (int64_t)mixed - INT32_MAX);
		break;
	case 1:
		tuple_put_double(b, mixed * 0.5);
		break;
	case 2:
		tuple_open(b);
		tuple_put_u64(b, mixed);
		tuple_put_nested_null(b);
		tuple_put_bytes(b, str_of((const char *)&mixed, sizeof(mixed)));
		tuple_close(b);
		break;
	case 3: {
		uint8_t uuid[16] = { 0 };

		memcpy(uuid, &mixed, sizeof(mixed));
		tuple_put_uuid(b, uuid);
		break;
	}
	default:
		tuple_put_bytes(b, str_of((const char *)&mixed, sizeof(mixed)));
		break;
	}
}

/* Of the nth thing: its key, or that of one of its rows. */
static struct str
key_of(size_t n, size_t row, char ret[KEY_BYTES])
{
	struct buf b AUTO(buf_release) = BUF_INIT(KEY_BYTES);
	char name[KEY_BYTES / 2];

	tuple_put_u64(&b, 7);
	if (things_of_any_kind) {
		tuple_put_u64(&b, n % 2 ? SPACE_OF_ROWS : SPACE_OF_RECORDS);
		if (n % 2)
			tuple_put_bytes(&b, str_of((const char *)&(uint16_t){ (uint16_t)n }, 2));
		put_primary_key(&b, n);
		if (row) {
			tuple_put_bool(&b, true);
			tuple_put_u64(&b, row);
		}
		assert_ok(buf_status(&b));
		memcpy(ret, b.ptr, b.len);
		return str_of(ret, b.len);
	}
	snprintf(name, sizeof(name), "%08x", (unsigned)(n * 2654435761u));
	tuple_put_u64(&b, n % 2 ? 3 : FIXTURE_SPACE_OF_SIX);
	tuple_put_str(&b, str_from_cstr(name));
	if (n % 2 == 0) {
		tuple_put_bool(&b, true);
		tuple_put_u64(&b, 1);
		tuple_put_bytes(&b, STR("hash"));
	}
	if (row) {
		tuple_put_bool(&b, true);
		tuple_put_u64(&b, row);
	}
	assert_ok(buf_status(&b));
	memcpy(ret, b.ptr, b.len);
	return str_of(ret, b.len);
}

static size_t
rows_of(size_t n)
{
	return n % 3;
}

/* What reading its range gives, with limits and directions that matter, is what it has. */
static void
check_thing(struct kv_tx *tx, size_t n, size_t rows)
{
	char begin_key[KEY_BYTES];
	char end_key[KEY_BYTES];
	char key[KEY_BYTES];
	struct str from = key_of(n, 0, begin_key);
	struct str to = key_of(n, 0, end_key);

	to.len++;
	end_key[to.len - 1] = (char)0xff;
	for (int way = 0; way < 4; way++) {
		const struct kv_range_options options = { .limit = (size_t)way % 3,
							  .reverse = way > 0 };
		struct kv_future *f = kv_get_range(tx, from, to, &options);
		size_t expected = options.limit && options.limit < rows ? options.limit : rows;
		struct kv_range range;

		assert_ok(kv_future_wait(f));
		range = kv_future_range(f);
		assert_int_equal(range.count, expected);
		for (size_t i = 0; i < expected; i++)
			assert_true(str_eq(range.pairs[i].key,
					   key_of(n, options.reverse ? rows - i : i + 1, key)));
		kv_future_free(f);
	}
}

/* Of many neighbours alike some, which are others in the next run. */
static void
check_all(struct kv_store *store, size_t count)
{
	struct kv_tx *tx = NULL;

	/* Those behind the last are absent. */
	for (size_t n = 0; n < count + A_TX; n++) {
		if (n % A_TX == 0) {
			kv_tx_free(tx);
			tx = n / A_TX % 2 ? begin(store) : begin_read(store);
		}
		if (n % CHECKED_EVERY == test_seed() % CHECKED_EVERY)
			check_thing(tx, n, n < count ? rows_of(n) : 0);
	}
	kv_tx_free(tx);
}

static void
write_some(struct kv_store *store, size_t from, size_t to)
{
	struct kv_tx *tx = begin(store);
	char key[KEY_BYTES];

	for (size_t n = from; n < to; n++) {
		for (size_t row = 1; row <= rows_of(n); row++)
			assert_ok(kv_set(tx, key_of(n, row, key), STR("value")));
		/* What was there once leaves a mark that lookups step over. */
		for (size_t row = 1; n % 7 == 0 && row < 40; row++)
			assert_ok(kv_clear(tx, key_of(n, 100 + row, key)));
	}
	commit(tx);
}

static void
reopen(struct fixture *f, const struct kv_shape *shape)
{
	kv_close(f->store);
	f->store = fixture_open(f->url, (struct kv_options){ .no_sync = true, .shape = shape });
}

static void
write_and_find(struct fixture *f, const struct kv_shape *shape, size_t count)
{
	struct err err = { 0 };

	for (size_t from = 0; from < count; from += count / TABLES) {
		write_some(f->store, from, from + count / TABLES);
		if (from == 0)
			assert_ok(kv_compact(f->store, &err));
		reopen(f, shape);
	}
	check_all(f->store, count);
	assert_ok(kv_compact(f->store, &err));
	write_some(f->store, 0, A_TX); /* in memory, too */
	check_all(f->store, count);
	kv_close(f->store);
	f->store = fixture_open(f->url, (struct kv_options){ .read_only = true, .shape = shape });
	check_all(f->store, count);
}

static void
each_is_found_in_tables_of_many_filters(void **state)
{
	write_and_find(*state, &fixture_shape, ENTITIES);
}

static void
each_is_found_by_a_primary_key_of_any_kind(void **state)
{
	struct fixture *f = *state;

	reopen(f, &wide_shape);
	things_of_any_kind = true;
	write_and_find(f, &wide_shape, ENTITIES / 2);
	things_of_any_kind = false;
}

/* ---- Stores of another shape ---- */

static void
copy_file(const char *from, const char *to)
{
	FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
	char bytes[4096];
	size_t n;

	assert_non_null(in);
	assert_non_null(out);
	while ((n = fread(bytes, 1, sizeof(bytes), in)) > 0)
		assert_int_equal(fwrite(bytes, 1, n, out), n);
	fclose(in);
	assert_int_equal(fclose(out), 0);
}

/* In the place of the fixture's, which was new and empty. */
static void
put_kept_store(struct fixture *f)
{
	char from[512], to[512];
	struct dirent *e;
	DIR *dir;

	kv_close(f->store);
	fixture_remove_dir(f);
	assert_int_equal(mkdir(f->dir, 0700), 0);
	dir = opendir(KV_TEST_DATA "/store-1");
	assert_non_null(dir);
	while ((e = readdir(dir))) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(from, sizeof(from), KV_TEST_DATA "/store-1/%s", e->d_name);
		snprintf(to, sizeof(to), "%s/%s", f->dir, e->d_name);
		copy_file(from, to);
	}
	closedir(dir);
	f->store = NULL;
}

/* True if a table in the directory keeps this name of an extractor. */
static bool
has_table_of(const struct fixture *f, const char *name)
{
	DIR *dir = opendir(f->dir);
	struct dirent *e;
	bool found = false;

	assert_non_null(dir);
	while ((e = readdir(dir))) {
		struct buf bytes = BUF_INIT(16 * 1024 * 1024);
		char path[512], piece[4096];
		size_t n;
		FILE *in;

		if (!strstr(e->d_name, ".sst"))
			continue;
		snprintf(path, sizeof(path), "%s/%s", f->dir, e->d_name);
		in = fopen(path, "rb");
		assert_non_null(in);
		while ((n = fread(piece, 1, sizeof(piece), in)) > 0)
			buf_append(&bytes, piece, n);
		fclose(in);
		assert_ok(buf_status(&bytes));
		found = found || memmem(bytes.ptr, bytes.len, name, strlen(name));
		buf_release(&bytes);
	}
	closedir(dir);
	return found;
}

static void
kept_store_opens_unchanged(void **state)
{
	struct fixture *f = *state;

	put_kept_store(f);
	assert_true(has_table_of(f, "frond.entities"));
	f->store = fixture_open(f->url, (struct kv_options){ .read_only = true });
	check_all(f->store, KEPT);
	reopen(f, &fixture_shape);
	check_all(f->store, KEPT);
	write_some(f->store, KEPT, 2 * KEPT);
	reopen(f, &fixture_shape);
	check_all(f->store, 2 * KEPT);
	assert_ok(kv_compact(f->store, NULL));
	check_all(f->store, 2 * KEPT);
}

/*
 * A newer program adds subspaces, an older one opens the store after it, and a table may have been
 * written by either: nothing is missed, and each writes tables of its own shape.
 */
static void
store_goes_back_and_forth_between_shapes(void **state)
{
	struct fixture *f = *state;

	put_kept_store(f);
	f->store = fixture_open(f->url,
				(struct kv_options){ .no_sync = true, .shape = &wide_shape });
	check_all(f->store, KEPT);
	things_of_any_kind = true;
	write_some(f->store, 0, KEPT);
	reopen(f, &wide_shape);
	check_all(f->store, KEPT);
	assert_true(has_table_of(f, "frond.entities *:t 4:tbit 32:aa 33:a"));

	reopen(f, &fixture_shape);
	check_all(f->store, KEPT);
	write_some(f->store, KEPT, 2 * KEPT);
	assert_ok(kv_compact(f->store, NULL));
	assert_false(has_table_of(f, "frond.entities *:t 4:tbit 32:aa 33:a"));
	check_all(f->store, 2 * KEPT);

	reopen(f, &wide_shape);
	check_all(f->store, 2 * KEPT);
	things_of_any_kind = false;
	check_all(f->store, KEPT);
	reopen(f, NULL);
	check_all(f->store, KEPT);
}

/* As a program opens it that knows of no entities. */
static rocksdb_t *
open_plain(const char *dir)
{
	rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();
	rocksdb_options_t *o = rocksdb_options_create();
	char *error = NULL;
	rocksdb_t *db;

	rocksdb_block_based_options_set_filter_policy(table,
						      rocksdb_filterpolicy_create_bloom_full(10));
	rocksdb_block_based_options_set_index_type(
		table, rocksdb_block_based_table_index_type_two_level_index_search);
	rocksdb_block_based_options_set_partition_filters(table, 1);
	rocksdb_options_set_block_based_table_factory(o, table);
	rocksdb_block_based_options_destroy(table);
	db = rocksdb_open(o, dir, &error);
	assert_null(error);
	rocksdb_options_destroy(o);
	return db;
}

static void
write_plain(rocksdb_t *db, size_t from, size_t to)
{
	rocksdb_writeoptions_t *w = rocksdb_writeoptions_create();
	rocksdb_flushoptions_t *flush = rocksdb_flushoptions_create();
	char key[KEY_BYTES];
	char *error = NULL;

	for (size_t n = from; n < to; n++) {
		for (size_t row = 1; row <= rows_of(n); row++) {
			struct str k = key_of(n, row, key);

			rocksdb_put(db, w, k.ptr, k.len, "value", 5, &error);
			assert_null(error);
		}
	}
	rocksdb_flush(db, flush, &error);
	assert_null(error);
	rocksdb_flushoptions_destroy(flush);
	rocksdb_writeoptions_destroy(w);
}

static void
check_plain(rocksdb_t *db, size_t count)
{
	rocksdb_readoptions_t *r = rocksdb_readoptions_create();
	char key[KEY_BYTES];
	char *error = NULL;

	for (size_t n = 0; n < count; n++) {
		struct str k = key_of(n, rows_of(n), key);
		rocksdb_pinnableslice_t *slice;

		slice = rocksdb_get_pinned(db, r, k.ptr, k.len, &error);
		assert_null(error);
		assert_int_equal(slice != NULL, rows_of(n) > 0);
		rocksdb_pinnableslice_destroy(slice);
	}
	rocksdb_readoptions_destroy(r);
}

static void
store_of_an_older_program_is_read_and_read_by_it(void **state)
{
	struct fixture *f = *state;
	rocksdb_t *db;

	kv_close(f->store);
	db = open_plain(f->dir);
	write_plain(db, 0, A_TX);
	rocksdb_close(db);
	f->store = fixture_open(f->url, (struct kv_options){ .no_sync = true });
	check_all(f->store, A_TX);
	write_some(f->store, A_TX, 2 * A_TX);
	check_all(f->store, 2 * A_TX);
	kv_close(f->store);

	db = open_plain(f->dir);
	check_plain(db, 2 * A_TX);
	write_plain(db, 2 * A_TX, 3 * A_TX);
	rocksdb_close(db);
	f->store = fixture_open(f->url, (struct kv_options){ .no_sync = true });
	check_all(f->store, 3 * A_TX);
}

/* ---- What a lookup keeps ---- */

static void
lookups_of_one_transaction_keep_its_version(void **state)
{
	struct kv_store *store = store_of(state);
	struct kv_tx *tx = begin(store);

	check_thing(tx, 1, 0);
	write_some(store, 0, A_TX);
	for (size_t n = 0; n < 10; n++)
		check_thing(tx, n, 0);
	kv_tx_reset(tx);
	for (size_t n = 0; n < 10; n++)
		check_thing(tx, n, rows_of(n));
	kv_tx_free(tx);
}

static void
transaction_lets_go_of_its_iterator_at_the_commit(void **state)
{
	struct kv_store *store = store_of(state);
	struct kv_tx *tx = begin(store);
	const struct emb_tx *emb = (const struct emb_tx *)tx;

	check_thing(tx, 1, 0);
	assert_non_null(emb->lookup);
	assert_ok(kv_set(tx, STR("t/a"), STR("b")));
	assert_ok(kv_future_wait(kv_commit(tx)));
	assert_null(emb->lookup);
	kv_tx_free(tx);

	tx = begin_read(store); /* may last long, and keeps nothing */
	emb = (const struct emb_tx *)tx;
	check_thing(tx, 1, 0);
	assert_null(emb->lookup);
	kv_tx_free(tx);
}

static void
transaction_that_is_brief_keeps_its_iterator_as_long_as_the_handle(void **state)
{
	struct kv_store *store = store_of(state);
	struct emb_store *of = (struct emb_store *)store;
	struct kv_tx *tx = begin_read(store);
	const struct emb_tx *emb = (const struct emb_tx *)tx;
	struct kv_future *f;

	kv_tx_brief(tx);
	check_thing(tx, 1, 0);
	assert_non_null(emb->lookup);
	write_some(store, 0, A_TX);
	for (size_t n = 0; n < 10; n++)
		check_thing(tx, n, 0);
	assert_non_null(emb->lookup);
	/* As when the store is opened again: nothing may be left of the handle of before. */
	assert_true(gate_close(&of->gate, UINT64_MAX));
	emb_versions_let_go(of);
	emb_versions_reopened(of, of->versions.published, of->versions.metadata);
	gate_open(&of->gate);
	assert_null(emb->lookup);
	f = kv_get_range(tx, STR("a"), STR("b"), NULL);
	assert_int_not_equal(kv_future_wait(f), STATUS_OK);
	kv_tx_free(tx);
	tx = begin_read(store);
	for (size_t n = 0; n < 10; n++)
		check_thing(tx, n, rows_of(n));
	kv_tx_free(tx);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entity_is_two_numbers_a_name_and_a_version),
		cmocka_unit_test(range_within_an_entity_has_no_other_key),
		cmocka_unit_test(subspace_zero_has_an_entity_of_its_own),
		cmocka_unit_test(entity_may_have_elements_of_any_kind),
		cmocka_unit_test(shape_of_stores_of_before_keeps_its_name),
		cmocka_unit_test(shape_that_makes_no_sense_is_refused),
		cmocka_unit_test(shape_may_have_as_much_as_there_is_room_for),
		cmocka_unit_test_setup_teardown(each_is_found_by_a_primary_key_of_any_kind,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(kept_store_opens_unchanged, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(store_goes_back_and_forth_between_shapes,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(each_is_found_in_tables_of_many_filters,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(store_of_an_older_program_is_read_and_read_by_it,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(lookups_of_one_transaction_keep_its_version,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(transaction_lets_go_of_its_iterator_at_the_commit,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(
			transaction_that_is_brief_keeps_its_iterator_as_long_as_the_handle,
			fixture_setup, fixture_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
