/*
 * A table of doors with one row: tests/net/echo.c as a whole door, with settings, options, a flag
 * and background work of its own. It stands in for cli/doors.c in the program of test_doors.py.
 */
#include "../net/echo.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "catalog/chores.h"
#include "cli/doors.h"
#include "settings/settings.h"

enum {
	ECHO_PORT = 7007,
	ECHO_TLS_PORT = 7008,
	ECHO_BYTES = 1024,
	ECHO_CHORE_MS = 10,
};

#define ECHO_SETTINGS(S, NUMBER, FLAG, TEXT)                                                       \
	DOOR_SETTINGS(S, NUMBER, FLAG, TEXT, "echo", "Echo", ECHO_PORT, ECHO_TLS_PORT)             \
	NUMBER(S, loops, "echo", "loops", "", 1, 8, 1, SETTING_AT_START, "How many loops serve it.")

SETTING_STRUCT(echo_settings, ECHO_SETTINGS);
DOOR_SETTINGS_ARE_FIRST(echo_settings);

extern const struct setting_group echo_setting_group;
SETTING_GROUP(echo_setting_group, echo_settings, ECHO_SETTINGS);

struct echo_door {
	struct net_stream_options options;
	bool flag;
	bool worked;
};

static enum status
echo_check(const struct settings *settings, bool wanted, struct err *err)
{
	const struct echo_settings *s = settings_of(settings, &echo_setting_group);

	if (!wanted || s->loops != 7)
		return STATUS_OK;
	return err_set(err, STATUS_INVALID, "[echo] loops: nobody wants 7");
}

static enum status
echo_open(const struct door_ground *ground, const struct door_place *place, void **ret,
	  struct err *err)
{
	static struct echo_door door;

	(void)err;
	door.options = (struct net_stream_options){ .serve = echo_serve,
						    .input_bytes = ECHO_BYTES,
						    .output_bytes = ECHO_BYTES,
						    .refusal = STR("busy\n") };
	log_event(LOG_LEVEL_INFO, "echo_open", "host=%s flag=%d people=%d js=%d", place->host,
		  ground->flag, ground->people != NULL, ground->js != NULL);
	*ret = &door;
	return STATUS_OK;
}

static struct net_stream_options *
echo_stream_options(void *arg)
{
	struct echo_door *door = arg;

	return &door->options;
}

static unsigned
echo_loops(const struct door_ground *ground)
{
	const struct echo_settings *s = settings_of(ground->settings, &echo_setting_group);

	return (unsigned)s->loops;
}

static void
echo_listens(void *door, const struct door_place *place)
{
	(void)door;
	log_event(LOG_LEVEL_INFO, "echo_listens", "port=%u tls=%d", (unsigned)place->port,
		  place->tls);
}

static enum status
echo_work(void *arg, struct chore_turn *turn, struct err *err)
{
	struct echo_door *door = arg;

	(void)turn;
	(void)err;
	if (!door->worked)
		log_event(LOG_LEVEL_INFO, "echo_worked", "times=1");
	door->worked = true;
	return STATUS_OK;
}

static void
echo_chores_add(void *door, struct chores *chores)
{
	chores_add(chores, &(struct chore){ .name = "echo",
					    .run = echo_work,
					    .arg = door,
					    .thread = CHORE_QUICK,
					    .pause_ms = ECHO_CHORE_MS });
}

static void
echo_stop(void *door)
{
	(void)door;
	log_event(LOG_LEVEL_INFO, "echo_stop", "times=1");
}

static void
echo_free(void *door)
{
	if (door)
		log_event(LOG_LEVEL_INFO, "echo_free", "times=1");
}

static const struct door_type echo_type = {
	.name = "echo",
	.clients = "Echo",
	.settings = &echo_setting_group,
	.flag = "echo-loudly",
	.flag_help = "An option of the door's own",
	.check = echo_check,
	.open = echo_open,
	.stream_options = echo_stream_options,
	.loops = echo_loops,
	.listens = echo_listens,
	.chores_add = echo_chores_add,
	.stop = echo_stop,
	.free = echo_free,
};

const struct door_type *const cli_doors[] = { &echo_type };
const size_t cli_doors_count = 1;
