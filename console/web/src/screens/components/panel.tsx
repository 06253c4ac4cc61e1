// One component: settings, identity and schema, versions, audit, JSON.
import {
  deleteComponent,
  getComponent,
  publishComponent,
  replaceComponent,
  updateComponent,
  type Component,
  type ComponentPatchWritable,
} from '@idplatform/sdk';
import {asProblem, call, full, type Answer} from '../../lib/api';
import {ago} from '../../lib/format';
import {changed} from '../../lib/load';
import {isObject, pick, same, type Fields} from '../../lib/patch';
import {setQuery, unsaved} from '../../lib/router';
import {Button} from '../../ui/basics';
import {confirm, toast} from '../../ui/dialog';
import {JsonField} from '../../ui/jsonfield';
import {
  Facts,
  FormFields,
  PanelLoad,
  RecordMenu,
  RecordPanel,
  labelsOf,
  useDraft,
  type Draft,
  type FieldSpec,
  type Removal,
  recordFacts,
} from '../../ui/record';
import {t as ui} from '../../ui/text';
import {carryOut} from '../../ui/undo';
import {ConfigFields} from './config';
import {ComponentStatus, scope} from './index';
import {t} from './text';
import {Versions} from './versions';

export const members = ['code', 'name', 'type', 'status', 'schema', 'config'];

export function ComponentPanel({id}: {id: string}) {
  return (
    <PanelLoad id={id} load={(signal) => full(getComponent({path: {id}, signal}))}>
      {(answer, again) => <Loaded answer={answer} again={again} />}
    </PanelLoad>
  );
}

/** write sends a patch, or the whole component where a value is null, which a merge patch cannot say. */
export async function write(patch: Partial<Component>, etag: string, whole: Component): Promise<Answer<Component>> {
  const path = {id: whole.id},
    headers = {'If-Match': etag};
  const all = pick(whole as unknown as Fields, members);
  if (hasNull(all)) return full(replaceComponent({path, body: all as never, headers}));
  return full(updateComponent({path, body: patch as ComponentPatchWritable, headers}));
}

function hasNull(v: unknown): boolean {
  return v === null || (isObject(v) && Object.values(v).some(hasNull));
}

const identity = (): FieldSpec<Component>[] => [
  {field: 'name', label: t('name')},
  {field: 'code', label: t('code'), help: t('codeHelp')},
  {field: 'type', label: t('type'), help: t('typeHelp'), wide: true},
];

function Loaded({answer, again}: {answer: Answer<Component>; again: () => void}) {
  const id = answer.data.id;
  const draft = useDraft<Component>(answer, {
    scope,
    kind: 'components',
    load: () => full(getComponent({path: {id}})),
    save: write,
    saved: (now) => t('savedDone', {name: now.name}),
    again,
  });
  const c = draft.base.value;
  const after = () => {
    changed('components');
    again();
  };
  return (
    <RecordPanel
      title={c.name}
      subtitle={
        <span class="row">
          <span class="mono clip">{c.code}</span>
          <ComponentStatus status={c.status} />
        </span>
      }
      actions={<Actions component={c} after={after} />}
      record={c}
      entity="component"
      draft={draft}
      labels={{...labelsOf(identity()), schema: t('schema'), config: t('config')}}
      overview={() => <Overview draft={draft} />}
      tabs={[{name: 'versions', label: t('versions'), content: () => <Versions component={c} after={after} />}]}
    />
  );
}

function Overview({draft}: {draft: Draft<Component>}) {
  const c = draft.base.value;
  const changedIn = (member: 'config' | 'schema') => !same(draft.get(member), c[member]);
  return (
    <>
      <section class="section">
        <h3>{t('config')}</h3>
        <ConfigFields
          schema={draft.get('schema')}
          value={draft.get('config')}
          set={(v) => draft.set('config', v)}
          error={draft.error.value}
          fault={draft.fault('config')}
          readOnly={draft.readOnly}
          changed={changedIn('config')}
        />
      </section>
      <section class="section">
        <h3>{t('general')}</h3>
        <FormFields draft={draft} fields={identity()} />
        <JsonField
          label={t('schema')}
          help={t('schemaHelp')}
          value={draft.get('schema')}
          set={(v) => draft.set('schema', v)}
          error={draft.fault('schema')}
          readOnly={draft.readOnly}
          changed={changedIn('schema')}
        />
      </section>
      <Facts
        facts={[
          [
            t('published'),
            c.component_version
              ? t('publishedAgo', {n: c.component_version, time: ago(c.time_published)})
              : t('notPublished'),
          ],
          ...recordFacts(c),
        ]}
      />
    </>
  );
}

function Actions({component: c, after}: {component: Component; after: () => void}) {
  const on = c.status === '1';
  const flip = (status: '1' | '0') => call(updateComponent({path: {id: c.id}, body: {status}}));
  const toggle = () =>
    void carryOut({
      send: () => flip(on ? '0' : '1'),
      back: () => flip(on ? '1' : '0'),
      said: t(on ? 'disabledDone' : 'enabledDone', {name: c.name}),
      after,
    });
  return (
    <>
      <Button icon="upload" scope={scope} onClick={() => void publish(c, after)}>
        {t('publish')}
      </Button>
      <RecordMenu
        record={c}
        file={c.code}
        scope={scope}
        items={[{label: t(on ? 'disable' : 'enable'), icon: on ? 'pause' : 'play', scope, onClick: toggle}]}
        removal={removal(c)}
      />
    </>
  );
}

/** publish says which version it makes, tried out dry, and makes it. */
async function publish(c: Component, after: () => void): Promise<void> {
  const path = {id: c.id},
    headers = {'If-Match': `"${c.version}"`};
  if (unsaved()) return toast(t('publishUnsaved'));
  try {
    const {component_version: n} = await call(publishComponent({path, headers, query: {dry_run: 'true'}}));
    if (n === c.component_version) return toast(t('publishSame', {n}));
    const title = t('publishTitle', {name: c.name, n});
    if (!(await confirm({title, text: <p>{t('publishText')}</p>, yes: t('publishDo')}))) return;
    const made = await call(publishComponent({path, headers}));
    toast(t('publishedDone', {name: c.name, n: made.component_version}));
  } catch (e) {
    toast(asProblem(e).problem.status === 412 ? ui('changedSince') : asProblem(e).message);
  }
  after();
}

function removal(c: Component): Removal {
  return {
    title: t('deleteTitle', {name: c.name}),
    text: t('deleteText', {n: Math.min(c.component_version, 100)}),
    typed: c.code,
    record: c,
    send: () => call(deleteComponent({path: {id: c.id}, headers: {'If-Match': `"${c.version}"`}})),
    said: t('deletedDone', {name: c.name}),
    kinds: ['components'],
    leave: () => setQuery({open: null, tab: null, as: null, v: null}, {force: true}),
  };
}
