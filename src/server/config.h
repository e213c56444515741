/*
 * Settings: defaults, then a file, then the command line, each winning over what came before.
 *
 * The file has CouchDB's form and, where CouchDB has a setting, its name: sections in brackets,
 * `name = value` lines, comments after ';' or '#'. docs/OPERATING.md lists every setting. An
 * unknown section or name and a value that makes no sense are errors that name the file, the line
 * and the key: a typing mistake must not become a default.
 */
#ifndef FROND_SERVER_CONFIG_H
#define FROND_SERVER_CONFIG_H

#include <stdio.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/status.h"
#include "base/str.h"
#include "server/auth.h"
#include "server/server.h"

enum {
	CONFIG_LINE_BYTES = 190,      /* a line of the file, without its end */
	CONFIG_PORT = 5984,           /* CouchDB's */
	CONFIG_GZIP_LEVEL = 8,        /* likewise */
	CONFIG_ANSWER_GZIP_LEVEL = 1, /* of answers: the fastest */
};

#define CONFIG_STORE "embedded:./data"
#define CONFIG_HOST  "127.0.0.1"

struct config_admin {
	struct str name;
	struct str password; /* plain, or as auth_is_hashed() has it */
	bool fixed;          /* by the command line or the environment: not to be changed live */
};

/* Section [cors], but for `enabled`, which is CouchDB's [chttpd] enable_cors. NULL: not set. */
struct config_cors {
	bool enabled;
	bool credentials;
	const char *origins;
	const char *methods;
	const char *headers;
	const char *exposed_headers;
	uint64_t max_age_s; /* 0: the door's default */
};

/* Section [replicator]. NULL: not set. */
struct config_replicator {
	bool enabled;
	unsigned max_jobs;
	unsigned max_churn;
	unsigned max_history;
	uint64_t interval_ms;
	uint64_t backoff_ms;
	unsigned health_s;
	unsigned worker_processes;
	unsigned worker_batch_size;
	unsigned http_connections;
	uint64_t connection_timeout_ms;
	unsigned retries_per_request;
	bool use_checkpoints;
	bool use_bulk_get;
	uint64_t checkpoint_interval_ms;
	const char *endpoint_protocols; /* of "http" and "https", with a comma between */
	bool verify_certificates;
	const char *trusted_file;
	const char *cert_file;
	const char *key_file;
	const char *key_password;
};

/* Strings live in `arena` and end in NUL. */
struct config {
	struct arena *arena;
	const char *store; /* a URL for kv_open() */
	const char *host;  /* bind_address: an IP address, an IPv6 one without brackets */
	uint16_t port;
	struct config_admin admins[AUTH_ADMINS_LIMIT];
	size_t admins_count;
	struct str secret; /* of cookies; empty: a new one with each start */
	enum log_level log_level;
	const char *backup_dir;      /* of backups that the server makes; NULL: it makes none */
	const char *utils_dir;       /* of the files of /_utils/; NULL: the installed ones */
	uint64_t cache_bytes;        /* 0: the engine's default */
	const char *scheme;          /* of new databases: "packed", "exploded"; NULL: the default */
	size_t doc_bytes;            /* 0: the door's defaults, as below */
	size_t body_bytes;           /* a request's */
	uint64_t changes_timeout_ms; /* a feed's wait */
	uint64_t att_bytes;          /* of an attachment; 0: no limit */
	unsigned gzip_level;         /* of attachments; 0: they are not compressed */
	const char *gzip_types;      /* which are, separated by commas; NULL: the door's default */
	unsigned answer_gzip_level;  /* of answers; 0: they are not compressed */
	struct config_cors cors;
	struct config_replicator replicator;
	struct server_config server; /* limits and timeouts; the rest is the caller's */
};

/* The defaults. STATUS_NOMEM. */
MUST_USE enum status config_init(struct config *c);
void config_fini(struct config *c);

/* STATUS_NOT_FOUND, STATUS_IO; STATUS_INVALID; STATUS_NOMEM. `path` is only borrowed. */
MUST_USE enum status config_read_file(struct config *c, const char *path, struct err *err);

/* The same from an open file, called `name` in errors. */
MUST_USE enum status config_read(struct config *c, FILE *file, const char *name, struct err *err);

/* Copies the URL of the store. STATUS_NOMEM. */
MUST_USE enum status config_set_store(struct config *c, const char *url, struct err *err);

/* "127.0.0.1:5984", "[::1]:0", "localhost:80". STATUS_INVALID. */
MUST_USE enum status config_set_listen(struct config *c, const char *host_port, struct err *err);

/* Adds one, or replaces the password of one that is there. STATUS_LIMIT, STATUS_NOMEM. */
MUST_USE enum status config_set_admin(struct config *c, struct str name, struct str password,
				      bool fixed, struct err *err);

/* Replaces plain passwords by their hashes. Slow. STATUS_INVALID, STATUS_NOMEM. */
MUST_USE enum status config_hash_passwords(struct config *c, struct err *err);

/* Credentials as the settings have them; the caller frees them. STATUS_INVALID, STATUS_NOMEM. */
MUST_USE enum status config_make_auth(const struct config *c, struct auth **ret, struct err *err);

/* A copy to be changed; what is not changed still lives in `from`'s arena. STATUS_NOMEM. */
MUST_USE enum status config_copy(const struct config *from, struct config *ret);

/* CouchDB moved settings from one section to another: what the section is called now. */
struct str config_section(struct str section);

/*
 * Changes what can change while a server runs: [admins], and what docs/OPERATING.md calls live.
 * `text` ptr NULL: back to the default, or no such administrator. STATUS_NOT_FOUND: no setting is
 * called that. STATUS_FORBIDDEN: it is fixed when a server starts. STATUS_INVALID, STATUS_LIMIT,
 * STATUS_NOMEM.
 */
MUST_USE enum status config_set_live(struct config *c, struct str section, struct str name,
				     struct str text, struct err *err);

/* Called with one setting; `text` as a file would have it, for the time of the call. */
typedef enum status config_visit(void *arg, struct str section, struct str name, struct str text);

/* Visits what is set, administrators last, until a visit fails; returns that failure. */
MUST_USE enum status config_each(const struct config *c, config_visit *visit, void *arg);

/* True if only this machine can reach the address that is bound. */
bool config_is_loopback(const struct config *c);

/* "HOST:PORT" for server_listen(), IPv6 in brackets. Cut if `n` is too small. */
void config_listen_text(const struct config *c, char *ret, size_t n);

enum {
	CONFIG_LISTEN_TEXT_BYTES = 320,
};

#endif
