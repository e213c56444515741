/*
 * Which files of a backup are damaged. RocksDB compares their checksums when it restores them, and
 * does not say which one is wrong. The checksums are in the backup's list:
 *
 *     time, sequence number, number of files, and then a line for each: "path crc32 checksum"
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/buf.h"
#include "kv/embedded/embedded_int.h"
#include "kv/embedded/directory.h"

enum {
	CHECK_PATH_BYTES = 4096,
	CHECK_NAMES_BYTES = 400, /* of damaged files that are named */
};

enum status
emb_backup_find_damage(const char *dir, uint32_t id, struct err *err)
{
	char path[CHECK_PATH_BYTES], line[CHECK_PATH_BYTES], name[CHECK_PATH_BYTES];
	AUTO(buf_release) struct buf names = BUF_INIT(CHECK_NAMES_BYTES);
	uint32_t expected, computed;
	FILE *list;

	(void)snprintf(path, sizeof(path), "%s/meta/%" PRIu32, dir, id);
	list = fopen(path, "re");
	if (!list)
		return STATUS_OK;
	while (fgets(line, sizeof(line), list)) {
		bool readable;

		if (sscanf(line, "%4000s crc32 %" SCNu32, name, &expected) != 2)
			continue;
		if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
			continue;
		readable = emb_file_crc(path, &computed);
		if (readable && computed == expected)
			continue;
		buf_printf(&names, "%s%s%s", names.len ? ", " : "", name,
			   readable ? "" : " (cannot be read)");
	}
	(void)fclose(list);
	if (!names.len)
		return STATUS_OK;
	return err_set(err, STATUS_CORRUPT,
		       "backup %" PRIu32 " in %s is damaged: %.*s; restore another one (frond "
		       "backup --list)",
		       id, dir, STR_ARG(buf_str(&names)));
}
