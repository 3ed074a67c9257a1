// SPDX-License-Identifier: Apache-2.0
// JSON lists.
#include "mtc/builtin-internal.h"

#include <errno.h>

int builtin_JsonArrayCreate(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return vm_make_json(vm, mt_json_new_array(), ret);
}

int builtin_StringToJsonArray(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return vm_parse_json(vm, vm_text(args[0]), MT_MTC_JSON_ARRAY, ret);
}

int builtin_JsonArrayToString(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return vm_write_json(vm, args[0], 0, ret);
}

int builtin_JsonArrayToPrettyString(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return vm_write_json(vm, args[0], MT_JSON_PRETTY, ret);
}

// ---- looking ----

int builtin_JsonArrayCount(mt_vm *vm, vm_value *args, vm_value *ret)
{
    *ret = vm_int((int64_t)mt_json_count(args[0].json->json));
    return 0;
}

// args: the list and the position.
static int get(mt_vm *vm, const vm_value *args, mt_mtc_type type, vm_value *ret)
{
    int64_t i = args[1].number;
    vm_what what = {.kind = VM_WHAT_ITEM, .item = i};
    const mt_json *item = mt_json_at(args[0].json->json, (size_t)i);

    return item ? vm_from_json(vm, item, type, &what, ret) : vm_check_item(vm, args[0], i, false);
}

int builtin_JsonArrayType(mt_vm *vm, vm_value *args, vm_value *ret)
{
    const mt_json *item;

    if (vm_check_item(vm, args[0], args[1].number, false) < 0)
        return -1;
    item = mt_json_at(args[0].json->json, (size_t)args[1].number);
    return vm_make_string(vm, mt_str_of(vm_kind_word(item)), ret);
}

int builtin_JsonArrayGet(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return get(vm, args, MT_MTC_STRING, ret);
}

int builtin_JsonArrayGetInt(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return get(vm, args, MT_MTC_INT, ret);
}

int builtin_JsonArrayGetDecimal(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return get(vm, args, MT_MTC_DECIMAL, ret);
}

int builtin_JsonArrayGetBool(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return get(vm, args, MT_MTC_BOOL, ret);
}

int builtin_JsonArrayGetGuid(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return get(vm, args, MT_MTC_GUID, ret);
}

int builtin_JsonArrayGetObject(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return get(vm, args, MT_MTC_JSON_OBJECT, ret);
}

int builtin_JsonArrayGetArray(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return get(vm, args, MT_MTC_JSON_ARRAY, ret);
}

int builtin_JsonArrayContains(mt_vm *vm, vm_value *args, vm_value *ret)
{
    const mt_json *array = args[0].json->json;
    mt_str value = vm_text(args[1]), text;
    bool found = false;

    for (size_t i = 0; i < mt_json_count(array) && !found; i++) {
        if (!mt_json_as_str(mt_json_at(array, i), &text) || text.len != value.len)
            continue;
        vm_spend(vm, value.len);
        found = memcmp(text.data, value.data, value.len) == 0;
    }
    vm_spend(vm, mt_json_count(array));
    *ret = vm_bool(found);
    return 0;
}

// ---- changing ----

// The list with one more item, which is taken over; NULL when the run has ended.
static int add(mt_vm *vm, vm_value *array, mt_json *item, vm_value *ret)
{
    mt_json *json = item ? vm_change_begin(vm, array, item, 0) : NULL;

    if (!json) {
        (void)mt_json_unref(item);
        return -1;
    }
    return vm_change_end(vm, array, json, mt_json_append(json, item), ret);
}

int builtin_JsonArrayAddString(mt_vm *vm, vm_value *args, vm_value *ret)
{
    vm_spend(vm, args[1].string->len);
    return add(vm, &args[0], vm_to_json(vm, args[1]), ret);
}

int builtin_JsonArrayAddInt(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return add(vm, &args[0], vm_to_json(vm, args[1]), ret);
}

int builtin_JsonArrayAddDecimal(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return add(vm, &args[0], vm_to_json(vm, args[1]), ret);
}

int builtin_JsonArrayAddBool(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return add(vm, &args[0], mt_json_new_bool(args[1].truth), ret);
}

int builtin_JsonArrayAddGuid(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return add(vm, &args[0], vm_to_json(vm, args[1]), ret);
}

int builtin_JsonArrayAddObject(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return add(vm, &args[0], vm_to_json(vm, args[1]), ret);
}

int builtin_JsonArrayAddArray(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return add(vm, &args[0], vm_to_json(vm, args[1]), ret);
}

int builtin_JsonArrayAddNull(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return add(vm, &args[0], mt_json_new_null(), ret);
}

// Where nothing but the item changes: neither weight nor height of what the variable alone has.
static bool swap(vm_value *array, int64_t i, mt_json *item, vm_value *ret)
{
    if (!vm_is_own(*array) || !mt_json_swap_at(array->json->json, (size_t)i, item))
        return false;
    vm_move(ret, array);
    array->kind = VM_NONE;
    return true;
}

// The list with that item in place of the one at i. It is taken over; NULL when the run has ended.
static int set(mt_vm *vm, vm_value *array, int64_t i, mt_json *item, vm_value *ret)
{
    mt_json *json;

    if (item && swap(array, i, item, ret))
        return 0;
    if (!item || vm_check_item(vm, *array, i, false) < 0 ||
        !(json = vm_change_begin(vm, array, item, 0))) {
        (void)mt_json_unref(item);
        return -1;
    }
    return vm_change_end(vm, array, json, mt_json_set_at(json, (size_t)i, item), ret);
}

int builtin_JsonArraySetString(mt_vm *vm, vm_value *args, vm_value *ret)
{
    vm_spend(vm, args[2].string->len);
    return set(vm, &args[0], args[1].number, vm_to_json(vm, args[2]), ret);
}

int builtin_JsonArraySetInt(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return set(vm, &args[0], args[1].number, vm_to_json(vm, args[2]), ret);
}

int builtin_JsonArraySetDecimal(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return set(vm, &args[0], args[1].number, vm_to_json(vm, args[2]), ret);
}

int builtin_JsonArraySetBool(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return set(vm, &args[0], args[1].number, mt_json_new_bool(args[2].truth), ret);
}

int builtin_JsonArraySetGuid(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return set(vm, &args[0], args[1].number, vm_to_json(vm, args[2]), ret);
}

int builtin_JsonArraySetObject(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return set(vm, &args[0], args[1].number, vm_to_json(vm, args[2]), ret);
}

int builtin_JsonArraySetArray(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return set(vm, &args[0], args[1].number, vm_to_json(vm, args[2]), ret);
}

int builtin_JsonArraySetNull(mt_vm *vm, vm_value *args, vm_value *ret)
{
    return set(vm, &args[0], args[1].number, mt_json_new_null(), ret);
}

int builtin_JsonArrayRemove(mt_vm *vm, vm_value *args, vm_value *ret)
{
    mt_json *json;

    if (vm_check_item(vm, args[0], args[1].number, false) < 0)
        return -1;
    json = vm_change_begin(vm, &args[0], NULL, 0);
    if (!json)
        return -1;
    vm_spend(vm, (mt_json_count(json) - (size_t)args[1].number) * sizeof(void *));
    (void)mt_json_remove_at(json, (size_t)args[1].number);
    return vm_change_end(vm, &args[0], json, 0, ret);
}

int builtin_JsonArrayConcat(mt_vm *vm, vm_value *args, vm_value *ret)
{
    const mt_json *other = args[1].json->json;
    mt_json *json = vm_change_begin(vm, &args[0], other, 0);
    int r = 0;

    if (!json)
        return -1;
    vm_spend(vm, mt_json_count(other) * sizeof(void *));
    for (size_t i = 0; i < mt_json_count(other) && r == 0; i++)
        r = mt_json_append(json, mt_json_ref(mt_json_at(other, i)));
    return vm_change_end(vm, &args[0], json, r, ret);
}

// ---- others of the items ----

int builtin_JsonArraySlice(mt_vm *vm, vm_value *args, vm_value *ret)
{
    const mt_json *array = args[0].json->json;
    _cleanup_json_ mt_json *list = NULL;
    size_t start, count;

    if (vm_check_item(vm, args[0], args[1].number, true) < 0 ||
        vm_check_count(vm, "count", args[2].number) < 0)
        return -1;
    start = (size_t)args[1].number;
    count = MT_MIN(mt_json_count(array) - start, (size_t)args[2].number);
    vm_spend(vm, count * sizeof(void *));
    list = mt_json_new_array();
    for (size_t i = start; i < start + count; i++)
        (void)mt_json_append(list, mt_json_ref(mt_json_at(array, i)));
    return mt_json_ok(list) ? vm_make_json(vm, MT_TAKE_PTR(list), ret) : vm_no_memory(vm);
}

int builtin_JsonArrayReverse(mt_vm *vm, vm_value *args, vm_value *ret)
{
    const mt_json *array = args[0].json->json;
    _cleanup_json_ mt_json *list = mt_json_new_array();

    vm_spend(vm, mt_json_count(array) * sizeof(void *));
    for (size_t i = mt_json_count(array); i-- > 0;)
        (void)mt_json_append(list, mt_json_ref(mt_json_at(array, i)));
    return mt_json_ok(list) ? vm_make_json(vm, MT_TAKE_PTR(list), ret) : vm_no_memory(vm);
}

// An item as it is sorted. Its text is the item's own, or stands in a buffer that may still move:
// then data is NULL, and the text begins at `begin`.
typedef struct sort_item {
    mt_str text;
    size_t begin, position;
    const mt_json *json;
} sort_item;

enum { SORT_TEXTS = 4 * MT_VM_STRING }; // bytes of texts that are made to sort by

static void take_text(sort_item *item, mt_buf *texts)
{
    item->text = mt_json_str(item->json);
    item->begin = texts->len;
    if (item->text.len == 0) {
        (void)vm_add_json_text(item->json, texts);
        item->text = (mt_str){NULL, texts->len - item->begin};
    }
}

static int compare(const void *a, const void *b)
{
    const sort_item *x = a, *y = b;
    size_t len = MT_MIN(x->text.len, y->text.len);
    int r = len ? memcmp(x->text.data, y->text.data, len) : 0;

    if (r == 0)
        r = (x->text.len > y->text.len) - (x->text.len < y->text.len);
    return r ? r : (x->position > y->position) - (x->position < y->position);
}

// Looks up the texts; returns how many bytes they have. -1 thrown or ended.
static int64_t take_texts(mt_vm *vm, const mt_json *array, sort_item *items, mt_buf *texts)
{
    size_t count = mt_json_count(array);
    int64_t bytes = 0;

    for (size_t i = 0; i < count; i++) {
        items[i] = (sort_item){.position = i, .json = mt_json_at(array, i)};
        take_text(&items[i], texts);
        bytes += (int64_t)items[i].text.len;
    }
    if (texts->failed == -EMSGSIZE)
        return vm_throw(vm, "TooLarge", "the texts of the items take more than %d MiB",
                        SORT_TEXTS >> 20);
    if (texts->failed)
        return vm_no_memory(vm);
    for (size_t i = 0; i < count; i++) {
        if (!items[i].text.data)
            items[i].text.data = mt_buf_str(texts) + items[i].begin;
    }
    return bytes;
}

static size_t log2_of(size_t n)
{
    size_t log = 1;

    while (n >>= 1)
        log++;
    return log;
}

int builtin_JsonArraySort(mt_vm *vm, vm_value *args, vm_value *ret)
{
    const mt_json *array = args[0].json->json;
    size_t count = mt_json_count(array);
    _cleanup_free_ sort_item *items = calloc(count + 1, sizeof(*items));
    _cleanup_buf_ mt_buf texts = MT_BUF_INIT(SORT_TEXTS);
    _cleanup_json_ mt_json *list = NULL;
    int64_t bytes;

    if (!items)
        return vm_no_memory(vm);
    bytes = take_texts(vm, array, items, &texts);
    if (bytes < 0)
        return -1;
    vm_spend(vm, ((size_t)bytes + count * sizeof(*items)) * log2_of(count));
    qsort(items, count, sizeof(*items), compare);
    list = mt_json_new_array();
    for (size_t i = 0; i < count; i++)
        (void)mt_json_append(list, mt_json_ref(items[i].json));
    return mt_json_ok(list) ? vm_make_json(vm, MT_TAKE_PTR(list), ret) : vm_no_memory(vm);
}
