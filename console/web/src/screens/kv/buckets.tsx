// The buckets of the tenant, and a new one.
import {useSignal} from '@preact/signals';
import {getKvBucket, listKvBuckets, putKvBucket, type KvBucket} from '@idplatform/sdk';
import {ApiError, asProblem, call} from '../../lib/api';
import {bytes, number} from '../../lib/format';
import {changed} from '../../lib/load';
import {go, href, param, setQuery} from '../../lib/router';
import {Button, Status} from '../../ui/basics';
import {toast} from '../../ui/dialog';
import {List, type Column, type Query, modifiedColumn, createdColumn} from '../../ui/list';
import {Field, FormDialog, faultOf, findFault, TextField} from '../../ui/record';
import {t} from './text';
import {DurationInput, lifetime} from './ttl';

export const scope = 'kv:write';

function load(query: Query, pageToken: string | undefined, signal: AbortSignal) {
  return call(
    listKvBuckets({
      signal,
      query: {
        keyword: query.q || undefined,
        page_sort: 'name[asc]',
        page_size: 100,
        page_token: pageToken,
        count: pageToken ? 'false' : undefined,
      },
    }),
  );
}

export function BucketState({state}: {state: KvBucket['state']}) {
  return <Status tone={state === 'active' ? 'good' : 'warn'}>{t.word('', state)}</Status>;
}

function columns(): Column<KvBucket>[] {
  return [
    {key: 'name', header: t('bucket'), cell: (b) => b.name, width: '30%'},
    {
      key: 'description',
      header: t('description'),
      cell: (b) => <span class="muted">{b.description}</span>,
      priority: 2,
    },
    {
      key: 'history',
      header: t('kept'),
      cell: (b) => <span class="num">{number(b.history)}</span>,
      width: '120px',
      priority: 3,
    },
    {key: 'ttl', header: t('ttl'), cell: (b) => lifetime(b.ttl_seconds), width: '150px', priority: 2},
    {
      key: 'max',
      header: t('maxBytes'),
      cell: (b) => bytes(b.max_object_bytes),
      width: '150px',
      priority: 3,
      optional: true,
    },
    {key: 'state', header: t('state'), cell: (b) => <BucketState state={b.state} />, width: '130px'},
    modifiedColumn({priority: 3}),
    createdColumn(),
  ];
}

export function Buckets() {
  const add = (
    <Button kind="primary" icon="plus" scope={scope} onClick={() => void setQuery({create: 1})}>
      {t('newBucket')}
    </Button>
  );
  return (
    <>
      <List<KvBucket>
        name="kv-buckets"
        title={t('title')}
        kind="kv-buckets"
        rowId={(b) => b.name}
        rowName={(b) => b.name}
        rowHref={(b) => href('kv', [b.name])}
        columns={columns()}
        load={load}
        search={t('searchBuckets')}
        actions={add}
        empty={{icon: 'box', title: t('emptyBuckets'), text: t('emptyBucketsText'), action: add}}
      />
      {param('create') && <Create close={() => void setQuery({create: null}, {replace: true})} />}
    </>
  );
}

function Create({close}: {close: () => void}) {
  const name = useSignal('');
  const form = useSignal({description: '', history: 10, ttl_seconds: 0, max_object_bytes: 1 << 20});
  const put = (member: Partial<typeof form.value>) => {
    form.value = {...form.value, ...member};
  };
  const send = async () => {
    await mustBeNew(name.value);
    return call(putKvBucket({path: {bucket: name.value}, body: form.value}));
  };
  return (
    <FormDialog
      title={t('newBucket')}
      yes={t('create')}
      disabled={!name.value}
      submit={send}
      close={close}
      done={async (made) => {
        changed('kv-buckets');
        toast(t('bucketCreated', {name: made.name}));
        await go(href('kv', [made.name]), {force: true});
      }}
    >
      {(error) => (
        <>
          <TextField
            label={t('bucket')}
            help={t('nameHelp')}
            error={faultOf(error, 'name') ?? pathFault(error)}
            required
            maxLength={64}
            mono
            value={name.value}
            set={(v) => {
              name.value = v;
            }}
          />
          <TextField
            label={t('description')}
            error={faultOf(error, 'description')}
            value={form.value.description}
            set={(v) => put({description: v})}
          />
          <div class="grid-2">
            <Field label={t('history')} help={t('historyHelp')} error={faultOf(error, 'history')}>
              {(p) => (
                <input
                  class="input num"
                  type="number"
                  min={0}
                  max={100}
                  {...p}
                  value={form.value.history}
                  onInput={(e) => put({history: Number(e.currentTarget.value)})}
                />
              )}
            </Field>
            <Field label={t('ttl')} help={lifetime(form.value.ttl_seconds)} error={faultOf(error, 'ttl_seconds')}>
              {(p) => (
                <DurationInput seconds={form.value.ttl_seconds} set={(ttl_seconds) => put({ttl_seconds})} props={p} />
              )}
            </Field>
          </div>
        </>
      )}
    </FormDialog>
  );
}

/** mustBeNew refuses a name that is taken: the operation would change that bucket's settings. */
async function mustBeNew(name: string): Promise<void> {
  try {
    await call(getKvBucket({path: {bucket: name}}));
  } catch (e) {
    if (asProblem(e).problem.status === 404) return;
    throw e;
  }
  throw new ApiError({
    status: 409,
    code: 'already_exists',
    errors: [{location: 'body.name', message: t('bucketExists')}],
  });
}

/** pathFault is what a problem says about a segment of the path. */
export function pathFault(error: ApiError | undefined): string | undefined {
  return findFault(error, (location) => location.startsWith('path.'));
}
