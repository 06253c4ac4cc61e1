// Yes or no, and why: the way to the rule that decided, all rules considered, and what would change the answer.
import {useSignal} from '@preact/signals';
import type {ComponentChildren} from 'preact';
import {useEffect} from 'preact/hooks';
import {
  checkAuth,
  getAuthUnitRule,
  listAuthUnits,
  type AuthRule,
  type Decision,
  type Party as PartyOf,
} from '@idplatform/sdk';
import {call} from '../../lib/api';
import {changes, useLoad, useLate} from '../../lib/load';
import {notJson} from '../../lib/notjson';
import {href, param, setQuery} from '../../lib/router';
import {Button, Failed, Skeleton, Status} from '../../ui/basics';
import {Icon} from '../../ui/icon';
import {Field, JsonInput} from '../../ui/record';
import {Party, Sentence, fill} from '../grants/sentence';
import {nameOf} from '../grants/sources';
import type {Question} from './index';
import {Miss} from './miss';
import {t} from './text';

export function Answer({q}: {q: Question}) {
  const turn = (changes.value.rules ?? 0) + (changes.value.memberships ?? 0);
  const key = JSON.stringify([q, turn]);
  const {state, again} = useLoad(key, (signal) =>
    call(
      checkAuth({
        signal,
        query: {explain: 'true'},
        body: {
          identity_id: q.who!.id,
          identity_type: q.who!.type,
          application_id: q.app,
          object_type: q.type!,
          context: q.context,
          ...(q.type === 'app' ? {} : {object_code: q.code, action: q.action}),
        },
      }),
    ),
  );
  const {value: d, error, busy} = state.value;
  const late = useLate(busy);
  useEffect(() => {
    if (!turn) return;
    // permissions follow the changes: what was just done counts a moment later
    const timers = [700, 1500, 3000, 6000, 12_000].map((after) => setTimeout(again, after));
    return () => timers.forEach(clearTimeout);
  }, [key]);
  if (error) return <Failed error={error} again={again} />;
  if (!d) return late ? <Skeleton lines={6} /> : null;
  const considered = d.considered ?? [];
  const others = considered.filter((c) => c.rule_id !== d.rule_id);
  const last = d.via[d.via.length - 1];
  return (
    <div class={late ? 'explorer-answers busy' : 'explorer-answers'} aria-busy={busy}>
      <div class={d.allowed ? 'explorer-answer yes' : 'explorer-answer no'} role="status">
        <span class="sign">
          <Icon name={d.allowed ? 'check' : 'x'} size={30} />
        </span>
        <div class="grow">
          <div class="word">{t(d.allowed ? 'yes' : 'no')}</div>
          <p>{said(q, d)}</p>
        </div>
      </div>
      {d.rule_id && (
        <section class="section">
          <h2>{t('why')}</h2>
          <Way via={d.via} />
          {last && (
            <p class={d.affect === 'deny' ? 'grants-rule deny-rule' : 'grants-rule'}>
              <RuleOf id={d.rule_id} party={last} />
            </p>
          )}
        </section>
      )}
      {!d.allowed && d.nearest_miss && <Miss q={q} d={d} miss={d.nearest_miss} again={again} />}
      <Context q={q} needed={d.nearest_miss?.kind === 'context'} />
      {others.length > 0 && (
        <section class="section">
          <h2>{t(d.rule_id ? 'alsoConsidered' : 'considered')}</h2>
          <ul class="explorer-considered">
            {others.map((c) => (
              <li key={c.rule_id}>
                <Status tone={!c.applies ? 'off' : c.affect === 'deny' ? 'bad' : 'good'}>
                  {t(!c.applies ? 'notApplies' : c.affect === 'deny' ? 'forbids' : 'wouldAllow')}
                </Status>
                <div class="grow stack">
                  {c.via.length > 0 && (
                    <span>
                      <RuleOf id={c.rule_id} party={c.via[c.via.length - 1]!} />
                    </span>
                  )}
                  {c.via.length > 1 && <Way via={c.via} />}
                  {c.why && (
                    <span class="muted">
                      {t('because')} <span lang="en">{c.why}</span>
                    </span>
                  )}
                </div>
              </li>
            ))}
          </ul>
        </section>
      )}
      {considered.length === 0 && !d.allowed && ['not_granted', 'denied'].includes(d.reason) && (
        <p class="muted">{t('noneConsidered', {who: nameOf(q.who!.type, q.who!.id)})}</p>
      )}
    </div>
  );
}

/** said is the answer as a sentence. */
function said(q: Question, d: Decision): ComponentChildren {
  const parts = {
    who: <strong>{nameOf(q.who!.type, q.who!.id)}</strong>,
    do: <strong>{q.action}</strong>,
    on: <strong>{q.code}</strong>,
    app: nameOf('application', q.app),
  };
  const app = q.type === 'app';
  if (d.allowed) return fill(t(app ? 'saidYesApp' : 'saidYes'), parts);
  const reason = [
    'denied',
    'not_granted',
    'unknown_identity',
    'unknown_object',
    'unknown_action',
    'identity_disabled',
    'invalid_uri',
  ] as const;
  const why = reason.find((r) => r === d.reason);
  return (
    <>
      {fill(t(app ? 'saidNoApp' : 'saidNo'), parts)} {why && fill(t.word('reason_', why), parts)}
    </>
  );
}

/** Way is how a person comes to a rule: is a member of, is below, is in the tree. */
export function Way({via}: {via: PartyOf[]}) {
  return (
    <ol class="explorer-way" aria-label={t('way')}>
      {via.map((p, i) => (
        <li key={`${p.type}:${p.id}`}>
          {i > 0 && <span class="hop">{t(link(via[i - 1]!, p))}</span>}
          <span class="stop">
            <Party type={p.type} id={p.id} name={p.name} />
          </span>
        </li>
      ))}
      <li>
        <span class="hop">{t('hasRule')}</span>
      </li>
    </ol>
  );
}

function link(from: PartyOf, to: PartyOf): 'memberOf' | 'below' | 'inTree' | 'inGroup' | 'oneOf' {
  if (to.type === 'everyone') return 'oneOf';
  if (to.type === 'group') return 'inGroup';
  if (to.type === 'core_object') return 'inTree';
  return from.type === 'node' ? 'below' : 'memberOf';
}

const found = new Map<string, Promise<AuthRule | undefined>>();

export async function ruleOf(id: string, party: PartyOf): Promise<AuthRule | undefined> {
  const page = await call(
    listAuthUnits({query: {identity_id: party.id, identity_type: party.type as 'user', page_size: 1, count: 'false'}}),
  );
  const unit = page.items[0];
  return unit && call(getAuthUnitRule({path: {rid: unit.id, tid: id}}));
}

/** RuleOf is the sentence of a rule that an answer names, with a link to it. */
export function RuleOf({id, party}: {id: string; party: PartyOf}) {
  const key = `${id} ${changes.value.rules ?? 0}`;
  const {state} = useLoad(key, () => {
    const known = found.get(key) ?? ruleOf(id, party);
    found.set(key, known);
    return known;
  });
  const rule = state.value.value;
  if (!rule) return <span class="muted mono">{state.value.busy ? '…' : id}</span>;
  return (
    <a class="plain" href={href('grants', [], {open: `${rule.auth_unit_id}.${rule.id}`})}>
      <Sentence rule={rule} who={<Party type={party.type} id={party.id} name={party.name} />} />
    </a>
  );
}

/** Context is what conditions see of the circumstances; it is a part of the question. */
function Context({q, needed}: {q: Question; needed: boolean}) {
  const open = useSignal(false);
  const text = useSignal<Record<string, unknown>>(q.context ?? {});
  if (!open.value && !needed && !param('ctx')) {
    return (
      <div>
        <Button
          kind="ghost"
          small
          icon="plus"
          onClick={() => {
            open.value = true;
          }}
        >
          {t('addContext')}
        </Button>
      </div>
    );
  }
  return (
    <section class="section" id="context">
      <h2>{t('context')}</h2>
      <Field label={t('contextJson')} help={t('contextHelp')} error={notJson(text.value)}>
        {(props) => (
          <JsonInput
            props={props}
            value={text.value}
            set={(v) => {
              text.value = v as Record<string, unknown>;
            }}
          />
        )}
      </Field>
      <div class="row">
        <Button
          kind="primary"
          disabled={notJson(text.value) !== undefined}
          onClick={() => void setQuery({ctx: Object.keys(text.value).length ? JSON.stringify(text.value) : null})}
        >
          {t('askAgain')}
        </Button>
        {param('ctx') && (
          <Button
            kind="ghost"
            onClick={() => {
              text.value = {};
              open.value = false;
              void setQuery({ctx: null});
            }}
          >
            {t('withoutContext')}
          </Button>
        )}
      </div>
    </section>
  );
}
