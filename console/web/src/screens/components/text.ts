import {texts} from '../../lib/i18n';
import {words} from '../../ui/words';

export const t = texts({
  ...words,
  title: ['Components', '组件'],
  search: ['Name or code…', '名称或编码…'],
  create: ['New component', '新建组件'],
  type: ['Type', '类型'],
  typeHelp: [
    'What it is a piece of: login_page, menu… Lower-case letters, digits, _ or -',
    '它属于什么：login_page、menu…… 小写字母、数字、_ 或 -',
  ],
  published: ['Published', '发布'],
  notPublished: ['Not yet', '尚未'],
  versionN: ['Version {n}', '版本 {n}'],
  publishedAgo: ['Version {n}, {time}', '版本 {n}，{time}'],
  emptyTitle: ['No components yet', '还没有组件'],
  emptyText: [
    'Reusable pieces of login pages, consoles and flows appear here, each with a schema for its settings.',
    '登录页、控制台和流程中可重复使用的部分会显示在这里，每个都有其设置的结构。',
  ],
  general: ['General', '基本信息'],
  config: ['Settings', '设置'],
  schema: ['Schema', '结构'],
  schemaHelp: [
    'A JSON Schema (2020-12) for the settings, up to 16 KiB, without references. Its properties make the form.',
    '设置的 JSON Schema（2020-12），最大 16 KiB，不含引用。其属性构成表单。',
  ],
  form: ['Form', '表单'],
  showAs: ['Show as', '显示为'],
  noForm: ['The schema has no properties: the settings are edited as JSON.', '结构没有属性：设置以 JSON 编辑。'],
  publish: ['Publish…', '发布…'],
  publishDo: ['Publish', '发布'],
  publishTitle: ['Publish {name} as version {n}?', '将 {name} 发布为版本 {n}？'],
  publishText: [
    'The settings, the schema, name, code and type as they are saved now become a version that never changes. The last 100 are kept.',
    '当前已保存的设置、结构、名称、编码和类型会成为一个不再改变的版本。保留最近 100 个版本。',
  ],
  publishSame: ['Nothing has changed since version {n}.', '自版本 {n} 以来没有更改。'],
  publishUnsaved: [
    'Save or discard your changes first: what is saved is published.',
    '请先保存或放弃更改：发布的是已保存的内容。',
  ],
  publishedDone: ['{name} is published as version {n}', '{name} 已发布为版本 {n}'],
  deleteText: [
    {
      one: '{n} published version goes along. This cannot be undone.',
      other: '{n} published versions go along. This cannot be undone.',
    },
    {one: '{n} 个已发布版本会一并删除。此操作无法撤销。', other: '{n} 个已发布版本会一并删除。此操作无法撤销。'},
  ],
  versions: ['Versions', '版本'],
  noVersions: ['Not published yet', '尚未发布'],
  noVersionsText: [
    'Publishing keeps the settings and the schema as they are, as a version with a number.',
    '发布会将当前的设置和结构保存为一个带编号的版本。',
  ],
  draft: ['Draft', '草稿'],
  draftText: ['As it is saved now', '当前已保存的内容'],
  hide: ['Hide', '收起'],
  since: ['From version {n} to what it is now', '从版本 {n} 到当前'],
  bringBack: ['Bring this version back', '恢复此版本'],
  broughtBack: ['{name} is as in version {n}', '{name} 已恢复为版本 {n}'],
  more: ['Load more', '加载更多'],
});
