/*
 * A request of CouchDB's API: its path, parameters, headers and body.
 *
 * A request is one struct couch_req for its whole life, on one fiber. Handlers return STATUS_OK
 * once they have answered, or a status that couch.c turns into CouchDB's error; the explanation
 * waits in `fail`. Nothing is sent from inside a transaction's body: a body computes into the
 * arena, starting over at its mark, and the answer follows the commit. What these functions return
 * lives in the request's arena or in the exchange.
 */
#ifndef FROND_DOOR_COUCH_WIRE_REQUEST_H
#define FROND_DOOR_COUCH_WIRE_REQUEST_H

#include "base/arena.h"
#include "base/buf.h"
#include "doc/json_value.h"
#include "door/couch/wire/endpoint.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/state.h"
#include "http/escape.h"
#include "http/http.h"
#include "serve/ops.h"

enum {
	COUCH_PATH_PARTS = 64,              /* segments of a path */
	COUCH_REQUEST_ID_BYTES = 64,        /* of an X-Couch-Request-ID that a client gives */
	COUCH_SMALL_BODY_BYTES = 64 * 1024, /* of bodies that are not documents: _session, limits */
};

enum couch_method {
	COUCH_GET, /* and HEAD: see couch_req.head */
	COUCH_PUT,
	COUCH_POST,
	COUCH_DELETE,
	COUCH_COPY,
	COUCH_PATCH,
	COUCH_METHOD_COUNT,
	COUCH_OTHER_METHOD = COUCH_METHOD_COUNT,
};

/* COUCH_OTHER_METHOD for a name that is none of them. */
enum couch_method couch_method_of(struct str name);
/* Empty for COUCH_OTHER_METHOD. */
const char *couch_method_name(enum couch_method method);

struct couch_kept;
struct couch_validators;
struct kv_future;
struct couch_vetting;

/* What validators say of the edits of one write (doc/vet.h). */
struct couch_vettings {
	struct couch_vetting *seen; /* what they have seen; NULL: nothing */
	/*
	 * What an attempt wants them to see. It counts only if the attempt ends with
	 * STATUS_UNVETTED; where it ends otherwise, its arena is given to the next attempt.
	 */
	struct couch_vetting *asked;
};

/* A database's security object that has been asked for (admin/access.h). */
struct couch_ahead {
	struct kv_tx *tx; /* in which; NULL: none has */
	uint64_t number;  /* of the database */
	struct kv_future *security;
};

/*
 * The security object of the request's database as it was read before a write, in the request's
 * arena. The transaction that writes compares it (admin/tx.h).
 */
struct couch_judged {
	bool known;
	uint64_t number; /* of the database */
	struct str security;
};

struct couch_req {
	struct http_exchange *x;
	struct couch *couch;
	struct couch_loop *loop;
	struct settings_held *held;            /* from the first byte of the request to its last */
	const struct couch_settings *settings; /* those of the door, in `held` */
	struct arena *arena;
	enum couch_method method;
	bool head;
	enum couch_endpoint endpoint; /* as route.c has found it */
	unsigned feed;                /* enum couch_meter_feed: which kind of feed it is, or 0 */
	struct ops_op op;             /* as others see it (wire/meter.h) */
	struct str *parts;            /* of the path, unescaped, without empty ones */
	size_t parts_count;
	struct str partition; /* of a path /{db}/_partition/{p}/…; ptr NULL: it has none */
	struct http_param *params;
	size_t params_count;
	struct auth_user user;
	uint64_t rights_seen;  /* people_news_count() at the last check of the user's rights */
	struct catalog_db *db; /* as the latest transaction saw it; owned */
	struct couch_validators *validators; /* likewise, of a transaction that writes; owned */
	struct couch_kept *indexes;          /* the indexes in use by the plan of a query; owned */
	struct couch_vettings vettings;      /* of a write of one document */
	/* Set by an attempt that ends with STATUS_UNVETTED: called before the next one. */
	enum status (*vet)(struct couch_req *r);
	/* It has asked for the settings. Whoever reads or writes first takes it over. */
	struct kv_tx *begun;
	uint64_t begun_ns;        /* when it began, by clock_mono_ns() */
	struct couch_ahead ahead; /* in `begun`, or in the transaction that has taken it over */
	struct couch_judged judged;
	enum status admitted; /* whether its address may ask now; why not is in `fail` */
	struct couch_fail fail;
	bool audited;       /* an audit line has told its outcome (access/audit.h) */
	uint64_t shortages; /* mem_shortages() when the request began */
};

typedef enum status couch_handler(struct couch_req *r);

/* The trace that the client has told of (`traceparent`), for the log; empty: none. */
struct str couch_trace_id(const struct couch_req *r);

/* Who the request is from, for audit lines. */
struct audit_by couch_audit_by(const struct couch_req *r);
/* Writes the audit line of a change that the request has made (access/audit.h). */
void couch_audit_changed(struct couch_req *r, const char *event, const char *key, struct str value);

/* The client, as access/ wants to know it before it hashes a password for it. */
struct auth_client couch_auth_client(const struct couch_req *r);

/* Writes the user's roles as a JSON array. */
void couch_roles_write(const struct auth_user *user, struct buf *out);
bool couch_has_role(const struct auth_user *user, struct str role);

/* Ends the transaction that the request has begun with, if nobody has taken it. */
void couch_drop_begun(struct couch_req *r);

/*
 * Splits path and query. In both, '+' means a space and %2B means '+', as in CouchDB, unless the
 * settings say that in a path '+' is what it is.
 */
MUST_USE enum status couch_req_parse(struct couch_req *r);

/*
 * Finds the first parameter of that name, or the last one. Of a parameter that is given twice
 * CouchDB takes the first, where it asks for a parameter by its name, and the last, where it goes
 * through the whole query: what is asked of a document, of a list, of a feed.
 */
bool couch_param(const struct couch_req *r, const char *name, struct str *ret);
bool couch_param_last(const struct couch_req *r, const char *name, struct str *ret);
/* True if one of that name is exactly "true", as CouchDB reads the flags of documents. */
bool couch_param_true(const struct couch_req *r, const char *name);

/* True if a Content-Type names this type. Parameters such as a charset do not matter. */
bool couch_type_is(struct str header, struct str type);
/* Refuses a request with 415 unless its Content-Type is application/json. */
MUST_USE enum status couch_require_json(struct couch_req *r);

/*
 * Reads the whole body, inflated if it is gzipped; 413 if it has more than `max_bytes` bytes. An
 * empty body is STATUS_OK.
 */
MUST_USE enum status couch_read_body(struct couch_req *r, size_t max_bytes, struct str *ret);

/*
 * True if the Accept header allows a media type such as "multipart/mixed" by its name. With `wild`,
 * a wildcard or the lack of an Accept header also allows it.
 */
bool couch_accepts(const struct couch_req *r, const char *type, bool wild);

/* Reads the revision in If-Match. *ret_found tells whether there is one. */
MUST_USE enum status couch_if_match(struct couch_req *r, struct rev_id *ret, bool *ret_found);

/* Reads the body as a JSON object. Anything else is refused in CouchDB's words. */
MUST_USE enum status couch_read_object(struct couch_req *r, size_t max_bytes,
				       struct json_member **ret, size_t *ret_count);

/* The scheme that the settings choose for new databases. */
enum rev_scheme couch_scheme(const struct couch_req *r);

#endif
