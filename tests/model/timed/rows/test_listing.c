/* Listings of the past of rows: what was there at a moment, what was struck, and deletions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "catalog/draw.h"
#include "catalog/store_format.h"
#include "kv/tuple.h"
#include "model/timed/rows/rows.h"
#include "model/timed/timed_int.h"
#include "store.h"

enum {
	ARENA_BYTES = 16 * 1024 * 1024,
	START_MS = 1000 * 1000,
	SAID_BYTES = 1024 * 1024,
};

#define TABLE "table" /* (a, b) with the columns x, y */
#define KEYS  "keys"  /* (a), without columns */

struct fixture {
	char dir[64];
	struct kv_store *store;
	struct arena *arena;
	struct arena_mark mark;
	struct timed_clock clock;
	uint64_t now_ms;
	struct err err;
	const char *db;
	enum status (*body)(struct timed *t, struct fixture *f);
	unsigned step;
	uint64_t at_ms; /* of a listing */
	struct buf said;
};

static uint64_t
fixture_now(void *arg)
{
	const struct fixture *f = arg;

	return f->now_ms;
}

static enum status
create_body(struct kv_tx *tx, void *arg)
{
	struct timed_key_column key[] = { { .name = STR("a") }, { .name = STR("b") } };
	struct str columns[] = { STR("x"), STR("y") };
	const struct timed_schema table = { key, 1, 2, columns, 2 };
	const struct timed_schema keys = { key, 1, 1, NULL, 0 };

	(void)arg;
	TRY(timed_create(tx, STR(TABLE), &table, 0, NULL));
	return timed_create(tx, STR(KEYS), &keys, 0, NULL);
}

static int
fixture_setup(void **state)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct fixture *f = calloc(1, sizeof(*f));
	char url[256];

	test_show_failures();
	timed_rows_register();
	test_make_dir("listing", f->dir, sizeof(f->dir));
	test_store_url(f->dir, url, sizeof(url));
	assert_int_equal(catalog_store_open(url, &options, &f->store, &f->err), STATUS_OK);
	f->arena = arena_new(ARENA_BYTES);
	f->mark = arena_mark(f->arena);
	f->clock = (struct timed_clock){ .now_ms = fixture_now, .arg = f };
	f->now_ms = START_MS;
	f->said = (struct buf)BUF_INIT(SAID_BYTES);
	assert_int_equal(kv_run(f->store, create_body, NULL, NULL, &f->err), STATUS_OK);
	*state = f;
	return 0;
}

static int
fixture_teardown(void **state)
{
	struct fixture *f = *state;

	buf_release(&f->said);
	arena_free(f->arena);
	kv_close(f->store);
	test_remove_tree(f->dir);
	free(f);
	return 0;
}

static enum status
work_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;
	struct catalog_db *db;
	enum status status;
	struct timed t;

	arena_reset(f->arena, f->mark);
	f->err.text[0] = '\0';
	TRY(catalog_open(tx, NULL, CATALOG_SPACE_ROWS, str_from_cstr(f->db), &db, &f->err));
	timed_init(&t, tx, db, &f->clock, &f->err);
	status = f->body(&t, f);
	catalog_db_unref(db);
	return status;
}

static enum status
work(struct fixture *f, const char *db, enum status (*body)(struct timed *t, struct fixture *f))
{
	f->db = db;
	f->body = body;
	return kv_run(f->store, work_body, f, NULL, &f->err);
}

static void
must(struct fixture *f, const char *db, enum status (*body)(struct timed *t, struct fixture *f))
{
	enum status status = work(f, db, body);

	if (status != STATUS_OK)
		fail_msg("%s: %s", status_name(status), f->err.text);
}

static struct doc_scalar
text(const char *s)
{
	return (struct doc_scalar){ .kind = DOC_TEXT, .text = str_from_cstr(s) };
}

static enum status
keep_run(struct timed *t, struct fixture *f)
{
	(void)f;
	return timed_history_set(t, (struct timed_history_bounds){ .seconds = 1000 });
}

static enum status
begin_run(struct timed *t, struct fixture *f)
{
	(void)f;
	return timed_history_begin(t);
}

static void
keep_history(struct fixture *f, const char *db)
{
	must(f, db, keep_run);
	must(f, db, begin_run);
}

/* ---- Listings ---- */

/* Lines of what is live, of what is struck, of deletions. */
static enum status
list_line(void *arg, const struct timed_line *line)
{
	static const char marks[] = { [TIMED_LISTED_LIVE] = '+',
				      [TIMED_LISTED_STRUCK] = '-',
				      [TIMED_LISTED_DELETION] = 'x' };
	struct timed *t = ((void **)arg)[0];
	struct fixture *f = ((void **)arg)[1];
	struct str tail = str_skip(line->pair.key, t->db->prefix.len + TIMED_SPACE_BYTES);

	buf_printf(&f->said, "%c ", marks[line->kind]);
	if (line->kind == TIMED_LISTED_DELETION)
		assert_true(timed_draw_deletion(t->db, line, &f->said));
	else
		assert_true(t->db->kind->draw_pair(t->db, TIMED_SPACE_ROWS, tail, line->pair.value,
						   &f->said));
	buf_append_byte(&f->said, '\n');
	return STATUS_OK;
}

static enum status
list_run(struct timed *t, struct fixture *f)
{
	void *arg[] = { t, f };

	buf_clear(&f->said);
	if (f->at_ms)
		timed_at(t, f->at_ms);
	return timed_list(t, list_line, arg);
}

/* Lists at a moment, so many seconds behind the start; the times in lines are seconds, too. */
static void
expect_listing(struct fixture *f, const char *db, unsigned at_s, const char *want)
{
	AUTO(buf_release) struct buf said = BUF_INIT(SAID_BYTES);
	struct str rest;

	f->at_ms = at_s ? START_MS + 1000 * at_s : 0;
	must(f, db, list_run);
	for (rest = buf_str(&f->said); rest.len;) {
		unsigned hours, minutes, seconds, us;
		const char *time = rest.len > 26 ? rest.ptr : "";

		if (sscanf(time, "1970-01-01T%2u:%2u:%2u.%6uZ", &hours, &minutes, &seconds, &us) ==
		    4) {
			seconds += 60 * minutes + 3600 * hours;
			buf_printf(&said, "%us%s", seconds - START_MS / 1000, us ? "+" : "");
			rest = str_skip(rest, 27);
		} else {
			buf_append_byte(&said, (uint8_t)rest.ptr[0]);
			rest = str_skip(rest, 1);
		}
	}
	buf_append_byte(&said, '\0');
	assert_string_equal(said.ptr, want);
}

static enum status
row_run(struct timed *t, struct fixture *f)
{
	const struct doc_scalar parts[] = { text("k"), { .kind = DOC_INT64, .n = 1 } };
	const struct timed_key key = { parts, 2 };
	struct timed_step x = { .column = 1 }, y = { .column = 2 };
	struct timed_step m = { .key = text("m") }, n = { .key = text("n") };
	const struct timed_path at_x = { &x, 1 }, at_y = { &y, 1 }, row = { NULL, 0 };
	const struct timed_expiry never = { .kind = TIMED_EXPIRY_NEVER };
	const struct timed_expiry soon = { .kind = TIMED_EXPIRY_AFTER, .ms = 1000 };
	struct timed_value map[] = { { { &m, 1 }, text("M") }, { { &n, 1 }, text("N") } };
	struct timed_value one = { { NULL, 0 }, text("1") };

	switch (f->step) {
	case 1:
		TRY(timed_insert(t, &key, never));
		TRY(timed_put(t, &key, &at_x, &one, 1, never));
		return timed_put(t, &key, &at_y, map, 2, never);
	case 2:
		one.value = text("2");
		return timed_put(t, &key, &at_x, &one, 1, never);
	case 3:
		return timed_clear(t, &key, &at_y);
	case 4:
		one.value = text("s");
		return timed_put(t, &key, &at_y, &one, 1, never);
	case 5:
		return timed_put(t, &key, &at_y, map, 1, never);
	case 6:
		one.value = text("z");
		return timed_put(t, &key, &at_y, &one, 1, never);
	case 7:
		return timed_clear(t, &key, &row);
	case 8:
		one.value = text("8");
		return timed_put(t, &key, &at_x, &one, 1, soon);
	default:
		return STATUS_INVALID;
	}
}

static void
a_row_is_listed_as_it_was(void **state)
{
	struct fixture *f = *state;

	keep_history(f, TABLE);
	for (f->step = 1; f->step <= 8; f->step++) {
		f->now_ms = START_MS + 1000 * f->step;
		must(f, TABLE, row_run);
	}
	f->now_ms = START_MS + 20 * 1000;
	expect_listing(f, TABLE, 1,
		       "+ (0x5f7e, 'k', 1), liveness_column_id, 1s -> [NULL]\n"
		       "+ (0x5f7e, 'k', 1), x_column_id, 1s -> '1'\n"
		       "+ (0x5f7e, 'k', 1), y_column_id, 'm', 1s -> 'M'\n"
		       "+ (0x5f7e, 'k', 1), y_column_id, 'n', 1s -> 'N'\n");
	expect_listing(f, TABLE, 2,
		       "+ (0x5f7e, 'k', 1), liveness_column_id, 1s -> [NULL]\n"
		       "+ (0x5f7e, 'k', 1), x_column_id, 2s -> '2'\n"
		       "- (0x5f7e, 'k', 1), x_column_id, 1s -> '1'\n"
		       "+ (0x5f7e, 'k', 1), y_column_id, 'm', 1s -> 'M'\n"
		       "+ (0x5f7e, 'k', 1), y_column_id, 'n', 1s -> 'N'\n");
	expect_listing(f, TABLE, 3,
		       "+ (0x5f7e, 'k', 1), liveness_column_id, 1s -> [NULL]\n"
		       "+ (0x5f7e, 'k', 1), x_column_id, 2s -> '2'\n"
		       "- (0x5f7e, 'k', 1), x_column_id, 1s -> '1'\n"
		       "x (0x5f7e, 'k', 1), y_column_id, 3s -> [DELETE]\n"
		       "- (0x5f7e, 'k', 1), y_column_id, 'm', 1s -> 'M'\n"
		       "- (0x5f7e, 'k', 1), y_column_id, 'n', 1s -> 'N'\n");
	expect_listing(f, TABLE, 4,
		       "+ (0x5f7e, 'k', 1), liveness_column_id, 1s -> [NULL]\n"
		       "+ (0x5f7e, 'k', 1), x_column_id, 2s -> '2'\n"
		       "- (0x5f7e, 'k', 1), x_column_id, 1s -> '1'\n"
		       "+ (0x5f7e, 'k', 1), y_column_id, 4s -> 's'\n"
		       "x (0x5f7e, 'k', 1), y_column_id, 3s -> [DELETE]\n"
		       "- (0x5f7e, 'k', 1), y_column_id, 'm', 1s -> 'M'\n"
		       "- (0x5f7e, 'k', 1), y_column_id, 'n', 1s -> 'N'\n");
	expect_listing(f, TABLE, 5,
		       "+ (0x5f7e, 'k', 1), liveness_column_id, 1s -> [NULL]\n"
		       "+ (0x5f7e, 'k', 1), x_column_id, 2s -> '2'\n"
		       "- (0x5f7e, 'k', 1), x_column_id, 1s -> '1'\n"
		       "x (0x5f7e, 'k', 1), y_column_id, 5s -> [DELETE]\n"
		       "- (0x5f7e, 'k', 1), y_column_id, 4s -> 's'\n"
		       "x (0x5f7e, 'k', 1), y_column_id, 3s -> [DELETE]\n"
		       "+ (0x5f7e, 'k', 1), y_column_id, 'm', 5s -> 'M'\n"
		       "- (0x5f7e, 'k', 1), y_column_id, 'm', 1s -> 'M'\n"
		       "- (0x5f7e, 'k', 1), y_column_id, 'n', 1s -> 'N'\n");
	expect_listing(f, TABLE, 6,
		       "+ (0x5f7e, 'k', 1), liveness_column_id, 1s -> [NULL]\n"
		       "+ (0x5f7e, 'k', 1), x_column_id, 2s -> '2'\n"
		       "- (0x5f7e, 'k', 1), x_column_id, 1s -> '1'\n"
		       "+ (0x5f7e, 'k', 1), y_column_id, 6s -> 'z'\n"
		       "x (0x5f7e, 'k', 1), y_column_id, 5s -> [DELETE]\n"
		       "- (0x5f7e, 'k', 1), y_column_id, 4s -> 's'\n"
		       "x (0x5f7e, 'k', 1), y_column_id, 3s -> [DELETE]\n"
		       "- (0x5f7e, 'k', 1), y_column_id, 'm', 5s -> 'M'\n"
		       "- (0x5f7e, 'k', 1), y_column_id, 'm', 1s -> 'M'\n"
		       "- (0x5f7e, 'k', 1), y_column_id, 'n', 1s -> 'N'\n");
	expect_listing(f, TABLE, 7,
		       "x (0x5f7e, 'k', 1), 7s -> [DELETE]\n"
		       "- (0x5f7e, 'k', 1), liveness_column_id, 1s -> [NULL]\n"
		       "- (0x5f7e, 'k', 1), x_column_id, 2s -> '2'\n"
		       "- (0x5f7e, 'k', 1), x_column_id, 1s -> '1'\n"
		       "- (0x5f7e, 'k', 1), y_column_id, 6s -> 'z'\n"
		       "x (0x5f7e, 'k', 1), y_column_id, 5s -> [DELETE]\n"
		       "- (0x5f7e, 'k', 1), y_column_id, 4s -> 's'\n"
		       "x (0x5f7e, 'k', 1), y_column_id, 3s -> [DELETE]\n"
		       "- (0x5f7e, 'k', 1), y_column_id, 'm', 5s -> 'M'\n"
		       "- (0x5f7e, 'k', 1), y_column_id, 'm', 1s -> 'M'\n"
		       "- (0x5f7e, 'k', 1), y_column_id, 'n', 1s -> 'N'\n");
	expect_listing(f, TABLE, 8,
		       "x (0x5f7e, 'k', 1), 7s -> [DELETE]\n"
		       "- (0x5f7e, 'k', 1), liveness_column_id, 1s -> [NULL]\n"
		       "+ (0x5f7e, 'k', 1), x_column_id, 8s -> (TTL = 1) '8'\n"
		       "- (0x5f7e, 'k', 1), x_column_id, 2s -> '2'\n"
		       "- (0x5f7e, 'k', 1), x_column_id, 1s -> '1'\n"
		       "- (0x5f7e, 'k', 1), y_column_id, 6s -> 'z'\n"
		       "x (0x5f7e, 'k', 1), y_column_id, 5s -> [DELETE]\n"
		       "- (0x5f7e, 'k', 1), y_column_id, 4s -> 's'\n"
		       "x (0x5f7e, 'k', 1), y_column_id, 3s -> [DELETE]\n"
		       "- (0x5f7e, 'k', 1), y_column_id, 'm', 5s -> 'M'\n"
		       "- (0x5f7e, 'k', 1), y_column_id, 'm', 1s -> 'M'\n"
		       "- (0x5f7e, 'k', 1), y_column_id, 'n', 1s -> 'N'\n");
	expect_listing(f, TABLE, 9,
		       "x (0x5f7e, 'k', 1), 7s -> [DELETE]\n"
		       "- (0x5f7e, 'k', 1), liveness_column_id, 1s -> [NULL]\n"
		       "- (0x5f7e, 'k', 1), x_column_id, 8s -> (TTL = 1) '8'\n"
		       "- (0x5f7e, 'k', 1), x_column_id, 2s -> '2'\n"
		       "- (0x5f7e, 'k', 1), x_column_id, 1s -> '1'\n"
		       "- (0x5f7e, 'k', 1), y_column_id, 6s -> 'z'\n"
		       "x (0x5f7e, 'k', 1), y_column_id, 5s -> [DELETE]\n"
		       "- (0x5f7e, 'k', 1), y_column_id, 4s -> 's'\n"
		       "x (0x5f7e, 'k', 1), y_column_id, 3s -> [DELETE]\n"
		       "- (0x5f7e, 'k', 1), y_column_id, 'm', 5s -> 'M'\n"
		       "- (0x5f7e, 'k', 1), y_column_id, 'm', 1s -> 'M'\n"
		       "- (0x5f7e, 'k', 1), y_column_id, 'n', 1s -> 'N'\n");
	expect_listing(f, TABLE, 0,
		       "x (0x5f7e, 'k', 1), 7s -> [DELETE]\n"
		       "- (0x5f7e, 'k', 1), liveness_column_id, 1s -> [NULL]\n"
		       "- (0x5f7e, 'k', 1), x_column_id, 8s -> (TTL = 1) '8'\n"
		       "- (0x5f7e, 'k', 1), x_column_id, 2s -> '2'\n"
		       "- (0x5f7e, 'k', 1), x_column_id, 1s -> '1'\n"
		       "- (0x5f7e, 'k', 1), y_column_id, 6s -> 'z'\n"
		       "x (0x5f7e, 'k', 1), y_column_id, 5s -> [DELETE]\n"
		       "- (0x5f7e, 'k', 1), y_column_id, 4s -> 's'\n"
		       "x (0x5f7e, 'k', 1), y_column_id, 3s -> [DELETE]\n"
		       "- (0x5f7e, 'k', 1), y_column_id, 'm', 5s -> 'M'\n"
		       "- (0x5f7e, 'k', 1), y_column_id, 'm', 1s -> 'M'\n"
		       "- (0x5f7e, 'k', 1), y_column_id, 'n', 1s -> 'N'\n");
}

/* Steps of row_run(), one each second, and the listing after them. */
static void
expect_listing_after(struct fixture *f, const unsigned *steps, size_t count, const char *want)
{
	keep_history(f, TABLE);
	for (size_t i = 0; i < count; i++) {
		f->now_ms = START_MS + 1000 * (i + 1);
		f->step = steps[i];
		must(f, TABLE, row_run);
	}
	expect_listing(f, TABLE, 0, want);
}

static void
deletions_of_a_path_are_listed_the_newest_first(void **state)
{
	static const unsigned steps[] = { 1, 3, 5, 3, 5, 3 };

	expect_listing_after(*state, steps, 6,
			     "+ (0x5f7e, 'k', 1), liveness_column_id, 1s -> [NULL]\n"
			     "+ (0x5f7e, 'k', 1), x_column_id, 1s -> '1'\n"
			     "x (0x5f7e, 'k', 1), y_column_id, 6s -> [DELETE]\n"
			     "x (0x5f7e, 'k', 1), y_column_id, 4s -> [DELETE]\n"
			     "x (0x5f7e, 'k', 1), y_column_id, 2s -> [DELETE]\n"
			     "- (0x5f7e, 'k', 1), y_column_id, 'm', 5s -> 'M'\n"
			     "- (0x5f7e, 'k', 1), y_column_id, 'm', 3s -> 'M'\n"
			     "- (0x5f7e, 'k', 1), y_column_id, 'm', 1s -> 'M'\n"
			     "- (0x5f7e, 'k', 1), y_column_id, 'n', 1s -> 'N'\n");
}

static void
deletions_of_a_row_are_listed_the_newest_first(void **state)
{
	static const unsigned steps[] = { 2, 7, 2, 7, 5, 7 };

	expect_listing_after(*state, steps, 6,
			     "x (0x5f7e, 'k', 1), 6s -> [DELETE]\n"
			     "x (0x5f7e, 'k', 1), 4s -> [DELETE]\n"
			     "x (0x5f7e, 'k', 1), 2s -> [DELETE]\n"
			     "- (0x5f7e, 'k', 1), x_column_id, 3s -> '2'\n"
			     "- (0x5f7e, 'k', 1), x_column_id, 1s -> '2'\n"
			     "- (0x5f7e, 'k', 1), y_column_id, 'm', 5s -> 'M'\n");
}

static enum status
rows_run(struct timed *t, struct fixture *f)
{
	const struct timed_expiry never = { .kind = TIMED_EXPIRY_NEVER };
	const struct timed_expiry soon = { .kind = TIMED_EXPIRY_AFTER, .ms = 1500 };
	struct timed_step m = { .key = text("m") }, n = { .key = text("n") };
	const struct timed_value first = { { &m, 1 }, text("M") };
	const struct timed_value second = { { &n, 1 }, text("N") };
	const struct doc_scalar a = text("a"), b = text("b"), value = text("v");
	const struct timed_key key_a = { &a, 1 }, key_b = { &b, 1 };

	switch (f->step) {
	case 1:
		TRY(timed_set(t, &key_b, &value, never));
		return timed_add(t, &key_a, TIMED_HASH, &first, 1, soon);
	case 2:
		return timed_add(t, &key_a, TIMED_HASH, &second, 1, soon);
	case 3:
		return timed_set(t, &key_b, &a, never);
	case 4:
		return timed_add(t, &key_a, TIMED_SET, &second, 1, never);
	case 5:
		TRY(timed_clear(t, &key_b, &(struct timed_path){ 0 }));
		return timed_clear(t, &key_a, &(struct timed_path){ 0 });
	default:
		return STATUS_INVALID;
	}
}

static void
a_collection_is_listed_with_its_members(void **state)
{
	struct fixture *f = *state;

	keep_history(f, KEYS);
	for (f->step = 1; f->step <= 5; f->step++) {
		f->now_ms = START_MS + 1000 * f->step;
		must(f, KEYS, rows_run);
	}
	expect_listing(f, KEYS, 1,
		       "+ (0x303d, 'a'), 1s -> (TTL = 1.500) [Redis-Hash-Type]\n"
		       "+ (0x303d, 'a'), 'm', 1s -> 'M'\n"
		       "+ (0xa333, 'b'), 1s -> 'v'\n");
	expect_listing(f, KEYS, 2,
		       "+ (0x303d, 'a'), 1s -> (TTL = 1.500) [Redis-Hash-Type]\n"
		       "+ (0x303d, 'a'), 'm', 1s -> 'M'\n"
		       "+ (0x303d, 'a'), 'n', 2s -> 'N'\n"
		       "+ (0xa333, 'b'), 1s -> 'v'\n");
	expect_listing(f, KEYS, 3,
		       "- (0x303d, 'a'), 1s -> (TTL = 1.500) [Redis-Hash-Type]\n"
		       "- (0x303d, 'a'), 'm', 1s -> 'M'\n"
		       "- (0x303d, 'a'), 'n', 2s -> 'N'\n"
		       "+ (0xa333, 'b'), 3s -> 'a'\n"
		       "- (0xa333, 'b'), 1s -> 'v'\n");
	expect_listing(f, KEYS, 4,
		       "+ (0x303d, 'a'), 4s -> [Redis-Set-Type]\n"
		       "- (0x303d, 'a'), 1s -> (TTL = 1.500) [Redis-Hash-Type]\n"
		       "- (0x303d, 'a'), 'm', 1s -> 'M'\n"
		       "+ (0x303d, 'a'), 'n', 4s -> 'N'\n"
		       "- (0x303d, 'a'), 'n', 2s -> 'N'\n"
		       "+ (0xa333, 'b'), 3s -> 'a'\n"
		       "- (0xa333, 'b'), 1s -> 'v'\n");
	expect_listing(f, KEYS, 5,
		       "x (0x303d, 'a'), 5s -> [DELETE]\n"
		       "- (0x303d, 'a'), 4s -> [Redis-Set-Type]\n"
		       "- (0x303d, 'a'), 1s -> (TTL = 1.500) [Redis-Hash-Type]\n"
		       "- (0x303d, 'a'), 'm', 1s -> 'M'\n"
		       "- (0x303d, 'a'), 'n', 4s -> 'N'\n"
		       "- (0x303d, 'a'), 'n', 2s -> 'N'\n"
		       "x (0xa333, 'b'), 5s -> [DELETE]\n"
		       "- (0xa333, 'b'), 3s -> 'a'\n"
		       "- (0xa333, 'b'), 1s -> 'v'\n");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define WITH_STORE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
		WITH_STORE(a_row_is_listed_as_it_was),
		WITH_STORE(deletions_of_a_path_are_listed_the_newest_first),
		WITH_STORE(deletions_of_a_row_are_listed_the_newest_first),
		WITH_STORE(a_collection_is_listed_with_its_members),
	};

	return cmocka_run_group_tests_name("listing", tests, NULL, NULL);
}
