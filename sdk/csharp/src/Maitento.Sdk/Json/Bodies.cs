// SPDX-License-Identifier: Apache-2.0
namespace Maitento.Sdk.Json;

// Bodies of requests that are made here and that no caller sees.
internal sealed record NameBody(string Name);

internal sealed record LimitBody(string Limit);

internal sealed record ExtendBody(TimeSpan MaxDuration);

internal sealed record SecretBody(string? Name, string? Value, string? ValueBase64);

internal sealed record NewKeyBody(string Name, string? Expires, string? User);

internal sealed record NewUserBody(string Name, string? Role, string? Expires);

internal sealed record ModelBody(string Model);

internal sealed record DeployBody(IReadOnlyList<ProjectFile> Files, bool? DryRun, bool? Prune);

internal sealed record ProjectFile(string Path, string? Content, string? ContentBase64);

internal sealed record MakeFolderBody(string Path, bool Parents, bool? NameEscaped, string? User);

internal sealed record MoveBody(string From, string To, bool Replace, bool? NameEscaped, string? User);

internal sealed record LinkBody(string Path, string Target, bool? NameEscaped, string? User);

internal sealed record ShellBody(string? User, string? Term, int? Columns, int? Rows);

internal sealed record SizeBody(int Columns, int Rows);
