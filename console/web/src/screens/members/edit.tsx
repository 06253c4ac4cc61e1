// A value of a row that is edited where it stands.
import {useSignal} from '@preact/signals';
import {useEffect, useId, useRef} from 'preact/hooks';
import {asProblem} from '../../lib/api';
import {may} from '../../lib/session';
import {Icon} from '../../ui/icon';
import {labelOf, valueOf, type Choice} from '../../ui/live';
import {t} from './text';

export function EditText({
  value,
  label,
  save,
  options,
  locked,
}: {
  value: string;
  label: string;
  save: (value: string) => Promise<void>;
  options?: Choice[];
  locked?: boolean;
}) {
  const editing = useSignal(false),
    draft = useSignal(value),
    fault = useSignal(''),
    busy = useSignal(false);
  const input = useRef<HTMLInputElement>(null),
    button = useRef<HTMLButtonElement>(null);
  const list = useId();
  useEffect(() => {
    if (editing.value) input.current?.select();
  }, [editing.value]);
  const shown = labelOf(value, options);
  if (locked || !may('organization:write')) return <span class="clip">{shown}</span>;
  const end = () => {
    editing.value = false;
    requestAnimationFrame(() => button.current?.focus());
  };
  const send = async () => {
    const next = valueOf(draft.value.trim(), options);
    if (next === value) return end();
    busy.value = true;
    try {
      await save(next);
      end();
    } catch (e) {
      const p = asProblem(e);
      fault.value = p.problem.status === 412 ? t('changedSince') : (p.problem.errors?.[0]?.message ?? p.message);
      input.current?.focus();
    } finally {
      busy.value = false;
    }
  };
  if (!editing.value) {
    return (
      <button
        ref={button}
        type="button"
        class="members-edit"
        aria-label={`${label}: ${shown || t('none')}. ${t('change')}`}
        onClick={() => {
          draft.value = shown;
          fault.value = '';
          editing.value = true;
        }}
      >
        <span class="clip">{shown || <span class="faint">{t('none')}</span>}</span>
        <Icon name="edit" size={12} />
      </button>
    );
  }
  return (
    <span class="members-edit open">
      <input
        ref={input}
        class="input"
        aria-label={label}
        aria-invalid={fault.value ? true : undefined}
        title={fault.value || undefined}
        list={options && list}
        value={draft.value}
        disabled={busy.value}
        autocomplete="off"
        onInput={(e) => {
          draft.value = e.currentTarget.value;
          fault.value = '';
        }}
        onBlur={() => {
          if (!busy.value && !fault.value) void send();
        }}
        onKeyDown={(e) => {
          if (e.isComposing) return;
          if (e.key === 'Enter') void send();
          else if (e.key === 'Escape') {
            draft.value = shown;
            fault.value = '';
            end();
          } else return;
          e.preventDefault();
          e.stopPropagation();
        }}
      />
      {options && (
        <datalist id={list}>
          {options.map((o) => (
            <option key={o.value} value={o.label} />
          ))}
        </datalist>
      )}
      {fault.value && (
        <span class="visually-hidden" role="alert">
          {fault.value}
        </span>
      )}
    </span>
  );
}
