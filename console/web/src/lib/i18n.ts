// Texts in the languages of the console. A key that one language lacks is a fault that tsc finds. The build leaves the
// texts of one language in a script; the server answers with the script of the language that the browser asks for.
import {signal, effect} from '@preact/signals';
import {stored, store} from './storage';

/** The language of this script; the bundler sets it. */
declare const BUILT_FOR: 'en' | 'zh';

export type Lang = 'en' | 'zh' | 'pseudo';
type Entry = string | {one: string; other: string};
/** Texts are entries with what they say in English and in Chinese. */
export type Texts = Record<string, [en: Entry, zh: Entry]>;
type Values = Record<string, string | number>;

// pseudo shows texts that are not translated: everything else has accents.
const known: Lang[] = ['en', 'zh', 'pseudo'];

const isHere = (l: Lang) => (l === 'zh') === (BUILT_FOR === 'zh');
const cookie = (l: Lang) => `idp_console_lang=${l === 'zh' ? 'zh' : 'en'}`;

/** load loads the page again with the script of a language. The cookie tells the server which. */
function load(l: Lang): void {
  document.cookie = `${cookie(l)}; Path=/console; Max-Age=31536000; SameSite=Lax`;
  if (document.cookie.includes(cookie(l))) location.reload();
}

function initial(): Lang {
  const chosen = stored('lang') as Lang | null;
  if (!chosen || !known.includes(chosen)) return BUILT_FOR;
  if (isHere(chosen)) return chosen;
  if (!document.cookie.includes(cookie(chosen))) load(chosen); // once, even if the server does not know the cookie
  return BUILT_FOR;
}

export const lang = signal<Lang>(initial());

effect(() => {
  document.documentElement.lang = locale();
});

/** setLang changes the language, and loads the page again if it has the texts of another. */
export function setLang(l: Lang): void {
  store('lang', l);
  if (isHere(l)) lang.value = l;
  else load(l);
}

/** The locale for Intl. */
export function locale(): string {
  return lang.value === 'zh' ? 'zh-Hans-CN' : 'en-GB';
}

/** bilingual is for texts that texts() gets in parts. */
export const bilingual = <T extends Texts>(entries: T): T => entries;

/** Word is a word of the API; one whose type is a list of words must have a text for each. */
type Word<T, P extends string, W extends string> = string extends W ? W : `${P}${W}` extends keyof T ? W : never;

/**
 * texts returns the lookup of a part of the console: const t = texts({save: ['Save', '保存']}); t('save').
 * {name} in a text is replaced by a value; a text with {one, other} is chosen by the value n. t.word('by_', cause) is
 * the text of a word that the API answers; a word without one, of a newer server, stays as it is.
 */
export function texts<T extends Texts>(entries: T) {
  const t = (key: keyof T & string, values: Values = {}): string => {
    const entry = entries[key] as unknown as Entry; // the build has left one of the two
    let text: string;
    if (typeof entry === 'string') text = entry;
    else text = new Intl.PluralRules(locale()).select(Number(values.n)) === 'one' ? entry.one : entry.other;
    text = text.replace(/\{(\w+)\}/g, (whole, name: string) => {
      const value = values[name];
      if (value === undefined) return whole;
      return typeof value === 'number' ? new Intl.NumberFormat(locale()).format(value) : value;
    });
    return lang.value === 'pseudo' ? pseudo(text) : text;
  };
  t.word = <P extends string, W extends string>(prefix: P, word: W & Word<T, P, W>): string =>
    Object.hasOwn(entries, prefix + word) ? t(prefix + word) : word;
  return t;
}

/**
 * translated is for what the platform says in English: the lookup of its Chinese by the English. A text that is not
 * there, of a newer server, stays as it is.
 */
export function translated(chinese: Record<string, string>) {
  return (text: string): string => {
    if (!Object.hasOwn(chinese, text) || lang.value === 'en') return text;
    return lang.value === 'zh' ? chinese[text]! : pseudo(text);
  };
}

const accents: Record<string, string> = {
  a: 'á',
  e: 'é',
  i: 'í',
  o: 'ó',
  u: 'ú',
  A: 'Á',
  E: 'É',
  I: 'Í',
  O: 'Ó',
  U: 'Ú',
};

function pseudo(text: string): string {
  return `[${text.replace(/[aeiouAEIOU]/g, (c) => accents[c]!)}~]`;
}
