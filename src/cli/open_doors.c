#include "cli/open_doors.h"

#include "cli/door_people.h"

static enum status
open_door(struct open_doors *o, size_t i, struct listening *l, const struct door_ground *ground,
	  struct err *err)
{
	const struct door_type *type = cli_doors[i];
	struct door *door = &l->doors[i];
	struct door_place place = { door_host(door), door_port(door), door->tls_wanted };

	if (type->loops)
		door->loops = type->loops(ground);
	TRY(type->open(ground, &place, &o->doors[i], err));
	TRY(door_listen(door, type, ground->host, type->stream_options(o->doors[i]),
			l->certificates.tls, err));
	place.port = door_port(door);
	if (type->listens)
		type->listens(o->doors[i], &place);
	return STATUS_OK;
}

enum status
open_doors_listen(struct open_doors *o, struct listening *l, const struct door_ground *ground,
		  const bool flags[CLI_DOORS], struct err *err)
{
	struct door_ground own = *ground;

	TRY(user_place_lent(ground->store, ground->live, &o->place, err));
	o->people = door_people_of(o->place);
	own.people = &o->people;
	for (size_t i = 0; i < cli_doors_count; i++) {
		own.flag = flags[i];
		if (door_is_wanted(&l->doors[i]))
			TRY(open_door(o, i, l, &own, err));
	}
	return STATUS_OK;
}

void
open_doors_chores_add(const struct open_doors *o, struct chores *chores)
{
	for (size_t i = 0; i < cli_doors_count; i++)
		if (o->doors[i] && cli_doors[i]->chores_add)
			cli_doors[i]->chores_add(o->doors[i], chores);
}

void
open_doors_stop(const struct open_doors *o)
{
	for (size_t i = 0; i < cli_doors_count; i++)
		if (o->doors[i] && cli_doors[i]->stop)
			cli_doors[i]->stop(o->doors[i]);
}

void
open_doors_fini(struct open_doors *o)
{
	for (size_t i = 0; i < cli_doors_count; i++) {
		cli_doors[i]->free(o->doors[i]);
		o->doors[i] = NULL;
	}
	if (o->place)
		o->place->free(o->place);
	o->place = NULL;
}
