/* Cassandra's door as a row of the program's table of doors: made and freed. */
#include "door/cql/cql_door.h"

#include "base/big_endian.h"
#include "base/hash.h"
#include "base/mem.h"
#include "door/cql/conn/client.h"
#include "door/cql/run/lane.h"
#include "door/cql/run/news.h"
#include "door/cql/run/prepared.h"
#include "door/cql/serve.h"
#include "model/timed/tables/tables.h"
#include "settings/settings.h"

static void
door_register_records(void)
{
	tables_register();
}

static enum status
door_open(const struct door_ground *ground, const struct door_place *place, void **ret,
	  struct err *err)
{
	struct cql_door *door = mem_zalloc(sizeof(*door));
	struct visit_rules rules;

	(void)place;
	if (!door)
		return err_set(err, STATUS_NOMEM, "out of memory");
	door->config = (struct cql_config){
		.store = ground->store,
		.live = ground->live,
		.news = ground->news,
		.people = ground->people,
		.settings = settings_of(ground->settings, &cql_setting_group),
	};
	rules = cql_visit_rules(&door->config);
	clients_init(&door->clients, CQL_CLIENT_LOST, &rules);
	catalog_caches_init(&door->caches);
	traces_init(&door->traces);
	for (size_t i = 0; i < CQL_LANE_TABLES; i++)
		lanes_init(&door->lanes[i], CQL_LANE_JOBS);
	prepared_init(door);
	door->stream = (struct net_stream_options){
		.serve = cql_serve,
		.arg = door,
		.output_bytes = CQL_OUTPUT_BYTES,
	};
	*ret = door;
	return STATUS_OK;
}

static struct net_stream_options *
door_stream_options(void *door)
{
	return &((struct cql_door *)door)->stream;
}

/* The node's id: the same whenever it listens there again, so that drivers know it. */
static void
door_listens(void *arg, const struct door_place *place)
{
	static const uint8_t seed[HASH_SEED_BYTES] = "frond cql host";
	struct cql_door *door = arg;
	uint64_t hash = hash_seeded(seed, str_from_cstr(place->host));

	door->port = place->port;
	big_endian_put_64(door->host_id, hash);
	big_endian_put_64(door->host_id + 8, hash * 31 + place->port);
	door->host_id[6] = (uint8_t)((door->host_id[6] & 0x0f) | 0x80);
	door->host_id[8] = (uint8_t)((door->host_id[8] & 0x3f) | 0x80);
}

static void
door_chores_add(void *door, struct chores *chores)
{
	cql_news_chores_add(door, chores);
}

static void
door_free(void *arg)
{
	struct cql_door *door = arg;

	if (!door)
		return;
	cql_news_fini(door);
	clients_fini(&door->clients);
	expiring_fini(&door->prepared);
	catalog_caches_fini(&door->caches);
	traces_fini(&door->traces);
	for (size_t i = 0; i < CQL_LANE_TABLES; i++)
		lane_fini(door->config.store, &door->lanes[i]);
	mem_free(door);
}

const struct door_type cql_door_type = {
	.name = "cql",
	.clients = "Cassandra",
	.settings = &cql_setting_group,
	.register_records = door_register_records,
	.open = door_open,
	.stream_options = door_stream_options,
	.listens = door_listens,
	.chores_add = door_chores_add,
	.free = door_free,
};
