import {useSignal} from '@preact/signals';
import {own} from '../../lib/own';
import type {Conflict} from '../../lib/patch';
import {Button} from '../basics';
import {Dialog, toast} from '../dialog';
import {LineDiff} from '../linediff';
import {memberWord, valueText} from '../members';
import {t} from '../text';
import type {Draft} from './draft';

const lined = (v: unknown) => (typeof v === 'string' ? v : (JSON.stringify(v, null, 2) ?? ''));

// What has several lines is shown as what each side has changed.
const isLong = (c: Conflict) => [c.base, c.theirs, c.mine].some((v) => lined(v).includes('\n'));

/** ConflictDialog lets a person choose, member by member, when two have changed the same. */
export function ConflictDialog<T extends object>({
  draft,
  labels,
  entity,
}: {
  draft: Draft<T>;
  labels: Record<string, string>;
  entity: string;
}) {
  const c = draft.conflict.value;
  const choice = useSignal<Record<string, 'mine' | 'theirs'>>({});
  if (!c) return null;
  const text = (member: string, v: unknown) => valueText(entity, member, v) || '—';
  const done = () => {
    draft.resolve(
      Object.fromEntries(c.list.map((x) => [x.field, own(choice.value, x.field) === 'theirs' ? x.theirs : x.mine])),
    );
    toast(t('conflictNone'));
  };
  return (
    <Dialog
      wide
      title={t('conflictTitle')}
      onClose={() => {
        draft.conflict.value = undefined;
      }}
      foot={
        <Button kind="primary" onClick={done}>
          {t('apply')}
        </Button>
      }
    >
      <p class="muted">{c.list.length ? t('conflictText') : t('conflictNone')}</p>
      {c.list.length > 0 && (
        <table class="diff">
          <thead>
            <tr>
              <th scope="col">{t('member')}</th>
              <th scope="col">{t('base')}</th>
              <th scope="col">{t('theirs')}</th>
              <th scope="col">{t('mine')}</th>
            </tr>
          </thead>
          <tbody>
            {c.list.map((x) => (
              <tr key={x.field}>
                <th scope="row">{own(labels, x.field) ?? memberWord(entity, x.field)}</th>
                <td class="muted">{isLong(x) ? t('asBefore') : text(x.field, x.base)}</td>
                {(['theirs', 'mine'] as const).map((side) => (
                  <td key={side}>
                    <label class="check">
                      <input
                        type="radio"
                        name={`c-${x.field}`}
                        checked={(own(choice.value, x.field) ?? 'mine') === side}
                        onChange={() => {
                          choice.value = {...choice.value, [x.field]: side};
                        }}
                      />
                      {isLong(x) ? t(side) : text(x.field, x[side])}
                    </label>
                    {isLong(x) && <LineDiff from={lined(x.base)} to={lined(x[side])} />}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Dialog>
  );
}
