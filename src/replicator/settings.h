/*
 * What the replicator declares of settings (base/setting.h): CouchDB's section [replicator].
 */
#ifndef FROND_REPLICATOR_SETTINGS_H
#define FROND_REPLICATOR_SETTINGS_H

#include "base/setting.h"
#include "replicator/replicator.h"

/* clang-format off */
#define REPLICATOR_SETTINGS(S, NUMBER, FLAG, TEXT)                                                 \
	FLAG(S, enabled, "replicator", "enabled", true, SETTING_LISTED,                            \
	     "Whether this server runs replications.")                                             \
	NUMBER(S, max_jobs, "replicator", "max_jobs", "", 1, 10000, 500, SETTING_LISTED,           \
	       "Replications that run at a time. Where more wait, they take turns.")               \
	NUMBER(S, interval_ms, "replicator", "interval", "ms", 100, 86400000, 60000,               \
	       SETTING_LISTED,                                                                     \
	       "Time between two looks for replications that should make room for others.")        \
	NUMBER(S, max_churn, "replicator", "max_churn", "", 1, 10000, 20, SETTING_LISTED,          \
	       "Replications that make room at a time.")                                           \
	NUMBER(S, max_history, "replicator", "max_history", "", 1, 100, 20, SETTING_LISTED,        \
	       "Events that _scheduler/jobs tells of each replication.")                           \
	NUMBER(S, backoff_ms, "replicator", "backoff", "ms", 1, 86400000, 30000, SETTING_LISTED,   \
	       "How long a replication rests after it has crashed. The time doubles with each "    \
	       "crash in a row, up to 1,024 times.")                                               \
	NUMBER(S, health_s, "replicator", "health_threshold", "s", 1, 86400, 120, SETTING_LISTED,  \
	       "A replication that has run for so long has recovered: its next crash is not one "  \
	       "in a row.")                                                                        \
	NUMBER(S, worker_processes, "replicator", "worker_processes", "", 1, 32, 4,                \
	       SETTING_LISTED, "Batches of a replication that are copied side by side.")           \
	NUMBER(S, worker_batch_size, "replicator", "worker_batch_size", "", 1, 10000, 500,         \
	       SETTING_LISTED, "Changes in a batch.")                                              \
	NUMBER(S, http_connections, "replicator", "http_connections", "", 1, 1000, 20,             \
	       SETTING_LISTED, "Connections of a replication.")                                    \
	NUMBER(S, connection_timeout_ms, "replicator", "connection_timeout", "ms", 100, 86400000,  \
	       30000, SETTING_LISTED,                                                              \
	       "How long a connection may take to be made, and may be silent both ways.")          \
	NUMBER(S, minimum_rate, "replicator", "minimum_rate", "bytes/s", 0, 1000000000, 100,       \
	       SETTING_LISTED,                                                                     \
	       "The slowest that an answer may come and a body may be taken, on the average of "   \
	       "connection_timeout; a slower request is tried again, and then the replication "    \
	       "crashes. 0: any.")                                                                 \
	NUMBER(S, job_bytes, "replicator", "job_memory", "bytes", 16777216, UINT64_C(1) << 36,     \
	       UINT64_C(1) << 28, SETTING_LISTED,                                                  \
	       "The most memory that one replication may take; one that needs more crashes.")      \
	NUMBER(S, retries_per_request, "replicator", "retries_per_request", "", 0, 100, 5,         \
	       SETTING_LISTED, "Further tries of a request before the replication crashes.")       \
	FLAG(S, use_checkpoints, "replicator", "use_checkpoints", true, SETTING_LISTED,            \
	     "Whether a replication remembers at both ends how far it has come.")                  \
	FLAG(S, use_bulk_get, "replicator", "use_bulk_get", true, SETTING_LISTED,                  \
	     "Whether documents are fetched many at a time where the source can.")                 \
	NUMBER(S, checkpoint_interval_ms, "replicator", "checkpoint_interval", "ms", 100,          \
	       86400000, 30000, SETTING_LISTED, "Time between two checkpoints.")                   \
	TEXT(S, endpoint_protocols, "replicator", "valid_endpoint_protocols", 1, NULL,             \
	     "http,https", SETTING_LISTED,                                                         \
	     "Protocols that sources and targets may have, separated by commas.")                  \
	FLAG(S, verify_certificates, "replicator", "verify_ssl_certificates", false,               \
	     SETTING_LISTED,                                                                       \
	     "Whether certificates of other servers are checked. As in CouchDB it is off: set "    \
	     "it, unless every other server is within your own walls.")                            \
	TEXT(S, trusted_file, "replicator", "ssl_trusted_certificates_file", 1, NULL, NULL,        \
	     SETTING_AT_START, "Certificates to trust instead of the system's.")                   \
	TEXT(S, cert_file, "replicator", "cert_file", 1, NULL, NULL, SETTING_AT_START,             \
	     "The certificate that this server shows to others.")                                  \
	TEXT(S, key_file, "replicator", "key_file", 1, NULL, NULL, SETTING_AT_START,               \
	     "The key of that certificate.")                                                       \
	TEXT(S, key_password, "replicator", "password", 1, NULL, NULL, SETTING_SECRET,             \
	     "The password of that key.")
/* clang-format on */

SETTING_STRUCT(replicator_settings, REPLICATOR_SETTINGS);

extern const struct setting_group replicator_setting_group;

/* Sets what the settings say of `ret`; its texts are those of the settings. */
void replicator_config_set(struct replicator_config *ret,
			   const struct replicator_settings *settings);

#endif
