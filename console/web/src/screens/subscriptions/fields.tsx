// Inputs of a subscription's form that are not one text: types, one per line, and where events go.
import {useSignal} from '@preact/signals';
import type {EventSubscription} from '@idplatform/sdk';
import {dateTime} from '../../lib/format';
import {same} from '../../lib/patch';
import {Id} from '../../ui/basics';
import {Facts, Field, type Draft, TextField} from '../../ui/record';
import {headersOf, lines} from './create';
import {t} from './text';

type D = {draft: Draft<EventSubscription>};

export function TypesField({draft}: D) {
  const value = draft.draft.value.event_types;
  const text = useSignal(value.join('\n'));
  if (!same(lines(text.value), value)) text.value = value.join('\n'); // discarded, or loaded anew
  return (
    <Field
      wide
      label={t('types')}
      help={t('typesHelp')}
      error={draft.fault('event_types')}
      changed={!same(value, draft.base.value.event_types)}
    >
      {(p) => (
        <textarea
          class="textarea mono short"
          {...p}
          readOnly={draft.readOnly}
          spellcheck={false}
          rows={Math.min(8, Math.max(2, value.length + 1))}
          value={text.value}
          onInput={(e) => {
            text.value = e.currentTarget.value;
            draft.set('event_types', lines(text.value));
          }}
        />
      )}
    </Field>
  );
}

const headerText = (headers: Record<string, string> | undefined) =>
  Object.entries(headers ?? {})
    .map(([k, v]) => `${k}: ${v}`)
    .join('\n');

export function DeliveryFields({draft}: D) {
  const d = draft.draft.value.delivery,
    base = draft.base.value.delivery;
  if (d.type === 'nats') {
    return (
      <Facts
        facts={[
          [t('delivery'), t('nats')],
          [t('subject'), <Id>{d.subject ?? ''}</Id>],
          [t('user'), <Id>{d.user ?? ''}</Id>],
          [t('secret'), <span class="faint">{t('secretSet')}</span>],
        ]}
      />
    );
  }
  return (
    <>
      <TextField
        wide
        label={t('url')}
        help={t('urlHelp')}
        error={draft.fault('delivery.url')}
        changed={d.url !== base.url}
        type="url"
        readOnly={draft.readOnly}
        value={d.url ?? ''}
        set={(v) => draft.set('delivery', {...d, url: v})}
      />
      <HeadersField draft={draft} />
      <Facts
        facts={[
          [t('secret'), d.secret ? <span class="faint">{t('secretSet')}</span> : ''],
          ['', d.previous_until ? t('previousUntil', {time: dateTime(d.previous_until)}) : ''],
        ]}
      />
    </>
  );
}

function HeadersField({draft}: D) {
  const d = draft.draft.value.delivery,
    base = draft.base.value.delivery;
  const text = useSignal(headerText(d.headers));
  const parsed = headersOf(text.value);
  if (parsed && !same(parsed, d.headers ?? {})) text.value = headerText(d.headers);
  return (
    <Field
      wide
      label={t('headers')}
      help={t('headersKeep')}
      error={parsed ? draft.fault('delivery.headers') : t('rowFault')}
      changed={!same(d.headers ?? {}, base.headers ?? {})}
    >
      {(p) => (
        <textarea
          class="textarea mono short"
          {...p}
          rows={3}
          readOnly={draft.readOnly}
          spellcheck={false}
          value={text.value}
          onInput={(e) => {
            text.value = e.currentTarget.value;
            const headers = headersOf(text.value);
            if (headers) draft.set('delivery', {...d, headers});
          }}
        />
      )}
    </Field>
  );
}
