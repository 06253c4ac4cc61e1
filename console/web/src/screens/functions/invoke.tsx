// Calling a function now, and its answer.
import {useSignal, type Signal} from '@preact/signals';
import {invokeFunction, type Function as Fn, type FunctionFault, type FunctionInvocation} from '@idplatform/sdk';
import {asProblem, call, type ApiError} from '../../lib/api';
import {took} from '../../lib/format';
import {own} from '../../lib/own';
import {Button, JsonView, Status, type Tone} from '../../ui/basics';
import {Icon} from '../../ui/icon';
import {JsonField, mustBeJson} from '../../ui/jsonfield';
import {Faults, faultOf} from '../../ui/record';
import {optional} from '../jobs/form';
import {ShowAsButton} from '../../ui/show-as';
import type {Place} from './editor';
import {t} from './text';

export type Outcome = FunctionInvocation['outcome'];

const tones: Record<Outcome, Tone> = {
  succeeded: 'good',
  failed: 'bad',
  timed_out: 'bad',
  out_of_memory: 'bad',
  crashed: 'bad',
};

export function OutcomeStatus({outcome}: {outcome: Outcome}) {
  return <Status tone={own(tones, outcome) ?? 'off'}>{t.word('', outcome)}</Status>;
}

/** Call is what somebody has typed and got, kept while the panel is open. */
export interface Call {
  input: Signal<unknown>;
  answer: Signal<FunctionInvocation | undefined>;
}

export function useCall(): Call {
  return {input: useSignal<unknown>({}), answer: useSignal<FunctionInvocation | undefined>(undefined)};
}

export function Invoke({
  f,
  unsaved,
  kept: {input, answer},
  show,
}: {
  f: Fn;
  unsaved: boolean;
  kept: Call;
  show: (place: Place) => void;
}) {
  const error = useSignal<ApiError | undefined>(undefined);
  const busy = useSignal(false);
  const send = async () => {
    const body = {input: input.value};
    mustBeJson(body);
    return call(invokeFunction({path: {id: f.id}, body}));
  };
  const act = async () => {
    if (busy.value) return;
    busy.value = true;
    error.value = undefined;
    try {
      answer.value = await send();
    } catch (e) {
      answer.value = undefined;
      error.value = asProblem(e);
    } finally {
      busy.value = false;
    }
  };
  const off = f.status === '0' ? t('invokeDisabled') : f.revision === 0 ? t('invokeNoCode') : '';
  const a = answer.value;
  return (
    <>
      <Faults error={error.value} />
      {off && <p class="note">{off}</p>}
      {unsaved && !off && (
        <p class="note warn">
          <Icon name="alert" />
          <span>{t('invokeUnsaved', {n: f.revision})}</span>
        </p>
      )}
      <div
        class="stack"
        onKeyDown={(e) => {
          if (e.key !== 'Enter' || !(e.ctrlKey || e.metaKey)) return;
          e.preventDefault();
          if (!off) void act();
        }}
      >
        <JsonField
          label={t('input')}
          help={t('inputHelp')}
          error={faultOf(error.value, 'input')}
          value={input.value}
          set={(v) => {
            input.value = optional(v);
          }}
        />
        <div class="row">
          <Button
            kind="primary"
            icon="play"
            scope="functions:write"
            disabled={off !== ''}
            busy={busy.value}
            onClick={() => void act()}
          >
            {t('invokeDo')}
          </Button>
          <span class="faint">
            <kbd>Ctrl Enter</kbd>
          </span>
          <ShowAsButton
            action={send}
            disabled={off !== ''}
            failed={(e) => {
              error.value = asProblem(e);
            }}
          />
        </div>
      </div>
      {a && (
        <section class={busy.value ? 'section busy' : 'section'} aria-live="polite">
          <h3>{t('answer')}</h3>
          <div class="row wrap">
            <OutcomeStatus outcome={a.outcome} />
            <span class="muted num">{took(a.duration_ms)}</span>
            <span class="faint num">{t('ofRevision', {n: a.revision})}</span>
          </div>
          {a.error && <Fault fault={a.error} show={show} />}
          {a.outcome === 'succeeded' && <JsonView value={a.output} />}
          <h4 class="caps">{t('logLines', {n: a.logs.length})}</h4>
          {a.logs.length ? <Lines lines={a.logs} /> : <p class="muted">{t('noLog')}</p>}
        </section>
      )}
    </>
  );
}

/** Fault is why a call failed, with a way to its line. */
export function Fault({fault, show}: {fault: FunctionFault; show: (place: Place) => void}) {
  return (
    <div class="note bad">
      <Icon name="alert" />
      <div class="grow">
        <div lang="en" class="log-text">
          {fault.message}
        </div>
        {fault.line ? (
          <button
            type="button"
            class="function-place"
            onClick={() => show({line: fault.line!, column: fault.column ?? 1})}
          >
            {t('atPlace', {line: fault.line, column: fault.column ?? 1})}
          </button>
        ) : null}
      </div>
    </div>
  );
}

export function Lines({lines}: {lines: FunctionInvocation['logs']}) {
  return (
    <div class="log" role="log" aria-live="off" aria-label={t('logs')} tabIndex={0}>
      {lines.map((l, i) => (
        <div key={i} class={`log-line fn ${l.level}`}>
          <span class="log-level">{t.word('level_', l.level)}</span>
          <span class="log-text">{l.text}</span>
        </div>
      ))}
    </div>
  );
}
