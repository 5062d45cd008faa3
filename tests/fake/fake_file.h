/* SPDX-License-Identifier: MIT
 *
 * fake_file.h: the one file that a scripted system has. It says what it is told to say, whatever its path.
 */
#ifndef FAKE_FILE_H
#define FAKE_FILE_H

#include <stddef.h>
#include <stdint.h>

typedef struct fake_file_state {
    int status; /* CT_OK: the text is read; else the refusal to give, with the reason */
    const char *text, *reason;
    size_t length;
    uint64_t stamp;
    char path[4096]; /* that was asked for last */
    int reads;
    int busy;             /* so many reads find it being changed */
    void (*during)(void); /* what others do while it is read */
} fake_file_state;

extern fake_file_state fake_file;

void fake_file_say(const char *text);
void fake_file_refuse(int status, const char *reason);

#endif
