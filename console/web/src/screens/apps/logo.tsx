// The picture of an application: shown, uploaded, taken away.
import {useSignal} from '@preact/signals';
import {getLogo, putLogo, updateApplication, type Application} from '@idplatform/sdk';
import {asProblem, call} from '../../lib/api';
import {bytes} from '../../lib/format';
import {changed, useLoad} from '../../lib/load';
import {useBlobUrl} from '../../lib/pictures';
import {Avatar, Button} from '../../ui/basics';
import {confirm, toast} from '../../ui/dialog';
import {Field} from '../../ui/record';
import {attempt} from '../../ui/undo';
import {t} from './text';

const scope = 'applications:write';
const types = ['image/png', 'image/jpeg', 'image/webp', 'image/gif'];
const mostBytes = 2 << 20;
const mostPixels = 4096; // of a side

/** unfit says why a file cannot be a logo, before it is sent; the platform looks at it again. */
async function unfit(file: File): Promise<string | undefined> {
  if (!types.includes(file.type)) return t('logoType');
  if (file.size > mostBytes) return t('logoSize', {size: bytes(file.size)});
  const picture = await createImageBitmap(file).catch(() => undefined);
  if (!picture) return t('logoBroken');
  const {width, height} = picture;
  picture.close();
  return Math.max(width, height) > mostPixels ? t('logoPixels', {width, height}) : undefined;
}

/** LogoSection shows the logo, or the one that was chosen and is not sent yet. */
export function LogoSection({app, again}: {app: Application; again: () => void}) {
  const chosen = useSignal<File | undefined>(undefined);
  const fault = useSignal<string | undefined>(undefined);
  const busy = useSignal(false);
  const path = {id: app.id};
  // Through the client, since an image element cannot name another tenant.
  const kept = useLoad(app.logo.startsWith('/v1/') ? `${app.logo} ${app.version}` : null, (signal) =>
    call(getLogo({path, parseAs: 'blob', signal})),
  ).state.value.value;
  const keptUrl = useBlobUrl(kept as Blob | undefined);
  const chosenUrl = useBlobUrl(chosen.value);
  const inline = app.logo.startsWith('data:image/') ? app.logo : undefined;
  const choose = async (file: File | undefined) => {
    chosen.value = undefined;
    fault.value = file && (await unfit(file));
    if (!fault.value) chosen.value = file;
  };
  const done = (said: string) => {
    chosen.value = undefined;
    toast(said);
    changed('apps');
    again();
  };
  const upload = async (file: File) => {
    busy.value = true;
    try {
      await call(putLogo({path, body: file, headers: {'Content-Type': file.type} as never}));
      done(t('logoSaved', {name: app.name}));
    } catch (e) {
      fault.value = asProblem(e).message;
    }
    busy.value = false;
  };
  const remove = async () => {
    const question = {title: t('logoRemoveTitle'), text: t('logoRemoveText'), yes: t('logoRemove'), danger: true};
    if (!(await confirm(question))) return;
    if (await attempt(() => call(updateApplication({path, body: {logo: ''}}))))
      done(t('logoRemoved', {name: app.name}));
  };
  return (
    <section class="section">
      <h3>{t('logo')}</h3>
      <div class="row apps-logo">
        <Avatar large icon="app" name={app.name} src={chosenUrl ?? keptUrl ?? inline} />
        <Field label={t('logoFile')} help={t('logoHelp')} error={fault.value}>
          {(p) => (
            <input
              class="input"
              type="file"
              accept={types.join()}
              {...p}
              disabled={busy.value}
              onChange={(e) => void choose(e.currentTarget.files?.[0])}
            />
          )}
        </Field>
      </div>
      <div class="row">
        {chosen.value && (
          <Button kind="primary" scope={scope} busy={busy.value} onClick={() => void upload(chosen.value!)}>
            {t('logoUpload')}
          </Button>
        )}
        {app.logo && !chosen.value && (
          <Button icon="trash" scope={scope} onClick={() => void remove()}>
            {t('logoRemove')}
          </Button>
        )}
      </div>
    </section>
  );
}
