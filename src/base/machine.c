#include "base/machine.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	LINE_BYTES = 4096 + 256
};

/* Lowers the limit to what the file says, if it says a number ("max" is none). */
static void
limit_by(const char *file, uint64_t *bytes)
{
	FILE *f = fopen(file, "re");
	unsigned long long limit;

	if (!f)
		return;
	if (fscanf(f, "%llu", &limit) == 1 && limit > 0 && limit < *bytes)
		*bytes = limit;
	(void)fclose(f);
}

/*
 * Lowers the limit to the lowest of those of a group and of all groups that it lies in. A container
 * may be told the path that its group has outside, where the container cannot look. The directory
 * in which the search ends, the mounted one, is then the container's own group.
 */
static void
limit_by_groups(const char *root, const char *mount, const char *path, const char *name,
		uint64_t *bytes)
{
	char group[LINE_BYTES], file[PATH_MAX];
	char *end;

	(void)snprintf(group, sizeof(group), "%s", path);
	for (;;) {
		end = strrchr(group, '/');
		if (end && !end[1])
			*end = '\0';
		if (snprintf(file, sizeof(file), "%s%s%s/%s", root, mount, group, name) <
		    (int)sizeof(file))
			limit_by(file, bytes);
		end = strrchr(group, '/');
		if (!end)
			return;
		*end = '\0';
	}
}

/* Whether a word of a list with commas is `name`. */
static bool
has_word(const char *list, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = list; (at = strstr(at, name)); at += length)
		if ((at == list || at[-1] == ',') && (!at[length] || at[length] == ','))
			return true;
	return false;
}

uint64_t
machine_memory_bytes_below(const char *root, uint64_t bytes)
{
	char line[LINE_BYTES];
	FILE *groups;

	(void)snprintf(line, sizeof(line), "%s/proc/self/cgroup", root);
	groups = fopen(line, "re");
	if (!groups)
		return bytes;
	/* A line is a number, the controllers (none: the second interface) and the path. */
	while (fgets(line, sizeof(line), groups)) {
		char *controllers = strchr(line, ':');
		char *path = controllers ? strchr(controllers + 1, ':') : NULL;

		if (!path)
			continue;
		*path++ = '\0';
		controllers++;
		path[strcspn(path, "\n")] = '\0';
		if (!*controllers)
			limit_by_groups(root, "/sys/fs/cgroup", path, "memory.max", &bytes);
		else if (has_word(controllers, "memory"))
			limit_by_groups(root, "/sys/fs/cgroup/memory", path,
					"memory.limit_in_bytes", &bytes);
	}
	(void)fclose(groups);
	return bytes;
}

uint64_t
machine_installed_bytes(void)
{
	long pages = sysconf(_SC_PHYS_PAGES);
	long page_bytes = sysconf(_SC_PAGESIZE);

	return pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : 1;
}

uint64_t
machine_memory_bytes(void)
{
	return machine_memory_bytes_below("", machine_installed_bytes());
}
