/* Many documents are looked for before the first of them is inserted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "model/plain/plain.h"
#include "store.h"

enum {
	START_MS = 100 * 1000 * 1000,
	MANY = 16,
	DOC_BYTES = 64,
	MOST = 100, /* ids: more than are looked for at the same time */
};

/* Documents whose `_id`s are these numbers are inserted; those that are there are left out. */
struct insert {
	struct fixture *f;
	const char *name;
	const int *numbers;
	size_t count;
	bool looks; /* for all of them before */

	size_t inserted;
	size_t new;     /* of them, that the look has told */
	uint64_t reads; /* of the look */
	bool is_there[MANY];
};

static struct str
doc_of(int number, struct buf *room)
{
	struct bson_builder b;

	buf_clear(room);
	bson_builder_init(&b, room);
	bson_begin(&b);
	bson_put_int32(&b, STR("_id"), number);
	bson_begin_document(&b, STR("m"));
	bson_put_int32(&b, STR("n"), number);
	bson_end(&b);
	bson_end(&b);
	assert_int_equal(buf_status(room), STATUS_OK);
	return buf_str(room);
}

static struct bson_value
id_of(int number)
{
	return (struct bson_value){ .type = BSON_INT32, .as_n = number };
}

static enum status
insert_all(struct insert *in, struct plain *p)
{
	struct buf AUTO(buf_release) room = BUF_INIT(DOC_BYTES);
	struct kv_tx_stats before = kv_tx_stats(p->tx);
	struct bson_value ids[MANY];
	bool are_new[MANY] = { false };

	assert_true(in->count <= MANY);
	in->inserted = in->new = 0;
	for (size_t i = 0; i < in->count; i++)
		ids[i] = id_of(in->numbers[i]);
	if (in->looks)
		TRY(plain_find_new(p, ids, in->count, in->f->arena, are_new));
	in->reads = kv_tx_stats(p->tx).reads - before.reads;
	for (size_t i = 0; i < in->count; i++) {
		struct plain_doc doc = plain_doc_of(doc_of(in->numbers[i], &room));
		enum status status;

		doc.is_new = are_new[i];
		status = plain_insert(p, &doc, in->f->arena);
		in->is_there[i] = status == STATUS_EXISTS;
		if (!in->is_there[i])
			TRY(status);
		in->inserted += !in->is_there[i];
		in->new += are_new[i];
	}
	return STATUS_OK;
}

static enum status
insert_body(struct kv_tx *tx, void *arg)
{
	struct insert *in = arg;
	struct catalog_db *db;
	enum status status;
	struct plain p;

	TRY(catalog_open(tx, NULL, CATALOG_SPACE_MONGO, str_from_cstr(in->name), &db, NULL));
	plain_init(&p, tx, db, START_MS, &in->f->err);
	status = insert_all(in, &p);
	catalog_db_unref(db);
	return status;
}

/* `expected` has an n for each document that is new, and an e for each that exists. */
static struct insert
insert(struct fixture *f, const char *name, const int *numbers, const char *expected)
{
	struct insert in = {
		.f = f, .name = name, .numbers = numbers, .count = strlen(expected), .looks = true
	};

	assert_int_equal(kv_run(f->store, insert_body, &in, NULL, &f->err), STATUS_OK);
	for (size_t i = 0; i < in.count; i++)
		assert_int_equal(in.is_there[i], expected[i] == 'e');
	return in;
}

static void
many_documents_are_found_to_be_new_at_once(void **state)
{
	static const int ascending[] = { 10, 20, 30, 40 }, between[] = { 21, 22, 23 },
			 mixed[] = { 35, 5, 30, 12, 5, 40, 35, 50 }, one[] = { 60 };
	static const char *const names[] = { PACKED, EXPLODED };
	struct fixture *f = *state;

	for (size_t i = 0; i < 2; i++) {
		struct insert in = insert(f, names[i], ascending, "nnnn");

		/* One look at the stretch from the first to the last. */
		assert_int_equal(in.new, 4);
		assert_int_equal(in.reads, 1);
		in = insert(f, names[i], between, "nnn");
		assert_int_equal(in.new, 3);
		assert_int_equal(in.reads, 1);
		/* Others lie between them, some are there, and some come twice. */
		in = insert(f, names[i], mixed, "nneneeen");
		assert_int_equal(in.new, 4);
		assert_int_equal(in.inserted, 4);
		insert(f, names[i], one, "n");
		insert(f, names[i], one, "e");
	}
}

static void
those_of_which_nothing_is_known_are_looked_for_one_by_one(void **state)
{
	static const int numbers[] = { 1, 2, 1 };
	struct fixture *f = *state;
	struct insert in = { .f = f, .name = PACKED, .numbers = numbers, .count = 3 };

	assert_int_equal(kv_run(f->store, insert_body, &in, NULL, &f->err), STATUS_OK);
	assert_int_equal(in.inserted, 2);
	assert_true(in.is_there[2]);
}

/* Somebody who inserts another document after the look of the first attempt. */
struct rival {
	struct fixture *f;
	int number;
	bool wrote;
	unsigned attempts;
};

static enum status
rival_look(struct rival *r, struct plain *p)
{
	const struct bson_value ids[] = { id_of(1), id_of(3) };
	struct buf AUTO(buf_release) room = BUF_INIT(DOC_BYTES);
	struct plain_doc doc = plain_doc_of(doc_of(1, &room));
	bool are_new[2];

	TRY(plain_find_new(p, ids, 2, r->f->arena, are_new));
	if (!r->wrote) {
		r->wrote = true;
		insert(r->f, PACKED, &r->number, "n");
	}
	assert_true(are_new[0]);
	doc.is_new = true;
	return plain_insert(p, &doc, r->f->arena);
}

static enum status
rival_body(struct kv_tx *tx, void *arg)
{
	struct rival *r = arg;
	struct catalog_db *db;
	enum status status;
	struct plain p;

	r->attempts++;
	TRY(catalog_open(tx, NULL, CATALOG_SPACE_MONGO, STR(PACKED), &db, NULL));
	plain_init(&p, tx, db, START_MS, &r->f->err);
	status = rival_look(r, &p);
	catalog_db_unref(db);
	return status;
}

static void
a_look_conflicts_over_nothing_between_the_ids(void **state)
{
	struct fixture *f = *state;
	struct rival r = { .f = f, .number = 2 };

	assert_int_equal(kv_run(f->store, rival_body, &r, NULL, &f->err), STATUS_OK);
	if (!test_store_fails())
		assert_int_equal(r.attempts, 1);
}

static void
a_look_conflicts_over_each_of_the_ids(void **state)
{
	struct fixture *f = *state;
	struct rival r = { .f = f, .number = 3 };

	assert_int_equal(kv_run(f->store, rival_body, &r, NULL, &f->err), STATUS_OK);
	assert_true(r.attempts >= 2);
}

/* Finds out which are new of `count` ids, of which one may be too long, and one is there. */
struct look {
	struct fixture *f;
	size_t count;
	size_t too_long; /* SIZE_MAX: none */
	bool are_new[MOST];
};

static enum status
look_body(struct kv_tx *tx, void *arg)
{
	static char text[PLAIN_ID_VALUE_BYTES];
	struct bson_value ids[MOST];
	struct look *l = arg;
	struct catalog_db *db;
	enum status status;
	struct plain p;

	memset(text, 'i', sizeof(text));
	for (size_t i = 0; i < l->count; i++)
		ids[i] = id_of((int)i);
	if (l->too_long < l->count)
		ids[l->too_long] = BSON_OF_STRING(str_of(text, sizeof(text)));
	TRY(catalog_open(tx, NULL, CATALOG_SPACE_MONGO, STR(PACKED), &db, NULL));
	plain_init(&p, tx, db, START_MS, &l->f->err);
	status = plain_find_new(&p, ids, l->count, l->f->arena, l->are_new);
	catalog_db_unref(db);
	return status;
}

/* However many are looked for at the same time, each is told. */
static void
each_of_many_ids_is_told(void **state)
{
	static const struct {
		size_t count, too_long;
	} cases[] = { { 0, SIZE_MAX },  { 1, SIZE_MAX },  { 31, SIZE_MAX }, { 32, SIZE_MAX },
		      { 33, SIZE_MAX }, { 64, SIZE_MAX }, { 65, SIZE_MAX }, { MOST, SIZE_MAX },
		      { 1, 0 },         { 3, 0 },         { 3, 2 },         { 40, 39 },
		      { MOST, 7 } };
	struct fixture *f = *state;
	const int there[] = { 5 };

	for (int full = 0; full < 2; full++) {
		if (full)
			(void)insert(f, PACKED, there, "n");
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			struct look l = { .f = f,
					  .count = cases[i].count,
					  .too_long = cases[i].too_long };

			assert_int_equal(kv_run_read(f->store, look_body, &l, &f->err), STATUS_OK);
			for (size_t k = 0; k < l.count; k++)
				if (l.are_new[k] != (k != l.too_long && !(full && k == 5)))
					fail_msg("%zu of %zu", k, l.count);
		}
	}
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(many_documents_are_found_to_be_new_at_once),
		CASE(those_of_which_nothing_is_known_are_looked_for_one_by_one),
		CASE(a_look_conflicts_over_nothing_between_the_ids),
		CASE(a_look_conflicts_over_each_of_the_ids),
		CASE(each_of_many_ids_is_told),
	};

	return cmocka_run_group_tests_name("plain_new", tests, NULL, NULL);
}
