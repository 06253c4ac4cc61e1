// Inputs of a function's form that are not one text: triggers, hosts, variables, limits.
import {useSignal} from '@preact/signals';
import type {Function as Fn} from '@idplatform/sdk';
import {own} from '../../lib/own';
import {same} from '../../lib/patch';
import {Button} from '../../ui/basics';
import {Field, findFault, type Draft, TextField} from '../../ui/record';
import {t} from './text';

type D = {draft: Draft<Fn>};

const mask = '******'; // a value that is kept, and not shown

const linesOf = (text: string) =>
  text
    .split(/[\n,]/)
    .map((s) => s.trim())
    .filter(Boolean);

function LinesInput({
  label,
  help,
  error,
  changed,
  value,
  readOnly,
  set,
}: {
  label: string;
  help?: string;
  error?: string;
  changed?: boolean;
  value: string[];
  readOnly: boolean;
  set: (lines: string[]) => void;
}) {
  const text = useSignal(value.join('\n'));
  if (!same(linesOf(text.value), value)) text.value = value.join('\n'); // discarded, or loaded anew
  return (
    <Field wide label={label} help={help} error={error} changed={changed}>
      {(p) => (
        <textarea
          class="textarea mono short"
          {...p}
          readOnly={readOnly}
          spellcheck={false}
          rows={Math.min(8, Math.max(2, value.length + 1))}
          value={text.value}
          onInput={(e) => {
            text.value = e.currentTarget.value;
            set(linesOf(text.value));
          }}
        />
      )}
    </Field>
  );
}

export function TriggerFields({draft}: D) {
  const triggers = draft.draft.value.triggers,
    base = draft.base.value.triggers;
  const set = (next: Fn['triggers']) => draft.set('triggers', next);
  return (
    <div class="stack">
      {triggers.length === 0 && <p class="muted">{t('noTriggers')}</p>}
      {triggers.map((x, i) => (
        <div class="field-line" key={i}>
          <LinesInput
            label={triggers.length > 1 ? t('triggerNumber', {n: i + 1}) : t('eventTypes')}
            help={t('eventTypesHelp')}
            error={draft.fault(`triggers[${i}]`)}
            changed={!same(x, base[i])}
            value={x.event_types}
            readOnly={draft.readOnly}
            set={(event_types) => set(triggers.map((y, k) => (k === i ? {event_types} : y)))}
          />
          {!draft.readOnly && (
            <Button
              kind="ghost"
              icon="trash"
              label={t('removeTrigger', {n: i + 1})}
              onClick={() => set(triggers.filter((_, k) => k !== i))}
            />
          )}
        </div>
      ))}
      {!draft.readOnly && triggers.length < 10 && (
        <div class="row">
          <Button small icon="plus" onClick={() => set([...triggers, {event_types: []}])}>
            {t('addTrigger')}
          </Button>
        </div>
      )}
    </div>
  );
}

export function HostsField({draft}: D) {
  const value = draft.draft.value.allowed_hosts,
    base = draft.base.value;
  const moved = !same(value, base.allowed_hosts);
  const masked = Object.values(draft.draft.value.env).includes(mask);
  return (
    <LinesInput
      label={t('hosts')}
      help={moved && masked ? t('hostsMoved') : t('hostsHelp')}
      error={draft.fault('allowed_hosts')}
      changed={moved}
      value={value}
      readOnly={draft.readOnly}
      set={(hosts) => draft.set('allowed_hosts', hosts)}
    />
  );
}

/** EnvFields edits the variables. Their values are secrets: what is set is not shown, and stays unless it is typed. */
export function EnvFields({draft}: D) {
  const value = draft.draft.value.env,
    base = draft.base.value.env;
  const rows = useSignal(Object.entries(value));
  const record = (all: [string, string][]) => Object.fromEntries(all.filter(([name]) => name));
  if (!same(record(rows.value), value)) rows.value = Object.entries(value); // discarded, or loaded anew
  const set = (next: [string, string][]) => {
    rows.value = next;
    draft.set('env', record(next));
  };
  const general = findFault(draft.error.value, (location) => location === 'body.env');
  return (
    <div class="stack env">
      {rows.value.length === 0 && <p class="muted">{t('noEnv')}</p>}
      {rows.value.map(([name, v], i) => (
        <div class="field-line" key={i}>
          <TextField
            label={t('variable')}
            error={general}
            changed={!Object.hasOwn(base, name)}
            readOnly={draft.readOnly}
            mono
            value={name}
            set={(v) => set(rows.value.map((r, k) => (k === i ? [v, r[1]] : r)))}
          />
          <TextField
            label={t('value')}
            error={name ? draft.fault(`env.${name}`) : undefined}
            changed={own(base, name) !== v}
            type="password"
            readOnly={draft.readOnly}
            autocomplete="new-password"
            placeholder={v === mask ? t('kept') : ''}
            mono
            value={v === mask ? '' : v}
            set={(v) => {
              const typed = v;
              const next = typed === '' && own(base, name) !== undefined ? mask : typed;
              set(rows.value.map((r, k) => (k === i ? [r[0], next] : r)));
            }}
          />
          {!draft.readOnly && (
            <Button
              kind="ghost"
              icon="trash"
              label={t('removeVariable', {name: name || String(i + 1)})}
              onClick={() => set(rows.value.filter((_, k) => k !== i))}
            />
          )}
        </div>
      ))}
      {!draft.readOnly && (
        <div class="row">
          <Button
            small
            icon="plus"
            onClick={() => {
              rows.value = [...rows.value, ['', '']];
            }}
          >
            {t('addVariable')}
          </Button>
        </div>
      )}
    </div>
  );
}

export function LimitFields({draft}: D) {
  const limits = draft.draft.value.limits,
    base = draft.base.value.limits;
  const field = (member: keyof Fn['limits'], label: string, help: string) => (
    <Field label={label} help={help} error={draft.fault(`limits.${member}`)} changed={limits[member] !== base[member]}>
      {(p) => (
        <input
          class="input num"
          type="number"
          {...p}
          readOnly={draft.readOnly}
          value={limits[member] ?? ''}
          onInput={(e) => {
            const n = e.currentTarget.value === '' ? undefined : Number(e.currentTarget.value);
            draft.set('limits', {...limits, [member]: n});
          }}
        />
      )}
    </Field>
  );
  return (
    <div class="function-limits">
      {field('timeout_ms', t('timeoutMs'), t('timeoutMsHelp'))}
      {field('cpu_ms', t('cpuMs'), t('cpuMsHelp'))}
      {field('memory_mb', t('memoryMb'), t('memoryMbHelp'))}
    </div>
  );
}
