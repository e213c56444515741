/*
 * Frames as they come on a connection: one after the other, or in segments of version 5; bodies
 * that are compressed are unpacked. Threading: on the connection's fiber.
 */
#ifndef FROND_DOOR_CQL_INPUT_H
#define FROND_DOOR_CQL_INPUT_H

#include "door/cql/conn/client.h"
#include "door/cql/wire/frame.h"

enum input_result {
	INPUT_FRAME,   /* a whole frame */
	INPUT_ENDED,   /* the client has left, or the process stops */
	INPUT_VERSION, /* a version that is not served: `header` has it and the stream */
	INPUT_MIXED,   /* another version than that of the frames before */
	INPUT_LENGTH,  /* a frame that is longer than it may be; its bytes are skipped */
	INPUT_MEMORY,  /* there is no memory for it, and it was dropped */
	INPUT_CORRUPT, /* bytes that are no segments, or a body that does not unpack */
};

struct input_frame {
	struct frame_header header;
	struct str body; /* until the next call */
	bool again;      /* it was left by a group (flight.h), and `admitted` if that was asked */
	bool admitted;
};

/* Waits for the next frame, and meanwhile sends the client its events. */
enum input_result cql_input_next(struct cql_client *c, struct input_frame *ret);

/*
 * True if a whole frame is there that has no more than CQL_IN_FLIGHT_BYTES, unpacked, so that
 * cql_input_next() waits neither for the client nor for memory.
 */
bool cql_input_has_next(struct cql_client *c);

/* True if more bytes of the client may make that true. */
bool cql_input_grows(const struct cql_client *c);

/* The frame was served: gives its memory back. */
void cql_input_done(struct cql_client *c);

#endif
