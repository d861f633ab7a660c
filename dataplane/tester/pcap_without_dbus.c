// SPDX-License-Identifier: BSD-3-Clause
// For planed-static. A static libpcap can capture from D-Bus, and wants libdbus, which wants libsystemd,
// which Debian has not as a static library. planed reads files: with these two that part stays out of the
// program.
#include <pcap/pcap.h>

// In libpcap's table of what to capture from (pcap-dbus.h there).
int dbus_findalldevs(void *list, char *error);
pcap_t *dbus_create(const char *device, char *error, int *is_ours);

int dbus_findalldevs(void *list, char *error)
{
	return 0;
}

pcap_t *dbus_create(const char *device, char *error, int *is_ours)
{
	*is_ours = 0;
	return NULL;
}
