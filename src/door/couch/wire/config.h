/*
 * What the CouchDB door is given when it starts. What can change while it serves is in its settings
 * (wire/settings.h).
 *
 * A plain value. What it points to belongs to the caller and outlives the door.
 */
#ifndef FROND_DOOR_COUCH_WIRE_CONFIG_H
#define FROND_DOOR_COUCH_WIRE_CONFIG_H

#include "access/people.h"
#include "door/couch/wire/settings.h"
#include "kv/kv.h"
#include "replicator/replicator.h"

struct chores;
struct js;
struct people_news;
struct view_engine;

/* The database whose documents describe people. */
#define COUCH_USERS_DB "_users"

struct couch_config {
	struct kv_store *store;
	/* The settings that hold; couch_setting_group is among them, and people_live_ops derives
	 * the people. */
	struct settings_live *live;
	/* Tells when people or rights change (access/follow.h). NULL: nothing does. */
	struct people_news *news;
	struct replicator *replicator; /* NULL: there is none */
	struct js *js;                 /* runs functions of design documents. NULL: none */
	struct view_engine *views;     /* keeps views. NULL: there are none */
	struct chores *chores;         /* background work, shown by _active_tasks. NULL: none */
	const char *utils_dir;         /* the files of /_utils/. NULL: none */
};

#endif
