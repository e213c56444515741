/*
 * What doors take of the memory of all connections (base/budget.h): one set of calls for HTTP and
 * for doors on streams, so that no door has rules of its own.
 *
 * A request waits for its turn before it begins what takes much (net_memory_reserve()), before it
 * reads a page of a long answer (net_memory_turn_to_read()), and before it waits for as long as its
 * client likes (net_memory_turn_to_last()). It waits no longer than its session's `memory_wait_ms`.
 * What a request makes otherwise grows in its session's part by itself, through its arena and
 * through buffers made with BUF_INIT_OF(), as far as there is memory at once.
 *
 * What outlives a request, or is counted by another thread, has a part of its own.
 */
#ifndef FROND_NET_MEMORY_H
#define FROND_NET_MEMORY_H

#include "net/session.h"

enum {
	NET_MEMORY_WAIT_MS = 10 * 1000, /* for a turn, unless the protocol says otherwise */
	/* That an attempt at an answer asks for: at first, and how often more each time. */
	NET_MEMORY_FIRST_BYTES = 4 * 1024 * 1024,
	NET_MEMORY_GROWTH = 2,
	NET_MEMORY_LITTLE_BYTES = 1024 *
				  1024, /* of a request that waits with what has come of it */
	/*
	 * How often it is looked whether others wait for memory that a request on its way has set
	 * aside, and what has to come of it in between for it to keep that memory: 64 KB a second.
	 */
	NET_MEMORY_LOOK_MS = 250,
	NET_MEMORY_LOOK_BYTES = 16 * 1024,
};

/* ---- Of a request, on its fiber ---- */

/*
 * Sets `n` bytes aside before something large is begun, and waits for them. STATUS_LIMIT: they were
 * not free in time, and the part's `refused` is set; STATUS_CANCELLED: the peer has left.
 */
MUST_USE enum status net_memory_reserve(struct net_session *s, size_t n);

/*
 * Waits for a turn to read: for `n` bytes beside what the part uses now, which budget_settle()
 * gives back before the request waits for anything but the store. Fails as net_memory_reserve().
 */
MUST_USE enum status net_memory_turn_to_read(struct net_session *s, size_t n);

/*
 * How large a page of a long answer should be that is best with `most` bytes: less while much of
 * the memory is held, and at least `least`. It has room in a turn for twice as much.
 */
size_t net_memory_page_bytes(const struct net_session *s, size_t most, size_t least);

/*
 * Waits for a turn to last; the second time it has that already. `n` bytes count as used until
 * budget_unuse(). Fails as net_memory_reserve().
 */
MUST_USE enum status net_memory_turn_to_last(struct net_session *s, size_t n);

/*
 * Waits for memory after an attempt at an answer has failed because others hold it. The caller has
 * given back all that the attempt held. `*asked` is what the last attempt was allowed, 0 before the
 * first call; the next one is allowed more, which `*asked` is then. Fails as net_memory_reserve()
 * does, and at once if the last attempt was allowed as much as any can be.
 */
MUST_USE enum status net_memory_await_more(struct net_session *s, size_t *asked);

/*
 * Appends to a request that is coming. If others hold the memory for that, a request that has
 * little waits until those who stall have made room; one that has much does not, since others may
 * wait for what it has. Fails as net_memory_reserve().
 */
MUST_USE enum status net_memory_append(struct net_session *s, struct buf *b, struct str more);

/* Explains the failure of any of these by the limit and its value, and counts it. STATUS_LIMIT. */
enum status net_memory_refuse(const struct net_session *s, struct err *err);

/*
 * Parks until more of a request has come, and judges the peer. `came` counts the bytes that the
 * callbacks of the connection have got. A request that comes slowly gives back what it has set
 * aside and does not use, if others wait for it, and its part lasts once it has nothing set aside.
 */
enum net_verdict net_memory_wait_for_request(struct net_session *s, struct net_pace *sending,
					     const uint64_t *came);

/* All of it has come: sets aside again what was given back, so that it has `n` bytes. */
MUST_USE enum status net_memory_reserve_again(struct net_session *s, size_t n);

/* ---- Parts of their own ---- */

/*
 * Of the budget of `of`, the part of the request that makes it, which may be NULL. If `works` is
 * true it counts as a request of its own, with an arena. budget_part_release() ends it.
 */
void net_memory_part_init(struct budget_part *p, const struct budget_part *of, bool works);

/*
 * What has the part is kept for as long as its client likes: a cursor, a transaction, messages that
 * were not read. All it uses is taken then. The second ends that: its client has asked for more.
 */
void net_memory_part_keep(struct budget_part *p);
void net_memory_part_unkeep(struct budget_part *p);

/*
 * Makes the part count `bytes`, of what is there already. False: there is no room for that among
 * what is kept, for now; it is counted all the same, and should end.
 */
bool net_memory_part_resize(struct budget_part *p, size_t bytes);

/*
 * Waits until there is room for what the part has among what is kept, on the fiber of the request
 * that has made it. Fails as net_memory_reserve().
 */
MUST_USE enum status net_memory_part_admit(struct budget_part *p, struct net_session *s);

/* Counts `n` bytes; if `insists` is true, by what is left for short requests, too. */
bool net_memory_part_use(struct budget_part *p, size_t n, bool insists);

/*
 * Nobody uses what is kept from now on: the longest unused ones end when others wait for memory and
 * they have rested for BUDGET_STALL_MS. Their owner looks for that now and then. The second ends
 * the rest: a request uses it.
 */
void net_memory_part_rest(struct budget_part *p);
void net_memory_part_rouse(struct budget_part *p);

#endif
