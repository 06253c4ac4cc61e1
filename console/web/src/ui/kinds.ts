// What entries of the audit log say, in words: the kinds of records, and what happened to them.
import {texts} from '../lib/i18n';

const kinds = texts({
  access: ['Access', '访问'],
  account: ['Sub-account', '子账户'],
  application: ['Application', '应用'],
  association: ['Association', '节点关联'],
  auth_method: ['Method', '认证方式'],
  auth_rule: ['Rule', '规则'],
  auth_template: ['Login template', '登录模板'],
  auth_unit: ['Rule holder', '规则拥有者'],
  auth_unit_member: ['Group member', '组成员'],
  client: ['Client', '客户端'],
  component: ['Component', '组件'],
  connection: ['Connection', '连接'],
  connection_domain: ['Mail domain', '邮箱域名'],
  consent: ['Consent', '授权同意'],
  grant: ['Lasting access', '持续访问授权'],
  core_object: ['Tree', '组织树'],
  credential: ['Linked sign-in', '关联登录'],
  dead_letter: ['Dead letter', '死信'],
  event_subscription: ['Subscription', '订阅'],
  function: ['Function', '函数'],
  function_invocation: ['Call', '函数调用'],
  job: ['Job', '任务'],
  kv_bucket: ['Bucket', '存储桶'],
  kv_object: ['Object', '对象'],
  membership: ['Membership', '成员关系'],
  message: ['Mail', '邮件'],
  factor: ['Second factor', '第二因素'],
  invitation: ['Invitation', '邀请'],
  node: ['Node', '节点'],
  protocol: ['Protocol', '协议'],
  resource: ['Resource', '资源'],
  resource_set: ['Resource set', '资源集'],
  resource_set_member: ['Resource in a set', '资源集成员'],
  scim_connection: ['SCIM connection', 'SCIM 连接'],
  scim_link: ['SCIM link', 'SCIM 关联'],
  saml_key: ['SAML key', 'SAML 密钥'],
  session: ['Session', '会话'],
  sign_in: ['Sign-in', '登录'],
  sign_in_settings: ['Sign-in settings', '登录设置'],
  sub_job: ['Run', '任务运行'],
  token: ['Token', '令牌'],
  token_family: ['Refresh token', '刷新令牌'],
  user: ['User', '用户'],
  user_settings: ['User settings', '用户设置'],
});

const actions = texts({
  accepted: ['accepted', '已接受'],
  activated: ['activated', '已激活'],
  adopted: ['adopted', '已接管'],
  approved: ['approved', '已批准'],
  authentication_failed: ['authentication failed', '认证失败'],
  checked: ['checked', '已检查'],
  completed: ['completed', '已完成'],
  config_updated: ['configured', '已更改配置'],
  created: ['created', '已创建'],
  deleted: ['deleted', '已删除'],
  disabled: ['disabled', '已停用'],
  enabled: ['enabled', '已启用'],
  ended: ['ended', '已结束'],
  expired: ['expired', '已过期'],
  failed: ['failed', '失败'],
  failing: ['failing', '持续失败'],
  finished: ['finished', '已完结'],
  given: ['given', '已授予'],
  gone: ['gone at the source', '已从来源消失'],
  held: ['held', '已暂缓'],
  idp_attached: ['source attached', '已关联认证源'],
  idp_detached: ['source detached', '已取消关联认证源'],
  locked: ['locked', '已锁定'],
  login_failed: ['sign-in failed', '登录失败'],
  login_verified: ['sign-in verified', '登录验证通过'],
  mfa_disabled: ['second factor disabled', '已停用第二因素'],
  mfa_enabled: ['second factor enabled', '已启用第二因素'],
  moved: ['moved', '已移动'],
  organization_changed: ['organization changed', '已变更组织'],
  password_changed: ['password changed', '已更改密码'],
  paused: ['paused', '已暂停'],
  published: ['published', '已发布'],
  redelivered: ['redelivered', '已重新投递'],
  refused: ['refused', '被拒绝'],
  reinstated: ['reinstated', '已复职'],
  rejected: ['rejected', '已驳回'],
  replayed: ['replayed', '已重放'],
  resent: ['sent again', '已重新发送'],
  used: ['used', '已使用'],
  reset: ['reset', '已重置'],
  resigned: ['resigned', '已离职'],
  resumed: ['resumed', '已恢复'],
  reused: ['reused', '被重复使用'],
  revived: ['revived', '已重新关联'],
  secret_refreshed: ['secret rotated', '已轮换密钥'],
  secret_reset: ['secret reset', '已重置密钥'],
  sso_disabled: ['single sign-on disabled', '已停用单点登录'],
  sso_enabled: ['single sign-on enabled', '已启用单点登录'],
  stepped_up: ['stepped up', '已提升认证级别'],
  suspended: ['suspended', '已暂停触发'],
  tested: ['tested', '已测试'],
  unlocked: ['unlocked', '已解锁'],
  unverified: ['no longer verified', '不再有效'],
  updated: ['updated', '已更新'],
  verified: ['verified', '已验证'],
  withdrawn: ['withdrawn', '已撤回'],
});

const t = texts({
  what: ['{kind} {action}', '{kind}{action}'],
  denied: ['Attempt: {operation}', '尝试：{operation}'],
  everything: ['Everything', '全部'],
  allOf: ['{kind}: all', '{kind}：全部'],
  ofAny: ['Anything {action}', '任何记录{action}'],
});

export const kindWord = (entity: string) => kinds.word('', entity);
export const actionWord = (action: string) => actions.word('', action);

/** whatWords says what happened, such as "User updated"; of what nobody could do, it names the operation. */
export function whatWords({entity, action}: {entity: string; action: string}): string {
  if (entity === 'access') return t('denied', {operation: action});
  const kind = kindWord(entity),
    said = actionWord(action);
  return kind === entity || said === action ? `${kind} ${said}` : t('what', {kind, action: said});
}

/** typeWords says which events a pattern of types is about: user.created, user.*, *.deleted. */
export function typeWords(pattern: string): string {
  const [entity = '', action = ''] = pattern.replace(/^idp\./, '').split('.');
  if (pattern === '*') return t('everything');
  if (!action) return pattern;
  if (action === '*') return t('allOf', {kind: kindWord(entity)});
  return entity === '*' ? t('ofAny', {action: actionWord(action)}) : whatWords({entity, action});
}

/** reasonOf is why an attempt was denied, in the words of the service; '' where the action says no less. */
export function reasonOf({action, reason}: {action: string; reason: string}): string {
  return reason === action.replaceAll('_', ' ') ? '' : reason;
}
