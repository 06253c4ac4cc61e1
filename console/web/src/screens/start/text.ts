import {texts} from '../../lib/i18n';
import {words} from '../../ui/words';

export const t = texts({
  ...words,
  title: ['Start', '开始'],
  hello: ['Who exists, who belongs where, who may do what.', '有哪些人，属于哪里，能做什么。'],
  lead: [
    'Five minutes with sample people show the whole way; your own file does, too.',
    '用示例人员五分钟走完全程；也可以导入您自己的文件。',
  ],
  sampleTitle: ['Sample company', '示例公司'],
  sampleText: [
    '200 people, three trees, and an application with invoices that one department may read. It is made through the API, like everything here, and one button removes it again.',
    '200 人、三棵树，以及一个部门可读取发票的应用。与这里的一切相同，通过 API 生成，一个按钮即可移除。',
  ],
  sampleHere: [
    'The sample company is here: {n} people in three trees, and the application Sample books.',
    '示例公司已就绪：{n} 人，三棵树，以及应用 Sample books。',
  ],
  make: ['Make the sample company', '生成示例公司'],
  making: ['Making…', '正在生成…'],
  remove: ['Remove it', '移除'],
  removing: ['Removing…', '正在移除…'],
  removeTitle: ['Remove the sample company?', '移除示例公司？'],
  removeText: [
    'All people whose employee number begins with SAMPLE-, the trees sample-company, sample-places and sample-projects, and the application Sample books. What you have granted to them ends.',
    '将移除工号以 SAMPLE- 开头的所有人员，以及 sample-company、sample-places 和 sample-projects 三棵树，以及应用 Sample books。授予它们的权限随之失效。',
  ],
  made: ['The sample company is ready', '示例公司已就绪'],
  removed: ['The sample company is gone', '示例公司已移除'],
  ownTitle: ['Your own people', '您自己的人员'],
  ownText: [
    'A CSV file from a spreadsheet or directory. Its columns are mapped, and the first lines tried, before anything is written.',
    '来自电子表格或目录的 CSV 文件。写入之前会映射各列，并试运行前若干行。',
  ],
  import: ['Import a file…', '导入文件…'],
  steps: ['Step by step', '步骤'],
  people: ['People', '人员'],
  peopleText: [
    'Search, lock, change: every change can be seen in Audit.',
    '搜索、锁定、修改：每次更改都能在审计中看到。',
  ],
  tree: ['Tree', '组织树'],
  treeText: [
    'Where people belong. A move shows what it changes before it is made.',
    '人员归属。移动之前会显示其影响。',
  ],
  apps: ['Applications', '应用'],
  appsText: ['What people and machines sign in to.', '人员和机器所登录的应用。'],
  grants: ['Grants', '授权'],
  grantsText: ['Who may do what, for people, nodes and applications.', '人员、节点和应用可以做什么。'],
  explorer: ['Ask', '询问'],
  question: ['May Li Wei read invoices?', 'Li Wei 可以读取发票吗？'],
  explorerText: ['May Li Wei read invoices, and why?', 'Li Wei 可以读取发票吗？为什么？'],
  events: ['Watch', '观察'],
  eventsText: ['Each change is an event: see them arrive.', '每次更改都是事件：实时查看。'],
  users: [
    {one: '{n} user', other: '{n} users'},
    {one: '{n} 个用户', other: '{n} 个用户'},
  ],
  trees: [
    {one: '{n} tree', other: '{n} trees'},
    {one: '{n} 棵树', other: '{n} 棵树'},
  ],
  applications: [
    {one: '{n} application', other: '{n} applications'},
    {one: '{n} 个应用', other: '{n} 个应用'},
  ],
  later: ['Not in this version of the console', '此版本的控制台尚未包含'],
});
