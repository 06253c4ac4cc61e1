// What the palette does beside opening screens: a line for each action that a screen begins with, and for each part of
// a screen.
import {lang} from '../lib/i18n';
import {href} from '../lib/router';
import {may} from '../lib/session';
import {screens} from '../lib/registry';
import type {IconName} from '../ui/icon';

export interface Command {
  icon: IconName;
  label: string;
  href: string;
}

type Query = Record<string, string | number>;

interface Line {
  screen: string;
  text: [en: string, zh: string];
  rest?: string[];
  query?: Query;
  scope?: string; // beside the screen's own
  icon?: IconName; // absent: it creates something if there is a query, and goes somewhere else
}

const lines: Line[] = [
  {screen: 'users', text: ['New user', '新建用户'], query: {create: 1}, scope: 'users:write'},
  {screen: 'users', text: ['Import users', '导入用户'], query: {import: 1}, scope: 'users:write', icon: 'upload'},
  {screen: 'users', text: ['Export users', '导出用户'], query: {export: 1}, icon: 'download'},
  {screen: 'tree', text: ['New tree', '新建组织树'], query: {new: 1}, scope: 'organization:write'},
  {screen: 'apps', text: ['New application', '新建应用'], query: {create: 'gallery'}, scope: 'applications:write'},
  {screen: 'grants', text: ['New rule', '新建规则'], query: {grant: 1}, scope: 'permissions:write'},
  {screen: 'grants', text: ['Who has rules', '谁有规则'], rest: ['units']},
  {screen: 'grants', text: ['New group', '新建组'], rest: ['units'], query: {create: 1}, scope: 'permissions:write'},
  {screen: 'grants', text: ['Resources', '资源'], rest: ['resources']},
  {
    screen: 'grants',
    text: ['New resource', '新建资源'],
    rest: ['resources'],
    query: {create: 1},
    scope: 'permissions:write',
  },
  {screen: 'grants', text: ['Resource sets', '资源集'], rest: ['sets']},
  {
    screen: 'grants',
    text: ['New resource set', '新建资源集'],
    rest: ['sets'],
    query: {create: 1},
    scope: 'permissions:write',
  },
  {screen: 'subscriptions', text: ['New subscription', '新建订阅'], query: {create: 1}, scope: 'events:write'},
  {screen: 'jobs', text: ['New job', '新建任务'], query: {create: 1}, scope: 'jobs:write'},
  {screen: 'functions', text: ['New function', '新建函数'], query: {create: 1}, scope: 'functions:write'},
  {screen: 'kv', text: ['New bucket', '新建存储桶'], query: {create: 1}, scope: 'kv:write'},
  {screen: 'components', text: ['New component', '新建组件'], query: {create: 1}, scope: 'functions:write'},
  {
    screen: 'connections',
    text: ['New connection', '新建连接'],
    query: {create: 'choose'},
    scope: 'identity-sources:write',
  },
  {screen: 'connections', text: ['Methods', '认证方式'], rest: ['methods']},
  {
    screen: 'connections',
    text: ['New method', '新建认证方式'],
    rest: ['methods'],
    query: {create: 1},
    scope: 'identity-sources:write',
  },
  {screen: 'connections', text: ['Login templates', '登录模板'], rest: ['templates']},
  {
    screen: 'connections',
    text: ['New login template', '新建登录模板'],
    rest: ['templates'],
    query: {create: 1},
    scope: 'identity-sources:write',
  },
  {screen: 'settings', text: ['Language, theme and keys', '语言、主题和按键'], rest: ['browser']},
  {screen: 'settings', text: ['Platform: version and addresses', '平台：版本和地址'], rest: ['platform']},
  {screen: 'settings', text: ['Settings of users', '用户设置'], rest: ['users'], scope: 'users:read'},
  {screen: 'settings', text: ['Signing keys', '签名密钥'], rest: ['keys'], scope: 'platform:admin'},
  {screen: 'settings', text: ['Tenants', '租户'], rest: ['tenants'], scope: 'platform:admin'},
  {screen: 'settings', text: ['Dead letters', '死信'], rest: ['letters'], scope: 'platform:admin'},
];

/** commands are those that this session may use. */
export function commands(): Command[] {
  return lines.flatMap(({screen: name, text, rest, query, scope, icon}) => {
    const screen = screens.find((s) => s.name === name);
    if (!screen || [screen.scope, scope].some((s) => s !== undefined && !may(s))) return [];
    const label = text[lang.value === 'zh' ? 1 : 0];
    return [{icon: icon ?? (query ? 'plus' : screen.icon), label, href: href(name, rest, query)}];
  });
}
