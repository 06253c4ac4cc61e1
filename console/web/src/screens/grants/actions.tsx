// The actions of a resource: what rules can grant on it.
import type {Action, Resource} from '@idplatform/sdk';
import {same} from '../../lib/patch';
import {Button} from '../../ui/basics';
import {TextField, type Draft} from '../../ui/record';
import {t} from './text';

export function ActionFields({draft}: {draft: Draft<Resource>}) {
  const list = draft.draft.value.actions,
    base = draft.base.value.actions,
    general = draft.fault('actions');
  const set = (next: Action[]) => draft.set('actions', next);
  const change = (i: number, to: Partial<Action>) => set(list.map((a, k) => (k === i ? {...a, ...to} : a)));
  return (
    <>
      {list.length === 0 && <p class="muted">{t('noActions')}</p>}
      {list.map((a, i) => (
        <div class="field-line" key={i}>
          <TextField
            label={t('action')}
            error={draft.fault(`actions[${i}].code`) ?? draft.fault(`actions[${i}]`) ?? general}
            changed={a.code !== base[i]?.code}
            readOnly={draft.readOnly}
            mono
            value={a.code}
            set={(code) => change(i, {code})}
          />
          <TextField
            label={t('description')}
            error={draft.fault(`actions[${i}].description`)}
            changed={!same(a.description ?? '', base[i]?.description ?? '')}
            readOnly={draft.readOnly}
            value={a.description ?? ''}
            set={(description) => change(i, {description})}
          />
          {!draft.readOnly && (
            <Button
              kind="ghost"
              icon="trash"
              label={t('removeAction', {name: a.code || String(i + 1)})}
              onClick={() => set(list.filter((_, k) => k !== i))}
            />
          )}
        </div>
      ))}
      {!draft.readOnly && (
        <div class="row">
          <Button small icon="plus" onClick={() => set([...list, {code: '', description: ''}])}>
            {t('addAction')}
          </Button>
        </div>
      )}
    </>
  );
}
