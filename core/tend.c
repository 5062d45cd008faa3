/* SPDX-License-Identifier: MIT
 *
 * tend.c: the housekeeping, which rides on calls of the process: there is no thread for it.
 */
#include "codetimer.h"
#include "config.h"
#include "platform/platform.h"
#include "publish.h"
#include "registry.h"

static const uint64_t seldom_ns = 1000000000, often_ns = 250000000;

static uint64_t do_all(int writer) {
    ct__config_begin();
    ct__config_look();
    ct__os_lock();
    ct__publish_tend(writer);
    ct__selection_follow();
    uint64_t changes = ct__selection_changes();
    ct__os_unlock();
    return changes;
}

void ct__tend(int writer) { (void)do_all(writer); }
uint64_t ct__tend_every_ns(void) { return ct__config_follows() ? often_ns : seldom_ns; }

uint64_t ct_poll(void) { return do_all(0); }
