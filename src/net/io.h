/*
 * Streams of bytes, the seam below connections and listeners. One implementation is TCP on libuv
 * (net/tcp.h), another the tests' twin, whose streams live in memory. The third, TLS (net/tls.h),
 * works on top of either of these; the loop names which.
 *
 * Everything is called on the connection's loop, off or on a fiber. A function that returns false
 * or a negative number has found the stream broken: the caller aborts the connection.
 */
#ifndef FROND_NET_IO_H
#define FROND_NET_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/status.h"
#include "base/str.h"

struct loop;
struct loop_ops;
struct net_conn;

enum {
	NET_PEER_BYTES = 54, /* "[IPv6 address]:port" */
	NET_WRITE_BYTES = 256,
};

/* One write under way: space for the implementation, in memory of the connection's user. */
struct net_write {
	struct net_conn *conn;
	_Alignas(max_align_t) unsigned char space[NET_WRITE_BYTES];
};

/* A place where connections arrive. Made and freed by an implementation. */
struct net_acceptor {
	struct loop *loop; /* on which it accepts */
	/* Takes over the stream that `handle` names. On the acceptor's loop. */
	void (*arrived)(struct net_acceptor *a, intptr_t handle, const char *peer);
	void *arg; /* the callback's */
};

/* What is known of the peer without reading its bytes. */
enum net_peer {
	NET_PEER_THERE,
	NET_PEER_ENDED, /* it has sent its end, behind bytes that may not have been read yet */
	NET_PEER_GONE,  /* the stream is broken */
};

/* Whether a connection is served; otherwise it is only told why not, and closed. */
enum net_refusal {
	NET_ADMITTED = 0,
	NET_TOO_MANY,            /* connections of the process */
	NET_TOO_MANY_OF_ADDRESS, /* connections of that peer's address */
};

struct net_io {
	const struct loop_ops *loop; /* what its loops run on */
	size_t stream_bytes;         /* of its state for a connection, given zeroed */

	/*
	 * Opens a place named "HOST:PORT", or by a path (base/address_path.h), where nobody is
	 * accepted yet. STATUS_INVALID for a name without sense, STATUS_IO, STATUS_NOMEM.
	 */
	enum status (*listen)(const char *host_port, struct net_acceptor **ret, struct err *err);
	uint16_t (*port)(const struct net_acceptor *a);
	/* Accepts from now on. On the thread of `a->loop`, or before it runs. STATUS_IO. */
	enum status (*accept)(struct net_acceptor *a, struct err *err);
	/* Closes and frees it; on that thread, or when it does not run. */
	void (*close_acceptor)(struct net_acceptor *a);

	/* Closes a stream that no connection is made of. */
	void (*drop)(intptr_t handle);
	/* Takes over the stream; false: it has been closed, and close() follows nevertheless. */
	bool (*open)(struct net_conn *c, intptr_t handle);
	/* Has net_conn_on_read() called with what comes, or no more. */
	bool (*read)(struct net_conn *c, bool on);
	/* Looks, without waiting, what has become of the peer; for while nothing is read. */
	enum net_peer (*probe)(const struct net_conn *c);
	/* Writes the address at which the peer has reached this process, "HOST:PORT". NULL: not
	 * known. */
	void (*local)(const struct net_conn *c, char ret[static NET_PEER_BYTES]);
	/*
	 * Sends the pieces as far as this goes without waiting, and returns how many bytes went;
	 * negative if the stream is broken.
	 */
	ssize_t (*try_write)(struct net_conn *c, const struct str *pieces, size_t n);
	/*
	 * Sends `data`, which stays where it is, and then calls net_conn_on_written(). One at a
	 * time.
	 */
	bool (*write)(struct net_conn *c, struct net_write *w, struct str data);
	/* The bytes of that write that have not gone yet. */
	size_t (*unwritten)(const struct net_conn *c);
	/*
	 * The bytes that have gone, and that the peer's side has not confirmed yet. A slow peer
	 * confirms bytes long before it makes room for another write. NULL: not known.
	 */
	size_t (*unconfirmed)(const struct net_conn *c);
	/* Ends the sending direction. */
	bool (*shutdown)(struct net_conn *c);
	/*
	 * The memory that the implementation holds for the connection's output. NULL: it holds
	 * none.
	 */
	size_t (*output_bytes)(const struct net_conn *c);
	/*
	 * Ends a write under way (net_conn_on_written() is called with false) and then calls
	 * net_conn_on_closed(), later. With `reset` the peer cannot take what it got for all.
	 */
	void (*close)(struct net_conn *c, bool reset);

	/*
	 * For an implementation on top of the loop's: called by net_conn_on_read() and the like
	 * with the lower stream's events. NULL in the other implementations.
	 */
	void (*on_read)(struct net_conn *c, ssize_t n);
	void (*on_written)(struct net_conn *c, bool ok);
	void (*on_closed)(struct net_conn *c);
};

#endif
