// The published versions of a component: what has changed since, and bringing one back.
import {useSignal} from '@preact/signals';
import {getComponent, listComponentVersions, type Component, type ComponentVersion} from '@idplatform/sdk';
import {ApiError, asProblem, call, full} from '../../lib/api';
import {ago, dateTime} from '../../lib/format';
import {useLoad} from '../../lib/load';
import {diff, pick, type Fields} from '../../lib/patch';
import {param, setQuery} from '../../lib/router';
import {Blank, Button, Failed, Late, Tag} from '../../ui/basics';
import {toast} from '../../ui/dialog';
import {LineDiff} from '../../ui/linediff';
import {carryOut} from '../../ui/undo';
import {scope} from './index';
import {members, write} from './panel';
import {t} from './text';

const pageSize = 20;

export function Versions({component: c, after}: {component: Component; after: () => void}) {
  const page = (token?: string, signal?: AbortSignal) =>
    call(
      listComponentVersions({
        path: {id: c.id},
        query: {page_size: pageSize, page_token: token, page_sort: 'component_version[desc]', count: 'false'},
        signal,
      }),
    );
  const {state, again: reload} = useLoad(`versions ${c.id} ${c.component_version}`, (signal) =>
    page(undefined, signal),
  );
  const older = useSignal<{items: ComponentVersion[]; next?: string; of: number} | undefined>(undefined);
  const busy = useSignal(false);
  const {value, error} = state.value;
  if (error) return <Failed error={error} again={reload} />;
  const more = older.value?.of === c.component_version ? older.value : undefined;
  const items = [...(value?.items ?? []), ...(more?.items ?? [])];
  const next = more ? more.next : value?.next_page_token;
  const loadMore = async () => {
    busy.value = true;
    try {
      const got = await page(next);
      const all = [...(more?.items ?? []), ...got.items];
      older.value = {items: all, next: got.next_page_token, of: c.component_version};
    } catch (e) {
      toast(asProblem(e).message);
    } finally {
      busy.value = false;
    }
  };
  if (value && !items.length) {
    return (
      <Blank icon="puzzle" title={t('noVersions')}>
        {t('noVersionsText')}
      </Blank>
    );
  }
  return (
    <Late busy={!value} lines={6}>
      <ol class="cards">
        <li class="card row wrap">
          <strong>{t('draft')}</strong>
          <span class="faint">
            {t('draftText')} · {ago(c.time_modified)}
          </span>
        </li>
        {items.map((v) => (
          <Version key={v.component_version} component={c} version={v} after={after} />
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

const shown = ({name, code, type, config, schema}: Component | ComponentVersion) =>
  JSON.stringify({name, code, type, config, schema}, null, 2);

function patchTo(from: Component, to: Component): Partial<Component> {
  const of = (c: Component) => pick(c as unknown as Fields, members);
  return diff(of(from), of(to)) ?? {};
}

function Version({
  component: c,
  version: v,
  after,
}: {
  component: Component;
  version: ComponentVersion;
  after: () => void;
}) {
  const open = param('v') === String(v.component_version);
  const n = v.component_version;
  const same = shown(v) === shown(c);
  const back = () => {
    const {name, code, type, config, schema} = v;
    const then = {...c, name, code, type, config, schema};
    const path = {id: c.id};
    return carryOut({
      send: () => write(patchTo(c, then), `"${c.version}"`, then),
      back: async () => {
        const now = await full(getComponent({path}));
        if (shown(now.data) !== shown(then)) throw new ApiError({status: 412, code: 'version_mismatch'});
        return write(patchTo(now.data, c), now.etag, c);
      },
      said: t('broughtBack', {name, n}),
      after,
    });
  };
  return (
    <li class="card stack">
      <div class="row wrap">
        <strong class="num">{t('versionN', {n})}</strong>
        {n === c.component_version && <Tag accent>{t('published')}</Tag>}
        <span class="faint grow" title={dateTime(v.time_created)}>
          {ago(v.time_created)}
        </span>
        <Button small expanded={open} onClick={() => void setQuery({v: open ? null : n}, {replace: true, force: true})}>
          {t(open ? 'hide' : 'compare')}
        </Button>
      </div>
      {open && (
        <>
          <p class="muted">{t('since', {n})}</p>
          <LineDiff from={shown(v)} to={shown(c)} />
          <div>
            <Button icon="refresh" scope={scope} disabled={same} onClick={() => void back()}>
              {t('bringBack')}
            </Button>
          </div>
        </>
      )}
    </li>
  );
}
