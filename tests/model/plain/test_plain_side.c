/* Two transactions change one document side by side: the second conflicts, or both are right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "bson/json.h"
#include "fixture.h"
#include "kv/faulty/faulty.h"
#include "model/plain/plain.h"
#include "store.h"
#include "verified.h"

enum {
	START_MS = 100 * 1000 * 1000,
};

static struct str
doc_of(struct fixture *f, const char *json)
{
	AUTO(buf_release) struct buf out = BUF_INIT(4096);
	struct str doc;

	assert_int_equal(bson_json_read(str_from_cstr(json), &out, &f->err), STATUS_OK);
	doc = arena_dup(f->arena, buf_str(&out));
	assert_non_null(doc.ptr);
	return doc;
}

/* A change of document 1: `path` becomes the value of `v`. */
struct change {
	const char *path;
	const char *json;
};

/* A transaction that has made the change, or has inserted the document if there is no path. */
static struct kv_tx *
change_open(struct fixture *f, const char *name, const struct change *change)
{
	const struct bson_value id = BSON_OF_INT32(1);
	struct str doc = doc_of(f, change->json);
	struct plain_doc inserted = plain_doc_of(doc);
	struct bson_value value;
	struct plain_change set = { .value = &value };
	struct catalog_db *db;
	struct kv_tx *tx;
	struct plain p;
	bool changed;

	assert_int_equal(kv_begin(kv_faulty_inner(f->store), KV_TX_READ_WRITE, &tx), STATUS_OK);
	assert_int_equal(
		catalog_open(tx, NULL, CATALOG_SPACE_MONGO, str_from_cstr(name), &db, NULL),
		STATUS_OK);
	plain_init(&p, tx, db, START_MS, &f->err);
	if (change->path) {
		set.path = str_from_cstr(change->path);
		assert_true(bson_find(doc, STR("v"), &value));
		assert_int_equal(plain_update(&p, &id, &set, 1, STR(""), f->arena, &changed),
				 STATUS_OK);
	} else {
		assert_int_equal(plain_insert(&p, &inserted, f->arena), STATUS_OK);
	}
	catalog_db_unref(db);
	return tx;
}

static enum status
change_commit(struct kv_tx *tx)
{
	enum status status = kv_future_wait(kv_commit(tx));

	kv_tx_free(tx);
	return status;
}

/* `second` is committed behind `first`, which it does not see. */
static enum status
side_by_side(struct fixture *f, const char *name, const struct change *first,
	     const struct change *second)
{
	struct kv_tx *txs[2] = { change_open(f, name, first), change_open(f, name, second) };

	assert_int_equal(change_commit(txs[0]), STATUS_OK);
	return change_commit(txs[1]);
}

static void
remove_document(struct fixture *f, const char *name)
{
	const struct bson_value id = BSON_OF_INT32(1);
	struct catalog_db *db;
	struct kv_tx *tx;
	struct plain p;

	assert_int_equal(kv_begin(kv_faulty_inner(f->store), KV_TX_READ_WRITE, &tx), STATUS_OK);
	assert_int_equal(
		catalog_open(tx, NULL, CATALOG_SPACE_MONGO, str_from_cstr(name), &db, NULL),
		STATUS_OK);
	plain_init(&p, tx, db, START_MS, &f->err);
	assert_int_equal(plain_delete(&p, &id, STR(""), f->arena), STATUS_OK);
	catalog_db_unref(db);
	assert_int_equal(change_commit(tx), STATUS_OK);
}

/*
 * What lies in one value conflicts always. Of what lies in leaves the second change conflicts if it
 * went by what the first one has changed; what only overwrites may come behind.
 */
static void
changes_of_one_place_conflict(void **state)
{
	static const struct change document = {
		NULL, "{\"_id\":1,\"a\":{\"x\":1,\"y\":{\"z\":1}},\"l\":[1,2,3],\"s\":\"t\"}"
	};
	static const struct {
		struct change first, second;
	} cases[] = {
		/* What the second one writes into has gone, or is something else. */
		{ { "a", "{\"v\":5}" }, { "a.x", "{\"v\":2}" } },
		{ { "a", "{\"v\":5}" }, { "a.y.z", "{\"v\":2}" } },
		{ { "a.y", "{\"v\":5}" }, { "a.y.z", "{\"v\":2}" } },
		{ { "l", "{\"v\":5}" }, { "l.0", "{\"v\":2}" } },
		/* The same where the root, which has the length, stays as it is. */
		{ { "a", "{\"v\":null}" }, { "a.x", "{\"v\":2}" } },
		{ { "a.y", "{\"v\":null}" }, { "a.y.z", "{\"v\":2}" } },
		{ { "l", "{\"v\":null}" }, { "l.0", "{\"v\":2}" } },
		/* Both add to one container. */
		{ { "a.n", "{\"v\":1}" }, { "a.m", "{\"v\":1}" } },
		{ { "l.3", "{\"v\":1}" }, { "l.3", "{\"v\":2}" } },
		{ { "n", "{\"v\":1}" }, { "m", "{\"v\":1}" } },
	};
	struct fixture *f = *state;
	const char *collections[] = { PACKED, EXPLODED };

	for (size_t i = 0; i < 4 * sizeof(cases) / sizeof(cases[0]); i++) {
		const struct change *one = &cases[i / 4].first, *other = &cases[i / 4].second;
		const char *name = collections[i % 2];
		bool turned = i / 2 % 2;
		enum status status;

		assert_int_equal(change_commit(change_open(f, name, &document)), STATUS_OK);
		status = side_by_side(f, name, turned ? other : one, turned ? one : other);
		if (status != STATUS_TX_CONFLICT && !(turned && i % 2))
			fail_msg("%s, %s: %s", one->path, other->path, status_name(status));
		verified_none(f->store);
		remove_document(f, name);
	}
}

static void
of_two_documents_with_one_id_the_second_conflicts(void **state)
{
	static const struct change documents[2] = { { NULL, "{\"_id\":1,\"a\":1}" },
						    { NULL, "{\"_id\":1,\"b\":1}" } };
	struct fixture *f = *state;

	assert_int_equal(side_by_side(f, PACKED, &documents[0], &documents[1]), STATUS_TX_CONFLICT);
	assert_int_equal(side_by_side(f, EXPLODED, &documents[0], &documents[1]),
			 STATUS_TX_CONFLICT);
	verified_none(f->store);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
		CASE(changes_of_one_place_conflict),
		CASE(of_two_documents_with_one_id_the_second_conflicts),
	};

	return cmocka_run_group_tests_name("side", tests, NULL, NULL);
}
