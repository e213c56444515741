/* The settings of MongoDB's door (base/setting.h): the section [mongo]. */
#ifndef FROND_DOOR_MONGO_TXN_SETTINGS_H
#define FROND_DOOR_MONGO_TXN_SETTINGS_H

#include "door/door.h"

enum {
	MONGO_PORT = 27017,
	MONGO_TLS_PORT = 27018,
};

/* clang-format off */
#define MONGO_SETTINGS(S, NUMBER, FLAG, TEXT)                                                      \
	DOOR_SETTINGS(S, NUMBER, FLAG, TEXT, "mongo", "MongoDB", MONGO_PORT, MONGO_TLS_PORT)       \
	TEXT(S, replica_set, "mongo", "replica_set", 1, NULL, "frond", SETTING_AT_START,           \
	     "The name of the replica set whose only member clients take this server for, so "     \
	     "that drivers have transactions and change streams, and retry writes.")               \
	FLAG(S, standalone, "mongo", "standalone", false, SETTING_AT_START,                        \
	     "Whether clients take this server for a standalone one. Without `host` they do so "   \
	     "anyway where the door listens at all addresses, or by TLS.")                         \
	NUMBER(S, expire_seconds, "mongo", "expire_seconds", "s", 1, 86400, 60, SETTING_AT_START,  \
	       "How often documents are looked for whose time is over by an index with "           \
	       "expireAfterSeconds, and removed.")                                                 \
	TEXT(S, spill_directory, "mongo", "spill_directory", 1, NULL, "/tmp", SETTING_AT_START,    \
	     "The directory where stages of pipelines put what does not fit their memory, in "     \
	     "files without names that end with the cursor or the process. It should lie on a "    \
	     "disk, not in memory.")                                                               \
	TEXT(S, scheme, "mongo", "scheme", 1, "packed,exploded", "packed", SETTING_AT_START,       \
	     "How the documents of a new collection are kept, unless its `create` says so: "       \
	     "packed, each in one value; or exploded, a pair for each value in them, so that a "   \
	     "change of one field costs the same however large the document is.")                  \
	NUMBER(S, transaction_seconds, "mongo", "transaction_seconds", "s", 1, 60, 60,             \
	       SETTING_AT_START,                                                                   \
	       "How long a transaction of several commands may last; on a cluster 5 seconds at "   \
	       "most.")                                                                            \
	TEXT(S, told_host, "mongo", "host", 1, NULL, NULL, SETTING_AT_START,                       \
	     "HOST:PORT, at which clients reach this server, by a name that its certificate has "  \
	     "if they use TLS. They are told it as the address of the set's member. By default "   \
	     "it is where the door listens.")                                                      \
	NUMBER(S, slow_ms, "mongo", "slow_ms", "ms", 0, 86400000, 5000, SETTING_AT_START,          \
	       "Commands that take longer are logged, until the command `profile` sets another "   \
	       "time.")                                                                            \
	FLAG(S, javascript, "mongo", "javascript", true, SETTING_AT_START,                         \
	     "Whether clients may send functions in JavaScript, by $where, $function and "         \
	     "$accumulator, which workers run as those of design documents ([js]).")
/* clang-format on */

SETTING_STRUCT(mongo_settings, MONGO_SETTINGS);
DOOR_SETTINGS_ARE_FIRST(mongo_settings);

extern const struct setting_group mongo_setting_group;

#endif
