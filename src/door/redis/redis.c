/* The door: made and freed. */
#include "door/redis/redis.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/rand.h"
#include "catalog/chores.h"
#include "door/redis/cmd/config.h"
#include "door/redis/person.h"
#include "door/redis/script/eval.h"
#include "door/redis/serve.h"
#include "door/redis/txn/footprint.h"
#include "door/redis/txn/latency.h"
#include "door/redis/txn/others.h"
#include "door/redis/txn/redis_int.h"
#include "door/redis/txn/run.h"
#include "door/redis/txn/stats.h"

enum {
	RATE_LOOK_MS = 1000,
};

#define TOO_MANY STR("-ERR max number of clients reached\r\n")

static void
redis_init_locks(struct redis *r)
{
	pthread_rwlock_init(&r->pubsub_lock, NULL);
	pthread_mutex_init(&r->monitor_lock, NULL);
	pthread_mutex_init(&r->blocked_lock, NULL);
	pthread_mutex_init(&r->config_lock, NULL);
	pthread_mutex_init(&r->scripts_lock, NULL);
	trackers_known_init(&r->trackers);
}

static void
redis_fini_locks(struct redis *r)
{
	pthread_rwlock_destroy(&r->pubsub_lock);
	pthread_mutex_destroy(&r->monitor_lock);
	pthread_mutex_destroy(&r->blocked_lock);
	pthread_mutex_destroy(&r->config_lock);
	pthread_mutex_destroy(&r->scripts_lock);
	trackers_known_fini(&r->trackers);
}

struct redis *
redis_new(const struct redis_config *config)
{
	const struct visit_rules rules = person_visit_rules(config);
	struct redis *r = mem_zalloc(sizeof(*r));
	static const char digits[] = "0123456789abcdef";
	uint8_t id[20];

	if (!r)
		return NULL;
	r->config = *config;
	r->started_ns = clock_mono_ns();
	r->started_ms = clock_wall_ms();
	rand_bytes(id, sizeof(id));
	rand_bytes(&r->origin, sizeof(r->origin));
	waited_init(&r->waited);
	for (size_t i = 0; i < sizeof(id); i++) {
		r->run_id[2 * i] = digits[id[i] >> 4];
		r->run_id[2 * i + 1] = digits[id[i] & 15];
	}
	redis_init_locks(r);
	catalog_caches_init(&r->caches);
	clients_init(&r->clients, CLIENT_ENDED, &rules);
	recent_init(&r->acl_log);
	lanes_init(&r->queue, REDIS_GROUP_JOBS);
	lanes_init(&r->readers, REDIS_GROUP_JOBS);
	/* A cluster's commits may be left behind with lanes that are owed, which keys are not. */
	if (!kv_is_shared(config->store))
		(void)lanes_take_keys(&r->queue);
	r->stream = (struct net_stream_options){
		.serve = redis_serve,
		.arg = r,
		.output_bytes = REDIS_OUTPUT_BYTES,
		.refusal = TOO_MANY,
	};
	r->script_cache = eval_cache_new();
	r->script_images = script_images_new();
	r->stats = stats_new();
	r->latency = latency_new();
	r->started_bytes = footprint_used();
	r->tracking = tracking_new();
	if (!kv_is_shared(config->store))
		r->maps = timed_maps_new(); /* without them, transactions read more */
	if (config->news)
		people_news_listen(config->news, client_tell_all, r);
	if (!r->script_cache || !r->script_images || !r->stats || !r->latency || !r->tracking ||
	    !config_init(r)) {
		redis_free(r);
		return NULL;
	}
	if (kv_is_shared(config->store) && others_new(r, &r->others) != STATUS_OK) {
		redis_free(r);
		return NULL;
	}
	return r;
}

/* How many commands there were a second since the last look: instantaneous_ops_per_sec of INFO. */
static enum status
rate_look(void *arg, struct chore_turn *turn, struct err *err)
{
	struct redis *r = arg;
	uint64_t commands = atomic_load_explicit(&r->commands, memory_order_relaxed);
	uint64_t now_ns = clock_mono_ns();

	(void)turn;
	(void)err;
	if (r->rate_ns && now_ns > r->rate_ns)
		atomic_store(&r->commands_a_second,
			     (uint64_t)((double)(commands - r->rate_commands) * 1e9 /
					(double)(now_ns - r->rate_ns)));
	r->rate_commands = commands;
	r->rate_ns = now_ns;
	return STATUS_OK;
}

void
redis_chores_add(struct redis *r, struct chores *chores)
{
	r->chores = chores;
	chores_add(chores, &(struct chore){
				   .name = "redis_rate",
				   .run = rate_look,
				   .arg = r,
				   .thread = CHORE_QUICK,
				   .unlisted = true,
				   .pause_ms = RATE_LOOK_MS,
			   });
	if (r->others)
		others_chores_add(r->others, chores);
}

void
redis_free(struct redis *r)
{
	if (!r)
		return;
	others_free(r->others);
	catalog_caches_fini(&r->caches);
	timed_maps_free(r->maps);
	eval_cache_free(r->script_cache);
	script_images_free(r->script_images);
	stats_free(r->stats);
	latency_free(r->latency);
	tracking_free(r->tracking);
	recent_fini(&r->acl_log);
	config_fini(r);
	clients_fini(&r->clients);
	run_lanes_fini(r);
	waited_fini(&r->waited);
	redis_fini_locks(r);
	mem_free(r);
}

struct net_stream_options *
redis_stream_options(struct redis *r)
{
	return &r->stream;
}

void
redis_set_port(struct redis *r, uint16_t port)
{
	r->config.port = port;
}
