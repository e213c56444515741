/*
 * Items: what each operation reads, and random operations against a model that keeps arrays, with
 * all ways to read an item compared after each of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rand.h"
#include "catalog/store_format.h"
#include "catalog/verify.h"
#include "kv/tuple.h"
#include "model/timed/item.h"
#include "store.h"

enum {
	ARENA_BYTES = 256 * 1024 * 1024,
	START_MS = 1000 * 1000,
	SPACE_ROWS = 33, /* as they are stored */
	SPACE_EXPIRY = 34,
	SPACE_BODY = 37,
	SPACE_GONE = 38,
	SWEEPS = 1000,
};

struct fixture {
	char dir[64];
	struct kv_store *store;
	struct arena *arena;
	struct timed_clock clock;
	uint64_t now_ms;
	struct kv_tx_stats cost; /* of the last step */
	struct err err;
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
	(void)arg;
	TRY(timed_items_create(tx, STR("0"), NULL));
	return timed_items_create(tx, STR("15"), NULL);
}

static int
fixture_setup(void **state)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct fixture *f = calloc(1, sizeof(*f));
	char url[256];

	test_show_failures();
	timed_register();
	(void)snprintf(f->dir, sizeof(f->dir), "/tmp/frond-items-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	test_store_url(f->dir, url, sizeof(url));
	assert_int_equal(catalog_store_open(url, &options, &f->store, &f->err), STATUS_OK);
	f->arena = arena_new(ARENA_BYTES);
	f->clock = (struct timed_clock){ fixture_now, f };
	f->now_ms = START_MS;
	assert_int_equal(kv_run(f->store, create_body, NULL, NULL, &f->err), STATUS_OK);
	*state = f;
	return 0;
}

static int
fixture_teardown(void **state)
{
	struct fixture *f = *state;

	arena_free(f->arena);
	kv_close(f->store);
	test_remove_tree(f->dir);
	free(f);
	return 0;
}

/* ---- Steps: a transaction each, which starts over when it has to ---- */

typedef enum status step_fn(struct timed *t, struct arena *arena, void *arg);

struct step {
	struct fixture *f;
	step_fn *run;
	void *arg;
	const char *db;
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
	before = kv_tx_stats(tx);
	s->status = s->run(&t, s->f->arena, s->arg);
	s->f->cost = kv_tx_stats(tx);
	s->f->cost.reads -= before.reads;
	s->f->cost.keys_read -= before.keys_read;
	s->f->cost.sets -= before.sets;
	s->f->cost.clears -= before.clears;
	catalog_db_unref(db);
	return is_outcome(s->status) ? STATUS_OK : s->status;
}

static enum status
try_in(struct fixture *f, const char *db, step_fn *run, void *arg)
{
	struct step s = { .f = f, .run = run, .arg = arg, .db = db };
	enum status status = kv_run(f->store, step_body, &s, NULL, &f->err);

	if (status != STATUS_OK)
		fail_msg("%s: %s", status_name(status), f->err.text);
	return s.status;
}

static void
must(struct fixture *f, step_fn *run, void *arg)
{
	enum status status = try_in(f, "0", run, arg);

	if (status != STATUS_OK)
		fail_msg("%s: %s", status_name(status), f->err.text);
}

static void
found(const struct catalog_finding *finding, void *arg)
{
	(void)arg;
	fail_msg("%s: %s", finding->kind, finding->text);
}

static enum status
verify_body(struct kv_tx *tx, void *arg)
{
	const struct catalog_verify_options options = { .found = found };
	struct catalog_verify_sum sum;

	(void)arg;
	return catalog_verify_store(tx, &options, &sum, NULL);
}

static void
verify(struct fixture *f)
{
	assert_int_equal(kv_run_read(f->store, verify_body, NULL, NULL), STATUS_OK);
}

static void
sweep_all(struct fixture *f)
{
	uint64_t done;
	bool more = true;

	for (int i = 0; more && i < SWEEPS; i++)
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

static size_t
pairs_of(struct fixture *f, uint64_t space)
{
	struct space_count c = { .space = space };

	must(f, space_count_run, &c);
	return c.pairs;
}

/* ---- The model ---- */

enum {
	KEYS = 5,
	NAMES = 600,
	ENTRIES = 3000,
};

struct model_entry {
	unsigned name;  /* of a member; of a list's element: what it is */
	double score;   /* TIMED_ZSET */
	unsigned value; /* TIMED_HASH */
};

struct model_item {
	enum timed_type type;
	uint64_t expires_ms;
	struct model_entry *entries; /* members in the order of their numbers; a list in its own */
	size_t count;
	char *bytes; /* TIMED_VALUE */
	size_t len;
};

struct model {
	struct model_item items[KEYS];
};

static void
model_clear(struct model_item *m)
{
	free(m->entries);
	free(m->bytes);
	*m = (struct model_item){ .entries = NULL };
}

static void
model_begin(struct model_item *m, enum timed_type type)
{
	if (m->type == type)
		return;
	model_clear(m);
	m->type = type;
	m->entries = calloc(ENTRIES, sizeof(*m->entries));
}

static void
model_expire(struct fixture *f, struct model *model)
{
	for (int i = 0; i < KEYS; i++)
		if (model->items[i].expires_ms && model->items[i].expires_ms <= f->now_ms)
			model_clear(&model->items[i]);
}

static size_t
model_find(const struct model_item *m, unsigned name)
{
	size_t i = 0;

	while (i < m->count && m->entries[i].name != name)
		i++;
	return i;
}

static void
model_insert(struct model_item *m, size_t at, struct model_entry e)
{
	assert_true(m->count < ENTRIES);
	memmove(&m->entries[at + 1], &m->entries[at], (m->count - at) * sizeof(*m->entries));
	m->entries[at] = e;
	m->count++;
}

static void
model_remove(struct model_item *m, size_t at)
{
	m->count--;
	memmove(&m->entries[at], &m->entries[at + 1], (m->count - at) * sizeof(*m->entries));
	if (!m->count)
		model_clear(m);
}

/* ---- Names and values by numbers ---- */

static struct str
name_of(struct arena *arena, unsigned n)
{
	struct str name = arena_printf(arena, "m%u", n * 7919 % 10007);
	char *bytes;

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
	static const char *const keys[KEYS] = { "a", "b", "key", "", "long" };
	static char long_key[TIMED_WHOLE_BYTES + 1];

	memset(long_key, 'k', sizeof(long_key));
	return n == KEYS - 1 ? str_of(long_key, sizeof(long_key)) : str_from_cstr(keys[n]);
}

/* ---- Comparing ---- */

struct compare {
	struct fixture *f;
	const struct model_item *m;
	unsigned key;
	uint64_t random;
};

static int
entry_cmp(const void *a, const void *b)
{
	const struct timed_member *x = a, *y = b;

	if (x->score != y->score)
		return x->score < y->score ? -1 : 1;
	return str_cmp(x->name, y->name);
}

static enum status
compare_pages(struct timed_item *item, const struct compare *c)
{
	uint64_t from = 0;
	size_t count = 0;

	do {
		struct timed_members page;

		TRY(timed_members_page(item, from, 1 + c->random % 40, &page));
		for (size_t i = 0; i < page.count; i++) {
			size_t at = 0;

			while (at < c->m->count &&
			       !str_eq(name_of(item->arena, c->m->entries[at].name),
				       page.members[i].name))
				at++;
			assert_true(at < c->m->count);
			if (item->type == TIMED_HASH)
				assert_true(str_eq(
					page.members[i].value,
					arena_printf(item->arena, "v%u", c->m->entries[at].value)));
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
compare_zset(struct timed_item *item, const struct compare *c)
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

static enum status
compare_list(struct timed_item *item, const struct compare *c)
{
	struct timed_elements got;
	struct rand_seq r = { c->random };

	for (int i = 0; i < 6; i++) {
		size_t from = i ? rand_seq_below(&r, c->m->count + 2) : 0;
		size_t limit = i ? rand_seq_below(&r, 50) : c->m->count;
		size_t count = from < c->m->count ? c->m->count - from : 0;

		count = count > limit ? limit : count;
		TRY(timed_list_range(item, from, limit, &got));
		assert_int_equal(got.count, count);
		for (size_t j = 0; j < count; j++)
			assert_true(str_eq(
				got.elements[j].value,
				arena_printf(item->arena, "e%u", c->m->entries[from + j].name)));
	}
	return STATUS_OK;
}

static enum status
compare_value(struct timed_item *item, const struct compare *c)
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

static enum status
compare_run(struct timed *t, struct arena *arena, void *arg)
{
	const struct compare *c = arg;
	struct timed_item item;
	uint64_t count;

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
	if (item.type == TIMED_LIST) {
		return compare_list(&item, c);
	}
	TRY(compare_pages(&item, c));
	return item.type == TIMED_ZSET ? compare_zset(&item, c) : STATUS_OK;
}

/* ---- Random operations ---- */

struct change {
	struct model *model; /* NULL: the store's turn */
	unsigned key, other;
	unsigned kind;
	uint64_t seed;
	uint64_t now_ms;
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

/* Members that a change is about: the same for the store and for the model. */
static size_t
change_members(struct rand_seq *r, bool more, struct model_entry *ret)
{
	size_t count = more ? 1 + rand_seq_below(r, 150) : 1 + rand_seq_below(r, 3);

	for (size_t i = 0; i < count; i++) {
		ret[i].name = (unsigned)rand_seq_below(r, NAMES);
		ret[i].value = (unsigned)rand_seq_below(r, 1000);
		ret[i].score = score_of((unsigned)rand_seq_below(r, 1000));
	}
	return count;
}

static void
model_put(struct model_item *m, const struct model_entry *e)
{
	size_t at = model_find(m, e->name);

	if (at == m->count)
		model_insert(m, at, *e);
	m->entries[at] = *e;
}

static struct timed_member *
members_of(struct arena *arena, const struct model_entry *entries, size_t count)
{
	struct timed_member *members = arena_zalloc(arena, count * sizeof(*members));

	for (size_t i = 0; i < count; i++) {
		members[i].name = name_of(arena, entries[i].name);
		members[i].value = arena_printf(arena, "v%u", entries[i].value);
		members[i].score = entries[i].score;
	}
	return members;
}

static enum status
change_put(struct timed_item *item, struct model_item *m, struct rand_seq *r, bool more)
{
	static const enum timed_type types[] = { TIMED_HASH, TIMED_SET, TIMED_ZSET };
	struct model_entry entries[200];
	size_t count = change_members(r, more, entries);
	enum timed_type type = types[rand_seq_below(r, 3)];

	if (item) {
		if (item->type == TIMED_VALUE || item->type == TIMED_LIST)
			return STATUS_OK;
		return timed_members_put(item, item->type == TIMED_LEAF ? type : item->type,
					 members_of(item->arena, entries, count), count);
	}
	if (m->type == TIMED_VALUE || m->type == TIMED_LIST)
		return STATUS_OK;
	model_begin(m, m->type == TIMED_LEAF ? type : m->type);
	for (size_t i = 0; i < count; i++)
		model_put(m, &entries[i]);
	return STATUS_OK;
}

static enum status
change_remove(struct timed_item *item, struct model_item *m, struct rand_seq *r)
{
	struct model_entry entries[200];
	size_t count = change_members(r, true, entries);

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
change_push(struct timed_item *item, struct model_item *m, struct rand_seq *r)
{
	size_t count = 1 + rand_seq_below(r, 80);
	bool left = rand_seq_below(r, 2);
	struct str values[80];
	unsigned first = (unsigned)rand_seq_below(r, 1000);

	if (item) {
		if (item->type != TIMED_LEAF && item->type != TIMED_LIST)
			return STATUS_OK;
		for (size_t i = 0; i < count; i++)
			values[i] = arena_printf(item->arena, "e%u", first + (unsigned)i);
		return timed_list_push(item, left, values, count);
	}
	if ((m->type != TIMED_LEAF && m->type != TIMED_LIST) || m->count + count > ENTRIES)
		return STATUS_OK;
	model_begin(m, TIMED_LIST);
	for (size_t i = 0; i < count; i++)
		model_insert(m, left ? 0 : m->count,
			     (struct model_entry){ .name = first + (unsigned)i });
	return STATUS_OK;
}

static enum status
change_pop(struct timed_item *item, struct model_item *m, struct rand_seq *r)
{
	size_t count = rand_seq_below(r, 60);
	bool left = rand_seq_below(r, 2);
	struct timed_elements got;

	if (item)
		return item->type == TIMED_LIST ? timed_list_pop(item, left, count, &got)
						: STATUS_OK;
	for (size_t i = 0; i < count && m->type == TIMED_LIST; i++)
		model_remove(m, left ? 0 : m->count - 1);
	return STATUS_OK;
}

/* Sets, inserts, removes in the middle, or trims. */
static enum status
change_list(struct timed_item *item, struct model_item *m, struct rand_seq *r, size_t length)
{
	unsigned kind = (unsigned)rand_seq_below(r, 4);
	size_t at = length ? rand_seq_below(r, length) : 0;
	unsigned n = (unsigned)rand_seq_below(r, 1000);
	bool before = rand_seq_below(r, 2);
	struct timed_elements got;

	if (item) {
		struct str value = arena_printf(item->arena, "e%u", n);

		if (item->type != TIMED_LIST)
			return STATUS_OK;
		TRY(timed_list_range(item, at, 1, &got));
		assert_int_equal(got.count, 1);
		if (kind == 0)
			return timed_list_set(item, got.elements[0].place, value);
		for (unsigned i = 0; kind == 1 && i < 5; i++)
			TRY(timed_list_insert(item, got.elements[0].place, before, value));
		if (kind == 2)
			return timed_list_remove(item, got.elements, 1);
		return kind == 3 ? timed_list_trim(item, at, n % 200) : STATUS_OK;
	}
	if (m->type != TIMED_LIST)
		return STATUS_OK;
	if (kind == 0)
		m->entries[at].name = n;
	for (unsigned i = 0; kind == 1 && i < 5; i++)
		model_insert(m, before ? at + i : at + 1, (struct model_entry){ .name = n });
	if (kind == 2)
		model_remove(m, at);
	if (kind == 3) {
		while (m->count && m->count > at + n % 200)
			model_remove(m, m->count - 1);
		for (size_t i = 0; m->count && n % 200 && i < at; i++)
			model_remove(m, 0);
	}
	return STATUS_OK;
}

static enum status
change_value(struct timed_item *item, struct model_item *m, struct rand_seq *r,
	     const struct change *c)
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
		model_clear(m);
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

static void
model_copy(struct model_item *to, const struct model_item *m)
{
	model_clear(to);
	*to = *m;
	if (m->entries) {
		to->entries = calloc(ENTRIES, sizeof(*to->entries));
		memcpy(to->entries, m->entries, m->count * sizeof(*to->entries));
	}
	if (m->bytes) {
		to->bytes = malloc(m->len + 1);
		memcpy(to->bytes, m->bytes, m->len);
	}
}

static enum status
change_model(struct change *c, struct rand_seq *r)
{
	struct model_item *m = &c->model->items[c->key], *to = &c->model->items[c->other];

	switch (c->kind) {
	case CHANGE_DELETE:
		model_clear(m);
		return STATUS_OK;
	case CHANGE_EXPIRE:
		if (m->type != TIMED_LEAF)
			m->expires_ms = c->now_ms + 5000;
		return STATUS_OK;
	case CHANGE_RENAME:
		if (m->type == TIMED_LEAF || m == to)
			return STATUS_OK;
		model_clear(to);
		*to = *m;
		*m = (struct model_item){ .entries = NULL };
		return STATUS_OK;
	case CHANGE_COPY:
		if (m->type != TIMED_LEAF && m != to)
			model_copy(to, m);
		return STATUS_OK;
	case CHANGE_PUT:
	case CHANGE_PUT_MORE:
		return change_put(NULL, m, r, c->kind == CHANGE_PUT_MORE);
	case CHANGE_REMOVE:
		return change_remove(NULL, m, r);
	case CHANGE_PUSH:
		return change_push(NULL, m, r);
	case CHANGE_POP:
		return change_pop(NULL, m, r);
	case CHANGE_LIST:
		return change_list(NULL, m, r, m->count);
	default:
		return change_value(NULL, m, r, c);
	}
}

static enum status
change_store(struct timed *t, struct arena *arena, void *arg)
{
	const struct change *c = arg;
	struct rand_seq r = { c->seed };
	struct timed_item item, to;
	uint64_t length;

	TRY(timed_item_ask(t, key_of(c->key), arena, &item));
	if (c->other != c->key)
		TRY(timed_item_ask(t, key_of(c->other), arena, &to));
	TRY(timed_item_wait(&item));
	if (c->other != c->key)
		TRY(timed_item_wait(&to));
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
		return change_put(&item, NULL, &r, c->kind == CHANGE_PUT_MORE);
	case CHANGE_REMOVE:
		return change_remove(&item, NULL, &r);
	case CHANGE_PUSH:
		TRY(timed_count(&item, &length));
		if (item.type == TIMED_LIST && length > ENTRIES - 100)
			return timed_item_delete(&item);
		return change_push(&item, NULL, &r);
	case CHANGE_POP:
		return change_pop(&item, NULL, &r);
	case CHANGE_LIST:
		TRY(timed_count(&item, &length));
		return change_list(&item, NULL, &r, (size_t)length);
	default:
		return change_value(&item, NULL, &r, c);
	}
}

static void
random_operations_agree_with_a_model(void **state)
{
	struct fixture *f = *state;
	struct rand_seq r = { test_seed() };
	struct model model = { 0 };
	int rounds = getenv("FROND_TEST_FAULTS") ? 250 : 600;

	for (int i = 0; i < rounds; i++) {
		struct change c = {
			.key = (unsigned)rand_seq_below(&r, KEYS),
			.other = (unsigned)rand_seq_below(&r, KEYS),
			.kind = (unsigned)rand_seq_below(&r, CHANGE_KINDS),
			.seed = rand_seq_next(&r),
			.now_ms = f->now_ms,
		};
		struct rand_seq again = { c.seed };
		struct compare compare = { .f = f, .random = rand_seq_next(&r) };
		bool full;

		model_expire(f, &model);
		must(f, change_store, &c);
		full = model.items[c.key].count > ENTRIES - 100;
		c.model = &model;
		if (c.kind == CHANGE_PUSH && full && model.items[c.key].type == TIMED_LIST)
			model_clear(&model.items[c.key]);
		else
			(void)change_model(&c, &again);
		for (unsigned k = 0; k < KEYS; k++) {
			if (k != c.key && k != c.other)
				continue;
			compare.key = k;
			compare.m = &model.items[k];
			must(f, compare_run, &compare);
		}
		if (rand_seq_below(&r, 20) == 0)
			f->now_ms += 2000;
		if (rand_seq_below(&r, 50) == 0)
			sweep_all(f);
	}
	verify(f);
	f->now_ms += 1000 * 1000;
	sweep_all(f);
	verify(f);
	for (int i = 0; i < KEYS; i++)
		model_clear(&model.items[i]);
}

/* ---- What is read ---- */

static enum status
many_run(struct timed *t, struct arena *arena, void *arg)
{
	const unsigned *first = arg;
	struct timed_member *members = arena_zalloc(arena, 1000 * sizeof(*members));
	struct timed_item item;

	for (unsigned i = 0; i < 1000; i++) {
		members[i].name = arena_printf(arena, "member%u", *first + i);
		members[i].score = *first + i;
	}
	TRY(timed_item_open(t, STR("many"), arena, &item));
	return timed_members_put(&item, TIMED_ZSET, members, 1000);
}

static enum status
delete_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_item item;

	TRY(timed_item_open(t, str_from_cstr(arg), arena, &item));
	return timed_item_delete(&item);
}

static enum status
rename_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_item item, to;

	(void)arg;
	TRY(timed_item_ask(t, STR("many"), arena, &item));
	TRY(timed_item_ask(t, STR("moved"), arena, &to));
	TRY(timed_item_wait(&item));
	TRY(timed_item_wait(&to));
	return timed_item_rename(&item, &to);
}

static enum status
rank_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_item item;
	uint64_t rank;
	double score;

	(void)arg;
	TRY(timed_item_open(t, STR("many"), arena, &item));
	TRY(timed_zset_rank(&item, STR("member3777"), false, &rank, &score));
	assert_int_equal(rank, 3777);
	return STATUS_OK;
}

static enum status
select_run(struct timed *t, struct arena *arena, void *arg)
{
	const struct timed_zset_range range = { .from = 2999, .to = 3000, .limit = SIZE_MAX };
	struct timed_members got;
	struct timed_item item;

	(void)arg;
	TRY(timed_item_open(t, STR("many"), arena, &item));
	TRY(timed_zset_range(&item, &range, &got));
	assert_int_equal(got.count, 1);
	assert_true(str_eq(got.members[0].name, STR("member2999")));
	return STATUS_OK;
}

static void
a_collection_is_deleted_renamed_and_counted_without_reading_it(void **state)
{
	struct fixture *f = *state;

	for (unsigned first = 0; first < 5000; first += 1000)
		must(f, many_run, &first);
	must(f, rank_run, NULL);
	assert_in_range(f->cost.keys_read, 5, 500);
	must(f, select_run, NULL);
	assert_in_range(f->cost.keys_read, 5, 500);
	must(f, rename_run, NULL);
	assert_int_equal(f->cost.keys_read, 2); /* the header, the clock */
	assert_true(f->cost.sets < 10);
	must(f, delete_run, (char[]){ "moved" });
	assert_int_equal(f->cost.keys_read, 2);
	assert_int_equal(pairs_of(f, SPACE_ROWS), 0);
	verify(f);
	sweep_all(f);
	assert_int_equal(pairs_of(f, SPACE_BODY), 0);
	assert_int_equal(pairs_of(f, SPACE_GONE), 0);
}

static enum status
put_and_copy_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_member member = { .name = STR("m"), .value = STR("v") };
	struct timed_item item, to;
	uint64_t count;

	(void)arg;
	TRY(timed_item_open(t, STR("from"), arena, &item));
	TRY(timed_item_open(t, STR("to"), arena, &to));
	TRY(timed_members_put(&item, TIMED_HASH, &member, 1));
	TRY(timed_item_copy(&item, &to));
	TRY(timed_members_get(&to, &member, 1));
	assert_true(member.found);
	TRY(timed_count(&to, &count));
	assert_int_equal(count, 1);
	TRY(timed_item_delete(&item));
	return timed_item_rename(&to, &item);
}

static void
a_transaction_uses_what_it_has_written(void **state)
{
	struct fixture *f = *state;

	must(f, put_and_copy_run, NULL);
	assert_int_equal(pairs_of(f, SPACE_ROWS), 1);
	verify(f);
}

/* ---- Members that expire ---- */

static enum status
fields_run(struct timed *t, struct arena *arena, void *arg)
{
	const uint64_t *expires_ms = arg;
	struct timed_member members[2] = { { .name = STR("x"), .value = STR("1") },
					   { .name = STR("y"), .value = STR("2") } };
	struct timed_item item;

	TRY(timed_item_open(t, STR("h"), arena, &item));
	TRY(timed_members_put(&item, TIMED_HASH, members, 2));
	TRY(timed_member_expire(&item, STR("x"), *expires_ms));
	return timed_member_expire(&item, STR("y"), *expires_ms + 1000);
}

static enum status
fields_found(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_member members[2] = { { .name = STR("x") }, { .name = STR("y") } };
	struct timed_item item;
	int *ret = arg;

	TRY(timed_item_open(t, STR("h"), arena, &item));
	TRY(timed_members_get(&item, members, 2));
	*ret = members[0].found + 2 * members[1].found + 4 * (item.type == TIMED_HASH);
	return STATUS_OK;
}

static void
fields_expire_and_the_hash_goes_with_the_last(void **state)
{
	struct fixture *f = *state;
	uint64_t expires_ms = f->now_ms + 1000;
	int there;

	must(f, fields_run, &expires_ms);
	must(f, fields_found, &there);
	assert_int_equal(there, 7);
	f->now_ms += 1000;
	must(f, fields_found, &there);
	assert_int_equal(there, 6);
	sweep_all(f);
	verify(f);
	must(f, fields_found, &there);
	assert_int_equal(there, 6);
	f->now_ms += 1000;
	sweep_all(f);
	must(f, fields_found, &there);
	assert_int_equal(there, 0);
	assert_int_equal(pairs_of(f, SPACE_ROWS), 0);
	assert_int_equal(pairs_of(f, SPACE_BODY), 0);
	assert_int_equal(pairs_of(f, SPACE_EXPIRY), 0);
	verify(f);
}

/* ---- Databases ---- */

static enum status
page_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_items page;
	uint64_t from = 0, count;
	size_t *ret = arg;

	*ret = 0;
	do {
		TRY(timed_items_page(t, from, 7, arena, &page));
		for (size_t i = 0; i < page.count; i++)
			assert_true(str_starts_with(page.items[i].key, STR("key")));
		*ret += page.count;
		from = page.next;
	} while (from);
	TRY(timed_items_count(t, &count));
	assert_int_equal(count, *ret);
	return STATUS_OK;
}

static enum status
keys_run(struct timed *t, struct arena *arena, void *arg)
{
	(void)arg;
	for (int i = 0; i < 100; i++) {
		struct timed_item item;

		TRY(timed_item_open(t, arena_printf(arena, "key%d", i), arena, &item));
		TRY(timed_value_set(&item, STR("v"), (struct timed_expiry){ 0 }));
	}
	return STATUS_OK;
}

static enum status
flush_run(struct timed *t, struct arena *arena, void *arg)
{
	(void)arena;
	(void)arg;
	return timed_items_flush(t);
}

static void
pages_count_and_flush_are_of_one_database(void **state)
{
	struct fixture *f = *state;
	size_t count;

	must(f, keys_run, NULL);
	must(f, page_run, &count);
	assert_int_equal(count, 100);
	assert_int_equal(try_in(f, "15", page_run, &count), STATUS_OK);
	assert_int_equal(count, 0);
	assert_int_equal(try_in(f, "15", keys_run, NULL), STATUS_OK);
	must(f, flush_run, NULL);
	must(f, page_run, &count);
	assert_int_equal(count, 0);
	assert_int_equal(try_in(f, "15", page_run, &count), STATUS_OK);
	assert_int_equal(count, 100);
	verify(f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define WITH_STORE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
		WITH_STORE(a_collection_is_deleted_renamed_and_counted_without_reading_it),
		WITH_STORE(a_transaction_uses_what_it_has_written),
		WITH_STORE(fields_expire_and_the_hash_goes_with_the_last),
		WITH_STORE(pages_count_and_flush_are_of_one_database),
		WITH_STORE(random_operations_agree_with_a_model),
	};

	return cmocka_run_group_tests_name("items", tests, NULL, NULL);
}
