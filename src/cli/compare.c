#include "cli/compare.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "kv/kv.h"
#include "kv/tuple.h"
#include "loop/pause.h"
#include "loop/wait.h"

enum {
	SHOWN_KEY_BYTES = 16 * KV_LIMIT_KEY_BYTES,
	PROGRESS_PAIRS = 4096,
};

/* One of the two. */
struct compare_side {
	const char *url;
	struct kv_store *store;
	struct kv_tx *tx;
	struct kv_scan scan;
	bool scans;
	bool ended;
	struct kv_pair pair;
	uint64_t version;
};

static void
side_close(struct compare_side *s)
{
	if (s->scans)
		kv_scan_release(&s->scan);
	kv_tx_free(s->tx);
	kv_close(s->store);
	s->store = NULL;
	s->tx = NULL;
	s->scans = false;
}

static enum status
side_open(struct compare_side *s, struct err *err)
{
	const struct kv_options options = { .read_only = true };
	enum status status;

	/* It has told why. */
	status = cli_open_store(s->url, &options, &s->store);
	if (status != STATUS_OK)
		return err_set(err, status, "nothing was compared");
	status = kv_begin(s->store, KV_TX_READ_ONLY, &s->tx);
	if (status == STATUS_OK)
		status = kv_get_read_version(s->tx, &s->version);
	if (status != STATUS_OK)
		return err_set(err, status, "cannot read %s: %s", s->url, status_name(status));
	return STATUS_OK;
}

/* Opens both, and the one that is behind again until they agree. */
static enum status
compare_open(struct compare_side *a, struct compare_side *b, struct err *err)
{
	TRY(side_open(a, err));
	TRY(side_open(b, err));
	for (int i = 0; a->version != b->version && i < COMPARE_ATTEMPTS; i++) {
		struct compare_side *behind = a->version < b->version ? a : b;

		wait_pause(COMPARE_PAUSE_MS);
		side_close(behind);
		TRY(side_open(behind, err));
	}
	if (a->version == b->version)
		return STATUS_OK;
	return err_set(
		err, STATUS_INVALID,
		"%s has version %llu, and %s has %llu: nothing was compared; let nobody write "
		"until the standby has caught up, or stop it and compare with a backup",
		a->url, (unsigned long long)a->version, b->url, (unsigned long long)b->version);
}

static enum status
side_next(struct compare_side *s)
{
	enum status status = kv_scan_next(&s->scan, &s->pair);

	s->ended = status == STATUS_NOT_FOUND;
	return s->ended ? STATUS_OK : status;
}

static enum status
side_begin(struct compare_side *s)
{
	TRY(kv_scan_init(&s->scan, s->tx, STR(""), STR("\xff"), NULL));
	s->scans = true;
	return side_next(s);
}

static void
compare_tell(struct compare_sum *sum, struct progress *progress, struct str key, const char *how,
	     const char *url)
{
	AUTO(buf_release) struct buf drawn = BUF_INIT(SHOWN_KEY_BYTES);

	if (++sum->differences > sum->limit)
		return;
	progress_hide(progress);
	tuple_draw(key, &drawn);
	printf("difference: key %.*s: %s %s\n", STR_ARG(buf_str(&drawn)), how, url);
}

/* Looks at the next key of both, and moves those that have it. */
static enum status
compare_step(struct compare_side *a, struct compare_side *b, struct progress *progress,
	     struct compare_sum *sum)
{
	int order = a->ended ? 1 : b->ended ? -1 : str_cmp(a->pair.key, b->pair.key);

	if (order < 0)
		compare_tell(sum, progress, a->pair.key, "is not in", b->url);
	else if (order > 0)
		compare_tell(sum, progress, b->pair.key, "is not in", a->url);
	else if (!str_eq(a->pair.value, b->pair.value))
		compare_tell(sum, progress, a->pair.key, "has another value in", b->url);
	if (order <= 0) {
		sum->bytes += a->pair.key.len + a->pair.value.len;
		if (++sum->pairs % PROGRESS_PAIRS == 0)
			progress_update(progress, sum->pairs, sum->bytes);
		TRY(side_next(a));
	}
	return order >= 0 ? side_next(b) : STATUS_OK;
}

static enum status
compare_run(struct compare_side *a, struct compare_side *b, struct progress *progress,
	    struct compare_sum *sum, struct err *err)
{
	uint8_t of_a[KV_VERSIONSTAMP_TX_BYTES], of_b[KV_VERSIONSTAMP_TX_BYTES];

	TRY(compare_open(a, b, err));
	sum->version = a->version;
	TRY(side_begin(a));
	TRY(side_begin(b));
	while (!a->ended || !b->ended)
		TRY(compare_step(a, b, progress, sum));
	TRY(kv_get_metadata_version(a->tx, of_a));
	TRY(kv_get_metadata_version(b->tx, of_b));
	if (memcmp(of_a, of_b, sizeof(of_a)) != 0) {
		sum->differences++;
		printf("difference: the metadata version is another one in %s\n", b->url);
	}
	if (sum->differences > sum->limit)
		printf("difference: %llu more\n",
		       (unsigned long long)(sum->differences - sum->limit));
	return STATUS_OK;
}

enum status
compare_stores(const char *url, const char *other_url, struct progress *progress,
	       struct compare_sum *sum, struct err *err)
{
	struct compare_side a = { .url = url }, b = { .url = other_url };
	enum status status = compare_run(&a, &b, progress, sum, err);

	side_close(&a);
	side_close(&b);
	return status;
}
