// A form made of a JSON Schema: what templates of applications and providers of connections ask for. It draws strings,
// numbers, booleans, enums, lists of strings and objects of known members; everything else is edited as JSON.
import type {ApiError} from '../lib/api';
import {notJson} from '../lib/notjson';
import {own} from '../lib/own';
import {isObject, type Fields} from '../lib/patch';
import {Field, JsonInput, faultOf, type InputProps} from './record';
import {t} from './text';

export interface Schema {
  type?: string | string[];
  title?: string;
  description?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  enum?: unknown[];
  default?: unknown;
  examples?: unknown[];
  items?: Schema;
  format?: string;
  writeOnly?: boolean;
  minimum?: number;
  maximum?: number;
  maxLength?: number;
}

interface Props {
  schema: Schema;
  value: Fields;
  set: (value: Fields) => void;
  error?: ApiError;
  at?: string; // where the value is in the body: "template_params.params"
  readOnly?: boolean;
  words?: Words;
}

/** Words are the schema's own as people read them: titles, descriptions, values to choose from. */
type Words = (text: string) => string;
const asWritten: Words = (text) => text;

/** SchemaForm draws an input for each property; a value that is emptied is removed. */
export function SchemaForm({schema, value, set, error, at, readOnly, words = asWritten}: Props) {
  const put = (name: string, v: unknown) => {
    const next = {...value};
    if (v === undefined || v === '') delete next[name];
    else next[name] = v;
    set(next);
  };
  return (
    <div class="grid-2">
      {Object.entries(schema.properties ?? {}).map(([name, s]) => {
        const needed = schema.required?.includes(name);
        const path = at ? `${at}.${name}` : name;
        if (kind(s) === 'object' && s.properties) {
          const inner = own(value, name);
          return (
            <fieldset key={name} class="field wide">
              <legend class="label">{words(s.title ?? name)}</legend>
              {s.description && <span class="help">{words(s.description)}</span>}
              <SchemaForm
                schema={s}
                value={isObject(inner) ? inner : {}}
                set={(v) => put(name, Object.keys(v).length ? v : undefined)}
                {...{error, at: path, readOnly, words}}
              />
            </fieldset>
          );
        }
        return (
          <Field
            key={name}
            label={words(s.title ?? name) + (needed ? ' *' : '')}
            help={help(s, words)}
            wide={wide(s)}
            error={faultOf(error, path) ?? notJson(own(value, name))}
          >
            {(props) => (
              <SchemaInput
                schema={s}
                value={own(value, name)}
                set={(v) => put(name, v)}
                readOnly={readOnly}
                required={needed}
                words={words}
                props={props}
              />
            )}
          </Field>
        );
      })}
    </div>
  );
}

/** missing lists the required properties that have no value. */
export function missing(schema: Schema, value: Fields): string[] {
  return (schema.required ?? []).filter((n) => [undefined, ''].includes(own(value, n) as string | undefined));
}

/** defaults are the values that a schema proposes. */
export function defaults(schema: Schema): Fields {
  return Object.fromEntries(
    Object.entries(schema.properties ?? {})
      .filter(([, s]) => s.default !== undefined)
      .map(([n, s]) => [n, s.default]),
  );
}

function kind(s: Schema): string {
  return Array.isArray(s.type)
    ? (s.type.find((x) => x !== 'null') ?? 'string')
    : (s.type ?? (s.properties ? 'object' : 'string'));
}

function isTextList(s: Schema): boolean {
  return kind(s) === 'array' && (!s.items || kind(s.items) === 'string');
}

function isLong(s: Schema): boolean {
  return (
    s.format === 'pem' ||
    s.format === 'textarea' ||
    (s.maxLength ?? 0) > 4096 ||
    /certificate|private.key/i.test(s.title ?? '')
  );
}

function wide(s: Schema): boolean {
  return kind(s) === 'object' || kind(s) === 'array' || isLong(s);
}

function help(s: Schema, words: Words): string | undefined {
  const parts = [s.description && words(s.description), isTextList(s) && !s.enum ? t('onePerLine') : ''].filter(
    Boolean,
  );
  return parts.length ? parts.join(' · ') : undefined;
}

function example(s: Schema): string | undefined {
  const first = s.examples?.[0];
  return first === undefined ? undefined : typeof first === 'string' ? first : JSON.stringify(first);
}

function SchemaInput({
  schema: s,
  value,
  set,
  readOnly,
  required,
  words,
  props,
}: {
  schema: Schema;
  value: unknown;
  set: (v: unknown) => void;
  readOnly?: boolean;
  required?: boolean;
  words: Words;
  props: InputProps;
}) {
  const common = {...props, 'aria-required': required};
  if (s.enum) {
    return (
      <select
        class="select"
        {...common}
        disabled={readOnly}
        value={value === undefined ? '' : JSON.stringify(value)}
        onChange={(e) => set(e.currentTarget.value === '' ? undefined : JSON.parse(e.currentTarget.value))}
      >
        {(!required || value === undefined) && <option value="">—</option>}
        {s.enum.map((v) => (
          <option key={String(v)} value={JSON.stringify(v)}>
            {words(String(v))}
          </option>
        ))}
      </select>
    );
  }
  switch (kind(s)) {
    case 'boolean':
      return (
        <span class="check">
          <input
            type="checkbox"
            {...common}
            disabled={readOnly}
            checked={value === true}
            onChange={(e) => set(e.currentTarget.checked)}
          />
        </span>
      );
    case 'integer':
    case 'number':
      return (
        <input
          class="input num"
          type="number"
          {...common}
          readOnly={readOnly}
          min={s.minimum}
          max={s.maximum}
          step={kind(s) === 'integer' ? 1 : 'any'}
          placeholder={example(s)}
          value={value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value)}
          onInput={(e) => set(e.currentTarget.value === '' ? undefined : Number(e.currentTarget.value))}
        />
      );
    case 'array':
      if (!isTextList(s)) return <JsonInput value={value ?? []} set={set} readOnly={readOnly} props={props} />;
      return <Lines value={value} set={set} readOnly={readOnly} placeholder={example(s)} props={common} />;
    case 'object':
      return <JsonInput value={value ?? {}} set={set} readOnly={readOnly} props={props} />;
    default:
      return <TextInput schema={s} value={value} set={set} readOnly={readOnly} props={common} />;
  }
}

function TextInput({
  schema: s,
  value,
  set,
  readOnly,
  props,
}: {
  schema: Schema;
  value: unknown;
  set: (v: unknown) => void;
  readOnly?: boolean;
  props: InputProps;
}) {
  const common = {
    ...props,
    readOnly,
    autocomplete: s.writeOnly ? ('new-password' as const) : ('off' as const),
    spellcheck: false,
    placeholder: example(s),
    maxLength: s.maxLength,
    value: String(value ?? ''),
  };
  if (isLong(s)) {
    return (
      <textarea
        class="textarea mono"
        rows={4}
        {...common}
        autocomplete="off"
        onInput={(e) => set(e.currentTarget.value)}
      />
    );
  }
  const type = (s.writeOnly ? 'password' : 'text') as 'text';
  return <input class="input" type={type} {...common} onInput={(e) => set(e.currentTarget.value)} />;
}

function Lines({
  value,
  set,
  readOnly,
  placeholder,
  props,
}: {
  value: unknown;
  set: (v: unknown) => void;
  readOnly?: boolean;
  placeholder?: string;
  props: InputProps;
}) {
  const text = Array.isArray(value) ? value.join('\n') : '';
  return (
    <textarea
      class="textarea mono"
      rows={3}
      {...props}
      readOnly={readOnly}
      spellcheck={false}
      placeholder={placeholder}
      value={text}
      onInput={(e) => set(e.currentTarget.value === '' ? undefined : e.currentTarget.value.split('\n'))}
      onBlur={(e) => {
        const lines = e.currentTarget.value
          .split('\n')
          .map((l) => l.trim())
          .filter(Boolean);
        set(lines.length ? lines : undefined);
      }}
    />
  );
}
