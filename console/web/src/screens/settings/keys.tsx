// The keys that sign tokens, and new ones.
import {listSigningKeys, rotateSigningKeys, type Key} from '@idplatform/sdk';
import {call} from '../../lib/api';
import {ago, dateTime} from '../../lib/format';
import {useLoad} from '../../lib/load';
import {Button, Failed, Id, Late, Status} from '../../ui/basics';
import {confirm, toast} from '../../ui/dialog';
import {attempt} from '../../ui/undo';
import {t} from './text';

export function Keys() {
  const {state, again} = useLoad('signing keys', (signal) => call(listSigningKeys({signal})));
  const {value, error, busy} = state.value;
  const keys = value?.keys ?? [];
  const now = Date.now();
  const signing = [...keys].reverse().find((k) => new Date(k.time_active).getTime() <= now);
  const rotate = async () => {
    if (!(await confirm({title: t('rotateTitle'), text: <p>{t('rotateText')}</p>, yes: t('rotateDo')}))) return;
    await attempt(async () => {
      const after = await call(rotateSigningKeys());
      toast(t(after.keys.length > keys.length ? 'rotated' : 'rotateNot'));
    });
    again();
  };
  const endAll = async () => {
    const question = {title: t('atOnceTitle'), text: <p>{t('atOnceText')}</p>, yes: t('atOnceDo')};
    if (!(await confirm({...question, danger: true, typed: signing?.id.slice(0, 8)}))) return;
    await attempt(async () => {
      await call(rotateSigningKeys({query: {at_once: 'true'}}));
      toast(t('atOnceDone'));
    });
    again();
  };
  return (
    <div class="scroll">
      <div class="page settings-page">
        <p class="muted">{t('keysText')}</p>
        {error && <Failed error={error} again={again} />}
        <Late busy={busy && !value} lines={4}>
          <ul class="cards">
            {keys.map((k) => (
              <li key={k.id} class="card stack settings-key">
                <div class="row wrap spread">
                  <Id>{k.id}</Id>
                  <KeyState of={k} signing={k === signing} now={now} />
                </div>
                <span class="faint" title={dateTime(k.time_created)}>
                  {t('keyCreated', {time: ago(k.time_created)})}
                </span>
              </li>
            ))}
          </ul>
        </Late>
        <div class="row wrap">
          <Button icon="plus" kind="primary" scope="platform:admin" onClick={() => void rotate()}>
            {t('rotate')}
          </Button>
          <Button kind="danger" scope="platform:admin" onClick={() => void endAll()}>
            {t('atOnce')}
          </Button>
        </div>
      </div>
    </div>
  );
}

function KeyState({of: k, signing, now}: {of: Key; signing: boolean; now: number}) {
  if (signing) return <Status tone="good">{t('signs')}</Status>;
  if (new Date(k.time_active).getTime() > now)
    return <Status tone="warn">{t('willSign', {time: dateTime(k.time_active)})}</Status>;
  return <Status tone="off">{t('ended', {time: dateTime(k.time_end)})}</Status>;
}
