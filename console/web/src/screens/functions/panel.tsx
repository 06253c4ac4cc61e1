// One function: its code and settings, calls, logs and revisions.
import {useSignal} from '@preact/signals';
import {getFunction, updateFunction, type Function as Fn} from '@idplatform/sdk';
import {full, type Answer} from '../../lib/api';
import {number} from '../../lib/format';
import {same} from '../../lib/patch';
import {setQuery} from '../../lib/router';
import {Id} from '../../ui/basics';
import {Facts, Field, FormFields, PanelLoad, RecordPanel, useDraft, type Draft, recordFacts} from '../../ui/record';
import {Actions} from './actions';
import {upload} from './create';
import {SourceField, type Place} from './editor';
import {EnvFields, HostsField, LimitFields, TriggerFields} from './fields';
import {FunctionStatus} from './index';
import {Invoke, useCall} from './invoke';
import {Logs} from './logs';
import {Revisions} from './revisions';
import {t} from './text';

export function FunctionPanel({id}: {id: string}) {
  return (
    <PanelLoad id={id} load={(signal) => full(getFunction({path: {id}, signal}))}>
      {(answer, again) => <Loaded answer={answer} again={again} />}
    </PanelLoad>
  );
}

function Loaded({answer, again}: {answer: Answer<Fn>; again: () => void}) {
  const id = answer.data.id;
  const jump = useSignal<Place | undefined>(undefined); // the place of a fault that somebody wants to see
  const kept = useCall();
  const draft = useDraft<Fn>(answer, {
    scope: 'functions:write',
    kind: 'functions',
    load: () => full(getFunction({path: {id}})),
    save: (patch, etag) => full(updateFunction({path: {id}, body: patch as never, headers: {'If-Match': etag}})),
    saved: (now) => {
      jump.value = undefined;
      return t('savedDone', {name: now.name});
    },
    // The former values of variables are not shown, so that a change of them cannot be taken back.
    undoable: (now, before) => same(now.env, before.env) && same(now.allowed_hosts, before.allowed_hosts),
    again,
  });
  const f = draft.base.value;
  const show = (place: Place) => {
    jump.value = {...place};
    void setQuery({tab: null}, {force: true});
  };
  return (
    <RecordPanel
      title={f.name}
      subtitle={
        <span class="row function-panel">
          <FunctionStatus f={f} />
          <span class="clip">
            <span class="mono">{f.code}</span> · {t(f.runtime)}
            {f.revision > 0 && ` · ${t('revisionNumber', {n: f.revision})}`}
          </span>
        </span>
      }
      actions={<Actions f={f} again={again} />}
      record={f}
      entity="function"
      draft={draft}
      labels={{
        name: t('name'),
        code: t('code'),
        description: t('description'),
        entry: t('entry'),
        source: t('source'),
        triggers: t('triggers'),
        allowed_hosts: t('hosts'),
        env: t('env'),
        limits: t('limits'),
        status: t('status'),
      }}
      overview={() => <Overview draft={draft} jump={jump.value} again={again} />}
      tabs={[
        {
          name: 'invoke',
          label: t('invoke'),
          content: () => <Invoke f={f} unsaved={draft.count.value > 0} kept={kept} show={show} />,
        },
        {name: 'logs', label: t('logs'), content: () => <Logs f={f} show={show} />},
        {name: 'revisions', label: t('revisions'), content: () => <Revisions f={f} again={again} />},
      ]}
    />
  );
}

function Overview({draft, jump, again}: {draft: Draft<Fn>; jump?: Place; again: () => void}) {
  const f = draft.base.value;
  return (
    <>
      {f.status === '0' && <p class="note">{t('disabledText')}</p>}
      {f.runtime === 'javascript' ? (
        <SourceField
          value={draft.draft.value.source ?? ''}
          set={(v) => draft.set('source', v)}
          error={draft.error.value}
          readOnly={draft.readOnly}
          changed={draft.draft.value.source !== f.source}
          jump={jump}
        />
      ) : (
        <Module f={f} readOnly={draft.readOnly} again={again} />
      )}
      <section class="section">
        <h3>{t('triggers')}</h3>
        <TriggerFields draft={draft} />
      </section>
      <section class="section">
        <h3>{t('reach')}</h3>
        <EnvFields draft={draft} />
        <HostsField draft={draft} />
      </section>
      <section class="section">
        <h3>{t('limits')}</h3>
        <LimitFields draft={draft} />
      </section>
      <section class="section">
        <h3>{t('about')}</h3>
        <FormFields
          draft={draft}
          fields={[
            {field: 'name', label: t('name')},
            {field: 'code', label: t('code'), help: t('codeHelp')},
            {field: 'entry', label: t('entry'), help: t('entryHelp')},
            {field: 'description', label: t('description'), kind: 'textarea'},
          ]}
        />
        <Facts facts={[...recordFacts(f)]} />
      </section>
    </>
  );
}

/** Module is what there is to see of WebAssembly, and where another is uploaded. */
function Module({f, readOnly, again}: {f: Fn; readOnly: boolean; again: () => void}) {
  const busy = useSignal(false);
  const now = f.revisions.find((r) => r.revision === f.revision);
  return (
    <section class="section">
      <h3>{t('module')}</h3>
      {now ? (
        <Facts
          facts={[
            [t('size'), <span class="num">{t('bytes', {n: number(now.bytes)})}</span>],
            ['SHA-256', <Id>{now.sha256}</Id>],
          ]}
        />
      ) : (
        <p class="note warn">{t('noModule')}</p>
      )}
      {!readOnly && (
        <Field label={t('otherModule')} help={t('moduleHelp')}>
          {(p) => (
            <input
              class="input"
              type="file"
              accept=".wasm,application/wasm"
              {...p}
              disabled={busy.value}
              onChange={async (e) => {
                const input = e.currentTarget,
                  file = input.files?.[0];
                if (!file) return;
                busy.value = true;
                await upload(f, file);
                busy.value = false;
                input.value = '';
                again();
              }}
            />
          )}
        </Field>
      )}
    </section>
  );
}
