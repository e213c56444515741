#include "cli/mongo_door.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/mongo_people.h"
#include "door/mongo/mongo.h"
#include "door/mongo/settings.h"
#include "settings/settings.h"

enum status
mongo_door_check(const struct settings *settings, struct err *err)
{
	const struct mongo_settings *s = settings_of(settings, &mongo_setting_group);

	if (access(s->spill_directory, R_OK | W_OK | X_OK) == 0)
		return STATUS_OK;
	return err_set(err, STATUS_INVALID, "spill_directory of [mongo], \"%s\": %s",
		       s->spill_directory, strerrordesc_np(errno));
}

enum status
mongo_door_listen(struct mongo_door *d, struct door *door, const struct door_ground *ground,
		  struct js *js, struct err *err)
{
	struct mongo_config config = {
		.store = ground->store,
		.live = ground->live,
		.news = ground->news,
		.settings = settings_of(ground->settings, &mongo_setting_group),
		.test_commands = d->test_commands,
		.js = js,
	};

	if (!door_is_wanted(door))
		return STATUS_OK;
	TRY(user_place_lent(ground->store, ground->live, &d->people, err));
	config.people = mongo_people_of(d->people);
	d->mongo = mongo_new(&config);
	if (!d->mongo)
		return err_set(err, STATUS_NOMEM, "out of memory");
	TRY(door_listen(door, ground, mongo_stream_options(d->mongo), "mongo", "mongos", err));
	mongo_set_address(d->mongo, door_host(door), door_port(door), door->tls_wanted);
	return STATUS_OK;
}

void
mongo_door_stop(struct mongo_door *d)
{
	mongo_stop(d->mongo);
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
