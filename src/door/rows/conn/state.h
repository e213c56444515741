/* SQLSTATEs: what a failure is for clients of PostgreSQL. Threading: none. */
#ifndef FROND_DOOR_ROWS_CONN_STATE_H
#define FROND_DOOR_ROWS_CONN_STATE_H

#include "base/status.h"

#define ROWS_STATE_PROTOCOL      "08P01"
#define ROWS_STATE_UNKNOWN       "08007" /* whether it has committed */
#define ROWS_STATE_UNSUPPORTED   "0A000"
#define ROWS_STATE_CHANGED       "0A000" /* the table is another one than the client knows */
#define ROWS_STATE_RANGE         "22003" /* a number has no place in the column */
#define ROWS_STATE_FORMAT        "22P03" /* bytes that are no value of the kind */
#define ROWS_STATE_UNIQUE        "23505"
#define ROWS_STATE_IN_TXN        "25001"
#define ROWS_STATE_READ_ONLY     "25006"
#define ROWS_STATE_NO_TXN        "25P01"
#define ROWS_STATE_FAILED        "25P02" /* the transaction: it can only be rolled back */
#define ROWS_STATE_TXN_OVER      "25P04" /* it has lasted too long */
#define ROWS_STATE_PASSWORD      "28P01"
#define ROWS_STATE_NO_SAVEPOINT  "3B001"
#define ROWS_STATE_CONFLICT      "40001"
#define ROWS_STATE_RIGHT         "42501"
#define ROWS_STATE_COLUMN        "42703"
#define ROWS_STATE_TABLE         "42P01"
#define ROWS_STATE_INDEX         "42704" /* there is none, or it is not ready */
#define ROWS_STATE_INDEX_EXISTS  "42P07"
#define ROWS_STATE_SCHEMA        "3F000"
#define ROWS_STATE_TABLE_EXISTS  "42P07"
#define ROWS_STATE_SCHEMA_EXISTS "42P06"
#define ROWS_STATE_DEFINITION    "42P16"
#define ROWS_STATE_MEMORY        "53200"
#define ROWS_STATE_BUSY          "53300"
#define ROWS_STATE_TOO_LARGE     "54000"
#define ROWS_STATE_CANCELLED     "57014"
#define ROWS_STATE_INVALID       "22023"

/* The state of a failure that has none of its own. Static. */
const char *rows_state_of(enum status status);

#endif
