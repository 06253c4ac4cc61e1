// JSON that a person types, which for a while is none.
import {ApiError} from './api';
import {texts} from './i18n';
import {parse} from './json';

const t = texts({notJson: ['This is not JSON: {why}', '这不是 JSON：{why}']});

/**
 * NotJson stands in a form for a value that cannot be read: what was typed, and why it is no JSON. It cannot be sent: a
 * body that has one is refused before it leaves, with the fault at its member.
 */
export class NotJson {
  constructor(
    readonly text: string,
    readonly why: string,
  ) {}

  toJSON(member: string): never {
    const errors = [{location: `body.${member}`, message: this.why}];
    throw new ApiError({status: 400, code: 'invalid_parameters', errors});
  }
}

export function parseJson(text: string): unknown {
  try {
    return parse(text);
  } catch (e) {
    return new NotJson(text, t('notJson', {why: e instanceof Error ? e.message : String(e)}));
  }
}

/** jsonText is what a person edits. */
export function jsonText(value: unknown): string {
  return value instanceof NotJson ? value.text : (JSON.stringify(value, null, 2) ?? '');
}

/** notJson is why a value is no JSON; undefined if it is. */
export function notJson(value: unknown): string | undefined {
  return value instanceof NotJson ? value.why : undefined;
}

/** mustBeJson refuses values that are not JSON; their names are where the faults stand: {'target.payload': payload}. */
export function mustBeJson(values: object): void {
  for (const [member, value] of Object.entries(values)) if (value instanceof NotJson) value.toJSON(member);
}
