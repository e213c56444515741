/*
 * A server of MongoDB's door whose clock a test moves: days pass without waiting for them. It has
 * no chores, so that nothing is cleared but when the test says so.
 *
 * clocked DIRECTORY prints its port and serves. Lines that it reads:
 *
 *     clock MS       so much time passes, as the calendar shows it
 *     wait MS        likewise, as one waits for it
 *     sweep          what is old enough is cleared: events, notices, what is left of collections
 *
 * Each is answered by a line "ok". The end of the lines stops it.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "access/people.h"
#include "base/clock.h"
#include "base/steady.h"
#include "catalog/keys.h"
#include "catalog/store_format.h"
#include "door/mongo/mongo.h"
#include "door/mongo/txn/settings.h"
#include "kv/kv.h"
#include "model/plain/plain.h"
#include "net/host.h"

enum {
	PATH_BYTES = 512,
	LINE_BYTES = 100,
	SWEEP_TRANSACTIONS = 100,
};

static _Atomic uint64_t passed_ms, waited_ms;
static struct kv_store *store;
static struct net_host *host;

/* ---- In place of base/clock.c ---- */

static uint64_t
clock_read_ns(clockid_t which)
{
	struct timespec t;

	(void)clock_gettime(which, &t);
	return (uint64_t)t.tv_sec * 1000 * CLOCK_NS_PER_MS + (uint64_t)t.tv_nsec;
}

uint64_t
clock_mono_ns(void)
{
	return clock_read_ns(CLOCK_MONOTONIC) + atomic_load(&waited_ms) * CLOCK_NS_PER_MS;
}

uint64_t
clock_cpu_ns(void)
{
	return clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t
clock_boot_us(void)
{
	return clock_read_ns(CLOCK_BOOTTIME) / 1000 + atomic_load(&passed_ms) * 1000;
}

void
clock_boot_id(uint8_t ret[CLOCK_BOOT_ID_BYTES])
{
	memset(ret, 1, CLOCK_BOOT_ID_BYTES);
}

uint64_t
clock_wall_us(void)
{
	return clock_read_ns(CLOCK_REALTIME) / 1000 + atomic_load(&passed_ms) * 1000;
}

uint64_t
clock_wall_ms(void)
{
	return clock_wall_us() / 1000;
}

/* ---- Commands ---- */

static enum status
sweep(struct err *err)
{
	AUTO(buf_release) struct buf place = CATALOG_KEY_INIT;
	bool more = true;

	while (more)
		TRY(plain_sweep(store, steady_ms(), &place, &more, err));
	return catalog_drop_sweep(&(struct catalog_sweeping){ .store = store }, steady_ms(),
				  SWEEP_TRANSACTIONS, &more, err);
}

static bool
command_run(const char *line)
{
	struct err err = { 0 };

	if (strncmp(line, "clock ", 6) == 0) {
		atomic_fetch_add(&passed_ms, strtoull(line + 6, NULL, 10));
		return true;
	}
	if (strncmp(line, "wait ", 5) == 0) {
		atomic_fetch_add(&waited_ms, strtoull(line + 5, NULL, 10));
		return true;
	}
	if (strcmp(line, "sweep\n") == 0 && sweep(&err) == STATUS_OK)
		return true;
	(void)fprintf(stderr, "clocked: %s%s\n", line, err.text);
	return false;
}

static void *
commands_run(void *arg)
{
	char line[LINE_BYTES];

	while (fgets(line, sizeof(line), stdin) && command_run(line)) {
		(void)puts("ok");
		(void)fflush(stdout);
	}
	net_host_stop(host);
	return arg;
}

/* ---- The server ---- */

static enum status
clocked_listen(struct mongo *mongo, uint16_t *ret_port, struct err *err)
{
	unsigned service;

	TRY(net_host_add_service(host, &net_stream_protocol, mongo_stream_options(mongo), &service,
				 err));
	TRY(net_host_listen(host, service, "127.0.0.1:0", ret_port, err));
	mongo_set_address(mongo, "127.0.0.1", *ret_port, false);
	return STATUS_OK;
}

int
main(int argc, char **argv)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	const struct net_host_config config = { .loops = 1,
						.pool_threads = 1,
						.max_connections = 100 };
	static const struct setting_group *const groups[] = { &access_setting_group,
							      &mongo_setting_group };
	struct settings *settings = settings_new(groups, 2);
	struct settings_live *live = NULL;
	struct mongo_config door = { 0 };
	struct mongo *mongo = NULL;
	struct err err = { 0 };
	char url[PATH_BYTES];
	pthread_t commands;
	uint16_t port = 0;
	bool ok;

	if (argc != 2)
		return 2;
	(void)snprintf(url, sizeof(url), "embedded:%s", argv[1]);
	(void)signal(SIGPIPE, SIG_IGN);
	plain_register();
	ok = settings && catalog_store_open(url, &options, &store, &err) == STATUS_OK &&
	     settings_live_new(store, settings, &people_live_ops, NULL, &live, &err) == STATUS_OK;
	if (ok) {
		door.store = store;
		door.live = live;
		door.settings = settings_of(settings, &mongo_setting_group);
		mongo = mongo_new(&door);
	}
	ok = mongo && net_host_new(&config, &host, &err) == STATUS_OK &&
	     clocked_listen(mongo, &port, &err) == STATUS_OK &&
	     pthread_create(&commands, NULL, commands_run, NULL) == 0;
	if (!ok) {
		(void)fprintf(stderr, "clocked: %s\n", err.text);
		return 1;
	}
	(void)printf("%u\n", port);
	(void)fflush(stdout);
	ok = net_host_run(host, &err) == STATUS_OK;
	(void)pthread_join(commands, NULL);
	if (ok)
		mongo_stop(mongo);
	(void)net_host_free(host);
	mongo_free(mongo);
	settings_live_free(live);
	settings_free(settings);
	kv_close(store);
	return ok ? 0 : 1;
}
