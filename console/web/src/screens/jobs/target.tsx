// What a job runs, and with which payload.
import {useSignal} from '@preact/signals';
import {listFunctions, type JobTarget} from '@idplatform/sdk';
import {call} from '../../lib/api';
import {useLoad} from '../../lib/load';
import {nameOf} from '../../lib/names';
import {href} from '../../lib/router';
import {may, session} from '../../lib/session';
import {Button} from '../../ui/basics';
import {Field, SelectField, TextField} from '../../ui/record';
import {t as ui} from '../../ui/text';
import {JsonField} from '../../ui/jsonfield';
import {optional, type Form} from './form';
import {t} from './text';

type Type = JobTarget['type'];

const types: Type[] = ['webhook', 'nats', 'function'];

/** ofFunctions is the scope that a target of the type function needs, too. */
export const ofFunctions = 'functions:write';

export function TargetFields({form}: {form: Form}) {
  const d = form.value.target;
  const set = (value: Partial<JobTarget>) => form.set('target', {...d, ...value});
  const lacks = !may(ofFunctions);
  return (
    <>
      <div class="grid-2">
        <SelectField
          label={t('kind')}
          error={form.fault('target.type')}
          changed={form.changed('target')}
          help={lacks ? t('functionNeeds', {scope: ofFunctions}) : undefined}
          disabled={form.readOnly}
          value={d.type}
          set={(v) => {
            const type = v as Type;
            form.set('target', {type, ...(d.payload !== undefined && {payload: d.payload})});
          }}
        >
          {types.map((x) => (
            <option key={x} value={x} disabled={x === 'function' && lacks}>
              {t(x)}
            </option>
          ))}
        </SelectField>
        {d.type === 'nats' && (
          <TextField
            label={t('subject')}
            help={t('subjectHelp', {subject: `idp.jobs.${session.value.tenant_id ?? ''}.${d.subject || '…'}`})}
            error={form.fault('target.subject')}
            readOnly={form.readOnly}
            mono
            value={d.subject ?? ''}
            set={(v) => set({subject: v})}
          />
        )}
        {d.type === 'function' && <FunctionField form={form} set={set} />}
        {d.type === 'webhook' && <WebhookFields form={form} set={set} />}
        <PayloadField form={form} set={set} />
      </div>
    </>
  );
}

interface Part {
  form: Form;
  set: (value: Partial<JobTarget>) => void;
}

function WebhookFields({form, set}: Part) {
  const d = form.value.target;
  const kept = form.stored?.target.secret !== undefined && d.secret === form.stored.target.secret;
  const moved = kept && d.url !== form.stored?.target.url;
  return (
    <>
      <TextField
        wide
        label={t('url')}
        help={t('urlHelp')}
        error={form.fault('target.url')}
        type="url"
        readOnly={form.readOnly}
        placeholder="https://"
        value={d.url ?? ''}
        set={(v) => set({url: v})}
      />
      <Field
        wide
        label={t('secret')}
        help={moved ? t('secretMoved') : kept ? t('secretKept') : t('secretHelp')}
        error={form.fault('target.secret')}
      >
        {(p) => (
          <div class="row">
            {kept ? (
              <input class="input" {...p} readOnly value={d.secret} />
            ) : (
              <input
                class="input mono"
                type="password"
                {...p}
                autocomplete="new-password"
                readOnly={form.readOnly}
                placeholder="whsec_"
                value={d.secret ?? ''}
                onInput={(e) => set({secret: e.currentTarget.value || undefined})}
              />
            )}
            {!form.readOnly &&
              (kept ? (
                <Button onClick={() => set({secret: undefined})}>{t('secretReplace')}</Button>
              ) : (
                <>
                  <Button onClick={() => set({secret: freshSecret()})}>{t('secretMake')}</Button>
                  {d.secret && <CopySecret secret={d.secret} />}
                  {form.stored?.target.secret && (
                    <Button kind="ghost" onClick={() => set({secret: form.stored!.target.secret})}>
                      {ui('undo')}
                    </Button>
                  )}
                </>
              ))}
          </div>
        )}
      </Field>
    </>
  );
}

/** A secret that was made here has to be copied before it is saved: it is not shown again. */
function CopySecret({secret}: {secret: string}) {
  const done = useSignal(false);
  return (
    <Button
      icon={done.value ? 'check' : 'copy'}
      label={done.value ? ui('copied') : ui('copy')}
      onClick={() => {
        void navigator.clipboard?.writeText(secret);
        done.value = true;
      }}
    />
  );
}

/** freshSecret is a secret of the form of Standard Webhooks. */
function freshSecret(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  return 'whsec_' + btoa(String.fromCharCode(...bytes));
}

function FunctionField({form, set}: Part) {
  const d = form.value.target;
  const readable = may('functions:read');
  const {state} = useLoad(readable ? 'functions' : null, (signal) =>
    call(listFunctions({query: {page_size: 200, page_sort: 'name[asc]', count: 'false'}, signal})),
  );
  const all = state.value.value?.items ?? [];
  const known = all.some((f) => f.id === d.function_id);
  return (
    <Field
      label={t('function')}
      error={form.fault('target.function_id') ?? state.value.error?.message}
      help={readable && state.value.value && !all.length ? t('noFunctions') : undefined}
    >
      {(p) =>
        readable ? (
          <div class="row">
            <select
              class="select"
              {...p}
              disabled={form.readOnly || !may(ofFunctions)}
              value={d.function_id ?? ''}
              onChange={(e) => set({function_id: e.currentTarget.value})}
            >
              {!d.function_id && <option value="">{t('choose')}</option>}
              {d.function_id && !known && (
                <option value={d.function_id}>{nameOf('function', d.function_id) || d.function_id}</option>
              )}
              {all.map((f) => (
                <option key={f.id} value={f.id}>
                  {f.name}
                  {f.status === '0' ? ` (${t('disabled')})` : ''}
                </option>
              ))}
            </select>
            {d.function_id && (
              <a class="btn" href={href('functions', [], {open: d.function_id})}>
                {ui('open')}
              </a>
            )}
          </div>
        ) : (
          <input
            class="input mono"
            {...p}
            readOnly={form.readOnly}
            value={d.function_id ?? ''}
            onInput={(e) => set({function_id: e.currentTarget.value})}
          />
        )
      }
    </Field>
  );
}

function PayloadField({form, set}: Part) {
  const d = form.value.target;
  return (
    <JsonField
      label={t('payload')}
      help={t('payloadHelp')}
      error={form.fault('target.payload')}
      value={d.payload}
      readOnly={form.readOnly || (d.type === 'function' && !may(ofFunctions))}
      set={(payload) => set({payload: optional(payload)})}
    />
  );
}
