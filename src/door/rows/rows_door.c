#include "door/rows/rows_door.h"

#include "base/mem.h"
#include "door/rows/conn/client.h"
#include "door/rows/serve.h"
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
	struct rows_door *door = mem_zalloc(sizeof(*door));
	struct visit_rules rules;

	(void)place;
	if (!door)
		return err_set(err, STATUS_NOMEM, "out of memory");
	door->config = (struct rows_config){
		.store = ground->store,
		.live = ground->live,
		.news = ground->news,
		.settings = settings_of(ground->settings, &rows_setting_group),
	};
	rules = rows_visit_rules(&door->config);
	clients_init(&door->clients, 0, &rules);
	catalog_caches_init(&door->caches);
	door->stream = (struct net_stream_options){
		.serve = rows_serve,
		.arg = door,
		.output_bytes = ROWS_OUTPUT_BYTES,
	};
	*ret = door;
	return STATUS_OK;
}

static struct net_stream_options *
door_stream_options(void *door)
{
	return &((struct rows_door *)door)->stream;
}

static void
door_free(void *arg)
{
	struct rows_door *door = arg;

	if (!door)
		return;
	clients_fini(&door->clients);
	catalog_caches_fini(&door->caches);
	mem_free(door);
}

const struct door_type rows_door_type = {
	.name = "rows",
	.clients = "the protocol for rows",
	.settings = &rows_setting_group,
	.register_records = door_register_records,
	.open = door_open,
	.stream_options = door_stream_options,
	.free = door_free,
};
