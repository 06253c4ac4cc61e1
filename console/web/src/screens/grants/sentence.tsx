// A rule as one sentence: who may do what on what, and under which condition.
import type {ComponentChildren} from 'preact';
import type {AuthRule, AuthUnit} from '@idplatform/sdk';
import {dateTime} from '../../lib/format';
import {Icon} from '../../ui/icon';
import {identityIcon, nameOf, unitOf, type IdentityType} from './sources';
import {t} from './text';

/** fill puts components where a text has {name}. */
export function fill(text: string, parts: Record<string, ComponentChildren>): ComponentChildren[] {
  return text.split(/(\{\w+\})/).map((s) => (s.startsWith('{') ? parts[s.slice(1, -1)] : s));
}

export function Party({type, id, name}: {type: string; id: string; name?: string}) {
  return (
    <span class="grants-party">
      <Icon name={identityIcon[type as IdentityType] ?? 'member'} size={14} />
      <span>{nameOf(type, id, name)}</span>
    </span>
  );
}

type Told = Pick<AuthRule, 'type' | 'application_id' | 'affect' | 'code' | 'condition'> & Partial<AuthRule>;

function Actions({rule}: {rule: Told}) {
  const all = rule.resource_match_all_actions === '1' || !rule.actions?.length || rule.actions.includes('*');
  if (all) return <strong>{t('anything')}</strong>;
  return <strong>{rule.actions!.join(t('comma'))}</strong>;
}

function What({rule}: {rule: Told}) {
  const app = <span class="app">{nameOf('application', rule.application_id) || '…'}</span>;
  if (rule.type === 'app') return app;
  if (rule.type === 'res_set') {
    const name = rule.code || (rule.resource_set_id ? nameOf('resource_set', rule.resource_set_id) : '…');
    return <>{fill(t('whatSet'), {code: <code>{name}</code>, app})}</>;
  }
  if (rule.type === 'res' && (rule.resource_match_all_resources === '1' || !rule.code))
    return <>{fill(t('whatAll'), {app})}</>;
  return <>{fill(t(rule.type === 'res' ? 'whatLike' : 'whatOne'), {code: <code>{rule.code || '…'}</code>, app})}</>;
}

/** Sentence says what a rule means; `who` is whose rule it is, if that is not its unit. */
export function Sentence({rule, who, brief}: {rule: Told; who?: ComponentChildren; brief?: boolean}) {
  const unit = who === undefined && rule.auth_unit_id ? (rule.inherited_from ?? unitOf(rule.auth_unit_id)) : undefined;
  const subject =
    who ?? (unit ? <Party type={unit.identity_type} id={unit.identity_id} name={unit.identity_name} /> : '…');
  const deny = rule.affect === 'deny';
  const text = rule.type === 'app' ? t(deny ? 'denyApp' : 'allowApp') : t(deny ? 'denyDo' : 'allowDo');
  return (
    <span class={deny ? 'grants-sentence deny' : 'grants-sentence'}>
      {fill(text, {who: subject, do: <Actions rule={rule} />, what: <What rule={rule} />})}
      {rule.condition && (
        <>{fill(t('onlyIf'), {if: <code class="cel">{brief ? short(rule.condition) : rule.condition}</code>})}</>
      )}
      {rule.valid_from && <>{fill(t('from'), {time: dateTime(rule.valid_from)})}</>}
      {rule.valid_to && <>{fill(t('until'), {time: dateTime(rule.valid_to)})}</>}
    </span>
  );
}

function short(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length > 60 ? `${line.slice(0, 57)}…` : line;
}

export function unitName(u: AuthUnit): string {
  return nameOf(u.identity_type, u.identity_id, u.identity_name);
}
