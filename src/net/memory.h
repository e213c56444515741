/*
 * How doors draw memory from the one budget that all connections share (base/budget.h). HTTP and
 * the doors on streams use the same calls, so no door has rules of its own.
 *
 * Each session has a part of the budget. A request's arena, and buffers made with BUF_INIT_OF(),
 * are counted in that part as they grow; a growth for which there is no memory at once fails. A
 * request that knows beforehand that it needs much asks first, and waits for its turn:
 *
 * - net_memory_reserve() before it begins something large, such as a body;
 * - net_memory_turn_to_read() before it reads a page of a long answer;
 * - net_memory_turn_to_last() before it waits for its client, who may take any time.
 *
 * No wait takes longer than the host's `memory_wait_ms`.
 *
 * An object that outlives its request (a cursor, a transaction), or that another thread counts, has
 * a part of its own (net_memory_part_init()).
 *
 * Threading: on the fiber of the session, or by the one thread that owns a part, unless a function
 * says otherwise.
 */
#ifndef FROND_NET_MEMORY_H
#define FROND_NET_MEMORY_H

#include "net/session.h"

enum {
	/*
	 * net_memory_await_more(): the memory for the first attempt, and the factor by which each
	 * further attempt gets more.
	 */
	NET_MEMORY_FIRST_BYTES = 4 * 1024 * 1024,
	NET_MEMORY_GROWTH = 2,
	/* What a request may gather without asking while more than half of the budget is held. */
	NET_MEMORY_UNASKED_BYTES = 256 * 1024,
	/* A half request of at most this size may keep its memory while it waits for more. */
	NET_MEMORY_LITTLE_BYTES = 1024 * 1024,
	/*
	 * A request that is still arriving may have reserved memory that other requests wait for.
	 * Every NET_MEMORY_LOOK_MS it gives that memory back unless NET_MEMORY_LOOK_BYTES of it
	 * have arrived since the last look: 64 KB a second.
	 */
	NET_MEMORY_LOOK_MS = 250,
	NET_MEMORY_LOOK_BYTES = 16 * 1024,
	/* net_memory_input_bytes(), when memory is short */
	NET_MEMORY_INPUT_LEAST_BYTES = 4 * 1024,
	/* net_memory_stretch_bytes(): all requests together about one such part of the budget. */
	NET_MEMORY_STRETCH_SHARE = 16,
	NET_MEMORY_STRETCH_MOST = 512 * 1024,
	NET_MEMORY_STRETCH_LEAST = 16 * 1024,
};

/* ---- Of a request, on its fiber ---- */

/*
 * Reserves `n` bytes before something large begins, and waits until they are free. STATUS_LIMIT if
 * they were not free in time: the part's `refused` is then set. STATUS_CANCELLED if the peer has
 * left.
 */
MUST_USE enum status net_memory_reserve(struct net_session *s, size_t n);

/*
 * Waits for a turn to read `n` bytes beyond what the part uses now. The caller gives them back by
 * budget_settle() before it waits for anything but the store. Fails as net_memory_reserve() does.
 */
MUST_USE enum status net_memory_turn_to_read(struct net_session *s, size_t n);

/*
 * Returns how many bytes the next page of a long answer should have: `most` while memory is free,
 * less the more of it is held, never below `least`. A turn to read has room for twice as much.
 */
size_t net_memory_page_bytes(const struct net_session *s, size_t most, size_t least);

/*
 * How many bytes a request that reads without a turn should ask the store for at a time: the less,
 * the more requests there are. 0: memory is not limited.
 */
size_t net_memory_stretch_bytes(const struct net_session *s);

/*
 * Waits until the request may last for as long as its client likes. A request that has this turn
 * already returns at once. `n` bytes count as used until budget_unuse(). Fails as
 * net_memory_reserve() does.
 */
MUST_USE enum status net_memory_turn_to_last(struct net_session *s, size_t n);

/*
 * Waits for memory after an attempt to make an answer has failed because others hold the memory.
 * The caller has already given back all memory of the attempt. `*asked` is how much the last
 * attempt was allowed to take, and 0 before the first call; the function sets it to what the next
 * attempt may take, which is more. Fails as net_memory_reserve() does, and at once if the last
 * attempt was allowed as much as any request can get.
 */
MUST_USE enum status net_memory_await_more(struct net_session *s, size_t *asked);

/*
 * True if the request should give back what it has gathered, and go on with
 * net_memory_await_more(): it uses more than NET_MEMORY_UNASKED_BYTES without having asked for
 * memory, while more than half of the budget is held. Many requests that begin at once would
 * otherwise all grow until the budget is full. The part's `refused` is then set.
 */
bool net_memory_should_ask(struct net_session *s);

/*
 * Appends bytes that have arrived to the buffer of a request that is not complete. If there is no
 * memory, a request with NET_MEMORY_LITTLE_BYTES or less waits until clients that stall have made
 * room. A larger one fails at once, since others may be waiting for the memory that it holds. Fails
 * as net_memory_reserve() does.
 */
MUST_USE enum status net_memory_append(struct net_session *s, struct buf *b, struct str more);

/*
 * Explains in `err` that one of the functions above has failed: with the name of the limit, which
 * may be that of strangers (net_stream_set_stranger()), and its value. Counts the
 * refusal. Returns STATUS_LIMIT.
 */
enum status net_memory_refuse(const struct net_session *s, struct err *err);

/*
 * Parks the fiber until more of a request has arrived, and tells whether the peer keeps up. The
 * connection's callbacks count the bytes that arrive in `*came`. If the request arrives slowly
 * while others wait for memory, what it has reserved and not used is given back; once nothing is
 * reserved, its part lasts.
 */
enum net_verdict net_memory_wait_for_request(struct net_session *s, struct net_pace *sending,
					     const uint64_t *came);

/* The whole request has arrived: reserves again what was given back, so that it has `n` bytes. */
MUST_USE enum status net_memory_reserve_again(struct net_session *s, size_t n);

/* ---- Input ---- */

/*
 * Counts what the buffers of a connection's input take: `bytes` in all now. `input` is a part of
 * their own. They are there already and cannot be refused, so net_memory_input_bytes() has less
 * read before memory is short. The input of a request that lasts counts as lasting, too. Call this
 * on the connection's loop whenever a buffer has grown or shrunk.
 */
void net_memory_count_input(struct budget_part *input, const struct net_session *s, size_t bytes);

/*
 * Returns how many bytes may wait for a door before no more are read from the connection: `most`
 * while half of the memory is free, then the fewer the more of it is held.
 */
size_t net_memory_input_bytes(const struct net_loop *l, size_t most);

/* ---- Parts of their own ---- */

/*
 * Makes a part of the same budget that `of` belongs to; `of` is the part of the request that makes
 * the object, and NULL means no budget. If `works` is true, the part counts as a request of its
 * own, with an arena. budget_part_release() ends the part.
 */
void net_memory_part_init(struct budget_part *p, const struct budget_part *of, bool works);

/*
 * From net_memory_part_keep() on, the object waits for its client for any time: a cursor, a
 * transaction, messages that were not read. From then on all that it uses counts in the budget,
 * without a free amount. net_memory_part_unkeep() ends that when the client asks for the object
 * again.
 */
void net_memory_part_keep(struct budget_part *p);
void net_memory_part_unkeep(struct budget_part *p);

/*
 * Makes the part count `bytes` in all, for memory that exists already. Returns false if what is
 * kept has no room for it now: the bytes are counted all the same, and the caller should end the
 * object.
 */
bool net_memory_part_resize(struct budget_part *p, size_t bytes);

/*
 * On the fiber of the request that has made the part: waits until what is kept has room for the
 * part. Fails as net_memory_reserve() does.
 */
MUST_USE enum status net_memory_part_admit(struct budget_part *p, struct net_session *s);

/*
 * Counts `n` bytes more, and returns false if there is no memory for them. `insists`: they may also
 * take what the budget leaves for short requests.
 */
bool net_memory_part_use(struct budget_part *p, size_t n, bool insists);

/*
 * From net_memory_part_rest() on, no request uses the object. While others wait for memory, objects
 * that have been unused for BUDGET_STALL_MS are told to end, the longest unused first; the owner
 * checks for that now and then (budget_is_unwanted()). net_memory_part_rouse(): a request uses the
 * object again.
 */
void net_memory_part_rest(struct budget_part *p);
void net_memory_part_rouse(struct budget_part *p);

#endif
