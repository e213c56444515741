/*
 * Shows how far a long command has come: a bar that redraws itself on a terminal, a line every few
 * seconds elsewhere. One thread's.
 */
#ifndef FROND_CLI_PROGRESS_H
#define FROND_CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
	PROGRESS_TEXT_BYTES = 256,
	PROGRESS_TERMINAL_MS = 200, /* between two drawings */
	PROGRESS_PLAIN_MS = 5000,   /* between two lines */
	PROGRESS_BAR_CELLS = 24,
};

/* The numbers that are shown. */
struct progress_now {
	uint64_t docs;
	uint64_t bytes;       /* of the input, read so far */
	uint64_t total_bytes; /* 0: not known, as from a pipe */
	uint64_t elapsed_ms;
};

/*
 * Writes the text without a line's end: with a bar for a terminal, without one otherwise. The time
 * left is guessed from the bytes and left out in the first second.
 */
void progress_format(const struct progress_now *now, bool terminal, char *ret, size_t n);

/* "999 bytes", "1.5 kB", "12.3 MB": three digits, powers of 1000. */
void progress_format_bytes(uint64_t bytes, char *ret, size_t n);

struct progress {
	FILE *out;
	bool terminal;
	bool quiet;
	bool drawn; /* there is a bar on the terminal's current line */
	uint64_t total_bytes;
	uint64_t started_ns;
	uint64_t told_ns;
};

/* `quiet`: nothing is shown. */
void progress_init(struct progress *p, FILE *out, bool quiet, uint64_t total_bytes);

/* Call it as often as you like. */
void progress_update(struct progress *p, uint64_t docs, uint64_t bytes);

/* Takes the bar away, so that a message can have the line; the next update draws it again. */
void progress_hide(struct progress *p);

uint64_t progress_elapsed_ms(const struct progress *p);

#endif
