// What every record can do: be downloaded, and be deleted.
import type {ComponentChildren} from 'preact';
import {useEffect, useRef} from 'preact/hooks';
import {asProblem, type ApiError} from '../../lib/api';
import {saveFile} from '../../lib/csv';
import {changed} from '../../lib/load';
import {offer} from '../../lib/offers';
import {setQuery} from '../../lib/router';
import {Button, Menu, type MenuItem} from '../basics';
import {confirm, toast} from '../dialog';
import {t} from '../text';

/** download offers a record as a file of JSON. */
export function download(name: string, record: unknown): void {
  saveFile(`${name}.json`, 'application/json', JSON.stringify(record, null, 2) + '\n');
}

export interface Removal {
  title: string;
  text: ComponentChildren; // what goes along
  typed: string; // the name, which a person types
  record: unknown; // offered as a file, since a delete has no undo
  file?: string; // its name without .json; absent: what is typed
  send: () => Promise<unknown>;
  dry?: () => Promise<unknown>; // tried before the question, so that nobody types a name in vain
  refusal?: (error: ApiError) => string;
  counted?: () => string; // where that is what a refusal counts: what uses it, or is below it
  said: string;
  kinds: string[]; // of the lists that show it
  leave?: () => Promise<void>; // absent: its panel is closed
}

/** remove asks, deletes, closes the panel and tells; false if the record is still there. */
export async function remove(r: Removal): Promise<boolean> {
  const refused = (e: unknown) => {
    const problem = asProblem(e);
    const counts = ['in_use', 'has_children'].includes(problem.problem.code);
    toast(r.refusal?.(problem) ?? problem.message, undefined, counts ? r.counted?.() : undefined);
    return false;
  };
  try {
    await r.dry?.();
  } catch (e) {
    return refused(e);
  }
  const text = (
    <>
      {typeof r.text === 'string' ? <p>{r.text}</p> : r.text}
      <div>
        <Button small icon="download" onClick={() => download(r.file ?? r.typed, r.record)}>
          {t('downloadRecord')}
        </Button>
      </div>
    </>
  );
  const question = {title: r.title, text, typed: r.typed, yes: t('delete'), danger: true, action: r.send};
  if (!(await confirm(question))) return false;
  try {
    await r.send();
  } catch (e) {
    return refused(e);
  }
  await (r.leave ?? (() => setQuery({open: null, tab: null}, {force: true})))();
  toast(r.said);
  r.kinds.forEach(changed);
  return true;
}

/**
 * RecordMenu is the menu of a record's panel: its own actions, the download, and the delete; the palette has them too.
 */
export function RecordMenu({
  items = [],
  record,
  file,
  scope,
  removal,
  cannotRemove,
  small,
}: {
  items?: MenuItem[];
  record: unknown;
  file: string; // its name without .json
  scope: string; // that a delete needs
  removal: Removal | (() => void); // a function shows a question of its own
  cannotRemove?: boolean;
  small?: boolean;
}) {
  const all: MenuItem[] = [
    ...items,
    {label: t('downloadRecord'), icon: 'download', onClick: () => download(file, record)},
    {
      label: t('deleteMore'),
      icon: 'trash',
      danger: true,
      line: true,
      scope,
      disabled: cannotRemove,
      onClick: () => void (typeof removal === 'function' ? removal() : remove(removal)),
    },
  ];
  const now = useRef({record: file, items: all});
  now.current = {record: file, items: all};
  useEffect(() => (small ? undefined : offer(() => now.current)), [small]); // one of many rows is not the open record
  return <Menu small={small} icon="more" kind="ghost" label={t('more')} items={all} />;
}
