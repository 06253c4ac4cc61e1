// The settings of a bucket: panel, audit, and its deletion.
import {
  deleteKvBucket,
  getKvBucket,
  listKvObjects,
  putKvBucket,
  type KvBucket,
  type KvBucketInputWritable,
} from '@idplatform/sdk';
import {asProblem, call, full, run, type Answer} from '../../lib/api';
import {dateTime} from '../../lib/format';
import {changed} from '../../lib/load';
import {go, href} from '../../lib/router';
import {AuditTab} from '../../ui/audit';
import {Button, Id, JsonView, Menu} from '../../ui/basics';
import {confirm, toast} from '../../ui/dialog';
import {
  ConflictDialog,
  Facts,
  Faults,
  Field,
  FormFields,
  Panel,
  SaveBar,
  useDraft,
  type FieldSpec,
} from '../../ui/record';
import {t as ui} from '../../ui/text';
import {BucketState, scope} from './buckets';
import {t} from './text';
import {exportObjects} from './transfer';
import {DurationInput, lifetime} from './ttl';

const input = ({description, history, ttl_seconds, max_object_bytes}: KvBucket): KvBucketInputWritable => ({
  description,
  history,
  ttl_seconds,
  max_object_bytes,
});

const fields = (): FieldSpec<KvBucket>[] => [
  {field: 'description', label: t('description'), wide: true},
  {field: 'history', label: t('history'), help: t('historyHelp'), kind: 'number'},
  {field: 'max_object_bytes', label: t('maxBytes'), help: t('maxBytesHelp'), kind: 'number'},
];

/** BucketPanel is open while ?settings is in the URL. */
export function BucketPanel({answer, again}: {answer: Answer<KvBucket>; again: () => void}) {
  const path = {bucket: answer.data.name};
  const draft = useDraft<KvBucket>(answer, {
    scope,
    kind: 'kv-buckets',
    load: () => full(getKvBucket({path})),
    save: (_, etag, whole) => full(putKvBucket({path, body: input(whole), headers: {'If-Match': etag}})),
    saved: (now) => t('savedDone', {name: now.name}),
    again,
  });
  const b = draft.base.value;
  const ttl = draft.get('ttl_seconds') as number;
  const labels = {...Object.fromEntries(fields().map((f) => [f.field, f.label])), ttl_seconds: t('ttl')};
  return (
    <>
      <Panel
        openParam="settings"
        title={b.name}
        subtitle={
          <span class="row">
            {t('settings')}
            <BucketState state={b.state} />
          </span>
        }
        foot={b.state === 'active' && <SaveBar draft={draft} />}
        actions={
          <Menu
            icon="more"
            kind="ghost"
            label={ui('more')}
            items={[
              {label: t('deleteBucket'), icon: 'trash', danger: true, scope, onClick: () => void removeBucket(b)},
            ]}
          />
        }
        tabs={[
          {
            name: 'overview',
            label: ui('overview'),
            content: () => (
              <>
                <Faults error={draft.error.value} />
                <FormFields draft={draft} fields={fields()} />
                <Field
                  label={t('ttl')}
                  help={`${lifetime(ttl)} · ${t('ttlHelp')}`}
                  error={draft.fault('ttl_seconds')}
                  changed={ttl !== b.ttl_seconds}
                >
                  {(p) => (
                    <DurationInput
                      key={b.version}
                      seconds={ttl}
                      readOnly={draft.readOnly}
                      set={(v) => draft.set('ttl_seconds', v)}
                      props={p}
                    />
                  )}
                </Field>
                <Facts
                  facts={[
                    [t('id'), <Id>{b.id}</Id>],
                    [t('created'), dateTime(b.time_created)],
                    [t('modified'), dateTime(b.time_modified)],
                    [t('version'), <span class="num">{b.version}</span>],
                  ]}
                />
              </>
            ),
          },
          {
            name: 'audit',
            label: ui('audit'),
            content: () => <AuditTab entity="kv_bucket" record={b.id} version={b.version} />,
          },
          {name: 'json', label: ui('json'), content: () => <JsonView value={b} />},
        ]}
      />
      <ConflictDialog draft={draft} labels={labels} entity="kv_bucket" />
    </>
  );
}

/** removeBucket says what goes along, offers it as a file, and wants the name typed. */
async function removeBucket(b: KvBucket): Promise<void> {
  const path = {bucket: b.name};
  try {
    const {total = 0} = await call(listKvObjects({path, query: {page_size: 1}}));
    const yes = await confirm({
      title: t('deleteTitle', {name: b.name}),
      yes: ui('delete'),
      danger: true,
      typed: b.name,
      text: total ? (
        <>
          <p>{t('deleteFull', {n: total})}</p>
          <div>
            <Button small icon="download" onClick={() => void exportObjects(b.name, '')}>
              {t('downloadFirst')}
            </Button>
          </div>
        </>
      ) : (
        <p>{t('deleteEmpty')}</p>
      ),
    });
    if (!yes) return;
    const query = total ? {force: 'true' as const} : undefined;
    await call(deleteKvBucket({path, query, headers: {...run(total), 'If-Match': `"${b.version}"`}}));
    await go(href('kv'), {force: true});
    toast(t(total ? 'deletingDone' : 'deletedDone', {name: b.name}));
  } catch (e) {
    toast(asProblem(e).message);
  }
  changed('kv-buckets');
}
