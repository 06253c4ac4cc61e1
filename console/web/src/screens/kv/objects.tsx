// The objects of a bucket: keys that begin with what is typed, page after page.
import {useSignal} from '@preact/signals';
import {deleteKvObject, getKvBucket, listKvObjects, type KvBucket, type KvObject} from '@idplatform/sdk';
import {asProblem, call, full, run, type Answer} from '../../lib/api';
import {ago, bytes, dateTime, number} from '../../lib/format';
import {changed, useLoad} from '../../lib/load';
import {href, param, setQuery} from '../../lib/router';
import {Blank, Button, Failed, Late, Menu, Status} from '../../ui/basics';
import {confirm, toast} from '../../ui/dialog';
import {List, type Column, type Query} from '../../ui/list';
import {t as ui} from '../../ui/text';
import {BucketPanel} from './bucket';
import {scope} from './buckets';
import {Create} from './create';
import {ImportDialog} from './import';
import {ObjectPanel} from './object';
import {t} from './text';
import {exportObjects} from './transfer';

export function Objects({name}: {name: string}) {
  const {state, again} = useLoad(`bucket ${name}`, (signal) => full(getKvBucket({path: {bucket: name}, signal})));
  const {value, error, busy} = state.value;
  if (value) return <Loaded answer={value} again={again} />;
  const missing = error?.problem.status === 404;
  return (
    <section class="screen">
      <div class="page kv-state">
        {missing ? (
          <Blank
            icon="box"
            title={t('noBucket', {name})}
            action={
              <a class="btn" href={href('kv')}>
                {t('allBuckets')}
              </a>
            }
          />
        ) : error ? (
          <Failed error={error} again={again} />
        ) : (
          <Late busy={busy} lines={8}>
            {null}
          </Late>
        )}
      </div>
    </section>
  );
}

function columns(): Column<KvObject>[] {
  return [
    {key: 'key', header: t('key'), cell: (o) => <span class="mono">{o.key}</span>},
    {
      key: 'type',
      header: t('contentType'),
      cell: (o) => <span class="muted">{o.content_type}</span>,
      width: '180px',
      priority: 3,
    },
    {key: 'size', header: t('size'), cell: (o) => <span class="num">{bytes(o.size)}</span>, width: '90px', priority: 2},
    {
      key: 'version',
      header: t('version'),
      cell: (o) => <span class="num">{number(o.version)}</span>,
      width: '90px',
      priority: 3,
    },
    {
      key: 'kept',
      header: t('kept'),
      cell: (o) => <span class="num">{number(o.kept_versions)}</span>,
      width: '120px',
      priority: 3,
      optional: true,
    },
    {
      key: 'expires',
      header: t('expires'),
      cell: (o) => (
        <span class="muted" title={dateTime(o.time_expires)}>
          {ago(o.time_expires) || t('never')}
        </span>
      ),
      width: '130px',
      priority: 2,
    },
    {
      key: 'modified',
      header: t('modified'),
      cell: (o) => (
        <span class="muted" title={dateTime(o.time_modified)}>
          {ago(o.time_modified)}
        </span>
      ),
      width: '140px',
      priority: 3,
    },
  ];
}

function Loaded({answer, again}: {answer: Answer<KvBucket>; again: () => void}) {
  const bucket = answer.data,
    path = {bucket: bucket.name};
  const total = useSignal<number | undefined>(undefined);
  const open = param('open'),
    off = bucket.state !== 'active';
  const load = async (query: Query, token: string | undefined, signal: AbortSignal) => {
    const page = await call(
      listKvObjects({
        path,
        signal,
        query: {prefix: query.q || undefined, page_size: 100, page_token: token, count: token ? 'false' : undefined},
      }),
    );
    total.value = page.total ?? total.value;
    return page;
  };
  const add = (
    <Button kind="primary" icon="plus" scope={scope} disabled={off} onClick={() => void setQuery({create: 1})}>
      {t('newObject')}
    </Button>
  );
  return (
    <>
      <div class="kv-objects">
        <header class="screen-head">
          <h1>
            <a class="muted" href={href('kv')}>
              {t('title')}
            </a>
            <span class="faint" aria-hidden="true">
              /
            </span>
            <span class="clip">{bucket.name}</span>
            {total.value !== undefined && <span class="count num">{ui('showing', {n: total.value})}</span>}
          </h1>
          <div class="actions">
            <Button icon="gear" onClick={() => void setQuery({settings: 1, open: null, tab: null})}>
              {t('settings')}
            </Button>
            <Menu
              icon="more"
              label={ui('more')}
              items={[
                {label: t('export'), icon: 'download', onClick: () => void exportObjects(bucket.name, param('q'))},
                {label: t('import'), icon: 'upload', scope, disabled: off, onClick: () => void setQuery({import: 1})},
              ]}
            />
            {add}
          </div>
        </header>
        {off && (
          <div class="tools">
            <div class="note warn grow">
              <Status tone="warn">{t('deleting')}</Status>
              <span>{t('deletingText')}</span>
            </div>
          </div>
        )}
        <List<KvObject>
          name="kv-objects"
          title={bucket.name}
          header={false}
          kind="kv-objects"
          rowId={(o) => o.key}
          rowName={(o) => o.key}
          columns={columns()}
          load={load}
          search={t('searchObjects')}
          empty={{
            icon: 'box',
            title: t('emptyObjects'),
            text: t('emptyObjectsText', {max: bytes(bucket.max_object_bytes)}),
            action: add,
          }}
          bulk={(selected, clear) => <Bulk bucket={bucket.name} selected={selected} clear={clear} />}
        />
      </div>
      {param('settings') ? (
        <BucketPanel answer={answer} again={again} />
      ) : (
        open && <ObjectPanel key={open} bucket={bucket} id={open} />
      )}
      {param('create') && <Create bucket={bucket} close={() => void setQuery({create: null}, {replace: true})} />}
      {param('import') && (
        <ImportDialog bucket={bucket.name} close={() => void setQuery({import: null}, {replace: true})} />
      )}
    </>
  );
}

/** Bulk deletes the selected objects one after another; what fails stays selected. */
function Bulk({bucket, selected, clear}: {bucket: string; selected: KvObject[]; clear: () => void}) {
  const done = useSignal<number | undefined>(undefined);
  const n = selected.length;
  const remove = async () => {
    const first = selected.slice(0, 8).map((o) => o.key);
    const text = n > 8 ? `${first.join(', ')} … (+${n - 8})` : first.join(', ');
    const title = t('bulkDeleteTitle', {n});
    if (!(await confirm({title, text, yes: ui('delete'), danger: true, typed: String(n)}))) return;
    const faults: string[] = [];
    done.value = 0;
    for (const o of selected) {
      try {
        await call(deleteKvObject({path: {bucket, key: o.key}, headers: {...run(n), 'If-Match': `"${o.version}"`}}));
      } catch (e) {
        if (asProblem(e).problem.status !== 404) faults.push(asProblem(e).message);
      }
      done.value++;
    }
    done.value = undefined;
    changed('kv-objects');
    clear();
    const gone = n - faults.length;
    if (gone) toast(t('bulkDeleted', {n: gone}));
    if (faults.length) toast(t('bulkFailed', {n: faults.length, why: faults[0]!}));
  };
  return (
    <Button
      small
      icon="trash"
      kind="danger"
      scope={scope}
      busy={done.value !== undefined}
      onClick={() => void remove()}
    >
      {done.value === undefined ? ui('delete') : t('ofAll', {n: done.value, all: n})}
    </Button>
  );
}
