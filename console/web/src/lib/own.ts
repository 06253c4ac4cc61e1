// Lookups by keys that come from data, of which some are names that every object has: constructor, toString.

/** own is the value of a member that an object has of its own. */
export const own = <T>(of: Readonly<Record<string, T>>, key: string): T | undefined =>
  Object.hasOwn(of, key) ? of[key] : undefined;
