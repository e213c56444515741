/*
 * Limits by person and by address: requests and bytes a second, databases that are created in an
 * hour, requests at a time. None holds unless it is set ([limits]), and none holds for
 * administrators as persons.
 *
 * What counts is what a process has seen: with several at one store each has its own limits. A
 * limit of so many a second admits as many at once to who was quiet, and then one after the other.
 * Bytes are counted when a request ends; who has moved too many waits before the next one.
 *
 * Memory is bounded: of LIMITS_ENTRIES persons and addresses the ones that have been quiet longest
 * are forgotten first. Nothing is allocated until a limit is set.
 *
 * Threading: from any thread. A claim belongs to its request.
 */
#ifndef FROND_ACCESS_LIMITS_H
#define FROND_ACCESS_LIMITS_H

#include "access/settings.h"
#include "base/status.h"
#include "base/str.h"

enum {
	LIMITS_ENTRIES = 32768,
};

struct limits;

struct limits *limits_new(void); /* NULL when out of memory */
void limits_free(struct limits *l);

/* What a request has been admitted as. Zero: as nobody. */
struct limits_claim {
	struct limits *limits;
	uint64_t address; /* the keys of its entries; 0: none */
	uint64_t person;
	bool open;        /* it is counted among the person's requests under way */
	uint64_t retry_s; /* after STATUS_TOO_MANY: when to come again */
};

/*
 * A request comes from this peer ("127.0.0.1:40312"); is this person's. STATUS_TOO_MANY, with the
 * limit's name in `err`. The moment of a refused request does not count.
 */
MUST_USE enum status limits_enter_address(struct limits_claim *claim, struct limits *l,
					  const struct access_settings *s, struct str peer,
					  struct err *err);
MUST_USE enum status limits_enter_person(struct limits_claim *claim, struct limits *l,
					 const struct access_settings *s, struct str name,
					 struct err *err);

/* The request is going to create a database. */
MUST_USE enum status limits_take_database(struct limits_claim *claim,
					  const struct access_settings *s, struct err *err);

/* The request is over. */
void limits_leave(struct limits_claim *claim, const struct access_settings *s, uint64_t bytes);

#endif
