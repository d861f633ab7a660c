// SPDX-License-Identifier: BSD-3-Clause
// The frames that nf_fuzz.c damages. IPv4's and transport checksums are 0: they are made there. Addresses,
// ports and identifiers are such that what comes back finds the session that nat44's defaults make of what
// went out.
#pragma once

#include <stdint.h>

enum { FRAME_MAX = 200 };

#define MACS    2, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0
#define HOST    198, 18, 0, 1
#define REMOTE  198, 19, 0, 1
#define OUTSIDE 198, 18, 255, 1 // of nat44
#define IPV4_OF(more, bytes, frag, proto, ...)                                                               \
	0x45 + (more), 0, 0, (bytes), 0, 0, (frag) >> 8, (frag)&0xff, 64, (proto), 0, 0, __VA_ARGS__
#define IPV4(more, bytes, frag, proto) IPV4_OF(more, bytes, frag, proto, HOST, REMOTE)
#define BACK(bytes, proto, to)         IPV4_OF(0, bytes, 0, proto, REMOTE, to)
#define IPV6(bytes, proto)                                                                                   \
	0x60, 0, 0, 0, 0, (bytes), (proto), 64, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,      \
	        0x20, 1, 0xd, 0xb8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2
#define UDP      0xc0, 0, 0x70, 0x62, 0, 26, 0, 0
#define TCP      0xc0, 0, 0x70, 0x62, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x02, 1, 0, 0, 0, 0, 0
#define UDP_BACK 0x70, 0x62, 0xc0, 0, 0, 26, 0, 0
#define TCP_BACK 0x70, 0x62, 0xc0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x12, 1, 0, 0, 0, 0, 0
#define ERROR    3, 1, 0, 0, 0, 0, 0, 0
#define FIB(type, sequence, count, family)                                                                   \
	0xf1, 0xb0, 1, (type), 0, 0, 0, 7, 0, 0, 0, (sequence), 0, (count), 0, (family)
#define EIGHTEEN 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18

#define TEMPLATE(...)                                                                                        \
	{                                                                                                    \
		sizeof((uint8_t[]){__VA_ARGS__}),                                                            \
		{                                                                                            \
			__VA_ARGS__                                                                          \
		}                                                                                            \
	}

static const struct template
{
	uint8_t length, data[FRAME_MAX];
}
templates[] = {
        TEMPLATE(MACS, 8, 0, IPV4(0, 46, 0, 17), UDP, EIGHTEEN),
        TEMPLATE(MACS, 8, 0, IPV4(0, 58, 0x4000, 6), TCP, EIGHTEEN),
        TEMPLATE(MACS, 8, 0, IPV4(0, 46, 0, 1), 8, 0, 0, 0, 0, 1, 0, 1, EIGHTEEN),
        // An ICMP error about a datagram of the first template, as it looks outside of a NAT.
        TEMPLATE(MACS, 8, 0, IPV4(0, 56, 0, 1), 3, 1, 0, 0, 0, 0, 0, 0, IPV4(0, 46, 0, 17), UDP),
        TEMPLATE(MACS, 0x81, 0, 0, 5, 8, 0, IPV4(0, 46, 0, 17), UDP, EIGHTEEN),
        TEMPLATE(MACS, 0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 8, 0, IPV4(0, 46, 0, 17), UDP, EIGHTEEN),
        TEMPLATE(MACS, 8, 0, IPV4(1, 50, 0, 17), 1, 1, 1, 0, UDP, EIGHTEEN),
        TEMPLATE(MACS, 8, 0, IPV4(1, 50, 0, 17), 131, 3, 4, 0, UDP, EIGHTEEN),
        TEMPLATE(MACS, 8, 0, IPV4(0, 46, 0x2000, 17), UDP, EIGHTEEN),
        TEMPLATE(MACS, 8, 0, IPV4(0, 46, 0x0003, 17), UDP, EIGHTEEN),
        TEMPLATE(MACS, 0x86, 0xdd, IPV6(26, 17), UDP, EIGHTEEN),
        TEMPLATE(MACS, 0x86, 0xdd, IPV6(38, 6), TCP, EIGHTEEN),
        TEMPLATE(MACS, 0x86, 0xdd, IPV6(34, 44), 17, 0, 0, 1, 0, 0, 0, 1, UDP, EIGHTEEN),
        TEMPLATE(MACS, 0x86, 0xdd, IPV6(50, 0), 60, 0, 0, 0, 0, 0, 0, 0, 43, 0, 0, 0, 0, 0, 0, 0, 17, 0, 0, 0,
                 0, 0, 0, 0, UDP, EIGHTEEN),
        TEMPLATE(MACS, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 0, 198, 18, 0, 1, 0, 0, 0, 0, 0, 0, 198,
                 19, 0, 1),
        // What comes back, through a NAT and without one; and errors about it, and about what went out.
        TEMPLATE(MACS, 8, 0, BACK(46, 17, OUTSIDE), UDP_BACK, EIGHTEEN),
        TEMPLATE(MACS, 8, 0, BACK(58, 6, OUTSIDE), TCP_BACK, EIGHTEEN),
        TEMPLATE(MACS, 8, 0, BACK(46, 1, OUTSIDE), 0, 0, 0, 0, 0xc0, 1, 0, 1, EIGHTEEN),
        TEMPLATE(MACS, 8, 0, BACK(46, 17, HOST), UDP_BACK, EIGHTEEN),
        TEMPLATE(MACS, 8, 0, BACK(46, 17, REMOTE), UDP_BACK, EIGHTEEN),
        TEMPLATE(MACS, 8, 0, BACK(56, 1, OUTSIDE), ERROR, IPV4_OF(0, 46, 0, 17, OUTSIDE, REMOTE), UDP),
        TEMPLATE(MACS, 8, 0, BACK(68, 1, OUTSIDE), ERROR, IPV4_OF(0, 58, 0, 6, OUTSIDE, REMOTE), TCP),
        TEMPLATE(MACS, 8, 0, BACK(56, 1, REMOTE), ERROR, IPV4_OF(0, 46, 0, 17, REMOTE, REMOTE), UDP),
        TEMPLATE(MACS, 8, 0, IPV4(0, 56, 0, 1), ERROR, BACK(46, 17, HOST), UDP_BACK),
        TEMPLATE(MACS, 8, 0, IPV4(0, 46, 0, 1), 8, 0, 0, 0, 0xc0, 1, 0, 1, EIGHTEEN),
        TEMPLATE(MACS, 0x86, 0xdd, IPV6(26, 58), 128, 0, 0, 0, 0, 1, 0, 1, EIGHTEEN),
        // FIB update messages (fib/fib_message.h): HELLO, a next hop, a route to it.
        TEMPLATE(MACS, 0x88, 0xb5, FIB(1, 1, 0, 0), EIGHTEEN, EIGHTEEN),
        TEMPLATE(MACS, 0x88, 0xb5, FIB(3, 2, 1, 0), 2, 1, 0, 1, 0, 0, 0, 0, 2, 0, 0, 0, 9, 1, 0, 0, 0, 0, 0,
                 0, EIGHTEEN),
        TEMPLATE(MACS, 0x88, 0xb5, FIB(2, 3, 1, 4), 1, 24, 0, 1, 198, 19, 0, 0, EIGHTEEN, EIGHTEEN),
};
enum { TEMPLATES = sizeof(templates) / sizeof(templates[0]) };
