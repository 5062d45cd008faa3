/* SPDX-License-Identifier: MIT
 *
 * seeds.c: writes the kept corpus of fuzz_view: small segments in which every list has an element. Layout as segment.h
 * says; the members area comes last, so that the zeros which fuzz_view appends complete it.
 */
#include <stdio.h>
#include <string.h>

#include "segment.h"

typedef struct small_segment {
    ct__header header;
    ct__record records[CT__RECORDS_PER_CHUNK];
    ct__slot slots[2];
    ct__histogram histogram;
    char texts[64];
    uint64_t members[8];
} small_segment;

static small_segment file;

#define AT(part) (uint32_t) offsetof(small_segment, part)

static void fill_header(void) {
    ct__header *header = &file.header;
    header->magic = CT__MAGIC;
    header->endian = CT__ENDIAN;
    header->major = CT__LAYOUT_MAJOR;
    header->header_size = sizeof *header;
    header->record_size = sizeof(ct__record);
    header->slot_size = sizeof(ct__slot);
    header->histogram_size = sizeof(ct__histogram);
    header->records = 2;
    header->chunks[0] = AT(records);
    header->members_at = AT(members);
}

static void fill_records(void) {
    memcpy(file.texts, "shop/shop.handle\0a sentence\0x/ab", 33);
    for (int i = 0; i < 2; i++) {
        ct__record *record = &file.records[i];
        record->state = 3;
        record->listed = 1;
        record->key = AT(texts) + (i == 0 ? 0 : 28);
        record->key_length = i == 0 ? 16 : 4;
        record->category_length = i == 0 ? 4 : 1;
        record->help = AT(texts) + 17;
        record->help_length = 10;
        record->first_slot = AT(slots);
        file.slots[i].generation = 1;
        file.slots[i].calls = file.slots[i].entered = file.slots[i].finished = 1;
        file.slots[i].owner = (uint32_t)i;
        file.slots[i].histogram = AT(histogram);
    }
    file.slots[0].next = AT(slots) + (uint32_t)sizeof(ct__slot);
}

static void save(const char *folder, const char *name, int mode, size_t size) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *to = fopen(path, "wb");
    if (to == NULL) return;
    fputc(mode, to);
    fwrite(&file, 1, size, to);
    fclose(to);
}

int main(int count, char **arguments) {
    if (count != 2) return 1;
    fill_header();
    fill_records();
    save(arguments[1], "live", 4, sizeof file);
    save(arguments[1], "by_copies", 4 | 1, sizeof file);
    file.slots[1].sequence = 5;
    save(arguments[1], "unclean", 4 | 2, sizeof file);
    save(arguments[1], "cut", 0, AT(texts) + 10);
    file.header.major = 2;
    save(arguments[1], "version", 0, sizeof(ct__header));
    return 0;
}
