// A condition in CEL. What is wrong with it is marked where it is: the service tells line and column.
import {useRef} from 'preact/hooks';
import {Field} from '../../ui/record';
import {t} from './text';

export function CelField({
  value,
  set,
  error,
  readOnly,
  changed,
}: {
  value: string;
  set: (v: string) => void;
  error?: string;
  readOnly?: boolean;
  changed?: boolean;
}) {
  const refused = useRef({error, text: value}); // its text may be mended already
  if (refused.current.error !== error) refused.current = {error, text: value};
  return (
    <Field label={t('condition')} help={t('conditionHelp')} error={error} changed={changed} wide>
      {(props) => (
        <>
          <textarea
            class="textarea mono grants-cel"
            {...props}
            rows={3}
            spellcheck={false}
            autocomplete="off"
            readOnly={readOnly}
            placeholder={'context.ip.startsWith("10.") && subject.properties.level >= 3'}
            value={value}
            onInput={(e) => set(e.currentTarget.value)}
          />
          {error && <Mark text={refused.current.text} error={error} />}
        </>
      )}
    </Field>
  );
}

/** Mark shows the faulty line, with a caret below the place. Columns count characters from 1. */
function Mark({text, error}: {text: string; error: string}) {
  const at = /line (\d+), column (\d+)/.exec(error);
  if (!at) return null;
  const line = text.split('\n')[Number(at[1]) - 1] ?? '',
    chars = [...line],
    col = Math.min(Number(at[2]) - 1, chars.length);
  const word = /^[\w.]+|^./.exec(chars.slice(col).join(''))?.[0] ?? ' ';
  return (
    <pre class="grants-cel-mark" role="img" aria-label={t('at', {line: at[1]!, column: at[2]!})}>
      <span class="faint num">{at[1]} │ </span>
      {chars.slice(0, col).join('')}
      <mark>{word}</mark>
      {chars.slice(col).join('').slice(word.length)}
    </pre>
  );
}
