/* The door for rows, as a row of the program's table of doors. */
#ifndef FROND_DOOR_ROWS_ROWS_DOOR_H
#define FROND_DOOR_ROWS_ROWS_DOOR_H

#include "door/door.h"

extern const struct door_type rows_door_type;

#endif
