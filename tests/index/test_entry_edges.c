/*
 * Entries of JSON at their edges: what is as long as a limit and one byte longer, what is stored
 * and is none, documents that have the same values, and memory that ends.
 */
#include "common.h"

#include "base/arena_apart.h"
#include "doc/packed.h"
#include "index/engine/component.h"
#include "index/engine/entry.h"
#include "index/json/component.h"
#include "index/json/form.h"
#include "index/json/source.h"

enum {
	ROOM_BYTES = 256 << 10,
	ELEMENTS = 6,
	TEXT_BYTES = 1 << 16,
};

static const struct catalog_db db = { .prefix = { "\x15\x07", 2 }, .number = 7 };
static struct str path_a[] = { { "a", 1 } }, path_b[] = { { "b", 1 } };
static const struct index_column by_a[] = { { path_a, 1, false }, { path_b, 1, false } };

static struct index_def
def_of(size_t count, uint32_t flags)
{
	return (struct index_def){ .form = &index_json_form,
				   .number = 1,
				   .state = INDEX_READY,
				   .flags = flags,
				   .order = DOC_KEY_COUCH,
				   .columns = by_a,
				   .column_count = count };
}

/* The document packed, or in leaves. */
static struct index_source
source_of(struct str json, struct str id, bool packed)
{
	struct doc_limits limits = { .doc_bytes = SIZE_MAX, .path_bytes = KV_LIMIT_KEY_BYTES };
	struct index_source ret = { .id = id };
	struct err err = { 0 };
	struct doc doc;

	if (doc_explode_text(json, arena, &limits, 0, &doc, &err) != STATUS_OK)
		fail_msg("%.*s: %s", STR_ARG(json), err.text);
	if (packed) {
		assert_int_equal(doc_pack(doc.leaves, doc.count, SIZE_MAX / 2, arena, &ret.body),
				 STATUS_OK);
	} else {
		ret.leaves = doc.leaves;
		ret.count = doc.count;
	}
	return ret;
}

static struct kv_pair
pair_of(const struct index_def *def, struct str json, struct str id, bool packed)
{
	const struct index_source source = source_of(json, id, packed);
	struct index_pairs pairs;

	assert_int_equal(index_entries_make(&db, def, &source, &work, &pairs), STATUS_OK);
	assert_int_equal(pairs.count, 1);
	return pairs.pairs[0];
}

static struct str
tail_of(const struct index_def *def, struct str key)
{
	AUTO(buf_release) struct buf prefix = BUF_INIT(64);

	index_key_entries(&prefix, &db, def->number);
	assert_int_equal(buf_status(&prefix), STATUS_OK);
	return str_skip(key, prefix.len);
}

static enum status
parse(const struct index_def *def, struct str tail, struct str value, struct index_entry *ret)
{
	*ret = (struct index_entry){ 0 };
	return index_entry_parse(def, tail, value, arena, ret);
}

static struct index_entry
entry_of(const struct index_def *def, struct kv_pair pair)
{
	struct index_entry entry;

	assert_int_equal(parse(def, tail_of(def, pair.key), pair.value, &entry), STATUS_OK);
	return entry;
}

/* So many bytes of one character, as a text in the arena. */
static struct str
text_of(char c, size_t bytes)
{
	char *text = arena_bytes(arena, bytes + 1);

	assert_non_null(text);
	memset(text, c, bytes);
	return str_of(text, bytes);
}

/* ---- Limits ---- */

/* Texts of both columns together. */
static void
an_entry_has_texts_up_to_their_limit(void **state)
{
	const struct index_def def = def_of(2, INDEX_COVERING);

	(void)state;
	for (int packed = 0; packed < 2; packed++)
		for (size_t more = 0; more < 2; more++) {
			/* "7", and a text with its quotes. */
			struct str text = text_of('x', INDEX_PAYLOAD_BYTES - 3 + more);
			struct str json = arena_printf(arena, "{\"a\":7,\"b\":\"%.*s\"}",
						       STR_ARG(text));
			struct index_entry entry = entry_of(&def,
							    pair_of(&def, json, STR("id"), packed));

			assert_int_equal(entry.has_texts, !more);
			if (!more)
				assert_int_equal(entry.texts[1].len, INDEX_PAYLOAD_BYTES - 1);
			/* Two texts, each of which is shorter. */
			json = arena_printf(arena, "{\"a\":\"%.*s\",\"b\":\"%.*s\"}",
					    INDEX_PAYLOAD_BYTES / 2 - 2, text.ptr,
					    INDEX_PAYLOAD_BYTES / 2 - 2 + (int)more, text.ptr);
			entry = entry_of(&def, pair_of(&def, json, STR("id"), packed));
			assert_int_equal(entry.has_texts, !more);
		}
}

/* A longer one is in the value, and the key has a digest. A NUL takes two bytes. */
static void
an_id_is_in_the_key_up_to_its_limit(void **state)
{
	static const struct {
		char c;
		size_t len;
		bool is_long;
	} cases[] = {
		{ 'x', INDEX_ID_BYTES / 2 - 1, false },  { 'x', INDEX_ID_BYTES / 2, false },
		{ 'x', INDEX_ID_BYTES - 2, false },      { 'x', INDEX_ID_BYTES - 1, true },
		{ '\0', INDEX_ID_BYTES / 2 - 1, false }, { '\0', INDEX_ID_BYTES / 2, true },
	};
	const struct index_def def = def_of(1, 0);

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct str id = text_of(cases[i].c, cases[i].len);
		struct kv_pair pair = pair_of(&def, STR("{\"a\":1}"), id, true);
		struct tuple_reader r = tuple_reader(pair.value);
		uint64_t format, flags;

		assert_int_equal(tuple_next_u64(&r, &format), STATUS_OK);
		assert_int_equal(tuple_next_u64(&r, &flags), STATUS_OK);
		if (!(flags & INDEX_ENTRY_LONG_ID) != !cases[i].is_long)
			fail_msg("%zu: flags %llu", i, (unsigned long long)flags);
		assert_true(str_eq(entry_of(&def, pair).id, id));
	}
}

static void
a_partition_is_cut_behind_its_share(void **state)
{
	const struct index_def def = def_of(1, INDEX_PARTITIONED);
	const size_t share = INDEX_COMPONENTS_BYTES / 2;
	const struct {
		char c;
		size_t len;
		bool cut;
	} cases[] = {
		{ 'x', share, false },
		{ 'x', share + 1, true },
		{ '\0', share / 2, false },
		{ '\0', share / 2 + 1, true },
	};

	(void)state;
	assert_int_equal(index_component_share(&def), share);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct index_interval interval = { .partition = text_of(cases[i].c, cases[i].len) };
		struct index_range range;

		assert_int_equal(index_range_make(&db, &def, &interval, &work, &range), STATUS_OK);
		if (range.cut != cases[i].cut)
			fail_msg("%zu", i);
		assert_false(range.point);
	}
}

/* ---- What is stored and is none ---- */

static void
an_entry_with_more_behind_it_is_corrupt(void **state)
{
	static const uint32_t flags[] = { 0, INDEX_COVERING };
	struct index_entry entry;

	(void)state;
	for (size_t i = 0; i < COUNT(flags); i++) {
		const struct index_def def = def_of(1, flags[i]);
		struct kv_pair pair = pair_of(&def, STR("{\"a\":1}"), STR("id"), true);
		AUTO(buf_release) struct buf longer = BUF_INIT(1024);

		buf_append_str(&longer, tail_of(&def, pair.key));
		tuple_put_null(&longer);
		assert_int_equal(parse(&def, buf_str(&longer), pair.value, &entry), STATUS_CORRUPT);
		buf_set(&longer, pair.value);
		tuple_put_null(&longer);
		assert_int_equal(parse(&def, tail_of(&def, pair.key), buf_str(&longer), &entry),
				 STATUS_CORRUPT);
	}
}

/* An entry of this key; the value has a format, flags and perhaps a text. */
static enum status
parse_made(const struct index_def *def, struct str tail, uint64_t format, uint64_t flags,
	   struct str more)
{
	AUTO(buf_release) struct buf value = BUF_INIT(1024);
	struct index_entry entry;

	tuple_put_u64(&value, format);
	tuple_put_u64(&value, flags);
	if (more.ptr)
		tuple_put_str(&value, more);
	return parse(def, tail, buf_str(&value), &entry);
}

static void
an_entry_has_the_flags_of_its_form_and_of_its_key(void **state)
{
	const struct index_def def = def_of(1, 0);
	const struct str none = { NULL, 0 }, id = STR("id");
	struct kv_pair pair = pair_of(&def, STR("{\"a\":1}"), id, true);
	struct str tail = tail_of(&def, pair.key), long_tail;
	AUTO(buf_release) struct buf other = BUF_INIT(1024);

	(void)state;
	pair = pair_of(&def, STR("{\"a\":1}"), text_of('x', INDEX_ID_BYTES), true);
	long_tail = tail_of(&def, pair.key);
	assert_int_equal(parse_made(&def, tail, 1, 0, none), STATUS_OK);
	assert_int_equal(parse_made(&def, tail, 1, INDEX_ENTRY_CUT, none), STATUS_OK);
	assert_int_equal(parse_made(&def, tail, 1, INDEX_ENTRY_FREE, none), STATUS_CORRUPT);
	assert_int_equal(parse_made(&def, tail, 1, INDEX_ENTRY_FLAGS + 1, none), STATUS_CORRUPT);
	assert_int_equal(parse_made(&def, tail, 2, 0, none), STATUS_NEWER);
	assert_int_equal(parse_made(&def, tail, 0, 0, none), STATUS_CORRUPT);
	assert_int_equal(parse_made(&def, tail, 1, 0, id), STATUS_CORRUPT);
	/* The id is in the key or in the value, and not in both of them. */
	assert_int_equal(parse_made(&def, tail, 1, INDEX_ENTRY_LONG_ID, id), STATUS_CORRUPT);
	assert_int_equal(parse_made(&def, long_tail, 1, 0, none), STATUS_CORRUPT);
	assert_int_equal(parse_made(&def, long_tail, 1, INDEX_ENTRY_LONG_ID, none), STATUS_CORRUPT);
	assert_int_equal(parse_made(&def, long_tail, 1, INDEX_ENTRY_LONG_ID, id), STATUS_OK);
	/* Components are bytes, and an id is a text or a digest. */
	tuple_put_u64(&other, 1);
	tuple_put_str(&other, id);
	assert_int_equal(parse_made(&def, buf_str(&other), 1, 0, none), STATUS_CORRUPT);
	buf_clear(&other);
	tuple_put_bytes(&other, id);
	tuple_put_u64(&other, 1);
	assert_int_equal(parse_made(&def, buf_str(&other), 1, INDEX_ENTRY_LONG_ID, id),
			 STATUS_CORRUPT);
}

/* As `frond inspect` draws values of entries, and leaves what is none. */
static void
a_value_is_drawn_if_it_is_one(void **state)
{
	static const struct {
		uint64_t format, flags;
		struct str id, text;
		const char *drawn; /* NULL: it is none */
	} cases[] = {
		{ 1, 0, { NULL, 0 }, { NULL, 0 }, "(1)" },
		{ 1, INDEX_ENTRY_CUT, { NULL, 0 }, { NULL, 0 }, "(1, cut)" },
		{ 1, INDEX_ENTRY_TEXTS, { NULL, 0 }, STR("7"), "(1, 7)" },
		{ 1, INDEX_ENTRY_TEXTS, { NULL, 0 }, STR(""), "(1, missing)" },
		{ 1, INDEX_ENTRY_LONG_ID, STR("id"), { NULL, 0 }, "(1, of \"id\")" },
		{ 1, INDEX_ENTRY_LONG_ID | INDEX_ENTRY_TEXTS | INDEX_ENTRY_CUT, STR("id"), STR("7"),
		  "(1, cut, 7, of \"id\")" },
		{ 1, INDEX_ENTRY_LONG_ID, { NULL, 0 }, { NULL, 0 }, NULL },
		{ 1, INDEX_ENTRY_LONG_ID, { NULL, 0 }, STR(""), NULL },
		{ 2, 0, { NULL, 0 }, { NULL, 0 }, NULL },
		{ 1, INDEX_ENTRY_FLAGS + 1, { NULL, 0 }, { NULL, 0 }, NULL },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(buf_release) struct buf value = BUF_INIT(1024);
		AUTO(buf_release) struct buf drawn = BUF_INIT(1024);
		bool is_one;

		tuple_put_u64(&value, cases[i].format);
		tuple_put_u64(&value, cases[i].flags);
		if (cases[i].id.ptr)
			tuple_put_str(&value, cases[i].id);
		if (cases[i].text.ptr && cases[i].text.len)
			tuple_put_str(&value, cases[i].text);
		else if (cases[i].text.ptr)
			tuple_put_null(&value);
		buf_append_byte(&drawn, '=');
		is_one = index_json_draw_entry(buf_str(&value), &drawn);
		if (is_one != !!cases[i].drawn)
			fail_msg("%zu: %d", i, is_one);
		if (!str_eq(str_skip(buf_str(&drawn), 1),
			    str_from_cstr(is_one ? cases[i].drawn : "")))
			fail_msg("%zu: %.*s", i, STR_ARG(buf_str(&drawn)));
		/* An element that no text is, and one that is cut. */
		tuple_put_u64(&value, 7);
		assert_false(index_json_draw_entry(buf_str(&value), &drawn));
		value.len--;
		assert_false(index_json_draw_entry(buf_str(&value), &drawn));
	}
}

/* The key of an entry with so many components in front of an id, drawn with so many texts. */
static bool
key_is_drawn(size_t components, size_t texts, uint64_t flags, bool id_is_text)
{
	AUTO(buf_release) struct buf tail = BUF_INIT(4096);
	AUTO(buf_release) struct buf value = BUF_INIT(4096);
	AUTO(buf_release) struct buf drawn = BUF_INIT(4096);
	bool is_drawn;

	tuple_put_u64(&tail, 7);
	for (size_t i = 0; i < components; i++)
		tuple_put_bytes(&tail, STR("c"));
	if (id_is_text)
		tuple_put_str(&tail, STR("id"));
	else
		tuple_put_bytes(&tail, STR("id"));
	tuple_put_u64(&value, INDEX_ENTRY_FORMAT);
	tuple_put_u64(&value, flags);
	for (size_t i = 0; i < texts; i++)
		tuple_put_str(&value, STR("1"));
	is_drawn = index_json_draw_entry_key(buf_str(&tail), buf_str(&value), &drawn);
	assert_int_equal(buf_status(&drawn), STATUS_OK);
	assert_int_equal(drawn.len > 0, is_drawn);
	return is_drawn;
}

/* A component for each text, and perhaps a partition; all else is drawn as any other key is. */
static void
a_key_is_drawn_with_as_many_texts_as_columns(void **state)
{
	static const size_t counts[] = { 1, 2, INDEX_COLUMNS };

	(void)state;
	for (size_t i = 0; i < COUNT(counts); i++)
		for (size_t components = 0; components <= counts[i] + 2; components++) {
			bool fits = components == counts[i] || components == counts[i] + 1;

			assert_int_equal(
				key_is_drawn(components, counts[i], INDEX_ENTRY_TEXTS, true), fits);
			assert_false(key_is_drawn(components, counts[i], INDEX_ENTRY_TEXTS, false));
			assert_false(key_is_drawn(components, counts[i],
						  INDEX_ENTRY_TEXTS | INDEX_ENTRY_CUT, true));
			assert_false(key_is_drawn(components, counts[i], 0, true));
		}
	assert_false(key_is_drawn(0, 0, INDEX_ENTRY_TEXTS, true));
	/* No definition has so many columns. */
	for (size_t texts = INDEX_COLUMNS + 1; texts < 3 * INDEX_COLUMNS; texts++)
		assert_false(key_is_drawn(texts, texts, INDEX_ENTRY_TEXTS, true));
}

/* ---- Several entries ---- */

/* Of any two ranges of {"a":[0,1,…]}, read from both ends. */
static void
of_several_ranges_one_has_the_first_entry(void **state)
{
	const struct index_def def = def_of(1, INDEX_MULTIKEY);
	const struct index_source source = source_of(STR("{\"a\":[0,1,2,3,4,5]}"), STR("d"), true);
	struct leaf_value numbers[ELEMENTS + 3];
	struct index_pairs pairs;

	(void)state;
	for (int i = 0; i < ELEMENTS + 3; i++)
		numbers[i] = value_of(arena_printf(arena, "%d", i - 1).ptr);
	assert_int_equal(index_entries_make(&db, &def, &source, &work, &pairs), STATUS_OK);
	assert_int_equal(pairs.count, ELEMENTS);
	for (int bits = 0; bits < 1 << (ELEMENTS + 2); bits++) {
		struct index_range ranges[ELEMENTS + 2];
		size_t count = 0;

		/* The values from -1 on that are asked for, each as a range of its own. */
		for (int v = 0; v < ELEMENTS + 2; v++) {
			const struct index_interval one = { .low = &numbers[v],
							    .high = &numbers[v] };

			if (bits >> v & 1)
				assert_int_equal(
					index_range_make(&db, &def, &one, &work, &ranges[count++]),
					STATUS_OK);
		}
		for (int reverse = 0; reverse < 2; reverse++) {
			int inner = bits >> 1 & ((1 << ELEMENTS) - 1);
			int expected = !inner    ? -1
				       : reverse ? 31 - __builtin_clz((unsigned)inner)
						 : __builtin_ctz((unsigned)inner);

			for (int i = 0; i < ELEMENTS; i++) {
				bool first;

				assert_int_equal(index_entry_is_first(
							 &db, &def, &source, ranges, count, reverse,
							 tail_of(&def, pairs.pairs[i].key), &work,
							 &first),
						 STATUS_OK);
				/* Where no range has an entry, none is behind another one. */
				if (first != (expected < 0 || expected == i))
					fail_msg("%d of %x, reverse %d", i, bits, reverse);
			}
		}
	}
}

static void
only_where_entries_may_be_several_one_is_not_the_first(void **state)
{
	const struct index_def def = def_of(1, 0);
	const struct index_source none = { .id = STR("d") };
	bool first = false;

	(void)state;
	assert_int_equal(
		index_entry_is_first(&db, &def, &none, NULL, 0, false, STR("x"), &work, &first),
		STATUS_OK);
	assert_true(first);
}

/* ---- Ranges and places ---- */

/* A bound that was cut has values on both sides of it, so exclusive or not they are in it. */
static void
an_exclusive_bound_that_is_cut_leaves_nothing_out(void **state)
{
	const struct index_def def = def_of(1, 0);
	struct str text = text_of('k', INDEX_COMPONENTS_BYTES);
	struct leaf_value bound = value_of(arena_printf(arena, "\"%.*sb\"", STR_ARG(text)).ptr);

	(void)state;
	for (int upper = 0; upper < 2; upper++)
		for (char c = 'a'; c <= 'c'; c++) {
			const struct index_interval interval = { .low = upper ? NULL : &bound,
								 .high = upper ? &bound : NULL,
								 .low_exclusive = true,
								 .high_exclusive = true };
			struct kv_pair pair = pair_of(
				&def, arena_printf(arena, "{\"a\":\"%.*s%c\"}", STR_ARG(text), c),
				STR("d"), true);
			struct index_range range;

			assert_int_equal(index_range_make(&db, &def, &interval, &work, &range),
					 STATUS_OK);
			assert_true(range.cut);
			assert_true(str_cmp(pair.key, range.begin) >= 0 &&
				    str_cmp(pair.key, range.end) < 0);
		}
}

static void
a_range_is_a_point_where_all_columns_have_a_value(void **state)
{
	static const uint32_t flags[] = { 0, INDEX_PARTITIONED };
	struct leaf_value one = value_of("1");
	const void *const equal[] = { &one, &one };

	(void)state;
	for (size_t i = 0; i < COUNT(flags); i++)
		for (size_t count = 0; count <= 2; count++)
			for (int partition = 0; partition < 2; partition++) {
				const struct index_def def = def_of(2, flags[i]);
				struct index_interval interval = { .equal = equal,
								   .equal_count = count };
				struct index_range range;

				if (flags[i] && !partition && count)
					continue; /* values are behind a partition */
				if (partition)
					interval.partition = STR("p");
				assert_int_equal(
					index_range_make(&db, &def, &interval, &work, &range),
					STATUS_OK);
				assert_int_equal(range.point, count == 2);
				assert_false(range.cut);
			}
}

static void
a_place_is_the_key_of_the_entry(void **state)
{
	const struct index_def def = def_of(2, 0);
	struct str text = text_of('k', INDEX_COMPONENTS_BYTES);
	struct str longer = arena_printf(arena, "\"%.*s\"", STR_ARG(text));
	struct leaf_value one = value_of("1"), two = value_of("\"x\""), cut = value_of(longer.ptr);
	const void *const equal[] = { &one, &two }, *const too_long[] = { &one, &cut };
	struct index_interval interval = { .equal = equal, .equal_count = 2 };
	struct kv_pair pair = pair_of(&def, STR("{\"a\":1,\"b\":\"x\"}"), STR("id"), true);
	struct str place;
	bool known = false;

	(void)state;
	assert_int_equal(index_place_make(&db, &def, &interval, STR("id"), &work, &place, &known),
			 STATUS_OK);
	assert_true(known);
	assert_true(str_eq(place, tail_of(&def, pair.key)));
	interval.equal = too_long;
	assert_int_equal(index_place_make(&db, &def, &interval, STR("id"), &work, &place, &known),
			 STATUS_OK);
	assert_false(known);
}

/* ---- What stays as it is ---- */

static void
documents_with_the_same_values_are_known(void **state)
{
	static const struct {
		const char *before, *after;
		bool same;
	} cases[] = {
		{ "{\"a\":1}", "{\"a\":1}", true },
		{ "{\"a\":1}", "{\"a\":1,\"c\":2}", true },
		{ "{\"a\":1}", "{\"a\":2}", false },
		{ "{\"a\":1}", "{}", false },
		{ "{}", "{\"a\":1}", false },
		{ "{}", "{\"c\":1}", true },
		{ "{\"b\":1}", "{\"b\":2}", false },
		{ "{\"a\":[1,2]}", "{\"a\":[1,2],\"c\":3}", true },
		{ "{\"a\":[1,2]}", "{\"a\":[1,2,3]}", false },
		{ "{\"a\":[1,2,3]}", "{\"a\":[1,2]}", false },
		{ "{\"a\":[1,2]}", "{\"a\":[1,3]}", false },
		{ "{\"a\":{\"x\":1}}", "{\"a\":{\"y\":1}}", false },
		{ "{\"a\":{\"x\":1,\"y\":2}}", "{\"a\":{\"x\":1,\"z\":2}}", false },
		{ "{\"a\":1,\"b\":2}", "{\"a\":1,\"b\":2}", true },
	};
	const struct index_def def = def_of(2, 0);

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		for (int forms = 0; forms < 4; forms++) {
			const struct index_source before = source_of(str_from_cstr(cases[i].before),
								     STR("d"), forms & 1);
			const struct index_source after = source_of(str_from_cstr(cases[i].after),
								    STR("d"), forms & 2);
			bool mixed = forms == 1 || forms == 2, same, same_form = true;

			assert_int_equal(index_json_form.has_same_columns(&def, &before, &after,
									  &work, &same),
					 STATUS_OK);
			/* A packed value and one in leaves are told apart; two missing ones not. */
			if (mixed)
				same_form = !strchr(cases[i].before, 'a') &&
					    !strchr(cases[i].before, 'b');
			if (same != (cases[i].same && same_form))
				fail_msg("%zu in forms %d", i, forms);
		}
}

/* ---- Where values lie ---- */

static struct str
found_text(const struct index_source *source, const struct str *path, size_t count)
{
	const struct index_column column = { path, count, false };
	AUTO(buf_release) struct buf text = BUF_INIT(TEXT_BYTES);
	struct index_value value;

	assert_int_equal(index_json_find(source, &column, &work, &value), STATUS_OK);
	if (!value.found)
		return STR("none");
	if (value.text.ptr)
		return value.text;
	assert_int_equal(leaf_write(&value.leaf, &text), STATUS_OK);
	return buf_dup(&text, arena);
}

static void
a_path_leads_to_a_value_in_both_forms(void **state)
{
	static const struct {
		struct str path[3];
		size_t count;
		const char *found;
	} cases[] = {
		{ { STR("a") }, 1, "[5,{\"b\":7}]" },
		{ { STR("a"), STR("0") }, 2, "5" },
		{ { STR("a"), STR("1"), STR("b") }, 3, "7" },
		{ { STR("a"), STR("2") }, 2, "none" },
		{ { STR("a"), STR("x") }, 2, "none" },
		{ { STR("a"), STR("0"), STR("b") }, 3, "none" },
		{ { STR("c"), STR("0") }, 2, "\"zero\"" },
		{ { STR("c"), STR("d") }, 2, "none" },
		{ { STR("s") }, 1, "true" },
		{ { STR("s"), STR("0") }, 2, "none" },
		{ { STR("x") }, 1, "none" },
		{ { STR("") }, 1, "8" },
		{ { STR("_id") }, 1, "\"the id\"" },
		{ { STR("_id"), STR("x") }, 2, "none" },
		{ { STR("_rev") }, 1, "\"1-x\"" },
		{ { STR("_other") }, 1, "none" },
		{ { STR("id") }, 1, "none" },
	};

	(void)state;
	for (int packed = 0; packed < 2; packed++) {
		struct index_source source = source_of(
			STR("{\"\":8,\"a\":[5,{\"b\":7}],\"c\":{\"0\":\"zero\"},\"s\":true}"),
			STR("the id"), packed);
		struct str path = text_of('x', 2 * KV_LIMIT_KEY_BYTES + 1);

		/* Nobody knows the revision. */
		assert_true(
			str_eq(found_text(&source, &(struct str){ "_rev", 4 }, 1), STR("none")));
		source.rev = STR("1-x");
		for (size_t i = 0; i < COUNT(cases); i++) {
			struct str found = found_text(&source, cases[i].path, cases[i].count);

			if (!str_eq(found, str_from_cstr(cases[i].found)))
				fail_msg("%zu, packed %d: %.*s", i, packed, STR_ARG(found));
		}
		/* A name that no document can have. */
		assert_true(str_eq(found_text(&source, &path, 1), STR("none")));
	}
}

/* ---- Components of texts ---- */

static void
a_component_of_a_text_has_bytes_up_to_what_is_asked(void **state)
{
	static const char *const texts[] = {
		"null",
		"true",
		"7",
		"-1.5",
		"\"abc\"",
		" [1, \"a\", {\"x\" : [] , \"b\":{}}] ",
		"{\"b\":1,\"a\":[2]}",
		"[[[[]]],[{}]]",
	};
	static const enum doc_key_order orders[] = { DOC_KEY_COUCH, DOC_KEY_RAW };

	(void)state;
	for (size_t o = 0; o < COUNT(orders); o++)
		for (size_t i = 0; i < COUNT(texts); i++) {
			const struct index_def def = { .order = orders[o],
						       .columns = by_a,
						       .column_count = 1 };
			const struct index_value value = { .found = true,
							   .leaf = value_of(texts[i]) };
			AUTO(buf_release) struct buf whole = BUF_INIT(4096);
			AUTO(buf_release) struct buf wrapped = BUF_INIT(4096);
			AUTO(buf_release) struct buf expected = BUF_INIT(4096);
			bool cut = false;

			assert_int_equal(index_json_component_of_text(&whole, orders[o],
								      str_from_cstr(texts[i]), 4000,
								      &work),
					 STATUS_OK);
			/* It is what an index has of the same value. */
			assert_int_equal(
				index_json_component_put(&wrapped, &def, 0, &value, &work, &cut),
				STATUS_OK);
			tuple_put_bytes(&expected, buf_str(&whole));
			assert_false(cut);
			assert_true(str_eq(buf_str(&wrapped), buf_str(&expected)));
			for (size_t most = 0; most <= whole.len; most++) {
				AUTO(buf_release) struct buf raw = BUF_INIT(4096);
				enum status status = index_json_component_of_text(
					&raw, orders[o], str_from_cstr(texts[i]), most, &work);

				assert_int_equal(status, most < whole.len ? STATUS_KEY_TOO_LARGE
									  : STATUS_OK);
				assert_int_equal(raw.len, most < whole.len ? 0 : whole.len);
			}
		}
}

static void
what_is_no_value_has_no_component(void **state)
{
	static const char *const texts[] = { "", "[", "{", "{\"a\"", "1x", "\"a", "[1,]", "nul" };

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		AUTO(buf_release) struct buf raw = BUF_INIT(4096);
		struct str text = str_from_cstr(texts[i]);
		enum status status = index_json_component_of_text(&raw, DOC_KEY_RAW, text, 4000,
								  &work);

		if (text.len && (status == STATUS_OK || raw.len))
			fail_msg("%s: %s", texts[i], status_name(status));
	}
}

/* Of what is no value behind a part that is too long nobody is told that it is too long. */
static void
what_is_no_value_is_told_as_that_however_long_it_is(void **state)
{
	enum {
		DIGITS = 20000
	};
	static const char *const ends[] = { ",x]", ",1", ",", "" };
	char *digits = arena_bytes(arena, DIGITS + 1);

	(void)state;
	assert_non_null(digits);
	memset(digits, '7', DIGITS);
	digits[DIGITS] = 0;
	for (size_t i = 0; i < COUNT(ends); i++) {
		AUTO(buf_release) struct buf raw = BUF_INIT(4096);
		enum status of_long = index_json_component_of_text(
			&raw, DOC_KEY_RAW, arena_printf(arena, "[%s%s", digits, ends[i]), 4000,
			&work);
		enum status of_short = index_json_component_of_text(
			&raw, DOC_KEY_RAW, arena_printf(arena, "[7%s", ends[i]), 4000, &work);

		assert_int_not_equal(of_short, STATUS_OK);
		assert_int_equal(of_long, of_short);
		assert_int_equal(raw.len, 0);
	}
}

/* ---- Memory that ends ---- */

static uint64_t failing; /* the allocation of an operation that fails; 0: none does */

/* From here on allocations fail: what was before is not the operation. */
static void
begin(void)
{
	arena_set_apart(failing);
	(void)mem_fail_only(failing);
}

static const char roomy[] = "{\"a\":[1,\"x\\u0000y\",{\"k\":[2,\"z\"]},[3]],\"b\":\"text\"}";

static enum status
make_in(struct index_work *w, bool packed)
{
	const struct index_def def = def_of(2, INDEX_MULTIKEY | INDEX_COVERING);
	const struct index_source source = source_of(str_from_cstr(roomy), STR("d"), packed);
	struct index_pairs pairs;
	enum status status;

	begin();
	status = index_entries_make(&db, &def, &source, w, &pairs);
	if (status == STATUS_OK)
		assert_int_equal(pairs.count, 4);
	return status;
}

static enum status
read_in(struct index_work *w, bool nul)
{
	const struct index_def def = def_of(1, INDEX_COVERING);
	struct kv_pair pair = pair_of(&def, STR("{\"a\":\"x\"}"),
				      nul ? STR("i\0d") : text_of('x', INDEX_ID_BYTES), true);
	struct index_entry entry = { 0 };
	struct str tail = tail_of(&def, pair.key);
	enum status status;

	begin();
	status = index_entry_parse(&def, tail, pair.value, w->arena, &entry);
	if (status == STATUS_OK)
		assert_int_equal(entry.id.len, nul ? 3 : INDEX_ID_BYTES);
	return status;
}

static enum status
range_in(struct index_work *w, bool place)
{
	const struct index_def def = def_of(2, 0);
	struct leaf_value one = value_of("\"x\\u0000y\""), two = value_of("{\"k\":[2,\"z\"]}");
	const void *const equal[] = { &one, &two };
	const struct index_interval interval = { .equal = equal,
						 .equal_count = place ? 2 : 1,
						 .low = place ? NULL : &two };
	struct index_range range = { 0 };
	struct str key = { NULL, 0 };
	enum status status;
	bool known;

	begin();
	status = place ? index_place_make(&db, &def, &interval, STR("d"), w, &key, &known)
		       : index_range_make(&db, &def, &interval, w, &range);
	if (status == STATUS_OK)
		assert_true(place ? key.len > 2 : range.begin.len > 2 && range.end.len > 2);
	return status;
}

static enum status
first_in(struct index_work *w, bool reverse)
{
	const struct index_def def = def_of(1, INDEX_MULTIKEY);
	const struct index_source source = source_of(STR("{\"a\":[1,2]}"), STR("d"), true);
	const struct index_interval all = { 0 };
	struct index_range range;
	bool first = true;
	enum status status;

	assert_int_equal(index_range_make(&db, &def, &all, &work, &range), STATUS_OK);
	begin();
	status = index_entry_is_first(&db, &def, &source, &range, 1, reverse, STR("x"), w, &first);
	if (status == STATUS_OK)
		assert_false(first);
	return status;
}

static enum status
text_in(struct index_work *w, bool raw_order)
{
	AUTO(buf_release) struct buf raw = BUF_INIT(4096);
	enum status status;

	begin();
	status = index_json_component_of_text(&raw, raw_order ? DOC_KEY_RAW : DOC_KEY_COUCH,
					      str_from_cstr(roomy), 4000, w);
	assert_int_equal(raw.len > 0, status == STATUS_OK);
	return status;
}

static enum status
matches_in(struct index_work *w, bool packed)
{
	struct index_def def = def_of(1, 0);
	struct index_source source = source_of(str_from_cstr(roomy), STR("d"), packed);
	bool matches = false;
	enum status status;

	source.rev = STR("1-x");
	def.filter = STR("{\"b\":\"text\",\"_rev\":\"1-x\",\"_id\":{\"$gt\":\"c\"}}");
	begin();
	status = index_json_form.open(&def, true, w->arena, NULL);
	if (status == STATUS_OK)
		status = index_json_matches(&source, &def, w, &matches);
	if (status == STATUS_OK)
		assert_true(matches);
	return status;
}

static enum status (*const calls[])(struct index_work *w, bool other) = {
	make_in, read_in, range_in, first_in, text_in, matches_in,
};

/* Each allocation fails once, and those behind it do not. */
static void
what_has_no_memory_is_not_made(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(calls); i++)
		for (int other = 0; other < 2; other++) {
			bool failed = true;

			for (failing = 1; failed; failing++) {
				struct arena_mark mark = arena_mark(arena);
				struct index_work own = { .arena = arena_new(ROOM_BYTES) };
				enum status status = calls[i](&own, other);

				failed = mem_fail_only(0) >= failing;
				arena_set_apart(false);
				if (status != STATUS_OK)
					assert_true(failed && (status == STATUS_NOMEM ||
							       status == STATUS_LIMIT));
				arena_free(own.arena);
				arena_reset(arena, mark);
			}
		}
	failing = 0;
}

/* Wherever the arena ends, there is all of it or none. */
static void
what_has_no_room_is_not_made(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(calls); i++)
		for (int other = 0; other < 2; other++) {
			struct arena_mark mark = arena_mark(arena);
			size_t bytes = 0, enough = 0;

			for (; bytes < ROOM_BYTES && enough < 4; bytes += ROOM_STEP) {
				struct index_work small = { .arena = arena_new(bytes) };
				enum status status = calls[i](&small, other);

				assert_int_equal(status, arena_is_full(small.arena) ? STATUS_LIMIT
										    : STATUS_OK);
				enough += status == STATUS_OK;
				arena_free(small.arena);
				arena_reset(arena, mark);
			}
			if (enough < 4)
				fail_msg("%zu, %d", i, other);
		}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_entry_has_texts_up_to_their_limit),
		TEST(an_id_is_in_the_key_up_to_its_limit),
		TEST(a_partition_is_cut_behind_its_share),
		TEST(an_entry_with_more_behind_it_is_corrupt),
		TEST(an_entry_has_the_flags_of_its_form_and_of_its_key),
		TEST(a_value_is_drawn_if_it_is_one),
		TEST(a_key_is_drawn_with_as_many_texts_as_columns),
		TEST(of_several_ranges_one_has_the_first_entry),
		TEST(only_where_entries_may_be_several_one_is_not_the_first),
		TEST(an_exclusive_bound_that_is_cut_leaves_nothing_out),
		TEST(a_range_is_a_point_where_all_columns_have_a_value),
		TEST(a_place_is_the_key_of_the_entry),
		TEST(documents_with_the_same_values_are_known),
		TEST(a_path_leads_to_a_value_in_both_forms),
		TEST(a_component_of_a_text_has_bytes_up_to_what_is_asked),
		TEST(what_is_no_value_has_no_component),
		TEST(what_is_no_value_is_told_as_that_however_long_it_is),
		TEST(what_has_no_room_is_not_made),
		TEST(what_has_no_memory_is_not_made),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
