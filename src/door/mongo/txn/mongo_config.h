/* Limits of MongoDB's door, what it tells of itself, and what the process gives it. */
#ifndef FROND_DOOR_MONGO_TXN_MONGO_CONFIG_H
#define FROND_DOOR_MONGO_TXN_MONGO_CONFIG_H

#include <stdbool.h>

#include "door/people.h"

struct js;
struct kv_store;
struct mongo_settings;
struct people_news;
struct settings_live;

enum {
	MONGO_OUTPUT_BYTES = 1024 * 1024,        /* of answers that a client has not read */
	MONGO_REPLY_BYTES = 48000000,            /* of one answer */
	MONGO_DOCUMENT_BYTES = 16 * 1024 * 1024, /* maxBsonObjectSize */
	MONGO_BATCH_WRITES = 100000,             /* maxWriteBatchSize */
	MONGO_AWAIT_MS = 60 * 1000,              /* that a hello waits at most */
	MONGO_SESSION_MINUTES = 30,              /* logicalSessionTimeoutMinutes */
	MONGO_HOST_BYTES = 300,                  /* of an address that clients are told */
	MONGO_WIRE_VERSION = 25,                 /* of 8.0 */
};

/* What clients take this server for: they choose by it what they send. */
#define MONGO_VERSION         "8.0.0"
#define MONGO_FEATURE_VERSION "8.0"

struct mongo_config {
	struct kv_store *store;
	struct settings_live *live; /* who may log in */
	struct people_news *news;   /* tells when they change; NULL: nothing does */
	const struct mongo_settings *settings;
	struct door_people people; /* whom commands read and change */
	struct js *js;             /* runs functions that clients send; may be NULL */
	bool test_commands;        /* clients may have commands fail: configureFailPoint */
};

#endif
