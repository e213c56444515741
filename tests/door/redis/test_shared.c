/* A store that others use, too: how often Redis's commands wait for it. */
#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "access/people.h"
#include "catalog/catalog.h"
#include "door/redis/redis.h"
#include "door/redis/txn/trackers.h"
#include "kv/faulty/faulty.h"
#include "model/timed/items/items.h"
#include "net/host.h"
#include "store.h"

enum {
	PATH_BYTES = 256,
	ANSWER_BYTES = 16 * 1024,
	PIPELINE = 16,
	LOOKS = 5, /* at what commands cost */
	LOOKS_MOST = 200,
	CREATION_READS = 12, /* more than the first command about a database makes */
};

static struct kv_store *store;
static struct settings *settings;
static struct settings_live *live;
static struct redis *redis;
static struct net_host *host;
static pthread_t thread;
static char directory[PATH_BYTES];
static int client;

static void *
serve(void *arg)
{
	struct err err = { 0 };

	return net_host_run(host, &err) == STATUS_OK ? arg : NULL;
}

static int
connect_to(uint16_t port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static int
setup(void **state)
{
	static const struct setting_group *const groups[] = { &access_setting_group };
	const struct kv_options options = { .create = true, .no_sync = true };
	const struct net_host_config config = { .loops = 1,
						.pool_threads = 1,
						.max_connections = 100 };
	struct redis_config door = { 0 };
	struct err err = { 0 };
	char url[2 * PATH_BYTES];
	unsigned service;
	uint16_t port;

	(void)state;
	(void)signal(SIGPIPE, SIG_IGN);
	/* The embedded engine that says it is shared, and fails never. */
	assert_int_equal(setenv("FROND_TEST_FAULTS", "shared=1,rate=0,delay=0,watch=0", 1), 0);
	test_make_dir("redis_shared", directory, sizeof(directory));
	test_store_url(directory, url, sizeof(url));
	timed_items_register();
	settings = settings_new(groups, 1);
	assert_non_null(settings);
	assert_int_equal(kv_open(url, &options, &store, &err), STATUS_OK);
	assert_int_equal(settings_live_new(store, settings, &people_live_ops, NULL, &live, &err),
			 STATUS_OK);
	door.store = store;
	door.live = live;
	redis = redis_new(&door);
	assert_non_null(redis);
	assert_int_equal(net_host_new(&config, &host, &err), STATUS_OK);
	assert_int_equal(net_host_add_service(host, &net_stream_protocol,
					      redis_stream_options(redis), &service, &err),
			 STATUS_OK);
	assert_int_equal(net_host_listen(host, service, "127.0.0.1:0", &port, &err), STATUS_OK);
	assert_int_equal(pthread_create(&thread, NULL, serve, host), 0);
	client = connect_to(port);
	return 0;
}

static int
teardown(void **state)
{
	void *served;

	(void)state;
	(void)close(client);
	net_host_stop(host);
	assert_int_equal(pthread_join(thread, &served), 0);
	assert_ptr_equal(served, host);
	assert_true(net_host_free(host));
	redis_free(redis);
	settings_live_free(live);
	settings_free(settings);
	kv_close(store);
	test_remove_tree(directory);
	return 0;
}

/* Sends commands at once, and reads answers until there are as many lines as these have. */
static void
ask(const char *commands, unsigned lines)
{
	static char answer[ANSWER_BYTES];
	size_t len = strlen(commands), got = 0;
	unsigned found = 0;

	assert_int_equal(write(client, commands, len), (ssize_t)len);
	while (found < lines) {
		ssize_t n = read(client, answer + got, sizeof(answer) - got);

		assert_true(n > 0);
		for (ssize_t i = 0; i < n; i++) {
			assert_int_not_equal(answer[got + (size_t)i], '-');
			found += answer[got + (size_t)i] == '\n';
		}
		got += (size_t)n;
	}
}

/*
 * How often these commands wait for the store, which is to be `most` times at most: the least of
 * some looks, since chores wait, too. On a busy machine each look may meet one, so there are more
 * until one has taken no more than that.
 */
static uint64_t
round_trips_of(const char *commands, unsigned lines, uint64_t most)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < LOOKS || (least > most && i < LOOKS_MOST); i++) {
		uint64_t before = kv_faulty_round_trips(), trips;

		ask(commands, lines);
		ask("PING\r\n", 1);
		trips = kv_faulty_round_trips() - before;
		least = trips < least ? trips : least;
	}
	return least;
}

/* So many of a command, each about another key. */
static const char *
pipeline(const char *name, const char *value, unsigned count)
{
	static char text[ANSWER_BYTES];
	size_t len = 0;

	for (unsigned i = 0; i < count; i++) {
		int n = snprintf(text + len, sizeof(text) - len, "%s k%u %s\r\n", name, i, value);

		len += (size_t)n;
		assert_true(len < sizeof(text));
	}
	return text;
}

static void
expect_no_more_for_many(const char *name, const char *value, unsigned lines)
{
	uint64_t one, many;

	ask(pipeline(name, value, PIPELINE),
	    PIPELINE * lines); /* the database is there from now on */
	one = round_trips_of(pipeline(name, value, 1), lines, UINT64_MAX);
	many = round_trips_of(pipeline(name, value, PIPELINE), PIPELINE * lines, one);
	assert_int_not_equal(one, 0);
	if (many > one)
		fail_msg("%s waits %u times, and %d of them %u times", name, (unsigned)one,
			 PIPELINE, (unsigned)many);
}

static void
keys_of_a_pipeline_are_read_together(void **state)
{
	(void)state;
	expect_no_more_for_many("SET", "1", 1);
	expect_no_more_for_many("INCR", "", 1);
	expect_no_more_for_many("GET", "", 2);
	expect_no_more_for_many("EXISTS", "", 1);
}

static void
say(const char *commands)
{
	size_t len = strlen(commands);

	assert_int_equal(write(client, commands, len), (ssize_t)len);
}

/* The next line that the server says. */
static const char *
read_line(void)
{
	static char got[ANSWER_BYTES];
	size_t len = 0;

	do {
		ssize_t n = read(client, got + len, sizeof(got) - len - 1);

		assert_true(n > 0);
		len += (size_t)n;
		got[len] = '\0';
	} while (!strchr(got, '\n'));
	return got;
}

/* Reads until that has come. */
static void
expect_text(const char *text)
{
	static char got[ANSWER_BYTES];
	size_t len = 0;

	do {
		ssize_t n = read(client, got + len, sizeof(got) - len - 1);

		assert_true(n > 0);
		len += (size_t)n;
		got[len] = '\0';
	} while (!strstr(got, text));
}

static enum status
remove_all(struct kv_tx *tx, void *arg)
{
	struct trackers_seen seen;

	TRY(trackers_list(tx, &seen));
	*(size_t *)arg = seen.count;
	for (size_t i = 0; i < seen.count; i++)
		TRY(trackers_remove(tx, seen.records[i].id));
	return STATUS_OK;
}

static enum status
count_all(struct kv_tx *tx, void *arg)
{
	struct trackers_seen seen;

	TRY(trackers_list(tx, &seen));
	*(size_t *)arg = seen.count;
	return STATUS_OK;
}

/* As after a process has stood still for so long that it was taken for dead. */
static void
who_tracks_is_told_that_all_may_be_wrong_when_its_process_was_forgotten(void **state)
{
	size_t count;

	(void)state;
	say("HELLO 3\r\nCLIENT TRACKING ON\r\nGET k\r\nPING\r\n");
	expect_text("+PONG");
	assert_int_equal(kv_run(store, remove_all, &count, NULL, NULL), STATUS_OK);
	assert_int_equal(count, 1);
	expect_text(">2\r\n$10\r\ninvalidate\r\n_\r\n");
	/* It has asked the others to tell again, and what is read from now on is told of. */
	assert_int_equal(kv_run_read(store, count_all, &count, NULL), STATUS_OK);
	assert_int_equal(count, 1);
	say("GET k\r\nSET k 2\r\nPING\r\n");
	expect_text(">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n");
}

static enum status
remove_database(struct kv_tx *tx, void *name)
{
	enum status status = catalog_delete(tx, CATALOG_SPACE_REDIS, *(struct str *)name, NULL);

	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* Keys are asked for ahead, and whatever fails there is passed over: so nothing may be written. */
static void
a_read_that_fails_before_the_first_key_of_a_database_leaves_no_half_of_it(void **state)
{
	struct str name = STR("3");
	const char *answer;

	(void)state;
	ask("SELECT 3\r\n", 1);
	for (uint32_t reads = 1; reads <= CREATION_READS; reads++) {
		assert_int_equal(kv_run(store, remove_database, &name, NULL, NULL), STATUS_OK);
		kv_faulty_wear_out(store, reads);
		say("SET k v\r\n");
		answer = read_line();
		kv_faulty_wear_out(store, 0);
		if (strcmp(answer, "+OK\r\n") != 0 && !strstr(answer, "gave up after"))
			fail_msg("after %u reads: %s", reads, answer);
		ask("SET k v\r\n", 1);
	}
	ask("SELECT 0\r\n", 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_of_a_pipeline_are_read_together),
		cmocka_unit_test(
			who_tracks_is_told_that_all_may_be_wrong_when_its_process_was_forgotten),
		cmocka_unit_test(
			a_read_that_fails_before_the_first_key_of_a_database_leaves_no_half_of_it),
	};

	test_show_failures();
	kv_faulty_register();
	return cmocka_run_group_tests(tests, setup, teardown);
}
