// What would change a "no": the smallest change, which is shown before it is made.
import {useSignal} from '@preact/signals';
import {
  addAuthUnitMembers,
  addTreeUsers,
  getTreeNode,
  listAuthUnitRules,
  listAuthUnits,
  listTreeUsers,
  removeAuthUnitMembers,
  removeTreeUsers,
  revokeAuthRules,
  type AuthRule,
  type Decision,
  type Miss as MissOf,
} from '@idplatform/sdk';
import {asProblem, call, type ApiError} from '../../lib/api';
import {changed, useLoad} from '../../lib/load';
import {param} from '../../lib/router';
import {Button, Failed, Skeleton} from '../../ui/basics';
import {Dialog, toast} from '../../ui/dialog';
import {Icon} from '../../ui/icon';
import {t as ui} from '../../ui/text';
import {Grant} from '../grants/grant';
import {revoke} from '../grants/rules';
import {Party, Sentence, fill} from '../grants/sentence';
import {nameOf} from '../grants/sources';
import {RuleOf, ruleOf} from './answer';
import type {Question} from './index';
import {t} from './text';

export function Miss({q, d, miss, again}: {q: Question; d: Decision; miss: MissOf; again: () => void}) {
  const open = useSignal(false);
  const who = <Party type={q.who!.type} id={q.who!.id} />,
    to = <Party type={miss.identity.type} id={miss.identity.id} name={miss.identity.name} />;
  const close = () => {
    open.value = false;
  };
  const button = {
    membership: 'previewMember',
    grant: 'previewGrant',
    context: 'toContext',
    deny: 'previewDeny',
  } as const;
  const scope = {
    membership: miss.identity.type === 'node' ? 'organization:write' : 'permissions:write',
    grant: 'permissions:write',
    context: undefined,
    deny: 'permissions:write',
  };
  const lacking = miss.kind === 'context' ? d.considered?.find((c) => c.rule_id === miss.rule_id) : undefined;
  return (
    <section class="explorer-miss" aria-label={t('miss')}>
      <span class="caps">{t(miss.kind === 'deny' ? 'missDenyTitle' : 'miss')}</span>
      <p class="lead">{fill(t.word('miss_', miss.kind), {who, to})}</p>
      {miss.kind === 'membership' && miss.rule_id && (
        <p class="muted">
          <RuleOf id={miss.rule_id} party={miss.identity} />
        </p>
      )}
      {miss.kind === 'context' && (
        <p class="muted" lang="en">
          {lacking?.why || miss.text}
        </p>
      )}
      <div>
        <Button
          kind="primary"
          icon={miss.kind === 'context' ? 'edit' : 'play'}
          scope={scope[miss.kind]}
          onClick={() => {
            if (miss.kind === 'context') document.querySelector<HTMLElement>('#context textarea')?.focus();
            else open.value = true;
          }}
        >
          {t(button[miss.kind])}
        </Button>
      </div>
      {open.value && miss.kind === 'grant' && (
        <Grant
          title={t('previewGrant')}
          close={close}
          done={again}
          start={{who: param('who'), app: q.app, type: q.type, code: q.code, actions: q.action}}
        />
      )}
      {open.value && miss.kind === 'membership' && <Join q={q} miss={miss} close={close} />}
      {open.value && miss.kind === 'deny' && <Lift q={q} miss={miss} close={close} />}
    </section>
  );
}

interface Plan {
  code: string; // of the tree, for a node
  rules: AuthRule[]; // that come with the membership
  already: boolean;
}

/** Join shows what a membership brings along, tried with dry_run, and then adds it. */
function Join({q, miss, close}: {q: Question; miss: MissOf; close: () => void}) {
  const node = miss.identity.type === 'node',
    {id} = miss.identity,
    user_id = q.who!.id;
  const busy = useSignal(false),
    error = useSignal<ApiError | undefined>(undefined);
  const member = {user_ids: [user_id]};
  const {state, again} = useLoad('plan', async (signal): Promise<Plan> => {
    const units = await call(
      listAuthUnits({query: {identity_id: id, identity_type: miss.identity.type as 'node'}, signal}),
    );
    const unit = units.items[0];
    const rules = unit ? await call(listAuthUnitRules({path: {rid: unit.id}, signal})) : [];
    const code = node ? (await call(getTreeNode({path: {id}, signal}))).object_code : unit!.id;
    if (node) await call(addTreeUsers({query: {dry_run: 'true'}, body: {items: [{node_id: id, user_id}]}, signal}));
    else await call(addAuthUnitMembers({path: {id: code}, query: {dry_run: 'true'}, body: member, signal}));
    return {code, rules, already: false};
  });
  const {value: plan, error: refused} = state.value;
  const join = async () => {
    busy.value = true;
    try {
      if (node) await call(addTreeUsers({body: {items: [{node_id: id, user_id}]}}));
      else await call(addAuthUnitMembers({path: {id: plan!.code}, body: member}));
      close();
      told();
      toast(
        t('joined', {who: nameOf('user', user_id), to: nameOf(miss.identity.type, id, miss.identity.name)}),
        async () => {
          try {
            if (node) {
              const all = await call(listTreeUsers({query: {user_id}}));
              const made = (all ?? []).find((m) => m.node_id === id);
              if (made) await call(removeTreeUsers({query: {id: made.id}}));
            } else await call(removeAuthUnitMembers({path: {id: plan!.code}, body: member}));
            toast(t('undone'));
          } catch (e) {
            toast(asProblem(e).message);
          }
          told();
        },
      );
    } catch (e) {
      error.value = asProblem(e);
    } finally {
      busy.value = false;
    }
  };
  const names = {
    who: <Party type="user" id={user_id} />,
    to: <Party type={miss.identity.type} id={id} name={miss.identity.name} />,
  };
  return (
    <Dialog
      wide
      title={t('previewMember')}
      onClose={close}
      foot={
        <>
          <Button onClick={close}>{ui('cancel')}</Button>
          <Button kind="primary" busy={busy.value} disabled={!plan} onClick={() => void join()}>
            {t('doJoin')}
          </Button>
        </>
      }
    >
      {error.value && <Failed error={error.value} />}
      {refused && <Failed error={refused} again={again} />}
      <p class="grants-rule">{fill(t('joinText'), names)}</p>
      {!plan && !refused && <Skeleton />}
      {plan && (
        <>
          <p class="row good">
            <Icon name="check" />
            {t('tried')}
          </p>
          <section class="section">
            <h3>{t('comesAlong', {n: plan.rules.length})}</h3>
            <ul class="grants-rules">
              {plan.rules.map((r) => (
                <li key={r.id}>
                  <Sentence rule={r} />
                </li>
              ))}
            </ul>
          </section>
        </>
      )}
    </Dialog>
  );
}

/** told says that memberships have changed: now, and while the news is on its way to the checks. */
function told(): void {
  for (const ms of [0, 500, 1500, 4000, 10_000]) setTimeout(() => changed('memberships'), ms);
}

/** Lift shows the rule that forbids, and takes it away. */
function Lift({q, miss, close}: {q: Question; miss: MissOf; close: () => void}) {
  const busy = useSignal(false),
    error = useSignal<ApiError | undefined>(undefined);
  const {state, again} = useLoad('lift', async () => {
    const rule = await ruleOf(miss.rule_id!, miss.identity);
    await call(revokeAuthRules({query: {dry_run: 'true'}, body: {rule_ids: [miss.rule_id!]}}));
    return rule;
  });
  const rule = state.value.value,
    refused = state.value.error;
  return (
    <Dialog
      wide
      title={t('previewDeny')}
      onClose={close}
      foot={
        <>
          <Button onClick={close}>{ui('cancel')}</Button>
          <Button
            kind="danger primary"
            busy={busy.value}
            disabled={!rule}
            onClick={async () => {
              busy.value = true;
              try {
                await revoke(rule!);
                close();
              } catch (e) {
                error.value = asProblem(e);
              }
              busy.value = false;
            }}
          >
            {t('doLift')}
          </Button>
        </>
      }
    >
      {error.value && <Failed error={error.value} />}
      {refused && <Failed error={refused} again={again} />}
      {!rule && !refused && <Skeleton />}
      {rule && (
        <p class="grants-rule">
          <Sentence rule={rule} />
        </p>
      )}
      {miss.identity.type !== 'user' && (
        <p class="note warn">
          <Icon name="alert" />
          <span>
            {fill(t('liftMany'), {
              who: <Party type={q.who!.type} id={q.who!.id} />,
              to: <Party type={miss.identity.type} id={miss.identity.id} name={miss.identity.name} />,
            })}
          </span>
        </p>
      )}
    </Dialog>
  );
}
