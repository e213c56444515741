#include "door/rows/conn/state.h"

const char *
rows_state_of(enum status status)
{
	switch ((int)status) {
	case STATUS_TX_CONFLICT:
	case STATUS_TX_TOO_OLD:
		return ROWS_STATE_CONFLICT;
	case STATUS_TX_UNKNOWN:
		return ROWS_STATE_UNKNOWN;
	case STATUS_NOMEM:
	case STATUS_LIMIT:
		return ROWS_STATE_MEMORY;
	case STATUS_BUSY:
	case STATUS_TOO_MANY:
		return ROWS_STATE_BUSY;
	case STATUS_TX_TOO_LARGE:
	case STATUS_KEY_TOO_LARGE:
	case STATUS_VALUE_TOO_LARGE:
	case STATUS_STEPS:
		return ROWS_STATE_TOO_LARGE;
	case STATUS_CANCELLED:
	case STATUS_TIMEOUT:
		return ROWS_STATE_CANCELLED;
	case STATUS_FULL:
		return "53100";
	case STATUS_UNAVAILABLE:
	case STATUS_LOCKED:
		return "57P03";
	case STATUS_STANDBY:
		return ROWS_STATE_READ_ONLY;
	case STATUS_UNAUTHORIZED:
		return ROWS_STATE_PASSWORD;
	case STATUS_FORBIDDEN:
		return ROWS_STATE_RIGHT;
	case STATUS_UNSUPPORTED:
		return ROWS_STATE_UNSUPPORTED;
	case STATUS_INVALID:
		return ROWS_STATE_INVALID;
	case STATUS_CORRUPT:
	case STATUS_NEWER:
		return "XX001";
	case STATUS_IO:
		return "58030";
	default:
		return "XX000";
	}
}
