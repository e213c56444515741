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

static enum status
verified_body(struct kv_tx *tx, void *arg)
{
	const struct catalog_verify_options options = { .found = verified_note, .arg = arg };
	struct catalog_verify_sum sum;

	*(struct verified *)arg = (struct verified){ 0 };
	return catalog_verify_store(tx, &options, &sum, NULL);
}

void
verified_read(struct kv_store *store, struct verified *ret)
{
	assert_int_equal(kv_run_read(store, verified_body, ret, NULL), STATUS_OK);
}

void
verified_none(struct kv_store *store)
{
	struct verified v;

	verified_read(store, &v);
	if (v.count)
		fail_msg("%zu findings:\n%s", v.count, v.all);
}
