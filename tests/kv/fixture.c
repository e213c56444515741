#include "fixture.h"

#include <dirent.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "loop/loop.h"
#include "loop/pool.h"
#include "loop/task.h"
#include "loop/wait.h"
#include "store.h"

void
fixture_make_dir(struct fixture *f)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(f->dir, sizeof(f->dir), "%s/frond-kv-XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(f->dir));
	test_store_url(f->dir, f->url, sizeof(f->url));
}

void
fixture_empty_dir(const struct fixture *f)
{
	DIR *dir = opendir(f->dir);
	struct dirent *e;

	while (dir && (e = readdir(dir)))
		unlinkat(dirfd(dir), e->d_name, 0);
	if (dir)
		closedir(dir);
}

void
fixture_remove_dir(struct fixture *f)
{
	fixture_empty_dir(f);
	rmdir(f->dir);
}

const struct kv_shape fixture_shape = {
	.others = { 1, { TUPLE_SKIP_TEXT } },
	.space_count = 1,
	.spaces = {
		{ FIXTURE_SPACE_OF_SIX,
		  { 4, { TUPLE_SKIP_TEXT, TUPLE_SKIP_BOOL, TUPLE_SKIP_INT, TUPLE_SKIP_TEXT } } },
	},
};

struct kv_store *
fixture_open(const char *url, struct kv_options options)
{
	struct kv_store *store = NULL;
	struct err err = { 0 };

	if (!options.shape)
		options.shape = &fixture_shape;
	if (!options.recent_bytes)
		options.recent_bytes = FIXTURE_RECENT_BYTES;
	if (!options.search_ns)
		options.search_ns = FIXTURE_SEARCH_NS;
	if (kv_open(url, &options, &store, &err) != STATUS_OK)
		fail_msg("%s: %s", status_name(err.status), err.text);
	return store;
}

static enum status
clear_body(struct kv_tx *tx, void *arg)
{
	(void)arg;
	return kv_clear_range(tx, STR("t/"), STR("t0"));
}

int
fixture_setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	const char *url = getenv("FROND_TEST_STORE");

	if (!f)
		return -1;
	test_show_failures();
	if (url)
		snprintf(f->url, sizeof(f->url), "%s", url);
	else
		fixture_make_dir(f);
	f->store = fixture_open(f->url, (struct kv_options){
						.create = true,
						.write_buffer_bytes = FIXTURE_WRITE_BUFFER_BYTES,
						.no_sync = true,
					});
	assert_ok(kv_run(f->store, clear_body, NULL, NULL, NULL));
	*state = f;
	return 0;
}

int
fixture_teardown(void **state)
{
	struct fixture *f = *state;

	kv_close(f->store);
	if (f->dir[0])
		fixture_remove_dir(f);
	free(f);
	return 0;
}

int
fixture_dir_setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	fixture_make_dir(f);
	*state = f;
	return 0;
}

int
fixture_dir_teardown(void **state)
{
	struct fixture *f = *state;

	fixture_remove_dir(f);
	free(f);
	return 0;
}

const char *
url_of(void **state)
{
	return ((struct fixture *)*state)->url;
}

enum status
open_status(const char *url, struct kv_options options, struct err *err)
{
	struct kv_store *store;
	enum status status = kv_open(url, &options, &store, err);

	assert_int_not_equal(status, STATUS_OK);
	assert_int_equal(err->status, status);
	return status;
}

struct kv_store *
store_of(void **state)
{
	return ((struct fixture *)*state)->store;
}

struct kv_tx *
begin(struct kv_store *store)
{
	struct kv_tx *tx = NULL;

	assert_ok(kv_begin(store, KV_TX_READ_WRITE, &tx));
	if (getenv("FROND_TEST_KV_VIEWS")) {
		uint8_t metadata[KV_VERSIONSTAMP_TX_BYTES];

		assert_ok(kv_get_metadata_version(tx, metadata));
	}
	return tx;
}

struct kv_tx *
begin_read(struct kv_store *store)
{
	struct kv_tx *tx = NULL;

	assert_ok(kv_begin(store, KV_TX_READ_ONLY, &tx));
	return tx;
}

enum status
try_commit(struct kv_tx *tx)
{
	enum status status = kv_future_wait(kv_commit(tx));

	kv_tx_free(tx);
	return status;
}

void
commit(struct kv_tx *tx)
{
	enum status status = kv_future_wait(kv_commit(tx));

	if (status != STATUS_OK)
		fail_msg("the commit failed: %s (%s)", status_name(status), kv_tx_error(tx));
	kv_tx_free(tx);
}

void
put(struct kv_tx *tx, const char *key, const char *value)
{
	assert_ok(kv_set(tx, str_from_cstr(key), str_from_cstr(value)));
}

struct pair {
	const char *key;
	const char *value;
};

static enum status
put_body(struct kv_tx *tx, void *arg)
{
	const struct pair *pair = arg;

	return kv_set(tx, str_from_cstr(pair->key), str_from_cstr(pair->value));
}

void
put_now(struct kv_store *store, const char *key, const char *value)
{
	struct pair pair = { key, value };

	assert_ok(kv_run(store, put_body, &pair, NULL, NULL));
}

enum status
get_status(struct kv_tx *tx, struct str key)
{
	return kv_future_wait(kv_get(tx, key, KV_READ));
}

/* Returns how the read itself ended. */
static enum status
check_get(struct kv_tx *tx, const char *key, const char *value)
{
	struct kv_future *f = kv_get(tx, str_from_cstr(key), KV_READ);
	struct str found;

	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &found)) {
		if (value)
			fail_msg("%s is absent and should be '%s'", key, value);
	} else if (!value) {
		fail_msg("%s is '%.*s' and should be absent", key, STR_ARG(found));
	} else if (!str_eq(found, str_from_cstr(value))) {
		fail_msg("%s is '%.*s' and should be '%s'", key, STR_ARG(found), value);
	}
	return STATUS_OK;
}

void
assert_get(struct kv_tx *tx, const char *key, const char *value)
{
	enum status status = check_get(tx, key, value);

	if (status != STATUS_OK)
		fail_msg("%s: %s (%s)", key, status_name(status), kv_tx_error(tx));
}

static enum status
stored_body(struct kv_tx *tx, void *arg)
{
	const struct pair *pair = arg;

	return check_get(tx, pair->key, pair->value);
}

void
assert_stored(struct kv_store *store, const char *key, const char *value)
{
	struct pair pair = { key, value };

	assert_ok(kv_run_read(store, stored_body, &pair, NULL));
}

void
assert_range(struct kv_tx *tx, const char *begin_key, const char *end_key,
	     const struct kv_range_options *options, const char *expected)
{
	struct kv_future *f = kv_get_range(tx, str_from_cstr(begin_key), str_from_cstr(end_key),
					   options);
	enum status status = kv_future_wait(f);
	struct buf text = BUF_INIT(1 << 20);
	struct kv_range range;

	if (status != STATUS_OK)
		fail_msg("[%s, %s): %s (%s)", begin_key, end_key, status_name(status),
			 kv_tx_error(tx));
	range = kv_future_range(f);
	for (size_t i = 0; i < range.count; i++)
		buf_printf(&text, "%s%.*s=%.*s", i ? " " : "", STR_ARG(range.pairs[i].key),
			   STR_ARG(range.pairs[i].value));
	if (range.more)
		buf_append_cstr(&text, "+");
	buf_append_byte(&text, 0);
	assert_string_equal(text.ptr, expected);
	buf_release(&text);
}

/* ---- Being alone ---- */

struct lone_waiter {
	struct waiter base;
	sem_t woken;
};

static _Thread_local struct lone_waiter *lone;

static void
lone_park(struct waiter *w, uint64_t deadline_ns)
{
	if (deadline_ns != WAIT_FOREVER) { /* it may return early */
		usleep(1000);
		return;
	}
	while (sem_wait(&((struct lone_waiter *)w)->woken) != 0)
		;
}

static void
lone_wake(struct waiter *w)
{
	sem_post(&((struct lone_waiter *)w)->woken);
}

static bool
lone_is_alone(struct waiter *w)
{
	(void)w;
	return true;
}

static void
lone_destroy(struct waiter *w)
{
	sem_destroy(&((struct lone_waiter *)w)->woken);
	free(w);
}

void
be_alone_begin(void)
{
	static const struct waiter_ops ops = {
		.park = lone_park,
		.wake = lone_wake,
		.is_alone = lone_is_alone,
		.destroy = lone_destroy,
	};

	lone = calloc(1, sizeof(*lone));
	assert_non_null(lone);
	sem_init(&lone->woken, 0, 0);
	waiter_init(&lone->base, &ops);
	waiter_set_current(&lone->base);
}

void
be_alone_end(void)
{
	waiter_set_current(NULL);
	waiter_unref(&lone->base);
	lone = NULL;
}

/* ---- Fibers ---- */

enum {
	FIBERS_POOL_THREADS = 2,
	FIBERS_TASK_BYTES = 1 << 20,
};

/* Those of the run_on_fibers() that runs. */
static struct {
	struct loop loop;
	void (*run)(void *arg);
	unsigned count;
	unsigned running;
	unsigned arrived; /* at meetings, in all */
} fibers;

static void
fiber_main(void *arg)
{
	fibers.run(arg);
	if (--fibers.running == 0)
		loop_stop(&fibers.loop);
}

void
run_on_fibers(unsigned count, void (*run)(void *arg), void *args, size_t arg_bytes)
{
	struct loop_config config = { .task_bytes = FIBERS_TASK_BYTES };
	struct err err = { 0 };

	fibers.run = run;
	fibers.count = fibers.running = count;
	fibers.arrived = 0;
	assert_ok(pool_new(FIBERS_POOL_THREADS, &config.pool, &err));
	assert_ok(loop_init(&fibers.loop, &config, &err));
	for (unsigned i = 0; i < count; i++)
		assert_ok(task_spawn(&fibers.loop, fiber_main, (char *)args + i * arg_bytes));
	loop_run(&fibers.loop);
	loop_fini(&fibers.loop);
	pool_free(config.pool);
}

void
meet_fibers(unsigned *meeting)
{
	unsigned goal = (*meeting += fibers.count);

	fibers.arrived++;
	while (fibers.arrived < goal)
		wait_yield();
}
