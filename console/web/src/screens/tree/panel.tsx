// One node of a tree: overview and form, audit, JSON; and what can be done with it.
import type {ComponentChildren} from 'preact';
import {
  deleteTreeNode,
  disableTreeNode,
  enableTreeNode,
  getTreeNode,
  listAncestors,
  listTreeNodes,
  updateTreeNode,
  type CoreObject,
  type TreeNode,
} from '@idplatform/sdk';
import {call, full, run, type Answer} from '../../lib/api';
import {ago, dateTime} from '../../lib/format';
import {changed, changes, useLoad} from '../../lib/load';
import {href, hrefQuery, setQuery} from '../../lib/router';
import {Button, Id, problemTitle} from '../../ui/basics';
import type {Question} from '../../ui/dialog';
import {Impact} from '../../ui/impact';
import {
  Facts,
  FormFields,
  PanelLoad,
  RecordMenu,
  RecordPanel,
  labelsOf,
  useDraft,
  type FieldSpec,
  type Removal,
} from '../../ui/record';
import {attempt, carryOut} from '../../ui/undo';
import {reveal} from './opened';
import {Marks} from './rows';
import {t} from './text';

const scope = 'organization:write';

interface NodeAnswer extends Answer<TreeNode> {
  above: TreeNode[];
}

export function NodePanel({id, object}: {id: string; object: CoreObject}) {
  const load = async (signal: AbortSignal): Promise<NodeAnswer> => {
    const [answer, above] = await Promise.all([
      full(getTreeNode({path: {id}, signal})),
      call(listAncestors({path: {id}, signal})),
    ]);
    return {...answer, above: [...(above ?? [])].reverse()};
  };
  return (
    <PanelLoad id={`${id} ${changes.value.nodes ?? 0}`} load={load}>
      {(answer, again) => <Loaded answer={answer} again={again} object={object} />}
    </PanelLoad>
  );
}

const fields = (n: TreeNode): FieldSpec<TreeNode>[] => [
  {field: 'name', label: t('name')},
  {field: 'code', label: t('code')},
  {field: 'tag', label: t('tag')},
  {field: 'seq', label: t('seq'), kind: 'number', help: t('seqHelp')},
  {field: 'description', label: t('description'), kind: 'textarea'},
  ...(n.is_dynamic === '1'
    ? [{field: 'condition' as const, label: t('condition'), kind: 'textarea' as const, help: t('conditionHelp')}]
    : []),
  {field: 'free_ext_props', label: t('freeProps'), kind: 'json'},
];

function Loaded({answer, again, object}: {answer: NodeAnswer; again: () => void; object: CoreObject}) {
  const id = answer.data.id;
  const draft = useDraft<TreeNode>(answer, {
    scope,
    kind: 'nodes',
    load: () => full(getTreeNode({path: {id}})),
    save: (patch, etag) => full(updateTreeNode({path: {id}, body: patch, headers: {'If-Match': etag}})),
    saved: (now) => t('savedDone', {name: now.name}),
  });
  const node = draft.base.value;
  return (
    <RecordPanel
      title={node.name}
      subtitle={
        <span class="row">
          <span class="mono clip">{node.code}</span>
          <Marks node={node} />
        </span>
      }
      actions={<Actions node={node} again={again} />}
      record={node}
      entity="node"
      draft={draft}
      labels={labelsOf(fields(node))}
      overview={() => (
        <>
          {answer.above.length > 0 && (
            <Crumbs nodes={answer.above} last={node.name} link={(n) => hrefQuery(reveal(n.id))} />
          )}
          <div class="row wrap">
            <a class="btn" href={href('members', [id])}>
              {t('membersCount', {n: node.member_count})}
            </a>
            <Button icon="plus" scope={scope} onClick={() => void setQuery({new: id})}>
              {t('createBelow')}
            </Button>
            {node.parent_id && (
              <Button scope={scope} onClick={() => void setQuery({move: id})}>
                {t('move')}
              </Button>
            )}
          </div>
          {node.is_pointer === '1' && <Target id={node.pointer_id} />}
          <section class="section">
            <FormFields draft={draft} fields={fields(node)} />
          </section>
          <Facts facts={facts(node, object)} />
        </>
      )}
    />
  );
}

/** Crumbs are the nodes above one, from the root. */
export function Crumbs({nodes, last, link}: {nodes: TreeNode[]; last?: string; link: (n: TreeNode) => string}) {
  return (
    <nav class="crumbs" aria-label={t('path')}>
      {nodes.map((n) => (
        <span key={n.id}>
          <a class="clip" href={link(n)}>
            {n.name}
          </a>
          <span aria-hidden="true">/</span>
        </span>
      ))}
      {last && <strong class="clip">{last}</strong>}
    </nav>
  );
}

/** Target is the node that a pointer stands for. */
function Target({id}: {id: string}) {
  const {state} = useLoad(id, (signal) => call(getTreeNode({path: {id}, signal})));
  const n = state.value.value;
  return (
    <Facts
      facts={[
        [
          t('pointsTo'),
          n ? <a href={href('tree', [n.object_code], {open: n.id})}>{n.name}</a> : <span class="mono">{id}</span>,
        ],
      ]}
    />
  );
}

function facts(n: TreeNode, object: CoreObject): [string, ComponentChildren][] {
  return [
    [t('id'), <Id>{n.id}</Id>],
    ['ARN', <Id>{n.arn}</Id>],
    [t('tree'), object.name],
    [t('depth'), <span class="num">{n.depth}</span>],
    [t('childrenLabel'), <span class="num">{n.child_count}</span>],
    [t('created'), dateTime(n.time_created)],
    [t('modified'), <span title={dateTime(n.time_modified)}>{ago(n.time_modified)}</span>],
    [t('version'), <span class="num">{n.version}</span>],
  ];
}

function Actions({node, again}: {node: TreeNode; again: () => void}) {
  const on = node.status === '1',
    path = {id: node.id};
  const status = async (recursive: boolean) => {
    const set = (enable: boolean, dry_run?: 'true') => {
      const query = recursive ? {recursive: 'true' as const, dry_run} : undefined;
      return call(enable ? enableTreeNode({path, query}) : disableTreeNode({path, query}));
    };
    const ask = recursive ? await ofAll(() => set(!on, 'true')) : ofOne();
    if (!ask) return;
    await carryOut({
      ask,
      send: () => set(!on),
      back: recursive ? undefined : () => set(on),
      said: t(on ? 'disabledDone' : 'enabledDone', {name: node.name}),
      after: () => {
        changed('nodes');
        again();
      },
    });
  };
  // A disabled node gives nothing to the nodes below either; an enabled one does not enable them.
  const impact = <Impact changes={{statuses: [{node_id: node.id, status: on ? '0' : '1'}]}} />;
  const ofOne = (): Question => ({
    title: t(on ? 'disableTitle' : 'enableTitle', {name: node.name}),
    text: (
      <>
        <p>{t(on ? 'disableText' : 'enableText')}</p>
        {impact}
      </>
    ),
    yes: t(on ? 'disable' : 'enable'),
  });
  /** ofAll tries the change of all nodes below; it has no question if that fails. */
  const ofAll = async (trial: () => Promise<unknown>): Promise<Question | undefined> => {
    let below = {n: 0, more: ''};
    const tried = await attempt(async () => {
      const query = {object_code: node.object_code, parent_id: node.id, recursive: 'true' as const};
      const [list] = await Promise.all([
        call(listTreeNodes({query: {...query, status: on ? '1' : '0', page_size: 1}})),
        trial(),
      ]);
      below = {n: list.total ?? 0, more: list.total_relation ? '+' : ''};
    });
    if (!tried) return undefined;
    return {
      title: t(on ? 'disableAllTitle' : 'enableAllTitle', {name: node.name}),
      text: (
        <>
          <p>{t('allBelowText', below)}</p>
          {on && impact}
        </>
      ),
      yes: t(on ? 'disableAll' : 'enableAll'),
    };
  };
  return (
    <RecordMenu
      record={node}
      file={node.code}
      scope={scope}
      items={[
        {label: t(on ? 'disable' : 'enable'), icon: on ? 'lock' : 'unlock', scope, onClick: () => void status(false)},
        ...(node.child_count
          ? [{label: t(on ? 'disableAll' : 'enableAll'), scope, onClick: () => void status(true)}]
          : []),
      ]}
      removal={removal(node)}
      cannotRemove={!node.parent_id}
    />
  );
}

function removal(node: TreeNode): Removal {
  const send = (dry?: string) =>
    call(
      deleteTreeNode({
        path: {id: node.id},
        query: {object_code: node.object_code, dry_run: dry},
        headers: {...run(node.member_count), 'If-Match': `"${node.version}"`},
      }),
    );
  return {
    title: t('deleteTitle', {name: node.name}),
    text: (
      <>
        <p>{t('deleteText')}</p>
        <p>{t('goAlong', {n: node.member_count})}</p>
      </>
    ),
    typed: node.name,
    record: node,
    file: node.code,
    dry: () => send('true'),
    send: () => send(),
    counted: () => hrefQuery({nodes: node.path.join('.'), way: null}),
    refusal: (p) =>
      p.problem.code === 'has_children' ? t('hasChildren', {n: node.child_count}) : `${problemTitle(p)}. ${p.message}`,
    said: t('deletedDone', {name: node.name}),
    kinds: ['nodes', 'objects'],
    leave: () => setQuery({open: null, tab: null, way: null, nodes: null}, {force: true}),
  };
}
