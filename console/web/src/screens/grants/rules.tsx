// The rules of the tenant, and the panel of one.
import {useSignal} from '@preact/signals';
import {
  getAuthUnitRule,
  grantAuthRules,
  listAuthRules,
  replaceAuthUnitRule,
  revokeAuthRules,
  type AuthRule,
  type AuthRuleInputWritable,
} from '@idplatform/sdk';
import {asProblem, call, full, type Answer} from '../../lib/api';
import {dateTime} from '../../lib/format';
import {changed} from '../../lib/load';
import {href, param, setQuery} from '../../lib/router';
import {Button, Id, Status} from '../../ui/basics';
import {confirm, toast} from '../../ui/dialog';
import {List, type Column, type Query, modifiedColumn} from '../../ui/list';
import {RecordName} from '../../ui/origin';
import {Facts, FormFields, PanelLoad, RecordPanel, useDraft, type Draft, type FieldSpec} from '../../ui/record';
import {undone} from '../../ui/undo';
import {CelField} from './cel';
import {input} from './rule-input';
import {Sentence} from './sentence';
import {nameOf, unitOf} from './sources';
import {useAppFilter} from './appfilter';
import {t} from './text';

export const ruleTypes = () =>
  (['data', 'api', 'ui', 'res_set', 'res', 'app'] as const).map((value) => ({value, label: t(`type_${value}`)}));

function load(query: Query, pageToken: string | undefined, signal: AbortSignal) {
  return call(
    listAuthRules({
      signal,
      query: {
        identity_name: query.q || undefined,
        application_id: query.filters.app || undefined,
        type: (query.filters.type || undefined) as 'data',
        affect: (query.filters.affect || undefined) as 'deny',
        page_sort: query.sort || undefined,
        page_size: 100,
        page_token: pageToken,
        count: pageToken ? 'false' : undefined,
      },
    }),
  );
}

const columns = (): Column<AuthRule>[] => [
  {key: 'rule', header: t('rule'), cell: (r) => <Sentence rule={r} brief />},
  {key: 'effect', header: t('effect'), width: '112px', priority: 2, cell: (r) => <Effect rule={r} />},
  {
    key: 'app',
    header: t('application'),
    width: '170px',
    priority: 3,
    cell: (r) => <RecordName kind="application" id={r.application_id} />,
  },
  modifiedColumn({sort: 'time_modified', priority: 3}),
];

export function Effect({rule}: {rule: AuthRule}) {
  const now = new Date().toISOString();
  if (rule.valid_to && rule.valid_to <= now) return <Status tone="off">{t('ended')}</Status>;
  if (rule.valid_from && rule.valid_from > now) return <Status tone="warn">{t('notYet')}</Status>;
  return rule.affect === 'deny' ? (
    <Status tone="bad">{t('denies')}</Status>
  ) : (
    <Status tone="good">{t('allows')}</Status>
  );
}

export function Rules() {
  const app = useAppFilter();
  const open = param('open');
  return (
    <>
      <List<AuthRule>
        name="rules"
        title={t('rules')}
        kind="rules"
        header={false}
        columns={columns()}
        load={load}
        rowId={(r) => `${r.auth_unit_id}.${r.id}`}
        rowName={(r) => r.code || r.id}
        search={t('searchRules')}
        filters={[
          app,
          {param: 'type', label: t('about'), options: ruleTypes()},
          {
            param: 'affect',
            label: t('effect'),
            options: [
              {value: 'affect', label: t('allows')},
              {value: 'deny', label: t('denies')},
            ],
          },
        ]}
        empty={{
          icon: 'key',
          title: t('emptyTitle'),
          text: t('emptyText'),
          action: (
            <Button kind="primary" icon="plus" scope="permissions:write" onClick={() => void setQuery({grant: 1})}>
              {t('grant')}
            </Button>
          ),
        }}
      />
      {open && <RulePanel key={open} id={open} />}
    </>
  );
}

function RulePanel({id}: {id: string}) {
  const [rid = '', tid = ''] = id.split('.');
  return (
    <PanelLoad id={id} load={(signal) => full(getAuthUnitRule({path: {rid, tid}, signal}))}>
      {(answer, again) => <Loaded answer={answer} again={again} />}
    </PanelLoad>
  );
}

const fields = (rule: AuthRule): FieldSpec<AuthRule>[] => [
  {
    field: 'affect',
    label: t('effect'),
    kind: 'select',
    options: [
      {value: 'affect', label: t('allows')},
      {value: 'deny', label: t('denies')},
    ],
  },
  ...(rule.type === 'app'
    ? []
    : [{field: 'actions' as const, label: t('actions'), kind: 'list' as const, help: t('actionsCodes'), wide: true}]),
  {field: 'description', label: t('description'), wide: true},
];

function Loaded({answer, again}: {answer: Answer<AuthRule>; again: () => void}) {
  const {auth_unit_id: rid, id: tid} = answer.data;
  const draft: Draft<AuthRule> = useDraft<AuthRule>(answer, {
    scope: 'permissions:write',
    kind: 'rules',
    load: () => full(getAuthUnitRule({path: {rid, tid}})),
    save: async (_, etag, whole) => {
      await call(replaceAuthUnitRule({path: {rid, tid}, body: input(whole), headers: {'If-Match': etag}}));
      return full(getAuthUnitRule({path: {rid, tid}}));
    },
    saved: () => t('ruleSaved'),
    again,
  });
  const rule = draft.draft.value;
  const unit = unitOf(rid);
  return (
    <RecordPanel
      title={t('rule')}
      subtitle={<Effect rule={draft.base.value} />}
      actions={<Remove rule={draft.base.value} />}
      record={draft.base.value}
      entity="auth_rule"
      draft={draft}
      labels={{affect: t('effect'), actions: t('actions'), condition: t('condition'), description: t('description')}}
      overview={() => (
        <>
          <p class="grants-rule">
            <Sentence rule={rule} />
          </p>
          <section class="section">
            <FormFields draft={draft} fields={fields(rule)} />
            <CelField
              value={rule.condition}
              set={(v) => draft.set('condition', v)}
              error={draft.fault('condition')}
              readOnly={draft.readOnly}
              changed={rule.condition !== draft.base.value.condition}
            />
          </section>
          <section class="section">
            <Facts
              facts={[
                [
                  t('whose'),
                  unit && (
                    <a href={href('grants', ['units'], {open: rid})}>
                      {nameOf(unit.identity_type, unit.identity_id, unit.identity_name)}
                    </a>
                  ),
                ],
                [t('application'), <RecordName kind="application" id={rule.application_id} />],
                [t('validFrom'), dateTime(rule.valid_from)],
                [t('validTo'), dateTime(rule.valid_to)],
                [t('created'), dateTime(rule.time_created)],
                [t('id'), <Id>{tid}</Id>],
              ]}
            />
          </section>
        </>
      )}
    />
  );
}

/** revoke takes a rule away, and offers to grant it again. */
export async function revoke(rule: AuthRule, done?: () => void): Promise<void> {
  const unit = unitOf(rule.auth_unit_id);
  await call(revokeAuthRules({body: {rule_ids: [rule.id]}}));
  const after = () => {
    changed('rules');
    changed('units');
    done?.();
  };
  after();
  toast(
    t('revoked'),
    unit &&
      (async () => {
        const {identity_id, identity_type, identity_name} = unit;
        const identities = [{identity_id, identity_type, identity_name}];
        await undone(() => call(grantAuthRules({body: {identities, rules: [input(rule)]}})));
        after();
      }),
  );
}

/** grantWithUndo grants, and offers to take away again the rules that are new. */
export async function grantWithUndo(
  who: {identity_type: 'user'; identity_id: string; identity_name?: string},
  rule: AuthRuleInputWritable,
  done?: () => void,
): Promise<void> {
  // Repeats are merged, so the newest rule may be an older one: only a rule that was not there is taken away again.
  const newest = () =>
    call(
      listAuthRules({
        query: {
          identity_id: who.identity_id,
          identity_type: who.identity_type,
          page_sort: 'time_created[desc]',
          page_size: 100,
          count: 'false',
        },
      }),
    ).then((page) => page.items);
  const before = new Set((await newest()).map((r) => r.id));
  await call(grantAuthRules({body: {identities: [who], rules: [rule]}}));
  const after = () => {
    changed('rules');
    changed('units');
    done?.();
  };
  after();
  toast(t('granted'), async () => {
    await undone(async () => {
      const fresh = (await newest()).filter((r) => !before.has(r.id)).slice(0, 1);
      if (fresh.length) await call(revokeAuthRules({body: {rule_ids: fresh.map((r) => r.id)}}));
    });
    after();
  });
}

function Remove({rule}: {rule: AuthRule}) {
  const busy = useSignal(false);
  return (
    <Button
      kind="danger"
      icon="trash"
      label={t('takeAway')}
      scope="permissions:write"
      busy={busy.value}
      onClick={async () => {
        if (
          !(await confirm({
            title: t('takeAwayTitle'),
            text: (
              <p>
                <Sentence rule={rule} />
              </p>
            ),
            yes: t('takeAway'),
            danger: true,
          }))
        )
          return;
        busy.value = true;
        try {
          await revoke(rule);
          await setQuery({open: null, tab: null}, {force: true});
        } catch (e) {
          toast(asProblem(e).message);
          busy.value = false;
        }
      }}
    />
  );
}
