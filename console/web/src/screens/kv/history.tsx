// The former states of an object: what has changed since, and writing one back.
import {useSignal} from '@preact/signals';
import {getKvObjectHistory, type KvBucket, type KvObject, type KvVersion} from '@idplatform/sdk';
import {asProblem, call} from '../../lib/api';
import {ago, bytes, dateTime} from '../../lib/format';
import {useLoad} from '../../lib/load';
import {param, setQuery} from '../../lib/router';
import {Blank, Button, Failed, Late, Tag} from '../../ui/basics';
import {toast} from '../../ui/dialog';
import {LineDiff} from '../../ui/linediff';
import {t as ui} from '../../ui/text';
import {undone} from '../../ui/undo';
import {scope} from './buckets';
import {write} from './object';
import {t} from './text';
import {kindOf, saveValue, written} from './value';

const pageSize = 20;

export function History({bucket, object: o, again}: {bucket: KvBucket; object: KvObject; again: () => void}) {
  const path = {bucket: o.bucket, key: o.key};
  const page = (token?: string, signal?: AbortSignal) =>
    call(getKvObjectHistory({path, query: {page_size: pageSize, page_token: token, count: 'false'}, signal}));
  const {state, again: reload} = useLoad(`history ${o.id} ${o.version}`, (signal) => page(undefined, signal));
  const older = useSignal<{items: KvVersion[]; next?: string; of: number} | undefined>(undefined);
  const busy = useSignal(false);
  const {value, error} = state.value;
  if (error) return <Failed error={error} again={reload} />;
  const more = older.value?.of === o.version ? older.value : undefined;
  const items = [...(value?.items ?? []), ...(more?.items ?? [])];
  const next = more ? more.next : value?.next_page_token;
  const loadMore = async () => {
    busy.value = true;
    try {
      const got = await page(next);
      older.value = {items: [...(more?.items ?? []), ...got.items], next: got.next_page_token, of: o.version};
    } catch (e) {
      toast(asProblem(e).message);
    } finally {
      busy.value = false;
    }
  };
  if (value && !items.length) {
    const none = bucket.history === 0;
    return (
      <Blank
        icon="clock"
        title={t(none ? 'noHistory' : 'noChange')}
        action={none && <Button onClick={() => void setQuery({settings: 1, tab: null})}>{t('settings')}</Button>}
      >
        {t(none ? 'noHistoryText' : 'noChangeText')}
      </Blank>
    );
  }
  return (
    <Late busy={!value} lines={6}>
      <ol class="cards">
        <li class="card row wrap">
          <strong class="num">{t('versionN', {n: o.version})}</strong>
          <Tag accent>{t('current')}</Tag>
          <State of={o} />
        </li>
        {items.map((v) => (
          <Former key={v.version} object={o} version={v} again={again} />
        ))}
      </ol>
      {next && (
        <div>
          <Button busy={busy.value} onClick={() => void loadMore()}>
            {t('more')}
          </Button>
        </div>
      )}
    </Late>
  );
}

function State({of: {time_modified, size, content_type}}: {of: KvVersion | KvObject}) {
  return (
    <span class="faint num clip grow" title={dateTime(time_modified)}>
      {ago(time_modified)} · {bytes(size)} · {content_type}
    </span>
  );
}

function Former({object: o, version: v, again}: {object: KvObject; version: KvVersion; again: () => void}) {
  const open = param('v') === String(v.version);
  const busy = useSignal(false);
  const back = async () => {
    busy.value = true;
    try {
      const {data: now} = await write({...o, value: v.value, content_type: v.content_type}, `"${o.version}"`);
      toast(t('writtenBack', {n: v.version, name: o.key}), async () => {
        await undone(() => write(o, `"${now.version}"`));
        again();
      });
      await setQuery({v: null}, {replace: true});
    } catch (e) {
      toast(asProblem(e).problem.status === 412 ? ui('changedSince') : asProblem(e).message);
    } finally {
      busy.value = false;
    }
    again();
  };
  return (
    <li class="card stack">
      <div class="row wrap">
        <strong class="num">{t('versionN', {n: v.version})}</strong>
        <State of={v} />
        <Button
          small
          expanded={open}
          onClick={() => void setQuery({v: open ? null : v.version}, {replace: true, force: true})}
        >
          {t(open ? 'hide' : 'compare')}
        </Button>
      </div>
      {open && (
        <>
          <p class="muted">{t('since', {n: v.version})}</p>
          <Difference from={v} to={o} />
          <div class="row wrap">
            <Button icon="refresh" scope={scope} busy={busy.value} onClick={() => void back()}>
              {t('writeBack')}
            </Button>
            <Button kind="ghost" icon="download" onClick={() => saveValue({...v, key: o.key})}>
              {t('download')}
            </Button>
          </div>
        </>
      )}
    </li>
  );
}

function Difference({from, to}: {from: KvVersion; to: KvObject}) {
  const a = kindOf(from.value, from.content_type),
    b = kindOf(to.value, to.content_type);
  if (a === 'binary' || b === 'binary') return <p class="faint">{t('binaryDiff')}</p>;
  return <LineDiff from={written(from.value, a)} to={written(to.value, b)} />;
}
