/* SPDX-License-Identifier: MIT
 *
 * quickstart.c: the four classic cases, one call each. Prints what the thread starts from, then a block per case.
 * With an installed library: cc quickstart.c $(pkg-config --cflags --libs codetimer)
 */
#define _POSIX_C_SOURCE 200809L /* nanosleep */
#include <codetimer.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct text {
    char *bytes;
    size_t length, room;
} text;

/* A measured function returns 0; any other value would end the run as an error. */
static int sleep_a_little(void *arg) {
    (void)arg;
    return nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
}

static int do_nothing(void *arg) {
    (void)arg;
    return 0;
}

static int append(text *t, size_t wanted) {
    if (t->room <= t->length) {
        char *bytes = realloc(t->bytes, wanted);
        if (bytes == NULL) return -1;
        t->bytes = bytes;
        t->room = wanted;
    }
    t->bytes[t->length++] = 'a';
    return 0;
}

/* Every byte asks for memory, against a buffer that doubles when it is full. */
static int concatenate(void *t) { return append(t, ((text *)t)->length + 1); }
static int append_to_buffer(void *t) { return append(t, 2 * ((text *)t)->length + 64); }

int main(void) {
    ct_environment *environment = NULL;
    char lines[1024];
    if (ct_initialize("high", -1, &environment) != CT_OK) return 1;
    ct_environment_format(environment, lines, sizeof lines);
    printf("%s\n", lines);

    text plain = {0}, buffer = {0};
    ct_time("Thread Sleep", 1, sleep_a_little, NULL, NULL, NULL);
    ct_time("Empty Function", 1000000, do_nothing, NULL, NULL, NULL);
    ct_time("String Concat", 20000, concatenate, &plain, NULL, NULL);
    ct_time("Buffer Append", 20000, append_to_buffer, &buffer, NULL, NULL);
    free(plain.bytes);
    free(buffer.bytes);
    ct_environment_restore(environment);
    ct_environment_free(environment);
}
