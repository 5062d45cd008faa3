/* SPDX-License-Identifier: MIT
 *
 * fuzz_view.c: a reader and a controller on a file of any content (libFuzzer, over the scripted platform).
 *
 * The first byte says how it is read: 1 by copies, 2 its process is dead, 4 zeros follow up to the size of a small
 * segment. Whatever the file says, nothing outside of it is touched, everything ends, and what is refused has a reason.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "codetimer.h"
#include "fake_shm.h"

enum { PADDED = 300000, RECORDS = 8 };

#define PATH "/fake/1-1-0"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition) {
    if (!condition) abort();
}

static void put_file(const uint8_t *data, size_t size, int padded) {
    static unsigned char bytes[PADDED];
    if (!padded || size > PADDED) {
        fake_shm_put(PATH, data, size);
        return;
    }
    memcpy(bytes, data, size);
    memset(bytes + size, 0, PADDED - size);
    fake_shm_put(PATH, bytes, PADDED);
}

static void read_records(ct_view *view) {
    static ct_sample sample;
    ct_view_counter one;
    for (uint32_t i = 0; i < ct_view_end(view) && i < RECORDS; i++) {
        if (ct_view_counter_at(view, i, &one) == CT_OK) {
            require(one.key[one.category_length] == '/' && one.key_length > one.category_length + 1);
            require(one.key[one.key_length] == '\0' && one.help[one.help_length] == '\0');
        }
        int status = ct_view_sample(view, i, i % 2 == 0, &sample);
        require(status == CT_OK || status == CT_EXISTS || status == CT_ENOENT);
        if (status == CT_OK && sample.calls == 0) require(sample.min_ns == 0);
    }
}

/* In a file that contradicts itself the list and the words it switches may lie upon each other, so what is read back
 * need not be what was written. */
static void control(ct_view *view) {
    static char text[70000];
    size_t length;
    ct_view_members(view, text, sizeof text, &length);
    if (ct_view_set_members(view, "a*;!ab", 6) == CT_OK) {
        ct_view_members(view, text, sizeof text, &length);
        ct_view_switch(view, "ab", 2, 1);
    }
    ct_view_acknowledged(view);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ct_process process;
    ct_view *view;
    if (size == 0) return 0;
    fake_shm.by_copies = data[0] & 1;
    fake_shm.dead = data[0] >> 1 & 1;
    put_file(data + 1, size - 1, data[0] >> 2 & 1);
    int status = ct_view_open(PATH, &view, &process);
    require(status == CT_OK || process.reason[0] != '\0');
    if (status != CT_OK) return 0;
    read_records(view);
    control(view);
    ct_view_refresh(view, &process);
    ct_view_close(view);
    return 0;
}
