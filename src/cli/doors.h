/*
 * The table of doors: every protocol that the program serves beside CouchDB's. All that the program
 * knows of a door it reads from its row (door/door.h): the section of its settings, the options of
 * `frond serve`, how it is opened.
 *
 * Constant data that any thread may read.
 */
#ifndef FROND_CLI_DOORS_H
#define FROND_CLI_DOORS_H

#include "door/door.h"

enum {
	CLI_DOORS = 8, /* the most that the table may have */
};

extern const struct door_type *const cli_doors[];
extern const size_t cli_doors_count;

#endif
