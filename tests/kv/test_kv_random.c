/*
 * Random operations of a few interleaved transactions against a model that is simple enough to be
 * right: an array of values for each of a few keys. The model also knows exactly which commits have
 * to conflict. On a store with faults others may fail as well; what a commit of unknown result has
 * done is told by a mark that each one leaves.
 */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rand.h"

enum {
	KEYS = 30,
	VALUE_MAX_BYTES = 4,
	OPEN_TXS = 4,
	MAX_OPS = 200, /* of one transaction */
	STEPS = 6000,
	CHECK_EVERY = 50,
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
key_of(int i, char ret[16])
{
	int n = snprintf(ret, 16, "t/%c", 'a' + i / 3);

	if (i % 3)
		n += snprintf(ret + n, 16 - (size_t)n, "%c", i % 3 == 1 ? 1 : 'x');
	return str_of(ret, (size_t)n);
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
	char key[16];

	assert_ok(kv_set(t->tx, key_of(i, key), value_str(&op.value)));
	write_op(t, op);
}

static void
step_clear(struct model *m, struct model_tx *t)
{
	int i = (int)below(m, KEYS);
	char key[16];

	assert_ok(kv_clear(t->tx, key_of(i, key)));
	write_op(t, (struct model_op){ .kind = OP_CLEAR, .from = i, .to = i + 1 });
}

static void
step_clear_range(struct model *m, struct model_tx *t)
{
	int from = (int)below(m, KEYS);
	int to = (int)below(m, KEYS);
	char begin_key[16];
	char end_key[16];

	assert_ok(kv_clear_range(t->tx, key_of(from, begin_key), key_of(to, end_key)));
	if (from < to)
		write_op(t, (struct model_op){ .kind = OP_CLEAR, .from = from, .to = to });
}

static void
step_atomic(struct model *m, struct model_tx *t)
{
	int i = (int)below(m, KEYS);
	struct model_op op = { OP_ATOMIC, (enum kv_atomic)below(m, KV_COMPARE_AND_CLEAR + 1), i,
			       i + 1, random_value(m) };
	char key[16];

	assert_ok(kv_atomic(t->tx, op.atomic, key_of(i, key), value_str(&op.value)));
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

static void
step_get(struct model *m, struct model_tx *t)
{
	int i = (int)below(m, KEYS);
	enum kv_read mode = below(m, 4) ? KV_READ : KV_SNAPSHOT;
	struct str value = { 0 };
	struct kv_future *f;
	bool present;
	char key[16];

	f = kv_get(t->tx, key_of(i, key), mode);
	if (gives_up(t, f))
		return;
	present = kv_future_value(f, &value);
	assert_int_equal(present, t->view[i].present);
	if (present)
		assert_true(str_eq(value, value_str(&t->view[i])));
	if (mode == KV_READ && !t->known[i])
		t->conflicts[i] = true;
	if (below(m, 2))
		kv_future_free(f);
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
	int i = options.reverse ? to - 1 : from;
	char begin_key[16];
	char end_key[16];
	struct kv_range range;
	struct kv_future *f;
	size_t bytes = 0;
	size_t n = 0;
	bool more = false;

	f = kv_get_range(t->tx, key_of(from, begin_key), key_of(to, end_key), &options);
	if (gives_up(t, f))
		return;
	range = kv_future_range(f);
	for (; i >= from && i < to && !more; i += step) {
		char key[16];

		if (options.mode == KV_READ && !(test_store_is_cluster() && t->known[i]))
			t->conflicts[i] = true;
		if (!t->view[i].present)
			continue;
		assert_true(n < range.count);
		assert_true(str_eq(range.pairs[n].key, key_of(i, key)));
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
	struct kv_future *f = kv_get_range(tx, STR("t/"), STR("t0"), NULL);
	const struct model *m = arg;
	struct kv_range range;
	size_t n = 0;

	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	for (int i = 0; i < KEYS; i++) {
		char key[16];

		if (!m->values[i].present)
			continue;
		assert_true(n < range.count);
		assert_true(str_eq(range.pairs[n].key, key_of(i, key)));
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
		step_get, step_get_range, step_get,   step_commit,
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
random_operations_agree_with_a_model(void **state)
{
	struct model *m = calloc(1, sizeof(*m));
	uint64_t seed = test_seed();

	m->store = store_of(state);
	m->rand.state = seed;
	/* The first thing to know about a failure. */
	print_message("# FROND_TEST_SEED=%llu\n", (unsigned long long)seed);
	for (int i = 0; i < STEPS; i++) {
		step(m);
		if (i % CHECK_EVERY == 0)
			check_store(m);
	}
	for (int i = 0; i < OPEN_TXS; i++)
		if (m->txs[i].tx)
			step_commit(m, &m->txs[i]);
	check_store(m);
	assert_true(m->commits > 100);
	assert_true(m->conflicts > 20);
	free(m);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(random_operations_agree_with_a_model, fixture_setup,
						fixture_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
