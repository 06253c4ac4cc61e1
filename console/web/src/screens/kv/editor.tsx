// The editor of a value: JSON, a text, or a file.
import {useSignal} from '@preact/signals';
import {useMemo, useRef} from 'preact/hooks';
import {bytes} from '../../lib/format';
import {same} from '../../lib/patch';
import {Button} from '../../ui/basics';
import {Icon} from '../../ui/icon';
import {NotJson} from '../../lib/notjson';
import {Field, type InputProps} from '../../ui/record';
import {t} from './text';
import {bytesOf, kinds, picture, read, readFile, saveValue, sizeOf, written, type Kind} from './value';

interface Props {
  name: string; // of the file that it is downloaded as
  value: unknown; // or NotJson
  contentType: string;
  kind: Kind;
  choose: (kind: Kind) => void;
  any?: boolean; // a new value may become of any kind
  set: (value: unknown, contentType?: string) => void;
  max: number; // bytes
  readOnly?: boolean;
  error?: string;
  changed?: boolean;
}

const mostHere = 100_000; // characters; more of them make typing slow

/** ValueEditor shows a value as JSON, as a text, or as a file. */
export function ValueEditor(p: Props) {
  const possible: Kind[] = p.any ? ['json', 'text', 'binary'] : kinds(p.value);
  const text = useMemo(() => written(p.value, p.kind), [p.value, p.kind]);
  const here = useSignal(false); // a large value is edited here, although that is slow
  const large = text.length > mostHere && !here.value;
  const formatted = useSignal(0); // how often the text was asked to be in its usual form
  const size = useMemo(() => (p.value instanceof NotJson ? undefined : sizeOf(p.value)), [p.value]);
  const wrong = p.value instanceof NotJson ? p.value.why : size! > p.max ? t('tooLarge') : undefined;
  return (
    <div class="stack kv-value">
      {possible.length > 1 && (
        <div class="chips" role="group" aria-label={t('showAs')}>
          {possible.map((k) => (
            <button
              key={k}
              type="button"
              class={k === p.kind ? 'chip on' : 'chip'}
              aria-pressed={k === p.kind}
              onClick={() => p.choose(k)}
            >
              {t(k)}
            </button>
          ))}
        </div>
      )}
      {p.kind === 'binary' ? (
        <Binary {...p} />
      ) : large ? (
        <Large
          {...p}
          text={text}
          edit={() => {
            here.value = true;
          }}
        />
      ) : (
        <Field label={t('value')} error={p.error ?? wrong} changed={p.changed} wide>
          {(props) => <Written key={formatted.value} {...p} props={props} />}
        </Field>
      )}
      <div class="row spread kv-foot">
        {p.kind === 'json' && !p.readOnly && !large && (
          <Button small kind="ghost" disabled={p.value instanceof NotJson} onClick={() => formatted.value++}>
            {t('format')}
          </Button>
        )}
        <span class={wrong && size ? 'num wrong' : 'num faint'} role="status">
          {size !== undefined && t('ofAtMost', {size: bytes(size), max: bytes(p.max)})}
        </span>
      </div>
    </div>
  );
}

/** Written keeps what is typed, also while it is not JSON. */
function Written({value, kind, set, readOnly, props}: Props & {props: InputProps}) {
  const text = useSignal<string | undefined>(undefined);
  const told = useRef<{value: unknown; kind: Kind}>({value, kind});
  if (text.value === undefined || !same(told.current.value, value) || told.current.kind !== kind) {
    told.current = {value, kind};
    text.value = written(value, kind);
  }
  const type = (now: string) => {
    text.value = now;
    told.current = {value: read(now, kind), kind};
    set(told.current.value);
  };
  const rows = Math.min(24, Math.max(5, text.value.split('\n').length + 1));
  return (
    <textarea
      class="textarea mono"
      {...props}
      readOnly={readOnly}
      spellcheck={false}
      rows={rows}
      value={text.value}
      onInput={(e) => type(e.currentTarget.value)}
    />
  );
}

/** Large shows the beginning of a value; it is changed in a file, or here by those who have the time. */
function Large({value, contentType, kind, set, readOnly, name, text, edit}: Props & {text: string; edit: () => void}) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <div class="stack">
      <pre class="json kv-large" tabIndex={0}>
        {text.slice(0, 4000)}…
      </pre>
      <p class="muted">{t('largeText')}</p>
      <div class="row wrap">
        <Button icon="download" onClick={() => saveValue({key: name, content_type: contentType, value})}>
          {t('download')}
        </Button>
        {!readOnly && (
          <>
            <Button icon="upload" onClick={() => input.current!.click()}>
              {t('replaceFile')}
            </Button>
            <Button kind="ghost" icon="edit" onClick={edit}>
              {t('editHere')}
            </Button>
          </>
        )}
      </div>
      <input
        ref={input}
        type="file"
        hidden
        onChange={async (e) => {
          const file = e.currentTarget.files?.[0];
          if (file) set(read(await file.text(), kind));
        }}
      />
    </div>
  );
}

function Binary({value, contentType, set, readOnly, error}: Props) {
  const input = useRef<HTMLInputElement>(null);
  const shown = picture(value, contentType);
  const is = typeof value === 'string' && value !== '';
  return (
    <div class="stack">
      <div class="kv-file">
        {shown ? <img src={shown} alt={t('value')} /> : <Icon name="box" size={28} />}
        <div class="grow">
          <strong class="num">{is ? bytes(bytesOf(value).length) : t('noFile')}</strong>
          <div class="faint">{t('binaryHelp')}</div>
        </div>
        {!readOnly && (
          <Button icon="upload" onClick={() => input.current!.click()}>
            {t(is ? 'replaceFile' : 'chooseFile')}
          </Button>
        )}
      </div>
      {error && (
        <span class="wrong" lang="en">
          {error}
        </span>
      )}
      <input
        ref={input}
        type="file"
        hidden
        onChange={async (e) => {
          const file = e.currentTarget.files?.[0];
          if (!file) return;
          const {value: base64, contentType: type} = await readFile(file);
          set(base64, type);
        }}
      />
    </div>
  );
}
