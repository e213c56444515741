/* The settings of the door for rows (base/setting.h): the section [rows]. */
#ifndef FROND_DOOR_ROWS_CONN_SETTINGS_H
#define FROND_DOOR_ROWS_CONN_SETTINGS_H

#include "door/door.h"

enum {
	ROWS_PORT = 9342,
	ROWS_TLS_PORT = 9343,
};

/* clang-format off */
#define ROWS_SETTINGS(S, NUMBER, FLAG, TEXT)                                                       \
	DOOR_SETTINGS(S, NUMBER, FLAG, TEXT, "rows", "the protocol for rows", ROWS_PORT,           \
		      ROWS_TLS_PORT)                                                               \
	NUMBER(S, txn_seconds, "rows", "transaction_seconds", "s", 1, 3600, 60, SETTING_AT_START,  \
	       "How long a transaction may be open. One that takes longer is rolled back, since "  \
	       "all that others have written meanwhile is kept for it.")                           \
	NUMBER(S, slow_ms, "rows", "slow_ms", "ms", 0, 86400000, 5000, SETTING_AT_START,           \
	       "Requests that take longer are logged.")
/* clang-format on */

SETTING_STRUCT(rows_settings, ROWS_SETTINGS);
DOOR_SETTINGS_ARE_FIRST(rows_settings);

extern const struct setting_group rows_setting_group;

#endif
