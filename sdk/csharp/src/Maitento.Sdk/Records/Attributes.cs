// SPDX-License-Identifier: Apache-2.0
namespace Maitento.Sdk;

/// <summary>Marks a member that the server leaves out where it would tell nothing. Compared with the description of the API by a test.</summary>
[AttributeUsage(AttributeTargets.Property)]
internal sealed class OptionalAttribute : Attribute;

/// <summary>Names the schema of the API that a record is. Compared with the description of the API by a test.</summary>
[AttributeUsage(AttributeTargets.Class, AllowMultiple = true)]
internal sealed class SchemaAttribute(string name) : Attribute
{
    public string Name { get; } = name;
}

/// <summary>Names the operation of the API, and that of the SDKs, that a method is.</summary>
[AttributeUsage(AttributeTargets.Method, AllowMultiple = true)]
internal sealed class OperationAttribute(string name, string? id = null) : Attribute
{
    public string Name { get; } = name;

    public string? Id { get; } = id;
}
