/*
 * What a connection gives back when a request is answered, and what it keeps for the next one:
 * alike at every door with connections that stay.
 *
 * Threading: on the connection's fiber.
 */
#ifndef FROND_SERVE_SETTLE_H
#define FROND_SERVE_SETTLE_H

#include "serve/clients.h"

enum {
	SETTLE_KEPT_BYTES = 16 * 1024, /* of a buffer that is kept for the next request */
};

/* Empties a buffer, and frees it if it is larger than what is kept. */
void settle_buffer(struct buf *b);

/*
 * What has come together is answered: ends what was asked for (ops_leave()), and gives memory that
 * was set aside and not used to others. No other fiber uses the connection's part of the memory.
 */
void settle_request(struct clients_entry *e);

#endif
