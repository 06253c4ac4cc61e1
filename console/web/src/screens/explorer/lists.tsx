// Who may do this, and what may somebody do: page after page.
import {useSignal} from '@preact/signals';
import type {ComponentChildren} from 'preact';
import {useEffect} from 'preact/hooks';
import {listAuthCheckIdentities, listAuthCheckObjects, type Identity, type Object as Thing} from '@idplatform/sdk';
import {aborted, asProblem, call, type ApiError} from '../../lib/api';
import {number} from '../../lib/format';
import {useLate} from '../../lib/load';
import {href, hrefQuery, param, setQuery} from '../../lib/router';
import {Blank, Button, Failed, Skeleton, Tag} from '../../ui/basics';
import {Party} from '../grants/sentence';
import {whoText} from '../grants/sources';
import type {ObjectType, Question} from './index';
import {t} from './text';

interface Page<T> {
  items: T[];
  total?: number;
  total_relation?: 'gte';
  next_page_token?: string;
}

/** Pages loads a page, and the next one when it is asked for. */
function Pages<T>({
  id,
  load,
  row,
  name,
  empty,
}: {
  id: string;
  load: (token: string | undefined, signal: AbortSignal) => Promise<Page<T>>;
  row: (item: T) => ComponentChildren;
  name: (item: T) => string;
  empty: ComponentChildren;
}) {
  const pages = useSignal<Page<T> | null>(null),
    busy = useSignal(false),
    error = useSignal<ApiError | undefined>(undefined);
  const late = useLate(busy.value && !pages.value);
  const more = async (signal: AbortSignal, from?: Page<T>) => {
    busy.value = true;
    error.value = undefined;
    try {
      const page = await load(from?.next_page_token, signal);
      if (signal.aborted) return;
      pages.value = {
        ...page,
        items: [...(from?.items ?? []), ...page.items],
        total: page.total ?? from?.total,
        total_relation: from?.total_relation ?? page.total_relation,
      };
    } catch (e) {
      if (!signal.aborted && !aborted(e)) error.value = asProblem(e);
    }
    if (!signal.aborted) busy.value = false;
  };
  useEffect(() => {
    const abort = new AbortController();
    pages.value = null;
    void more(abort.signal);
    return () => abort.abort();
  }, [id]);
  const all = pages.value;
  if (error.value && !all) return <Failed error={error.value} again={() => void more(new AbortController().signal)} />;
  if (!all) return late ? <Skeleton lines={8} /> : null;
  if (!all.items.length) return <>{empty}</>;
  return (
    <section class="section">
      <p class="muted num" role="status">
        {all.total !== undefined && t(all.total_relation ? 'atLeast' : 'count', {n: all.total})}
      </p>
      <ul class="grants-rules explorer-found">
        {all.items.map((item) => (
          <li key={name(item)}>{row(item)}</li>
        ))}
      </ul>
      {error.value && <Failed error={error.value} />}
      {all.next_page_token && (
        <div>
          <Button busy={busy.value} onClick={() => void more(new AbortController().signal, all)}>
            {t('more', {n: number(all.items.length)})}
          </Button>
        </div>
      )}
    </section>
  );
}

const kinds = ['user', 'node', 'core_object', 'application', 'group', 'everyone'] as const;

function Chips<T extends string>({
  name,
  value,
  all,
  label,
}: {
  name: string;
  value: T;
  all: readonly T[];
  label: (v: T) => string;
}) {
  return (
    <div class="chips" role="group" aria-label={t('kind')}>
      {all.map((v) => (
        <button
          key={v}
          type="button"
          class={v === value ? 'chip on' : 'chip'}
          aria-pressed={v === value}
          onClick={() => void setQuery({[name]: v === all[0] ? null : v}, {replace: true})}
        >
          {label(v)}
        </button>
      ))}
    </div>
  );
}

export function WhoCan({q}: {q: Question}) {
  const kind = kinds.find((k) => k === param('kind')) ?? 'user';
  const base = {
    application_id: q.app,
    object_type: q.type!,
    ...(q.type === 'app' ? {} : {object_code: q.code, action: q.action}),
  };
  return (
    <>
      <Chips name="kind" value={kind} all={kinds} label={(k) => t(`kind_${k}`)} />
      <Pages<Identity>
        id={JSON.stringify([base, kind])}
        name={whoText}
        load={(page_token, signal) =>
          call(
            listAuthCheckIdentities({
              signal,
              query: {...base, identity_type: kind, page_size: 50, page_token, count: page_token ? 'false' : undefined},
            }),
          )
        }
        row={(i) => (
          <div class="row spread">
            <Party type={i.identity_type} id={i.identity_id} name={i.identity_name} />
            <a class="btn small" href={hrefQuery({mode: null, kind: null, who: whoText(i)})}>
              {t('whyYes')}
            </a>
          </div>
        )}
        empty={
          <Blank icon="users" title={t('nobody')}>
            {t('nobodyText')}
          </Blank>
        }
      />
    </>
  );
}

const types: readonly ObjectType[] = ['data', 'api', 'ui', 'app'];

export function What({q}: {q: Question}) {
  const type = types.find((x) => x === param('about')) ?? 'data';
  const base = {identity_id: q.who!.id, identity_type: q.who!.type, application_id: q.app, object_type: type};
  return (
    <>
      <Chips name="about" value={type} all={types} label={(v) => t(`type_${v}`)} />
      <Pages<Thing>
        id={JSON.stringify(base)}
        name={(o) => `${o.object_type}:${o.object_id}`}
        load={(page_token, signal) =>
          call(
            listAuthCheckObjects({
              signal,
              query: {...base, page_size: 50, page_token, count: page_token ? 'false' : undefined},
            }),
          )
        }
        row={(o) => (
          <div class="row spread">
            <span class="row wrap">
              <span class="clip">{o.object_name || o.object_code}</span>
              {o.object_name && <code class="faint clip">{o.object_code}</code>}
            </span>
            <span class="row wrap end">
              {o.actions.map((a) => (
                <a
                  key={a}
                  title={t('whyYes')}
                  href={href('explorer', [], {
                    who: param('who'),
                    app: q.app,
                    on: `${o.object_type}:${o.object_code}`,
                    do: a,
                  })}
                >
                  <Tag accent>{a}</Tag>
                </a>
              ))}
            </span>
          </div>
        )}
        empty={
          <Blank icon="box" title={t('nothing')}>
            {t('nothingText')}
          </Blank>
        }
      />
    </>
  );
}
