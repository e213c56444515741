/*
 * Limits by person and by address: requests and bytes a second, databases that are created in an
 * hour, requests at a time. A limit holds only if it is set in [limits]. Limits by person do not
 * hold for administrators.
 *
 * One object counts for all doors of a process: what somebody asks of one door is missing at the
 * others. Doors reach it by serve/ops.h only. Each process counts for itself, so several processes
 * at one store admit more together. A limit of n a second admits n requests at once to a client
 * that was idle, and then one every 1/n second. Bytes are counted when a request ends; a client
 * that moved too many waits before its next request.
 *
 * Memory is bounded: LIMITS_ENTRIES persons and addresses are kept, and those that were idle
 * longest are forgotten first. Nothing is allocated until a limit is set.
 *
 * Threading: from any thread. A claim belongs to its request.
 */
#ifndef FROND_ACCESS_LIMITS_H
#define FROND_ACCESS_LIMITS_H

#include "base/status.h"
#include "base/str.h"
#include "catalog/space.h"

enum {
	LIMITS_ENTRIES = 32768,
};

struct access_settings;
struct limits;
struct settings_live;

/*
 * `live` has the settings that the limits follow, and outlives them; NULL: limits_set() gives them.
 * NULL when out of memory.
 */
struct limits *limits_new(struct settings_live *live);
void limits_free(struct limits *l);

/* Makes these the limits that hold, for an object without `live`. */
void limits_set(struct limits *l, const struct access_settings *settings);

/* The entries that count a request. All zero: no entry does. */
struct limits_claim {
	struct limits *limits;
	uint64_t address; /* the keys of its two entries; 0: it has none */
	uint64_t person;
	bool open;         /* the request is counted in the person's `open` */
	uint64_t retry_s;  /* after STATUS_TOO_MANY: the client should wait so many seconds */
	uint64_t database; /* that was counted last: a hash of its name */
};

/* False: there is no limit, so nothing has to be entered. */
bool limits_any(struct limits *l);

/*
 * Counts a request from this peer ("127.0.0.1:40312"), or of this person. Returns STATUS_TOO_MANY
 * with the limit's name in `err` if the request must be refused, or STATUS_NOMEM, explained; a
 * refused request is not counted.
 * Several requests of one connection may share a claim. They count as one in what a person does at
 * a time.
 */
MUST_USE enum status limits_enter_address(struct limits_claim *claim, struct limits *l,
					  struct str peer, struct err *err);
MUST_USE enum status limits_enter_person(struct limits_claim *claim, struct limits *l,
					 struct str name, struct err *err);

/*
 * Counts a database that the request is about to create. STATUS_TOO_MANY as above. The same one
 * asked for again is counted once: a transaction that is run again creates it again.
 */
MUST_USE enum status limits_take_database(struct limits_claim *claim, enum catalog_space space,
					  struct str name, struct err *err);

/*
 * The running fiber works under this claim from now on; NULL: for no client. Returns the claim
 * before. limits_take_database() is asked for each database that catalog_create() makes meanwhile,
 * so the limit holds for whatever a door does. Nothing is counted on a plain thread.
 */
struct limits_claim *limits_work_under(struct limits_claim *claim);

/*
 * Counts bytes that have moved but belong to no request, such as a request that is too long to be
 * read: for the peer and for the person (empty: nobody). Where the claim has a request of the peer
 * or of the person, limits_leave() counts them, and this does not.
 */
void limits_count_bytes(struct limits *l, const struct limits_claim *claim, struct str peer,
			struct str person, uint64_t bytes);

/* Ends the claim of a request that moved `bytes` in both directions together. */
void limits_leave(struct limits_claim *claim, uint64_t bytes);

#endif
