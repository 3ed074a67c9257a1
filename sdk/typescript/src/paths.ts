// SPDX-License-Identifier: Apache-2.0
// Addresses of the API.
import { MaitentoError } from "./errors.js";

export type Query = Readonly<Record<string, string | number | boolean | null | undefined>>;

/**
 * Percent-encodes a text as UTF-8, without exception: what `encodeURIComponent` leaves alone is harmless. Half a surrogate pair is no
 * text and is refused.
 */
export function encoded(text: string): string {
  try {
    return encodeURIComponent(text);
  } catch (error) {
    throw new MaitentoError("badRequest", `${JSON.stringify(text)} holds half a character`, { cause: error });
  }
}

/** "/v1/" and the parts, each encoded. Of the query what is undefined or null is left out. */
export function pathOf(parts: readonly string[], query: Query = {}): string {
  for (const part of parts) {
    // An empty part or dots would be another address.
    if (part === "" || part === "." || part === "..")
      throw new MaitentoError("badRequest", `${JSON.stringify(part)} is no name and no id`);
  }
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null);
  const tail = given.map(([name, value]) => `${encoded(name)}=${encoded(String(value))}`).join("&");
  return `/v1/${parts.map(encoded).join("/")}${tail ? `?${tail}` : ""}`;
}

/** An id, or something that has one. */
export type IdOf = string | { readonly id: string };

export function idOf(thing: IdOf): string {
  const id: unknown = typeof thing === "string" ? thing : (thing as { id?: unknown } | null)?.id;
  if (typeof id === "string" && id !== "") return id;
  throw new MaitentoError("badRequest", "an id is wanted, or a record that has one");
}

/** The members that are given: undefined ones are left out. */
export function given<T extends object>(members: T): Partial<T> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Partial<T>;
}
