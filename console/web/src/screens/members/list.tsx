// The list of a node's members.
import {useSignal} from '@preact/signals';
import {listTreeNodeUsers, type TreeNode} from '@idplatform/sdk';
import {call} from '../../lib/api';
import {href, param, setQuery} from '../../lib/router';
import {may} from '../../lib/session';
import {Button} from '../../ui/basics';
import {confirm} from '../../ui/dialog';
import {List, type Query} from '../../ui/list';
import {Crumbs} from '../tree/panel';
import {AddMembers} from './add';
import {remove, usersOf} from './change';
import {columns, nameOf, roles, type Member} from './columns';
import {MemberPanel} from './panel';
import {t} from './text';

const pageSize = 100;

export function MembersOf({node, above}: {node: TreeNode; above: TreeNode[]}) {
  const below = param('below') === '1',
    open = param('open'),
    fixed = node.is_dynamic === '1';
  const add = (
    <Button
      kind="primary"
      icon="plus"
      scope="organization:write"
      disabled={fixed}
      onClick={() => void setQuery({add: 'search'})}
    >
      {t('add')}
    </Button>
  );
  return (
    <>
      <section class="screen" aria-label={t('membersOf', {name: node.name})}>
        <header class="screen-head members-head">
          <div class="grow">
            <Crumbs nodes={above} link={(n) => href('members', [n.id], {below: below ? 1 : null})} />
            <h1>
              <span class="clip">{node.name}</span>
              <span class="count num">{t('direct', {n: node.member_count})}</span>
            </h1>
          </div>
          <div class="actions">
            <a class="btn" href={href('tree', [node.object_code], {open: node.id})}>
              {t('inTree')}
            </a>
            {add}
          </div>
        </header>
        {fixed && (
          <div class="tools">
            <div class="note grow">
              <div>
                <div class="title">{t('dynamicTitle')}</div>
                <code>{node.condition}</code>
              </div>
            </div>
          </div>
        )}
        <div class="tools">
          <label class="check">
            <input
              type="checkbox"
              checked={below}
              disabled={!node.child_count}
              onChange={(e) => void setQuery({below: e.currentTarget.checked ? 1 : null}, {replace: true})}
            />
            {t('below')}
          </label>
        </div>
        <List<Member>
          key={String(below)}
          name={`members ${below}`}
          title={t('membersOf', {name: node.name})}
          header={false}
          kind="members"
          rowId={({m}) => m.id}
          rowName={nameOf}
          columns={columns(node, below)}
          load={(q, token, signal) => load(node.id, below, q, token, signal)}
          search={t('search')}
          filters={[{param: 'role', label: t('role'), options: roles()}]}
          empty={{
            icon: 'users',
            title: t('emptyTitle'),
            text: fixed ? t('emptyDynamic') : node.child_count && !below ? t('emptyBelow') : t('emptyText'),
            action: fixed ? undefined : add,
          }}
          bulk={may('organization:write') ? (selected, clear) => <Bulk selected={selected} clear={clear} /> : undefined}
        />
      </section>
      {open && <MemberPanel key={open} id={open} />}
      {param('add') && !fixed && <AddMembers node={node} close={() => void setQuery({add: null}, {replace: true})} />}
    </>
  );
}

async function load(id: string, below: boolean, q: Query, token: string | undefined, signal: AbortSignal) {
  const page = await call(
    listTreeNodeUsers({
      path: {id},
      signal,
      query: {
        recursive: below ? 'true' : undefined,
        keyword: q.q || undefined,
        role: q.filters.role || undefined,
        page_size: pageSize,
        page_token: token,
        count: token ? 'false' : undefined,
      },
    }),
  );
  const users = await usersOf(
    (page.items ?? []).map((m) => m.user_id),
    signal,
  );
  return {...page, items: (page.items ?? []).map((m) => ({m, user: users.get(m.user_id)}))};
}

function Bulk({selected, clear}: {selected: Member[]; clear: () => void}) {
  const busy = useSignal(false);
  const own = selected.filter(({m}) => !m.dynamic);
  const act = async () => {
    if (own.length > 1) {
      const names = own.slice(0, 8).map(nameOf).join(', ') + (own.length > 8 ? ` … (+${own.length - 8})` : '');
      if (!(await confirm({title: t('removeTitle', {n: own.length}), text: names, yes: t('remove'), danger: true})))
        return;
    }
    busy.value = true;
    if (await remove(own.map(({m}) => m))) clear();
    busy.value = false;
  };
  return (
    <Button
      small
      kind="danger"
      icon="trash"
      scope="organization:write"
      disabled={!own.length}
      busy={busy.value}
      onClick={() => void act()}
    >
      {t('remove')}
    </Button>
  );
}
