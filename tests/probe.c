#include "probe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena_apart.h"
#include "base/mem.h"
#include "base/rand.h"
#include "catalog/verify.h"
#include "kv/faulty/faulty.h"
#include "kv/tuple.h"

enum {
	ARENA_BYTES = 64 * 1024 * 1024,
	SAID_BYTES = 1024 * 1024,
	CALLS_MOST = 3000,     /* of an operation of any table */
	VALUES_MOST = 12,      /* that are damaged of what an operation reads */
	BYTES_BEGIN = 90,      /* of a value that are damaged one by one, from its beginning */
	BYTES_END = 10,        /* and at its end */
	FOREIGN_ELEMENT = 200, /* that no key has at its end */
	PAIRS_MOST = 1000,
	ARENA_STEP = 16,            /* by which memory grows from run to run */
	ARENA_SHARE = 64,           /* or by such a part of itself */
	RAND_OF_RUNS = 1000 * 1000, /* so many times nobody asks while a store is filled */
};

/* How often somebody has asked for random bytes in this store, or in this run of an operation. */
static _Atomic uint64_t rand_calls;

/*
 * In the place of rand_bytes(): the same bytes for the same work, whatever other tests have done
 * before. An operation gets others than what was there before it.
 */
void __wrap_rand_bytes(void *ret, size_t n);

void
__wrap_rand_bytes(void *ret, size_t n)
{
	struct rand_seq seq = { .state = atomic_fetch_add(&rand_calls, 1) };
	char *bytes = ret;

	for (size_t i = 0; i < n; i++)
		bytes[i] = (char)rand_seq_next(&seq);
}

static struct str
short_name(enum status status)
{
	const char *name = status_name(status);

	return str_from_cstr(strncmp(name, "STATUS_", 7) == 0 ? name + 7 : name);
}

void
probe_store_url(const char *path, char *ret, size_t size)
{
	kv_faulty_register();
	atomic_store(&rand_calls, 0);
	(void)snprintf(ret, size, "faulty:rate=0,delay=0,watch=0:embedded:%s", path);
}

void
probe_begin(struct probe *p)
{
	kv_faulty_tap(p->store, p->tap);
	p->tap = NULL;
	arena_set_apart(p->failing);
	(void)mem_fail_only(p->failing);
}

static void
note_finding(const struct catalog_finding *finding, void *arg)
{
	struct probe *p = arg;

	buf_append_str(&p->said, str_from_cstr(finding->kind));
	buf_append_byte(&p->said, '|');
}

enum status
probe_verify(struct probe *p)
{
	const struct catalog_verify_options options = { .found = note_finding, .arg = p };
	struct catalog_verify_sum sum;

	probe_begin(p);
	return catalog_verify_store(p->tx, &options, &sum, &p->err);
}

/* ---- One run ---- */

/* Outlives a test that fails, whose store is still to be closed. */
static struct kv_faulty_tap tap;

struct probing {
	struct probe p;
	const struct probe_op *op;
	bool alone;
	bool undamaged;  /* values are left as they are */
	bool throughout; /* all are damaged */
	void (*prepare)(void *world);
	enum status status; /* without any damage */
	struct buf said;    /* likewise */
	uint32_t calls;     /* likewise */
	bool full;          /* the last run's arena was */
	uint64_t failing;   /* the allocation that fails in a run; 0: none does */
	bool failed;        /* in the last run it did */
	struct buf line;

	const struct kv_pair *pair; /* NULL, or of probe_pairs() */
	bool lost;
};

/* Loses the pair, or adds one behind it. */
static void
probing_change(const struct probing *g)
{
	struct buf key = BUF_INIT(KV_LIMIT_KEY_BYTES);

	if (g->lost) {
		assert_int_equal(kv_clear(g->p.tx, g->pair->key), STATUS_OK);
		return;
	}
	buf_append_str(&key, g->pair->key);
	tuple_put_u64(&key, FOREIGN_ELEMENT);
	assert_int_equal(kv_set(g->p.tx, buf_str(&key), g->pair->value), STATUS_OK);
	buf_release(&key);
}

static enum status
probing_run(struct probing *g, size_t arena_bytes)
{
	struct probe *p = &g->p;
	enum status status;

	if (g->prepare)
		g->prepare(p->world);
	atomic_store(&rand_calls, RAND_OF_RUNS);
	p->arena = arena_new(arena_bytes);
	assert_non_null(p->arena);
	p->err = (struct err){ 0 };
	buf_clear(&p->said);
	p->tx = NULL;
	if (!g->alone)
		assert_int_equal(kv_begin(p->store, KV_TX_READ_WRITE, &p->tx), STATUS_OK);
	if (g->pair)
		probing_change(g);
	tap.calls = tap.values = tap.reads = 0;
	tap.read_ranges = tap.write_ranges = 0;
	p->tap = &tap;
	p->failing = g->failing;
	status = g->op->run(p);
	g->failed = mem_fail_only(0) >= g->failing;
	arena_set_apart(false);
	assert_null(p->tap); /* the operation has called probe_begin() */
	kv_faulty_tap(p->store, NULL);
	kv_tx_free(p->tx);
	g->full = arena_is_full(p->arena);
	arena_free(p->arena);
	return status;
}

static bool
is_as_wanted(const struct probing *g, enum status status)
{
	return status == g->status && str_eq(buf_str(&g->p.said), buf_str(&g->said));
}

static void
tap_nothing(void)
{
	tap = (struct kv_faulty_tap){ .cut = SIZE_MAX, .flip = SIZE_MAX };
}

/* ---- Failing calls, and memory that ends ---- */

static void
probe_calls(struct probing *g, uint32_t calls)
{
	const char *before = "; despite";

	assert_true(calls <= CALLS_MOST);
	for (uint32_t i = 1; i <= calls; i++) {
		enum status status;

		tap_nothing();
		tap.fail_call = i;
		tap.fail_with = STATUS_IO;
		status = probing_run(g, ARENA_BYTES);
		if (status == STATUS_IO)
			continue;
		buf_printf(&g->line, "%s %u=%.*s", before, i, STR_ARG(short_name(status)));
		before = "";
	}
	tap_nothing();
}

static void
probe_memory(struct probing *g)
{
	uint64_t seen = 0;
	enum status status;

	for (size_t bytes = 0;; bytes += bytes / ARENA_SHARE + ARENA_STEP) {
		assert_true(bytes < ARENA_BYTES);
		status = probing_run(g, bytes);
		if (!g->full)
			break;
		if (status != STATUS_LIMIT && !(seen & (UINT64_C(1) << status)))
			buf_printf(&g->line, "%s %.*s", seen ? "" : "; despite arena",
				   STR_ARG(short_name(status)));
		if (status != STATUS_LIMIT)
			seen |= UINT64_C(1) << status;
	}
	assert_int_equal(status, g->status);
}

/*
 * Each allocation of the system in turn: the operation ends for want of memory, or it does all that
 * it does with it.
 */
static void
probe_allocations(struct probing *g)
{
	const char *before = "; despite allocation";

	for (g->failing = 1;; g->failing++) {
		enum status status = probing_run(g, ARENA_BYTES);

		if (!g->failed)
			break;
		if (status == STATUS_NOMEM || status == STATUS_LIMIT)
			continue;
		if (is_as_wanted(g, status) && tap.calls == g->calls)
			continue;
		buf_printf(&g->line, "%s %llu=%.*s", before, (unsigned long long)g->failing,
			   STR_ARG(short_name(status)));
		before = "";
	}
	g->failing = 0;
}

/* ---- Damaged values ---- */

static char
outcome_of(const struct probing *g, enum status status)
{
	if (is_as_wanted(g, status))
		return 'O';
	switch ((int)status) {
	case STATUS_OK:
		return '~';
	case STATUS_CORRUPT:
		return 'C';
	case STATUS_NEWER:
		return 'N';
	case STATUS_INVALID:
		return 'I';
	case STATUS_LIMIT:
		return 'L';
	case STATUS_NOT_FOUND:
		return '0';
	default:
		return '?';
	}
}

static void
damage_append(struct buf *text, char outcome)
{
	struct str so_far = buf_str(text);

	if (so_far.len == 0 || so_far.ptr[so_far.len - 1] != outcome)
		buf_append_byte(text, outcome);
}

static bool
is_damaged(size_t at, size_t len)
{
	return at < BYTES_BEGIN || at + BYTES_END >= len;
}

/* Appends "CO/C~" for one value. */
static void
probe_value(struct probing *g, uint32_t value, struct buf *text)
{
	size_t len = 0;

	for (size_t at = 0; at == 0 || at < len; at++) {
		if (at && !is_damaged(at, len))
			continue;
		tap_nothing();
		tap.spoil_value = value;
		tap.cut = at;
		damage_append(text, outcome_of(g, probing_run(g, ARENA_BYTES)));
		len = tap.length;
	}
	buf_append_byte(text, '/');
	for (size_t at = 0; at < len; at++) {
		if (!is_damaged(at, len))
			continue;
		tap_nothing();
		tap.spoil_value = value;
		tap.flip = at;
		damage_append(text, outcome_of(g, probing_run(g, ARENA_BYTES)));
	}
	tap_nothing();
}

static void
values_print(struct probing *g, uint32_t first, uint32_t last, const struct buf *text)
{
	if (first == 0)
		return;
	buf_printf(&g->line, "%s %u", first == 1 ? ";" : "", first);
	if (last > first)
		buf_printf(&g->line, "-%u", last);
	buf_printf(&g->line, ": %.*s", STR_ARG(buf_str(text)));
}

static void
probe_values(struct probing *g, uint32_t values)
{
	struct buf now = BUF_INIT(SAID_BYTES), before = BUF_INIT(SAID_BYTES);
	uint32_t most = g->throughout ? UINT32_MAX : VALUES_MOST;
	uint32_t first = 0, value;

	for (value = 1; value <= values && value <= most; value++) {
		buf_clear(&now);
		probe_value(g, value, &now);
		if (first && str_eq(buf_str(&now), buf_str(&before)))
			continue;
		values_print(g, first, value - 1, &before);
		first = value;
		buf_clear(&before);
		buf_append_str(&before, buf_str(&now));
	}
	values_print(g, first, value - 1, &before);
	buf_release(&now);
	buf_release(&before);
}

/* ---- Lines ---- */

static void
probe_one(struct probing *g)
{
	struct kv_faulty_tap counted;

	buf_clear(&g->line);
	buf_clear(&g->said);
	tap_nothing();
	g->status = probing_run(g, ARENA_BYTES);
	counted = tap;
	g->calls = tap.calls;
	buf_append_str(&g->said, buf_str(&g->p.said));
	buf_printf(&g->line, "%.*s, conflicts %u %u+%u", STR_ARG(short_name(g->status)),
		   counted.reads, counted.read_ranges, counted.write_ranges);
	probe_calls(g, counted.calls);
	probe_memory(g);
	probe_allocations(g);
	if (!g->undamaged)
		probe_values(g, counted.values);
	assert_int_equal(buf_status(&g->line), STATUS_OK);
}

static bool
probe_table(struct probing *g, const struct probe_op *ops, size_t count)
{
	bool same = true;

	for (size_t i = 0; i < count; i++) {
		g->op = &ops[i];
		probe_one(g);
		if (str_eq(buf_str(&g->line), str_from_cstr(ops[i].line)))
			continue;
		same = false;
		(void)fprintf(stderr, "# %s:\n#   is  %.*s\n#   not %s\n", ops[i].name,
			      STR_ARG(buf_str(&g->line)), ops[i].line);
	}
	return same;
}

static void
probe_any(struct probing *g, struct kv_store *store, void *world, const struct probe_op *ops,
	  size_t count)
{
	bool same;

	g->p = (struct probe){ .store = store, .world = world, .said = BUF_INIT(SAID_BYTES) };
	buf_init(&g->said, SAID_BYTES);
	buf_init(&g->line, SAID_BYTES);
	same = probe_table(g, ops, count);
	buf_release(&g->p.said);
	buf_release(&g->said);
	buf_release(&g->line);
	assert_true(same);
}

void
probe_each(struct kv_store *store, void *world, const struct probe_op *ops, size_t count)
{
	struct probing g = { .alone = false };

	probe_any(&g, store, world, ops, count);
}

void
probe_each_throughout(struct kv_store *store, void *world, const struct probe_op *ops, size_t count)
{
	struct probing g = { .throughout = true };

	probe_any(&g, store, world, ops, count);
}

void
probe_each_undamaged(struct kv_store *store, void *world, const struct probe_op *ops, size_t count)
{
	struct probing g = { .undamaged = true };

	probe_any(&g, store, world, ops, count);
}

void
probe_each_alone(struct kv_store *store, void *world, void (*prepare)(void *world),
		 const struct probe_op *ops, size_t count)
{
	struct probing g = { .alone = true, .prepare = prepare };

	probe_any(&g, store, world, ops, count);
}

void
probe_each_alone_undamaged(struct kv_store *store, void *world, void (*prepare)(void *world),
			   const struct probe_op *ops, size_t count)
{
	struct probing g = { .alone = true, .prepare = prepare, .undamaged = true };

	probe_any(&g, store, world, ops, count);
}

/* ---- Pairs ---- */

struct pairs {
	struct arena *arena;
	struct kv_pair *all;
	size_t count;
};

static enum status
pairs_read(struct kv_tx *tx, void *arg)
{
	struct pairs *pairs = arg;
	struct kv_scan scan;
	struct kv_pair pair;
	enum status status = kv_scan_init(&scan, tx, STR(""), STR("\xff"), NULL);

	pairs->count = 0;
	while (status == STATUS_OK && (status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		assert_true(pairs->count < PAIRS_MOST);
		pairs->all[pairs->count].key = arena_dup(pairs->arena, pair.key);
		pairs->all[pairs->count++].value = arena_dup(pairs->arena, pair.value);
	}
	kv_scan_release(&scan);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static void
pairs_print(struct probing *g, size_t first, size_t last, char outcome)
{
	buf_printf(&g->line, "%s%zu", g->line.len ? " " : "", first);
	if (last > first)
		buf_printf(&g->line, "-%zu", last);
	buf_printf(&g->line, ": %c", outcome);
}

static bool
pairs_try(struct probing *g, const struct pairs *pairs, const char *expected)
{
	size_t first = 0;
	char before = 0;

	buf_clear(&g->line);
	for (size_t i = 0; i < pairs->count; i++) {
		char now;

		g->pair = &pairs->all[i];
		now = outcome_of(g, probing_run(g, ARENA_BYTES));
		if (i && now != before) {
			pairs_print(g, first + 1, i, before);
			first = i;
		}
		before = now;
	}
	pairs_print(g, first + 1, pairs->count, before);
	if (str_eq(buf_str(&g->line), str_from_cstr(expected)))
		return true;
	(void)fprintf(stderr, "# %s:\n#   is  %.*s\n#   not %s\n", g->lost ? "lost" : "foreign",
		      STR_ARG(buf_str(&g->line)), expected);
	return false;
}

void
probe_pairs(struct kv_store *store, void *world, const struct probe_op *check, const char *lost,
	    const char *foreign)
{
	struct probing g = { .p = { .store = store, .world = world, .said = BUF_INIT(SAID_BYTES) },
			     .op = check };
	struct pairs pairs = { .arena = arena_new(SIZE_MAX) };
	bool same;

	assert_non_null(pairs.arena);
	pairs.all = arena_alloc(pairs.arena, PAIRS_MOST * sizeof(*pairs.all));
	assert_int_equal(kv_run_read(store, pairs_read, &pairs, NULL), STATUS_OK);
	buf_init(&g.said, SAID_BYTES);
	buf_init(&g.line, SAID_BYTES);
	tap_nothing();
	g.status = probing_run(&g, ARENA_BYTES);
	buf_append_str(&g.said, buf_str(&g.p.said));
	g.lost = true;
	same = pairs_try(&g, &pairs, lost);
	g.lost = false;
	same = pairs_try(&g, &pairs, foreign) && same;
	buf_release(&g.p.said);
	buf_release(&g.said);
	buf_release(&g.line);
	arena_free(pairs.arena);
	assert_true(same);
}
