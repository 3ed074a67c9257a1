// SPDX-License-Identifier: Apache-2.0

/** Of this package. */
export const VERSION = "26.10.0";
