#include "cli/mongo_door.h"

#include "cli/mongo_people.h"
#include "door/mongo/mongo.h"
#include "door/mongo/settings.h"
#include "http/server.h"

enum status
mongo_door_listen(struct mongo_door *d, struct kv_store *store, const struct settings *settings,
		  struct settings_live *live, struct server *server, struct err *err)
{
	struct mongo_config config = { .store = store,
				       .live = live,
				       .settings = settings_of(settings, &mongo_setting_group),
				       .test_commands = d->test_commands };

	if (!door_is_wanted(&d->door))
		return STATUS_OK;
	TRY(user_place_lent(store, live, &d->people, err));
	config.people = mongo_people_of(d->people);
	d->mongo = mongo_new(&config);
	if (!d->mongo)
		return err_set(err, STATUS_NOMEM, "out of memory");
	TRY(door_listen(&d->door, server_host(server), mongo_stream_options(d->mongo), "mongo",
			"mongos", err));
	mongo_set_address(d->mongo, door_host(&d->door), door_port(&d->door));
	return STATUS_OK;
}

void
mongo_door_fini(struct mongo_door *d)
{
	mongo_free(d->mongo);
	d->mongo = NULL;
	if (d->people)
		d->people->free(d->people);
	d->people = NULL;
}
