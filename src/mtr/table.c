// SPDX-License-Identifier: Apache-2.0
// What each kind of resource may say. One row a property: checking, the canonical form and
// docs/reference/mtr.md come from here.
#include "mtr/kinds-internal.h"

#define PROPS(name, ...)                                 \
    static const mt_prop name##_items[] = {__VA_ARGS__}; \
    static const mt_props name = {name##_items, MT_ARRAY_SIZE(name##_items)}

enum { MIB = 1024 * 1024 };

// ---- capsule ----

static const mt_prop package_item = {
    .name = "packages", .type = MT_PROP_STRING, .max = 255, .rule = mt_rule_package};
static const mt_prop argument_item = {
    .name = "arguments", .type = MT_PROP_STRING, .empty_ok = true};

PROPS(user_members, {.name = "name",
                     .type = MT_PROP_STRING,
                     .required = true,
                     .rule = mt_rule_user,
                     .doc = "`[a-z_][a-z0-9_-]{0,31}`, not one that the image has."});
static const mt_prop user_item = {
    .name = "users", .type = MT_PROP_OBJECT, .members = &user_members};

PROPS(vfs_members,
      {.name = "vfs",
       .type = MT_PROP_REF,
       .ref = MT_REF_VFS,
       .required = true,
       .doc = "The file system, `@ref(\"name\")`. It must exist in the namespace when the capsule "
              "is deployed: `mt vfs-create name`."},
      {.name = "mountName",
       .type = MT_PROP_STRING,
       .required = true,
       .rule = mt_rule_mount_name,
       .doc = "It appears at `/mnt/<mountName>`. `secrets` is taken, and no two mounts have one "
              "name."});
static const mt_prop vfs_item = {.name = "vfs", .type = MT_PROP_OBJECT, .members = &vfs_members};

PROPS(secret_members,
      {.name = "secret",
       .type = MT_PROP_REF,
       .ref = MT_REF_SECRET,
       .required = true,
       .doc = "The secret, `@ref(\"name\")`. It must exist in the namespace when the capsule is "
              "deployed: `mt secret-create name`."},
      {.name = "mountName",
       .type = MT_PROP_STRING,
       .required = true,
       .rule = mt_rule_mount_name,
       .doc = "It appears as the file `/mnt/secrets/<mountName>`, readable by the default user "
              "alone."});
static const mt_prop secret_item = {
    .name = "secrets", .type = MT_PROP_OBJECT, .members = &secret_members};

PROPS(startup_members,
      {.name = "command",
       .type = MT_PROP_STRING,
       .required = true,
       .max = 8 * MIB,
       .doc = "Text for the login shell of the user."},
      {.name = "arguments",
       .type = MT_PROP_LIST,
       .item = &argument_item,
       .max = 10000,
       .doc = "Words that reach the program byte for byte. With arguments the command is one line "
              "that does not end in `;`, `&`, `\\|` or `\\` and has no word that begins with `#`."},
      {.name = "runAsUser",
       .type = MT_PROP_STRING,
       .fallback = "\"maitento\"",
       .doc = "`maitento`, `root` or one of `users`."},
      {.name = "maxDuration",
       .type = MT_PROP_DURATION,
       .fallback_doc = "none: the capsule's own `maxDuration` holds",
       .doc = "The command's time; over it the start fails."},
      {.name = "wait",
       .type = MT_PROP_BOOL,
       .fallback = "true",
       .doc = "Whether the next command waits for the end of this one. The failure of one that is "
              "not waited for does not fail the start."});
static const mt_prop startup_item = {.name = "startup",
                                     .type = MT_PROP_OBJECT,
                                     .members = &startup_members,
                                     .rule = mt_rule_startup_entry};

PROPS(limits_members,
      {.name = "memory",
       .type = MT_PROP_SIZE,
       .min = 16 * MIB,
       .rule = mt_rule_limit_memory,
       .fallback_doc = "the server's (2 GiB)",
       .doc = "Memory of all its processes together."},
      {.name = "cpus",
       .type = MT_PROP_CPUS,
       .min = 10,
       .rule = mt_rule_limit_cpus,
       .fallback_doc = "all of the machine's",
       .doc = "CPUs, fractions too."},
      {.name = "pids",
       .type = MT_PROP_INT,
       .min = 4,
       .max = 4194304,
       .rule = mt_rule_limit_pids,
       .fallback_doc = "the server's (512)",
       .doc = "Processes and threads at one time."},
      {.name = "disk",
       .type = MT_PROP_SIZE,
       .min = 16 * MIB,
       .rule = mt_rule_limit_disk,
       .fallback_doc = "the server's (2 GiB)",
       .doc = "What it may write outside of its file systems."});

static const mt_prop capsule_items[] = {
    {.name = "packages",
     .type = MT_PROP_LIST,
     .item = &package_item,
     .max = 500,
     .unique = true,
     .rule = mt_rule_packages,
     .doc = "Debian packages to install beside those of the image, each `name` or `name=version`; "
            "installed by the first start that asks for them."},
    {.name = "users",
     .type = MT_PROP_LIST,
     .item = &user_item,
     .max = 64,
     .rule = mt_rule_users,
     .doc = "Linux users to make, beside `maitento` (the default user) and `root`."},
    {.name = "vfs",
     .type = MT_PROP_LIST,
     .item = &vfs_item,
     .max = 64,
     .rule = mt_rule_vfs_mounts,
     .doc = "File systems to mount. They belong to the default user, mode 770."},
    {.name = "secrets",
     .type = MT_PROP_LIST,
     .item = &secret_item,
     .max = 64,
     .rule = mt_rule_secret_mounts,
     .doc = "Secrets to mount: at most 1 MiB in all."},
    {.name = "startup",
     .type = MT_PROP_LIST,
     .item = &startup_item,
     .max = 256,
     .doc = "Commands to run in order while the capsule starts. When one fails, the start fails."},
    {.name = "autoTerminate",
     .type = MT_PROP_BOOL,
     .fallback = "false",
     .doc = "Whether the run ends as soon as all startup commands have ended."},
    {.name = "maxDuration",
     .type = MT_PROP_DURATION,
     .fallback = "\"00:10:00\"",
     .rule = mt_rule_max_duration,
     .doc = "The longest life of a run, counted from its start. One that is still starting then "
            "fails; a ready one finishes."},
    {.name = "image",
     .type = MT_PROP_STRING,
     .rule = mt_rule_image,
     .fallback_doc = "the server's default image (`\"default\"`)",
     .doc = "An image of the server: `mt image-list`."},
    {.name = "limits",
     .type = MT_PROP_OBJECT,
     .members = &limits_members,
     .doc = "What a run may use. More than the server's ceiling is refused at deploy."},
    {.name = "network",
     .type = MT_PROP_STRING,
     .fallback = "\"internet\"",
     .rule = mt_rule_network,
     .doc = "`\"internet\"`: public addresses and names; private ones, the host and other capsules "
            "are shut. `\"none\"`: its own loopback alone."},
    {.name = "environment",
     .type = MT_PROP_MAP,
     .max = 1000,
     .rule = mt_rule_environment,
     .doc = "Variables for all commands: `NAME = \"value\"`."},
};
const mt_props mt_capsule_props = {capsule_items, MT_ARRAY_SIZE(capsule_items)};

// ---- agent, app, interaction ----

PROPS(agent_props,
      {.name = "model",
       .type = MT_PROP_REF,
       .ref = MT_REF_MODEL,
       .required = true,
       .doc = "`@ref(\"provider.model\")`."},
      {.name = "prompt",
       .type = MT_PROP_STRING,
       .required = true,
       .doc = "What the model is told first. Plain text, no template."},
      {.name = "summary",
       .type = MT_PROP_STRING,
       .empty_ok = true,
       .fallback = "\"\"",
       .doc = "One line for people."},
      {.name = "temperature",
       .type = MT_PROP_DECIMAL,
       .min = 0,
       .max = 2,
       .fallback_doc = "the provider's",
       .doc = "From 0 to 2."},
      {.name = "maxTokens",
       .type = MT_PROP_INT,
       .min = 1,
       .max = 10000000,
       .fallback_doc = "the provider's",
       .doc = "The longest answer."});

PROPS(app_duration, {.name = "max",
                     .type = MT_PROP_DURATION,
                     .fallback = "\"01:00:00\"",
                     .doc = "The app is stopped after this time."});
PROPS(app_props, {.name = "duration", .type = MT_PROP_OBJECT, .members = &app_duration});

PROPS(interaction_agent,
      {.name = "name",
       .type = MT_PROP_STRING,
       .max = 200,
       .fallback_doc = "the agent's name",
       .doc = "Shown in place of the agent's name."},
      {.name = "agent",
       .type = MT_PROP_REF,
       .ref = MT_REF_AGENT,
       .required = true,
       .doc = "The agent that answers, `@ref(\"name\")`."});
PROPS(input_members,
      {.name = "name",
       .type = MT_PROP_STRING,
       .required = true,
       .max = 100,
       .rule = mt_rule_input_name,
       .doc = "`[A-Za-z_][A-Za-z0-9_]*`; `%%name%%` in the prompt."},
      {.name = "description",
       .type = MT_PROP_STRING,
       .empty_ok = true,
       .fallback = "\"\"",
       .doc = "For people."},
      {.name = "required",
       .type = MT_PROP_BOOL,
       .fallback = "true",
       .doc = "Whether a start must give it."});
static const mt_prop input_item = {
    .name = "prompts", .type = MT_PROP_OBJECT, .members = &input_members};
PROPS(interaction_inputs, {.name = "prompts",
                           .type = MT_PROP_LIST,
                           .item = &input_item,
                           .max = 100,
                           .rule = mt_rule_inputs,
                           .doc = "The inputs of the task, by name."});
PROPS(interaction_schema, {.name = "solution",
                           .type = MT_PROP_REF,
                           .ref = MT_REF_JSON,
                           .doc = "The JSON Schema that answers must match, `@json(\"stem\")`."});
PROPS(interaction_duration, {.name = "max",
                             .type = MT_PROP_DURATION,
                             .fallback = "\"00:05:00\"",
                             .doc = "The time of all attempts together."});
PROPS(interaction_props,
      {.name = "agent", .type = MT_PROP_OBJECT, .members = &interaction_agent, .required = true},
      {.name = "task",
       .type = MT_PROP_REF,
       .ref = MT_REF_PROMPT,
       .required = true,
       .doc = "The template of the task, `@prompt(\"stem\")`."},
      {.name = "inputs", .type = MT_PROP_OBJECT, .members = &interaction_inputs},
      {.name = "schema", .type = MT_PROP_OBJECT, .members = &interaction_schema},
      {.name = "duration", .type = MT_PROP_OBJECT, .members = &interaction_duration},
      {.name = "attempts",
       .type = MT_PROP_INT,
       .fallback = "3",
       .min = 1,
       .max = 10,
       .doc = "How often the model is asked in all, when its answer does not match."});

// ---- image ----

PROPS(component_members,
      {.name = "name",
       .type = MT_PROP_STRING,
       .required = true,
       .rule = mt_rule_name,
       .doc = "What it is; `mt-image` knows how to build each."},
      {.name = "version", .type = MT_PROP_STRING, .max = 100, .doc = "The version wanted."},
      {.name = "source",
       .type = MT_PROP_STRING,
       .max = 300,
       .doc = "Where it comes from, `registry:package`."},
      {.name = "digest",
       .type = MT_PROP_STRING,
       .rule = mt_rule_digest,
       .doc = "`sha256:` or `sha512:` and hex digits, of what is downloaded."});
static const mt_prop component_item = {
    .name = "components", .type = MT_PROP_OBJECT, .members = &component_members};
PROPS(image_props,
      {.name = "summary",
       .type = MT_PROP_STRING,
       .empty_ok = true,
       .fallback = "\"\"",
       .doc = "One line for people."},
      {.name = "suite",
       .type = MT_PROP_STRING,
       .fallback = "\"bookworm\"",
       .rule = mt_rule_suite,
       .doc = "The Debian release: `\"bookworm\"`."},
      {.name = "packages",
       .type = MT_PROP_LIST,
       .item = &package_item,
       .required = true,
       .max = 2000,
       .unique = true,
       .rule = mt_rule_packages,
       .doc = "Debian packages, each `name` or `name=version`."},
      {.name = "components",
       .type = MT_PROP_LIST,
       .item = &component_item,
       .max = 50,
       .doc = "What Debian does not have."});

static const mt_kind_info kinds[MT_KIND_COUNT] = {
    [MT_KIND_AGENT] = {.word = "agent",
                       .plural = "agents",
                       .folder = "agents/",
                       .title = "Agent",
                       .intro = "`agents/<name>.mtr`: a model with instructions.",
                       .example = "model = @ref(\"deepseek.deepseek-v4-flash\")\n"
                                  "prompt = \"You answer in one sentence.\"\n"
                                  "summary = \"Short answers\"\n",
                       .props = &agent_props},
    [MT_KIND_APP] = {.word = "app",
                     .plural = "apps",
                     .folder = "apps/<name>/",
                     .title = "App",
                     .intro = "`apps/<name>/<name>.mtc` and other `.mtc` files beside it are the "
                              "program ([language.md](language.md)); its settings are in "
                              "`apps/<name>/<name>.mtr`, which may be missing.",
                     .example = "duration.max = \"00:10:00\"\n",
                     .props = &app_props},
    [MT_KIND_CAPSULE] = {.word = "capsule",
                         .plural = "capsules",
                         .folder = "capsules/",
                         .title = "Capsule",
                         .intro = "`capsules/<name>.mtr`: a recipe for a throwaway Linux machine.",
                         .example = "autoTerminate = true\n"
                                    "maxDuration = \"00:05:00\"\n"
                                    "vfs = [\n"
                                    "  { vfs = @ref(\"harvest\"), mountName = \"data\" },\n"
                                    "]\n"
                                    "startup = [\n"
                                    "  {\n"
                                    "    command = \"python3\"\n"
                                    "    arguments = [\"/mnt/data/report.py\"]\n"
                                    "    maxDuration = \"00:02:00\"\n"
                                    "  },\n"
                                    "]\n",
                         .props = &mt_capsule_props,
                         .rule = mt_rule_capsule},
    [MT_KIND_INTERACTION] =
        {.word = "interaction",
         .plural = "interactions",
         .folder = "interactions/one-shot/",
         .title = "One-shot interaction",
         .intro = "`interactions/one-shot/<name>.mtr`: one agent, one task, one answer.",
         .example = "agent = { name = \"Clerk\" agent = @ref(\"clerk\") }\n"
                    "task = @prompt(\"sort-letter\")\n"
                    "inputs.prompts = [\n"
                    "  { name = \"letter\" },\n"
                    "  { name = \"notes\", required = false },\n"
                    "]\n"
                    "schema.solution = @json(\"sorted-letter\")\n",
         .props = &interaction_props},
    [MT_KIND_JSON] = {.word = "json",
                      .plural = "json",
                      .folder = "json/",
                      .title = "JSON Schema",
                      .intro = "`json/<stem>.json`: a JSON Schema (an object, or `true` or "
                               "`false`), used through `@json(\"<stem>\")`. What is known of "
                               "JSON Schema: [schemas.md](schemas.md)."},
    [MT_KIND_PROMPT] = {.word = "prompt",
                        .plural = "prompts",
                        .folder = "prompts/",
                        .title = "Prompt",
                        .intro = "`prompts/<stem>.md`: a template, used through "
                                 "`@prompt(\"<stem>\")`."},
    [MT_KIND_IMAGE] = {.word = "image",
                       .plural = "images",
                       .folder = "images/",
                       .title = "Image",
                       .intro = "`images/<name>.mtr` of the product itself, for `mt-image build "
                                "<name>`; not part of a project.",
                       .example = "suite = \"bookworm\"\npackages = [\"bash\", \"python3\"]\n",
                       .props = &image_props},
};

const mt_kind_info *mt_kind_info_of(mt_kind kind)
{
    return &kinds[kind];
}
