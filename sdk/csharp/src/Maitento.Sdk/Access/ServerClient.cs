// SPDX-License-Identifier: Apache-2.0
using System.Text.Json;
using Maitento.Sdk.Http;
using Maitento.Sdk.Json;

namespace Maitento.Sdk;

/// <summary>The server itself.</summary>
public sealed class ServerClient
{
    private readonly Transport _transport;

    internal ServerClient(Transport transport)
    {
        _transport = transport;
    }

    /// <summary>What answers at the address.</summary>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>Its product, version and version of the API.</returns>
    [Operation("server.info", "getServer")]
    public Task<ServerInfo> InfoAsync(CancellationToken cancellationToken = default) =>
        _transport.JsonAsync(ApiRequest.Get(new ApiPath("server")), SdkJson.Default.ServerInfo, cancellationToken);

    /// <summary>Whether the server answers.</summary>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>Its health.</returns>
    [Operation("server.health", "getHealth")]
    public Task<ServerHealth> HealthAsync(CancellationToken cancellationToken = default) =>
        _transport.JsonAsync(ApiRequest.Get(new ApiPath("health")), SdkJson.Default.ServerHealth, cancellationToken);

    /// <summary>What the server found about itself and its host; for administrators.</summary>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The findings; each that is not <c>ok</c> says what to do.</returns>
    [Operation("server.doctor", "getDoctor")]
    public Task<DoctorReport> DoctorAsync(CancellationToken cancellationToken = default) =>
        _transport.JsonAsync(ApiRequest.Get(new ApiPath("doctor")), SdkJson.Default.DoctorReport, cancellationToken);

    /// <summary>The description of the API, OpenAPI 3.1.</summary>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The whole document.</returns>
    [Operation("server.description", "getDescription")]
    public Task<JsonElement> DescriptionAsync(CancellationToken cancellationToken = default) =>
        _transport.JsonAsync(new ApiRequest(HttpMethod.Get, "/openapi.json"), SdkJson.Default.JsonElement, cancellationToken);
}
