// JSON in which numbers stay as they are written, also those that JavaScript cannot hold: above 2^53, or with too many
// digits.

interface Source {
  source?: string;
}
// Browsers have both since 2025; TypeScript's library does not know them.
const json = JSON as unknown as {
  parse(text: string, revive: (this: unknown, name: string, value: unknown, at?: Source) => unknown): unknown;
  rawJSON?(text: string): object;
};

/**
 * parse is JSON.parse, but a number that it would round becomes an object that JSON.stringify writes as the number.
 * Such objects have no text of their own: isExact tells them.
 */
export function parse(text: string): unknown {
  return json.parse(text, (_, value, at) =>
    typeof value === 'number' && at?.source && json.rawJSON && digits(String(value)) !== digits(at.source)
      ? json.rawJSON(at.source)
      : value,
  );
}

/** isExact reports whether a value is such a number. */
export function isExact(value: object): boolean {
  return Object.getPrototypeOf(value) === null && 'rawJSON' in value;
}

/** digits are the significant ones of a number. */
function digits(number: string): string {
  return number
    .replace(/e.*/i, '')
    .replace(/[-.]/g, '')
    .replace(/^0+|0+$/g, '');
}
