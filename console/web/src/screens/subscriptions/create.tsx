// A new subscription, and the dialog that shows its secret once.
import {useSignal} from '@preact/signals';
import type {ComponentChildren} from 'preact';
import {
  createEventSubscription,
  listEventTypes,
  type EventSubscription,
  type EventSubscriptionInputWritable,
} from '@idplatform/sdk';
import {ApiError, call} from '../../lib/api';
import {changed, useLoad} from '../../lib/load';
import {toast} from '../../ui/dialog';
import {typeWords} from '../../ui/kinds';
import {Field, FormDialog, faultOf} from '../../ui/record';
import {SecretDialog} from '../../ui/secret';
import {t} from './text';

/** Fresh is a secret that the platform has just shown. */
export interface Fresh {
  id: string;
  name: string;
  secret: string;
  nats?: {user: string; subject: string};
  rotated?: boolean;
}

export function freshOf(s: EventSubscription, rotated = false): Fresh {
  const {type, user = '', subject = '', secret = ''} = s.delivery;
  return {id: s.id, name: s.name, secret, nats: type === 'nats' ? {user, subject} : undefined, rotated};
}

export const lines = (text: string) =>
  text
    .split(/[\n,]/)
    .map((s) => s.trim())
    .filter(Boolean);

/** headersOf reads "Name: value" lines; undefined if a line is not one. */
export function headersOf(text: string): Record<string, string> | undefined {
  const pairs = text
    .split('\n')
    .map((s) => s.trim())
    .filter(Boolean)
    .map((s) => /^([^:\s]+)\s*:\s*(.+)$/.exec(s));
  return pairs.every(Boolean) ? Object.fromEntries(pairs.map((p) => [p![1]!, p![2]!])) : undefined;
}

export const fault = (location: string, message: string) =>
  new ApiError({status: 400, code: 'invalid_parameters', errors: [{location: `body.${location}`, message}]});

export function Create({close}: {close: (made?: Fresh) => void}) {
  const type = useSignal<'webhook' | 'nats'>('webhook');
  const form = useSignal({name: '', types: '', filter: '', url: '', headers: ''});
  const known = useLoad('types', (signal) => call(listEventTypes({signal}))).state.value.value ?? [];
  const entities = [...new Set(known.map((k) => k.type.split('.')[0]! + '.*'))].sort();
  const f = form.value;
  const set = (name: keyof typeof f) => (e: {currentTarget: {value: string}}) => {
    form.value = {...form.value, [name]: e.currentTarget.value};
  };
  const send = async (idempotency: string) => {
    const headers = headersOf(f.headers),
      types = lines(f.types);
    if (!headers) throw fault('delivery.headers', t('rowFault'));
    if (!types.length) throw fault('event_types', t('typesFault'));
    const delivery =
      type.value === 'nats'
        ? {type: 'nats'}
        : {type: 'webhook', url: f.url.trim(), ...(Object.keys(headers).length && {headers})};
    const body: EventSubscriptionInputWritable = {
      name: f.name.trim(),
      event_types: types,
      filter: f.filter.trim(),
      delivery,
    };
    return call(createEventSubscription({body, headers: {'Idempotency-Key': idempotency}}));
  };
  const toggle = (pattern: string) => {
    const all = lines(f.types);
    form.value = {
      ...f,
      types: (all.includes(pattern) ? all.filter((x) => x !== pattern) : [...all, pattern]).join('\n'),
    };
  };
  const chosen = lines(f.types);
  return (
    <FormDialog
      wide
      title={t('create')}
      yes={t('createDo')}
      submit={send}
      close={() => close()}
      done={(made) => {
        changed('subscriptions');
        toast(t('createdDone', {name: made.name}));
        close(freshOf(made));
      }}
    >
      {(error) => (
        <>
          <Field label={t('name')} error={faultOf(error, 'name')}>
            {(p) => <input class="input" {...p} required autocomplete="off" value={f.name} onInput={set('name')} />}
          </Field>
          <Choices
            legend={t('kind')}
            name="type"
            value={type.value}
            choose={(v) => {
              type.value = v as 'nats';
            }}
            options={[
              {value: 'webhook', label: t('webhook'), help: t('webhookText')},
              {value: 'nats', label: t('nats'), help: t('natsText')},
            ]}
          />
          {type.value === 'webhook' && (
            <>
              <Field label={t('url')} help={t('urlHelp')} error={faultOf(error, 'delivery.url')}>
                {(p) => (
                  <input
                    class="input"
                    type="url"
                    {...p}
                    placeholder="https://"
                    autocomplete="off"
                    spellcheck={false}
                    value={f.url}
                    onInput={set('url')}
                  />
                )}
              </Field>
              <Field label={t('headers')} help={t('headersHelp')} error={faultOf(error, 'delivery.headers')}>
                {(p) => (
                  <textarea
                    class="textarea mono short"
                    rows={2}
                    {...p}
                    spellcheck={false}
                    value={f.headers}
                    onInput={set('headers')}
                  />
                )}
              </Field>
            </>
          )}
          <Field label={t('types')} help={t('typesHelp')} error={faultOf(error, 'event_types')}>
            {(p) => (
              <textarea
                class="textarea mono short"
                rows={Math.min(6, Math.max(2, chosen.length))}
                {...p}
                spellcheck={false}
                value={f.types}
                onInput={set('types')}
              />
            )}
          </Field>
          {entities.length > 0 && (
            <div class="chips" role="group" aria-label={t('types')}>
              {['*', ...entities].map((x) => (
                <button
                  key={x}
                  type="button"
                  class={chosen.includes(x) ? 'chip on' : 'chip'}
                  title={x}
                  aria-pressed={chosen.includes(x)}
                  onClick={() => toggle(x)}
                >
                  {typeWords(x)}
                </button>
              ))}
            </div>
          )}
          <Field label={t('filter')} help={t('filterHelp')} error={faultOf(error, 'filter')}>
            {(p) => (
              <textarea
                class="textarea mono short"
                rows={2}
                {...p}
                spellcheck={false}
                value={f.filter}
                onInput={set('filter')}
              />
            )}
          </Field>
        </>
      )}
    </FormDialog>
  );
}

/** Choices are radio buttons with an explanation each. */
export function Choices({
  legend,
  name,
  value,
  choose,
  options,
}: {
  legend: string;
  name: string;
  value: string;
  choose: (value: string) => void;
  options: {value: string; label: string; help?: string; more?: ComponentChildren}[];
}) {
  return (
    <fieldset class="choices">
      <legend>{legend}</legend>
      {options.map((o) => (
        <div key={o.value} class={o.value === value ? 'choice on' : 'choice'}>
          <label class="check">
            <input type="radio" name={name} checked={o.value === value} onChange={() => choose(o.value)} />
            <span>
              <strong>{o.label}</strong>
              {o.help && <span class="help">{o.help}</span>}
            </span>
          </label>
          {o.value === value && o.more}
        </div>
      ))}
    </fieldset>
  );
}

/** FreshSecret shows the secret of a subscription. */
export function FreshSecret({fresh: s, close}: {fresh: Fresh; close: () => void}) {
  const nats = s.nats;
  const text = [t(nats ? 'natsSecretText' : 'secretText'), s.rotated && !nats && t('secretOld')];
  const file = [nats && `user ${nats.user}`, nats && `subject ${nats.subject}`, s.secret].filter(Boolean).join('\n');
  return (
    <SecretDialog
      title={t('secretTitle')}
      text={text.filter(Boolean).join(' ')}
      values={[
        [t('secret'), s.secret],
        ...(nats
          ? ([
              [t('user'), nats.user],
              [t('subject'), nats.subject],
            ] as [string, string][])
          : []),
      ]}
      file={{name: `${s.name}.txt`, text: file + '\n'}}
      close={close}
    />
  );
}
