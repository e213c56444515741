#include "verified.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/hash.h"
#include "catalog/verify.h"

enum {
	RANGE_KEYS = 300,   /* of a store, for each unit of a range: each range is a transaction */
	WHOLE_ATTEMPTS = 3, /* to read all of a cluster at one version, before ranges are read */
	HASHED_MOST = 200,  /* findings of a check that are compared with those of another */
};

struct verifying {
	struct verified *ret;
	uint64_t hashes[HASHED_MOST]; /* of the first findings: their kinds, keys and texts */
	size_t hashed;
	unsigned attempts;
	bool is_shared;     /* the store */
	size_t range_units; /* 0: not in ranges */
	struct catalog_verify_sum sum;
};

static void
verified_note(const struct catalog_finding *finding, void *arg)
{
	struct verifying *x = arg;
	struct verified *v = x->ret;
	size_t len = strlen(v->all);

	v->count++;
	(void)snprintf(v->last, sizeof(v->last), "%s: %s", finding->kind, finding->text);
	(void)snprintf(v->all + len, sizeof(v->all) - len, "%s: %s\n", finding->kind,
		       finding->text);
	if (x->hashed < HASHED_MOST)
		x->hashes[x->hashed++] = hash_keyed(
			hash_keyed(hash_keyed(0, str_from_cstr(finding->kind)), finding->key),
			str_from_cstr(finding->text));
}

static enum status
verified_body(struct kv_tx *tx, void *arg)
{
	struct verifying *x = arg;
	const struct catalog_verify_options options = {
		.found = verified_note,
		.arg = x,
		.ranges = x->range_units > 0,
		.range_units = x->range_units,
	};

	*x->ret = (struct verified){ 0 };
	x->hashed = 0;
	/* A busy cluster may never let all be read at one version: a few attempts are enough. */
	if (x->is_shared && x->attempts++ == WHOLE_ATTEMPTS && !x->range_units)
		return STATUS_BUSY;
	return catalog_verify_store(tx, &options, &x->sum, NULL);
}

/* What only one moment tells (docs/OPERATING.md), and no range does. */
static bool
needs_one_moment(const struct verified *v)
{
	static const char *const told[] = {
		"plain_count: the counter says",
		"images were written ahead",
		" are counted\n",                       /* items */
		"; headers and entries name ",          /* bodies, and documents in leaves */
		"bytes are kept, and the records have", /* the past */
		"it is weighed, and is to be weighed again",
		"it is not weighed, and is not to be",
		"notes of an item, which nobody will look at",
		"no note says that what belongs to the item was changed",
	};

	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++)
		if (strstr(v->all, told[i]))
			return true;
	return false;
}

/* How often the check has told the finding. */
static size_t
times_told(const struct verifying *x, uint64_t hash)
{
	size_t times = 0;

	for (size_t i = 0; i < x->hashed; i++)
		times += x->hashes[i] == hash;
	return times;
}

/*
 * The check in ranges finds something where the other one does, and nothing where it does not. It
 * goes through a database several times, and repeats nothing that it has told.
 */
static void
verified_ranges(struct kv_store *store, size_t range_units, const struct verifying *all)
{
	struct verified ranges;
	struct verifying x = { .ret = &ranges, .range_units = range_units };

	assert_int_equal(kv_run_read(store, verified_body, &x, NULL), STATUS_OK);
	if ((ranges.count > 0) != (all->ret->count > 0) && !needs_one_moment(all->ret))
		fail_msg("at one moment: %s\nin ranges of %zu: %s", all->ret->all, range_units,
			 ranges.all);
	for (size_t i = 0; i < x.hashed; i++) {
		size_t times = times_told(&x, x.hashes[i]);

		if (times > 1 && times > times_told(all, x.hashes[i]))
			fail_msg("at one moment: %s\nmore often in ranges of %zu: %s",
				 all->ret->all, range_units, ranges.all);
	}
	assert_null(strstr(ranges.all, "unchecked"));
}

void
verified_read(struct kv_store *store, struct verified *ret)
{
	struct verifying x = { .ret = ret, .is_shared = kv_is_shared(store) };
	enum status status = kv_run_read(store, verified_body, &x, NULL);
	size_t units;

	if (status == STATUS_BUSY && x.is_shared) {
		struct verifying ranges = { .ret = ret, .range_units = 1 };

		assert_int_equal(kv_run_read(store, verified_body, &ranges, NULL), STATUS_OK);
		return;
	}
	assert_int_equal(status, STATUS_OK);
	units = 1 + x.sum.keys / RANGE_KEYS;
	verified_ranges(store, units, &x);
	verified_ranges(store, 5 * units, &x);
}

void
verified_none(struct kv_store *store)
{
	struct verified v;

	verified_read(store, &v);
	if (v.count)
		fail_msg("%zu findings:\n%s", v.count, v.all);
}

void
verified_beside_writers(struct kv_store *store)
{
	struct verified v;
	struct verifying x = { .ret = &v, .range_units = 1 };

	assert_int_equal(kv_run_read(store, verified_body, &x, NULL), STATUS_OK);
	if (v.count)
		fail_msg("%zu findings:\n%s", v.count, v.all);
}
