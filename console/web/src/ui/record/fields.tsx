// The inputs of forms.
import {useSignal} from '@preact/signals';
import type {ComponentChildren} from 'preact';
import {useId, useRef} from 'preact/hooks';
import {jsonText, notJson, parseJson} from '../../lib/notjson';
import {same} from '../../lib/patch';
import {Icon} from '../icon';
import {labelOf, valueOf, type Choice} from '../live';
import type {Draft} from './draft';

export interface FieldSpec<T> {
  field: keyof T & string;
  label: string;
  kind?: 'text' | 'email' | 'tel' | 'number' | 'textarea' | 'select' | 'switch' | 'list' | 'json' | 'fixed';
  options?: Choice[]; // of a select; of a text, what is shown for some values
  help?: string;
  placeholder?: string; // of a text
  wide?: boolean;
  readOnly?: boolean; // also where the form is not
  show?: (value: unknown) => ComponentChildren; // of a fixed field
}

/** Fields draws inputs in two columns; faults of the last attempt stand at them. */
export function FormFields<T extends object>({draft, fields}: {draft: Draft<T>; fields: FieldSpec<T>[]}) {
  return (
    <div class="grid-2">
      {fields.map((f) => (
        <FormField key={f.field} draft={draft} spec={f} />
      ))}
    </div>
  );
}

function FormField<T extends object>({draft, spec}: {draft: Draft<T>; spec: FieldSpec<T>}) {
  const value = draft.get(spec.field);
  if (spec.kind === 'fixed') {
    return (
      <div class={`field ${spec.wide ? 'wide' : ''}`}>
        <span class="label">{spec.label}</span>
        <div>{spec.show?.(value) ?? String(value ?? '')}</div>
      </div>
    );
  }
  const changed = !same(value, draft.base.value[spec.field]);
  return (
    <Field
      label={spec.label}
      help={spec.help}
      error={draft.fault(spec.field) ?? notJson(value)}
      changed={changed}
      wide={spec.wide || spec.kind === 'textarea' || spec.kind === 'json'}
    >
      {(props) => (
        <Input
          spec={spec}
          value={value}
          readOnly={draft.readOnly || !!spec.readOnly}
          set={(v) => draft.set(spec.field, v)}
          props={props}
        />
      )}
    </Field>
  );
}

export interface InputProps {
  id: string;
  name?: string;
  'aria-invalid'?: boolean;
  'aria-describedby'?: string;
}

interface FieldProps {
  label: string;
  help?: string;
  error?: string;
  changed?: boolean;
  wide?: boolean;
}

/** Field is a label, an input, help and a fault. */
export function Field({
  label,
  help,
  error,
  changed,
  wide,
  children,
}: FieldProps & {children: (props: InputProps) => ComponentChildren}) {
  const id = useId();
  const about = error ? `${id}-error` : help ? `${id}-help` : undefined;
  return (
    <div class={`field ${wide ? 'wide' : ''} ${changed ? 'changed' : ''}`}>
      <label for={id}>{label}</label>
      {children({id, 'aria-invalid': error ? true : undefined, 'aria-describedby': about})}
      {error ? (
        <span class="error" id={`${id}-error`} lang={/\p{Script=Han}/u.test(error) ? undefined : 'en'}>
          <Icon name="alert" size={12} />
          {error}
        </span>
      ) : (
        help && (
          <span class="help" id={`${id}-help`}>
            {help}
          </span>
        )
      )}
    </div>
  );
}

interface TextFieldProps extends FieldProps {
  value: string | number | undefined;
  set: (text: string) => void;
  mono?: boolean;
  type?: string;
  required?: boolean;
  disabled?: boolean;
  readOnly?: boolean;
  autofocus?: boolean;
  autocomplete?: string;
  placeholder?: string;
  list?: string;
  maxLength?: number;
  min?: number | string;
  max?: number | string;
}

/** TextField is a Field with one line of text. The other properties are attributes of the input. */
export function TextField({label, help, error, changed, wide, value, set, mono, ...input}: TextFieldProps) {
  return (
    <Field label={label} help={help} error={error} changed={changed} wide={wide}>
      {(p) => (
        <input
          class={mono ? 'input mono' : 'input'}
          autocomplete="off"
          spellcheck={false}
          {...p}
          {...(input as object)}
          value={value}
          onInput={(e) => set(e.currentTarget.value)}
        />
      )}
    </Field>
  );
}

interface SelectFieldProps extends FieldProps {
  value: string | number | undefined;
  set: (value: string) => void;
  required?: boolean;
  disabled?: boolean;
  children: ComponentChildren; // the options
}

/** SelectField is a Field with a choice of options. The other properties are attributes of the select. */
export function SelectField(props: SelectFieldProps) {
  const {label, help, error, changed, wide, value, set, children, ...select} = props;
  return (
    <Field label={label} help={help} error={error} changed={changed} wide={wide}>
      {(p) => (
        <select class="select" {...p} {...select} value={value} onChange={(e) => set(e.currentTarget.value)}>
          {children}
        </select>
      )}
    </Field>
  );
}

function Input<T>({
  spec,
  value,
  readOnly,
  set,
  props,
}: {
  spec: FieldSpec<T>;
  value: unknown;
  readOnly: boolean;
  set: (v: unknown) => void;
  props: InputProps;
}) {
  switch (spec.kind) {
    case 'select':
      return (
        <select
          class="select"
          {...props}
          disabled={readOnly}
          value={String(value ?? '')}
          onChange={(e) => set(e.currentTarget.value)}
        >
          {spec.options!.map((o) => (
            <option key={o.value} value={o.value}>
              {o.label}
            </option>
          ))}
        </select>
      );
    case 'switch':
      return (
        <span class="check">
          <input
            type="checkbox"
            {...props}
            disabled={readOnly}
            checked={value === true}
            onChange={(e) => set(e.currentTarget.checked)}
          />
        </span>
      );
    case 'number':
      return (
        <input
          class="input num"
          type="number"
          {...props}
          readOnly={readOnly}
          value={String(value ?? '')}
          onInput={(e) => set(e.currentTarget.value === '' ? '' : Number(e.currentTarget.value))}
        />
      );
    case 'list':
      return <ListInput value={value as string[]} set={set} readOnly={readOnly} props={props} />;
    case 'json':
      return <JsonInput value={value} set={set} readOnly={readOnly} props={props} />;
    case 'textarea':
      return (
        <textarea
          class="textarea"
          {...props}
          readOnly={readOnly}
          value={String(value ?? '')}
          onInput={(e) => set(e.currentTarget.value)}
        />
      );
    default:
      return (
        <input
          class="input"
          type={(spec.kind ?? 'text') as 'text'}
          {...props}
          readOnly={readOnly}
          placeholder={spec.placeholder}
          autocomplete="off"
          spellcheck={false}
          value={labelOf(String(value ?? ''), spec.options)}
          onInput={(e) => set(valueOf(e.currentTarget.value, spec.options))}
        />
      );
  }
}

/** wordsIn are the words of a list that is typed, with commas or spaces between them. */
export const wordsIn = (text: string) => text.split(/[\s,，、]+/).filter(Boolean);

/** ListInput keeps what is typed, until the list is changed from outside. */
function ListInput({
  value,
  set,
  readOnly,
  props,
}: {
  value: string[];
  set: (v: string[]) => void;
  readOnly?: boolean;
  props: InputProps;
}) {
  const text = useSignal(value.join(', '));
  if (!same(wordsIn(text.value), value)) text.value = value.join(', ');
  return (
    <input
      class="input"
      {...props}
      readOnly={readOnly}
      autocomplete="off"
      spellcheck={false}
      value={text.value}
      onInput={(e) => {
        text.value = e.currentTarget.value;
        set(wordsIn(text.value));
      }}
    />
  );
}

/** JsonInput keeps what is typed: while it is not JSON, the value is NotJson, which cannot be sent. */
export function JsonInput({
  value,
  set,
  readOnly,
  most = 20,
  props,
}: {
  value: unknown; // or NotJson
  set: (v: unknown) => void;
  readOnly?: boolean;
  most?: number; // lines that are shown without scrolling
  props: InputProps;
}) {
  const text = useSignal<string | undefined>(undefined);
  const told = useRef(value);
  if (text.value === undefined || !same(told.current, value)) {
    // at first, and when it was changed from outside
    told.current = value;
    text.value = jsonText(value);
  }
  return (
    <textarea
      class="textarea mono"
      {...props}
      aria-invalid={notJson(value) ? true : props['aria-invalid']}
      readOnly={readOnly}
      spellcheck={false}
      rows={Math.min(most, Math.max(3, text.value.split('\n').length))}
      value={text.value}
      onInput={(e) => {
        text.value = e.currentTarget.value;
        told.current = text.value.trim() ? parseJson(text.value) : undefined; // emptied: the member goes
        set(told.current);
      }}
    />
  );
}
