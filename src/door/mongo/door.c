/* MongoDB's door as a row of the program's table of doors. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "access/scram_table.h"
#include "base/address.h"
#include "door/mongo/mongo.h"
#include "door/mongo/txn/session.h"
#include "door/mongo/txn/settings.h"
#include "settings/settings.h"

static enum status
door_check(const struct settings *settings, bool wanted, struct err *err)
{
	const struct mongo_settings *s = settings_of(settings, &mongo_setting_group);
	char host[ADDRESS_HOST_BYTES];
	uint16_t port;

	/* Clients are told this one, so it may be a name. */
	if (s->told_host && address_parse(s->told_host, host, &port, err) != STATUS_OK)
		return err_set(err, STATUS_INVALID, "[mongo] host: \"%s\" is not HOST:PORT",
			       s->told_host);
	if (!wanted)
		return STATUS_OK;
	/* The server would tell so only when a pipeline needs it. */
	if (access(s->spill_directory, R_OK | W_OK | X_OK) != 0)
		return err_set(err, STATUS_INVALID, "spill_directory of [mongo], \"%s\": %s",
			       s->spill_directory, strerrordesc_np(errno));
	scram_admins_want();
	return STATUS_OK;
}

static enum status
door_open(const struct door_ground *ground, const struct door_place *place, void **ret,
	  struct err *err)
{
	const struct mongo_config config = {
		.store = ground->store,
		.live = ground->live,
		.news = ground->news,
		.settings = settings_of(ground->settings, &mongo_setting_group),
		.people = *ground->people,
		.js = ground->js,
		.test_commands = ground->flag,
	};

	(void)place;
	*ret = mongo_new(&config);
	return *ret ? STATUS_OK : err_set(err, STATUS_NOMEM, "out of memory");
}

static struct net_stream_options *
door_stream_options(void *mongo)
{
	return mongo_stream_options(mongo);
}

static void
door_listens(void *mongo, const struct door_place *place)
{
	mongo_set_address(mongo, place->host, place->port, place->tls);
}

static void
door_chores_add(void *mongo, struct chores *chores)
{
	mongo_chores_add(mongo, chores);
}

static void
door_stop(void *mongo)
{
	mongo_stop(mongo);
}

static void
door_free(void *mongo)
{
	mongo_free(mongo);
}

const struct door_type mongo_door_type = {
	.name = "mongo",
	.clients = "MongoDB",
	.settings = &mongo_setting_group,
	.flag = "mongo-test-commands",
	.flag_help = "Let clients of MongoDB have commands fail (configureFailPoint). For tests "
		     "only",
	.register_records = session_register,
	.check = door_check,
	.open = door_open,
	.stream_options = door_stream_options,
	.listens = door_listens,
	.chores_add = door_chores_add,
	.stop = door_stop,
	.free = door_free,
};
