/*
 * A connection's state. A client belongs to its fiber. What others may read or change is its entry
 * in the list of connections (serve/clients.h), or belongs to a lock, as the members say.
 */
#ifndef FROND_DOOR_REDIS_TXN_CLIENT_H
#define FROND_DOOR_REDIS_TXN_CLIENT_H

#include <stdatomic.h>

#include "access/auth.h"
#include "access/visitor.h"
#include "base/buf.h"
#include "door/redis/acl/acl.h"
#include "base/hash_table.h"
#include "door/redis/txn/push.h"
#include "door/redis/txn/run.h"
#include "door/redis/wire/request.h"
#include "net/stream.h"
#include "net/unread.h"
#include "serve/clients.h"

enum {
	CLIENT_SUBCOMMAND_BYTES = 32, /* of a subcommand's name, that CLIENT LIST shows */
	/* The most that a client may leave unread of messages and of what MONITOR shows. */
	CLIENT_PUSH_BYTES = 32 * 1024 * 1024,
	CLIENT_SLICE_BYTES = 64 * 1024, /* of those that are written at once */
	/* Of references to messages, from which on the client counts as one that reads late. */
	CLIENT_BEHIND_BYTES = 1024,
};

enum client_end {
	CLIENT_GOES_ON,
	CLIENT_ENDS, /* after what was answered so far */
};

/* What a client waits for beside its peer: set by others (serve/clients.h). */
enum client_signal {
	CLIENT_KILLED = 1 << 0,
	CLIENT_READY = 1 << 1,         /* a key that it waits for may have something */
	CLIENT_UNBLOCKED = 1 << 2,     /* CLIENT UNBLOCK … TIMEOUT */
	CLIENT_UNBLOCKED_ERR = 1 << 3, /* … ERROR */
	CLIENT_OVERFLOWED = 1 << 4,    /* it has left too much unread */
	CLIENT_LOOK = 1 << 5,          /* something that it waits for may be over */
	CLIENT_ENDED = CLIENT_KILLED | CLIENT_OVERFLOWED, /* nothing more is sent to it */
};

enum client_tracks {
	CLIENT_TRACKS = 1 << 0,
	CLIENT_TRACKS_PREFIXES = 1 << 1,
	CLIENT_TRACKS_BROKEN = 1 << 2, /* whom it redirects to has left */
};

/* A key that is watched, and the version of it that was seen. */
struct watch {
	struct watch *next;
	unsigned db;
	struct str key; /* both are behind the struct */
	struct str version;
};

struct redis_config;
struct subscription;

struct client {
	struct clients_entry entry; /* first */
	struct redis *redis;
	struct net_stream *stream;
	/*
	 * The connection's part of the memory of all connections. The fiber's; while a group runs
	 * its job, and the fiber waits for that, the group's.
	 */
	struct budget_part *part;
	char local[NET_PEER_BYTES];
	uint64_t created_ms;

	/* The fiber's alone, or read by others without meaning much. */
	_Atomic(const struct command *) last_command;
	_Atomic uint64_t last_ns;
	_Atomic size_t request_bytes; /* of the request that is served now */
	_Atomic unsigned db;
	_Atomic int version; /* of RESP */
	_Atomic uint64_t commands;
	enum client_end end;
	bool reply_off;
	bool reply_skip;
	bool reply_skip_next;
	_Atomic bool no_evict;
	_Atomic bool no_touch;
	struct buf out;
	/* The answer of a group that has run its job while its fiber waited (effects_offer()). */
	struct buf served_out;
	struct budget_part served_part; /* that counts it */
	struct buf big; /* a request that is larger than the stream's buffer, or its beginning */
	bool owes;      /* it has rested in the middle of a request */
	struct request request;

	struct acl acl; /* in the arena of the entry's person */

	/* MULTI. */
	_Atomic bool multi;
	bool multi_failed;
	struct arena *multi_arena; /* owned; NULL: none */
	struct unit *queued;
	_Atomic size_t queued_count;
	size_t queued_cap;

	/* WATCH. The fiber that runs its group adds to it meanwhile. */
	struct watch *watches;
	size_t watch_count;
	bool watch_lost; /* for want of memory a key is not in the list */

	/* Pub/sub: the redis's pubsub_lock, but for the counts. */
	struct subscription *subscriptions[3]; /* channels, patterns, shard channels */
	struct hash_table subscribed[3];       /* the same, by names */
	_Atomic size_t subscription_count[3];

	/* CLIENT TRACKING (tracking.h). The fiber's. */
	struct tracker *tracker; /* NULL: it does not track */
	bool leaves;             /* the lock's of tracking.c: nobody redirects to it any more */
	enum caching caching;
	_Atomic unsigned tracks;    /* enum client_tracks, for others to see */
	_Atomic uint64_t tracks_to; /* whom it redirects to; 0: nobody */

	/* MONITOR: the redis's monitor_lock, but for whether it does. */
	_Atomic bool monitors;
	struct client *next_monitor;
	struct client **monitor_link;

	/* The entry's lock. */
	struct buf push; /* messages that it has yet to read: references, struct push * */
	struct budget_part push_part; /* that counts the references, also of those it writes now */
	struct net_unread unread;
	bool blocked;
	char subcommand[CLIENT_SUBCOMMAND_BYTES]; /* of the last command; empty: it has none */

	/* The list's lock. */
	struct buf lib_name;
	struct buf lib_version;

	/* Blocking: the redis's blocked_lock. */
	struct blocked *blocked_on;
	uint64_t ticket;
	struct job *offered;    /* that a group may run while the fiber waits; or NULL */
	const void *claimed_by; /* the group that runs it; NULL: none */
	struct event *returned; /* for which its fiber waits meanwhile; or NULL */
	bool served;            /* the group has run it */
	bool missed;            /* something came to one of its keys while a group had the job */
	/*
	 * It waits for a stream, which others who wait may read, too, whatever it has found. Its
	 * fiber alone writes both, while the client is in no list.
	 */
	bool shares;
	/* XREADGROUP: its group, whose other clients find nothing where it has found nothing. */
	uint64_t group;

	/*
	 * The same for its command: of the fiber that runs it, which may be another client's while
	 * its own waits for that.
	 */
	bool saw_other;       /* at a key that it waits for is something else */
	uint64_t block_ms;    /* how long the command may wait; 0: for ever */
	uint64_t block_group; /* XREADGROUP: what its group is told by; XREAD: 0 */

	/* The fiber's: behind which ids XREAD waits, a struct timed_stream_id for each stream. */
	struct buf block_ids;
};

/* On its fiber. NULL when out of memory. Adds it to the list. */
struct client *client_new(struct redis *r, struct net_stream *stream);
void client_free(struct client *c);

/* The monotonic time that is `ms` from now: a time that a client has named may be too far away. */
uint64_t client_after_ms(uint64_t ms);

/* Sets signals of a client; the list's lock, or another that keeps it, is held. Any thread. */
static inline void
client_signal(struct client *c, unsigned signals)
{
	clients_signal(&c->entry, signals);
}

/*
 * Sends a message outside of any answer, such as a published one. Takes a reference of its own.
 * NULL: there was no memory for the message, so the client, which misses it, is ended. As
 * client_signal().
 */
void client_push(struct client *c, struct push *message);

/* Ends the client if it has messages that it has not read; otherwise does nothing. Likewise. */
void client_end_if_behind(struct client *c);

/*
 * Waits for a signal, a message or the peer, until the deadline, and returns the signals, which are
 * then forgotten (but for CLIENT_ENDED). `input`: bytes of the peer end the
 * wait.
 */
unsigned client_wait(struct client *c, bool input, uint64_t deadline_ns);

/* Writes the messages that others have left. */
MUST_USE enum status client_flush_push(struct client *c);

/*
 * Writes what was answered, or refuses to, by client-output-buffer-limit. STATUS_LIMIT: it is too
 * much. STATUS_CANCELLED: the connection is lost.
 */
MUST_USE enum status client_write_answers(struct client *c, struct str answers);

/* Any thread; on another one than the client's the result may be out of date at once. */
bool client_has_subscriptions(const struct client *c);

/* True of those that wait, or are sent what others do. The entry's lock is held. */
bool client_gets_more(const struct client *c);

/* True once the process stops: no further command of it begins. Any thread. */
static inline bool
client_is_stopping(const struct client *c)
{
	return event_is_set(net_stream_stopping_event(c->stream));
}

/* True in RESP2 as long as it has subscriptions: only some commands are allowed. */
bool client_is_subscriber(const struct client *c);

/* Notes what CLIENT LIST tells of the command that is served now. */
void client_note_command(struct client *c, const struct command *command, const struct str *argv,
			 size_t argc);

/* Appends what CLIENT LIST says of it, without the end of a line. For clients_see(). */
void client_describe(struct client *c, struct buf *out);

/* Goes back to a state as of a new connection, but for who it is. */
void client_forget_multi(struct client *c);

/* ---- Who it is ---- */

/*
 * What the door makes of the people on its connections. Of one that nobody has logged in to, where
 * there is no administrator, the person is the user `default` (user.h), or an unnamed one in
 * charge. The caller adds what it does when rights change.
 */
struct visit_rules client_visit_rules(const struct redis_config *config);
/* A name for others: "default" for a connection that nobody has logged in to. */
struct str client_user_name(const struct client *c);

#endif
