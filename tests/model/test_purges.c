/* The record that purges leave, its limit, and its readers. */
#include "fixture.h"

#include <stdio.h>

#include "catalog/verify.h"
#include "kv/tuple.h"

enum {
	HASH_BYTES = 500,
	WIDE_HEADS = 250, /* whose hashes take more than a value */
};

/* ---- One transaction with each ---- */

struct step {
	struct fixture *f;
	struct rev_purge_query query;
	struct rev_purge_result result;
	struct str name;
	struct catalog_seq seq;
	uint64_t limit;
	bool more;
	struct err err;
};

static enum status
purge_body(struct kv_tx *tx, void *arg)
{
	struct step *s = arg;

	return rev_purge(tx, s->f->db, &s->query, 1, s->f->arena, &s->result, &s->err);
}

static enum status
add_body(struct kv_tx *tx, void *arg)
{
	struct step *s = arg;

	return rev_purge_reader_add(tx, s->f->db, s->name, &s->seq, &s->err);
}

static enum status
get_body(struct kv_tx *tx, void *arg)
{
	struct step *s = arg;

	return rev_purge_reader_get(tx, s->f->db, s->name, &s->seq, &s->err);
}

static enum status
advance_body(struct kv_tx *tx, void *arg)
{
	struct step *s = arg;

	return rev_purge_reader_advance(tx, s->f->db, s->name, &s->seq, &s->err);
}

static enum status
remove_body(struct kv_tx *tx, void *arg)
{
	struct step *s = arg;

	return rev_purge_reader_remove(tx, s->f->db, s->name, &s->err);
}

static enum status
limit_body(struct kv_tx *tx, void *arg)
{
	struct step *s = arg;

	return rev_purges_limit_set(tx, s->f->db, s->limit, &s->err);
}

static enum status
trim_body(struct kv_tx *tx, void *arg)
{
	struct step *s = arg;

	return rev_purges_trim(tx, s->f->db, s->f->arena, &s->more, &s->err);
}

static enum status
run(struct fixture *f, enum status (*body)(struct kv_tx *, void *), struct step *s)
{
	s->f = f;
	return kv_run(f->store, body, s, NULL, NULL);
}

static void
purge(struct fixture *f, const char *id, const char *rev)
{
	const struct rev_id revs[] = { fixture_rev(f, rev) };
	struct step s = { .query = { str_from_cstr(id), revs, 1 } };

	assert_int_equal(run(f, purge_body, &s), STATUS_OK);
}

/* `count` documents "a", "b", … that come and go again. */
static void
purge_documents(struct fixture *f, int count)
{
	for (int i = 0; i < count; i++) {
		const char id[] = { (char)('a' + i), '\0' };

		fixture_replicate(f, id, "1-x", false, "{}");
		purge(f, id, "1-x");
	}
}

static void
set_limit(struct fixture *f, uint64_t limit)
{
	struct step s = { .limit = limit };

	assert_int_equal(run(f, limit_body, &s), STATUS_OK);
}

static void
trim(struct fixture *f)
{
	struct step s = { .more = true };

	while (s.more)
		assert_int_equal(run(f, trim_body, &s), STATUS_OK);
	fixture_check(f);
}

/* ---- What is there ---- */

static struct rev_purge_page
page_after(struct fixture *f, const struct catalog_seq *since, size_t most)
{
	struct rev_purge_page page;
	struct err err = { 0 };
	struct kv_tx *tx;

	assert_int_equal(kv_begin(f->calm, KV_TX_READ_ONLY, &tx), STATUS_OK);
	assert_int_equal(rev_purges_page(tx, f->db, since, most, f->arena, &page, &err), STATUS_OK);
	kv_tx_free(tx);
	return page;
}

/* "a 1-x, b 1-x" */
static const char *
purged_after(struct fixture *f, const struct catalog_seq *since, size_t most)
{
	struct rev_purge_page page = page_after(f, since, most);
	struct buf text = BUF_INIT(4096);
	const char *copy;

	for (size_t i = 0; i < page.count; i++) {
		buf_printf(&text, "%s%.*s", i ? ", " : "", STR_ARG(page.purges[i].doc_id));
		for (size_t j = 0; j < page.purges[i].count; j++)
			buf_printf(&text, " %s", fixture_text(f, page.purges[i].revs[j]));
	}
	buf_append_byte(&text, '\0');
	copy = arena_dup(f->arena, buf_str(&text)).ptr;
	buf_release(&text);
	return copy;
}

static const struct catalog_seq beginning;

static bool
is_over(struct fixture *f)
{
	struct kv_tx *tx;
	bool over;

	assert_int_equal(kv_begin(f->calm, KV_TX_READ_ONLY, &tx), STATUS_OK);
	assert_int_equal(rev_purges_over(tx, f->db, f->arena, &over), STATUS_OK);
	kv_tx_free(tx);
	return over;
}

/* ---- Tests ---- */

static void
each_purge_leaves_a_record_by_sequence(void **state)
{
	struct fixture *f = *state;
	struct rev_purge_page page;
	struct rev_db_info info;
	struct kv_tx *tx;

	assert_string_equal(purged_after(f, &beginning, 0), "");
	fixture_replicate(f, "two", "1-x", false, "{}");
	fixture_replicate(f, "two", "1-y", false, "{}");
	purge_documents(f, 2);
	purge(f, "two", "1-y");
	purge(f, "a", "1-x"); /* is not there any more, so nothing is purged */
	fixture_check(f);
	assert_string_equal(purged_after(f, &beginning, 0), "a 1-x, b 1-x, two 1-y");
	assert_string_equal(purged_after(f, &beginning, 2), "a 1-x, b 1-x");
	page = page_after(f, &beginning, 2);
	assert_string_equal(purged_after(f, &page.purges[1].seq, 2), "two 1-y");
	assert_memory_not_equal(page.purges[0].id, page.purges[1].id, REV_PURGE_ID_BYTES);
	page = page_after(f, &beginning, 0);
	assert_int_equal(page_after(f, &page.purges[2].seq, 0).count, 0);
	assert_int_equal(kv_begin(f->calm, KV_TX_READ_ONLY, &tx), STATUS_OK);
	assert_int_equal(rev_db_info(tx, f->db, &info), STATUS_OK);
	kv_tx_free(tx);
	assert_int_equal(catalog_seq_cmp(&page.purges[2].seq, &info.purge_seq), 0);
}

/* A value holds 100,000 bytes. */
static void
a_record_of_many_heads_comes_back_whole(void **state)
{
	struct fixture *f = *state;
	struct rev_id revs[WIDE_HEADS];
	struct step s = { .query = { STR("wide"), revs, WIDE_HEADS } };
	struct rev_purge_page page;

	for (int i = 0; i < WIDE_HEADS; i++) {
		char *history = arena_zalloc(f->arena, HASH_BYTES + 8);

		assert_non_null(history);
		memset(history, 'h', HASH_BYTES);
		memcpy(history, "1-", 2);
		history[2] = (char)('a' + i / 16);
		history[3] = (char)('a' + i % 16);
		fixture_replicate(f, "wide", history, false, "{}");
		revs[i] = fixture_rev(f, history);
	}
	assert_int_equal(run(f, purge_body, &s), STATUS_OK);
	assert_int_equal(s.result.count, WIDE_HEADS);
	purge_documents(f, 1);
	page = page_after(f, &beginning, 0);
	assert_int_equal(page.count, 1); /* it fills the page */
	assert_int_equal(page.purges[0].count, WIDE_HEADS);
	for (int i = 0; i < WIDE_HEADS; i++)
		assert_true(rev_id_eq(page.purges[0].revs[i], revs[i]));
	assert_string_equal(purged_after(f, &page.purges[0].seq, 0), "a 1-x");
	set_limit(f, 1);
	trim(f);
	assert_string_equal(purged_after(f, &beginning, 0), "a 1-x");
}

static void
records_beyond_the_limit_are_cleared_oldest_first(void **state)
{
	struct fixture *f = *state;
	struct step s = { .limit = 0 };

	assert_int_equal(run(f, limit_body, &s), STATUS_INVALID);
	purge_documents(f, 5);
	assert_false(is_over(f));
	trim(f);
	assert_string_equal(purged_after(f, &beginning, 0), "a 1-x, b 1-x, c 1-x, d 1-x, e 1-x");
	set_limit(f, 2);
	assert_true(is_over(f));
	trim(f);
	assert_false(is_over(f));
	assert_string_equal(purged_after(f, &beginning, 0), "d 1-x, e 1-x");
}

static void
what_a_reader_has_not_seen_is_kept(void **state)
{
	struct fixture *f = *state;
	struct step early = { .name = STR("view/early") }, late = { .name = STR("view/late") };
	struct rev_purge_page page;

	assert_int_equal(run(f, get_body, &early), STATUS_NOT_FOUND);
	assert_int_equal(run(f, advance_body, &early), STATUS_NOT_FOUND);
	assert_int_equal(run(f, add_body, &early), STATUS_OK);
	assert_int_equal(catalog_seq_cmp(&early.seq, &beginning), 0);
	purge_documents(f, 2);
	assert_int_equal(run(f, add_body, &late), STATUS_OK);
	page = page_after(f, &beginning, 0);
	assert_int_equal(catalog_seq_cmp(&late.seq, &page.purges[1].seq), 0);
	purge_documents(f, 4);
	set_limit(f, 1);

	trim(f);
	page = page_after(f, &beginning, 0);
	assert_int_equal(page.count, 6);
	early.seq = page.purges[3].seq;
	assert_int_equal(run(f, advance_body, &early), STATUS_OK);
	trim(f);
	assert_string_equal(purged_after(f, &beginning, 0), "a 1-x, b 1-x, c 1-x, d 1-x");

	/* A reader never goes back. */
	assert_int_equal(run(f, advance_body, &late), STATUS_OK);
	late.seq = page.purges[5].seq;
	assert_int_equal(run(f, advance_body, &late), STATUS_OK);
	late.seq = page.purges[2].seq;
	assert_int_equal(run(f, advance_body, &late), STATUS_OK);
	assert_int_equal(run(f, get_body, &late), STATUS_OK);
	assert_int_equal(catalog_seq_cmp(&late.seq, &page.purges[5].seq), 0);

	assert_int_equal(run(f, remove_body, &early), STATUS_OK);
	assert_int_equal(run(f, remove_body, &early), STATUS_OK);
	trim(f);
	assert_string_equal(purged_after(f, &beginning, 0), "d 1-x");
}

static void
names_of_readers_have_a_limit(void **state)
{
	struct fixture *f = *state;
	char name[REV_PURGE_READER_BYTES + 1];
	struct step s = { .name = str_of(name, sizeof(name)) };

	memset(name, 'n', sizeof(name));
	assert_int_equal(run(f, add_body, &s), STATUS_INVALID);
	assert_non_null(strstr(s.err.text, "256"));
	s.name = STR("");
	assert_int_equal(run(f, add_body, &s), STATUS_INVALID);
	s.name = str_of(name, REV_PURGE_READER_BYTES);
	assert_int_equal(run(f, add_body, &s), STATUS_OK);
}

/* The counter is lowered once for each record, and a reader that has just come is respected. */
static void
of_two_that_clear_at_once_one_starts_again(void **state)
{
	struct fixture *f = *state;
	struct step reader = { .f = f, .name = STR("r") };
	struct kv_tx *first, *second, *third;
	struct err err = { 0 };
	bool more;

	purge_documents(f, 4);
	set_limit(f, 1);
	assert_int_equal(kv_begin(f->calm, 0, &first), STATUS_OK);
	assert_int_equal(kv_begin(f->calm, 0, &second), STATUS_OK);
	assert_int_equal(kv_begin(f->calm, 0, &third), STATUS_OK);
	assert_int_equal(rev_purges_trim(first, f->db, f->arena, &more, &err), STATUS_OK);
	assert_int_equal(rev_purges_trim(second, f->db, f->arena, &more, &err), STATUS_OK);
	assert_int_equal(kv_future_wait(kv_commit(first)), STATUS_OK);
	assert_int_equal(kv_future_wait(kv_commit(second)), STATUS_TX_CONFLICT);
	purge_documents(f, 2);
	kv_tx_free(third);
	assert_int_equal(kv_begin(f->calm, 0, &third), STATUS_OK);
	assert_int_equal(rev_purges_trim(third, f->db, f->arena, &more, &err), STATUS_OK);
	assert_int_equal(run(f, add_body, &reader), STATUS_OK);
	assert_int_equal(kv_future_wait(kv_commit(third)), STATUS_TX_CONFLICT);
	kv_tx_free(first);
	kv_tx_free(second);
	kv_tx_free(third);
	trim(f);
	assert_string_equal(purged_after(f, &beginning, 0), "b 1-x");
}

/* ---- What the check finds ---- */

struct damage {
	struct fixture *f;
	const char *part;
	const char *name; /* or NULL */
	const char *value;
};

static enum status
damage_body(struct kv_tx *tx, void *arg)
{
	const struct damage *d = arg;
	struct buf key = BUF_INIT(256), end = BUF_INIT(256);
	enum status status;

	buf_append_str(&key, d->f->db->prefix);
	tuple_put_u64(&key, REV_SUBSPACE_PURGES);
	tuple_put_str(&key, str_from_cstr(d->part));
	if (d->name)
		tuple_put_str(&key, str_from_cstr(d->name));
	buf_append_str(&end, buf_str(&key));
	buf_append_byte(&end, 0xff);
	status = d->value ? kv_set(tx, buf_str(&key), str_from_cstr(d->value))
			  : kv_clear_range(tx, buf_str(&key), buf_str(&end));
	buf_release(&key);
	buf_release(&end);
	return status;
}

static void
count_finding(const struct catalog_finding *finding, void *arg)
{
	char *said = arg;

	(void)snprintf(said + strlen(said), 256 - strlen(said), "%s%s", *said ? " " : "",
		       finding->kind);
}

static void
assert_finds(struct fixture *f, const struct damage *damage, const char *kinds)
{
	char said[256] = "";
	struct catalog_verify_options options = { .found = count_finding, .arg = said };
	struct catalog_verify_sum sum;
	struct damage d = *damage;
	struct kv_tx *tx;

	d.f = f;
	assert_int_equal(kv_run(f->store, damage_body, &d, NULL, NULL), STATUS_OK);
	assert_int_equal(kv_begin(f->calm, KV_TX_READ_ONLY, &tx), STATUS_OK);
	assert_int_equal(catalog_verify_store(tx, &options, &sum, NULL), STATUS_OK);
	kv_tx_free(tx);
	assert_string_equal(said, kinds);
}

static void
damage_to_the_record_is_found(void **state)
{
	struct fixture *f = *state;
	struct step s = { .name = STR("r") };

	purge_documents(f, 3);
	assert_int_equal(run(f, add_body, &s), STATUS_OK);
	set_limit(f, 1);
	trim(f);
	assert_finds(f, &(struct damage){ .part = "readers", .name = "x", .value = "?" },
		     "unreadable_value");
	assert_finds(f, &(struct damage){ .part = "readers", .name = "x" }, "");
	assert_finds(f, &(struct damage){ .part = "others", .value = "" }, "unknown_key");
	assert_finds(f, &(struct damage){ .part = "others" }, "");
	assert_finds(f, &(struct damage){ .part = "records", .name = "x", .value = "" },
		     "unknown_key");
	assert_finds(f, &(struct damage){ .part = "records", .name = "x" }, "");
	assert_finds(f, &(struct damage){ .part = "cleared", .value = "\x15\x02" }, "newer_format");
	assert_finds(f, &(struct damage){ .part = "cleared" }, "");
	assert_finds(f, &(struct damage){ .part = "records" }, "counter");
}

int
main(void)
{
#define WITH_STORE(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		WITH_STORE(each_purge_leaves_a_record_by_sequence),
		WITH_STORE(a_record_of_many_heads_comes_back_whole),
		WITH_STORE(records_beyond_the_limit_are_cleared_oldest_first),
		WITH_STORE(what_a_reader_has_not_seen_is_kept),
		WITH_STORE(names_of_readers_have_a_limit),
		WITH_STORE(of_two_that_clear_at_once_one_starts_again),
		WITH_STORE(damage_to_the_record_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
