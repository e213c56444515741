/* Addresses as operators write them: HOST:PORT, IPv6 in brackets. See base/address_path.h, too. */
#ifndef FROND_BASE_ADDRESS_H
#define FROND_BASE_ADDRESS_H

#include <stdint.h>

#include "base/status.h"
#include "base/str.h"

enum {
	ADDRESS_HOST_BYTES = 256,
	ADDRESS_TEXT_BYTES = ADDRESS_HOST_BYTES + 16,
};

/*
 * Splits an address such as "127.0.0.1:5984", "[::1]:0" or "localhost:80". `ret_host` gets the host
 * without brackets. Returns STATUS_INVALID, explained in `err`, for any other text.
 */
MUST_USE enum status address_parse(const char *host_port, char ret_host[ADDRESS_HOST_BYTES],
				   uint16_t *ret_port, struct err *err);

/*
 * STATUS_INVALID unless a server can listen there: `host` is an IP address, without brackets, or
 * "localhost". `text` is what the operator has written, for the message.
 */
MUST_USE enum status address_check_host(const char *host, const char *text, struct err *err);

/*
 * True if two servers of this machine could not both listen at one port of these hosts: they are
 * the same, or one stands for all addresses of the other's kind, IPv4 or IPv6. A path overlaps only
 * with itself. Any other text than an IP address or "localhost" never does.
 */
bool address_overlaps(const char *a, const char *b);

/* True for "localhost", an address 127.x.y.z, and "::1": only this machine can reach the host. */
bool address_is_loopback(const char *host);

/* The same for the host of a URL or a Host header, with or without a port: IPv6 has brackets. */
bool address_names_loopback(struct str host);

/* Writes "HOST:PORT", IPv6 in brackets, "localhost" as 127.0.0.1; of a path, the path alone. */
void address_write(const char *host, uint16_t port, char ret[ADDRESS_TEXT_BYTES]);

/*
 * The host by which a program on this machine reaches what is bound to `host`: of "any address" it
 * is the loopback's, otherwise `host` itself.
 */
const char *address_to_reach(const char *host);

/*
 * Who a peer is, for limits by address: an IPv4 address, or the first 64 bits of an IPv6 address,
 * since whoever has one IPv6 address usually has all that begin like it.
 */
struct address_block {
	uint8_t bytes[16];
};

/* Of a peer such as "[::1]:40312". Another text is taken as it is, up to its last colon. */
void address_block_of(struct str peer, struct address_block *ret);

static inline bool
address_block_eq(const struct address_block *a, const struct address_block *b)
{
	return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

#endif
