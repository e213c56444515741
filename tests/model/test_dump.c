/* Dumps of a database, and what is made of a damaged one: its revisions past what is lost. */
#include <stdio.h>
#include <stdlib.h>

#include "base/rand.h"
#include "doc/packed.h"
#include "fixture.h"
#include "model/revisioned/revisioned_int.h"
#include "model/revisioned/salvage.h"

enum {
	OUT_BYTES = 1 << 20,
	MANY = 2400, /* documents: a dump reads a thousand at a time */
};

/* ---- Dumping ---- */

struct dumped {
	struct fixture *f;
	bool revs, salvages;
	unsigned failing; /* the line at which writing fails; 0: none */
	unsigned lines;
	struct buf out;    /* the lines */
	struct buf told;   /* "id: why", a line each */
	struct buf warned; /* likewise */
	struct err err;
};

static enum status
ready(void *arg, struct err *err)
{
	(void)arg;
	(void)err;
	return STATUS_OK;
}

static enum status
end_line(void *arg, struct err *err)
{
	struct dumped *d = arg;

	if (++d->lines == d->failing)
		return err_set(err, STATUS_IO, "the disk is full");
	buf_append_byte(&d->out, '\n');
	return STATUS_OK;
}

static void
warn(void *arg, const char *text)
{
	struct dumped *d = arg;

	buf_printf(&d->warned, "%s\n", text);
}

static void
tell(void *arg, struct str entry, const char *why)
{
	struct dumped *d = arg;

	buf_printf(&d->told, "%.*s: %s\n", STR_ARG(entry), why);
}

static enum status
dump_body(struct kv_tx *tx, void *arg)
{
	struct dumped *d = arg;
	const struct catalog_dump dump = { .tx = tx,
					   .db = d->f->db,
					   .revs = d->revs,
					   .out = &d->out,
					   .ready = ready,
					   .end_line = end_line,
					   .warn = warn,
					   .arg = d,
					   .err = &d->err };
	const struct catalog_broken broken = { tell, d };

	buf_clear(&d->out);
	buf_clear(&d->told);
	buf_clear(&d->warned);
	return d->salvages ? rev_salvage.dump(&dump, &broken) : d->f->db->kind->dump(&dump);
}

/* The lines, or what is told; either lasts as long as the test. */
static const char *
dumped_with_warning(struct fixture *f, bool revs, bool salvages, bool told, const char *warning)
{
	struct dumped d = { .f = f,
			    .revs = revs,
			    .salvages = salvages,
			    .out = BUF_INIT(OUT_BYTES),
			    .told = BUF_INIT(OUT_BYTES),
			    .warned = BUF_INIT(OUT_BYTES) };
	struct str ret;

	if (kv_run_read(f->calm, dump_body, &d, NULL) != STATUS_OK)
		fail_msg("%s", d.err.text);
	ret = arena_dup(f->arena, buf_str(told ? &d.told : &d.out));
	buf_append_byte(&d.warned, '\0');
	assert_string_equal(d.warned.ptr, warning);
	buf_release(&d.out);
	buf_release(&d.told);
	buf_release(&d.warned);
	return ret.ptr;
}

static const char *
dumped(struct fixture *f, bool revs, bool salvages, bool told)
{
	return dumped_with_warning(f, revs, salvages, told, "");
}

static const char *
salvaged(struct fixture *f)
{
	return dumped(f, true, true, false);
}

static const char *
told(struct fixture *f)
{
	return dumped(f, true, true, true);
}

/* ---- The database ---- */

#define A_X                                                                                        \
	"{\"_id\":\"a\",\"_rev\":\"2-x\",\"_revisions\":{\"start\":2,\"ids\":[\"x\",\"r\"]},"      \
	"\"n\":1}\n"
#define A_Y                                                                                        \
	"{\"_id\":\"a\",\"_rev\":\"2-y\",\"_revisions\":{\"start\":2,\"ids\":[\"y\",\"r\"]},"      \
	"\"n\":2}\n"
#define B_T                                                                                        \
	"{\"_id\":\"b\",\"_rev\":\"2-t\",\"_deleted\":true,"                                       \
	"\"_revisions\":{\"start\":2,\"ids\":[\"t\",\"s\"]},\"why\":\"because\"}\n"
#define C_U                                                                                        \
	"{\"_id\":\"c\",\"_rev\":\"1-u\",\"_revisions\":{\"start\":1,\"ids\":[\"u\"]},\"n\":3}\n"
#define D_V                                                                                        \
	"{\"_id\":\"d\",\"_rev\":\"1-v\",\"_deleted\":true,"                                       \
	"\"_revisions\":{\"start\":1,\"ids\":[\"v\"]}}\n"

/* "a" has a conflict, "b" a tombstone with a body, and "d" one without. */
static int
setup(void **state)
{
	struct fixture *f;

	if (fixture_setup(state) != 0)
		return -1;
	f = *state;
	fixture_replicate(f, "c", "1-u", false, "{\"n\":3}");
	fixture_replicate(f, "a", "2-x r", false, "{\"n\":1}");
	fixture_replicate(f, "a", "2-y r", false, "{\"n\":2}");
	fixture_replicate(f, "b", "2-t s", true, "{\"why\":\"because\"}");
	fixture_replicate(f, "d", "1-v", true, "{}");
	return 0;
}

struct damage {
	struct fixture *f;
	enum rev_subspace space;
	const char *id, *rev;
	bool deleted;    /* of the revision */
	struct str leaf; /* of its body; empty: the pair of the revision itself */
	bool cut;        /* that pair is cut; else it is lost, with what lies beneath it */
};

static enum status
damage_body(struct kv_tx *tx, void *arg)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	const struct damage *d = arg;

	rev_key_rev(&key, d->f->db, d->space, str_from_cstr(d->id), d->deleted,
		    fixture_rev(d->f, d->rev));
	buf_append_str(&key, d->leaf);
	if (d->cut)
		return kv_set(tx, buf_str(&key), STR("\x16"));
	buf_append_str(&end, buf_str(&key));
	buf_append_byte(&end, CATALOG_KEY_LAST);
	return kv_clear_range(tx, buf_str(&key), buf_str(&end));
}

static void
damage(struct fixture *f, struct damage d)
{
	d.f = f;
	assert_int_equal(kv_run(f->calm, damage_body, &d, NULL, NULL), STATUS_OK);
}

/* ---- Tests ---- */

static void
a_dump_has_winners_or_all_revisions(void **state)
{
	struct fixture *f = *state;

	assert_string_equal(dumped(f, false, false, false),
			    "{\"_id\":\"a\",\"n\":2}\n{\"_id\":\"c\",\"n\":3}\n");
	assert_string_equal(dumped(f, true, false, false), C_U A_Y A_X B_T D_V);
}

static void
what_is_whole_comes_back_as_it_was(void **state)
{
	struct fixture *f = *state;

	assert_string_equal(salvaged(f), A_X A_Y B_T C_U D_V);
	assert_string_equal(told(f), "");
}

static void
a_lost_revision_comes_back_without_its_history(void **state)
{
	struct fixture *f = *state;

	damage(f, (struct damage){ .space = REV_SUBSPACE_REVISIONS, .id = "a", .rev = "2-x" });
	assert_string_equal(salvaged(f),
			    A_Y B_T C_U D_V "{\"_id\":\"a\",\"_rev\":\"2-x\","
					    "\"_revisions\":{\"start\":2,\"ids\":[\"x\"]},\"n\":1}"
					    "\n");
	assert_string_equal(told(f), "a: revision 2-78: it comes back without its history: "
				     "the record of the revision is lost\n");
}

static void
a_record_that_cannot_be_read_is_told_of(void **state)
{
	struct fixture *f = *state;

	damage(f, (struct damage){
			  .space = REV_SUBSPACE_REVISIONS, .id = "a", .rev = "2-x", .cut = true });
	assert_string_equal(salvaged(f), A_Y B_T C_U D_V);
	assert_string_equal(told(f), "a: revision 2-78: its history cannot be read: corrupt\n");
}

static void
a_lost_body_is_told_of_unless_it_is_a_tombstones(void **state)
{
	struct fixture *f = *state;

	damage(f, (struct damage){ .space = REV_SUBSPACE_DOCUMENTS, .id = "c", .rev = "1-u" });
	damage(f,
	       (struct damage){
		       .space = REV_SUBSPACE_DOCUMENTS, .id = "b", .rev = "2-t", .deleted = true });
	assert_string_equal(salvaged(f),
			    A_X A_Y "{\"_id\":\"b\",\"_rev\":\"2-t\",\"_deleted\":true,"
				    "\"_revisions\":{\"start\":2,\"ids\":[\"t\",\"s\"]}}\n" D_V);
	assert_string_equal(told(f), "c: revision 1-75: its body is lost: not_found\n");
}

/* That a line cannot be written is no damage: nothing goes on. */
static void
a_line_that_cannot_be_written_ends_it(void **state)
{
	for (unsigned line = 1; line <= 5; line++) {
		for (int salvages = 0; salvages < 2; salvages++) {
			struct dumped d = { .f = *state,
					    .revs = true,
					    .salvages = salvages,
					    .failing = line,
					    .out = BUF_INIT(OUT_BYTES),
					    .told = BUF_INIT(OUT_BYTES),
					    .warned = BUF_INIT(OUT_BYTES) };

			assert_int_equal(kv_run_read(d.f->calm, dump_body, &d, NULL), STATUS_IO);
			assert_int_equal(d.lines, line);
			assert_string_equal(d.err.text, "the disk is full");
			assert_int_equal(d.told.len, 0);
			buf_release(&d.out);
			buf_release(&d.told);
			buf_release(&d.warned);
		}
	}
}

/* So many that a dump reads them page by page: each comes once, in its order. */
static void
long_databases_are_dumped_whole(void **state)
{
	struct fixture *f = *state;
	struct rev_edit *edits = arena_alloc(f->arena, MANY * sizeof(*edits));
	struct rev_result *results = arena_alloc(f->arena, MANY * sizeof(*results));
	AUTO(buf_release) struct buf winners = BUF_INIT(OUT_BYTES), revs = BUF_INIT(OUT_BYTES);

	assert_true(edits && results);
	for (int i = 0; i < MANY; i++) {
		const char *id = arena_printf(f->arena, "m%05d", i).ptr;

		edits[i] = fixture_copy(f, id, "1-w", false, "{}");
		buf_printf(&winners, "{\"_id\":\"%s\"}\n", id);
		buf_printf(&revs,
			   "{\"_id\":\"%s\",\"_rev\":\"1-w\",\"_revisions\":{\"start\":1,"
			   "\"ids\":[\"w\"]}}\n",
			   id);
	}
	for (int i = 0; i < MANY; i += MANY / 4)
		fixture_write(f, edits + i, MANY / 4, results + i);
	buf_append_byte(&winners, '\0');
	buf_append_byte(&revs, '\0');
	assert_int_equal(buf_status(&winners), STATUS_OK);
	assert_int_equal(buf_status(&revs), STATUS_OK);
	assert_string_equal(dumped(f, false, false, false),
			    arena_printf(f->arena,
					 "{\"_id\":\"a\",\"n\":2}\n{\"_id\":\"c\",\"n\":3}\n%s",
					 winners.ptr)
				    .ptr);
	assert_string_equal(dumped(f, true, false, false),
			    arena_printf(f->arena, C_U A_Y A_X B_T D_V "%s", revs.ptr).ptr);
	assert_string_equal(salvaged(f),
			    arena_printf(f->arena, A_X A_Y B_T C_U D_V "%s", revs.ptr).ptr);
	assert_string_equal(told(f), "");
}

/* ---- Attachments ---- */

#define NO_GZIP                                                                                    \
	"the attachment \"g\" of \"x\" is stored as gzip and is not valid gzip: its bytes are "    \
	"dumped as they are stored\n"

static struct rev_att_edit
att_of(const char *name, struct str data, enum rev_att_encoding encoding)
{
	struct rev_att_edit edit = {
		.source = REV_ATT_DATA,
		.att = { .name = str_from_cstr(name),
			 .type = STR("text/\"plain\""),
			 .length = data.len,
			 .encoded_length = data.len,
			 .encoding = encoding },
		.data = data,
	};

	rand_bytes(edit.att.id, sizeof(edit.att.id));
	return edit;
}

/* Document "x" with such attachments. */
static void
put_with(struct fixture *f, const struct rev_att_edit *atts, size_t count)
{
	struct rev_edit edit = fixture_copy(f, "x", "1-w", false, "{\"n\":4}");
	struct rev_result result;

	edit.atts = atts;
	edit.atts_count = count;
	fixture_write(f, &edit, 1, &result);
	assert_int_equal(result.status, STATUS_OK);
}

static void
attachments_are_dumped_with_their_bytes(void **state)
{
	struct fixture *f = *state;
	/* Of the byte "a". */
	static const char gzip[] = "\x1f\x8b\x08\0\0\0\0\0\0\x03\x4b\x04\0\x43\xbe\xb7\xe8\1\0\0";
	const struct rev_att_edit atts[] = {
		att_of("e", STR(""), REV_ATT_IDENTITY),
		att_of("f", STR("abcd"), REV_ATT_IDENTITY),
		att_of("g", str_of(gzip, sizeof(gzip)), REV_ATT_GZIP),
		att_of("h", STR("xyz"), REV_ATT_IDENTITY),
	};

	put_with(f, atts, 4);
	assert_string_equal(
		dumped(f, false, false, false),
		"{\"_id\":\"a\",\"n\":2}\n{\"_id\":\"c\",\"n\":3}\n"
		"{\"_id\":\"x\",\"n\":4,\"_attachments\":{"
		"\"e\":{\"content_type\":\"text/\\\"plain\\\"\",\"data\":\"\"},"
		"\"f\":{\"content_type\":\"text/\\\"plain\\\"\",\"data\":\"YWJjZA==\"},"
		"\"g\":{\"content_type\":\"text/\\\"plain\\\"\",\"data\":\"YQ==\"},"
		"\"h\":{\"content_type\":\"text/\\\"plain\\\"\",\"data\":\"eHl6\"}}}\n");
	assert_non_null(strstr(dumped(f, true, false, false),
			       ",\"n\":4,\"_attachments\":{\"e\":{\"content_type\":\"text/"
			       "\\\"plain\\\"\",\"revpos\":0,"
			       "\"digest\":\"md5-AAAAAAAAAAAAAAAAAAAAAA==\",\"data\":\"\"},"));
	assert_string_equal(told(f), "");
	assert_non_null(strstr(salvaged(f), "\"data\":\"YWJjZA==\"},\"g\":{"));
}

/* What is no gzip, though it says so, is dumped as it is, and somebody is told. */
static void
what_is_no_gzip_is_dumped_as_it_is_stored(void **state)
{
	struct fixture *f = *state;
	const struct rev_att_edit att = att_of("g", STR("abc"), REV_ATT_GZIP);

	put_with(f, &att, 1);
	assert_non_null(strstr(dumped_with_warning(f, false, false, false, NO_GZIP),
			       "\"data\":\"YWJj\"}}}\n"));
	assert_non_null(strstr(dumped_with_warning(f, true, true, false, NO_GZIP),
			       "\"data\":\"YWJj\"}}}\n"));
}

static enum status
data_clear_body(struct kv_tx *tx, void *arg)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct fixture *f = arg;

	rev_key_named(&key, f->db, REV_SUBSPACE_ATTACHMENTS, REV_ATT_SPACE_DATA);
	buf_append_str(&end, buf_str(&key));
	buf_append_byte(&end, CATALOG_KEY_LAST);
	return kv_clear_range(tx, buf_str(&key), buf_str(&end));
}

/* A dump ends where bytes are lost; what is made of the database is told of, and goes without. */
static void
lost_attachments_are_left_out_of_what_comes_back(void **state)
{
	struct fixture *f = *state;
	const struct rev_att_edit atts[] = { att_of("e", STR(""), REV_ATT_IDENTITY),
					     att_of("f", STR("abcd"), REV_ATT_IDENTITY) };
	struct dumped d = { .f = f,
			    .out = BUF_INIT(OUT_BYTES),
			    .told = BUF_INIT(OUT_BYTES),
			    .warned = BUF_INIT(OUT_BYTES) };

	put_with(f, atts, 2);
	assert_int_equal(kv_run(f->calm, data_clear_body, f, NULL, NULL), STATUS_OK);
	assert_string_equal(told(f),
			    "x: revision 1-77: without its attachment \"f\": its bytes are lost\n");
	assert_non_null(strstr(salvaged(f), ",\"n\":4,\"_attachments\":{\"e\":{"));
	assert_null(strstr(salvaged(f), "\"f\":{"));
	assert_int_equal(kv_run_read(f->calm, dump_body, &d, NULL), STATUS_CORRUPT);
	assert_string_equal(d.err.text, "cannot read document \"x\": corrupt");
	buf_release(&d.out);
	buf_release(&d.told);
	buf_release(&d.warned);
}

/* A body that is lost is named, by a dump of winners and by one of all revisions. */
static void
a_dump_ends_at_what_cannot_be_read(void **state)
{
	struct fixture *f = *state;

	damage(f, (struct damage){ .space = REV_SUBSPACE_DOCUMENTS, .id = "c", .rev = "1-u" });
	for (int revs = 0; revs < 2; revs++) {
		struct dumped d = { .f = f,
				    .revs = revs,
				    .out = BUF_INIT(OUT_BYTES),
				    .told = BUF_INIT(OUT_BYTES),
				    .warned = BUF_INIT(OUT_BYTES) };

		assert_int_equal(kv_run_read(f->calm, dump_body, &d, NULL), STATUS_NOT_FOUND);
		assert_string_equal(d.err.text, "cannot read document \"c\": not_found");
		buf_release(&d.out);
		buf_release(&d.told);
		buf_release(&d.warned);
	}
}

/* So is one whose leaves make no document, though all attachments beside them can be read. */
static void
a_dump_ends_at_a_body_that_cannot_be_put_together(void **state)
{
	struct fixture *f = *state;
	const struct rev_att_edit att = att_of("f", STR("abcd"), REV_ATT_IDENTITY);
	/* So long that it lies in leaves, whatever the scheme. */
	const char *json = arena_printf(f->arena, "{\"n\":\"%0*d\"}", DOC_PACKED_BYTES, 1).ptr;
	struct rev_edit edit = fixture_copy(f, "x", "1-w", false, json);
	struct rev_result result;

	edit.atts = &att;
	edit.atts_count = 1;
	fixture_write(f, &edit, 1, &result);
	assert_int_equal(result.status, STATUS_OK);
	assert_non_null(strstr(dumped(f, false, false, false), "01\",\"_attachments\":{"));
	damage(f, (struct damage){ .space = REV_SUBSPACE_DOCUMENTS,
				   .id = "x",
				   .rev = "1-w",
				   .leaf = edit.doc.leaves[0].key,
				   .cut = true });
	for (int revs = 0; revs < 2; revs++) {
		struct dumped d = { .f = f,
				    .revs = revs,
				    .out = BUF_INIT(OUT_BYTES),
				    .told = BUF_INIT(OUT_BYTES),
				    .warned = BUF_INIT(OUT_BYTES) };

		assert_int_equal(kv_run_read(f->calm, dump_body, &d, NULL), STATUS_CORRUPT);
		assert_string_equal(d.err.text, "cannot read document \"x\": corrupt");
		buf_release(&d.out);
		buf_release(&d.told);
		buf_release(&d.warned);
	}
	assert_string_equal(told(f), "x: revision 1-77: its body is lost: corrupt\n");
}

/* Hashes that CouchDB could have made are written in hexadecimal digits. */
static void
hashes_of_couchdb_are_dumped_as_digits(void **state)
{
	struct fixture *f = *state;

	fixture_replicate(f, "h", "2-967a00dff5e02add41819138abb3284d 0011", false, "{}");
	assert_non_null(strstr(dumped(f, true, false, false),
			       "{\"_id\":\"h\",\"_rev\":\"2-967a00dff5e02add41819138abb3284d\","
			       "\"_revisions\":{\"start\":2,"
			       "\"ids\":[\"967a00dff5e02add41819138abb3284d\",\"0011\"]}}\n"));
}

/* ---- The database that is made of what is left ---- */

struct adopting {
	struct fixture *f;
	uint64_t options[CATALOG_OPTIONS];
	const char *made;
};

static enum status
adopt_body(struct kv_tx *tx, void *arg)
{
	struct adopting *a = arg;
	struct err err = { 0 };

	return rev_salvage.adopt(tx, a->f->db, a->options, &a->made, &err);
}

static void
counters_of_partitions_tell_that_there_were_some(void **state)
{
	struct fixture *f = *state;
	struct adopting a = { .f = f, .made = "" };

	for (uint64_t partitioned = 0; partitioned < 2; partitioned++) {
		assert_int_equal(kv_run_read(f->calm, adopt_body, &a, NULL), STATUS_OK);
		assert_null(a.made);
		assert_int_equal(a.options[REV_OPTION_PARTITIONED], partitioned);
		assert_int_equal(a.options[REV_OPTION_REVS_LIMIT], REV_LIMIT_DEFAULT);
		assert_int_equal(a.options[REV_OPTION_SCHEME], REV_SCHEME_DEFAULT);
		if (partitioned)
			continue;
		fixture_make_partitioned(f);
		fixture_put(f, "p:a", NULL, "{\"n\":1}");
	}
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		CASE(a_dump_has_winners_or_all_revisions),
		CASE(what_is_whole_comes_back_as_it_was),
		CASE(a_lost_revision_comes_back_without_its_history),
		CASE(a_record_that_cannot_be_read_is_told_of),
		CASE(a_lost_body_is_told_of_unless_it_is_a_tombstones),
		CASE(a_line_that_cannot_be_written_ends_it),
		CASE(long_databases_are_dumped_whole),
		CASE(attachments_are_dumped_with_their_bytes),
		CASE(what_is_no_gzip_is_dumped_as_it_is_stored),
		CASE(lost_attachments_are_left_out_of_what_comes_back),
		CASE(a_dump_ends_at_what_cannot_be_read),
		CASE(a_dump_ends_at_a_body_that_cannot_be_put_together),
		CASE(hashes_of_couchdb_are_dumped_as_digits),
		CASE(counters_of_partitions_tell_that_there_were_some),
	};

	return cmocka_run_group_tests_name("dump", tests, NULL, NULL);
}
