// The platform's scopes in words.
import {texts} from '../../lib/i18n';

const words = texts({
  'users:read': ['See users, their avatars and stored credentials; export them', '查看用户、头像和已存凭据；导出用户'],
  'users:write': ['Create, change, lock and delete users; import them', '创建、更改、锁定和删除用户；导入用户'],
  'users:secrets': ['Set and reset passwords', '设置和重置密码'],
  'users:verify': ['Check passwords for a login', '登录时校验密码'],
  'applications:read': ['See applications, their protocols and sub-accounts', '查看应用及其协议和子账户'],
  'applications:write': ['Create, change, disable and delete applications', '创建、更改、停用和删除应用'],
  'applications:secrets': ['Make new secrets of applications', '生成应用的新密钥'],
  'permissions:read': ['See resources, grants and rules', '查看资源、授权和规则'],
  'permissions:write': ['Grant and revoke; change resources and rules', '授权和撤销；更改资源和规则'],
  'permissions:check': ['Ask who may do what', '查询谁可以做什么'],
  'organization:read': ['See trees, nodes and members', '查看组织树、节点和成员'],
  'organization:write': ['Change and move nodes; add and remove members', '更改和移动节点；添加和移除成员'],
  'identity-sources:read': ['See connections, methods and templates', '查看连接、方式和模板'],
  'identity-sources:write': [
    'Change connections, methods and templates; test connections',
    '更改连接、方式和模板；测试连接',
  ],
  'events:read': ['See events, the audit log and subscriptions', '查看事件、审计日志和订阅'],
  'events:write': ['Change subscriptions; deliver events again', '更改订阅；重新投递事件'],
  'kv:read': ['See buckets and objects', '查看存储桶和对象'],
  'kv:write': ['Change buckets and objects', '更改存储桶和对象'],
  'jobs:read': ['See jobs, their runs and logs', '查看任务及其运行和日志'],
  'jobs:write': ['Change, trigger and suspend jobs; report results', '更改、触发和暂停任务；报告结果'],
  'functions:read': ['See functions and components', '查看函数和组件'],
  'functions:write': ['Change and call functions; change and publish components', '更改和调用函数；更改和发布组件'],
  'platform:admin': [
    'Everything, in every tenant; signing keys, tenants, dead letters',
    '所有租户中的一切；签名密钥、租户、死信',
  ],
});

export const knownScopes = [
  'users:read',
  'users:write',
  'users:secrets',
  'users:verify',
  'applications:read',
  'applications:write',
  'applications:secrets',
  'permissions:read',
  'permissions:write',
  'permissions:check',
  'organization:read',
  'organization:write',
  'identity-sources:read',
  'identity-sources:write',
  'events:read',
  'events:write',
  'kv:read',
  'kv:write',
  'jobs:read',
  'jobs:write',
  'functions:read',
  'functions:write',
  'platform:admin',
] as const;

type Known = (typeof knownScopes)[number];

/** scopeInWords is what a scope allows; '' for one that this version does not know. */
export function scopeInWords(scope: string): string {
  return knownScopes.includes(scope as Known) ? words(scope as Known) : '';
}
