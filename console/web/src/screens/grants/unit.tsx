// Somebody who has rules: what reaches them, and the members of a group.
import {
  addAuthUnitMembers,
  deleteAuthUnit,
  listAuthUnitMembers,
  listAuthUnitRules,
  removeAuthUnitMembers,
  type AuthRule,
  type AuthUnit,
} from '@idplatform/sdk';
import {call} from '../../lib/api';
import {dateTime} from '../../lib/format';
import {changes, useLoad} from '../../lib/load';
import {usePaged} from '../../lib/pages';
import {href, setQuery} from '../../lib/router';
import {Blank, Button, Failed, Id, Late} from '../../ui/basics';
import {Facts, Field, RecordMenu, RecordPanel, remove} from '../../ui/record';
import {t as ui} from '../../ui/text';
import {carryOut} from '../../ui/undo';
import {Pick} from './pick';
import {Party, Sentence, unitName} from './sentence';
import {findUsers, whoOf, whoText} from './sources';
import {t} from './text';

const scope = 'permissions:write';

export function UnitPanel({unit, again}: {unit: AuthUnit; again: () => void}) {
  const name = unitName(unit);
  return (
    <RecordPanel
      title={name}
      subtitle={t(unit.identity_type)}
      actions={
        <>
          <Button icon="plus" scope={scope} onClick={() => void setQuery({grant: 1, who: whoText(unit)})}>
            {t('grant')}
          </Button>
          <RecordMenu
            record={unit}
            file={`rules-${unit.id}`}
            scope={scope}
            items={[
              {label: t('whatCan'), icon: 'compass', href: href('explorer', [], {mode: 'what', who: whoText(unit)})},
            ]}
            removal={() => void removeUnit(unit)}
          />
        </>
      }
      record={unit}
      entity="auth_unit"
      overview={() => (
        <>
          <UnitRules unit={unit} />
          <section class="section">
            <Facts
              facts={[
                [t('description'), unit.description],
                [t('created'), dateTime(unit.time_created)],
                [t('id'), <Id>{unit.id}</Id>],
              ]}
            />
          </section>
        </>
      )}
      tabs={
        unit.identity_type === 'group'
          ? [{name: 'members', label: t('members'), content: () => <Members unit={unit} again={again} />}]
          : []
      }
    />
  );
}

/** removeUnit deletes somebody's rules; they are offered as a file with the record. */
async function removeUnit(unit: AuthUnit): Promise<void> {
  const name = unitName(unit);
  const rules = await call(listAuthUnitRules({path: {rid: unit.id}, query: {self_only: 'true'}})).catch(
    () => undefined,
  );
  await remove({
    title: t('deleteUnitTitle', {name}),
    text: t('deleteUnitText', {n: rules?.length ?? unit.rule_count}),
    typed: name,
    record: {unit, rules},
    file: `rules-${unit.id}`,
    send: () => call(deleteAuthUnit({path: {id: unit.id}})),
    said: t('unitDeleted', {name}),
    kinds: ['units', 'rules'],
  });
}

/** UnitRules lists what reaches an identity: its own rules, and those of what it belongs to, by their source. */
export function UnitRules({unit}: {unit: AuthUnit}) {
  const {state, again} = useLoad(`${unit.id} ${changes.value.rules ?? 0}`, (signal) =>
    call(listAuthUnitRules({path: {rid: unit.id}, signal})),
  );
  const {value, error, busy} = state.value;
  if (error) return <Failed error={error} again={again} />;
  const own = value?.filter((r) => !r.inherited_from) ?? [];
  const sources = new Map<string, AuthRule[]>();
  for (const r of value ?? [])
    if (r.inherited_from) sources.set(r.inherited_from.id, [...(sources.get(r.inherited_from.id) ?? []), r]);
  return (
    <Late busy={busy && !value} lines={5}>
      <section class="section">
        <h3>{t('ownRules')}</h3>
        {own.length ? <RuleLines rules={own} /> : <p class="muted">{t('noOwnRules')}</p>}
      </section>
      {[...sources.values()].map((rules) => {
        const from = rules[0]!.inherited_from!;
        return (
          <section class="section" key={from.id}>
            <h3 class="row">
              {t('inheritedFrom')}{' '}
              <a href={href('grants', ['units'], {open: from.id})}>
                <Party type={from.identity_type} id={from.identity_id} name={from.identity_name} />
              </a>
            </h3>
            <RuleLines rules={rules} />
          </section>
        );
      })}
    </Late>
  );
}

export function RuleLines({rules}: {rules: AuthRule[]}) {
  return (
    <ul class="grants-rules">
      {rules.map((r) => (
        <li key={r.id}>
          <a class="plain" href={href('grants', [], {open: `${r.auth_unit_id}.${r.id}`})}>
            <Sentence rule={r} />
          </a>
        </li>
      ))}
    </ul>
  );
}

function Members({unit, again}: {unit: AuthUnit; again: () => void}) {
  const members = usePaged(`${unit.id} members`, (page_token, signal) =>
    call(listAuthUnitMembers({path: {id: unit.id}, query: {page_size: 200, page_token, count: 'false'}, signal})),
  );
  const reload = members.again;
  const {value, error, busy} = members.state.value;
  const send = (on: boolean, user: string) => {
    const sent = {path: {id: unit.id}, body: {user_ids: [user]}};
    return call<unknown>(on ? addAuthUnitMembers(sent) : removeAuthUnitMembers(sent));
  };
  const write = (add: boolean, user: string) =>
    carryOut({
      send: () => send(add, user),
      back: () => send(!add, user),
      said: t(add ? 'memberAdded' : 'memberRemoved'),
      after: () => {
        reload();
        again();
      },
    });
  if (error) return <Failed error={error} again={reload} />;
  return (
    <Late busy={busy && !value}>
      <Field label={t('addMember')}>
        {(input) => (
          <Pick
            label={t('searchPeople')}
            input={input}
            value=""
            search={findUsers}
            choose={(v) => {
              void write(true, whoOf(v)!.id);
            }}
          />
        )}
      </Field>
      {value?.items.length ? (
        <ul class="grants-rules">
          {value.items.map((m) => (
            <li key={m.user_id} class="row spread">
              <Party type="user" id={m.user_id} />
              <Button
                small
                kind="ghost"
                icon="x"
                label={t('removeMember')}
                scope="permissions:write"
                onClick={() => void write(false, m.user_id)}
              />
            </li>
          ))}
        </ul>
      ) : (
        <Blank icon="users" title={t('noMembers')}>
          {t('noMembersText')}
        </Blank>
      )}
      {value?.more && (
        <Button small busy={busy} onClick={members.next}>
          {ui('showMore')}
        </Button>
      )}
    </Late>
  );
}
