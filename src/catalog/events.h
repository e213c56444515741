/*
 * Events of databases: created, deleted, updated. Creating or deleting a database writes an event
 * under its name in the same transaction, in place of the event before. Updates are not written:
 * the time of an update is the newest change in the database. A search for events therefore reads
 * one key of each database, while writing a document costs no further key and no conflict.
 *
 *     (ROOT, 5, name)         → format, kind of event, Incarnation, Versionstamp; CouchDB's names
 *     (ROOT, 5, space, name)  → the same in any other name space
 *     (ROOT, 5)               → the versionstamp of the newest of them: what feeds watch
 *
 * Threading: that of the transaction.
 */
#ifndef FROND_CATALOG_EVENTS_H
#define FROND_CATALOG_EVENTS_H

#include "base/arena.h"
#include "base/buf.h"
#include "catalog/kind.h"
#include "catalog/seq.h"
#include "kv/kv.h"

enum catalog_event_kind {
	CATALOG_EVENT_CREATED = 1, /* stored: never renumber */
	CATALOG_EVENT_DELETED = 2,
	CATALOG_EVENT_UPDATED = 3, /* never stored */
};

struct catalog_event {
	struct catalog_seq seq; /* in one order over all databases; UPDATED: the change's own */
	struct str name;
	enum catalog_event_kind kind;
};

/* ---- Searching ---- */

enum {
	CATALOG_EVENTS_PAGE = 1000,  /* databases that one transaction looks at */
	CATALOG_EVENTS_MOST = 50000, /* events that one search finds; fewer if names are long */
	CATALOG_EVENTS_WATCHED = 1000,
};

/* Selects events between two moments, both exclusive: the `most` oldest of them, or the newest. */
struct catalog_events_wanted {
	enum catalog_space space;
	struct catalog_seq after;
	struct catalog_seq before;
	bool newest_first;
	size_t most; /* CATALOG_EVENTS_MOST at most */
};

/* A database that can be watched. */
struct catalog_watched {
	uint64_t number;
	const struct catalog_kind *kind;
};

/*
 * A search through all databases of a name space. It reads pages, each in a transaction of its own,
 * so its memory does not grow with the number of databases. It finds the events up to the moment
 * when its first page was read; later ones are left to the next search. Usage: init; page, again
 * and again until `done`; sort; at; release. A page that has failed can be read again, in another
 * transaction.
 */
struct catalog_events {
	struct catalog_events_wanted wanted;
	bool done;
	bool left_out;    /* there are more events: search again behind the last one */
	size_t count;     /* once sorted */
	uint64_t version; /* the read version of the first page */
	size_t dbs_count; /* how many databases there are */
	/* Room for the first CATALOG_EVENTS_WATCHED databases; the caller's, or NULL. */
	struct catalog_watched *watched;

	/* Private. */
	struct arena *arena; /* scratch memory for one page */
	uint8_t incarnation; /* of the store, at `version` */
	bool begun;
	struct buf entries;
	struct buf names; /* of the entries */
	struct buf last_event;
	struct buf last_db;
	bool events_done;
	bool dbs_done;
	/* What earlier pages have found; a page that fails is undone to this. */
	size_t settled_entries;
	size_t settled_names;
};

/* `part` counts the memory, and may be NULL. */
void catalog_events_init(struct catalog_events *s, const struct catalog_events_wanted *wanted,
			 struct arena *arena, struct budget_part *part);
void catalog_events_release(struct catalog_events *s);
MUST_USE enum status catalog_events_page(struct kv_tx *tx, struct catalog_events *s,
					 struct err *err);

/* Sorts the events that were found, in the wanted order. */
void catalog_events_sort(struct catalog_events *s);

/* The name is valid until the search is released. */
struct catalog_event catalog_events_at(const struct catalog_events *s, size_t at);

/*
 * Begin watches: the first fires when any database is created or deleted, the second when the given
 * one is updated.
 */
MUST_USE enum status catalog_watch(struct kv_tx *tx, struct kv_future **ret);
/*
 * The same for one database by its name: completes when another one has the name, or none, or its
 * description has changed.
 */
MUST_USE enum status catalog_watch_name(struct kv_tx *tx, enum catalog_space space, struct str name,
					struct kv_future **ret);
MUST_USE enum status catalog_watch_db(struct kv_tx *tx, const struct catalog_watched *db,
				      struct kv_future **ret);

#endif
