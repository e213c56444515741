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
#include "model/plain/index.h"
#include "store.h"
#include "verified.h"

enum {
	START_MS = 100 * 1000 * 1000,
	SAID_BYTES = 64 * 1024,
	NOTE_ID = 9, /* of what a command leaves that only reads */
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
index_make(struct fixture *f, const char *name, const char *json)
{
	struct catalog_db *db;
	uint64_t number;
	struct kv_tx *tx;

	assert_int_equal(kv_begin(kv_faulty_inner(f->store), KV_TX_READ_WRITE, &tx), STATUS_OK);
	assert_int_equal(
		catalog_open(tx, NULL, CATALOG_SPACE_MONGO, str_from_cstr(name), &db, NULL),
		STATUS_OK);
	assert_int_equal(plain_index_create(tx, db, doc_of(f, json), f->arena, &number, &f->err),
			 STATUS_OK);
	catalog_db_unref(db);
	assert_int_equal(change_commit(tx), STATUS_OK);
}

/* A filter that may look at any member: what enters the index was read whole. */
static void
an_entry_conflicts_with_changes_of_what_its_filter_may_read(void **state)
{
	static const struct change document = { NULL, "{\"_id\":1,\"a\":1,\"f\":1}" };
	static const struct change key = { "a", "{\"v\":2}" }, filtered = { "f", "{\"v\":2}" };
	struct fixture *f = *state;

	index_make(f, EXPLODED,
		   "{\"name\":\"x\",\"key\":{\"a\":1},"
		   "\"partialFilterExpression\":{\"$expr\":{\"$gt\":[\"$f\",1]}}}");
	for (int turned = 0; turned < 2; turned++) {
		assert_int_equal(change_commit(change_open(f, EXPLODED, &document)), STATUS_OK);
		assert_int_equal(side_by_side(f, EXPLODED, turned ? &key : &filtered,
					      turned ? &filtered : &key),
				 STATUS_TX_CONFLICT);
		verified_none(f->store);
		remove_document(f, EXPLODED);
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

/* ---- Each command beside each ---- */

enum command_kind {
	INSERT,
	INSERT_NEW, /* it has looked before what is new */
	UPSERT,
	REPLACE,
	DELETE,
	SET,
	UNSET,
	NOTE,
	NOTE_PATH,
	NOTE_PARTS,
};

/* A command on a document of the collection. */
struct command {
	enum command_kind kind;
	int id;
	const char *path;
	const char *json; /* the document; of SET one that has the value as "v" */
};

static const struct command commands[] = {
	{ INSERT, 2, NULL, "{\"_id\":2,\"u\":5,\"a\":1}" },
	{ INSERT_NEW, 2, NULL, "{\"_id\":2,\"u\":6}" },
	{ UPSERT, 2, NULL, "{\"_id\":2,\"u\":7,\"l\":[1]}" },
	{ UPSERT, 1, NULL, "{\"_id\":1,\"u\":1,\"a\":{\"x\":9}}" },
	{ REPLACE, 1, NULL, "{\"_id\":1,\"u\":5,\"a\":{\"y\":{\"z\":9}}}" },
	{ DELETE, 1, NULL, NULL },
	{ SET, 1, "a", "{\"v\":5}" },
	{ SET, 1, "a.x", "{\"v\":2}" },
	{ SET, 1, "a.n", "{\"v\":\"new\"}" },
	{ SET, 1, "l.3", "{\"v\":8}" },
	{ SET, 1, "s", "{\"v\":\"t\"}" }, /* as it is */
	{ SET, 1, "u", "{\"v\":5}" },
	{ SET, 1, "a", "{\"v\":{\"x\":1,\"y\":{\"z\":1}}}" }, /* as it is */
	{ SET, 1, "d", "{\"v\":{\"b\":1,\"b\":2}}" },         /* no leaves can have that */
	{ UNSET, 1, "a", NULL },
	{ UNSET, 1, "a.x", NULL },
	{ NOTE, 1, NULL, NULL },
	{ NOTE, 2, NULL, NULL },
	{ NOTE_PATH, 1, "a.y", NULL },
	{ NOTE_PATH, 1, "l.0", NULL },
	{ NOTE_PARTS, 1, "a.x", NULL },
};

enum {
	COMMANDS = sizeof(commands) / sizeof(commands[0]),
};

/* One in a transaction. */
struct command_call {
	struct fixture *f;
	const char *collection;
	const struct command *command;
	int note_id;
	enum status status; /* of the command; it is committed if that is STATUS_OK */
	struct buf said;
};

/* What was read becomes a document of its own. */
static enum status
command_note(struct command_call *c, struct plain *p, enum status status, struct str read)
{
	AUTO(buf_release) struct buf hex = BUF_INIT(SAID_BYTES);
	struct plain_doc note;
	struct str json;

	if (status != STATUS_OK && status != STATUS_NOT_FOUND)
		return status;
	buf_append_hex(&hex, status == STATUS_OK ? read : STR("none"));
	buf_printf(&c->said, "%.*s", STR_ARG(buf_str(&hex)));
	/* Of a "u" of its own, so that it meets nobody else in the index. */
	json = arena_printf(c->f->arena, "{\"_id\":%d,\"u\":%d,\"hex\":\"%.*s\"}", c->note_id,
			    c->note_id, STR_ARG(buf_str(&hex)));
	note = plain_doc_of(doc_of(c->f, json.ptr));
	return plain_replace(p, &note, true, PLAIN_EVENT_REPLACE, STR(""), c->f->arena);
}

static enum status
command_read(struct command_call *c, struct plain *p, const struct bson_value *id)
{
	const struct plain_part part = { .path = STR("a.x"), .positions = true };
	struct arena *arena = c->f->arena;
	struct bson_value value = BSON_OF_INT32(0);
	enum status status;
	struct str read = { 0 };
	bool whole;

	if (c->command->kind == NOTE) {
		status = plain_get(p, id, KV_READ, arena, &read);
		return command_note(c, p, status, read);
	}
	if (c->command->kind == NOTE_PARTS) {
		status = plain_get_parts(p, id, &part, 1, KV_READ, arena, &read, &whole);
		return command_note(c, p, status, read);
	}
	status = plain_get_path(p, id, str_from_cstr(c->command->path), KV_READ, arena, &value);
	read = bson_is_container(&value) ? bson_text(&value)
					 : arena_printf(arena, "%d", (int)bson_integer(&value));
	return command_note(c, p, status, read);
}

static enum status
command_run(struct command_call *c, struct plain *p)
{
	const struct command *command = c->command;
	const struct bson_value id = BSON_OF_INT32(command->id);
	struct arena *arena = c->f->arena;
	struct plain_doc doc = { 0 };
	struct bson_value value;
	struct plain_change change = { 0 };
	enum status status;
	bool changed = false;

	if (command->json)
		doc = plain_doc_of(doc_of(c->f, command->json));
	if (command->path)
		change.path = str_from_cstr(command->path);
	if (command->kind == INSERT_NEW)
		TRY(plain_find_new(p, &id, 1, arena, &doc.is_new));
	if (command->kind == INSERT || command->kind == INSERT_NEW)
		return plain_insert(p, &doc, arena);
	if (command->kind == UPSERT || command->kind == REPLACE)
		return plain_replace(p, &doc, command->kind == UPSERT, PLAIN_EVENT_REPLACE, STR(""),
				     arena);
	if (command->kind == DELETE)
		return plain_delete(p, &id, STR(""), arena);
	if (command->kind != SET && command->kind != UNSET)
		return command_read(c, p, &id);
	if (command->kind == SET) {
		change.value = &value;
		assert_true(bson_find(doc_of(c->f, command->json), STR("v"), &value));
	}
	status = plain_update(p, &id, &change, 1, STR(""), arena, &changed);
	buf_printf(&c->said, "%d", changed);
	/* What it has found is noted, too: it has changed nothing because of that. */
	return status == STATUS_OK ? command_note(c, p, STATUS_OK, STR("")) : status;
}

/* A transaction in which the command has been run. */
static struct kv_tx *
command_open(struct command_call *c)
{
	struct catalog_db *db;
	struct kv_tx *tx;
	struct plain p;

	buf_clear(&c->said);
	assert_int_equal(kv_begin(kv_faulty_inner(c->f->store), KV_TX_READ_WRITE, &tx), STATUS_OK);
	assert_int_equal(catalog_open(tx, NULL, CATALOG_SPACE_MONGO, str_from_cstr(c->collection),
				      &db, NULL),
			 STATUS_OK);
	plain_init(&p, tx, db, START_MS, &c->f->err);
	c->status = command_run(c, &p);
	catalog_db_unref(db);
	return tx;
}

static void
command_must(struct command_call *c)
{
	struct kv_tx *tx = command_open(c);

	if (c->status == STATUS_OK)
		assert_int_equal(change_commit(tx), STATUS_OK);
	else
		kv_tx_free(tx);
}

/* Document 1 as it is at first, and no other one. */
static void
commands_prepare(struct fixture *f, const char *collection)
{
	static const struct change document = {
		NULL,
		"{\"_id\":1,\"u\":1,\"a\":{\"x\":1,\"y\":{\"z\":1}},\"l\":[1,2,3],\"s\":\"t\"}"
	};
	struct command delete = { .kind = DELETE };
	struct command_call c = {
		.f = f, .collection = collection, .command = &delete, .said = BUF_INIT(SAID_BYTES)
	};

	for (delete.id = 1; delete.id <= NOTE_ID + 1; delete.id++)
		command_must(&c);
	assert_int_equal(change_commit(change_open(f, collection, &document)), STATUS_OK);
	buf_release(&c.said);
}

/* All documents, how many there are, and what the second command has said. */
static struct str
commands_draw(const struct command_call *second)
{
	struct fixture *f = second->f;
	struct buf out = BUF_INIT(SAID_BYTES);
	struct catalog_db *db;
	struct kv_tx *tx;
	struct plain p;
	struct str got;
	uint64_t count;

	assert_int_equal(kv_begin(kv_faulty_inner(f->store), KV_TX_READ_ONLY, &tx), STATUS_OK);
	assert_int_equal(catalog_open(tx, NULL, CATALOG_SPACE_MONGO,
				      str_from_cstr(second->collection), &db, NULL),
			 STATUS_OK);
	plain_init(&p, tx, db, START_MS, &f->err);
	assert_int_equal(plain_count(&p, &count), STATUS_OK);
	buf_printf(&out, "%s, said %.*s, %llu:", status_name(second->status),
		   STR_ARG(buf_str(&second->said)), (unsigned long long)count);
	for (int i = 1; i <= NOTE_ID + 1; i++) {
		const struct bson_value id = BSON_OF_INT32(i);

		if (plain_get(&p, &id, KV_READ, f->arena, &got) != STATUS_OK)
			continue;
		buf_printf(&out, "\n%d: ", i);
		buf_append_hex(&out, got);
	}
	catalog_db_unref(db);
	kv_tx_free(tx);
	got = arena_dup(f->arena, buf_str(&out));
	buf_release(&out);
	return got;
}

static void
commands_cross(struct fixture *f, const char *collection)
{
	struct command_call first = { .f = f, .collection = collection, .note_id = NOTE_ID };
	struct command_call second = { .f = f, .collection = collection, .note_id = NOTE_ID + 1 };
	unsigned committed = 0, noted = 0;

	buf_init(&first.said, SAID_BYTES);
	buf_init(&second.said, SAID_BYTES);
	for (size_t i = 0; i < (size_t)COMMANDS * COMMANDS; i++) {
		enum status status = STATUS_TX_CONFLICT;
		struct str got, wanted;
		struct kv_tx *tx;

		arena_clear(f->arena);
		first.command = &commands[i / COMMANDS];
		second.command = &commands[i % COMMANDS];
		commands_prepare(f, collection);
		tx = command_open(&second);
		command_must(&first);
		if (second.status == STATUS_OK)
			status = change_commit(tx);
		else
			kv_tx_free(tx);
		if (status != STATUS_OK)
			continue; /* it runs again, or was refused for what it has seen */
		committed++;
		noted += first.command->kind >= SET && second.command->kind >= SET;
		got = commands_draw(&second);
		commands_prepare(f, collection);
		command_must(&first);
		command_must(&second);
		wanted = commands_draw(&second);
		if (!str_eq(got, wanted))
			fail_msg("%s: command %zu, with %zu before its commit: %.*s\nis not %.*s",
				 collection, i % COMMANDS, i / COMMANDS, STR_ARG(got),
				 STR_ARG(wanted));
	}
	/* That all conflict would be right, and of no use; or all that leave notes. */
	assert_true(committed > noted && noted > 0);
	verified_none(f->store);
	buf_release(&first.said);
	buf_release(&second.said);
}

/*
 * Each command runs in a transaction before whose commit another one commits. It conflicts, or what
 * it has told and left is as if it had begun behind the other one.
 */
static void
commands_are_one_after_the_other(void **state)
{
	/* It refuses a second document with the same "u". */
	static const char unique[] = "{\"key\":{\"u\":1},\"name\":\"u\",\"unique\":true}";

	index_make(*state, PACKED, unique);
	index_make(*state, EXPLODED, unique);
	commands_cross(*state, PACKED);
	commands_cross(*state, EXPLODED);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
		CASE(changes_of_one_place_conflict),
		CASE(an_entry_conflicts_with_changes_of_what_its_filter_may_read),
		CASE(of_two_documents_with_one_id_the_second_conflicts),
		CASE(commands_are_one_after_the_other),
	};

	return cmocka_run_group_tests_name("side", tests, NULL, NULL);
}
