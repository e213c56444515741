/* Limits of the door for rows, and what the process gives it. */
#ifndef FROND_DOOR_ROWS_CONN_ROWS_CONFIG_H
#define FROND_DOOR_ROWS_CONN_ROWS_CONFIG_H

struct kv_store;
struct people_news;
struct rows_settings;
struct settings_live;

enum {
	ROWS_OUTPUT_BYTES = 1024 * 1024,        /* of answers that a client has not read */
	ROWS_REPLY_BYTES = 32 * 1024 * 1024,    /* of one answer */
	ROWS_PAGE_BYTES = 1024 * 1024,          /* of a page of a scan, about, if none are named */
	ROWS_PAGE_MOST_BYTES = 8 * 1024 * 1024, /* likewise, at most */
	ROWS_SAVEPOINTS = 1000,                 /* of a transaction that are open at a time */
	ROWS_UNDO_BYTES = 16 * 1024 * 1024,     /* of rows that a savepoint may bring back */
	ROWS_TXN_TABLES = 1000,                 /* that a transaction uses */
	ROWS_TXN_BYTES = 16 * 1024 * 1024,      /* of what is kept of these */
};

struct rows_config {
	struct kv_store *store;
	struct settings_live *live; /* who may log in */
	struct people_news *news;   /* tells when they change; NULL: nothing does */
	const struct rows_settings *settings;
};

#endif
