// The move of a node with all below it: first what it would do, then one move.
import {useSignal} from '@preact/signals';
import {useEffect} from 'preact/hooks';
import {
  getTreeNode,
  listAncestors,
  listAuthRules,
  listDescendants,
  listTreeNodeUsers,
  updateTreeNode,
  type AuthRule,
  type CoreObject,
  type TreeNode,
} from '@idplatform/sdk';
import {asProblem, call, full, type ApiError} from '../../lib/api';
import {number} from '../../lib/format';
import {changed, useLoad} from '../../lib/load';
import {may} from '../../lib/session';
import {Button, Failed, Late, Tag, problemTitle} from '../../ui/basics';
import {Dialog, toast} from '../../ui/dialog';
import {Icon} from '../../ui/icon';
import {t as ui} from '../../ui/text';
import {NodePicker} from './picker';
import {t} from './text';
import {Impact} from '../../ui/impact';
import {undone} from '../../ui/undo';

const most = 16; // ancestors whose rules are asked for

interface Preview {
  path: string[]; // names, from the root
  nodes: number;
  moreNodes: boolean;
  people: number;
  morePeople: boolean;
  refused?: ApiError;
  stops: RuleOf[] | undefined; // undefined: not allowed to see them
  begins: RuleOf[] | undefined;
}

interface RuleOf {
  rule: AuthRule;
  from: TreeNode;
}

export function MoveDialog({
  object,
  id,
  to,
  close,
}: {
  object: CoreObject;
  id: string;
  to: string;
  close: (moved?: string) => void;
}) {
  const node = useLoad(id, async (signal) => {
    const [answer, above] = await Promise.all([
      full(getTreeNode({path: {id}, signal})),
      call(listAncestors({path: {id}, signal})),
    ]);
    return {...answer, above: above ?? []};
  });
  const target = useSignal<TreeNode | undefined>(undefined);
  const error = useSignal<ApiError | undefined>(undefined),
    busy = useSignal(false);
  useEffect(() => {
    if (to)
      void call(getTreeNode({path: {id: to}})).then(
        (n) => {
          target.value = n;
        },
        (e) => {
          error.value = asProblem(e);
        },
      );
  }, [to]);
  const loaded = node.state.value.value,
    parent = target.value;
  const preview = useLoad(loaded && parent ? `${loaded.etag} ${parent.id} ${parent.version}` : null, (signal) =>
    look(loaded!, parent!, signal),
  );
  const p = preview.state.value;
  const refused = p.value?.refused;
  const move = async () => {
    if (!loaded || !parent) return;
    busy.value = true;
    error.value = undefined;
    try {
      const before = loaded.data,
        now = await full(
          updateTreeNode({path: {id}, body: {parent_id: parent.id}, headers: {'If-Match': loaded.etag}}),
        );
      changed('nodes');
      toast(t('movedDone', {name: before.name, to: parent.name}), async () => {
        await undone(() =>
          call(updateTreeNode({path: {id}, body: {parent_id: before.parent_id}, headers: {'If-Match': now.etag}})),
        );
        changed('nodes');
      });
      close(id);
    } catch (e) {
      error.value = asProblem(e);
      if (error.value.problem.status === 412) node.again();
    } finally {
      busy.value = false;
    }
  };
  const ready = !!p.value && !p.busy && !refused && !p.error;
  return (
    <Dialog
      wide
      class="tree-move"
      title={t('moveTitle', {name: loaded?.data.name ?? '…'})}
      onClose={() => close()}
      foot={
        <>
          <Button onClick={() => close()}>{ui('cancel')}</Button>
          <Button
            kind="primary"
            scope="organization:write"
            disabled={!ready}
            busy={busy.value}
            onClick={() => void move()}
          >
            {t('moveDo')}
          </Button>
        </>
      }
    >
      {node.state.value.error && <Failed error={node.state.value.error} again={node.again} />}
      {error.value && <Failed error={error.value} />}
      <NodePicker
        key={to}
        object={object}
        chosen={parent}
        choose={(n) => {
          target.value = n;
        }}
        label={t('newParent')}
        way={to || loaded?.data.parent_id || undefined}
      />
      {!parent && <p class="muted">{t('moveHint')}</p>}
      {parent && (
        <section class="section" aria-live="polite" aria-busy={p.busy}>
          <h3>{t('whatHappens')}</h3>
          {p.error && <Failed error={p.error} again={preview.again} />}
          <Late busy={p.busy && !p.value} lines={4}>
            {refused && (
              <div class="note bad" role="alert">
                <Icon name="alert" />
                <div>
                  <div class="title">
                    {t('refused')}: {problemTitle(refused)}
                  </div>
                  <ul lang="en">
                    {(refused.problem.errors ?? [{location: '', message: refused.message}]).map((e) => (
                      <li>{e.message}</li>
                    ))}
                  </ul>
                </div>
              </div>
            )}
            {p.value && !refused && (
              <Effects
                preview={p.value}
                move={{node_id: id, parent_id: parent.id}}
                was={(loaded?.above ?? []).map((n) => n.name).reverse()}
                name={loaded?.data.name ?? ''}
              />
            )}
          </Late>
        </section>
      )}
    </Dialog>
  );
}

function Effects({
  preview: p,
  move,
  was,
  name,
}: {
  preview: Preview;
  move: {node_id: string; parent_id: string};
  was: string[];
  name: string;
}) {
  const more = (n: number, is: boolean) => (is ? `${number(n)}+` : number(n));
  return (
    <>
      <div class="stack" style={{gap: '4px'}}>
        <div class="muted">
          {t('pathNow')} <del>{[...was, name].join(' / ')}</del>
        </div>
        <div>
          {t('pathNew')} <strong>{[...p.path, name].join(' / ')}</strong>
        </div>
      </div>
      <div class="figures">
        <div>
          <strong class="num">{more(p.nodes, p.moreNodes)}</strong>
          {t('nodesBelow')}
        </div>
        <div>
          <strong class="num">{more(p.people, p.morePeople)}</strong>
          {t('peopleBelow')}
        </div>
        <div>
          <strong class="num">{p.stops ? `−${number(p.stops.length)} +${number(p.begins!.length)}` : '—'}</strong>
          {t('rulesChange')}
        </div>
      </div>
      {!p.stops && <p class="muted">{t('rulesHidden')}</p>}
      <Rules title={t('rulesStop')} rules={p.stops} />
      <Rules title={t('rulesBegin')} rules={p.begins} />
      <Impact changes={{moves: [move]}} />
    </>
  );
}

function Rules({title, rules}: {title: string; rules: RuleOf[] | undefined}) {
  if (!rules?.length) return null;
  return (
    <section class="section">
      <h3>{title}</h3>
      <ul class="tagged">
        {rules.map(({rule, from}) => (
          <li key={rule.id}>
            <Tag accent={rule.affect === 'affect'}>{rule.affect === 'deny' ? t('deny') : t('allow')}</Tag>
            <span class="clip">
              {rule.description || rule.code} <span class="faint">{rule.actions?.join(', ')}</span>
            </span>
            <span class="faint nowrap">{t('from', {name: from.name})}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** look asks what a move would do, without moving. */
async function look(
  node: {data: TreeNode; etag: string; above: TreeNode[]},
  parent: TreeNode,
  signal: AbortSignal,
): Promise<Preview> {
  const id = node.data.id;
  const trial = call(
    updateTreeNode({
      path: {id},
      query: {dry_run: 'true'},
      body: {parent_id: parent.id},
      headers: {'If-Match': node.etag},
      signal,
    }),
  ).then(
    () => undefined,
    (e: unknown) => asProblem(e),
  );
  const [refused, above, below, people] = await Promise.all([
    trial,
    call(listAncestors({path: {id: parent.id}, signal})),
    call(listDescendants({path: {id}, query: {page_size: 1}, signal})),
    call(listTreeNodeUsers({path: {id}, query: {recursive: 'true', page_size: 1}, signal})),
  ]);
  if (refused?.problem.status === 401 || refused?.problem.code === 'unreachable') throw refused;
  const then = [parent, ...(above ?? [])];
  const [stops, begins] = await Promise.all([
    rulesOf(
      node.above.filter((a) => !then.some((b) => b.id === a.id)),
      signal,
    ),
    rulesOf(
      then.filter((a) => !node.above.some((b) => b.id === a.id)),
      signal,
    ),
  ]);
  return {
    path: then.map((n) => n.name).reverse(),
    nodes: below.total ?? 0,
    moreNodes: below.total_relation === 'gte',
    people: people.total ?? 0,
    morePeople: people.total_relation === 'gte',
    refused,
    stops,
    begins,
  };
}

async function rulesOf(nodes: TreeNode[], signal: AbortSignal): Promise<RuleOf[] | undefined> {
  if (!may('permissions:read')) return undefined;
  try {
    const lists = await Promise.all(
      nodes.slice(0, most).map(async (from) => {
        const list = await call(
          listAuthRules({query: {identity_type: 'node', identity_id: from.id, page_size: 50, count: 'false'}, signal}),
        );
        return (list.items ?? []).map((rule) => ({rule, from}));
      }),
    );
    return lists.flat();
  } catch (e) {
    if (signal.aborted) throw e;
    return undefined; // the permissions service is away, or refuses: the move itself does not need it
  }
}
