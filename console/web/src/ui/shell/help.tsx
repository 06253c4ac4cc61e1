import {setSingleKeys, singleKeys} from '../../lib/keys';
import {Dialog} from '../dialog';
import {t} from '../text';

export function Help({close}: {close: () => void}) {
  const rows: [string[], string][] = [
    [['Ctrl', 'K'], t('keyPalette')],
    [['/'], t('keySearch')],
    [['j'], t('keyDown')],
    [['k'], t('keyUp')],
    [['x'], t('keyPick')],
    [['Enter'], t('keyOpen')],
    [['Esc'], t('keyClose')],
    [['Ctrl', 'S'], t('keySave')],
    [['w'], t('keyWrites')],
    [['?'], t('keyHelp')],
  ];
  return (
    <Dialog title={t('help')} onClose={close}>
      <dl class="facts">
        {rows.map(([keys, what]) => [
          <dt key={what} class="row">
            {keys.map((k) => (
              <kbd key={k}>{k}</kbd>
            ))}
          </dt>,
          <dd key={what + '.'}>{what}</dd>,
        ])}
      </dl>
      <hr />
      <label class="check">
        <input type="checkbox" checked={singleKeys.value} onChange={(e) => setSingleKeys(e.currentTarget.checked)} />
        <span>
          <strong>{t('singleKeys')}</strong>
          <br />
          <span class="muted">{t('singleKeysHint')}</span>
        </span>
      </label>
      <p class="faint">{t('yourZone', {zone: Intl.DateTimeFormat().resolvedOptions().timeZone})}</p>
    </Dialog>
  );
}
