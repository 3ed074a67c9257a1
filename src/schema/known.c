// SPDX-License-Identifier: Apache-2.0
// The meta-schemas that are built in. tools/embed-text makes the texts of known/*.json.
#include "schema/schema-internal.h"

#include <pthread.h>

const char SCHEMA_URI_2020[] = "https://json-schema.org/draft/2020-12/schema";
const char SCHEMA_URI_7[] = "http://json-schema.org/draft-07/schema";

extern const char text_draft_07_json[], text_draft2020_12_json[],
    text_draft2020_12_applicator_json[], text_draft2020_12_content_json[],
    text_draft2020_12_core_json[], text_draft2020_12_format_annotation_json[],
    text_draft2020_12_meta_data_json[], text_draft2020_12_unevaluated_json[],
    text_draft2020_12_validation_json[];

#define META "https://json-schema.org/draft/2020-12/meta/"
static mt_schema_document documents[] = {
    {SCHEMA_URI_7, {text_draft_07_json, 0}},
    {SCHEMA_URI_2020, {text_draft2020_12_json, 0}},
    {META "applicator", {text_draft2020_12_applicator_json, 0}},
    {META "content", {text_draft2020_12_content_json, 0}},
    {META "core", {text_draft2020_12_core_json, 0}},
    {META "format-annotation", {text_draft2020_12_format_annotation_json, 0}},
    {META "meta-data", {text_draft2020_12_meta_data_json, 0}},
    {META "unevaluated", {text_draft2020_12_unevaluated_json, 0}},
    {META "validation", {text_draft2020_12_validation_json, 0}},
};

static void measure(void)
{
    for (size_t i = 0; i < MT_ARRAY_SIZE(documents); i++)
        documents[i].text = mt_str_of(documents[i].text.data);
}

const mt_schema_document *schema_known(mt_str uri)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, measure);
    for (size_t i = 0; i < MT_ARRAY_SIZE(documents); i++) {
        if (mt_str_eq(uri, documents[i].uri))
            return &documents[i];
    }
    return NULL;
}
