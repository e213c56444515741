/*
 * Random operations of a few interleaved transactions against a model that is simple enough to be
 * right: an array of values for each of a few keys. The model also knows exactly which commits have
 * to conflict. On a store with faults others may fail as well; what a commit of unknown result has
 * done is told by a mark that each one leaves.
 *
 * Once with keys of any kind, and once with rows of entities (kv/embedded/entity.c) in a store that
 * is opened again and compacted in between, so that they lie in memory, in tables and in levels.
 */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rand.h"
#include "kv/keyspace.h"
#include "kv/many.h"
#include "kv/tuple.h"

enum {
	KEYS = 30,
	VALUE_MAX_BYTES = 4,
	OPEN_TXS = 4,
	MAX_OPS = 200, /* of one transaction */
	STEPS = 6000,
	CHECK_EVERY = 50,
	KEY_BYTES = 32,

	/* Of entities: rows that each has; which of the groups of as many keys are none. */
	ROWS = 5,
	ENTITIES = KEYS / ROWS - 1,
	MOVE_EVERY = 150,
};

struct model_value {
	bool present;
	uint8_t len;
	uint8_t bytes[VALUE_MAX_BYTES];
};

struct model_op {
	enum {
		OP_SET,
		OP_CLEAR,
		OP_ATOMIC
	} kind;
	enum kv_atomic atomic;
	int from;
	int to; /* of a clear: the first key behind it */
	struct model_value value;
};

struct model_tx {
	struct kv_tx *tx; /* NULL: not open */
	uint64_t begun;   /* the model's clock */
	struct model_value view[KEYS];
	bool known[KEYS];     /* whatever the store holds, this transaction has written over it */
	bool conflicts[KEYS]; /* has been read */
	struct model_op ops[MAX_OPS];
	int op_count;
	bool wrote;
};

struct model {
	struct kv_store *store;
	bool entities;
	struct rand_seq rand;
	uint64_t clock; /* commits so far */
	struct model_value values[KEYS];
	uint64_t written[KEYS]; /* the clock at the last write */
	struct model_tx txs[OPEN_TXS];
	int commits;
	int conflicts;
	uint64_t marks;
};

static uint64_t
below(struct model *m, uint64_t n)
{
	return rand_seq_below(&m->rand, n);
}

/* Keys of different lengths, some a prefix of others. */
static struct str
plain_key(int i, char ret[KEY_BYTES])
{
	int n = snprintf(ret, KEY_BYTES, "t/%c", 'a' + i / 3);

	if (i % 3)
		n += snprintf(ret + n, KEY_BYTES - (size_t)n, "%c", i % 3 == 1 ? 1 : 'x');
	return str_of(ret, (size_t)n);
}

/* The row of an entity, the first being the entity itself; in the last group, of none. */
static struct str
entity_key(int i, char ret[KEY_BYTES])
{
	static const uint64_t spaces[] = { 3,   3,  FIXTURE_SPACE_OF_SIX, FIXTURE_SPACE_OF_SIX,
					   700, 701 };
	struct buf b AUTO(buf_release) = BUF_INIT(KEY_BYTES);
	int group = i / ROWS;

	tuple_put_u64(&b, 1);
	tuple_put_u64(&b, spaces[group]);
	switch (group) {
	case 0:
	case 4:
		tuple_put_str(&b, STR("a"));
		break;
	case 1:
		tuple_put_str(&b, str_of("a\0b", 3));
		break;
	case 2:
	case 3:
		tuple_put_str(&b, STR("ab"));
		tuple_put_bool(&b, true);
		tuple_put_u64(&b, 300);
		tuple_put_bytes(&b, group == 2 ? STR("h") : str_of("h\0i", 3));
		break;
	default:
		tuple_put_null(&b);
		break;
	}
	if (i % ROWS) {
		tuple_put_bool(&b, true);
		tuple_put_u64(&b, (uint64_t)i);
	}
	assert_ok(buf_status(&b));
	memcpy(ret, b.ptr, b.len);
	return str_of(ret, b.len);
}

static struct str
key_of(const struct model *m, int i, char ret[KEY_BYTES])
{
	return m->entities ? entity_key(i, ret) : plain_key(i, ret);
}

static struct str
value_str(const struct model_value *v)
{
	return str_of(v->bytes, v->len);
}

static struct model_value
random_value(struct model *m)
{
	struct model_value v = { .present = true };

	v.len = (uint8_t)below(m, VALUE_MAX_BYTES + 1);
	for (int i = 0; i < v.len; i++)
		v.bytes[i] = (uint8_t)(below(m, 2) ? below(m, 3) : 253 + below(m, 3));
	return v;
}

static uint64_t
number(const struct model_value *v, size_t len)
{
	uint64_t n = 0;

	for (size_t i = len; i-- > 0;)
		n = n << 8 | (v->present && i < v->len ? v->bytes[i] : 0);
	return n;
}

static struct model_value
from_number(uint64_t n, uint8_t len)
{
	struct model_value v = { .present = true, .len = len };

	for (int i = 0; i < len; i++)
		v.bytes[i] = (uint8_t)(n >> 8 * i);
	return v;
}

static struct model_value
model_atomic(enum kv_atomic op, struct model_value old, struct model_value operand)
{
	uint64_t x = number(&old, operand.len);
	uint64_t y = number(&operand, operand.len);
	int order = old.present ? str_cmp(value_str(&old), value_str(&operand)) : 0;

	switch (op) {
	case KV_ADD:
		return from_number(x + y, operand.len);
	case KV_MAX:
		return from_number(x > y ? x : y, operand.len);
	case KV_MIN:
		return from_number(old.present && x < y ? x : y, operand.len);
	case KV_BYTE_MAX:
		return old.present && order > 0 ? old : operand;
	case KV_BYTE_MIN:
		return old.present && order < 0 ? old : operand;
	case KV_COMPARE_AND_CLEAR:
		break;
	}
	if (old.present && order == 0)
		old.present = false;
	return old;
}

static void
apply(struct model_value values[KEYS], const struct model_op *op)
{
	for (int i = op->from; i < op->to; i++) {
		if (op->kind == OP_ATOMIC)
			values[i] = model_atomic(op->atomic, values[i], op->value);
		else
			values[i] = op->value; /* a clear's is absent */
	}
}

/* ---- Writes ---- */

static void
write_op(struct model_tx *t, struct model_op op)
{
	apply(t->view, &op);
	for (int i = op.from; i < op.to; i++)
		t->known[i] = t->known[i] || op.kind != OP_ATOMIC;
	t->ops[t->op_count++] = op;
	t->wrote = true;
}

static void
step_set(struct model *m, struct model_tx *t)
{
	int i = (int)below(m, KEYS);
	struct model_op op = { OP_SET, KV_ADD, i, i + 1, random_value(m) };
	char key[KEY_BYTES];

	if (below(m, 2)) {
		assert_ok(kv_set(t->tx, key_of(m, i, key), value_str(&op.value)));
	} else {
		struct str k = key_of(m, i, key);

		/* The two together are the same as a set. */
		key[k.len] = '\0';
		assert_ok(kv_set_no_conflict(t->tx, k, value_str(&op.value)));
		assert_ok(kv_add_write_conflict_range(t->tx, k, str_of(key, k.len + 1)));
	}
	write_op(t, op);
}

static void
step_clear(struct model *m, struct model_tx *t)
{
	int i = (int)below(m, KEYS);
	char key[KEY_BYTES];

	assert_ok(kv_clear(t->tx, key_of(m, i, key)));
	write_op(t, (struct model_op){ .kind = OP_CLEAR, .from = i, .to = i + 1 });
}

static void
step_clear_range(struct model *m, struct model_tx *t)
{
	int from = (int)below(m, KEYS);
	int to = (int)below(m, KEYS);
	char begin_key[KEY_BYTES];
	char end_key[KEY_BYTES];

	assert_ok(kv_clear_range(t->tx, key_of(m, from, begin_key), key_of(m, to, end_key)));
	if (from < to)
		write_op(t, (struct model_op){ .kind = OP_CLEAR, .from = from, .to = to });
}

static void
step_atomic(struct model *m, struct model_tx *t)
{
	int i = (int)below(m, KEYS);
	struct model_op op = { OP_ATOMIC, (enum kv_atomic)below(m, KV_COMPARE_AND_CLEAR + 1), i,
			       i + 1, random_value(m) };
	char key[KEY_BYTES];

	assert_ok(kv_atomic(t->tx, op.atomic, key_of(m, i, key), value_str(&op.value)));
	write_op(t, op);
}

/* ---- Reads ---- */

/* A store with faults may answer any read so; that is the end of the transaction. */
static bool
gives_up(struct model_tx *t, struct kv_future *f)
{
	enum status status = kv_future_wait(f);

	if (status == STATUS_TX_TOO_OLD && test_store_fails()) {
		kv_tx_free(t->tx);
		t->tx = NULL;
		return true;
	}
	assert_ok(status);
	return false;
}

/* The answer of the key `i` is the model's. False: the transaction has ended. */
static bool
check_got(struct model *m, struct model_tx *t, int i, enum kv_read mode, struct kv_future *f)
{
	struct str value = { 0 };
	bool present;

	if (gives_up(t, f))
		return false;
	present = kv_future_value(f, &value);
	assert_int_equal(present, t->view[i].present);
	if (present)
		assert_true(str_eq(value, value_str(&t->view[i])));
	if (mode == KV_READ && !t->known[i])
		t->conflicts[i] = true;
	if (below(m, 2))
		kv_future_free(f);
	return true;
}

static void
step_get(struct model *m, struct model_tx *t)
{
	int i = (int)below(m, KEYS);
	enum kv_read mode = below(m, 4) ? KV_READ : KV_SNAPSHOT;
	char key[KEY_BYTES];

	(void)check_got(m, t, i, mode, kv_get(t->tx, key_of(m, i, key), mode));
}

/* Some of them more than once, and in any order. */
static void
step_get_many(struct model *m, struct model_tx *t)
{
	enum kv_read mode = below(m, 4) ? KV_READ : KV_SNAPSHOT;
	size_t count = below(m, KV_MANY + 1);
	struct kv_future *futures[KV_MANY];
	char bytes[KV_MANY][KEY_BYTES];
	struct str keys[KV_MANY];
	bool sorted = below(m, 2);
	int which[KV_MANY];

	for (size_t i = 0; i < count; i++) {
		which[i] = sorted ? (int)(i + below(m, KEYS - KV_MANY)) : (int)below(m, KEYS);
		if (sorted && i && which[i] <= which[i - 1])
			which[i] = which[i - 1] + 1;
		keys[i] = key_of(m, which[i], bytes[i]);
	}
	kv_get_many(t->tx, keys, count, mode, futures);
	for (size_t i = 0; i < count; i++)
		if (!check_got(m, t, which[i], mode, futures[i]))
			return;
}

static void
step_get_range(struct model *m, struct model_tx *t)
{
	int from = (int)below(m, KEYS);
	int to = (int)below(m, KEYS);
	struct kv_range_options options = {
		.limit = below(m, 2) ? below(m, 6) : 0,
		.limit_bytes = below(m, 4) ? 0 : 1 + below(m, 30),
		.reverse = below(m, 2),
		.mode = below(m, 4) ? KV_READ : KV_SNAPSHOT,
	};
	int step = options.reverse ? -1 : 1;
	char begin_key[KEY_BYTES];
	char end_key[KEY_BYTES];
	struct kv_range range;
	struct kv_future *f;
	struct str end;
	size_t bytes = 0;
	size_t n = 0;
	bool more = false;

	if (m->entities && below(m, 2)) {
		from = (int)below(m, ENTITIES) * ROWS;
		to = from + ROWS;
		end = key_of(m, from, end_key);
		end_key[end.len++] = (char)0xff;
	} else {
		end = key_of(m, to, end_key);
	}
	f = kv_get_range(t->tx, key_of(m, from, begin_key), end, &options);
	if (gives_up(t, f))
		return;
	range = kv_future_range(f);
	for (int i = options.reverse ? to - 1 : from; i >= from && i < to && !more; i += step) {
		char key[KEY_BYTES];

		if (options.mode == KV_READ && !(test_store_is_cluster() && t->known[i]))
			t->conflicts[i] = true;
		if (!t->view[i].present)
			continue;
		assert_true(n < range.count);
		assert_true(str_eq(range.pairs[n].key, key_of(m, i, key)));
		assert_true(str_eq(range.pairs[n].value, value_str(&t->view[i])));
		bytes += range.pairs[n].key.len + range.pairs[n].value.len;
		n++;
		more = n == options.limit || (options.limit_bytes && bytes >= options.limit_bytes);
	}
	assert_int_equal(n, range.count);
	assert_int_equal(more, range.more);
	if (below(m, 2))
		kv_future_free(f);
}

/* ---- Beginning and ending ---- */

static void
step_begin(struct model *m, struct model_tx *t)
{
	uint64_t version;

	memset(t, 0, sizeof(*t));
	t->tx = begin(m->store);
	assert_ok(kv_get_read_version(t->tx, &version));
	t->begun = m->clock;
	memcpy(t->view, m->values, sizeof(t->view));
}

static bool
must_conflict(const struct model *m, const struct model_tx *t)
{
	for (int i = 0; t->wrote && i < KEYS; i++)
		if (t->conflicts[i] && m->written[i] > t->begun)
			return true;
	return false;
}

#define MARK STR("u/mark")

static enum status
read_mark(struct kv_tx *tx, void *arg)
{
	struct kv_future *f = kv_get(tx, MARK, KV_READ);
	struct str value;

	TRY(kv_future_wait(f));
	if (kv_future_value(f, &value))
		memcpy(arg, value.ptr, sizeof(uint64_t));
	return STATUS_OK;
}

/* True if the commit has happened; no other outcome than the model's, and faults, will do. */
static bool
commit_happens(struct model *m, struct model_tx *t)
{
	bool conflict = must_conflict(m, t);
	uint64_t mark = 0;
	enum status status;

	if (!test_store_fails()) {
		status = kv_future_wait(kv_commit(t->tx));
		/* A cluster may refuse more than it must. */
		if (status != STATUS_TX_CONFLICT || conflict || !test_store_is_cluster())
			assert_int_equal(status, conflict ? STATUS_TX_CONFLICT : STATUS_OK);
		return status == STATUS_OK;
	}
	m->marks++;
	if (t->wrote)
		assert_ok(kv_set(t->tx, MARK, str_of(&m->marks, sizeof(m->marks))));
	status = kv_future_wait(kv_commit(t->tx));
	if (status == STATUS_OK) {
		assert_false(conflict);
		return true;
	}
	assert_true(t->wrote);
	assert_true(status == STATUS_TX_CONFLICT || status == STATUS_TX_TOO_OLD ||
		    status == STATUS_TX_UNKNOWN);
	if (status != STATUS_TX_UNKNOWN)
		return false;
	assert_ok(kv_run_read(m->store, read_mark, &mark, NULL));
	assert_false(conflict && mark == m->marks);
	return mark == m->marks;
}

static void
step_commit(struct model *m, struct model_tx *t)
{
	bool happened = commit_happens(m, t);

	kv_tx_free(t->tx);
	t->tx = NULL;
	if (!happened) {
		m->conflicts++;
		return;
	}
	m->commits++;
	m->clock++;
	for (int i = 0; i < t->op_count; i++) {
		apply(m->values, &t->ops[i]);
		for (int k = t->ops[i].from; k < t->ops[i].to; k++)
			m->written[k] = m->clock;
	}
}

static enum status
check_body(struct kv_tx *tx, void *arg)
{
	const struct model *m = arg;
	struct kv_range range;
	struct kv_future *f;
	size_t n = 0;

	/* Everything that begins with the number 1, or what the fixture clears. */
	f = m->entities ? kv_get_range(tx, STR("\x15\x01"), STR("\x15\x02"), NULL)
			: kv_get_range(tx, STR("t/"), STR("t0"), NULL);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	for (int i = 0; i < KEYS; i++) {
		char key[KEY_BYTES];

		if (!m->values[i].present)
			continue;
		assert_true(n < range.count);
		assert_true(str_eq(range.pairs[n].key, key_of(m, i, key)));
		assert_true(str_eq(range.pairs[n].value, value_str(&m->values[i])));
		n++;
	}
	assert_int_equal(n, range.count);
	return STATUS_OK;
}

static void
check_store(struct model *m)
{
	assert_ok(kv_run_read(m->store, check_body, m, NULL));
}

static void
step(struct model *m)
{
	static void (*const steps[])(struct model * m, struct model_tx * t) = {
		step_set, step_set,       step_clear, step_clear_range, step_atomic,
		step_get, step_get_range, step_get,   step_get_many,    step_commit,
	};
	struct model_tx *t = &m->txs[below(m, OPEN_TXS)];

	if (!t->tx)
		step_begin(m, t);
	else if (t->op_count == MAX_OPS)
		step_commit(m, t);
	else
		steps[below(m, sizeof(steps) / sizeof(steps[0]))](m, t);
}

static void
commit_all(struct model *m)
{
	for (int i = 0; i < OPEN_TXS; i++)
		if (m->txs[i].tx)
			step_commit(m, &m->txs[i]);
}

/* Opening a store makes a table of what was in memory; compacting makes one of all. */
static void
move(struct model *m, struct fixture *f)
{
	struct err err = { 0 };

	if (below(m, 4) == 0) {
		assert_ok(kv_compact(m->store, &err));
		return;
	}
	commit_all(m);
	kv_close(f->store);
	f->store = fixture_open(f->url, (struct kv_options){ .no_sync = true });
	m->store = f->store;
}

static void
run(struct fixture *f, bool entities)
{
	struct model *m = calloc(1, sizeof(*m));
	uint64_t seed = test_seed();

	assert_non_null(m);
	m->store = f->store;
	m->entities = entities;
	m->rand.state = seed;
	/* The first thing to know about a failure. */
	print_message("# FROND_TEST_SEED=%llu\n", (unsigned long long)seed);
	for (int i = 0; i < STEPS; i++) {
		step(m);
		if (i % CHECK_EVERY == 0)
			check_store(m);
		if (entities && below(m, MOVE_EVERY) == 0)
			move(m, f);
	}
	commit_all(m);
	check_store(m);
	assert_true(m->commits > 100);
	assert_true(m->conflicts > 20);
	free(m);
}

static void
random_operations_agree_with_a_model(void **state)
{
	run(*state, false);
}

static void
random_operations_on_entities_agree_with_a_model(void **state)
{
	run(*state, true);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(random_operations_agree_with_a_model, fixture_setup,
						fixture_teardown),
		/* Not on a cluster. */
		cmocka_unit_test_setup_teardown(random_operations_on_entities_agree_with_a_model,
						fixture_setup, fixture_teardown),
	};

	return _cmocka_run_group_tests("tests", tests,
				       test_store_cases(tests, sizeof(tests) / sizeof(tests[0]), 1),
				       NULL, NULL);
}
