#include "verified.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "catalog/verify.h"

static void
verified_note(const struct catalog_finding *finding, void *arg)
{
	struct verified *v = arg;
	size_t len = strlen(v->all);

	v->count++;
	(void)snprintf(v->last, sizeof(v->last), "%s: %s", finding->kind, finding->text);
	(void)snprintf(v->all + len, sizeof(v->all) - len, "%s: %s\n", finding->kind,
		       finding->text);
}

struct verifying {
	struct verified *ret;
	size_t range_units; /* 0: not in ranges */
};

static enum status
verified_body(struct kv_tx *tx, void *arg)
{
	const struct verifying *x = arg;
	const struct catalog_verify_options options = {
		.found = verified_note,
		.arg = x->ret,
		.ranges = x->range_units > 0,
		.range_units = x->range_units,
	};
	struct catalog_verify_sum sum;

	*x->ret = (struct verified){ 0 };
	return catalog_verify_store(tx, &options, &sum, NULL);
}

/* What only one moment tells (docs/OPERATING.md), and no range does. */
static bool
needs_one_moment(const struct verified *v)
{
	return strstr(v->all, "plain_count: the counter says") ||
	       strstr(v->all, "images were written ahead");
}

/* The check in ranges finds something where the other one does, and nothing where it does not. */
static void
verified_ranges(struct kv_store *store, size_t range_units, const struct verified *all)
{
	struct verified ranges;
	struct verifying x = { .ret = &ranges, .range_units = range_units };

	assert_int_equal(kv_run_read(store, verified_body, &x, NULL), STATUS_OK);
	if ((ranges.count > 0) != (all->count > 0) && !needs_one_moment(all))
		fail_msg("at one moment: %s\nin ranges of %zu: %s", all->all, range_units,
			 ranges.all);
	assert_null(strstr(ranges.all, "unchecked"));
}

void
verified_read(struct kv_store *store, struct verified *ret)
{
	struct verifying x = { .ret = ret };

	assert_int_equal(kv_run_read(store, verified_body, &x, NULL), STATUS_OK);
	verified_ranges(store, 1, ret);
	verified_ranges(store, 5, ret);
}

void
verified_none(struct kv_store *store)
{
	struct verified v;

	verified_read(store, &v);
	if (v.count)
		fail_msg("%zu findings:\n%s", v.count, v.all);
}
