#include "base/parent.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

enum status
parent_sync(const char *path, struct err *err)
{
	char *copy = mem_strdup(str_from_cstr(path));
	enum status status = STATUS_OK;
	int fd;

	if (!copy)
		return err_set(err, STATUS_NOMEM, "out of memory");
	fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fsync(fd) != 0)
		status = err_set(err, STATUS_IO, "syncing the directory of %s: %s", path,
				 strerror(errno));
	if (fd >= 0)
		close(fd);
	mem_free(copy);
	return status;
}
