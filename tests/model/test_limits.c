/*
 * Limits of databases with revisions, each at its edge and one beyond; lists that a database reads
 * in several pages; attachments that are read with pauses.
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "fixture.h"

#include <openssl/md5.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/rand.h"
#include "kv/keyspace.h"
#include "kv/tuple.h"
#include "model/revisioned/kind_int.h"
#include "model/revisioned/partition.h"
#include "model/revisioned/purges.h"
#include "model/revisioned/record.h"
#include "model/revisioned/revisioned_int.h"

enum {
	BATCH_BYTES = REV_ATT_CHUNK_BYTES * REV_ATT_BATCH_CHUNKS,
	MEMORY_BYTES = 1000, /* of an upload here */
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void
assert_says(const struct err *err, const char *words)
{
	if (!strstr(err->text, words))
		fail_msg("\"%s\" does not say \"%s\"", err->text, words);
}

/* ---- Databases ---- */

static void
names_of_databases_have_their_limits(void **state)
{
	static const struct {
		const char *name;
		bool good;
	} cases[] = {
		{ "a", true },        { "z", true },           { "", false },
		{ "`", false },       { "{", false },          { "0", false },
		{ "A", false },       { "_a", false },         { "_users", true },
		{ "_user", false },   { "_replicator", true }, { "_global_changes", true },
		{ "a_$()+-/", true }, { "a0", true },          { "a9", true },
		{ "a:", false },      { "a'", false },         { "az", true },
		{ "aa", true },       { "a`", false },         { "a{", false },
		{ "aZ", false },      { "a b", false },        { "a.", false },
		{ "a0/b", true },     { "a\xc3\xa4", false },
	};
	char name[CATALOG_NAME_BYTES + 1];
	struct err err = { 0 };

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		if (rev_db_name_valid(str_from_cstr(cases[i].name)) != cases[i].good)
			fail_msg("\"%s\" is%s valid", cases[i].name, cases[i].good ? " not" : "");
	assert_false(rev_db_name_valid(STR("a\0")));
	memset(name, 'n', sizeof(name));
	assert_true(rev_db_name_valid(str_of(name, CATALOG_NAME_BYTES)));
	assert_false(rev_db_name_valid(str_of(name, CATALOG_NAME_BYTES + 1)));
	assert_int_equal(rev_kind.check_name(STR("a"), &err), STATUS_OK);
	assert_int_equal(rev_kind.check_name(STR("B"), &err), STATUS_INVALID);
	assert_says(&err, "Name: 'B'. Only lowercase characters (a-z), digits (0-9), and any of "
			  "the characters _, $, (, ), +, -, and / are allowed. Must begin with a "
			  "letter.");
}

static void
options_of_databases_have_their_limits(void **state)
{
	static const struct {
		uint64_t scheme, limit, partitioned;
		bool good;
	} cases[] = {
		{ REV_SCHEME_EXPLODED, 1, 0, true },
		{ REV_SCHEME_PACKED, 1, 1, true },
		{ REV_SCHEME_PACKED, REV_LIMIT_MAX, 0, true },
		{ REV_SCHEME_PACKED, (uint64_t)REV_LIMIT_MAX + 1, 0, false },
		{ REV_SCHEME_PACKED, 0, 0, false },
		{ REV_SCHEME_PACKED, 1, 2, false },
		{ 7, 1, 0, false },
	};
	enum rev_scheme scheme = REV_SCHEME_PACKED;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		const uint64_t options[CATALOG_OPTIONS] = {
			[REV_OPTION_SCHEME] = cases[i].scheme,
			[REV_OPTION_REVS_LIMIT] = cases[i].limit,
			[REV_OPTION_PARTITIONED] = cases[i].partitioned,
		};

		if (rev_kind.check_options(options) != (cases[i].good ? STATUS_OK : STATUS_CORRUPT))
			fail_msg("options %zu are%s good", i, cases[i].good ? " not" : "");
	}
	assert_int_equal(rev_scheme_parse(STR("exploded"), &scheme), STATUS_OK);
	assert_int_equal(scheme, REV_SCHEME_EXPLODED);
	assert_string_equal(rev_scheme_name(scheme), "exploded");
	assert_int_equal(rev_scheme_parse(STR("packed"), &scheme), STATUS_OK);
	assert_int_equal(scheme, REV_SCHEME_PACKED);
	assert_string_equal(rev_scheme_name(scheme), "packed");
	assert_int_equal(rev_scheme_parse(STR("pack"), &scheme), STATUS_INVALID);
}

static void
the_newest_change_is_told_from_its_key(void **state)
{
	struct fixture *f = *state;
	static const uint8_t stamp[KV_VERSIONSTAMP_BYTES] = { 1, 0, 2 };

	for (uint64_t more = 0; more < 2; more++) {
		AUTO(buf_release) struct buf key = BUF_INIT(100);
		struct catalog_seq seq;

		tuple_put_u64(&key, f->db->number);
		tuple_put_u64(&key, REV_SUBSPACE_CHANGES);
		tuple_put_u64(&key, UINT8_MAX + more);
		tuple_put_versionstamp(&key, stamp);
		assert_int_equal(rev_kind.newest_parse(buf_str(&key), &seq),
				 more ? STATUS_CORRUPT : STATUS_OK);
		if (more)
			continue;
		assert_int_equal(seq.bytes[0], UINT8_MAX);
		assert_memory_equal(seq.bytes + 1, stamp, sizeof(stamp));
		for (size_t len = 0; len < key.len; len++)
			assert_int_not_equal(rev_kind.newest_parse(str_of(key.ptr, len), &seq),
					     STATUS_OK);
	}
}

/* ---- Attachments ---- */

static struct rev_att_edit
att_data(struct fixture *f, const char *name, struct str data)
{
	struct rev_att_edit edit = {
		.source = REV_ATT_DATA,
		.att = { .name = str_from_cstr(name), .type = STR("x/y") },
		.data = arena_dup(f->arena, data),
	};

	edit.att.length = edit.att.encoded_length = edit.data.len;
	rand_bytes(edit.att.id, sizeof(edit.att.id));
	MD5((const unsigned char *)data.ptr, data.len, edit.att.digest);
	return edit;
}

static struct rev_result
write_one(struct fixture *f, struct rev_edit edit, const struct rev_att_edit *atts, size_t count)
{
	struct rev_result result;

	edit.atts = atts;
	edit.atts_count = count;
	fixture_write(f, &edit, 1, &result);
	return result;
}

/* Pairs below a key. */
static size_t
count_below(struct fixture *f, const struct buf *prefix)
{
	AUTO(buf_release) struct buf end = BUF_INIT(200);
	struct kv_tx *tx = fixture_begin(f);
	struct kv_scan scan = { 0 };
	struct kv_pair pair;
	size_t n = 0;

	assert_int_equal(tuple_prefix_end(buf_str(prefix), &end), STATUS_OK);
	assert_int_equal(kv_scan_init(&scan, tx, buf_str(prefix), buf_str(&end), NULL), STATUS_OK);
	while (kv_scan_next(&scan, &pair) == STATUS_OK)
		n++;
	kv_scan_release(&scan);
	kv_tx_free(tx);
	return n;
}

/* Data and counters. */
static size_t
att_pairs(struct fixture *f)
{
	AUTO(buf_release) struct buf prefix = CATALOG_KEY_INIT;

	rev_key_space(&prefix, f->db, REV_SUBSPACE_ATTACHMENTS);
	return count_below(f, &prefix);
}

static size_t
upload_records(struct fixture *f)
{
	AUTO(buf_release) struct buf prefix = CATALOG_KEY_INIT;

	tuple_put_u64(&prefix, KV_ROOT);
	tuple_put_u64(&prefix, KV_ROOT_UPLOADS);
	return count_below(f, &prefix);
}

static void
attachments_have_their_limits(void **state)
{
	struct fixture *f = *state;
	struct rev_att_edit *atts = arena_zalloc(f->arena, (REV_ATTS_MAX + 1) * sizeof(*atts));
	struct rev_att_edit one = att_data(f, "f", STR("data"));
	static char type[REV_ATT_TYPE_BYTES + 1];

	assert_non_null(atts);
	memset(type, 't', sizeof(type));
	one.att.type = str_of(type, REV_ATT_TYPE_BYTES + 1);
	assert_int_equal(write_one(f, fixture_edit(f, "a", NULL, "{}"), &one, 1).status,
			 STATUS_INVALID);
	one.att.type.len--;
	assert_int_equal(write_one(f, fixture_edit(f, "a", NULL, "{}"), &one, 1).status, STATUS_OK);
	for (size_t i = 0; i <= REV_ATTS_MAX; i++)
		atts[i] = (struct rev_att_edit){
			.source = REV_ATT_STUB,
			.att.name = arena_printf(f->arena, "%zu", i),
		};
	assert_int_equal(
		write_one(f, fixture_edit(f, "b", NULL, "{}"), atts, REV_ATTS_MAX + 1).status,
		STATUS_DOC_TOO_LARGE);
	/* As many as may be are looked at: there are none that the stubs could mean. */
	assert_int_equal(write_one(f, fixture_edit(f, "b", NULL, "{}"), atts, REV_ATTS_MAX).status,
			 STATUS_ATT_MISSING);
	fixture_check(f);
}

/* So many that their descriptions take several reads: stubs mean each, and each is given up. */
static void
attachments_of_several_pages_are_all_there(void **state)
{
	enum {
		MANY = 400,
		NAME_BYTES = 1000,
	};
	struct fixture *f = *state;
	struct rev_att_edit *atts = arena_zalloc(f->arena, MANY * sizeof(*atts));
	char *name = malloc(NAME_BYTES + 1);
	struct rev_result result;
	const char *rev;

	assert_true(atts && name);
	memset(name, 'n', NAME_BYTES);
	name[NAME_BYTES] = '\0';
	for (int i = 0; i < MANY; i++) {
		(void)snprintf(name, 5, "%04d", i);
		name[4] = 'n';
		atts[i] = att_data(f, arena_printf(f->arena, "%s", name).ptr, STR("d"));
	}
	result = write_one(f, fixture_edit(f, "a", NULL, "{}"), atts, MANY);
	assert_int_equal(result.status, STATUS_OK);
	assert_int_equal(att_pairs(f), 2 * MANY);
	rev = fixture_text(f, result.rev);
	for (int i = 0; i < MANY; i++)
		atts[i].source = REV_ATT_STUB;
	result = write_one(f, fixture_edit(f, "a", rev, "{\"n\":1}"), atts, MANY);
	assert_int_equal(result.status, STATUS_OK);
	assert_int_equal(att_pairs(f), 2 * MANY);
	fixture_check(f);
	fixture_delete(f, "a", fixture_text(f, result.rev));
	assert_int_equal(att_pairs(f), 0);
	fixture_check(f);
	free(name);
}

/* What the stubs of a refused edit would have meant is not read for an edit beside it. */
static void
stubs_of_a_refused_edit_are_not_looked_for(void **state)
{
	struct fixture *f = *state;
	const struct rev_att_edit att = att_data(f, "f", STR("data"));
	const struct rev_att_edit stub = { .source = REV_ATT_STUB, .att.name = STR("f") };
	struct rev_edit edits[2] = { fixture_copy(f, "a", "1-a", false, "{}"),
				     fixture_copy(f, "a", "2-c a", false, "{}") };
	struct rev_result results[2];
	uint64_t sizes[2];

	assert_int_equal(write_one(f, edits[0], &att, 1).status, STATUS_OK);
	/* No revision has that many bytes in its hash. */
	edits[1].history[0] = str_of(arena_zalloc(f->arena, REV_HASH_LIMIT_BYTES + 1),
				     REV_HASH_LIMIT_BYTES + 1);
	edits[1].atts = &stub;
	for (size_t stubs = 0; stubs < 2; stubs++) {
		edits[1].atts_count = stubs;
		fixture_write(f, edits, 2, results);
		assert_int_equal(results[0].status, STATUS_OK);
		assert_true(results[0].unchanged);
		assert_int_equal(results[1].status, STATUS_INVALID);
		/* A read that nobody waits for is no answer, but its conflict range counts. */
		sizes[stubs] = f->cost.size_bytes;
	}
	assert_int_equal(sizes[0], sizes[1]);
	fixture_check(f);
}

/* ---- Reading attachments with pauses ---- */

static char
pattern(uint64_t at)
{
	return (char)(at * 2654435761U >> 13);
}

/* A revision of document "a" with one attachment of that many bytes. */
static struct rev_att
att_stored(struct fixture *f, size_t bytes, const char **ret_rev)
{
	struct rev_result result;
	char *data = malloc(bytes + 1);
	struct rev_att_edit att;

	assert_non_null(data);
	for (size_t i = 0; i < bytes; i++)
		data[i] = pattern(i);
	att = att_data(f, "f", str_of(data, bytes));
	free(data);
	result = write_one(f, fixture_edit(f, "a", NULL, "{}"), &att, 1);
	assert_int_equal(result.status, STATUS_OK);
	*ret_rev = fixture_text(f, result.rev);
	return att.att;
}

static void
readers_take_pieces_of_the_size_that_they_are_told(void **state)
{
	enum {
		BYTES = 3 * REV_ATT_CHUNK_BYTES + 5,
		PIECE = 40000,
		BACK = 7,
	};
	struct fixture *f = *state;
	const char *rev;
	const struct rev_att att = att_stored(f, BYTES, &rev);
	struct rev_att_reader *reader;
	struct kv_tx *tx = fixture_begin(f);
	struct str piece;
	enum status status;
	uint64_t at = 0, keys = kv_tx_stats(tx).keys_read;
	bool kept = false;

	assert_int_equal(rev_att_reader_new(f->db, &att, false, 0, BYTES, &reader), STATUS_OK);
	/* At least one chunk at a time. */
	rev_att_reader_limit(reader, 1, PIECE);
	for (int n = 0; (status = rev_att_reader_next(reader, tx, &piece)) == STATUS_OK; n++) {
		assert_in_range(piece.len, 1, PIECE);
		for (size_t i = 0; i < piece.len; i++)
			assert_int_equal(piece.ptr[i], pattern(at + i));
		at += piece.len;
		if (n == 0)
			assert_int_equal(kv_tx_stats(tx).keys_read - keys, 1);
		if (n % 3 == 1) {
			/* Another transaction goes on. */
			rev_att_reader_rest(reader);
			kv_tx_free(tx);
			tx = fixture_begin(f);
		}
		if (n % 6 == 4 && at > BACK) {
			rev_att_reader_back(reader, BACK);
			at -= BACK;
		}
	}
	assert_int_equal(status, STATUS_NOT_FOUND);
	assert_int_equal(at, BYTES);
	assert_int_equal(rev_att_reader_is_kept(reader, tx, &kept), STATUS_OK);
	assert_true(kept);
	kv_tx_free(tx);
	fixture_delete(f, "a", rev);
	tx = fixture_begin(f);
	assert_int_equal(rev_att_reader_is_kept(reader, tx, &kept), STATUS_OK);
	assert_false(kept);
	rev_att_reader_free(reader);
	kv_tx_free(tx);
}

/* An attachment of document "a" that was compressed on its way. */
static struct rev_att
att_gzipped(struct fixture *f, struct rev_upload *u, uint64_t bytes)
{
	struct rev_att_edit edit = { .att = { .name = STR("f"), .type = STR("x/y") } };
	uint8_t md5[REV_ATT_DIGEST_BYTES];
	struct rev_result result;
	char *data = malloc(bytes + 1);
	struct err err = { 0 };

	for (size_t i = 0; i < bytes; i++)
		data[i] = pattern(i);
	assert_int_equal(rev_upload_write(u, str_of(data, bytes), &err), STATUS_OK);
	assert_int_equal(rev_upload_finish(u, &edit, md5, &err), STATUS_OK);
	assert_int_equal(edit.source, REV_ATT_DATA);
	result = write_one(f, fixture_edit(f, "a", NULL, "{}"), &edit, 1);
	assert_int_equal(result.status, STATUS_OK);
	free(data);
	return edit.att;
}

static struct rev_upload *
upload_new(struct fixture *f, int gzip_level, uint64_t max_bytes, size_t memory_bytes)
{
	const struct rev_upload_options options = {
		.store = f->store,
		.db = f->db,
		.gzip_level = gzip_level,
		.max_bytes = max_bytes,
		.memory_bytes = memory_bytes,
	};
	struct rev_upload *u;

	assert_int_equal(rev_upload_new(&options, &u), STATUS_OK);
	return u;
}

/* Readers that decode go on behind a pause, and the piece before it stays. */
static void
decoding_goes_on_behind_a_pause(void **state)
{
	enum {
		BYTES = 5 * REV_ATT_PIECE_BYTES + 11,
	};
	struct fixture *f = *state;
	struct rev_upload *u = upload_new(f, 1, 0, SIZE_MAX);
	const struct rev_att att = att_gzipped(f, u, BYTES);
	MD5_CTX digests[2];
	uint8_t made[2][MD5_DIGEST_LENGTH];

	for (int pauses = 0; pauses < 2; pauses++) {
		struct rev_att_reader *reader;
		struct kv_tx *tx = fixture_begin(f);
		uint64_t bytes = 0;
		enum status status;
		struct str piece;

		MD5_Init(&digests[pauses]);
		assert_int_equal(
			rev_att_reader_new(f->db, &att, true, 0, att.encoded_length, &reader),
			STATUS_OK);
		while ((status = rev_att_reader_next(reader, tx, &piece)) == STATUS_OK) {
			if (pauses) {
				rev_att_reader_rest(reader);
				kv_tx_free(tx);
				tx = fixture_begin(f);
			}
			bytes += piece.len;
			assert_int_equal(piece.len, bytes < BYTES ? REV_ATT_PIECE_BYTES
								  : BYTES % REV_ATT_PIECE_BYTES);
			MD5_Update(&digests[pauses], piece.ptr, piece.len);
		}
		assert_int_equal(status, STATUS_NOT_FOUND);
		assert_int_equal(bytes, BYTES);
		assert_false(rev_att_reader_is_invalid(reader));
		rev_att_reader_free(reader);
		kv_tx_free(tx);
		MD5_Final(made[pauses], &digests[pauses]);
	}
	assert_memory_equal(made[0], made[1], MD5_DIGEST_LENGTH);
	rev_upload_free(u, true);
}

/* Bytes that are there and are no gzip are told from bytes that are lost. */
static void
what_is_no_gzip_is_told_from_what_is_lost(void **state)
{
	static const struct {
		const char *data;
		size_t len;
		enum status status; /* of the first read */
		bool invalid;
	} cases[] = {
		{ "no gzip at all", 14, STATUS_CORRUPT, true },
		{ "\x1f\x8b", 2, STATUS_CORRUPT, true }, /* its beginning */
		{ "", 0, STATUS_NOT_FOUND, false },
		{ NULL, 5, STATUS_CORRUPT, false }, /* nowhere */
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct rev_att_edit att = att_data(f, "f", STR("none"));
		const char *id = arena_printf(f->arena, "d%zu", i).ptr;
		struct kv_tx *tx;
		struct rev_att_reader *reader;
		struct str piece;

		if (cases[i].data) {
			att = att_data(f, "f", str_of(cases[i].data, cases[i].len));
			assert_int_equal(
				write_one(f, fixture_edit(f, id, NULL, "{}"), &att, 1).status,
				STATUS_OK);
		}
		att.att.encoding = REV_ATT_GZIP;
		tx = fixture_begin(f);
		assert_int_equal(
			rev_att_reader_new(f->db, &att.att, true, 0, cases[i].len, &reader),
			STATUS_OK);
		if (rev_att_reader_next(reader, tx, &piece) != cases[i].status ||
		    rev_att_reader_is_invalid(reader) != cases[i].invalid)
			fail_msg("case %zu is%s invalid", i, cases[i].invalid ? " not" : "");
		rev_att_reader_free(reader);
		kv_tx_free(tx);
	}
}

/* ---- Uploads ---- */

/* Writes that many bytes; the source of what has become of them. */
static enum rev_att_source
upload_end(struct rev_upload *u, size_t bytes, struct rev_att_edit *ret)
{
	uint8_t md5[REV_ATT_DIGEST_BYTES];
	char *data = calloc(1, bytes + 1);
	struct err err = { 0 };

	assert_int_equal(rev_upload_write(u, str_of(data, bytes), &err), STATUS_OK);
	assert_int_equal(rev_upload_finish(u, ret, md5, &err), STATUS_OK);
	free(data);
	return ret->source;
}

static void
uploads_have_their_limits(void **state)
{
	static const struct {
		size_t bytes, memory;
		bool staged;
		size_t chunks; /* in the store */
	} cases[] = {
		{ 0, 0, false, 0 },
		{ MEMORY_BYTES, MEMORY_BYTES, false, 0 },
		{ MEMORY_BYTES + 1, MEMORY_BYTES, true, 1 },
		{ BATCH_BYTES - 1, SIZE_MAX, false, 0 },
		{ BATCH_BYTES, SIZE_MAX, true, REV_ATT_BATCH_CHUNKS },
		{ BATCH_BYTES + 1, SIZE_MAX, true, REV_ATT_BATCH_CHUNKS + 1 },
		{ 2 * BATCH_BYTES, 0, true, 2 * REV_ATT_BATCH_CHUNKS },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct rev_upload *u = upload_new(f, 0, cases[i].bytes, cases[i].memory);
		struct rev_att_edit edit = { 0 };
		struct err err = { 0 };
		char *data = calloc(1, cases[i].bytes + 1);

		if (cases[i].bytes) {
			assert_int_equal(
				rev_upload_write(u, str_of(data, cases[i].bytes + 1), &err),
				STATUS_LIMIT);
			assert_says(&err, arena_printf(f->arena,
						       "the attachment is larger than %zu bytes",
						       cases[i].bytes)
						  .ptr);
		}
		if ((upload_end(u, cases[i].bytes, &edit) == REV_ATT_STAGED) != cases[i].staged)
			fail_msg("%zu bytes are%s staged", cases[i].bytes,
				 cases[i].staged ? " not" : "");
		assert_int_equal(edit.att.length, cases[i].bytes);
		assert_int_equal(att_pairs(f), cases[i].chunks);
		assert_int_equal(upload_records(f), cases[i].staged);
		assert_int_equal(rev_upload_touch(u, &err), STATUS_OK);
		rev_upload_free(u, false);
		assert_int_equal(att_pairs(f), 0);
		assert_int_equal(upload_records(f), 0);
		free(data);
	}
}

static void
what_comes_as_gzip_stays_so(void **state)
{
	struct fixture *f = *state;
	const struct rev_upload_options options = {
		.store = f->store, .db = f->db, .memory_bytes = SIZE_MAX, .stored_gzip = true
	};
	struct rev_att_edit edit = { 0 };
	struct rev_upload *u;

	assert_int_equal(rev_upload_new(&options, &u), STATUS_OK);
	assert_int_equal(upload_end(u, 10, &edit), REV_ATT_DATA);
	assert_int_equal(edit.att.encoding, REV_ATT_GZIP);
	assert_int_equal(edit.att.length, 10);
	assert_null(rev_upload_part(u));
	rev_upload_free(u, false);
	u = upload_new(f, 0, 0, SIZE_MAX);
	assert_int_equal(upload_end(u, 10, &edit), REV_ATT_DATA);
	assert_int_equal(edit.att.encoding, REV_ATT_IDENTITY);
	rev_upload_free(u, false);
	u = upload_new(f, 9, 0, SIZE_MAX);
	assert_int_equal(upload_end(u, 10, &edit), REV_ATT_DATA);
	assert_int_equal(edit.att.encoding, REV_ATT_GZIP);
	assert_int_equal(edit.att.length, 10);
	assert_true(edit.att.encoded_length != 10);
	rev_upload_free(u, false);
}

struct upload_records {
	uint64_t number; /* of the database */
	unsigned count;
	struct rev_upload_record record;
	bool broken;
};

static enum status
records_put_body(struct kv_tx *tx, void *arg)
{
	const struct upload_records *r = arg;
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(64);

	rev_upload_record_put(&value, &r->record);
	for (unsigned i = 0; i < r->count; i++) {
		uint8_t id[REV_ATT_ID_BYTES];

		rand_bytes(id, sizeof(id));
		rev_key_upload(&key, r->number, id);
		TRY(kv_set(tx, buf_str(&key), r->broken ? STR("?") : buf_str(&value)));
	}
	return STATUS_OK;
}

static void
records_put(struct fixture *f, struct upload_records r)
{
	assert_int_equal(kv_run(f->store, records_put_body, &r, NULL, NULL), STATUS_OK);
}

/* What had its last sign of life at the very moment is removed, and what had it later is not. */
static void
uploads_that_have_rested_are_swept(void **state)
{
	struct fixture *f = *state;
	uint64_t number = f->db->number, removed = 0;
	struct err err = { 0 };

	records_put(f, (struct upload_records){ number, 3, { 0, 0 }, false });
	records_put(f, (struct upload_records){ number, 2, { 0, 1 }, false });
	records_put(f, (struct upload_records){ number, 1, { 0, 0 }, true });
	assert_int_equal(rev_uploads_sweep(f->store, UINT64_MAX, &removed, &err), STATUS_OK);
	assert_int_equal(removed, 3);
	assert_int_equal(upload_records(f), 3);
	assert_int_equal(rev_uploads_sweep(f->store, 0, &removed, &err), STATUS_OK);
	assert_int_equal(removed, 2);
	assert_int_equal(upload_records(f), 1);
}

/* Of one database all go, however old they are, and none of another one. */
static void
uploads_of_a_database_are_cleared(void **state)
{
	enum {
		MANY = 1001, /* more than one transaction looks at, or removes */
	};
	struct fixture *f = *state;
	uint64_t number = f->db->number;
	struct err err = { 0 };

	records_put(f, (struct upload_records){ number, MANY, { 0, INT64_MAX }, false });
	records_put(f, (struct upload_records){ number + 1, 2, { 0, 0 }, false });
	records_put(f, (struct upload_records){ number + 300, 2, { 0, 0 }, false });
	assert_int_equal(rev_kind.move_prepare(f->store, number, &err), STATUS_OK);
	assert_int_equal(upload_records(f), 4);
	/* One that cannot be read is in the way of a move. */
	records_put(f, (struct upload_records){ number, 1, { 0, 0 }, true });
	assert_int_not_equal(rev_kind.move_prepare(f->store, number, &err), STATUS_OK);
	assert_int_equal(upload_records(f), 5);
}

/* ---- Purges ---- */

struct trimming {
	struct fixture *f;
	struct rev_purge_query *queries;
	size_t count;
	bool more;
	uint64_t limit;
	struct rev_purge_page page;
	size_t most;
	struct err err;
};

static enum status
purge_body(struct kv_tx *tx, void *arg)
{
	struct trimming *t = arg;
	struct rev_purge_result *results = arena_zalloc(t->f->arena, t->count * sizeof(*results));

	return rev_purge(tx, t->f->db, t->queries, t->count, t->f->arena, results, &t->err);
}

static enum status
limit_body(struct kv_tx *tx, void *arg)
{
	struct trimming *t = arg;

	return rev_purges_limit_set(tx, t->f->db, t->limit, &t->err);
}

static enum status
trim_body(struct kv_tx *tx, void *arg)
{
	struct trimming *t = arg;

	return rev_purges_trim(tx, t->f->db, t->f->arena, &t->more, &t->err);
}

static enum status
page_body(struct kv_tx *tx, void *arg)
{
	static const struct catalog_seq start;
	struct trimming *t = arg;

	return rev_purges_page(tx, t->f->db, &start, t->most, t->f->arena, &t->page, &t->err);
}

static size_t
purges_listed(struct trimming *t, size_t most)
{
	t->most = most;
	assert_int_equal(kv_run_read(t->f->store, page_body, t, &t->err), STATUS_OK);
	return t->page.count;
}

static void
purges_are_trimmed_page_by_page(void **state)
{
	enum {
		MANY = REV_PURGES_TRIM_KEYS + 2 * REV_PURGE_DOCS,
	};
	struct fixture *f = *state;
	struct trimming t = { .f = f };
	struct rev_purge_query queries[REV_PURGE_DOCS];
	const struct rev_id rev = { 1, STR("x") };
	struct rev_edit edits[REV_PURGE_DOCS];
	struct rev_result results[REV_PURGE_DOCS];

	t.queries = queries;
	t.count = REV_PURGE_DOCS;
	for (int n = 0; n < MANY; n += REV_PURGE_DOCS) {
		for (int i = 0; i < REV_PURGE_DOCS; i++) {
			const char *id = arena_printf(f->arena, "d%05d", n + i).ptr;

			edits[i] = fixture_copy(f, id, "1-x", false, "{}");
			queries[i] = (struct rev_purge_query){ str_from_cstr(id), &rev, 1 };
		}
		fixture_write(f, edits, REV_PURGE_DOCS, results);
		assert_int_equal(kv_run(f->store, purge_body, &t, NULL, NULL), STATUS_OK);
	}
	assert_int_equal(purges_listed(&t, 3), 3);
	assert_true(purges_listed(&t, 0) > 3);
	assert_int_equal(purges_listed(&t, REV_PURGES_PAGE + 1), purges_listed(&t, 0));
	assert_int_equal(purges_listed(&t, REV_PURGES_PAGE), purges_listed(&t, 0));
	t.limit = 0;
	assert_int_equal(kv_run(f->store, limit_body, &t, NULL, NULL), STATUS_INVALID);
	assert_says(&t.err, "The limit of purges must be 1 at least.");
	t.limit = REV_PURGE_DOCS;
	assert_int_equal(kv_run(f->store, limit_body, &t, NULL, NULL), STATUS_OK);
	assert_int_equal(kv_run(f->store, trim_body, &t, NULL, NULL), STATUS_OK);
	assert_true(t.more);
	assert_int_equal(purges_listed(&t, REV_PURGES_PAGE), 2 * REV_PURGE_DOCS);
	assert_int_equal(kv_run(f->store, trim_body, &t, NULL, NULL), STATUS_OK);
	assert_false(t.more);
	assert_int_equal(purges_listed(&t, REV_PURGES_PAGE), REV_PURGE_DOCS);
	assert_int_equal(kv_run(f->store, trim_body, &t, NULL, NULL), STATUS_OK);
	assert_false(t.more);
	assert_int_equal(purges_listed(&t, REV_PURGES_PAGE), REV_PURGE_DOCS);
	t.limit = 1;
	assert_int_equal(kv_run(f->store, limit_body, &t, NULL, NULL), STATUS_OK);
	assert_int_equal(kv_run(f->store, trim_body, &t, NULL, NULL), STATUS_OK);
	assert_false(t.more);
	assert_int_equal(purges_listed(&t, REV_PURGES_PAGE), 1);
	fixture_check(f);
}

/* ---- Heads ---- */

static void
heads_are_read_alive_or_not(void **state)
{
	struct fixture *f = *state;
	struct rev_want wants[4] = {
		{ .id = STR("a"), .rev = { 2, STR("x") } },
		{ .id = STR("b"), .rev = { 2, STR("t") } }, /* deleted */
		{ .id = STR("c"), .rev = { 1, STR("x") } }, /* never there */
		{ .id = STR("a"), .rev = { 1, STR("r") } }, /* no head any more */
	};
	static const bool alive[4] = { true, false, false, false };
	struct rev_branch branches[4], one;
	struct kv_tx *tx;

	fixture_replicate(f, "a", "2-x r", false, "{\"n\":1}");
	fixture_replicate(f, "b", "2-t s", true, "{}");
	tx = fixture_begin(f);
	assert_int_equal(rev_branches_read_live(tx, f->db, wants, 4, f->arena, branches),
			 STATUS_OK);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(branches[i].rev.pos, alive[i] ? wants[i].rev.pos : 0);
	assert_int_equal(branches[0].ancestors_count, 1);
	assert_int_equal(rev_branch_read(tx, f->db, STR("a"), wants[0].rev, f->arena, &one),
			 STATUS_OK);
	assert_false(one.deleted);
	assert_int_equal(rev_branch_read(tx, f->db, STR("b"), wants[1].rev, f->arena, &one),
			 STATUS_OK);
	assert_true(one.deleted);
	assert_int_equal(one.ancestors_count, 1);
	assert_int_equal(rev_branch_read(tx, f->db, STR("c"), wants[2].rev, f->arena, &one),
			 STATUS_NOT_FOUND);
	kv_tx_free(tx);
}

/* ---- Names of partitions ---- */

static void
ids_of_partitions_have_their_faults(void **state)
{
	static const struct {
		const char *id;
		const char *fault; /* NULL: none */
	} cases[] = {
		{ "p:a", NULL },
		{ "p:a:b", NULL },
		{ "_design/d", NULL },
		{ "_local/l", NULL },
		{ "p:_design/d", NULL },
		{ "p:_local/l", NULL },
		{ "", "Doc id must be of form partition:id" },
		{ "p", "Doc id must be of form partition:id" },
		{ ":a", "Partition must not be empty" },
		{ "_p:a", "Partition must not start with an underscore" },
		{ "\xff:a", "Partition must be valid UTF-8" },
		{ "p:", "Document id must not be empty" },
		{ "p:_design/", "Illegal document id `_design/`" },
		{ "p:_local/", "Illegal document id `_local/`" },
		{ "p:_a", "Only reserved document ids may start with underscore." },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *fault = rev_partition_id_fault(str_from_cstr(cases[i].id));

		if (!fault != !cases[i].fault || (fault && strcmp(fault, cases[i].fault) != 0))
			fail_msg("\"%s\": %s", cases[i].id, fault ? fault : "no fault");
	}
	assert_string_equal(rev_partition_name_fault(STR("a:b")),
			    "Partition must not contain a colon");
	assert_null(rev_partition_name_fault(STR("a")));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(names_of_databases_have_their_limits),
		TEST(options_of_databases_have_their_limits),
		TEST(the_newest_change_is_told_from_its_key),
		TEST(attachments_have_their_limits),
		TEST(attachments_of_several_pages_are_all_there),
		TEST(stubs_of_a_refused_edit_are_not_looked_for),
		TEST(readers_take_pieces_of_the_size_that_they_are_told),
		TEST(decoding_goes_on_behind_a_pause),
		TEST(what_is_no_gzip_is_told_from_what_is_lost),
		TEST(uploads_have_their_limits),
		TEST(what_comes_as_gzip_stays_so),
		TEST(uploads_that_have_rested_are_swept),
		TEST(uploads_of_a_database_are_cleared),
		TEST(purges_are_trimmed_page_by_page),
		TEST(heads_are_read_alive_or_not),
		TEST(ids_of_partitions_have_their_faults),
	};

	return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}
