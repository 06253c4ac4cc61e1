// One membership, and what else the person belongs to.
import {getTreeUser, getUser, listTreeUsers, updateTreeUser, type Membership} from '@idplatform/sdk';
import {call, full, type Answer} from '../../lib/api';
import {ago, dateTime} from '../../lib/format';
import {changes, useLoad} from '../../lib/load';
import {href, setQuery} from '../../lib/router';
import {may} from '../../lib/session';
import {Avatar, Blank, Button, Failed, Id, Late, Tag} from '../../ui/basics';
import {Entries, Entry} from '../../ui/entries';
import {labelOf} from '../../ui/live';
import {Facts, FormFields, PanelLoad, RecordPanel, labelsOf, useDraft, type FieldSpec} from '../../ui/record';
import {t as ui} from '../../ui/text';
import {remove} from './change';
import {roles} from './columns';
import {t} from './text';

export function MemberPanel({id}: {id: string}) {
  return (
    <PanelLoad id={`${id} ${changes.value.members ?? 0}`} load={(signal) => full(getTreeUser({path: {id}, signal}))}>
      {(answer) => <Loaded answer={answer} />}
    </PanelLoad>
  );
}

const fields = (): FieldSpec<Membership>[] => [
  {field: 'role', label: t('role'), options: roles(), help: t('roleHelp')},
  {field: 'title', label: t('title')},
  {
    field: 'is_primary',
    label: t('primary'),
    kind: 'select',
    options: [
      {value: '1', label: ui('yes')},
      {value: '0', label: ui('no')},
    ],
    help: t('primaryHelp'),
  },
  {field: 'seq', label: t('seq'), kind: 'number'},
];

function Loaded({answer}: {answer: Answer<Membership>}) {
  const id = answer.data.id;
  const user = useLoad(may('users:read') ? answer.data.user_id : null, (signal) =>
    call(getUser({path: {id: answer.data.user_id}, signal})),
  );
  const draft = useDraft<Membership>(answer, {
    scope: 'organization:write',
    kind: 'members',
    load: () => full(getTreeUser({path: {id}})),
    save: (patch, etag) => full(updateTreeUser({path: {id}, body: patch, headers: {'If-Match': etag}})),
    saved: () => t('savedDone'),
  });
  const m = draft.base.value,
    u = user.state.value.value;
  const name = u ? u.display_name || u.username : m.user_id;
  const leave = async () => {
    if (await remove([m])) await setQuery({open: null, tab: null}, {force: true});
  };
  return (
    <RecordPanel
      title={name}
      lead={<Avatar large name={name} src={u?.avatar_url} />}
      subtitle={<span class="clip">{m.node_path.join(' / ')}</span>}
      record={m}
      entity="membership"
      draft={m.dynamic ? undefined : draft}
      labels={labelsOf(fields())}
      overview={() => (
        <>
          <div class="row wrap">
            <a class="btn" href={href('users', [], {open: m.user_id})}>
              {t('openUser')}
            </a>
            <a class="btn" href={href('tree', [m.object_code], {open: m.node_id})}>
              {t('inTree')}
            </a>
            {!m.dynamic && (
              <Button kind="danger" icon="trash" scope="organization:write" onClick={() => void leave()}>
                {t('remove')}
              </Button>
            )}
          </div>
          {m.dynamic && <p class="muted">{t('dynamicMember')}</p>}
          {!m.dynamic && <FormFields draft={draft} fields={fields()} />}
          <Facts
            facts={[
              [t('id'), <Id>{m.id}</Id>],
              [t('since'), dateTime(m.time_created)],
              [t('modified'), ago(m.time_modified)],
            ]}
          />
          <section class="section">
            <h3>{t('allOfUser')}</h3>
            <OfUser id={m.user_id} current={m.id} />
          </section>
        </>
      )}
    />
  );
}

/** OfUser lists what a user belongs to, in all trees. */
export function OfUser({id, current}: {id: string; current?: string}) {
  const {state, again} = useLoad(`${id} ${changes.value.members ?? 0}`, (signal) =>
    call(listTreeUsers({query: {user_id: id}, signal})),
  );
  const {value, error, busy} = state.value;
  if (error) return <Failed error={error} again={again} />;
  return (
    <Late busy={busy && !value} lines={4}>
      {value?.length ? (
        <Entries>
          {value.map((m) => (
            <Entry
              key={m.id}
              title={m.node_name}
              href={href('members', [m.node_id], {open: m.id})}
              facts={[m.node_path.slice(0, -1).join(' / ') || m.object_code]}
              clip
              current={m.id === current}
            >
              <span class="clip muted">
                {[m.title, m.role !== 'member' && labelOf(m.role, roles())].filter(Boolean).join(' · ')}
              </span>
              {m.is_primary === '1' && <Tag accent>{t('isPrimary')}</Tag>}
              {m.dynamic && <Tag>{t('dynamic')}</Tag>}
            </Entry>
          ))}
        </Entries>
      ) : (
        <Blank
          icon="tree"
          title={t('noneOfUser')}
          action={
            <a class="btn" href={href('tree')}>
              {t('toTrees')}
            </a>
          }
        >
          {t('noneOfUserText')}
        </Blank>
      )}
    </Late>
  );
}
