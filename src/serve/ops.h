/*
 * The registry of the operations that run in this process, for all doors. An operation is a request
 * of HTTP, a command of MongoDB's protocol, or the commands that a client of Redis's has sent
 * together.
 *
 * A door asks ops_admit() whether the limits by person and address allow the request
 * (access/limits.h), then calls ops_begin(), and ops_end() when the operation is done. Commands
 * that show running operations (currentOp) read the registry, and commands that end one (killOp)
 * signal it through the registry. The registry also has the histograms of how long operations took,
 * and one log of those that took long.
 *
 * The memory of an entry, struct ops_op, belongs to the door. It is in the registry only between
 * ops_begin() and ops_end(), so an idle connection costs nothing here.
 *
 * == Locks ==
 *
 * There is one list for each of METRIC_SHARDS sets of threads, with a lock of its own that is held
 * only while the list is read or changed. The locks of serve/clients.h are taken inside it, never
 * the other way around. The texts that an entry points to do not change between ops_begin() and
 * ops_end(), so other threads read them with the list's lock.
 *
 * Threading: as said at each function.
 */
#ifndef FROND_SERVE_OPS_H
#define FROND_SERVE_OPS_H

#include <pthread.h>

#include "access/audit.h"
#include "access/limits.h"
#include "base/log.h"
#include "base/log_rate.h"
#include "base/metric.h"
#include "base/str.h"
#include "loop/step.h"
#include "serve/recent.h"

enum {
	OPS_SLOW_LINES_PER_S = 10,   /* of a door; further ones are counted in a later line */
	OPS_SLOW_NOTED_PER_S = 1000, /* of a door; further ones are only counted */
	OPS_SLOW_KEPT = 128,         /* slow operations that a door keeps where no setting says */
	OPS_NAME_BYTES = 256,        /* of a name that a client chose, in a line of the log */
	OPS_LINE_BYTES = 4096,
};

struct clients_entry;
struct net_session;
struct ops_op;

/* What the registry knows of a door. OPS_DOOR() defines it. */
struct ops_door {
	const char *name; /* "http" */
	const struct metric *time;
	const struct metric *slow_count;
	const struct metric *slow_left_out;
	enum log_level level; /* of the lines about slow operations */
	/*
	 * Signals an operation that it should end, and does not wait until it has. Called on any
	 * thread, with the lock of the operation's list. Doors with a list of connections have
	 * clients_end_op_of() (serve/clients.h).
	 */
	void (*end)(struct ops_op *op);
	struct recent slow;    /* of struct ops_slow_entry */
	struct log_rate noted; /* what ops_count_slow() allows; `lines` of it */
	struct log_rate rate;
	/* Private to ops.c: the list of the doors that have kept a slow operation. */
	struct ops_door *next_slow;
	bool listed;
};

/* What of its client ends an operation (serve/wanted.h). */
enum ops_ends {
	OPS_ENDS,     /* when the client has left, or its time is over */
	OPS_LASTS,    /* it goes on for a client that has left, until a stop gives up on that */
	OPS_FINISHES, /* likewise, and whoever ends it, or its time, ends it no more */
};

struct ops_op {
	struct ops_door *door;
	struct str name;              /* "find", "GET" */
	struct str on;                /* the database, or a path */
	struct str on_more;           /* the collection; or empty */
	struct str body;              /* the request as it came; empty if it must not be shown */
	const char *peer;             /* of the client */
	struct clients_entry *client; /* NULL: the door keeps no list of its connections */
	/* Whose peer waits for it; NULL: its fiber is not asked for its sake. */
	struct net_session *session;
	uint64_t began_ns;
	uint64_t computed_before_ns; /* what its fiber had computed before it began */

	/* What the limits by person and address have counted; of its fiber. */
	struct limits_claim claim;
	uint64_t moved_bytes; /* of the requests that were asked for, and of their answers */
	bool asked;           /* ops_admit() was called since ops_leave() */
	bool refused;         /* a limit has refused a request since then */

	/* Whether it goes on (serve/wanted.h). Its fiber's; 0 unless it runs. */
	enum ops_ends ends;
	uint64_t until_ns;        /* when it has had its time; 0: it has as much as it wants */
	struct step_owner before; /* whom its fiber asked before */

	_Atomic bool killed; /* somebody has ended it while it runs: set with the list's lock */
	_Atomic uint64_t id; /* 0 while it is not in a list */

	/* Read and written with the list's lock. */
	struct str user; /* who it is, once that is known, if there is no `client` */
	struct ops_op *next;
	struct ops_op **link;
};

#define OPS_TIME_NAME "frond_operation_duration_seconds"
#define OPS_TIME_HELP                                                                              \
	"Time that operations took, by door and class. http: from the end of a request's headers " \
	"to the end of its handler, by endpoint, without feeds. redis: from the beginning of a "   \
	"command until it was committed, by Redis's groups of commands, without the time for "     \
	"which it waits for a key. mongo: of a command, by its kind; command is any other that "   \
	"reads, change any other that writes; of a change stream only the computing. A class "     \
	"appears after its first operation."
#define OPS_SLOW_NAME "frond_slow_operations_total"
#define OPS_SLOW_HELP                                                                              \
	"Operations that took longer than their door's setting, by door, logged or left out: "     \
	"slow_request_ms for http, slow_ms or what profile has set for mongo, "                    \
	"slowlog-log-slower-than for redis."
#define OPS_SLOW_LEFT_OUT_NAME "frond_slow_operations_left_out_total"
#define OPS_SLOW_LEFT_OUT_HELP                                                                     \
	"Slow operations, by door, that were only counted, since their door had 1000 in that "     \
	"second: neither logged nor kept for those who ask for the newest."

/*
 * Defines a door. `classes_`, a static array, has the values of the label `class` of its
 * histograms; `level_` is the level of its log lines about slow operations; `end_` is ops_door.end.
 */
#define OPS_DOOR(variable, name_, classes_, level_, end_)                                          \
	static const char *const variable##_names[] = { name_ };                                   \
	METRIC_DEFINE(variable##_time, METRIC_SHARDS,                                              \
		      METRIC_COUNT_OF(classes_) * (METRIC_TIME_BUCKETS + 2),                       \
		      METRIC_TEXTS(OPS_TIME_NAME, METRIC_SECONDS, OPS_TIME_HELP),                  \
		      .kind = METRIC_KIND_HISTOGRAM, .least = METRIC_TIME_LEAST,                   \
		      .buckets = METRIC_TIME_BUCKETS, METRIC_LABEL(0, "door", variable##_names),   \
		      METRIC_LABEL(1, "class", classes_));                                         \
	METRIC_COUNTERS(variable##_slow, OPS_SLOW_NAME, METRIC_NUMBER, OPS_SLOW_HELP, "door",      \
			variable##_names);                                                         \
	METRIC_COUNTERS(variable##_slow_left_out, OPS_SLOW_LEFT_OUT_NAME, METRIC_NUMBER,           \
			OPS_SLOW_LEFT_OUT_HELP, "door", variable##_names);                         \
	struct ops_door variable = { .name = (name_),                                              \
				     .time = &variable##_time,                                     \
				     .slow_count = &variable##_slow,                               \
				     .slow_left_out = &variable##_slow_left_out,                   \
				     .level = (level_),                                            \
				     .end = (end_),                                                \
				     .slow = RECENT_INIT }

/* ---- Limits by person and address (access/limits.h): on the operation's fiber ---- */

/*
 * From now on these limits hold for all requests of all doors; NULL: none does. They outlive the
 * operations, or are replaced first.
 */
void ops_limit(struct limits *limits);

/*
 * Asks for one request, which `op->peer` has sent, before ops_begin(): a request of HTTP, a
 * command. `person` is whose request it is, if limits by person hold for that: empty if nobody has
 * logged in, if it is an administrator, or if that is not known yet (ops_set_user()). An operation
 * may be one for several requests, such as a pipeline's. STATUS_TOO_MANY, explained: the door
 * answers so in its own words and does nothing else for this request; `op->claim.retry_s` is when
 * its client may come again.
 */
MUST_USE enum status ops_admit(struct ops_op *op, struct str person, struct err *err);
/*
 * For a request that is never refused: the first of a protocol, which does no work, and one that
 * runs again, which was admitted by another operation.
 */
void ops_admit_always(struct ops_op *op);

/*
 * Counts bytes of an answer, or of a request of HTTP. What a stream brings is counted when its door
 * takes it (net_stream_take()), whatever becomes of it.
 */
static inline void
ops_moved(struct ops_op *op, uint64_t bytes)
{
	op->moved_bytes += bytes;
}

/*
 * The requests that were asked for are over. The bytes that have moved are paid for, also if no
 * request came of them; but not if a request was refused and none was admitted.
 */
void ops_leave(struct ops_op *op);

/* ---- An operation: on its fiber ---- */

/*
 * Puts an operation into the registry, and has its fiber asked whether it goes on
 * (serve/wanted.h). The door has set its members up to `began_ns`, and all others are 0 when it is
 * used first.
 */
void ops_begin(struct ops_op *op);
/* What an operation wanted that its person has no right to, for the log. Texts are the caller's. */
struct ops_refusal {
	struct audit_by by;
	struct str on, on_more; /* a path; or "db" and "collection" */
	const char *status;     /* how the door's protocol calls the refusal: "401" */
};

/*
 * Takes it out. When this has returned, no thread reads the entry or signals it, so a killOp that
 * comes late does not end the next operation of the same connection. `refusal` is NULL unless the
 * operation was refused for want of rights: then this writes the line of the audit log, so that no
 * door ends an operation without saying so.
 */
void ops_end(struct ops_op *op, const struct ops_refusal *refusal);

/*
 * Tells who it is that the operation runs for, where that is known only after it has begun. The
 * text lasts until ops_end(). If limits by person hold for them, the request is counted as theirs,
 * with the results of ops_admit().
 */
MUST_USE enum status ops_set_user(struct ops_op *op, struct str user, bool limited,
				  struct err *err);

/* ---- What operations took: any thread ---- */

static inline void
ops_count(const struct ops_door *door, size_t class, uint64_t took_ns)
{
	metric_observe_at(door->time, class, took_ns);
}

/* How long the fiber of the running operation has computed for it, without the time it waited. */
static inline uint64_t
ops_computed_ns(const struct ops_op *op)
{
	const struct step_meter *steps = step_current();

	return steps ? steps->computed_ns - op->computed_before_ns : 0;
}

/*
 * Counts an operation that took longer than its door's setting. Returns whether ops_note_slow()
 * should follow: false if OPS_SLOW_NOTED_PER_S of the door have been noted in this second. Where a
 * disk is slow that may be every command of every pipeline, and telling of one costs as much as a
 * small command does.
 */
MUST_USE bool ops_count_slow(struct ops_door *door);

/* What a door tells of a slow operation. The texts are the caller's, and are copied. */
struct ops_slow {
	uint64_t took_ns;
	struct str user;
	struct str client;  /* the name that the connection has given itself; kept, not logged */
	struct str args;    /* what the client has sent, as the door shows it; kept, not logged */
	struct str on_rest; /* logged behind `on`, such as the query of a path; has no secrets */
	struct str more;    /* further words for the line, "status=200" */
	size_t keep;        /* how many slow operations the door keeps, this one included */
};

/* An entry of the log of slow operations. */
struct ops_slow_entry {
	struct recent_entry entry; /* first */
	const struct ops_door *door;
	uint64_t time_ms; /* of the machine's clock */
	uint64_t took_ns;
	/* Behind the struct. */
	struct str peer;
	struct str client;
	struct str args;
	struct str line; /* as it was logged, or would have been */
};

/* Logs and keeps a slow operation, after ops_count_slow() has returned true. */
void ops_note_slow(const struct ops_op *op, const struct ops_slow *slow);

/* ---- The registry: any thread ---- */

/* Called with an operation and the lock of its list. Only ops_end_one() uses the result. */
typedef bool ops_look(void *arg, struct ops_op *op);

/* Calls `see` with each operation of every door. */
void ops_each(ops_look *see, void *arg);

/*
 * Ends the operation with that number if `may` returns true for it. Returns false if there is no
 * such operation or it may not be ended. The lock is held from the call of `may` until the
 * operation was signalled, so no other operation is ended in its place.
 */
bool ops_end_one(uint64_t id, ops_look *may, void *arg);

/*
 * Calls `see` with each slow operation that is kept: door by door, the newest first. A lock is held
 * meanwhile, so `see` only reads and copies.
 */
void ops_each_slow(void (*see)(void *arg, const struct recent_entry *e), void *arg);

#endif
