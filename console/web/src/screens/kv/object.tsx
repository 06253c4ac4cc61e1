// One object: its value, its former states, audit, JSON.
import {
  deleteKvObject,
  getKvObject,
  putKvObject,
  type KvBucket,
  type KvObject,
  type KvValueInputWritable,
} from '@idplatform/sdk';
import {call, full, type Answer} from '../../lib/api';
import {ago, bytes, dateTime} from '../../lib/format';
import {changed} from '../../lib/load';
import {same} from '../../lib/patch';
import {param, setQuery} from '../../lib/router';
import {Id} from '../../ui/basics';
import {NotJson} from '../../lib/notjson';
import {
  Facts,
  PanelLoad,
  RecordMenu,
  RecordPanel,
  useDraft,
  type Draft,
  type Removal,
  TextField,
} from '../../ui/record';
import {scope} from './buckets';
import {ValueEditor} from './editor';
import {ExpiryField, ttlOf, type Expiry} from './expiry';
import {History} from './history';
import {t} from './text';
import {kindOf, kinds, saveValue, type Kind} from './value';

/** Form is an object with what its form adds: when it shall expire. */
type Form = KvObject & {expiry: Expiry};

const form = (a: Answer<KvObject>): Answer<Form> => ({...a, data: {...a.data, expiry: 'keep'}});

export function ObjectPanel({bucket, id}: {bucket: KvBucket; id: string}) {
  const path = {bucket: bucket.name, key: id};
  return (
    <PanelLoad id={id} load={async (signal) => form(await full(getKvObject({path, signal})))}>
      {(answer, again) => <Loaded bucket={bucket} answer={answer} again={again} />}
    </PanelLoad>
  );
}

/** write replaces the value of an object that still has a version. */
export async function write(o: KvObject, etag: string, expiry: Expiry = 'keep') {
  const body: KvValueInputWritable = {
    value: o.value,
    content_type: o.content_type,
    ttl_seconds: ttlOf(expiry, o.time_expires),
  };
  return full(putKvObject({path: {bucket: o.bucket, key: o.key}, body, headers: {'If-Match': etag}}));
}

function Loaded({bucket, answer, again}: {bucket: KvBucket; answer: Answer<Form>; again: () => void}) {
  const path = {bucket: bucket.name, key: answer.data.key};
  const draft = useDraft<Form>(answer, {
    scope,
    kind: 'kv-objects',
    load: async () => form(await full(getKvObject({path}))),
    save: async (_, etag, whole) => form(await write(whole, etag, whole.expiry)),
    saved: (now) => t('savedDone', {name: now.key}),
    again,
  });
  const {expiry: _, ...o} = draft.base.value;
  return (
    <RecordPanel<Form>
      title={o.key}
      subtitle={
        <span class="row">
          <span class="num">{bytes(o.size)}</span>
          <span class="clip">{o.content_type}</span>
        </span>
      }
      actions={
        <RecordMenu
          record={o}
          file={fileName(o)}
          scope={scope}
          items={[{label: t('downloadValue'), icon: 'download', onClick: () => saveValue(o)}]}
          removal={removal(o)}
        />
      }
      record={o as Form}
      entity="kv_object"
      draft={draft}
      labels={{value: t('value'), content_type: t('contentType'), expiry: t('expires')}}
      overview={() => (
        <>
          <Value draft={draft} bucket={bucket} />
          <div class="grid-2">
            <TypeField draft={draft} />
            <ExpiryField
              object={o}
              expiry={draft.get('expiry') as Expiry}
              set={(v) => draft.set('expiry', v)}
              bucketTtl={bucket.ttl_seconds}
              readOnly={draft.readOnly}
              error={draft.fault('ttl_seconds')}
            />
          </div>
          <Facts facts={facts(o)} />
        </>
      )}
      tabs={[
        {
          name: 'history',
          label: t('history'),
          content: () => (
            <History
              bucket={bucket}
              object={o}
              again={() => {
                changed('kv-objects');
                again();
              }}
            />
          ),
        },
      ]}
    />
  );
}

function Value({draft, bucket}: {draft: Draft<Form>; bucket: KvBucket}) {
  const value = draft.get('value'),
    type = draft.get('content_type') as string;
  const asked = param('as') as Kind;
  const kind = kinds(value).includes(asked) ? asked : value instanceof NotJson ? 'json' : kindOf(value, type);
  return (
    <ValueEditor
      name={draft.base.value.key}
      value={value}
      contentType={type}
      kind={kind}
      choose={(as) => void setQuery({as}, {replace: true, force: true})}
      set={(v, contentType) => {
        draft.set('value', v);
        if (contentType) draft.set('content_type', contentType);
      }}
      max={bucket.max_object_bytes}
      readOnly={draft.readOnly}
      error={draft.fault('value')}
      changed={!same(value, draft.base.value.value)}
    />
  );
}

function TypeField({draft}: {draft: Draft<Form>}) {
  const type = draft.get('content_type') as string;
  return (
    <TextField
      label={t('contentType')}
      help={t('contentTypeHelp')}
      error={draft.fault('content_type')}
      changed={type !== draft.base.value.content_type}
      readOnly={draft.readOnly}
      value={type}
      set={(v) => draft.set('content_type', v)}
    />
  );
}

function facts(o: KvObject): Parameters<typeof Facts>[0]['facts'] {
  return [
    [t('key'), <span class="mono">{o.key}</span>],
    [t('etag'), <Id>{`"${o.version}"`}</Id>],
    [t('expires'), o.time_expires ? <span title={dateTime(o.time_expires)}>{ago(o.time_expires)}</span> : t('never')],
    [t('kept'), <span class="num">{o.kept_versions}</span>],
    [t('created'), dateTime(o.time_created)],
    [t('modified'), <span title={dateTime(o.time_modified)}>{ago(o.time_modified)}</span>],
    [t('id'), <Id>{o.id}</Id>],
  ];
}

const fileName = (o: KvObject) => o.key.split('/').pop()!;

function removal(o: KvObject): Removal {
  return {
    title: t('deleteTitle', {name: o.key}),
    text: t('deleteObjectText'),
    typed: fileName(o).trim(),
    record: o,
    send: () => call(deleteKvObject({path: {bucket: o.bucket, key: o.key}, headers: {'If-Match': `"${o.version}"`}})),
    said: t('deletedDone', {name: o.key}),
    kinds: ['kv-objects'],
    leave: () => setQuery({open: null, tab: null, as: null, v: null}, {force: true}),
  };
}
