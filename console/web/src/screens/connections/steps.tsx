// The steps of a template: any one method of a step completes it; one that is not required is for those who have a
// factor for it.
import type {AuthMethod, AuthStep} from '@idplatform/sdk';
import type {ApiError} from '../../lib/api';
import {locale} from '../../lib/i18n';
import {changes, useLoad} from '../../lib/load';
import {Button, Failed} from '../../ui/basics';
import {Icon} from '../../ui/icon';
import {faultOf, Field, findFault} from '../../ui/record';
import {partHref} from './frame';
import {allMethods} from './methods';
import {t} from './text';

const mostSteps = 10,
  mostMethods = 20;

/** enrolOf is what becomes of people who have no factor for a step. */
const enrolOf = (s: AuthStep) => s.enrol ?? (s.required ? 'demand' : 'offer');

/** stepsInWords is what a login is like: "Password, then SMS code or Passkey (if they have it)". */
export function stepsInWords(steps: AuthStep[], methods: AuthMethod[]): string {
  const or = new Intl.ListFormat(locale(), {type: 'disjunction'});
  return steps
    .map((s) => {
      const names = or.format(s.methods.map((code) => methods.find((m) => m.code === code)?.name ?? code));
      return s.when ? t('onlyIf', {names}) : enrolOf(s) === 'demand' ? names : t('ofSome', {names});
    })
    .join(t('then'));
}

export function useMethods() {
  return useLoad(`methods of steps ${changes.value['auth-methods'] ?? 0}`, (signal) => allMethods({}, signal));
}

interface Props {
  steps: AuthStep[];
  set: (steps: AuthStep[]) => void;
  error?: ApiError;
  readOnly?: boolean;
}

export function StepsEditor({steps, set, error, readOnly}: Props) {
  const {state, again} = useMethods();
  const {value: methods, error: failed} = state.value;
  const put = (i: number, step: AuthStep) => set(steps.map((s, k) => (k === i ? step : s)));
  const move = (i: number, by: number) => {
    const next = [...steps];
    next.splice(i + by, 0, ...next.splice(i, 1));
    set(next);
  };
  const fault = findFault(error, (location) => location === 'body.steps');
  return (
    <section class="section">
      <h3>{t('steps')}</h3>
      <p class="muted">{t('stepsText')}</p>
      {failed && <Failed error={failed} again={again} />}
      {state.value.value?.length === 0 && (
        <p class="note">
          {t('noMethods')}: <a href={partHref('methods')}>{t('toMethods')}</a>
        </p>
      )}
      {steps.map((step, i) => (
        <Step
          key={i}
          n={i + 1}
          step={step}
          methods={methods}
          fault={faultOf(error, `steps[${i}].methods`)}
          error={error}
          readOnly={readOnly}
          put={(s) => put(i, s)}
          up={i > 0 ? () => move(i, -1) : undefined}
          down={i < steps.length - 1 ? () => move(i, 1) : undefined}
          remove={steps.length > 1 ? () => set(steps.filter((_, k) => k !== i)) : undefined}
        />
      ))}
      {fault && <Fault text={fault} />}
      {!readOnly && (
        <div>
          <Button
            icon="plus"
            disabled={steps.length >= mostSteps}
            onClick={() => set([...steps, {methods: [], required: true}])}
          >
            {t('addStep')}
          </Button>
        </div>
      )}
    </section>
  );
}

function Fault({text}: {text: string}) {
  return (
    <span class="connections-fault" lang="en">
      <Icon name="alert" size={12} />
      {text}
    </span>
  );
}

interface StepProps {
  n: number;
  step: AuthStep;
  methods: AuthMethod[] | undefined; // until they are loaded
  fault?: string;
  error?: ApiError;
  readOnly?: boolean;
  put: (step: AuthStep) => void;
  up?: () => void;
  down?: () => void;
  remove?: () => void;
}

/** withoutFactor is what a step says of people who have no factor for it. Days of grace go with demand alone. */
function withoutFactor(step: AuthStep, enrol: AuthStep['enrol'], days?: number): AuthStep {
  const {enrol: _, grace_days: __, ...rest} = step;
  return {...rest, enrol, ...(enrol === 'demand' && days ? {grace_days: days} : {})};
}

const factorTypes = ['otp', 'webauthn'];

function Step({n, step, methods: loaded, fault, error, readOnly, put, up, down, remove}: StepProps) {
  const title = t('stepN', {n});
  const methods = loaded ?? [];
  const left = methods.filter((m) => !step.methods.includes(m.code));
  return (
    <div class={fault ? 'connections-step faulty' : 'connections-step'} role="group" aria-label={title}>
      <div class="row">
        <strong class="grow num">{title}</strong>
        {!readOnly && (
          <>
            <Button small kind="ghost" icon="up" label={t('stepUp', {n})} disabled={!up} onClick={up} />
            <Button small kind="ghost" icon="down" label={t('stepDown', {n})} disabled={!down} onClick={down} />
            <Button small kind="ghost" icon="trash" label={t('stepRemove', {n})} disabled={!remove} onClick={remove} />
          </>
        )}
      </div>
      <div class="chips">
        {step.methods.map((code) => {
          const m = methods.find((x) => x.code === code);
          const off = m?.status === '0';
          return (
            <span key={code} class="chip on" title={code}>
              {m?.name ?? code}
              {off && ` (${t('disabled')})`}
              {!readOnly && (
                <button
                  type="button"
                  class="connections-x"
                  aria-label={t('methodRemove', {name: m?.name ?? code})}
                  onClick={() => put({...step, methods: step.methods.filter((c) => c !== code)})}
                >
                  <Icon name="x" size={12} />
                </button>
              )}
            </span>
          );
        })}
        {!readOnly && (!loaded || left.length > 0) && step.methods.length < mostMethods && (
          <select
            class="select"
            aria-label={t('addMethodTo', {n})}
            aria-invalid={fault ? true : undefined}
            value=""
            onChange={(e) => {
              const code = e.currentTarget.value;
              e.currentTarget.value = '';
              put({...step, methods: [...step.methods, code]});
            }}
          >
            <option value="">{t(step.methods.length ? 'orMethod' : 'addMethod')}</option>
            {left.map((m) => (
              <option key={m.id} value={m.code}>
                {m.name}
              </option>
            ))}
          </select>
        )}
      </div>
      {fault && <Fault text={fault} />}
      <label class="check">
        <input
          type="checkbox"
          disabled={readOnly}
          checked={step.required}
          onChange={(e) => put({...withoutFactor(step, undefined), required: e.currentTarget.checked})}
        />
        {t('required')}
      </label>
      {methods.some((m) => step.methods.includes(m.code) && factorTypes.includes(m.type)) && (
        <>
          <Field label={t('enrol')}>
            {(p) => (
              <select
                {...p}
                class="select"
                disabled={readOnly}
                value={enrolOf(step)}
                onChange={(e) => put(withoutFactor(step, e.currentTarget.value as AuthStep['enrol']))}
              >
                <option value="demand">{t('enrolDemand')}</option>
                <option value="offer">{t('enrolOffer')}</option>
                <option value="off">{t(step.required ? 'enrolOff' : 'enrolSkip')}</option>
              </select>
            )}
          </Field>
          {enrolOf(step) === 'demand' && (
            <Field label={t('grace')} help={t('graceText')} error={faultOf(error, `steps[${n - 1}].grace_days`)}>
              {(p) => (
                <input
                  {...p}
                  class="input"
                  type="number"
                  min={0}
                  max={365}
                  readOnly={readOnly}
                  value={step.grace_days ?? 0}
                  onInput={(e) => put(withoutFactor(step, 'demand', e.currentTarget.valueAsNumber))}
                />
              )}
            </Field>
          )}
        </>
      )}
      <Field label={t('when')} help={t('whenText')} error={faultOf(error, `steps[${n - 1}].when`)} wide>
        {(p) => (
          <input
            {...p}
            class="input mono"
            spellcheck={false}
            readOnly={readOnly}
            value={step.when ?? ''}
            onInput={(e) => {
              const {when: _, ...rest} = step;
              put(e.currentTarget.value ? {...rest, when: e.currentTarget.value} : rest);
            }}
          />
        )}
      </Field>
    </div>
  );
}
