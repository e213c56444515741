/*
 * What a request finds at the door: the door itself, and its loop's own things.
 *
 * struct couch is shared by all loops, and does not change but for its atomics. struct couch_loop
 * belongs to one loop's thread.
 */
#ifndef FROND_DOOR_COUCH_WIRE_STATE_H
#define FROND_DOOR_COUCH_WIRE_STATE_H

#include <stdatomic.h>

#include "base/rand.h"
#include "doc/doc.h"
#include "door/couch/wire/config.h"
#include "door/couch/wire/kept.h"
#include "model/revisioned/revisioned.h"

struct couch {
	struct couch_config config;      /* as given; what can change is in the settings */
	struct catalog_tallies *tallies; /* the tallies of databases, which its loops share */
	char uuid[32];                   /* of this server, in hexadecimal digits */
	atomic_bool maintained;          /* a backup or a compaction is under way */
};

struct couch_feed_wait;

/* The feeds of one loop that wait (list/feed_wait.c). The first looks at rights for all of them. */
struct couch_feed_list {
	struct couch_feed_wait *first;
	struct couch_feed_wait *last;
	uint64_t told; /* the people_news_count() that all have been woken for */
};

/*
 * What belongs to one loop. The fibers of its thread share it, so no fiber relies on it across a
 * wait.
 */
struct couch_loop {
	struct catalog_cache *cache;
	struct settings_held *held;         /* the newest settings that the loop has heard of */
	struct rand_seq noise;              /* for ids of requests; not good enough for secrets */
	struct doc_scratch *scratch;        /* for documents that are taken apart */
	struct couch_kept_table validators; /* of databases (doc/validators.h) */
	struct couch_kept_table indexes;    /* likewise (query/indexes.h) */
	struct couch_view_cache *views;     /* that are up to date (view/known.h) */
	struct couch_feed_list feeds;
};

#endif
