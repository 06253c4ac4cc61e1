// What stands for something: states, tags, faces, identifiers.
import type {ComponentChildren} from 'preact';
import {useSignal} from '@preact/signals';
import {usePicture} from '../../lib/pictures';
import {Icon, type IconName} from '../icon';
import {Button} from './button';
import {t} from '../text';

export type Tone = 'good' | 'warn' | 'bad' | 'off';

export function Status({tone, children}: {tone: Tone; children: ComponentChildren}) {
  return <span class={`status ${tone}`}>{children}</span>;
}

export function Tag({children, accent}: {children: ComponentChildren; accent?: boolean}) {
  return <span class={accent ? 'tag accent' : 'tag'}>{children}</span>;
}

/** Avatar shows a picture; without one, the icon of a kind of records, or the first letters of a person's name. */
export function Avatar({name, src, large, icon}: {name: string; src?: string; large?: boolean; icon?: IconName}) {
  const words = name.trim().split(/\s+/);
  const cjk = /[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]/.test(name);
  const first = [...(words[0] ?? '')][0] ?? '?';
  const letters = cjk ? first : first + (words.length > 1 ? ([...words[words.length - 1]!][0] ?? '') : '');
  const sized = src?.endsWith('/avatar') ? `${src}?size=${large ? 128 : 64}` : src;
  const picture = usePicture(sized);
  const broken = useSignal<string | undefined>(undefined); // the address of a picture that cannot be shown
  return (
    <span class={large ? 'avatar large' : 'avatar'} aria-hidden="true">
      {picture && picture !== broken.value ? (
        <img
          src={picture}
          alt=""
          loading="lazy"
          onError={() => {
            broken.value = picture;
          }}
        />
      ) : (
        (icon && <Icon name={icon} size={large ? 22 : 14} />) || letters
      )}
    </span>
  );
}

/** Copy puts a text into the clipboard. */
export function Copy({text, label, small = true}: {text: string; label?: string; small?: boolean}) {
  const done = useSignal(false);
  return (
    <Button
      kind="ghost"
      small={small}
      icon={done.value ? 'check' : 'copy'}
      label={done.value ? t('copied') : (label ?? t('copy'))}
      onClick={async () => {
        await navigator.clipboard?.writeText(text);
        done.value = true;
        setTimeout(() => {
          done.value = false;
        }, 1500);
      }}
    />
  );
}

/** Id shows an identifier that can be copied. */
export function Id({children}: {children: string}) {
  return (
    <span class="row">
      <span class="mono clip">{children}</span>
      <Copy text={children} />
    </span>
  );
}
