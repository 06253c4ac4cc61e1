// Who gains and who loses access by changes that are not made yet.
import {assessAuthImpact, type AccessChangesWritable, type AccessImpact, type ChangedDecision} from '@idplatform/sdk';
import {call} from '../lib/api';
import {number} from '../lib/format';
import {texts} from '../lib/i18n';
import {parse} from '../lib/json';
import {useLoad, useSettled} from '../lib/load';
import {may} from '../lib/session';
import {Tag} from './basics';
import {RecordName} from './origin';

const t = texts({
  title: ['Who gains and loses access', '谁将获得或失去访问权限'],
  asking: ['Looking who would gain or lose access…', '正在查看谁会获得或失去访问权限…'],
  gain: [{one: 'person gains access', other: 'people gain access'}, '人将获得访问权限'],
  lose: [{one: 'person loses access', other: 'people lose access'}, '人将失去访问权限'],
  nobody: ['Nobody gains or loses access.', '没有人获得或失去访问权限。'],
  gained: ['gains', '获得'],
  lost: ['loses', '失去'],
  conditional: ['by a condition', '取决于条件'],
  undecided: [
    {
      one: '{n} more decision depends on the context of a request.',
      other: '{n} more decisions depend on the context of a request.',
    },
    '另有 {n} 个判定取决于请求的上下文。',
  ],
  more: [{one: 'and {n} more change', other: 'and {n} more changes'}, '以及另外 {n} 项变化'],
  incomplete: [
    'More is reached than can be compared: the numbers are the least.',
    '涉及的范围超出可比较的上限：所示数字为最小值。',
  ],
});

const shown = 6; // decisions

/**
 * Impact asks the permissions service what changes would do to people, and shows it. While nothing can be asked (null),
 * or the service refuses or is away, it shows nothing: the change itself does not need it.
 */
export function Impact({changes}: {changes: AccessChangesWritable | null}) {
  const key = useSettled(changes && may('permissions:read') ? JSON.stringify(changes) : null, 400);
  const {value, busy, error} = useLoad(key, (signal) =>
    call(
      assessAuthImpact({
        body: {...(parse(key!) as AccessChangesWritable), identity_types: ['user']},
        query: {limit: shown},
        signal,
      }),
    ),
  ).state.value;
  if (!key || error) return null;
  return (
    <section class="section" aria-live="polite" aria-busy={busy}>
      <h3>{t('title')}</h3>
      {value ? <Numbers impact={value} /> : <p class="muted">{t('asking')}</p>}
    </section>
  );
}

function Numbers({impact}: {impact: AccessImpact}) {
  const least = impact.complete ? '' : '+';
  const rest = impact.gained + impact.lost - impact.items.length;
  return (
    <>
      {impact.gained + impact.lost === 0 ? (
        <p>{t('nobody')}</p>
      ) : (
        <div class="figures">
          <div>
            <strong class="num">{number(impact.identities_gaining) + least}</strong>
            {t('gain', {n: impact.identities_gaining})}
          </div>
          <div>
            <strong class="num">{number(impact.identities_losing) + least}</strong>
            {t('lose', {n: impact.identities_losing})}
          </div>
        </div>
      )}
      {impact.items.length > 0 && (
        <ul class="tagged">
          {impact.items.map((d) => (
            <Decision key={`${d.identity_id} ${d.object_type} ${d.object_code} ${d.action}`} decision={d} />
          ))}
          {rest > 0 && <li class="muted">{t('more', {n: rest})}</li>}
        </ul>
      )}
      {impact.undecided > 0 && <p class="muted">{t('undecided', {n: impact.undecided})}</p>}
      {!impact.complete && <p class="muted">{t('incomplete')}</p>}
    </>
  );
}

function Decision({decision: d}: {decision: ChangedDecision}) {
  return (
    <li>
      <Tag accent={d.change === 'gained'}>{t(d.change)}</Tag>
      <RecordName kind="user" id={d.identity_id} name={d.identity_name} />
      <code class="clip">{[d.action, d.object_code].filter(Boolean).join(' ')}</code>
      {d.conditional && <span class="faint">{t('conditional')}</span>}
    </li>
  );
}
