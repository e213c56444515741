/* Whether what some transactions saw can be explained by running them one after another. */
#ifndef FROND_TESTS_ISO_SERIAL_H
#define FROND_TESTS_ISO_SERIAL_H

#include "spec.h"

enum {
	SERIAL_TEXT_BYTES = 160,
};

/* What became of one session. */
struct serial_session {
	char seen[SERIAL_TEXT_BYTES]; /* the answers to its reads, separated by spaces */
	bool committed;
	int began; /* when its first and its last step were, in steps of all sessions */
	int ended;
};

struct serial_run {
	struct serial_session sessions[SPEC_SESSIONS];
	char stored[SERIAL_TEXT_BYTES]; /* at last: K=V,... */
};

bool serial_explains(const struct spec *spec, const struct serial_run *run);

#endif
