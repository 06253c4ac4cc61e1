import {notJson} from '../lib/notjson';
import {Field, JsonInput} from './record';

export {NotJson, mustBeJson} from '../lib/notjson';

/** JsonField is a field for JSON; what is none is said at once. */
export function JsonField({
  label,
  help,
  error,
  changed,
  ...input
}: {
  label: string;
  help?: string;
  error?: string;
  changed?: boolean;
  value: unknown;
  set: (value: unknown) => void;
  readOnly?: boolean;
  most?: number; // lines that are shown without scrolling
}) {
  return (
    <Field label={label} help={help} error={error ?? notJson(input.value)} changed={changed} wide>
      {(props) => <JsonInput {...input} props={props} />}
    </Field>
  );
}
