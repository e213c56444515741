/*
 * Three doors of Redis in one process, over one store that several processes are said to serve: to
 * each other they are what three processes at a cluster are. For tests without a cluster.
 *
 *     redis_doors STORE_URL
 *
 * prints the three ports in a line, and ends with its standard input.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "access/people.h"
#include "access/settings.h"
#include "catalog/chores.h"
#include "catalog/store_format.h"
#include "door/redis/redis.h"
#include "kv/faulty/faulty.h"
#include "model/timed/items/items.h"
#include "net/host.h"
#include "settings/settings.h"

enum {
	DOORS = 3,
};

static struct redis *doors[DOORS];
static uint16_t ports[DOORS];

static void *
doors_wait_for_end(void *host)
{
	char byte;

	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	net_host_stop(host);
	return NULL;
}

static enum status
doors_listen(struct net_host *host, const struct redis_config *config, struct err *err)
{
	for (int i = 0; i < DOORS; i++) {
		unsigned service;

		doors[i] = redis_new(config);
		if (!doors[i])
			return STATUS_NOMEM;
		TRY(net_host_add_service(host, &net_stream_protocol, redis_stream_options(doors[i]),
					 &service, err));
		TRY(net_host_listen(host, service, "127.0.0.1:0", &ports[i], err));
	}
	return STATUS_OK;
}

static enum status
doors_serve(struct kv_store *store, struct settings_live *live, struct err *err)
{
	const struct net_host_config config = { .loops = 2, .pool_threads = 2 };
	const struct redis_config redis = { .store = store, .live = live };
	struct timed_sweeping sweeping = { .store = store };
	struct chores *chores = chores_new(store);
	struct net_host *host;
	pthread_t thread;
	enum status status;

	TRY(net_host_new(&config, &host, err));
	TRY(doors_listen(host, &redis, err));
	timed_chores_add(chores, &sweeping);
	redis_chores_add(doors[0], chores);
	TRY(chores_start(chores, err));
	(void)printf("%u %u %u\n", ports[0], ports[1], ports[2]);
	(void)fflush(stdout);
	if (pthread_create(&thread, NULL, doors_wait_for_end, host) != 0)
		return STATUS_NOMEM;
	status = net_host_run(host, err);
	(void)pthread_join(thread, NULL);
	(void)net_host_free(host);
	chores_stop(chores);
	chores_free(chores);
	for (int i = 0; i < DOORS; i++)
		redis_free(doors[i]);
	return status;
}

int
main(int argc, char **argv)
{
	static const struct setting_group *const groups[] = { &access_setting_group };
	const struct kv_options options = { .create = true, .no_sync = true };
	struct settings *settings = settings_new(groups, 1);
	struct settings_live *live = NULL;
	struct kv_store *store = NULL;
	struct err err = { 0 };
	enum status status = STATUS_NOMEM;

	if (argc != 2)
		return 2;
	(void)signal(SIGPIPE, SIG_IGN);
	kv_faulty_register();
	timed_items_register();
	redis_door_type.register_records();
	if (settings)
		status = catalog_store_open(argv[1], &options, &store, &err);
	if (status == STATUS_OK)
		status = settings_live_new(store, settings, &people_live_ops, NULL, &live, &err);
	if (status == STATUS_OK)
		status = doors_serve(store, live, &err);
	if (status != STATUS_OK)
		(void)fprintf(stderr, "redis_doors: %s %s\n", status_name(status), err.text);
	settings_live_free(live);
	settings_free(settings);
	kv_close(store);
	return status == STATUS_OK ? 0 : 1;
}
