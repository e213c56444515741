#include "items_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "catalog/store_format.h"
#include "kv/faulty/faulty.h"
#include "kv/shape.h"
#include "kv/tuple.h"
#include "store.h"
#include "verified.h"

static uint64_t
fixture_now(void *arg)
{
	const struct items *f = arg;

	return f->now_ms;
}

static enum status
create_body(struct kv_tx *tx, void *arg)
{
	(void)arg;
	TRY(timed_items_create(tx, STR("0"), NULL));
	return timed_items_create(tx, STR("15"), NULL);
}

int
items_setup(void **state)
{
	/* Bodies are entities, as in the stores of the program; every search is remembered. */
	static const struct kv_shape shape = { .others = { 1, { TUPLE_SKIP_TEXT } } };
	const struct kv_options options = {
		.create = true, .no_sync = true, .shape = &shape, .search_ns = 1
	};
	struct items *f = calloc(1, sizeof(*f));
	char url[256];

	test_show_failures();
	timed_items_register();
	test_make_dir("items", f->dir, sizeof(f->dir));
	test_store_url(f->dir, url, sizeof(url));
	assert_int_equal(catalog_store_open(url, &options, &f->store, &f->err), STATUS_OK);
	f->arena = arena_new(ITEMS_ARENA_BYTES);
	f->maps = timed_maps_new();
	assert_non_null(f->maps);
	f->clock = (struct timed_clock){ .now_ms = fixture_now, .arg = f };
	f->now_ms = ITEMS_START_MS;
	assert_int_equal(kv_run(f->store, create_body, NULL, NULL, &f->err), STATUS_OK);
	*state = f;
	return 0;
}

int
items_teardown(void **state)
{
	struct items *f = *state;

	arena_free(f->arena);
	timed_maps_free(f->maps);
	kv_close(f->store);
	test_remove_tree(f->dir);
	free(f);
	return 0;
}

/* ---- Steps: a transaction each, which starts over when it has to ---- */

struct step {
	struct items *f;
	items_step *run;
	void *arg;
	const char *db;
	bool has_maps; /* the same in each attempt */
	enum status status;
};

static bool
is_outcome(enum status status)
{
	return status == STATUS_OK || status == STATUS_NOT_FOUND || status == STATUS_INVALID ||
	       status == STATUS_KEY_TOO_LARGE || status == STATUS_VALUE_TOO_LARGE ||
	       status == STATUS_LIMIT;
}

static enum status
step_body(struct kv_tx *tx, void *arg)
{
	struct step *s = arg;
	struct kv_tx_stats before;
	struct catalog_db *db;
	struct timed t;

	arena_clear(s->f->arena);
	TRY(catalog_open(tx, NULL, CATALOG_SPACE_REDIS, str_from_cstr(s->db), &db, NULL));
	timed_init(&t, tx, db, &s->f->clock, &s->f->err);
	if (s->has_maps)
		t.maps = s->f->maps;
	before = kv_tx_stats(tx);
	s->status = s->run(&t, s->f->arena, s->arg);
	s->f->cost = kv_tx_stats(tx);
	s->f->cost.reads -= before.reads;
	s->f->cost.keys_read -= before.keys_read;
	s->f->cost.sets -= before.sets;
	s->f->cost.clears -= before.clears;
	/* Before the commit, whose outcome makes no difference to the maps. */
	timed_maps_return(&t);
	catalog_db_unref(db);
	return is_outcome(s->status) ? STATUS_OK : s->status;
}

enum status
items_try(struct items *f, const char *db, items_step *run, void *arg)
{
	struct step s = { .f = f, .run = run, .arg = arg, .db = db, .has_maps = f->steps++ % 3 };
	enum status status = kv_run(f->store, step_body, &s, NULL, &f->err);

	if (status != STATUS_OK)
		fail_msg("%s: %s", status_name(status), f->err.text);
	return s.status;
}

void
items_must(struct items *f, items_step *run, void *arg)
{
	enum status status = items_try(f, "0", run, arg);

	if (status != STATUS_OK)
		fail_msg("%s: %s", status_name(status), f->err.text);
}

struct kv_tx *
items_open(struct items *f, bool has_maps, items_step *run, void *arg)
{
	struct catalog_db *db;
	struct kv_tx *tx;
	struct timed t;

	assert_int_equal(kv_begin(kv_faulty_inner(f->store), KV_TX_READ_WRITE, &tx), STATUS_OK);
	assert_int_equal(catalog_open(tx, NULL, CATALOG_SPACE_REDIS, STR("0"), &db, NULL),
			 STATUS_OK);
	timed_init(&t, tx, db, &f->clock, &f->err);
	if (has_maps)
		t.maps = f->maps;
	assert_int_equal(run(&t, f->arena, arg), STATUS_OK);
	timed_maps_return(&t);
	catalog_db_unref(db);
	return tx;
}

enum status
items_commit(struct kv_tx *tx)
{
	enum status status = kv_future_wait(kv_commit(tx));

	kv_tx_free(tx);
	return status;
}

void
items_verify(struct items *f)
{
	verified_none(f->store);
}

void
items_sweep(struct items *f)
{
	uint64_t done;
	bool more = true;

	for (int i = 0; more && i < ITEMS_SWEEPS; i++)
		assert_int_equal(timed_sweep(f->store, &f->clock, 10, &done, &more, &f->err),
				 STATUS_OK);
	assert_false(more);
}

/* How many pairs a subspace of the database "0" has. */
struct space_count {
	uint64_t space;
	size_t pairs;
};

static enum status
space_count_run(struct timed *t, struct arena *arena, void *arg)
{
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	AUTO(buf_release) struct buf begin = BUF_INIT(64);
	AUTO(buf_release) struct buf end = BUF_INIT(64);
	struct space_count *c = arg;
	struct kv_pair pair;
	enum status status;

	(void)arena;
	c->pairs = 0;
	buf_append_str(&begin, t->db->prefix);
	tuple_put_u64(&begin, c->space);
	buf_append_str(&end, buf_str(&begin));
	buf_append_byte(&end, 0xff);
	TRY(kv_scan_init(&scan, t->tx, buf_str(&begin), buf_str(&end), NULL));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK)
		c->pairs++;
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

size_t
items_pairs(struct items *f, uint64_t space)
{
	struct space_count c = { .space = space };

	items_must(f, space_count_run, &c);
	return c.pairs;
}

/* ---- The model ---- */

void
items_model_clear(struct items_model_item *m)
{
	free(m->entries);
	free(m->bytes);
	*m = (struct items_model_item){ .entries = NULL };
}

static void
model_begin(struct items_model_item *m, enum timed_type type)
{
	if (m->type == type)
		return;
	items_model_clear(m);
	m->type = type;
	m->entries = calloc(ITEMS_ENTRIES, sizeof(*m->entries));
}

static size_t
model_find(const struct items_model_item *m, unsigned name)
{
	size_t i = 0;

	while (i < m->count && m->entries[i].name != name)
		i++;
	return i;
}

static void
model_insert(struct items_model_item *m, size_t at, struct items_model_entry e)
{
	assert_true(m->count < ITEMS_ENTRIES);
	memmove(&m->entries[at + 1], &m->entries[at], (m->count - at) * sizeof(*m->entries));
	m->entries[at] = e;
	m->count++;
}

static void
model_remove(struct items_model_item *m, size_t at)
{
	m->count--;
	memmove(&m->entries[at], &m->entries[at + 1], (m->count - at) * sizeof(*m->entries));
	if (!m->count)
		items_model_clear(m);
}

static void
model_expire_members(uint64_t now_ms, struct items_model_item *m)
{
	for (size_t i = m->type == TIMED_HASH ? m->count : 0; i--;)
		if (m->entries[i].expires_ms && m->entries[i].expires_ms <= now_ms)
			model_remove(m, i);
}

static void
model_expire(struct items *f, uint64_t now_ms, struct items_model *model)
{
	for (int i = 0; i < ITEMS_KEYS; i++) {
		struct items_model_item *m = &model->items[i];
		size_t count = m->count;

		if (m->expires_ms && m->expires_ms <= now_ms) {
			items_model_clear(m);
			f->expired_ms = now_ms;
			continue;
		}
		model_expire_members(now_ms, m);
		if (m->count != count)
			f->expired_ms = now_ms;
	}
}

/* ---- Names and values by numbers ---- */

/*
 * Some names, values and elements are too long for a record: those of a number that these divide.
 * They are made once, since they are asked for often.
 */
enum {
	LONG_BYTES = TIMED_CHUNK_BYTES + 5000,
	LONG_NAMES = 300,
	LONG_VALUES = 397,
	LONG_MOST = ITEMS_ENTRIES / LONG_VALUES + 1,
};

static struct str
long_of(unsigned n, char letter)
{
	static char *made[2][LONG_MOST];
	char **bytes = &made[letter == 'N'][n];
	char end[16];

	assert_true(n < LONG_MOST);
	if (!*bytes) {
		*bytes = malloc(LONG_BYTES);
		memset(*bytes, letter, LONG_BYTES);
		snprintf(end, sizeof(end), "%06u", n);
		memcpy(*bytes + LONG_BYTES - 6, end, 6);
	}
	return str_of(*bytes, LONG_BYTES);
}

static struct str
value_of(struct arena *arena, char letter, unsigned n)
{
	return n % LONG_VALUES == 1 ? long_of(n / LONG_VALUES, 'V')
				    : arena_printf(arena, "%c%u", letter, n);
}

static struct str
name_of(struct arena *arena, unsigned n)
{
	struct str name = arena_printf(arena, "m%u", n * 7919 % 10007);
	char *bytes;

	if (n % LONG_NAMES == 1)
		return long_of(n / LONG_NAMES, 'N');
	if (n % 50 != 49)
		return name;
	/* One in fifty is too long for a key; two of those differ in their ends alone. */
	bytes = arena_bytes(arena, TIMED_WHOLE_BYTES + 100);
	memset(bytes, 'L', TIMED_WHOLE_BYTES + 100);
	memcpy(bytes + TIMED_WHOLE_BYTES + 50, name.ptr, name.len);
	return str_of(bytes, TIMED_WHOLE_BYTES + 100);
}

static struct str
key_of(unsigned n)
{
	static const char *const keys[ITEMS_KEYS] = { "a", "b", "key", "", "long" };
	static char long_key[TIMED_WHOLE_BYTES + 1];

	memset(long_key, 'k', sizeof(long_key));
	return n == ITEMS_KEYS - 1 ? str_of(long_key, sizeof(long_key)) : str_from_cstr(keys[n]);
}

/* ---- Comparing ---- */

static int
entry_cmp(const void *a, const void *b)
{
	const struct timed_member *x = a, *y = b;

	if (x->score != y->score)
		return x->score < y->score ? -1 : 1;
	return str_cmp(x->name, y->name);
}

static enum status
compare_pages(struct timed_item *item, const struct items_compare *c)
{
	uint64_t from = 0;
	size_t count = 0;

	do {
		struct timed_members page;

		TRY(timed_members_page(item, from, c->random % 40, &page));
		for (size_t i = 0; i < page.count; i++) {
			size_t at = 0;

			while (at < c->m->count &&
			       !str_eq(name_of(item->arena, c->m->entries[at].name),
				       page.members[i].name))
				at++;
			assert_true(at < c->m->count);
			if (item->type == TIMED_HASH) {
				assert_true(str_eq(
					page.members[i].value,
					value_of(item->arena, 'v', c->m->entries[at].value)));
				assert_int_equal(page.members[i].expires_ms,
						 c->m->entries[at].expires_ms);
			}
			if (item->type == TIMED_ZSET)
				assert_true(page.members[i].score == c->m->entries[at].score);
		}
		count += page.count;
		assert_true(!page.next || page.next > from);
		from = page.next;
	} while (from);
	assert_int_equal(count, c->m->count);
	return STATUS_OK;
}

static void
compare_members(const struct timed_members *got, const struct timed_member *sorted, size_t from,
		size_t count, bool reverse)
{
	assert_int_equal(got->count, count);
	for (size_t i = 0; i < count; i++) {
		const struct timed_member *m = &sorted[reverse ? from + count - 1 - i : from + i];

		assert_true(str_eq(got->members[i].name, m->name));
		assert_true(got->members[i].score == m->score);
	}
}

static enum status
compare_scores(struct timed_item *item, const struct timed_member *sorted, size_t count,
	       struct rand_seq *r)
{
	struct timed_zset_range range = { .by = TIMED_BY_SCORE, .limit = SIZE_MAX };
	double scores[2] = { sorted[rand_seq_below(r, count)].score,
			     sorted[rand_seq_below(r, count)].score };
	struct timed_members got;
	size_t from = 0, to, n;
	uint64_t number;

	range.lower.score = scores[0];
	range.upper.score = scores[1];
	range.lower.kind = (enum timed_bound_kind)rand_seq_below(r, 3);
	range.upper.kind = (enum timed_bound_kind)rand_seq_below(r, 3);
	range.reverse = rand_seq_below(r, 2);
	while (range.lower.kind != TIMED_BOUND_END && from < count &&
	       (sorted[from].score < scores[0] ||
		(range.lower.kind == TIMED_BOUND_EXCLUSIVE && sorted[from].score == scores[0])))
		from++;
	for (to = from; to < count; to++)
		if (range.upper.kind != TIMED_BOUND_END &&
		    (sorted[to].score > scores[1] ||
		     (range.upper.kind == TIMED_BOUND_EXCLUSIVE && sorted[to].score == scores[1])))
			break;
	TRY(timed_zset_range_count(item, &range, &number));
	assert_int_equal(number, to - from);
	range.skip = rand_seq_below(r, 2) ? 0 : rand_seq_below(r, 50);
	range.limit = rand_seq_below(r, 2) ? SIZE_MAX : rand_seq_below(r, 100);
	TRY(timed_zset_range(item, &range, &got));
	n = to - from > range.skip ? to - from - (size_t)range.skip : 0;
	n = n > range.limit ? range.limit : n;
	from = range.reverse ? (n ? to - (size_t)range.skip - n : 0) : from + (size_t)range.skip;
	compare_members(&got, sorted, from, n, range.reverse);
	return STATUS_OK;
}

static enum status
compare_zset(struct timed_item *item, const struct items_compare *c)
{
	struct rand_seq r = { c->random };
	size_t count = c->m->count;
	struct timed_member *sorted = arena_zalloc(item->arena, (count + 1) * sizeof(*sorted));
	struct timed_zset_range range = { .limit = SIZE_MAX, .from = 0, .to = UINT64_MAX };
	struct timed_members got;
	enum status status;
	uint64_t rank;
	double score;

	for (size_t i = 0; i < count; i++) {
		sorted[i].name = name_of(item->arena, c->m->entries[i].name);
		sorted[i].score = c->m->entries[i].score;
	}
	qsort(sorted, count, sizeof(*sorted), entry_cmp);
	TRY(timed_zset_range(item, &range, &got));
	assert_int_equal(got.count, count);
	/* Names that are cut come in the order of their hashes. */
	for (size_t i = 0; i < count; i++) {
		assert_true(got.members[i].score == sorted[i].score);
		sorted[i] = got.members[i];
	}
	for (int i = 0; i < 5; i++) {
		size_t at = rand_seq_below(&r, count), to = at + rand_seq_below(&r, count - at + 1);
		bool reverse = rand_seq_below(&r, 2);

		TRY(timed_zset_rank(item, sorted[at].name, reverse, &rank, &score));
		assert_int_equal(rank, reverse ? count - 1 - at : at);
		assert_true(score == sorted[at].score);
		range = (struct timed_zset_range){
			.from = reverse ? count - to : at,
			.to = reverse ? count - at : to,
			.reverse = reverse,
			.limit = SIZE_MAX,
		};
		TRY(timed_zset_range(item, &range, &got));
		compare_members(&got, sorted, at, to - at, reverse);
		TRY(compare_scores(item, sorted, count, &r));
	}
	status = timed_zset_rank(item, STR("none"), false, &rank, &score);
	if (status == STATUS_NOT_FOUND)
		return STATUS_OK;
	assert_true(status != STATUS_OK);
	return status;
}

/* What timed_list_range() has given, and how many of its values were told so far. */
struct told {
	struct timed_elements got;
	size_t count;
};

static void
compare_told(void *arg, struct str value)
{
	struct told *told = arg;

	assert_true(told->count < told->got.count);
	assert_true(str_eq(value, told->got.elements[told->count++].value));
}

static enum status
compare_list(struct timed_item *item, const struct items_compare *c)
{
	struct told told;
	const struct timed_values to = { compare_told, &told };
	struct timed_elements got;
	uint64_t values;
	struct rand_seq r = { c->random };

	for (int i = 0; i < 6; i++) {
		size_t from = i ? rand_seq_below(&r, c->m->count + 2) : 0;
		size_t limit = i ? rand_seq_below(&r, 50) : c->m->count;
		size_t count = from < c->m->count ? c->m->count - from : 0;

		count = count > limit ? limit : count;
		TRY(timed_list_range(item, from, limit, &got));
		assert_int_equal(got.count, count);
		for (size_t j = 0; j < count; j++)
			assert_true(
				str_eq(got.elements[j].value,
				       value_of(item->arena, 'e', c->m->entries[from + j].name)));
		told = (struct told){ .got = got };
		TRY(timed_list_values(item, from, limit, &to, &values));
		assert_int_equal(values, count);
		assert_int_equal(told.count, count);
	}
	return STATUS_OK;
}

static enum status
compare_value(struct timed_item *item, const struct items_compare *c)
{
	size_t at = c->m->len ? (size_t)(c->random % c->m->len) : 0;
	struct str value;

	assert_int_equal(item->length, c->m->len);
	TRY(timed_value_get(item, 0, UINT64_MAX, &value));
	assert_true(str_eq(value, str_of(c->m->bytes, c->m->len)));
	TRY(timed_value_get(item, at, 100, &value));
	assert_true(str_eq(value,
			   str_of(c->m->bytes + at, c->m->len - at < 100 ? c->m->len - at : 100)));
	return STATUS_OK;
}

enum status
items_compare(struct timed *t, struct arena *arena, void *arg)
{
	const struct items_compare *c = arg;
	struct timed_item item;
	uint64_t count;

	if (c->at_ms)
		timed_at(t, c->at_ms);
	TRY(timed_item_open(t, key_of(c->key), arena, &item));
	assert_int_equal(item.type, c->m->type);
	assert_int_equal(item.expires_ms, c->m->expires_ms);
	TRY(timed_count(&item, &count));
	if (item.type == TIMED_LEAF) {
		assert_int_equal(count, 0);
		return STATUS_OK;
	}
	if (item.type == TIMED_VALUE) {
		return compare_value(&item, c);
	}
	assert_int_equal(count, c->m->count);
	c->f->packed += item.packed;
	if (item.type == TIMED_LIST) {
		return compare_list(&item, c);
	}
	TRY(compare_pages(&item, c));
	return item.type == TIMED_ZSET ? compare_zset(&item, c) : STATUS_OK;
}

/* ---- Random operations ---- */

enum {
	SMALL_KEYS = 2,
	SMALL_NAMES = 40,
	SMALL_FIRST = 2,
	SMALL_EXPIRES = 8, /* one in so many puts gives members an expiry */
};

enum {
	CHANGE_SET,
	CHANGE_WRITE,
	CHANGE_DELETE,
	CHANGE_EXPIRE,
	CHANGE_RENAME,
	CHANGE_COPY,
	CHANGE_PUT,
	CHANGE_PUT_MORE,
	CHANGE_REMOVE,
	CHANGE_EXPIRE_MEMBERS,
	CHANGE_PUSH,
	CHANGE_POP,
	CHANGE_LIST,
	CHANGE_KINDS,
};

static double
score_of(unsigned n)
{
	static const double scores[] = { 0,     -1,     1, 0.5,       -2.5,
					 1e300, -1e300, 3, 1.0 / 0.0, -1.0 / 0.0 };

	return n % 2 ? scores[n / 2 % 10] : (double)n / 3 - 50;
}

/* Collections of some keys have few members, with short names: most of them lie in headers. */
static bool
change_is_small(const struct items_change *c)
{
	return c->key < SMALL_KEYS;
}

/* Members that a change is about: the same for the store and for the model. */
static size_t
change_members(struct rand_seq *r, bool more, bool small, struct items_model_entry *ret)
{
	size_t count = more ? 1 + rand_seq_below(r, 150) : 1 + rand_seq_below(r, 3);

	if (small && count > SMALL_NAMES)
		count = SMALL_NAMES;
	for (size_t i = 0; i < count; i++) {
		ret[i].name = small ? SMALL_FIRST + (unsigned)rand_seq_below(r, SMALL_NAMES)
				    : (unsigned)rand_seq_below(r, ITEMS_NAMES);
		ret[i].value = (unsigned)rand_seq_below(r, 1000);
		ret[i].score = score_of((unsigned)rand_seq_below(r, 1000));
		ret[i].expires_ms = 0;
	}
	return count;
}

/* Some of them expire by themselves, and some have already. */
static void
change_expiries(struct rand_seq *r, uint64_t now_ms, struct items_model_entry *entries,
		size_t count)
{
	bool all = rand_seq_below(r, 4) == 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t after = rand_seq_below(r, 6000);

		entries[i].expires_ms = all || after % 4 == 0 ? now_ms - 100 + after : 0;
	}
}

/* One that has expired by that is not there for the next change. */
static void
model_expire_member(struct items_model_item *m, const struct items_model_entry *e, uint64_t now_ms)
{
	size_t at = model_find(m, e->name);

	m->entries[at].expires_ms = e->expires_ms;
	model_expire_members(now_ms, m);
}

static void
model_put(struct items_model_item *m, const struct items_model_entry *e)
{
	size_t at = model_find(m, e->name);

	if (at == m->count)
		model_insert(m, at, *e);
	m->entries[at] = *e;
}

static struct timed_member *
members_of(struct arena *arena, const struct items_model_entry *entries, size_t count)
{
	struct timed_member *members = arena_zalloc(arena, count * sizeof(*members));

	for (size_t i = 0; i < count; i++) {
		members[i].name = name_of(arena, entries[i].name);
		members[i].value = value_of(arena, 'v', entries[i].value);
		members[i].score = entries[i].score;
		members[i].expires_ms = entries[i].expires_ms;
	}
	return members;
}

static enum status
change_put(struct timed_item *item, struct items_model_item *m, struct rand_seq *r,
	   const struct items_change *c)
{
	static const enum timed_type types[] = { TIMED_HASH, TIMED_SET, TIMED_ZSET };
	struct items_model_entry entries[200];
	size_t count = change_members(r, c->kind == CHANGE_PUT_MORE, change_is_small(c), entries);
	enum timed_type type = types[rand_seq_below(r, 3)], is = item ? item->type : m->type;

	if (is == TIMED_VALUE || is == TIMED_LIST)
		return STATUS_OK;
	type = is == TIMED_LEAF ? type : is;
	if (type == TIMED_HASH && (!change_is_small(c) || rand_seq_below(r, SMALL_EXPIRES) == 0))
		change_expiries(r, c->now_ms, entries, count);
	if (item)
		return timed_members_put(item, type, members_of(item->arena, entries, count),
					 count);
	model_begin(m, type);
	for (size_t i = 0; i < count; i++)
		model_put(m, &entries[i]);
	return STATUS_OK;
}

/* Changes when members expire, of those that are there. */
static enum status
change_expire_members(struct timed_item *item, struct items_model_item *m, struct rand_seq *r,
		      const struct items_change *c)
{
	struct items_model_entry entries[200];
	size_t count = change_members(r, true, change_is_small(c), entries);

	change_expiries(r, c->now_ms, entries, count);
	for (size_t i = 0; i < count; i++) {
		enum status status = STATUS_OK;

		if (item)
			status = timed_member_expire(item, name_of(item->arena, entries[i].name),
						     entries[i].expires_ms);
		else if (m->type == TIMED_HASH && model_find(m, entries[i].name) < m->count)
			model_expire_member(m, &entries[i], c->now_us / 1000);
		if (status != STATUS_NOT_FOUND)
			TRY(status);
	}
	return STATUS_OK;
}

static enum status
change_remove(struct timed_item *item, struct items_model_item *m, struct rand_seq *r,
	      const struct items_change *c)
{
	struct items_model_entry entries[200];
	size_t count = change_members(r, rand_seq_below(r, 2), change_is_small(c), entries);

	if (item) {
		if (item->type == TIMED_VALUE || item->type == TIMED_LIST)
			return STATUS_OK;
		return timed_members_delete(item, members_of(item->arena, entries, count), count);
	}
	if (m->type == TIMED_VALUE || m->type == TIMED_LIST)
		return STATUS_OK;
	for (size_t i = 0; i < count; i++)
		if (m->count && model_find(m, entries[i].name) < m->count)
			model_remove(m, model_find(m, entries[i].name));
	return STATUS_OK;
}

static enum status
change_push(struct timed_item *item, struct items_model_item *m, struct rand_seq *r)
{
	size_t count = 1 + rand_seq_below(r, 80);
	bool left = rand_seq_below(r, 2);
	struct str values[80];
	unsigned first = (unsigned)rand_seq_below(r, 1000);

	if (item) {
		if (item->type != TIMED_LEAF && item->type != TIMED_LIST)
			return STATUS_OK;
		for (size_t i = 0; i < count; i++)
			values[i] = value_of(item->arena, 'e', first + (unsigned)i);
		return timed_list_push(item, left, values, count);
	}
	if ((m->type != TIMED_LEAF && m->type != TIMED_LIST) || m->count + count > ITEMS_ENTRIES)
		return STATUS_OK;
	model_begin(m, TIMED_LIST);
	for (size_t i = 0; i < count; i++)
		model_insert(m, left ? 0 : m->count,
			     (struct items_model_entry){ .name = first + (unsigned)i });
	return STATUS_OK;
}

static unsigned
number_of(struct arena *arena, struct str name)
{
	struct arena_mark mark = arena_mark(arena);
	unsigned n = 0;

	while (n < ITEMS_NAMES && !str_eq(name_of(arena, n), name))
		n++;
	assert_true(n < ITEMS_NAMES);
	arena_reset(arena, mark);
	return n;
}

/* Removes the members of the model that the store has popped, each of which was at the end. */
static void
model_pop(struct items_model_item *m, bool greatest, size_t most, const struct items_change *c)
{
	assert_int_equal(c->popped_count, most < m->count ? most : m->count);
	for (size_t i = 0; i < c->popped_count; i++) {
		size_t at = model_find(m, c->popped[i]);
		double score;

		assert_true(at < m->count);
		score = m->entries[at].score;
		for (size_t k = 0; k < m->count; k++)
			assert_true(greatest ? m->entries[k].score <= score
					     : m->entries[k].score >= score);
		model_remove(m, at);
	}
}

/* In several pops, as a client's pipeline does. */
static enum status
pop_elements(struct timed_item *item, bool left, size_t count)
{
	struct timed_elements got;

	for (size_t n; count; count -= n) {
		n = count < 3 ? count : 1 + count % 3;
		TRY(timed_list_pop(item, left, n, &got));
		assert_true(got.count <= n);
	}
	return STATUS_OK;
}

static enum status
change_pop(struct timed_item *item, struct items_model_item *m, struct rand_seq *r,
	   struct items_change *c)
{
	size_t count = rand_seq_below(r, ITEMS_POPPED);
	bool left = rand_seq_below(r, 2);
	struct timed_members got;

	if (item && item->type == TIMED_LIST)
		return pop_elements(item, left, count);
	if (item && item->type == TIMED_ZSET) {
		TRY(timed_zset_pop(item, !left, count, &got));
		c->popped_count = got.count;
		for (size_t i = 0; i < got.count; i++)
			c->popped[i] = number_of(item->arena, got.members[i].name);
		return STATUS_OK;
	}
	if (!item && m->type == TIMED_ZSET)
		model_pop(m, !left, count, c);
	for (size_t i = 0; i < count && !item && m->type == TIMED_LIST; i++)
		model_remove(m, left ? 0 : m->count - 1);
	return STATUS_OK;
}

/* Sets, inserts, removes in the middle, or trims. */
static enum status
change_list(struct timed_item *item, struct items_model_item *m, struct rand_seq *r, size_t length)
{
	unsigned kind = (unsigned)rand_seq_below(r, 4);
	size_t at = length ? rand_seq_below(r, length) : 0;
	unsigned n = (unsigned)rand_seq_below(r, 1000);
	bool before = rand_seq_below(r, 2);
	struct timed_elements got;

	if (item) {
		struct str value = value_of(item->arena, 'e', n);

		if (item->type != TIMED_LIST)
			return STATUS_OK;
		TRY(timed_list_range(item, at, 1, &got));
		assert_int_equal(got.count, 1);
		if (kind == 0)
			return timed_list_set(item, &got.elements[0], value);
		for (unsigned i = 0; kind == 1 && i < 5; i++)
			TRY(timed_list_insert(item, &got.elements[0], before, value));
		if (kind == 2)
			return timed_list_remove(item, got.elements, 1);
		return kind == 3 ? timed_list_trim(item, at, n % 200) : STATUS_OK;
	}
	if (m->type != TIMED_LIST)
		return STATUS_OK;
	if (kind == 0)
		m->entries[at].name = n;
	for (unsigned i = 0; kind == 1 && i < 5; i++)
		model_insert(m, before ? at + i : at + 1, (struct items_model_entry){ .name = n });
	if (kind == 2)
		model_remove(m, at);
	if (kind == 3) {
		size_t kept = n % 200;

		while (m->count && (!kept || m->count > at + kept))
			model_remove(m, m->count - 1);
		for (size_t i = 0; m->count && i < at; i++)
			model_remove(m, 0);
	}
	return STATUS_OK;
}

static enum status
change_value(struct timed_item *item, struct items_model_item *m, struct rand_seq *r,
	     const struct items_change *c)
{
	static const size_t sizes[] = { 0,     5, 1000, TIMED_INLINE_BYTES, TIMED_INLINE_BYTES + 1,
					150000 };
	size_t len = sizes[rand_seq_below(r, 6)];
	size_t offset = sizes[rand_seq_below(r, 6)] + rand_seq_below(r, 10);
	char *bytes = malloc(len + 1);
	enum status status = STATUS_OK;
	size_t all;

	for (size_t i = 0; i < len; i++)
		bytes[i] = (char)(i * 31 + c->seed % 251);
	if (item && c->kind == CHANGE_SET) {
		status = timed_value_set(item, str_of(bytes, len),
					 (struct timed_expiry){ TIMED_EXPIRY_NEVER, 0 });
	} else if (item) {
		if (len && (item->type == TIMED_LEAF || item->type == TIMED_VALUE))
			status = timed_value_write(item, offset, str_of(bytes, len));
	} else if (c->kind == CHANGE_SET) {
		items_model_clear(m);
		m->type = TIMED_VALUE;
		m->bytes = bytes;
		m->len = len;
		return STATUS_OK;
	} else if (len && (m->type == TIMED_LEAF || m->type == TIMED_VALUE)) {
		m->type = TIMED_VALUE;
		all = offset + len > m->len ? offset + len : m->len;
		m->bytes = realloc(m->bytes, all);
		memset(m->bytes + m->len, 0, all - m->len);
		memcpy(m->bytes + offset, bytes, len);
		m->len = all;
	}
	free(bytes);
	return status;
}

void
items_model_copy(struct items_model_item *to, const struct items_model_item *m)
{
	items_model_clear(to);
	*to = *m;
	if (m->entries) {
		to->entries = calloc(ITEMS_ENTRIES, sizeof(*to->entries));
		memcpy(to->entries, m->entries, m->count * sizeof(*to->entries));
	}
	if (m->bytes) {
		to->bytes = malloc(m->len + 1);
		memcpy(to->bytes, m->bytes, m->len);
	}
}

static enum status
change_model(struct items_change *c, struct rand_seq *r)
{
	struct items_model_item *m = &c->model->items[c->key], *to = &c->model->items[c->other];

	switch (c->kind) {
	case CHANGE_DELETE:
		items_model_clear(m);
		return STATUS_OK;
	case CHANGE_EXPIRE:
		if (m->type != TIMED_LEAF)
			m->expires_ms = c->now_ms + 5000;
		return STATUS_OK;
	case CHANGE_RENAME:
		if (m->type == TIMED_LEAF || m == to)
			return STATUS_OK;
		items_model_clear(to);
		*to = *m;
		*m = (struct items_model_item){ .entries = NULL };
		return STATUS_OK;
	case CHANGE_COPY:
		if (m->type != TIMED_LEAF && m != to)
			items_model_copy(to, m);
		return STATUS_OK;
	case CHANGE_PUT:
	case CHANGE_PUT_MORE:
		return change_put(NULL, m, r, c);
	case CHANGE_EXPIRE_MEMBERS:
		return change_expire_members(NULL, m, r, c);
	case CHANGE_REMOVE:
		return change_remove(NULL, m, r, c);
	case CHANGE_PUSH:
		return change_push(NULL, m, r);
	case CHANGE_POP:
		return change_pop(NULL, m, r, c);
	case CHANGE_LIST:
		return change_list(NULL, m, r, m->count);
	default:
		return change_value(NULL, m, r, c);
	}
}

static enum status
change_store(struct timed *t, struct arena *arena, void *arg)
{
	struct items_change *c = arg;
	struct rand_seq r = { c->seed };
	struct timed_item item, to;
	uint64_t length;

	TRY(timed_item_ask(t, key_of(c->key), arena, &item));
	if (c->other != c->key)
		TRY(timed_item_ask(t, key_of(c->other), arena, &to));
	TRY(timed_item_wait(&item));
	if (c->other != c->key)
		TRY(timed_item_wait(&to));
	c->now_us = t->now_us;
	switch (c->kind) {
	case CHANGE_DELETE:
		return timed_item_delete(&item);
	case CHANGE_EXPIRE:
		return timed_item_expire(
			&item, (struct timed_expiry){ TIMED_EXPIRY_AT, c->now_ms + 5000 });
	case CHANGE_RENAME:
		return item.type == TIMED_LEAF || c->key == c->other
			       ? STATUS_OK
			       : timed_item_rename(&item, &to);
	case CHANGE_COPY:
		return item.type == TIMED_LEAF || c->key == c->other ? STATUS_OK
								     : timed_item_copy(&item, &to);
	case CHANGE_PUT:
	case CHANGE_PUT_MORE:
		return change_put(&item, NULL, &r, c);
	case CHANGE_EXPIRE_MEMBERS:
		return change_expire_members(&item, NULL, &r, c);
	case CHANGE_REMOVE:
		return change_remove(&item, NULL, &r, c);
	case CHANGE_PUSH:
		TRY(timed_count(&item, &length));
		if (item.type == TIMED_LIST && length > ITEMS_ENTRIES - 100)
			return timed_item_delete(&item);
		return change_push(&item, NULL, &r);
	case CHANGE_POP:
		return change_pop(&item, NULL, &r, c);
	case CHANGE_LIST:
		TRY(timed_count(&item, &length));
		return change_list(&item, NULL, &r, (size_t)length);
	default:
		return change_value(&item, NULL, &r, c);
	}
}

/* One random change, in the store and then in the model. */
struct items_change
items_change(struct items *f, struct items_model *model, struct rand_seq *r)
{
	struct items_change c = {
		.key = (unsigned)rand_seq_below(r, ITEMS_KEYS),
		.other = (unsigned)rand_seq_below(r, ITEMS_KEYS),
		.kind = (unsigned)rand_seq_below(r, CHANGE_KINDS),
		.seed = rand_seq_next(r),
		.now_ms = f->now_ms,
	};
	struct rand_seq again = { c.seed };
	struct items_model_item *m = &model->items[c.key];

	items_must(f, change_store, &c);
	model_expire(f, c.now_us / 1000, model);
	c.model = model;
	if (c.kind == CHANGE_PUSH && m->type == TIMED_LIST && m->count > ITEMS_ENTRIES - 100)
		items_model_clear(m);
	else
		(void)change_model(&c, &again);
	model_expire(f, c.now_us / 1000, model);
	return c;
}
