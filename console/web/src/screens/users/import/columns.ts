// The columns of a file, and the members of a user that they are.
export const members = [
  'username',
  'display_name',
  'email',
  'mobile',
  'employee_number',
  'real_name',
  'gender',
  'locale',
  'zoneinfo',
  'status',
] as const;
export type Member = (typeof members)[number];

// What headings in the wild mean.
const guesses: [RegExp, Member][] = [
  [/^(user ?name|login|account|uid|sam ?account ?name|用户名|账号)$/i, 'username'],
  [/^(display ?name|full ?name|name|cn|显示名|姓名)$/i, 'display_name'],
  [/^(e-?mail|mail|邮箱|电子邮件)/i, 'email'],
  [/^(mobile|phone|tel|手机|电话)/i, 'mobile'],
  [/^(employee|number|staff|personnel|工号)/i, 'employee_number'],
  [/^(real ?name|真实姓名)$/i, 'real_name'],
  [/^(gender|sex|性别)$/i, 'gender'],
  [/^(locale|language|语言)$/i, 'locale'],
  [/^(time ?zone|zoneinfo|时区)$/i, 'zoneinfo'],
  [/^(status|状态)$/i, 'status'],
];

export function guess(heading: string): Member | '' {
  const h = heading.trim().replaceAll('_', ' ');
  return guesses.find(([r]) => r.test(h))?.[1] ?? '';
}

export interface Table {
  name: string;
  headings: string[];
  rows: string[][];
}
