// What the bar of selected users offers, and the dialog of each action.
import {useSignal} from '@preact/signals';
import type {User} from '@idplatform/sdk';
import {Button, Menu} from '../../../ui/basics';
import type {Matching} from '../../../ui/list';
import {t as ui} from '../../../ui/text';
import {icons, scopes, type Action} from './actions';
import {BulkDialog} from './dialog';
import {t} from './text';

export function BulkActions({selected, clear, all}: {selected: User[]; clear: () => void; all?: Matching}) {
  const action = useSignal<Action | ''>('');
  const choose = (a: Action) => () => {
    action.value = a;
  };
  const button = (a: Action) => (
    <Button
      small
      icon={icons[a]}
      kind={a === 'delete' ? 'danger' : undefined}
      scope={scopes[a]}
      onClick={choose(a)}
    >{`${t(a)}…`}</Button>
  );
  const item = (a: Action) => ({label: `${t(a)}…`, icon: icons[a], scope: scopes[a], onClick: choose(a)});
  return (
    <>
      {button('lock')}
      {button('unlock')}
      {button('delete')}
      <Menu small kind="ghost" icon="more" label={ui('more')} items={[item('invite'), item('reset'), item('move')]} />
      {action.value && (
        <BulkDialog
          action={action.value}
          selected={selected}
          all={all}
          close={(done) => {
            action.value = '';
            if (done) clear();
          }}
        />
      )}
    </>
  );
}
