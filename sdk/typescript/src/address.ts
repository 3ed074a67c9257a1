// SPDX-License-Identifier: Apache-2.0
import { MaitentoError } from "./errors.js";

/** Where a server is. */
export interface Address {
  /** As it was given. */
  url: string;
  tls: boolean;
  /** For node:http's `request`. */
  where: { socketPath: string } | { host: string; port: number };
}

const SOCKET_PATH_MAX = 107; // bytes, of Linux

export function parseAddress(url: string): Address {
  const web = /^(https?):\/\/(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(\d{1,5}))?\/?$/.exec(url);
  if (url.startsWith("unix:/")) {
    const socketPath = url.slice("unix:".length);
    if (Buffer.byteLength(socketPath) > SOCKET_PATH_MAX)
      throw new MaitentoError(
        "badRequest",
        `the socket path '${socketPath}' is longer than the ${String(SOCKET_PATH_MAX)} bytes that Linux takes`,
      );
    return { url, tls: false, where: { socketPath } };
  }
  if (!web) {
    // Where there is an "@" there may be a password.
    const shown = url.includes("@") ? "it" : `'${url}'`;
    throw new MaitentoError(
      "badRequest",
      `the address is wrong: ${shown} should be http://HOST[:PORT], https://HOST[:PORT] or unix:/PATH`,
    );
  }
  const [, scheme, host, port] = web;
  const tls = scheme === "https";
  const number = port === undefined ? (tls ? 443 : 80) : Number(port);
  if (number < 1 || number > 65535)
    throw new MaitentoError("badRequest", `the address is wrong: '${url}' has no port of 1 to 65535`);
  return { url, tls, where: { host: (host ?? "").replace(/^\[|\]$/g, ""), port: number } };
}
