// SPDX-License-Identifier: Apache-2.0
#:package Maitento.Sdk@26.10.0
// What the package has, by reflection, as JSON: which method does which operation of the API, and the members of its types.
// sdk/conformance/README.md says what for.
using System.Collections;
using System.Reflection;
using System.Text.Json;
using System.Text.Json.Nodes;
using System.Text.Json.Serialization;
using Maitento.Sdk;

var assembly = typeof(MaitentoClient).Assembly;
var operations = new JsonObject();
var methods = new SortedSet<string>(StringComparer.Ordinal);
foreach (var method in assembly.GetExportedTypes().SelectMany(type => type.GetMethods(BindingFlags.Public | BindingFlags.Instance | BindingFlags.DeclaredOnly)))
{
    foreach (var operation in method.CustomAttributes.Where(found => found.AttributeType.Name == "OperationAttribute"))
    {
        var name = (string)operation.ConstructorArguments[0].Value!;
        methods.Add(name);
        if (operation.ConstructorArguments[1].Value is string id)
            operations[id] = name;
    }
}

var types = new JsonObject();
var nullability = new NullabilityInfoContext();
foreach (var type in assembly.GetTypes())
{
    foreach (var schema in type.CustomAttributes.Where(found => found.AttributeType.Name == "SchemaAttribute"))
    {
        var members = new JsonObject();
        foreach (var property in type.GetProperties().Where(IsMember))
            members[JsonNamingPolicy.CamelCase.ConvertName(property.Name)] = Describe(property);
        types[(string)schema.ConstructorArguments[0].Value!] = members;
    }
}
var lists = new JsonArray([.. methods.Select(name => (JsonNode)name)]);
Console.WriteLine(new JsonObject { ["operations"] = operations, ["methods"] = lists, ["types"] = types }.ToJsonString());

bool IsMember(PropertyInfo property) =>
    property.Name != "EqualityContract"
    && property.GetCustomAttribute<JsonExtensionDataAttribute>() is null
    && property.GetCustomAttribute<JsonIgnoreAttribute>() is not { Condition: JsonIgnoreCondition.Always };

JsonObject Describe(PropertyInfo property) => new()
{
    ["type"] = KindOf(Nullable.GetUnderlyingType(property.PropertyType) ?? property.PropertyType),
    ["nullable"] = nullability.Create(property).ReadState == NullabilityState.Nullable || property.PropertyType == typeof(JsonElement),
    ["optional"] = property.CustomAttributes.Any(found => found.AttributeType.Name == "OptionalAttribute"),
};

static string KindOf(Type type)
{
    if (type == typeof(JsonElement))
        return "any";
    if (type == typeof(bool))
        return "boolean";
    if (type == typeof(int) || type == typeof(long))
        return "integer";
    if (type == typeof(double))
        return "number";
    if (type == typeof(string) || type == typeof(DateTimeOffset) || type == typeof(TimeSpan) || type.GetInterfaces().Any(found => found.Name.StartsWith("IWord", StringComparison.Ordinal)))
        return "string";
    if (type.IsGenericType && type.Name.StartsWith("IReadOnlyDictionary", StringComparison.Ordinal))
        return "object";
    return typeof(IEnumerable).IsAssignableFrom(type) && type != typeof(JsonObject) ? "array" : "object";
}
