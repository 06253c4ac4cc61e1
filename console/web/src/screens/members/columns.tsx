// What the list says about a member, and what can be changed where it stands.
import type {TreeNode, TreeNodeUser, User} from '@idplatform/sdk';
import {asProblem} from '../../lib/api';
import {ago} from '../../lib/format';
import {href} from '../../lib/router';
import {may} from '../../lib/session';
import {Avatar, Button, Tag} from '../../ui/basics';
import {toast} from '../../ui/dialog';
import type {Column} from '../../ui/list';
import type {Choice} from '../../ui/live';
import {change} from './change';
import {EditText} from './edit';
import {t} from './text';

/** Member is a user of a node, with the record that says who it is; a user may be gone, or not be ours to see. */
export interface Member {
  m: TreeNodeUser;
  user: User | undefined;
}

/** roles are those that the platform knows; a tenant has others, too. */
export const roles = (): Choice[] => (['leader', 'member'] as const).map((value) => ({value, label: t(value)}));

export function nameOf({m, user}: Member): string {
  return user ? user.display_name || user.username : m.user_id;
}

export function columns(node: TreeNode, below: boolean): Column<Member>[] {
  return [
    {
      key: 'name',
      header: t('person'),
      cell: (x) => (
        <span class="row">
          <Avatar name={nameOf(x)} src={x.user?.avatar_url} />
          <span class={x.user ? 'clip' : 'clip mono'}>{nameOf(x)}</span>
        </span>
      ),
    },
    {
      key: 'username',
      header: t('username'),
      cell: ({user}) => <span class="mono">{user?.username}</span>,
      priority: 3,
      optional: true,
    },
    {
      key: 'role',
      header: t('role'),
      width: '140px',
      priority: 2,
      cell: ({m}) => (
        <EditText
          value={m.role}
          label={t('role')}
          options={roles()}
          locked={m.dynamic}
          save={(role) => change(m, {role})}
        />
      ),
    },
    {
      key: 'title',
      header: t('title'),
      priority: 2,
      cell: ({m}) => (
        <EditText value={m.title} label={t('title')} locked={m.dynamic} save={(title) => change(m, {title})} />
      ),
    },
    {key: 'primary', header: t('primary'), width: '104px', priority: 3, cell: ({m}) => <Primary m={m} />},
    ...(below
      ? [{key: 'from', header: t('from'), priority: 1 as const, cell: ({m}: Member) => <From m={m} node={node} />}]
      : []),
    {
      key: 'since',
      header: t('since'),
      width: '150px',
      priority: 3,
      cell: ({m}) => <span class="muted">{m.dynamic ? <Tag accent>{t('dynamic')}</Tag> : ago(m.time_created)}</span>,
    },
  ];
}

/** From says which nodes a person comes from. */
function From({m, node}: {m: TreeNodeUser; node: TreeNode}) {
  const own = new Map([[m.node_id, m.node_path]]);
  return (
    <span class="row">
      {m.nodes.slice(0, 3).map((n) =>
        n.node_id === node.id ? (
          <Tag key={n.id}>{t('itself')}</Tag>
        ) : (
          <a
            key={n.id}
            class="tag clip"
            href={href('members', [n.node_id])}
            title={own.get(n.node_id)?.join(' / ') ?? n.node_name}
          >
            {n.node_name}
          </a>
        ),
      )}
      {m.nodes.length > 3 && <span class="faint num">+{m.nodes.length - 3}</span>}
    </span>
  );
}

function Primary({m}: {m: TreeNodeUser}) {
  if (m.is_primary === '1') return <span class="status good">{t('isPrimary')}</span>;
  if (m.dynamic || !may('organization:write')) return null;
  return (
    <Button
      small
      kind="ghost"
      class="members-on-hover"
      onClick={() => void change(m, {is_primary: '1'}).catch((e: unknown) => toast(asProblem(e).message))}
    >
      {t('makePrimary')}
    </Button>
  );
}
