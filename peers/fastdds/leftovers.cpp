/* Finds the shared memory of this process in what /proc says of it. */
#include "leftovers.h"

#include <dirent.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstring>
#include <string>

namespace {

/* How the files of its segments, ports, locks and data-sharing pools begin. */
const char *const prefixes[] = {"/dev/shm/fastrtps_", "/dev/shm/sem.fastrtps_", "/dev/shm/fast_datasharing_"};

/* A port has a semaphore too, which stands open only while the port is opened. */
constexpr char PORT[] = "/dev/shm/fastrtps_port";

void remove_if_ours(const char *path)
{
    for (const char *prefix : prefixes)
        if (std::strncmp(path, prefix, std::strlen(prefix)) == 0)
            unlink(path);
    if (std::strncmp(path, PORT, sizeof PORT - 1) == 0)
        unlink(("/dev/shm/sem.fastrtps_port" + std::string(path + sizeof PORT - 1) + "_mutex").c_str());
}

void remove_mapped()
{
    char line[PATH_MAX + 128];
    std::FILE *maps = std::fopen("/proc/self/maps", "re");
    if (maps == nullptr)
        return;
    while (std::fgets(line, sizeof line, maps) != nullptr) {
        line[std::strcspn(line, "\n")] = '\0';
        if (const char *path = std::strchr(line, '/'))
            remove_if_ours(path);
    }
    std::fclose(maps);
}

void remove_open()
{
    DIR *files = opendir("/proc/self/fd");
    if (files == nullptr)
        return;
    while (const dirent *file = readdir(files)) {
        char path[PATH_MAX];
        const std::string link = std::string("/proc/self/fd/") + file->d_name;
        const ssize_t length = readlink(link.c_str(), path, sizeof path - 1);
        if (length <= 0)
            continue;
        path[length] = '\0';
        remove_if_ours(path);
    }
    closedir(files);
}

} // namespace

void remove_shared_memory()
{
    remove_mapped();
    remove_open();
}
