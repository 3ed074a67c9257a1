// SPDX-License-Identifier: Apache-2.0
// Whose turn it is: users are letters, builds are numbers.
#include "base/tap.h"
#include "runner/layer-turns.h"

#include <stdio.h>

enum { ALL = 3, BUILDS = 100 };

static int builds[BUILDS]; // only their addresses are used

typedef struct queue {
    turns turns;
    turns_wait waits[BUILDS];
    size_t count;
} queue;

static void wants(queue *q, const char *who, unsigned number)
{
    q->waits[q->count++] =
        (turns_wait){.who = who, .what = &builds[number], .number = number, .ready = true};
}

static void set(queue *q, const void *what, bool running)
{
    for (size_t i = 0; i < q->count; i++)
        if (q->waits[i].what == what)
            q->waits[i].running = running;
}

// Begins the next one: its number, or -1.
static int begin(queue *q)
{
    const turns_wait *next = turns_next(&q->turns, q->waits, q->count);

    if (!next)
        return -1;
    turns_served(&q->turns, next->who);
    set(q, next->what, true);
    return (int)next->number;
}

static void end(queue *q, unsigned number)
{
    size_t kept = 0;

    for (size_t i = 0; i < q->count; i++)
        if (q->waits[i].number != number)
            q->waits[kept++] = q->waits[i];
    q->count = kept;
}

static void test_order_of_one(void)
{
    queue q = {.count = 0};

    CHECK_INT(begin(&q), -1);
    wants(&q, "a", 2); // a newer run stands before an older one in the runner's list
    wants(&q, "a", 1);
    wants(&q, "a", 3);
    CHECK_INT(begin(&q), 1);
    CHECK_INT(begin(&q), 2);
    CHECK_INT(begin(&q), -1); // the last builder is kept for others
    end(&q, 1);
    CHECK_INT(begin(&q), 3);
}

static void test_one_does_not_hold_up_another(void)
{
    queue q = {.count = 0};

    for (unsigned i = 0; i < 20; i++)
        wants(&q, "a", i);
    CHECK_INT(begin(&q), 0);
    CHECK_INT(begin(&q), 1);
    wants(&q, "b", 50);
    CHECK_INT(begin(&q), 50);
}

// Three builders, four users with many each: whoever's build ends, each is served in turn.
static void test_each_in_turn(void)
{
    static const char *const users[] = {"a", "b", "c", "d"};
    unsigned begun[4] = {0};
    queue q = {.count = 0};
    int running[ALL];

    for (unsigned i = 0; i < 40; i++) // all of a's were wanted first
        wants(&q, users[i / 10], i);
    for (size_t i = 0; i < ALL; i++) {
        running[i] = begin(&q);
        begun[running[i] / 10]++;
    }
    for (size_t i = 0; i < 21; i++) {
        int *slot = &running[i % ALL];

        end(&q, (unsigned)*slot);
        *slot = begin(&q);
        CHECK(*slot >= 0);
        if (*slot < 0)
            return;
        begun[*slot / 10]++;
    }
    for (size_t i = 0; i < 4; i++)
        CHECK_INT(begun[i], 6);
}

// A build is everybody's who waits for it: the turn of any of them is its turn.
static void test_shared(void)
{
    queue q = {.count = 0};

    for (unsigned i = 0; i < 10; i++)
        wants(&q, "a", i);
    wants(&q, "b", 9);
    wants(&q, "b", 9);
    CHECK_INT(begin(&q), 0);
    CHECK_INT(begin(&q), 9);
    CHECK_INT(begin(&q), -1); // two are a's
}

static void test_not_ready(void)
{
    queue q = {.count = 0};

    wants(&q, "a", 0);
    wants(&q, "a", 1);
    q.waits[0].ready = false;
    CHECK_INT(begin(&q), 1);
    CHECK_INT(begin(&q), -1);
}

// Whoever was served before all that are remembered comes as if he never was.
static void test_many_users(void)
{
    char names[2 * TURNS_KEPT][MT_ID_TEXT];
    queue q = {.count = 0};

    for (size_t i = 0; i < MT_ARRAY_SIZE(names); i++) {
        (void)snprintf(names[i], sizeof(names[i]), "user-%zu", i);
        turns_served(&q.turns, names[i]);
    }
    CHECK_INT(q.turns.count, TURNS_KEPT);
    CHECK_STR(q.turns.served[0], names[MT_ARRAY_SIZE(names) - 1]);
    CHECK_STR(q.turns.served[TURNS_KEPT - 1], names[TURNS_KEPT]);
    turns_served(&q.turns, names[TURNS_KEPT + 1]);
    CHECK_INT(q.turns.count, TURNS_KEPT);
    CHECK_STR(q.turns.served[0], names[TURNS_KEPT + 1]);
    CHECK_STR(q.turns.served[TURNS_KEPT - 1], names[TURNS_KEPT]);
    wants(&q, names[MT_ARRAY_SIZE(names) - 1], 1);
    wants(&q, names[TURNS_KEPT], 2);
    wants(&q, names[0], 3);
    CHECK_INT(begin(&q), 3);
    CHECK_INT(begin(&q), 2);
    CHECK_INT(begin(&q), 1);
}

int main(void)
{
    test_order_of_one();
    test_one_does_not_hold_up_another();
    test_each_in_turn();
    test_shared();
    test_not_ready();
    test_many_users();
    return TAP_DONE();
}
