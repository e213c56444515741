/*
 * Statements of a connection that are under way together, each on a fiber of its own. The
 * connection's fiber reads frames, begins a flight for each statement that is small and there as a
 * whole, and sends the answers as they come: so a statement that reads for long, or waits for a
 * cluster, holds up none behind it, and what is written together is committed in few groups.
 * Statements that are under way together may take effect, and are answered, in any order, as in
 * Cassandra: a client that minds waits for the answer. One that is sent behind an answer sees its
 * effects, since it is answered when it has committed.
 *
 * == Groups ==
 *
 * SELECTs of one row that have come one behind the other are one flight: a fiber runs up to
 * CQL_TOGETHER of them one after the other, in one transaction (run/joint.h), and then all are
 * answered. Each counts as one that is under way. The fiber leaves a member to the connection's
 * fiber, which serves it anew as a flight of its own, if it lacks memory, or if one before it took
 * long: then the others are better run beside each other.
 *
 * == Who waits for whom ==
 *
 * - The connection's fiber alone reads from the stream and writes to it. It waits for memory, or
 *   for the rest of a frame, only when nothing is under way.
 * - What changes the connection (USE, logins, a person's roles) is served when nothing is under
 *   way; so a flight may use all that is known of the client.
 * - A flight for which there is no memory gives back what it has, waits until the others are done
 *   and their answers sent, and begins again. No further ones begin meanwhile. Where all wait the
 *   first goes on, so this ends.
 * - If there is no memory for the only one either, the connection's fiber waits for some, for more
 *   before each further attempt: nothing of its connection holds memory meanwhile, and what it gets
 *   is used by that flight alone.
 * - The connection's fiber does not end before all flights have.
 *
 * Threading: all of it on the connection's loop.
 */
#ifndef FROND_DOOR_CQL_FLIGHT_H
#define FROND_DOOR_CQL_FLIGHT_H

#include "door/cql/conn/request.h"
#include "door/cql/input.h"

struct task;

struct cql_flight {
	struct cql_flight *next;
	struct cql_flight *behind; /* the next one of its group, which is run by the same fiber */
	struct task *task;         /* the first one's; NULL of the others */
	struct ops_op op;
	struct arena *arena; /* the task's */
	struct cql_request r;
	struct buf body; /* as it came */
	struct buf out;
	size_t from;                        /* of `out`: where the answer begins */
	void (*run)(struct cql_flight *fl); /* of the first one */
	struct event turn;                  /* to be the only one, or to have memory */
	bool waited;                        /* for that, once */
	bool gets;                          /* the memory it has asked for */
	size_t asked_bytes;                 /* for its latest attempt: net_memory_await_more() */
};

/* True if another one may begin. */
bool flights_have_room(const struct cql_client *c);

/*
 * With a copy of the frame, and `out` and `body` ready; the caller fills `r` in. NULL when memory
 * is short.
 */
struct cql_flight *flight_new(struct cql_client *c, const struct input_frame *f);
/* Gives one back that was not begun. */
void flight_drop(struct cql_client *c, struct cql_flight *fl);

/*
 * Takes a fiber for the flight and those behind it; each of them has the fiber's arena as `arena`.
 * False when memory is short, when all NET_BESIDE_FIBERS are taken, or when people have changed
 * (beside_enter()).
 */
bool flight_take_fiber(struct cql_client *c, struct cql_flight *fl);

/*
 * Has `run` called on that fiber, before anything else of the client is served. It leaves an answer
 * in `out` of the flight and of each one behind it, all of which is sent; or nothing, if it sets
 * `r.again`.
 */
void flight_begin(struct cql_flight *fl, void (*run)(struct cql_flight *fl));

/*
 * On its fiber, which holds no answer: waits until the others of its client are answered or wait,
 * too. False: it has waited so before, or there are no others.
 */
bool flight_wait_for_others(struct cql_flight *fl);

/*
 * The same behind flight_wait_for_others(): waits until the flight may have more memory than its
 * latest attempt had. False: there is none for it.
 */
bool flight_await_memory(struct cql_flight *fl);

/* ---- On the connection's fiber ---- */

/* Sends the answers that are there. Where the connection is lost, drops them and sets `ends`. */
void flights_send(struct cql_client *c);

/* The first one that a group has left, for the caller to serve and to drop; NULL: there is none. */
struct cql_flight *flights_take_left(struct cql_client *c);

/* Waits until one is done, or the client says more, and sends the client its events. */
void flights_wait(struct cql_client *c);

/* Waits until one is done, or all are, and sends the answers that are there. */
void flights_finish_one(struct cql_client *c);
void flights_finish(struct cql_client *c);

/*
 * Where none is under way, many are kept for further ones, and the client says nothing: waits for a
 * moment (NET_STREAM_PATIENCE_MS), behind which few are kept, and sends the client its events.
 * False: there is no reason to wait so.
 */
bool flights_rest(struct cql_client *c);

/* Frees what is kept for further ones, but for `most` of them. */
void flights_trim(struct cql_client *c, size_t most);

#endif
