#include "cli/mongo_door.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/mongo_people.h"
#include "door/mongo/mongo.h"
#include "door/mongo/settings.h"
#include "http/server.h"

/* A server that cannot put anything there would tell so only when a pipeline needs it. */
static enum status
check_spill_directory(const char *directory, struct err *err)
{
	if (access(directory, R_OK | W_OK | X_OK) == 0)
		return STATUS_OK;
	return err_set(err, STATUS_INVALID, "spill_directory of [mongo], \"%s\": %s", directory,
		       strerrordesc_np(errno));
}

enum status
mongo_door_listen(struct mongo_door *d, struct kv_store *store, const struct settings *settings,
		  struct settings_live *live, struct js *js, struct server *server, struct err *err)
{
	struct mongo_config config = { .store = store,
				       .live = live,
				       .settings = settings_of(settings, &mongo_setting_group),
				       .test_commands = d->test_commands,
				       .js = js };

	if (!door_is_wanted(&d->door))
		return STATUS_OK;
	TRY(check_spill_directory(config.settings->spill_directory, err));
	TRY(user_place_lent(store, live, &d->people, err));
	config.people = mongo_people_of(d->people);
	d->mongo = mongo_new(&config);
	if (!d->mongo)
		return err_set(err, STATUS_NOMEM, "out of memory");
	TRY(door_listen(&d->door, server_host(server), mongo_stream_options(d->mongo), "mongo",
			"mongos", err));
	mongo_set_address(d->mongo, door_host(&d->door), door_port(&d->door), d->door.tls_wanted);
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
