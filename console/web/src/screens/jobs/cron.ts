// A cron expression in words. Only what can be said plainly is said: of anything else the expression itself is shown.
import {lang, locale} from '../../lib/i18n';
import {own} from '../../lib/own';

/** One field: every value, every n-th, or the values that are named. */
type Field = 'any' | {step: number} | number[];

const months = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC'];
const days = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT'];
const short: Record<string, string> = {
  '@hourly': '0 * * * *',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@weekly': '0 0 * * 0',
  '@monthly': '0 0 1 * *',
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
};

function parse(text: string, low: number, high: number, names: string[] = []): Field | undefined {
  if (text === '*' || text === '?') return 'any';
  const step = /^\*\/(\d+)$/.exec(text)?.[1];
  if (step) return step === '1' ? 'any' : {step: Number(step)};
  const one = (word: string): number => {
    const name = names.indexOf(word.toUpperCase());
    return name >= 0 ? name + (low === 1 ? 1 : 0) : /^\d+$/.test(word) ? Number(word) : NaN;
  };
  const values = new Set<number>();
  for (const part of text.split(',')) {
    const [, from, to, by] = /^([^-/]+)(?:-([^-/]+))?(?:\/(\d+))?$/.exec(part) ?? [];
    if (from === undefined || (by && !to)) return undefined;
    const first = one(from),
      last = to === undefined ? first : one(to);
    if (!(first >= low && last <= high && first <= last) || by === '0') return undefined;
    for (let v = first; v <= last; v += Number(by ?? 1)) values.add(v);
  }
  return values.size === high - low + 1 ? 'any' : [...values].sort((a, b) => a - b);
}

/** cronWords says when an expression fires; undefined if that cannot be said plainly, or it is not an expression. */
export function cronWords(expression: string): string | undefined {
  let fields = (own(short, expression.trim().toLowerCase()) ?? expression).trim().split(/\s+/);
  if (fields.length === 6 && fields[0] === '0') fields = fields.slice(1); // of each minute the first second
  if (fields.length !== 5) return undefined;
  const minute = parse(fields[0]!, 0, 59),
    hour = parse(fields[1]!, 0, 23),
    date = parse(fields[2]!, 1, 31),
    month = parse(fields[3]!, 1, 12, months);
  let day = parse(fields[4]!, 0, 7, days);
  if (Array.isArray(day)) day = [...new Set(day.map((d) => d % 7))].sort((a, b) => a - b);
  if (Array.isArray(day) && day.length === 7) day = 'any';
  if (!minute || !hour || !date || !month || !day) return undefined;
  const time = timeWords(minute, hour),
    on = dayWords(date, month, day);
  if (!time || !on) return undefined;
  if (on.everyDay && time.often) return isChinese() ? time.text : capital(time.text);
  return isChinese()
    ? `${on.text} ${time.text}`
    : capital(on.text + (on.everyDay && time.clock ? ' ' : ', ') + time.text);
}

const isChinese = () => lang.value === 'zh';

interface Time {
  text: string;
  often?: boolean; // it fires all day long, so that "every day" need not be said
  clock?: boolean; // it consists of times of the day
}

interface Day {
  text: string;
  everyDay: boolean;
}

const capital = (text: string) => text[0]!.toUpperCase() + text.slice(1);
const isRange = (v: number[]) => v.length > 2 && v[v.length - 1]! - v[0]! === v.length - 1;
const clock = (h: number, m: number) => `${String(h).padStart(2, '0')}:${String(m).padStart(2, '0')}`;
const say = (en: string, zh: string) => (isChinese() ? zh : en);

/** Lists of more than this many items are no longer plain. */
const maxItems = 6;

function timeWords(minute: Field, hour: Field): Time | undefined {
  const often = (text: string): Time => ({text, often: true});
  const every = minuteStep(minute);
  if (every) {
    const n = every === 1 ? say('every minute', '每分钟') : say(`every ${every} minutes`, `每 ${every} 分钟`);
    if (hour === 'any') return often(n);
    if (!Array.isArray(hour) || !(hour.length === 1 || isRange(hour))) return undefined;
    const from = clock(hour[0]!, 0),
      to = clock(hour[hour.length - 1]!, 60 - every);
    return {text: say(`${n} from ${from} to ${to}`, `${from} 至 ${to} ${n}`)};
  }
  if (!Array.isArray(minute)) return undefined;
  if (hour === 'any') return hourly(minute);
  if (minute.length === 1) {
    const m = minute[0]!;
    if (!Array.isArray(hour)) {
      if (24 % hour.step) return undefined;
      const from = clock(0, m);
      return often(say(`every ${hour.step} hours from ${from}`, `从 ${from} 起每 ${hour.step} 小时`));
    }
    if (isRange(hour)) {
      const from = clock(hour[0]!, m),
        to = clock(hour[hour.length - 1]!, m);
      return {text: say(`every hour from ${from} to ${to}`, `${from} 至 ${to} 每小时`)};
    }
  }
  if (!Array.isArray(hour) || hour.length * minute.length > maxItems) return undefined;
  const all = hour.flatMap((h) => minute.map((m) => clock(h, m)));
  return {text: say(`at ${list(all)}`, all.join('、')), clock: true};
}

function hourly(minute: number[]): Time | undefined {
  if (minute.length > maxItems) return undefined;
  if (minute.length === 1 && minute[0] === 0) return {text: say('every hour, on the hour', '每小时整点'), often: true};
  const text = list(minute.map(String));
  const word = minute.length === 1 ? 'minute' : 'minutes';
  return {text: say(`every hour at ${word} ${text}`, `每小时的第 ${minute.join('、')} 分`), often: true};
}

/** minuteStep is n if the minutes are every n-th of each hour without a gap at its end. */
function minuteStep(minute: Field): number | undefined {
  if (minute === 'any') return 1;
  if (Array.isArray(minute)) return undefined;
  return 60 % minute.step === 0 && minute.step < 60 ? minute.step : undefined;
}

function dayWords(date: Field, month: Field, day: Field): Day | undefined {
  if (day !== 'any') {
    if (!Array.isArray(day) || month !== 'any') return undefined;
    if (date === 'any') return {text: weekdays(day), everyDay: false};
    const dated = dayWords(date, month, 'any'); // it fires on the days of either
    return dated && {text: dated.text + say(' and ', '和') + weekdays(day), everyDay: false};
  }
  if (month !== 'any' && (!Array.isArray(month) || month.length > maxItems)) return undefined;
  const name = (m: number) => format({month: 'long'}, new Date(Date.UTC(2024, m - 1, 1)));
  const inMonths = month === 'any' ? '' : list((month as number[]).map(name));
  if (date === 'any') {
    if (month === 'any') return {text: say('every day', '每天'), everyDay: true};
    return {text: say(`every day in ${inMonths}`, `每年${inMonths}每天`), everyDay: false};
  }
  if (!Array.isArray(date) || date.length > maxItems) return undefined;
  const dates = list(date.map((d) => say(ordinal(d), `${d} 日`)));
  return {
    text: inMonths
      ? say(`on the ${dates} of ${inMonths}`, `每年${inMonths}的 ${dates}`)
      : say(`on the ${dates} of each month`, `每月 ${dates}`),
    everyDay: false,
  };
}

function weekdays(day: number[]): string {
  const key = day.join();
  if (key === '1,2,3,4,5') return say('Monday to Friday', '周一至周五');
  if (key === '0,6') return say('every Saturday and Sunday', '每周六、周日');
  // 7 January 2024 is a Sunday; weeks are told from Monday on
  const named = [...day]
    .sort((a, b) => ((a + 6) % 7) - ((b + 6) % 7))
    .map((d) => format({weekday: isChinese() ? 'short' : 'long'}, new Date(Date.UTC(2024, 0, 7 + d))));
  return say(`every ${list(named)}`, `每${named.join('、')}`);
}

function format(options: Intl.DateTimeFormatOptions, at: Date): string {
  return new Intl.DateTimeFormat(locale(), {...options, timeZone: 'UTC'}).format(at);
}

function list(items: string[]): string {
  return isChinese() ? items.join('、') : new Intl.ListFormat(locale(), {type: 'conjunction'}).format(items);
}

function ordinal(n: number): string {
  const suffix = {one: 'st', two: 'nd', few: 'rd'}[new Intl.PluralRules('en', {type: 'ordinal'}).select(n) as 'one'];
  return `${n}${suffix ?? 'th'}`;
}
