// Trees: the core objects, and the tree of one.
import '../../ui/kit';
import {useSignal} from '@preact/signals';
import {useEffect, useRef} from 'preact/hooks';
import {checkTreeNodes, listCoreObjects, listTreeNodes, type CoreObject, type TreeNode} from '@idplatform/sdk';
import {call} from '../../lib/api';
import {number} from '../../lib/format';
import {useKey} from '../../lib/keys';
import {changes, useLate, useLoad} from '../../lib/load';
import {own} from '../../lib/own';
import {go, href, hrefQuery, param, place, setQuery} from '../../lib/router';
import {may} from '../../lib/session';
import {Blank, Button, Failed, Late} from '../../ui/basics';
import {Icon} from '../../ui/icon';
import {Search} from '../../ui/list';
import {t as ui} from '../../ui/text';
import {CreateNode} from './create';
import {MoveDialog} from './move';
import {Objects, ObjectPanel} from './objects';
import {openedFromUrl, reveal, setOpened} from './opened';
import {NodePanel} from './panel';
import {Marks, Tree} from './rows';
import {t} from './text';

/** useObjects loads the core objects; there are few. */
export function useObjects() {
  return useLoad(`objects ${changes.value.objects ?? 0}`, (signal) => call(listCoreObjects({signal})));
}

export default function TreeScreen() {
  const {state, again} = useObjects();
  const code = place.value.rest[0] ?? '';
  if (!code) return <Objects state={state.value} again={again} />;
  const {value, error} = state.value;
  const object = value?.find((o) => o.code === code);
  if (error && !value)
    return (
      <section class="screen">
        <div class="page">
          <Failed error={error} again={again} />
        </div>
      </section>
    );
  if (!value)
    return (
      <section class="screen">
        <div class="tree-note">
          <Late busy lines={8}>
            {null}
          </Late>
        </div>
      </section>
    );
  if (!object) {
    return (
      <section class="screen">
        <Blank
          icon="tree"
          title={t('noTree', {code})}
          action={
            <a class="btn" href={href('tree')}>
              {t('allTrees')}
            </a>
          }
        >
          {t('noTreeText')}
        </Blank>
      </section>
    );
  }
  return <One key={object.id} object={object} all={value} />;
}

function One({object, all}: {object: CoreObject; all: CoreObject[]}) {
  const open = param('open'),
    q = param('q').trim(),
    parent = param('new'),
    move = param('move');
  const cut = useSignal('');
  const box = useRef<HTMLInputElement>(null);
  useKey('/', () => box.current?.focus());
  useEffect(() => {
    // a link to a node opens its way
    if (open && !param('nodes') && !param('way')) void setQuery(reveal(open), {replace: true, force: true});
  }, [open]);
  const key = (e: KeyboardEvent, node: TreeNode) => {
    const name = (e.ctrlKey || e.metaKey ? 'Ctrl+' : '') + e.key;
    if (!may('organization:write')) return false;
    if (name === 'Ctrl+x' && node.parent_id) cut.value = node.id;
    else if (name === 'Ctrl+v' && cut.value) void setQuery({move: cut.value, to: node.id});
    else if (name === 'F2') void setQuery({open: node.id, tab: null});
    else if (name === 'Delete') void setQuery({open: node.id, tab: null});
    else return false;
    return true;
  };
  return (
    <>
      <section class="screen" aria-label={object.name}>
        <header class="screen-head">
          <h1>
            <a class="muted" href={href('tree')}>
              {t('trees')}
            </a>
            <span class="faint" aria-hidden="true">
              /
            </span>
            <span>{object.name}</span>
            <span class="count num">{t('nodesCount', {n: object.node_count})}</span>
          </h1>
          <div class="actions">
            {all.length > 1 && (
              <select
                class="select"
                aria-label={t('otherTree')}
                value={object.code}
                onChange={(e) => void go(href('tree', [e.currentTarget.value]))}
              >
                {all.map((o) => (
                  <option key={o.id} value={o.code}>
                    {o.name}
                  </option>
                ))}
              </select>
            )}
            <Button
              icon="plus"
              kind="primary"
              scope="organization:write"
              onClick={() => void setQuery({new: open || object.root_node_id})}
            >
              {t('create')}
            </Button>
          </div>
        </header>
        <div class="tools">
          <Search placeholder={t('searchNodes')} box={box} />
          {!q && (
            <Button
              small
              kind="ghost"
              onClick={() => void setQuery({nodes: null, way: null}, {replace: true})}
              disabled={!param('nodes') && !param('way')}
            >
              {t('collapse')}
            </Button>
          )}
          {cut.value && (
            <span class="chip on">
              <span>{t('cutHint')}</span>
              <button
                type="button"
                class="twist"
                aria-label={ui('cancel')}
                onClick={() => {
                  cut.value = '';
                }}
              >
                <Icon name="x" size={12} />
              </button>
            </span>
          )}
        </div>
        {q ? (
          <Hits object={object} q={q} />
        ) : (
          <Tree
            root={object.root_node_id}
            label={object.name}
            opened={openedFromUrl(object.root_node_id)}
            setOpened={(o) => void setOpened(o)}
            current={open}
            choose={(n) =>
              void setQuery({open: n.id, nodes: param('nodes') || (param('way') ? null : object.root_node_id)})
            }
            onKey={key}
            cut={cut.value}
            drop={may('organization:write') ? (moved, to) => void setQuery({move: moved, to: to.id}) : undefined}
            end={(n) => (
              <a
                class="people num"
                tabIndex={-1}
                href={href('members', [n.id])}
                title={t('membersCount', {n: n.member_count})}
              >
                <Icon name="member" size={14} />
                <span aria-hidden="true">{number(n.member_count)}</span>
                <span class="visually-hidden">{t('membersCount', {n: n.member_count})}</span>
              </a>
            )}
          />
        )}
      </section>
      {open && <NodePanel key={open} id={open} object={object} />}
      {parent && (
        <CreateNode
          object={object}
          parent={parent}
          close={(id) =>
            void setQuery(
              id ? {new: null, open: id, tab: null, nodes: opened(object, parent), way: null} : {new: null},
              {replace: true},
            )
          }
        />
      )}
      {move && (
        <MoveDialog
          object={object}
          id={move}
          to={param('to')}
          close={(done) => {
            cut.value = '';
            void setQuery({move: null, to: null, ...(done ? reveal(done) : {})}, {replace: true, force: true});
          }}
        />
      )}
    </>
  );
}

/** opened is the list of open nodes with one more. */
function opened(object: CoreObject, id: string): string {
  const now = openedFromUrl(object.root_node_id);
  return [...new Set([...now.all, id])].join('.');
}

/** hitsOf finds nodes by name or exact code, and the names of those above them. */
export async function hitsOf(object: string, q: string, signal?: AbortSignal, size = 50) {
  const [byName, byCode] = await Promise.all([
    call(listTreeNodes({query: {object_code: object, name: q, page_size: size}, signal})),
    call(listTreeNodes({query: {object_code: object, code: q, page_size: 1, count: 'false'}, signal})),
  ]);
  const exact = byCode.items ?? [];
  const items = [...exact, ...(byName.items ?? []).filter((n) => n.id !== exact[0]?.id)];
  const ids = [...new Set(items.flatMap((n) => n.path.slice(0, -1)))].slice(0, 1000);
  const above = ids.length ? await call(checkTreeNodes({body: {type: 'id', ids}, signal})) : {};
  return {
    items,
    total: Math.max(byName.total ?? 0, items.length),
    names: (n: TreeNode) =>
      n.path
        .slice(0, -1)
        .map((id) => own(above, id)?.name ?? id)
        .join(' / '),
  };
}

/** Marked shows which part of a name was found. */
export function Marked({text, q}: {text: string; q: string}) {
  const at = text.toLowerCase().indexOf(q.toLowerCase());
  if (at < 0) return <>{text}</>;
  return (
    <>
      {text.slice(0, at)}
      <mark>{text.slice(at, at + q.length)}</mark>
      {text.slice(at + q.length)}
    </>
  );
}

function Hits({object, q}: {object: CoreObject; q: string}) {
  const {state, again} = useLoad(`${object.code} ${q} ${changes.value.nodes ?? 0}`, (signal) =>
    hitsOf(object.code, q, signal),
  );
  const {value, error, busy} = state.value;
  const late = useLate(busy && !value);
  if (error)
    return (
      <div class="hits">
        <div class="tree-note">
          <Failed error={error} again={again} />
        </div>
      </div>
    );
  if (!value)
    return (
      <div class="hits">
        {late && (
          <div class="tree-note">
            <Late busy lines={6}>
              {null}
            </Late>
          </div>
        )}
      </div>
    );
  if (!value.items.length) {
    return (
      <div class="hits">
        <Blank
          icon="search"
          title={ui('nothingMatches')}
          action={<Button onClick={() => void setQuery({q: null}, {replace: true})}>{ui('clearSearch')}</Button>}
        >
          {t('noHit')}
        </Blank>
      </div>
    );
  }
  return (
    <div class="hits" aria-busy={busy}>
      <ul aria-label={t('hits', {n: value.total})}>
        {value.items.map((n) => (
          <li key={n.id}>
            <a href={hrefQuery(reveal(n.id))}>
              <Icon name={n.is_pointer === '1' ? 'link' : 'box'} />
              <span class="grow">
                <span class="row">
                  <strong class="clip">
                    <Marked text={n.name} q={q} />
                  </strong>
                  <Marks node={n} />
                </span>
                <span class="faint clip" style={{display: 'block'}}>
                  {value.names(n) || object.name}
                </span>
              </span>
              <span class="mono faint clip only-wide">{n.code}</span>
            </a>
          </li>
        ))}
      </ul>
      {value.total > value.items.length && <p class="tree-note faint">{t('moreHits', {n: value.total})}</p>}
    </div>
  );
}

export {ObjectPanel};
