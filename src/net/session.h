/*
 * A fiber at work for a connection: its events, its part of the memory that all connections share,
 * and output with backpressure. A protocol embeds one in what it keeps for a request; an idle
 * connection has none.
 *
 * The fiber and the connection's callbacks run on the same loop, in turn: no locks.
 */
#ifndef FROND_NET_SESSION_H
#define FROND_NET_SESSION_H

#include "base/arena.h"
#include "base/buf.h"
#include "loop/task.h"
#include "net/conn.h"
#include "net/pace.h"
#include "net/patience.h"
#include "net/wait_hook.h"

enum {
	NET_FLUSH_BYTES = 16 * 1024, /* of output gathered before it is sent */
	NET_SPARE_BYTES = 64 * 1024, /* larger buffers are not kept for the next session */
	/*
	 * Slices of computing (loop/step.h) that a session may use after its peer has sent its end
	 * and no output has gone since, about 0.3 s: a peer that has only shut its sending side
	 * still gets an answer that takes little, and one that has left does not cost much more.
	 */
	NET_ENDED_SLICES = 2000,
	/* Slices between two looks for the end of a peer whose bytes are not read meanwhile. */
	NET_PROBE_SLICES = 64,
	/*
	 * Unsent output of one connection, before its fiber parks, when there is very much output
	 * in the whole process.
	 */
	NET_OUTPUT_LEAST_BYTES = 4 * 1024,
	/* How long a fiber keeps what it reads from while its peer takes nothing. */
	NET_PATIENCE_MS = 20,
	/*
	 * How long a peer may take or send nothing while there is no memory for requests that wait
	 * for their peers, and this one was not let in as such (budget_is_unwelcome()). If there is
	 * no memory at all, it is not waited for. One that was let in has BUDGET_STALL_MS.
	 */
	NET_UNWELCOME_MS = 1000,
	/* Between two looks whether there is room for what has to wait before it begins. */
	NET_BEGIN_AGAIN_MS = 20,
	/* How long a peer may take or send nothing while the process stops. */
	NET_STOP_STALL_MS = 3000,
	/*
	 * What a request at work has beside its flat amount (BUDGET_PART_BYTES), measured: the
	 * store's transaction with its arena, what the store reads with, more of the stack. One
	 * that rests or waits for memory is not counted with it.
	 */
	NET_WORK_BYTES = 20 * 1024,
};

/* Why a peer that is waited for has stalled: the limit that it has not kept. */
enum net_stall {
	NET_STALL_SETTING, /* the protocol's stall time */
	NET_STALL_STOP,    /* NET_STOP_STALL_MS: the process stops */
	NET_STALL_MEMORY,  /* others need the memory */
};

struct net_session {
	struct net_conn *conn; /* NULL: a spare one */
	struct net_loop *loop;
	struct task *task;             /* NULL until the fiber starts, and after it has returned */
	struct budget_part part;       /* of the memory of all connections */
	struct budget_part work;       /* likewise: NET_WORK_BYTES while the fiber is at work */
	size_t output_bytes;           /* the most unsent output before the fiber parks */
	struct net_pace_limits limits; /* for waits for the peer */

	struct buf out;          /* gathered */
	struct buf flying;       /* what `write` is writing */
	size_t left;             /* bytes that the peer had not got when last looked at */
	struct net_pace reading; /* of the peer, while it is waited for */
	uint64_t look_ns;        /* when net_session_look() was called last */
	struct net_write write;

	unsigned slices;           /* of computing, while nothing was read */
	unsigned ended_slices;     /* of computing, after the peer's end, since output went last */
	unsigned ended_most;       /* of these: NET_ENDED_SLICES, unless its protocol has less */
	unsigned begun;            /* requests: net_session_may_begin() */
	uint64_t taken_bytes;      /* of what came, for net_session_take_count() */
	bool gave_back;            /* memory that was set aside for the request */
	struct net_pace looked;    /* since the last look at others who wait for memory */
	struct net_wait_hook hook; /* net_session_on_wait() */

	struct net_patience patience; /* net_session_give_up_on() */

	struct event progress;    /* set anew for each wait of the fiber for the connection */
	struct event unwanted;    /* the peer has stalled for long, and others need the memory */
	struct event closed;      /* the peer sends nothing more, or the connection is lost */
	struct event lost;        /* nothing can be sent any more */
	struct event stopping;    /* the process stops */
	struct event interrupted; /* net_session_interrupt() */
};

/* Once for the memory, before the first begin. Limits what is gathered. */
void net_session_init(struct net_session *s, size_t output_bytes);
/* Frees its memory. */
void net_session_fini(struct net_session *s);

/* For a connection, which it does not own. */
void net_session_begin(struct net_session *s, struct net_conn *c);
/* No fiber is at work any more. Keeps the smaller buffers. */
void net_session_end(struct net_session *s);

/*
 * Runs `fn(arg)` on a fiber at once, until it parks or returns, or in its turn if `soon` is set;
 * `done(arg)` follows off the fiber, and calls net_session_returned(). False when out of memory:
 * nothing has run.
 */
bool net_session_run(struct net_session *s, bool soon, void (*fn)(void *arg),
		     void (*done)(void *arg), void *arg);
void net_session_returned(struct net_session *s);

/*
 * Ends the fiber's work in the place of its peer, on any thread that knows that the fiber has not
 * returned: `closed` is set, step_count() fails, and a wait for the peer aborts the connection.
 */
void net_session_interrupt(struct net_session *s);

/*
 * On the fiber, after each slice of computing: false if nobody waits for its work any more, because
 * the connection is lost, the session was interrupted, or the peer has sent its end and has had
 * `ended_most` slices since. A session's fiber asks this (step_set_owner()) until an operation of
 * its protocol begins, which is asked in its place (serve/wanted.h).
 */
bool net_session_is_wanted(struct net_session *s);

/*
 * True if others wait for memory, or soon will: the session should not even keep for a moment what
 * it can read or make again.
 */
bool net_session_is_pressed(const struct net_session *s);

/*
 * True once the process has given up on the peer at the end of a stop, or the peer has gone while
 * the process stops: not even work that is done for peers that have left goes on. Any thread.
 */
static inline bool
net_session_is_given_up(const struct net_session *s)
{
	return event_is_set(&s->lost) && event_is_set(&s->stopping);
}

/*
 * True if the peer sends nothing more or is lost, or the process stops: what may take as long as it
 * likes, such as a wait for others, ends. Any thread.
 */
static inline bool
net_session_is_leaving(const struct net_session *s)
{
	return event_is_set(&s->closed) || event_is_set(&s->stopping);
}

/*
 * To be asked on the connection's loop before each request of a protocol whose connections stay
 * open. False: the process stops, so the request must not be done. A request whose first bytes were
 * read before the stop (net_session_begin_request()) is done all the same. So a stop waits for what
 * is under way, and not for other requests that came together with it.
 */
static inline bool
net_session_may_begin(struct net_session *s)
{
	if (s->begun) {
		s->begun--;
		return true;
	}
	return !event_is_set(&s->stopping);
}

/* The first bytes of a request were read; the others may still come. */
static inline void
net_session_begin_request(struct net_session *s)
{
	s->begun++;
}

/* How many bytes of what came were taken since the last such call, on the connection's loop. */
static inline uint64_t
net_session_take_count(struct net_session *s)
{
	uint64_t bytes = s->taken_bytes;

	s->taken_bytes = 0;
	return bytes;
}

/* No request is under way: bytes that nobody asked about (net_session_may_begin()) were none. */
static inline void
net_session_end_requests(struct net_session *s)
{
	s->begun = 0;
}

static inline bool
net_session_is_interrupted(const struct net_session *s)
{
	return event_is_set(&s->interrupted);
}

/* ---- Output ---- */

/* Bytes of the output that the kernel has not taken yet. */
size_t net_session_unsent(const struct net_session *s);

/* Gives what is gathered to the kernel, as far as it takes it; the rest follows on its own. */
void net_session_send(struct net_session *s);

/*
 * Appends bytes to the output, and sends it when it has become large. Parks while more than the
 * limit is unsent. STATUS_CANCELLED when the connection is lost.
 */
MUST_USE enum status net_session_put(struct net_session *s, struct str data);

/*
 * Gives the kernel what it takes at once of `data`, behind what is gathered, and returns how much
 * that was: 0 if little has been gathered yet, or if earlier output has to go first. Never parks.
 */
size_t net_session_put_now(struct net_session *s, struct str data);

/*
 * How much may be unsent before the fiber parks: `output_bytes`, or less when the output of all
 * connections takes much of the memory that they share.
 */
size_t net_session_output_limit(const struct net_session *s);

/*
 * From now on the hook is called on the fiber whenever output has to wait for the peer: after
 * NET_PATIENCE_MS without progress, or at once if memory is short. It frees everything that the
 * fiber can read again, and must not use the connection. It may be called again before the fiber
 * has done anything. Returns the hook of before.
 */
struct net_wait_hook net_session_on_wait(struct net_session *s, struct net_wait_hook hook);

/*
 * On the fiber, which may wait for long now: frees buffers of output that are empty and counts the
 * others, and gives back the pages of the stack and the arena that are not in use. The session no
 * longer counts as at work (net_session_pause()).
 */
void net_session_rest(struct net_session *s);

/*
 * On the fiber: from now on the session counts as at work, or no longer does. A fiber that begins
 * counts as at work by itself. The memory is counted even if there is no room for it:
 * net_session_lacks_room() tells that before.
 */
void net_session_work(struct net_session *s);
void net_session_pause(struct net_session *s);

/* True if there is no room for one more session at work. Takes no lock. */
bool net_session_lacks_room(const struct net_session *s);

/*
 * Parks until no more than `most` bytes are unsent. A peer that does not keep up with reading is
 * cut off. STATUS_CANCELLED when the connection is lost.
 */
MUST_USE enum status net_session_wait_unsent(struct net_session *s, size_t most);

/* How much of the output the peer has got since the last such call, while nothing was added. */
size_t net_session_moved(struct net_session *s);

/*
 * Off the fiber, while the rest of the output flies: begins to watch the peer, and looks after it.
 * Each gives the moment at which to look again. net_session_look() is told of bytes that the peer
 * has sent meanwhile, which count as keeping up, and cuts off a peer that does not: it then gives
 * WAIT_FOREVER, and the connection is lost.
 */
uint64_t net_session_watch(struct net_session *s);
uint64_t net_session_look(struct net_session *s, uint64_t came_bytes);

/* Logs and counts that the peer does not keep up with reading, and aborts the connection. */
void net_session_cut(struct net_session *s, enum net_verdict verdict);

/* The connection's callback written(): the buffer of the write is free again. */
void net_session_written(struct net_session *s);

/* ---- Waiting for the connection ---- */

/* Wakes the fiber if it waits for the connection. */
void net_session_progress(struct net_session *s);

/*
 * Counts a wait for the peer in which so many bytes have moved, and judges it by what it has to
 * keep now: its limits, or less while memory is short. A peer that has moved does not stall.
 */
enum net_verdict net_session_judge(struct net_session *s, struct net_pace *pace, uint64_t waited_ns,
				   uint64_t bytes);

/* Of a peer that has stalled. */
enum net_stall net_session_stall_of(const struct net_session *s, const struct net_pace *pace);

/*
 * For a fiber that waits for its peer by itself: the event that tells that others need the memory,
 * from now on until net_session_unstall(); and whether a peer that has moved nothing for so long is
 * waited for further, as far as memory and a stop are concerned.
 */
struct event *net_session_unwanted_event(struct net_session *s);
void net_session_unstall(struct net_session *s);
bool net_session_has_patience(const struct net_session *s, uint64_t silent_ns);

/* The process stops: a peer that has stalled for long is not waited for. On the loop. */
void net_session_stop(struct net_session *s);

/*
 * On the fiber, which waits for its peer: parks until progress, until `pace` can be judged again,
 * or for `most_ns`. Returns how long that took, for net_session_judge().
 */
uint64_t net_session_wait(struct net_session *s, const struct net_pace *pace, uint64_t most_ns);

/*
 * From now on the fiber, while it waits for its peer, gives up when `patience` says so: the wait
 * ends and the connection is lost. At first it never gives up. What `patience` refers to is
 * borrowed until the next such call.
 */
void net_session_give_up_on(struct net_session *s, struct net_patience patience);

/* The connection's callback lost(). */
void net_session_lost(struct net_session *s);

#endif
