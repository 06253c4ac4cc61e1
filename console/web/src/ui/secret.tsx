import {useEffect, useRef} from 'preact/hooks';
import {saveFile} from '../lib/csv';
import {guard} from '../lib/router';
import {Button, Copy} from './basics';
import {Dialog} from './dialog';
import {Icon} from './icon';
import {t} from './text';

/** SecretDialog shows a fresh secret once. Esc does not close it: only the word that it is stored does. */
export function SecretDialog({
  title,
  text,
  values,
  file,
  close,
}: {
  title: string;
  text: string;
  values: [label: string, value: string][];
  file: {name: string; text: string};
  close: () => void;
}) {
  // Nobody can see the secret again, so leaving asks. What close leads to needs no question any more.
  const release = useRef(() => {});
  useEffect(() => (release.current = guard(() => true)), []);
  const stored = () => {
    release.current();
    close();
  };
  return (
    <Dialog
      title={title}
      foot={
        <>
          <Button class="start" icon="download" onClick={() => saveFile(file.name, 'text/plain', file.text)}>
            {t('download')}
          </Button>
          <Button kind="primary" onClick={stored}>
            {t('stored')}
          </Button>
        </>
      }
    >
      <div class="note warn">
        <Icon name="alert" />
        <div class="grow">{text}</div>
      </div>
      {values.map(([label, value]) => (
        <div class="field wide" key={label}>
          <span class="label">{label}</span>
          <div class="row">
            <code class="json grow secret">{value}</code>
            <Copy text={value} small={false} />
          </div>
        </div>
      ))}
    </Dialog>
  );
}
