/* Dumps of a database, and what is made of a damaged one: its revisions past what is lost. */
#include <stdio.h>
#include <stdlib.h>

#include "fixture.h"
#include "model/revisioned/revisioned_int.h"
#include "model/revisioned/salvage.h"

enum {
	OUT_BYTES = 1 << 20,
};

/* ---- Dumping ---- */

struct dumped {
	struct fixture *f;
	bool revs, salvages;
	unsigned failing; /* the line at which writing fails; 0: none */
	unsigned lines;
	struct buf out;  /* the lines */
	struct buf told; /* "id: why", a line each */
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
	(void)arg;
	fail_msg("%s", text);
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
	return d->salvages ? rev_salvage.dump(&dump, &broken) : d->f->db->kind->dump(&dump);
}

/* The lines, or what is told; either lasts as long as the test. */
static const char *
dumped(struct fixture *f, bool revs, bool salvages, bool told)
{
	struct dumped d = { .f = f,
			    .revs = revs,
			    .salvages = salvages,
			    .out = BUF_INIT(OUT_BYTES),
			    .told = BUF_INIT(OUT_BYTES) };
	struct str ret;

	if (kv_run_read(f->calm, dump_body, &d, NULL) != STATUS_OK)
		fail_msg("%s", d.err.text);
	ret = arena_dup(f->arena, buf_str(told ? &d.told : &d.out));
	buf_release(&d.out);
	buf_release(&d.told);
	return ret.ptr;
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
	bool deleted; /* of the revision */
	bool cut;     /* its pair is cut; else it is lost, with what lies beneath it */
};

static enum status
damage_body(struct kv_tx *tx, void *arg)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	const struct damage *d = arg;

	rev_key_rev(&key, d->f->db, d->space, str_from_cstr(d->id), d->deleted,
		    fixture_rev(d->f, d->rev));
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
					    .told = BUF_INIT(OUT_BYTES) };

			assert_int_equal(kv_run_read(d.f->calm, dump_body, &d, NULL), STATUS_IO);
			assert_int_equal(d.lines, line);
			assert_string_equal(d.err.text, "the disk is full");
			assert_int_equal(d.told.len, 0);
			buf_release(&d.out);
			buf_release(&d.told);
		}
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
	};

	return cmocka_run_group_tests_name("dump", tests, NULL, NULL);
}
