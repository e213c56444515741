/* The check of a store: silent about good ones, and telling of each thing that can be wrong. */
#include <stdio.h>
#include <stdlib.h>

#include "fixture.h"
#include "index/bson/form.h"
#include "index/engine/build.h"
#include "index/json/form.h"
#include "kv/keyspace.h"
#include "kv/tuple.h"
#include "catalog/verify.h"

enum {
	NAMES_BYTES = 1000,
	KEY_BYTES = 2 * KV_LIMIT_KEY_BYTES,
};

/* ---- The store under test ---- */

struct local_call {
	struct fixture *f;
	struct doc doc;
};

static enum status
local_body(struct kv_tx *tx, void *arg)
{
	struct local_call *c = arg;
	uint64_t rev;

	TRY(rev_config_set(tx, c->f->db, STR("security"), STR("{}"), NULL));
	return rev_local_put(tx, c->f->db, STR("checkpoint"), 0, &c->doc, c->f->arena, &rev, NULL);
}

static enum status
other_body(struct kv_tx *tx, void *arg)
{
	(void)arg;
	return rev_db_create(tx, STR("other"), fixture_scheme(), NULL);
}

/* A replicated edit with two attachments, of which the second is empty. */
static void
put_attached(struct fixture *f, const char *id, const char *history, const char *json, char first,
	     size_t length)
{
	static char bytes[2 * REV_ATT_CHUNK_BYTES];
	struct rev_edit edit = fixture_copy(f, id, history, false, json);
	struct rev_att_edit atts[] = {
		{ .source = REV_ATT_DATA,
		  .att = { .name = STR("one.bin"),
			   .type = STR("application/octet-stream"),
			   .length = length,
			   .encoded_length = length,
			   .revpos = 1 },
		  .data = str_of(bytes, length) },
		{ .source = REV_ATT_DATA,
		  .att = { .name = STR("empty"), .type = STR("text/plain"), .revpos = 1 } },
	};
	struct rev_result result;

	memset(atts[0].att.id, first, REV_ATT_ID_BYTES);
	memset(atts[1].att.id, first + 1, REV_ATT_ID_BYTES);
	edit.atts = atts;
	edit.atts_count = 2;
	fixture_write(f, &edit, 1, &result);
	assert_int_equal(result.status, STATUS_OK);
}

/*
 * Documents of every kind: "a" plain, "b" with a conflict, "c" deleted, "d" with a tombstone that
 * has a body, "e" whose id and strings are awkward, "f" with a deleted branch, "g" with
 * attachments.
 */
static int
setup(void **state)
{
	struct local_call local;
	struct fixture *f;
	const char *rev;

	if (fixture_setup(state) != 0)
		return -1;
	f = *state;
	rev = fixture_put(f, "a", NULL, "{\"x\":[1,{\"y\":null}],\"z\":\"text\"}");
	fixture_put(f, "a", rev, "{\"x\":[1,{\"y\":null},2],\"z\":\"text\"}");
	fixture_replicate(f, "b", "2-x r", false, "{\"n\":1}");
	fixture_replicate(f, "b", "2-y r", false, "{\"n\":2}");
	rev = fixture_put(f, "c", NULL, "{\"gone\":true}");
	fixture_delete(f, "c", rev);
	fixture_replicate(f, "d", "3-t s r", true, "{\"why\":\"because\"}");
	fixture_put(f, "e \xc3\xbc", NULL, "{\"\\u0000\":\"\\u0000\",\"\":{},\"l\":[]}");
	fixture_replicate(f, "f", "2-p r", false, "{}");
	fixture_replicate(f, "f", "2-q r", true, "{}");
	put_attached(f, "g", "1-v", "{\"with\":\"attachments\"}", 'A', REV_ATT_CHUNK_BYTES * 3 / 2);
	local.f = f;
	local.doc = fixture_doc(f, "{\"seq\":17,\"by\":[\"me\"]}");
	assert_int_equal(kv_run(f->store, local_body, &local, NULL, NULL), STATUS_OK);
	assert_int_equal(kv_run(f->store, other_body, NULL, NULL, NULL), STATUS_OK);
	return 0;
}

/* ---- What the check says ---- */

struct said {
	char names[NAMES_BYTES];
	uint64_t progress;
	struct catalog_verify_sum sum;
};

static void
found(const struct catalog_finding *finding, void *arg)
{
	struct said *said = arg;
	size_t len = strlen(said->names);

	assert_true(finding->key.len > 0);
	assert_true(strlen(finding->text) > 0);
	snprintf(said->names + len, sizeof(said->names) - len, "%s%s", len ? " " : "",
		 finding->kind);
}

static void
progress(const struct catalog_verify_sum *sum, void *arg)
{
	struct said *said = arg;

	(void)sum;
	said->progress++;
}

static void
verify(struct fixture *f, const char *db, struct said *ret)
{
	struct catalog_verify_options options = { .found = found,
						  .progress = progress,
						  .arg = ret };
	struct err err = { 0 };
	struct kv_tx *tx;

	*ret = (struct said){ 0 };
	assert_int_equal(kv_begin(f->store, KV_TX_READ_ONLY, &tx), STATUS_OK);
	if (db)
		assert_int_equal(catalog_verify_db(tx, CATALOG_SPACE_COUCH, str_from_cstr(db),
						   &options, &ret->sum, &err),
				 STATUS_OK);
	else
		assert_int_equal(catalog_verify_store(tx, &options, &ret->sum, &err), STATUS_OK);
	assert_string_equal(err.text, "");
	kv_tx_free(tx);
}

/* The same check in ranges, so small that what belongs to a document is all that one has. */
static void
verify_in_ranges(struct fixture *f, size_t units, struct said *ret)
{
	struct catalog_verify_options options = {
		.found = found,
		.progress = progress,
		.arg = ret,
		.ranges = true,
		.range_units = units,
	};
	struct err err = { 0 };
	struct kv_tx *tx;

	*ret = (struct said){ 0 };
	assert_int_equal(kv_begin(f->store, KV_TX_READ_ONLY, &tx), STATUS_OK);
	assert_int_equal(catalog_verify_store(tx, &options, &ret->sum, &err), STATUS_OK);
	kv_tx_free(tx);
}

/* What only all documents at one version tell (docs/OPERATING.md). */
static bool
is_of_all(const char *names)
{
	return strcmp(names, "attachment_count") == 0;
}

/*
 * The names of the findings, in the order in which they came. In ranges, where the order is
 * another, there are some where there should be some, and none where there should be none.
 */
static void
assert_says(struct fixture *f, const char *expected)
{
	struct said said, ranges;

	verify(f, NULL, &said);
	assert_string_equal(said.names, expected);
	for (size_t units = 1; units <= 1000; units *= 10) {
		verify_in_ranges(f, units, &ranges);
		if (!*expected)
			assert_string_equal(ranges.names, "");
		else if (!is_of_all(expected))
			assert_true(ranges.names[0] != '\0');
		assert_int_equal(ranges.sum.documents, said.sum.documents);
		assert_int_equal(ranges.sum.unchecked, 0);
	}
}

/* ---- Doing damage ---- */

struct damage {
	struct str key;
	struct str value; /* ptr NULL: to clear */
};

static enum status
damage_body(struct kv_tx *tx, void *arg)
{
	const struct damage *d = arg;

	return d->value.ptr ? kv_set(tx, d->key, d->value) : kv_clear(tx, d->key);
}

static void
set(struct fixture *f, struct str key, struct str value)
{
	struct damage d = { key, value };

	assert_int_equal(kv_run(f->store, damage_body, &d, NULL, NULL), STATUS_OK);
}

static void
clear(struct fixture *f, struct str key)
{
	set(f, key, (struct str){ NULL, 0 });
}

/* (P, space, ...) with a string, or nothing behind it. */
static struct str
key_of(struct fixture *f, enum rev_subspace space, const char *name)
{
	struct buf b = BUF_INIT(KEY_BYTES);
	struct str key;

	buf_append_str(&b, f->db->prefix);
	tuple_put_u64(&b, space);
	if (name)
		tuple_put_str(&b, str_from_cstr(name));
	assert_int_equal(buf_status(&b), STATUS_OK);
	key = arena_dup(f->arena, buf_str(&b));
	assert_non_null(key.ptr);
	buf_release(&b);
	return key;
}

/* The `at`-th pair of the keys that begin with `prefix`, -1 the last one. */
static struct kv_pair
pair_at(struct fixture *f, struct str prefix, int at)
{
	struct kv_range_options options = { .reverse = at < 0 };
	struct buf end = BUF_INIT(KEY_BYTES);
	struct kv_pair pair;
	struct kv_range range;
	struct kv_future *future;
	struct kv_tx *tx;
	size_t i = (size_t)(at < 0 ? -at - 1 : at);

	assert_int_equal(tuple_prefix_end(prefix, &end), STATUS_OK);
	assert_int_equal(kv_begin(f->store, KV_TX_READ_ONLY, &tx), STATUS_OK);
	future = kv_get_range(tx, prefix, buf_str(&end), &options);
	assert_int_equal(kv_future_wait(future), STATUS_OK);
	range = kv_future_range(future);
	assert_true(i < range.count);
	pair.key = arena_dup(f->arena, range.pairs[i].key);
	pair.value = arena_dup(f->arena, range.pairs[i].value);
	assert_non_null(pair.key.ptr);
	assert_non_null(pair.value.ptr);
	kv_tx_free(tx);
	buf_release(&end);
	return pair;
}

static struct kv_pair
pair_in(struct fixture *f, enum rev_subspace space, const char *name, int at)
{
	return pair_at(f, key_of(f, space, name), at);
}

static struct str
joined(struct fixture *f, struct str a, struct str b)
{
	struct str s = arena_printf(f->arena, "%*s", (int)(a.len + b.len), "");

	assert_non_null(s.ptr);
	memcpy((char *)(uintptr_t)s.ptr, a.ptr, a.len);
	if (b.len)
		memcpy((char *)(uintptr_t)s.ptr + a.len, b.ptr, b.len);
	return s;
}

static struct str
tuple_of(struct fixture *f, uint64_t a, uint64_t b)
{
	struct buf buf = BUF_INIT(KEY_BYTES);
	struct str s;

	tuple_put_u64(&buf, a);
	tuple_put_u64(&buf, b);
	s = arena_dup(f->arena, buf_str(&buf));
	assert_non_null(s.ptr);
	buf_release(&buf);
	return s;
}

/* A copy whose byte `at` (from the end for negative ones) is another. */
static struct str
changed(struct fixture *f, struct str s, int at, char to)
{
	struct str copy = arena_dup(f->arena, s);

	assert_non_null(copy.ptr);
	((char *)(uintptr_t)copy.ptr)[at < 0 ? (int)s.len + at : at] = to;
	return copy;
}

/* ---- Good stores ---- */

/* Chunks are counted from 0, so an attachment of so many whole ones has none of that number. */
static void
whole_chunks_are_all_of_an_attachment(void **state)
{
	struct fixture *f = *state;

	put_attached(f, "h", "1-a", "{}", 'C', REV_ATT_CHUNK_BYTES);
	put_attached(f, "i", "1-a", "{}", 'E', 2 * REV_ATT_CHUNK_BYTES);
	put_attached(f, "j", "1-a", "{}", 'G', REV_ATT_CHUNK_BYTES + 1);
	assert_says(f, "");
}

static void
good_store_has_no_findings_and_is_summed_up(void **state)
{
	struct fixture *f = *state;
	struct said said;

	verify(f, NULL, &said);
	assert_string_equal(said.names, "");
	assert_int_equal(said.sum.databases, 2);
	assert_int_equal(said.sum.documents, 7);
	/* a: 4, b: 1 and 1, d: 1, e: 3, g: 1, the local one: 2. */
	assert_int_equal(said.sum.leaves, 13);
	assert_int_equal(said.sum.packed, 0);
	assert_int_equal(said.sum.findings, 0);
	assert_true(said.sum.keys > said.sum.leaves);
	assert_true(said.sum.bytes > said.sum.keys);
}

static void
one_database_can_be_checked_alone(void **state)
{
	struct fixture *f = *state;
	struct catalog_verify_options options = { .found = found };
	struct catalog_verify_sum sum;
	struct err err = { 0 };
	struct said said;
	struct kv_tx *tx;

	set(f, STR("nonsense"), STR("x"));
	verify(f, "db", &said);
	assert_string_equal(said.names, "");
	assert_int_equal(said.sum.databases, 1);
	assert_int_equal(said.sum.documents, 7);
	assert_int_equal(kv_begin(f->store, KV_TX_READ_ONLY, &tx), STATUS_OK);
	assert_int_equal(
		catalog_verify_db(tx, CATALOG_SPACE_COUCH, STR("none"), &options, &sum, &err),
		STATUS_NOT_FOUND);
	kv_tx_free(tx);
}

static void
empty_database_is_good(void **state)
{
	struct fixture *f = *state;

	assert_says(f, "");
}

static void
large_database_is_checked_in_bounded_memory(void **state)
{
	struct fixture *f = *state;
	struct said said;
	char *text = malloc(500001);

	assert_non_null(text);
	for (int i = 0; i < 300; i++) {
		char id[16];

		snprintf(id, sizeof(id), "doc%d", i);
		fixture_put(f, id, NULL, "{\"a\":1,\"b\":{\"c\":[1,2,3]}}");
	}
	/* One long string, split, between quotes. */
	memset(text, 'x', 500000);
	memcpy(text, "{\"s\":\"", 6);
	memcpy(text + 499998, "\"}", 3);
	fixture_put(f, "long", NULL, text);
	free(text);
	verify(f, NULL, &said);
	assert_string_equal(said.names, "");
	assert_int_equal(said.sum.documents, 308);
	assert_true(said.progress > 0);
}

/* ---- Branches ---- */

static void
winner_without_a_sequence_is_found(void **state)
{
	struct fixture *f = *state;
	struct kv_pair loser = pair_in(f, REV_SUBSPACE_REVISIONS, "b", 0);

	set(f, pair_in(f, REV_SUBSPACE_REVISIONS, "b", -1).key, loser.value);
	assert_says(f, "winner change_stray");
}

static void
loser_with_a_sequence_is_found(void **state)
{
	struct fixture *f = *state;
	struct kv_pair winner = pair_in(f, REV_SUBSPACE_REVISIONS, "b", -1);

	set(f, pair_in(f, REV_SUBSPACE_REVISIONS, "b", 0).key, winner.value);
	assert_says(f, "winner");
}

static void
lost_branch_is_found(void **state)
{
	struct fixture *f = *state;

	clear(f, pair_in(f, REV_SUBSPACE_REVISIONS, "b", 0).key);
	assert_says(f, "body_stray branch_count");
}

static void
lost_document_is_found_by_everything_that_is_left_of_it(void **state)
{
	struct fixture *f = *state;

	clear(f, pair_in(f, REV_SUBSPACE_REVISIONS, "a", 0).key);
	assert_says(f, "body_stray entry_stray change_stray counter");
}

static void
branch_that_cannot_be_read_is_found(void **state)
{
	struct fixture *f = *state;
	struct kv_pair winner = pair_in(f, REV_SUBSPACE_REVISIONS, "a", 0);

	set(f, winner.key, STR("\xff"));
	assert_says(f, "unreadable_value change_stray");
	set(f, winner.key, winner.value);
	set(f, joined(f, winner.key, STR("\x15\x01")), STR(""));
	assert_says(f, "unknown_key");
}

static void
more_ancestors_than_the_position_allows_are_found(void **state)
{
	struct fixture *f = *state;
	struct kv_pair old = pair_in(f, REV_SUBSPACE_REVISIONS, "d", 0);
	struct kv_pair loser = pair_in(f, REV_SUBSPACE_REVISIONS, "b", 0);
	struct tuple_reader r = tuple_reader(old.value);
	struct tuple_elem e;

	/* The list of two ancestors of "d" at a branch of position 2. */
	for (int i = 0; i < 4; i++)
		assert_int_equal(tuple_next(&r, &e), STATUS_OK);
	set(f, loser.key,
	    joined(f, str_of(loser.value.ptr, 4), e.encoding)); /* format, null, null, list */
	assert_says(f, "unreadable_value");
}

/* ---- CHANGES and ALL_DOCS ---- */

static void
lost_change_is_found(void **state)
{
	struct fixture *f = *state;

	clear(f, pair_in(f, REV_SUBSPACE_CHANGES, NULL, 0).key);
	assert_says(f, "change tally");
}

static void
change_that_does_not_tell_of_the_winner_is_found(void **state)
{
	struct fixture *f = *state;
	struct kv_pair change = pair_in(f, REV_SUBSPACE_CHANGES, NULL, 0);

	set(f, change.key, changed(f, change.value, -1, 0x26)); /* deleted */
	assert_says(f, "change");
	set(f, change.key, STR("\x15\x01"));
	assert_says(f, "change unreadable_value");
}

static void
change_under_a_sequence_that_nobody_has_is_found(void **state)
{
	struct fixture *f = *state;
	struct kv_pair change = pair_in(f, REV_SUBSPACE_CHANGES, NULL, 0);

	set(f, changed(f, change.key, -1, 0x7f), change.value);
	assert_says(f, "change_stray tally");
	set(f, key_of(f, REV_SUBSPACE_CHANGES, "text"), change.value);
	assert_says(f, "unknown_key change_stray tally");
}

static void
sequence_from_the_future_is_found(void **state)
{
	struct fixture *f = *state;
	struct kv_pair change = pair_in(f, REV_SUBSPACE_CHANGES, NULL, -1);
	size_t stamp = change.key.len - KV_VERSIONSTAMP_BYTES;

	/* Nobody's, and not the newest change that the watched key tells of. */
	set(f, changed(f, change.key, (int)stamp, 0x70), change.value);
	assert_says(f, "sequence change_stray counter tally");
	clear(f, changed(f, change.key, (int)stamp, 0x70));
	/* Incarnation 0 is 14; 1 is 15 01. */
	set(f,
	    joined(f, str_of(change.key.ptr, stamp - 2),
		   joined(f, STR("\x15\x01"), str_skip(change.key, stamp - 1))),
	    change.value);
	assert_says(f, "sequence change_stray tally");
}

static void
lost_wrong_and_stray_entries_of_all_docs_are_found(void **state)
{
	struct fixture *f = *state;
	struct kv_pair a = pair_in(f, REV_SUBSPACE_ALL_DOCS, "a", 0);
	struct kv_pair b = pair_in(f, REV_SUBSPACE_ALL_DOCS, "b", 0);

	clear(f, a.key);
	assert_says(f, "entry tally");
	set(f, a.key, b.value);
	assert_says(f, "entry");
	set(f, a.key, a.value);
	set(f, key_of(f, REV_SUBSPACE_ALL_DOCS, "c"), a.value);
	assert_says(f, "entry_stray tally");
	clear(f, key_of(f, REV_SUBSPACE_ALL_DOCS, "c"));
	set(f, key_of(f, REV_SUBSPACE_ALL_DOCS, "aa"), a.value);
	set(f, key_of(f, REV_SUBSPACE_ALL_DOCS, "z"), a.value);
	set(f, joined(f, a.key, STR("\x15\x01")), a.value);
	assert_says(f, "unknown_key entry_stray entry_stray tally");
}

/* ---- Counters and settings ---- */

/* (P, TALLIES, list, lo, hi) */
static struct str
range_of(struct fixture *f, enum rev_subspace list, struct str lo, struct str hi)
{
	struct buf b = BUF_INIT(KEY_BYTES);
	struct str key;

	buf_append_str(&b, key_of(f, REV_SUBSPACE_TALLIES, NULL));
	tuple_put_u64(&b, list);
	tuple_put_bytes(&b, lo);
	tuple_put_bytes(&b, hi);
	assert_int_equal(buf_status(&b), STATUS_OK);
	key = arena_dup(f->arena, buf_str(&b));
	assert_non_null(key.ptr);
	buf_release(&b);
	return key;
}

/* Ids begin with a 02 in keys: "d" and "e" are where the cuts are. There are a, b, e, f, g. */
static void
wrong_counters_of_ranges_are_found(void **state)
{
	struct fixture *f = *state;
	struct str all = range_of(f, REV_SUBSPACE_ALL_DOCS, STR(""), STR("\xff"));
	struct str left = range_of(f, REV_SUBSPACE_ALL_DOCS, STR(""), STR("\2d"));
	struct str middle = range_of(f, REV_SUBSPACE_ALL_DOCS, STR("\2d"), STR("\2f"));
	struct str right = range_of(f, REV_SUBSPACE_ALL_DOCS, STR("\2f"), STR("\xff"));

	clear(f, all);
	set(f, left, STR("\2\0\0\0\0\0\0\0"));
	set(f, middle, STR("\1\0\0\0\0\0\0\0"));
	set(f, right, STR("\2\0\0\0\0\0\0\0"));
	assert_says(f, "");
	set(f, middle, STR("\2\0\0\0\0\0\0\0"));
	assert_says(f, "tally");
	set(f, left, STR("\1\0\0\0\0\0\0\0"));
	assert_says(f, "tally tally");
	/* One that reaches over both says that what they say is not about each of them. */
	set(f, range_of(f, REV_SUBSPACE_ALL_DOCS, STR("\2c"), STR("\2dd")),
	    STR("\0\0\0\0\0\0\0\0"));
	assert_says(f, "");
	/* Between two ranges there should be nothing. */
	clear(f, range_of(f, REV_SUBSPACE_ALL_DOCS, STR("\2c"), STR("\2dd")));
	set(f, left, STR("\2\0\0\0\0\0\0\0"));
	clear(f, middle);
	assert_says(f, "tally");
}

static void
counters_of_no_range_are_found(void **state)
{
	struct fixture *f = *state;

	set(f, range_of(f, REV_SUBSPACE_STATS, STR(""), STR("\xff")), STR("\0\0\0\0\0\0\0\0"));
	assert_says(f, "unknown_key");
	set(f, range_of(f, REV_SUBSPACE_CHANGES, STR("\xff"), STR("")), STR("\0\0\0\0\0\0\0\0"));
	assert_says(f, "tally unknown_key");
}

static void
wrong_counters_are_found(void **state)
{
	struct fixture *f = *state;

	set(f, key_of(f, REV_SUBSPACE_STATS, "doc_count"), STR("\x63\0\0\0\0\0\0\0"));
	assert_says(f, "counter");
	set(f, key_of(f, REV_SUBSPACE_STATS, "doc_count"), STR("\x04\0"));
	clear(f, key_of(f, REV_SUBSPACE_STATS, "doc_del_count"));
	assert_says(f, "unreadable_value counter");
}

static void
wrong_watched_key_and_unknown_counters_are_found(void **state)
{
	struct fixture *f = *state;

	clear(f, key_of(f, REV_SUBSPACE_STATS, "changed"));
	assert_says(f, "counter");
	set(f, key_of(f, REV_SUBSPACE_STATS, "changed"), STR("too short"));
	set(f, key_of(f, REV_SUBSPACE_STATS, "nonsense"), STR(""));
	assert_says(f, "counter unknown_key");
}

static void
settings_that_are_no_text_are_found(void **state)
{
	struct fixture *f = *state;

	set(f, key_of(f, REV_SUBSPACE_CONFIG, "security"), STR("\xff\xfe"));
	set(f, joined(f, key_of(f, REV_SUBSPACE_CONFIG, NULL), STR("\x15\x01")), STR("x"));
	assert_says(f, "unreadable_value unknown_key");
}

/* ---- Indexes ---- */

static void
set_definition(struct fixture *f, const struct index_def *def)
{
	struct buf key = BUF_INIT(KEY_BYTES), value = BUF_INIT(INDEX_RECORD_BYTES);

	index_key_def(&key, f->db, def->number);
	(void)index_def_put(&value, def);
	assert_int_equal(buf_status(&value), STATUS_OK);
	set(f, buf_str(&key), buf_str(&value));
	buf_release(&key);
	buf_release(&value);
}

static void
definitions_that_nothing_can_be_made_of_are_found(void **state)
{
	const struct str path = STR("a");
	const struct index_column column = { &path, 1, false };
	struct index_def def = {
		.form = &index_json_form,
		.number = 1,
		.state = INDEX_READY,
		.order = DOC_KEY_COUCH,
		.name = STR("name"),
		.owner = STR("owner"),
		.columns = &column,
		.column_count = 1,
		.filter = STR("{\"a\":{\"$gt\":1}}"),
		.collator = index_collator(false),
		.failure = STR(""),
		.spec = STR("{}"),
	};
	struct fixture *f = *state;
	struct said ranges;

	set_definition(f, &def);
	assert_says(f, "");
	def.filter = STR("{\"a\":{\"$unheard\":1}}");
	set_definition(f, &def);
	assert_says(f, "unreadable_value");
	def.filter = (struct str){ NULL, 0 };
	def.form = &index_bson_form;
	def.flags = INDEX_BSON;
	set_definition(f, &def);
	assert_says(f, "unreadable_value");
	verify_in_ranges(f, 1, &ranges);
	assert_string_equal(ranges.names, "unreadable_value");
}

/* A record of a stretch lies where one belongs, and nothing else does. */
static void
parts_of_a_build_that_are_none_are_found(void **state)
{
	struct buf key = BUF_INIT(KEY_BYTES), value = BUF_INIT(INDEX_RECORD_BYTES);
	struct fixture *f = *state;
	struct str at;

	index_build_record_put(&value, &(struct index_build_record){ .total = 7 });
	index_key_stretch(&key, f->db, 1, 0);
	at = joined(f, buf_str(&key), STR(""));
	set(f, at, buf_str(&value));
	assert_says(f, "");
	set(f, at, STR("\x15\x01"));
	assert_says(f, "unreadable_value");
	clear(f, at);
	set(f, joined(f, at, STR("\x15\x01")), buf_str(&value));
	assert_says(f, "unknown_key");
	clear(f, joined(f, at, STR("\x15\x01")));
	/* Without the number of the stretch, which is a byte. */
	set(f, str_of(at.ptr, at.len - 1), buf_str(&value));
	assert_says(f, "unknown_key");
	clear(f, str_of(at.ptr, at.len - 1));
	/* Revisions tell what a mark would. */
	index_key_mark(&key, f->db, 1, STR("a"));
	set(f, joined(f, buf_str(&key), STR("")), STR(""));
	assert_says(f, "unknown_key");
	buf_release(&key);
	buf_release(&value);
}

/* ---- Bodies ---- */

static void
lost_body_is_found(void **state)
{
	struct fixture *f = *state;

	/* The only pair of an empty document's body. */
	clear(f, pair_in(f, REV_SUBSPACE_DOCUMENTS, "f", 0).key);
	assert_says(f, "body");
}

static void
lost_root_is_found(void **state)
{
	struct fixture *f = *state;

	clear(f, pair_in(f, REV_SUBSPACE_DOCUMENTS, "a", 0).key);
	assert_says(f, "body_root");
	set(f, pair_in(f, REV_SUBSPACE_DOCUMENTS, "b", 0).key, STR("x"));
	assert_says(f, "body_root unreadable_value");
}

static void
bodies_of_no_leaf_are_found_once_each(void **state)
{
	struct fixture *f = *state;
	struct kv_pair root = pair_in(f, REV_SUBSPACE_DOCUMENTS, "a", 0);
	struct kv_pair leaf = pair_in(f, REV_SUBSPACE_DOCUMENTS, "a", 1);
	size_t hash = root.key.len - 3;

	/* The hash's last bytes are others. */
	set(f, changed(f, root.key, (int)hash, 0x01), root.value);
	set(f, changed(f, leaf.key, (int)hash, 0x01), leaf.value);
	set(f, key_of(f, REV_SUBSPACE_DOCUMENTS, "zzz"), STR("\x15\x01"));
	assert_says(f, "body_stray unknown_key");
}

static void
leaves_that_make_no_document_are_found(void **state)
{
	struct fixture *f = *state;
	struct kv_pair first = pair_in(f, REV_SUBSPACE_DOCUMENTS, "a", 1);
	struct kv_pair last = pair_in(f, REV_SUBSPACE_DOCUMENTS, "a", -1);

	clear(f, first.key); /* an array with a gap */
	assert_says(f, "body_corrupt");
	set(f, first.key, first.value);
	set(f, last.key, STR("\x02\xff\xfe"));
	assert_says(f, "body_corrupt");
	set(f, last.key, joined(f, last.value, last.value)); /* two elements */
	assert_says(f, "body_corrupt");
	set(f, last.key, last.value);
	set(f, joined(f, last.key, STR("\x02x\0")), last.value); /* a leaf below a leaf */
	assert_says(f, "body_corrupt");
}

static void
damaged_local_documents_are_found(void **state)
{
	struct fixture *f = *state;
	struct kv_pair root = pair_in(f, REV_SUBSPACE_LOCAL, "checkpoint", 0);
	struct kv_pair leaf = pair_in(f, REV_SUBSPACE_LOCAL, "checkpoint", 1);

	set(f, leaf.key, STR("nothing"));
	assert_says(f, "body_corrupt");
	set(f, leaf.key, leaf.value);
	set(f, root.key, STR("\x15\x01"));
	assert_says(f, "unreadable_value");
	clear(f, root.key);
	assert_says(f, "body_root");
	set(f, joined(f, key_of(f, REV_SUBSPACE_LOCAL, NULL), STR("\x15\x01")), STR("x"));
	assert_says(f, "body_root unknown_key");
}

/* ---- Newer formats ---- */

/* The pair's value with another format number, which is its first element. */
static void
set_format(struct fixture *f, struct kv_pair pair, const char *format)
{
	struct tuple_reader r = tuple_reader(pair.value);
	uint64_t ignored;

	assert_int_equal(tuple_next_u64(&r, &ignored), STATUS_OK);
	set(f, pair.key, joined(f, str_from_cstr(format), r.rest));
}

static void
records_of_a_newer_frond_are_told_as_that(void **state)
{
	struct fixture *f = *state;
	struct kv_pair entry = pair_in(f, REV_SUBSPACE_ALL_DOCS, NULL, 0);
	struct kv_pair branch = pair_in(f, REV_SUBSPACE_REVISIONS, NULL, 0);
	struct kv_pair root = pair_in(f, REV_SUBSPACE_LOCAL, "checkpoint", 0);
	struct tuple_reader k = tuple_reader(str_skip(entry.key, f->db->prefix.len));
	struct tuple_elem id;
	uint64_t space;
	struct said said;
	struct kv_tx *tx;
	struct rev_id rev;

	assert_int_equal(tuple_next_u64(&k, &space), STATUS_OK);
	assert_int_equal(tuple_next(&k, &id), STATUS_OK);
	set_format(f, entry, "\x15\x09");
	assert_says(f, "newer_format");
	tx = fixture_begin(f);
	assert_int_equal(rev_winner_read(tx, f->db, id.raw, f->arena, &rev), STATUS_NEWER);
	kv_tx_free(tx);
	set(f, entry.key, entry.value);
	set_format(f, root, "\x15\x09");
	assert_says(f, "newer_format");
	set(f, root.key, root.value);
	set_format(f, branch, "\x15\x09");
	verify(f, NULL, &said);
	assert_non_null(strstr(said.names, "newer_format"));
	assert_null(strstr(said.names, "unreadable_value"));
	set(f, branch.key, branch.value);
	assert_says(f, "");
}

/* ---- Attachments ---- */

/* (P, ATTACHMENTS, space, id…), and the number of a chunk for data. */
static struct str
att_key(struct fixture *f, const char *space, char id, int chunk)
{
	uint8_t bytes[REV_ATT_ID_BYTES];
	struct buf b = BUF_INIT(KEY_BYTES);
	struct str key;

	memset(bytes, id, sizeof(bytes));
	buf_append_str(&b, key_of(f, REV_SUBSPACE_ATTACHMENTS, space));
	tuple_put_uuid(&b, bytes);
	if (chunk >= 0)
		tuple_put_u64(&b, (uint64_t)chunk);
	key = arena_dup(f->arena, buf_str(&b));
	assert_non_null(key.ptr);
	buf_release(&b);
	return key;
}

static void
attachment_without_all_its_data_is_found(void **state)
{
	struct fixture *f = *state;
	struct kv_pair whole = pair_at(f, att_key(f, "data", 'A', 0), 0);
	struct kv_pair half = pair_at(f, att_key(f, "data", 'A', 1), 0);

	assert_int_equal(whole.value.len, REV_ATT_CHUNK_BYTES);
	clear(f, half.key);
	assert_says(f, "attachment");
	set(f, half.key, str_of(half.value.ptr, 100));
	assert_says(f, "attachment");
	set(f, half.key, half.value);
	clear(f, whole.key);
	assert_says(f, "attachment");
	set(f, whole.key, str_of(whole.value.ptr, 100));
	assert_says(f, "attachment");
	set(f, whole.key, whole.value);
	set(f, att_key(f, "data", 'A', 2), STR("more"));
	assert_says(f, "attachment attachment");
	clear(f, att_key(f, "data", 'A', 2));
	set(f, att_key(f, "data", 'B', 0), STR("not empty"));
	assert_says(f, "attachment");
}

static void
wrong_counter_of_an_attachment_is_found(void **state)
{
	struct fixture *f = *state;
	struct kv_pair refs = pair_at(f, att_key(f, "refs", 'A', -1), 0);

	set(f, refs.key, STR("\x02\0\0\0\0\0\0\0"));
	assert_says(f, "attachment_count");
	set(f, refs.key, STR("\0\0\0\0\0\0\0\0"));
	assert_says(f, "unreadable_value");
	/* Less than none. */
	set(f, refs.key, STR("\1\0\0\0\0\0\0\x80"));
	assert_says(f, "unreadable_value");
	clear(f, refs.key);
	assert_says(f, "attachment_stray attachment_count");
	set(f, att_key(f, "refs", 'Z', -1), refs.value);
	assert_says(f, "attachment_stray attachment_count attachment_count");
}

static void
data_of_nobody_is_found_unless_it_is_being_uploaded(void **state)
{
	struct fixture *f = *state;
	struct buf b = BUF_INIT(KEY_BYTES);
	uint8_t id[REV_ATT_ID_BYTES];
	struct str upload;

	memset(id, 'Z', sizeof(id));
	tuple_put_u64(&b, KV_ROOT);
	tuple_put_u64(&b, KV_ROOT_UPLOADS);
	tuple_put_u64(&b, f->db->number);
	tuple_put_uuid(&b, id);
	upload = arena_dup(f->arena, buf_str(&b));
	buf_release(&b);

	set(f, att_key(f, "data", 'Z', 0), STR("chunk"));
	assert_says(f, "attachment_stray");
	set(f, upload, STR("\x15\x01\x15\x01\x15\x01"));
	assert_says(f, "");
	set(f, upload, STR("\x15\x01\x15\x01"));
	set(f, tuple_of(f, KV_ROOT, KV_ROOT_UPLOADS), STR(""));
	assert_says(f, "unknown_key unreadable_value");
}

static void
lost_and_unreadable_pointers_are_found(void **state)
{
	struct fixture *f = *state;
	/* The root, both pointers by name, the leaf. */
	struct kv_pair empty = pair_in(f, REV_SUBSPACE_DOCUMENTS, "g", 1);
	struct kv_pair one = pair_in(f, REV_SUBSPACE_DOCUMENTS, "g", 2);

	clear(f, empty.key);
	assert_says(f, "attachment_count");
	clear(f, one.key);
	assert_says(f, "attachment attachment_count attachment_count");
	set(f, empty.key, STR("x"));
	set(f, one.key, one.value);
	assert_says(f, "unreadable_value attachment_count");
	set(f, joined(f, key_of(f, REV_SUBSPACE_ATTACHMENTS, NULL), STR("\x15\x01")), STR("x"));
	assert_says(f, "unreadable_value unknown_key attachment_count");
}

static void
branch_that_does_not_know_of_its_attachments_is_found(void **state)
{
	struct fixture *f = *state;
	struct kv_pair g = pair_in(f, REV_SUBSPACE_REVISIONS, "g", 0);
	struct kv_pair a = pair_in(f, REV_SUBSPACE_REVISIONS, "a", 0);

	set(f, g.key, str_of(g.value.ptr, g.value.len - 1));
	assert_says(f, "attachment");
	set(f, g.key, g.value);
	set(f, a.key, joined(f, a.value, STR("\x27")));
	assert_says(f, "attachment");
}

/* ---- Keys that belong nowhere ---- */

static void
keys_outside_of_subspaces_are_found(void **state)
{
	struct fixture *f = *state;

	set(f, f->db->prefix, STR(""));
	set(f, joined(f, f->db->prefix, STR("\x15\x4d")), STR("seventy-seven"));
	set(f, joined(f, f->db->prefix, STR("\x02text\0")), STR(""));
	set(f, joined(f, f->db->prefix, STR("\xfe")), STR(""));
	assert_says(f, "unknown_key unknown_key unknown_key unknown_key");
}

static void
keys_of_no_database_are_found_once_a_number(void **state)
{
	struct fixture *f = *state;

	set(f, tuple_of(f, 70, 1), STR("x"));
	set(f, tuple_of(f, 70, 2), STR("x"));
	set(f, tuple_of(f, 71, 2), STR("x"));
	set(f, STR("\x02text\0"), STR("x"));
	assert_says(f, "unknown_key no_database no_database");
}

static void
keys_of_a_deleted_database_are_expected_while_it_is_cleared(void **state)
{
	struct fixture *f = *state;
	struct str dropped = tuple_of(f, KV_ROOT, KV_ROOT_DROPPED);

	set(f, tuple_of(f, 70, 1), STR("x"));
	set(f, joined(f, dropped, STR("\x15\x46")), STR(""));
	assert_says(f, "");
	set(f, joined(f, dropped, STR("\x15\x46")), STR("x"));
	set(f, dropped, STR(""));
	assert_says(f, "unknown_key unreadable_value");
}

static void
database_that_would_be_cleared_is_found(void **state)
{
	struct fixture *f = *state;

	set(f, joined(f, tuple_of(f, KV_ROOT, KV_ROOT_DROPPED), f->db->prefix), STR(""));
	assert_says(f, "database");
}

static void
keys_that_the_store_does_not_know_are_found(void **state)
{
	struct fixture *f = *state;

	set(f, tuple_of(f, KV_ROOT, 99), STR("x"));
	set(f, joined(f, tuple_of(f, KV_ROOT, KV_ROOT_TXIDS), STR("\x01id\0")), STR("x"));
	set(f, joined(f, tuple_of(f, KV_ROOT, KV_ROOT_TXIDS), STR("\x15\x01")), STR("x"));
	assert_says(f, "unknown_key unreadable_value unknown_key");
}

/* ---- Databases ---- */

static struct str
description_key(struct fixture *f, const char *name)
{
	struct buf b = BUF_INIT(KEY_BYTES);
	struct str key;

	tuple_put_u64(&b, KV_ROOT);
	tuple_put_u64(&b, KV_ROOT_DATABASES);
	tuple_put_str(&b, str_from_cstr(name));
	key = arena_dup(f->arena, buf_str(&b));
	assert_non_null(key.ptr);
	buf_release(&b);
	return key;
}

static void
two_databases_of_one_number_are_found(void **state)
{
	struct fixture *f = *state;
	struct kv_pair db = pair_at(f, description_key(f, "db"), 0);

	set(f, description_key(f, "again"), db.value);
	assert_says(f, "database");
	clear(f, description_key(f, "again"));
	set(f, description_key(f, "Wrong Name"), pair_at(f, description_key(f, "other"), 0).value);
	clear(f, description_key(f, "other"));
	assert_says(f, "database");
}

static void
description_that_cannot_be_read_is_found(void **state)
{
	struct fixture *f = *state;

	set(f, description_key(f, "db"), STR("?"));
	assert_says(f, "unreadable_value no_database");
}

static void
number_that_would_be_given_again_is_found(void **state)
{
	struct fixture *f = *state;
	struct str next = tuple_of(f, KV_ROOT, KV_ROOT_NEXT_PREFIX);
	struct kv_pair pair = pair_at(f, next, 0);

	set(f, next, STR("\x15\x02"));
	assert_says(f, "database");
	clear(f, next);
	assert_says(f, "database");
	set(f, next, STR("x"));
	assert_says(f, "unreadable_value database");
	set(f, next, pair.value);
	assert_says(f, "");
}

/* ---- Incarnations ---- */

static void
raised_incarnation_puts_new_changes_above_all_others(void **state)
{
	struct fixture *f = *state;
	struct rev_db_info before, after;
	struct rev_change_page page;
	struct rev_change_range range = { .limit = 100 };
	uint64_t databases = 0;
	struct kv_tx *tx;

	assert_int_equal(kv_begin(f->store, KV_TX_READ_ONLY, &tx), STATUS_OK);
	assert_int_equal(rev_db_info(tx, f->db, &before), STATUS_OK);
	kv_tx_free(tx);
	assert_int_equal(catalog_incarnations_raise(f->store, &databases, NULL), STATUS_OK);
	assert_int_equal(databases, 2);
	fixture_reopen(f);
	assert_int_equal(f->db->incarnation, 1);
	assert_says(f, "");
	fixture_put(f, "new", NULL, "{}");
	fixture_replicate(f, "b", "2-z r", false, "{}");
	assert_says(f, "");

	assert_int_equal(kv_begin(f->store, KV_TX_READ_ONLY, &tx), STATUS_OK);
	assert_int_equal(rev_db_info(tx, f->db, &after), STATUS_OK);
	assert_int_equal(after.update_seq.bytes[0], 1);
	/* A reader who has seen things that the store has lost since: version 2^63. */
	range.since = before.update_seq;
	range.since.bytes[1] = 0x80;
	memset(&range.until, 0xff, sizeof(range.until));
	assert_int_equal(rev_changes_page(tx, f->db, &range, f->arena, &page), STATUS_OK);
	assert_int_equal(page.count, 2);
	assert_true(str_eq(page.changes[0].id, STR("new")));
	assert_true(str_eq(page.changes[1].id, STR("b")));
	kv_tx_free(tx);
}

static void
incarnation_stays_at_its_end(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 258; i++)
		assert_int_equal(catalog_incarnations_raise(f->store, NULL, NULL), STATUS_OK);
	fixture_reopen(f);
	assert_int_equal(f->db->incarnation, 255);
	fixture_put(f, "new", NULL, "{}");
	assert_says(f, "");
}

#define VERIFY_TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		VERIFY_TEST(good_store_has_no_findings_and_is_summed_up),
		VERIFY_TEST(whole_chunks_are_all_of_an_attachment),
		VERIFY_TEST(one_database_can_be_checked_alone),
		cmocka_unit_test_setup_teardown(empty_database_is_good, fixture_setup,
						fixture_teardown),
		VERIFY_TEST(large_database_is_checked_in_bounded_memory),
		VERIFY_TEST(winner_without_a_sequence_is_found),
		VERIFY_TEST(loser_with_a_sequence_is_found),
		VERIFY_TEST(lost_branch_is_found),
		VERIFY_TEST(lost_document_is_found_by_everything_that_is_left_of_it),
		VERIFY_TEST(branch_that_cannot_be_read_is_found),
		VERIFY_TEST(more_ancestors_than_the_position_allows_are_found),
		VERIFY_TEST(lost_change_is_found),
		VERIFY_TEST(change_that_does_not_tell_of_the_winner_is_found),
		VERIFY_TEST(change_under_a_sequence_that_nobody_has_is_found),
		VERIFY_TEST(sequence_from_the_future_is_found),
		VERIFY_TEST(lost_wrong_and_stray_entries_of_all_docs_are_found),
		VERIFY_TEST(wrong_counters_are_found),
		VERIFY_TEST(wrong_counters_of_ranges_are_found),
		VERIFY_TEST(counters_of_no_range_are_found),
		VERIFY_TEST(wrong_watched_key_and_unknown_counters_are_found),
		VERIFY_TEST(settings_that_are_no_text_are_found),
		VERIFY_TEST(definitions_that_nothing_can_be_made_of_are_found),
		VERIFY_TEST(parts_of_a_build_that_are_none_are_found),
		VERIFY_TEST(lost_body_is_found),
		VERIFY_TEST(lost_root_is_found),
		VERIFY_TEST(bodies_of_no_leaf_are_found_once_each),
		VERIFY_TEST(leaves_that_make_no_document_are_found),
		VERIFY_TEST(damaged_local_documents_are_found),
		VERIFY_TEST(records_of_a_newer_frond_are_told_as_that),
		VERIFY_TEST(attachment_without_all_its_data_is_found),
		VERIFY_TEST(wrong_counter_of_an_attachment_is_found),
		VERIFY_TEST(data_of_nobody_is_found_unless_it_is_being_uploaded),
		VERIFY_TEST(lost_and_unreadable_pointers_are_found),
		VERIFY_TEST(branch_that_does_not_know_of_its_attachments_is_found),
		VERIFY_TEST(keys_outside_of_subspaces_are_found),
		VERIFY_TEST(keys_of_no_database_are_found_once_a_number),
		VERIFY_TEST(keys_of_a_deleted_database_are_expected_while_it_is_cleared),
		VERIFY_TEST(database_that_would_be_cleared_is_found),
		VERIFY_TEST(keys_that_the_store_does_not_know_are_found),
		VERIFY_TEST(two_databases_of_one_number_are_found),
		VERIFY_TEST(description_that_cannot_be_read_is_found),
		VERIFY_TEST(number_that_would_be_given_again_is_found),
		VERIFY_TEST(raised_incarnation_puts_new_changes_above_all_others),
		VERIFY_TEST(incarnation_stays_at_its_end),
	};

	/* It damages leaves; test_scheme.c damages packed documents. */
	assert_int_equal(setenv("FROND_TEST_SCHEME", "exploded", 1), 0);
	return cmocka_run_group_tests_name("verify", tests, NULL, NULL);
}
