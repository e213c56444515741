/*
 * Runs interleavings of transactions (spec.h) and compares what comes of them. Arguments: the spec
 * files, one test each.
 */
#include "../kv/fixture.h"

#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serial.h"
#include "spec.h"

enum {
	KEY_BYTES = SPEC_WORD_BYTES + 16,
	OUTCOME_BYTES = 1024,
	MAX_SPECS = 64,
	CLUSTER_INTERLEAVINGS = 600, /* of one spec in one run on a cluster, or fewer */
};

static const struct str key_prefix = { "t/", 2 };

struct run {
	const struct spec *spec;
	struct kv_store *store;
	struct kv_tx *txs[SPEC_SESSIONS];
	int next[SPEC_SESSIONS];                 /* step */
	int32_t read[SPEC_SESSIONS][SPEC_STEPS]; /* by the steps that are a get */
	int clock;
	struct serial_run result;
	enum status ended[SPEC_SESSIONS];
	bool refused;
};

struct spec_test {
	struct fixture *fixture;
	const char *path;
	struct spec spec;
	int share; /* of the interleavings one in so many is run, from this `part` on */
	int part;
	int interleavings;
	int refused; /* of those that are run, as `anomalies` */
	int anomalies;
};

/* ---- Steps ---- */

static struct str
key_of(const char *word, char ret[KEY_BYTES])
{
	return str_of(ret, (size_t)snprintf(ret, KEY_BYTES, "t/%s", word));
}

static void
see(struct run *r, int session, const char *answer)
{
	char *seen = r->result.sessions[session].seen;
	size_t len = strlen(seen);

	snprintf(seen + len, SERIAL_TEXT_BYTES - len, "%s%s", len ? " " : "", answer);
}

static int32_t
number_of(struct str value)
{
	int32_t n = 0;

	assert_int_equal(value.len, sizeof(n));
	memcpy(&n, value.ptr, sizeof(n));
	return n;
}

static void
get(struct run *r, int session, const struct spec_step *step)
{
	enum kv_read mode = step->op == SPEC_GET ? KV_READ : KV_SNAPSHOT;
	char answer[SPEC_WORD_BYTES] = "-";
	char key[KEY_BYTES];
	struct kv_future *f;
	struct str value;
	int32_t n = 0;

	f = kv_get(r->txs[session], key_of(step->key, key), mode);
	assert_ok(kv_future_wait(f));
	if (kv_future_value(f, &value)) {
		n = number_of(value);
		snprintf(answer, sizeof(answer), "%d", n);
	}
	r->read[session][step - r->spec->sessions[session].steps] = n;
	see(r, session, answer);
}

/* K=V,... with a star for a stamp. */
static void
show(struct kv_range range, char *ret, size_t size)
{
	size_t len = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < range.count && len < size; i++) {
		struct str key = str_skip(range.pairs[i].key, key_prefix.len);
		bool stamped = key.len > KV_VERSIONSTAMP_TX_BYTES;

		if (stamped)
			key.len -= KV_VERSIONSTAMP_TX_BYTES;
		len += (size_t)snprintf(ret + len, size - len, "%s%.*s%s=%d", len ? "," : "",
					STR_ARG(key), stamped ? "*" : "",
					number_of(range.pairs[i].value));
	}
}

static void
get_range(struct run *r, int session, const struct spec_step *step)
{
	const struct kv_range_options options = {
		.mode = step->op == SPEC_RANGE ? KV_READ : KV_SNAPSHOT,
	};
	char pairs[SERIAL_TEXT_BYTES];
	char answer[SERIAL_TEXT_BYTES + 2];
	char begin_key[KEY_BYTES];
	char end_key[KEY_BYTES];
	struct kv_future *f;

	f = kv_get_range(r->txs[session], key_of(step->key, begin_key), key_of(step->end, end_key),
			 &options);
	assert_ok(kv_future_wait(f));
	show(kv_future_range(f), pairs, sizeof(pairs));
	snprintf(answer, sizeof(answer), "{%s}", pairs);
	see(r, session, answer);
}

/* What the session last read of the key that the step's value depends on. */
static int32_t
last_read(const struct run *r, int session, const struct spec_step *step)
{
	const struct spec_step *first = r->spec->sessions[session].steps;

	for (const struct spec_step *s = step; s-- > first;)
		if (s->op <= SPEC_SNAPSHOT_GET && strcmp(s->key, step->of) == 0)
			return r->read[session][s - first];
	fail_msg("%s has not been read", step->of);
	return 0;
}

static void
write_value(struct run *r, int session, const struct spec_step *step)
{
	struct kv_tx *tx = r->txs[session];
	int32_t n = step->number;
	char bytes[KEY_BYTES];
	struct str value = str_of(&n, sizeof(n));
	struct str key = key_of(step->key, bytes);

	if (step->of[0])
		n += last_read(r, session, step);
	if (step->op == SPEC_SET) {
		assert_ok(kv_set(tx, key, value));
	} else if (step->op == SPEC_ADD) {
		assert_ok(kv_atomic(tx, KV_ADD, key, value));
	} else {
		size_t offset = key.len;

		memset(bytes + offset, 0, KV_VERSIONSTAMP_TX_BYTES);
		key.len += KV_VERSIONSTAMP_TX_BYTES;
		assert_ok(kv_set_versionstamped_key(tx, key, offset, value));
	}
}

static void
do_step(struct run *r, int session, const struct spec_step *step)
{
	struct kv_tx *tx = r->txs[session];
	char begin_bytes[KEY_BYTES];
	char end_bytes[KEY_BYTES];
	struct str key = key_of(step->key, begin_bytes);
	struct str end = key_of(step->end, end_bytes);

	switch (step->op) {
	case SPEC_GET:
	case SPEC_SNAPSHOT_GET:
		get(r, session, step);
		break;
	case SPEC_RANGE:
	case SPEC_SNAPSHOT_RANGE:
		get_range(r, session, step);
		break;
	case SPEC_SET:
	case SPEC_ADD:
	case SPEC_STAMP_KEY:
		write_value(r, session, step);
		break;
	case SPEC_CLEAR:
		assert_ok(kv_clear(tx, key));
		break;
	case SPEC_CLEAR_RANGE:
		assert_ok(kv_clear_range(tx, key, end));
		break;
	case SPEC_READ_CONFLICT:
		assert_ok(kv_add_read_conflict_range(tx, key, end));
		break;
	case SPEC_WRITE_CONFLICT:
		assert_ok(kv_add_write_conflict_range(tx, key, end));
		break;
	case SPEC_COMMIT:
		r->ended[session] = kv_future_wait(kv_commit(tx));
		r->result.sessions[session].committed = r->ended[session] == STATUS_OK;
		r->refused = r->refused || r->ended[session] != STATUS_OK;
		break;
	case SPEC_ROLLBACK:
		kv_tx_reset(tx);
		break;
	}
}

/* ---- Interleavings ---- */

static void
start(struct run *r, const struct spec_test *t)
{
	*r = (struct run){ .spec = &t->spec, .store = t->fixture->store };
	r->txs[0] = begin(r->store);
	assert_ok(kv_clear_range(r->txs[0], STR("t/"), STR("t0")));
	for (int i = 0; i < t->spec.setup.count; i++)
		do_step(r, 0, &t->spec.setup.steps[i]);
	commit(r->txs[0]);
	for (int i = 0; i < t->spec.session_count; i++)
		r->txs[i] = begin(r->store);
}

static void
take_turn(struct run *r, int session)
{
	struct serial_session *s = &r->result.sessions[session];

	if (r->next[session] == 0)
		s->began = r->clock;
	s->ended = r->clock++;
	do_step(r, session, &r->spec->sessions[session].steps[r->next[session]++]);
}

static void
finish(struct run *r)
{
	struct kv_future *f;
	struct kv_tx *tx;

	for (int i = 0; i < r->spec->session_count; i++)
		kv_tx_free(r->txs[i]);
	tx = begin_read(r->store);
	f = kv_get_range(tx, STR("t/"), STR("t0"), NULL);
	assert_ok(kv_future_wait(f));
	show(kv_future_range(f), r->result.stored, sizeof(r->result.stored));
	kv_tx_free(tx);
}

static const char *
name_of(enum status status)
{
	return status == STATUS_TX_CONFLICT ? "conflict" : status_name(status);
}

static void
tell(const struct run *r, char *ret, size_t size)
{
	size_t len = 0;

	for (int i = 0; i < r->spec->session_count; i++) {
		const struct spec_session *s = &r->spec->sessions[i];
		const char *seen = r->result.sessions[i].seen;
		bool rolled_back = s->steps[s->count - 1].op == SPEC_ROLLBACK;

		len += (size_t)snprintf(ret + len, size - len, "%s %s%s%s; ", s->name, seen,
					seen[0] ? " " : "",
					rolled_back ? "undone" : name_of(r->ended[i]));
	}
	snprintf(ret + len, size - len, "%s", r->result.stored[0] ? r->result.stored : "empty");
}

static void
run_order(struct spec_test *t, const int *turns, int count, struct run *ret)
{
	start(ret, t);
	for (int i = 0; i < count; i++)
		take_turn(ret, turns[i]);
	finish(ret);
}

static void
try_every(struct spec_test *t, int *turns, int count, int left[SPEC_SESSIONS])
{
	bool complete = true;

	for (int i = 0; i < t->spec.session_count; i++) {
		if (!left[i])
			continue;
		complete = false;
		left[i]--;
		turns[count] = i;
		try_every(t, turns, count + 1, left);
		left[i]++;
	}
	if (complete && t->interleavings++ % t->share == t->part) {
		struct run r;

		run_order(t, turns, count, &r);
		t->refused += r.refused;
		t->anomalies += !serial_explains(&t->spec, &r.result);
	}
}

/*
 * On a cluster each interleaving waits for four commits, and of a long spec one in so many is run,
 * others in another turn: what every one comes to is counted on the embedded engine.
 */
static void
choose_part(struct spec_test *t)
{
	const char *turn = getenv("FROND_TEST_TURN");

	t->share = 1;
	if (test_store_is_cluster() && t->spec.interleavings > CLUSTER_INTERLEAVINGS)
		t->share = 1 + t->spec.interleavings / CLUSTER_INTERLEAVINGS;
	t->part = (int)((turn ? strtoull(turn, NULL, 0) : test_seed()) % (unsigned)t->share);
}

/* True if so many of a part go with so many of all: exactly where all were run, or none may be. */
static bool
part_is(const struct spec_test *t, int count, int of_all)
{
	return t->share == 1 || of_all == 0 ? count == of_all : count <= of_all;
}

static void
spec_holds(void **state)
{
	struct spec_test *t = *state;
	const struct spec *spec = &t->spec;
	int left[SPEC_SESSIONS] = { 0 };
	int turns[SPEC_ORDER_STEPS];

	for (int i = 0; i < spec->order_count; i++) {
		const struct spec_order *order = &spec->orders[i];
		char outcome[OUTCOME_BYTES];
		struct run r;

		run_order(t, order->sessions, order->count, &r);
		tell(&r, outcome, sizeof(outcome));
		if (strcmp(outcome, order->expected) != 0)
			fail_msg("%s, order %d:\nis     %s\nshould %s", t->path, i + 1, outcome,
				 order->expected);
	}
	for (int i = 0; i < spec->session_count; i++)
		left[i] = spec->sessions[i].count;
	choose_part(t);
	try_every(t, turns, 0, left);
	if (t->interleavings != spec->interleavings || !part_is(t, t->refused, spec->refused) ||
	    !part_is(t, t->anomalies, spec->anomalies))
		fail_msg("%s: %d interleavings, %d refused, %d anomalies", t->path,
			 t->interleavings, t->refused, t->anomalies);
}

static int
setup(void **state)
{
	struct spec_test *t = *state;
	const char *wrong = spec_read(t->path, &t->spec);
	void *fixture = NULL;

	if (wrong) {
		print_error("%s: %s\n", t->path, wrong);
		return -1;
	}
	if (fixture_setup(&fixture) != 0)
		return -1;
	t->fixture = fixture;
	return 0;
}

static int
teardown(void **state)
{
	void *fixture = ((struct spec_test *)*state)->fixture;

	return fixture_teardown(&fixture);
}

/* "lost_update.spec" as the name of a test. */
static char *
test_name(const char *path)
{
	char *copy = strdup(path);
	char *name = copy ? strdup(basename(copy)) : NULL;

	free(copy);
	if (name)
		name[strcspn(name, ".")] = '\0';
	return name;
}

int
main(int argc, char **argv)
{
	static struct spec_test specs[MAX_SPECS];
	static struct CMUnitTest tests[MAX_SPECS];
	size_t count = (size_t)argc - 1;
	int failed;

	if (argc < 2 || count > MAX_SPECS) {
		fprintf(stderr, "usage: run_iso SPEC...\n");
		return 2;
	}
	for (size_t i = 0; i < count; i++) {
		specs[i].path = argv[i + 1];
		tests[i] = (struct CMUnitTest){ test_name(argv[i + 1]), spec_holds, setup, teardown,
						&specs[i] };
	}
	failed = _cmocka_run_group_tests("iso", tests, count, NULL, NULL);
	for (size_t i = 0; i < count; i++)
		free((void *)(uintptr_t)tests[i].name);
	return failed;
}
