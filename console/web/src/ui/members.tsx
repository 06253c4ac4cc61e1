// What the members of records, and their values, are called in differences: as forms and lists call them.
import {dateTime} from '../lib/format';
import {texts} from '../lib/i18n';
import {own} from '../lib/own';
import {Actor, RecordName} from './origin';
import {providerName} from './providers';
import {t as ui} from './text';
import {words} from './words';

const names = texts({
  account: ['Account', '账户'],
  acs_url: ['Assertion consumer service', '断言消费服务（ACS）'],
  actions: ['Actions', '操作'],
  affect: ['Effect', '效果'],
  allowed_hosts: ['Hosts that fetch may reach', 'fetch 可访问的主机'],
  app_id: ['Application', '应用'],
  application_id: ['Application', '应用'],
  attempts: ['Attempts', '尝试次数'],
  auth_unit_id: ['Whose rules', '谁的规则'],
  browser: ['Browser', '浏览器'],
  bucket: ['Bucket', '存储桶'],
  category: ['Category', '类别'],
  child_count: ['Nodes below', '下级节点数'],
  client_id: ['Client id', '客户端标识'],
  code: words.code,
  component_version: ['Published version', '已发布版本'],
  concurrency: ['While a run is unfinished', '上一次运行未结束时'],
  condition: ['Condition', '条件'],
  config: ['Settings', '设置'],
  config_fields: ['Settings', '设置'],
  connection_ids: ['Connections', '连接'],
  content_type: ['Content type', '内容类型'],
  created_by: ['Created by', '创建者'],
  delivery: ['Delivery', '投递方式'],
  depth: ['Depth', '层级'],
  descr: words.description,
  description: words.description,
  developer_id: ['Created by', '创建者'],
  display_name: ['Display name', '显示名'],
  'connection.display_name': ['Name of the connection', '连接名称'],
  domain_sn: ['Domain', '域'],
  dynamic: ['By a condition', '按条件'],
  email: ['E-mail', '邮箱'],
  email_verified: ['E-mail confirmed', '邮箱已验证'],
  employee_number: ['Employee number', '工号'],
  entry: ['Entry', '入口'],
  env: ['Variables', '变量'],
  error: ['Fault', '错误'],
  event_types: ['Event types', '事件类型'],
  factor: ['Factor', '因素'],
  filter: ['Filter', '筛选条件'],
  first_contacts: ['Had first', '首先拥有'],
  flow_id: ['Sign-in page', '登录页面'],
  free_ext_props: words.freeProps,
  fresh: ['With a new sign-in', '重新登录'],
  function_id: ['Function', '函数'],
  gender: ['Gender', '性别'],
  history: ['History', '历史'],
  id: words.id,
  identity_name: ['Who', '谁'],
  identity_type: ['Kind', '类型'],
  is_default: ['Default', '默认'],
  is_dynamic: ['By a condition', '按条件'],
  is_pointer: ['Points to another node', '指向其他节点'],
  is_primary: ['Primary', '主要归属'],
  job_id: ['Job', '任务'],
  jwks: ['Public keys (JWKS)', '公钥（JWKS）'],
  jwks_uri: ['Address of its keys', '公钥地址'],
  kept_versions: ['Former states', '历史版本'],
  key: ['Key', '键'],
  limits: ['Limits of a call', '单次调用的限制'],
  locale: ['Language', '语言'],
  lock_reason: words.reason,
  locked: ['Locked', '已锁定'],
  locked_until: ['Locked until', '锁定至'],
  login_url: ['Sign-in address', '登录地址'],
  logout_url: ['Sign-out address', '退出地址'],
  max_object_bytes: ['Largest value, bytes', '值的上限（字节）'],
  member_count: ['Members', '成员数'],
  mfa_enabled: ['Second factor', '第二因素'],
  misfire: ['Times that were missed', '错过的时间'],
  mobile: ['Mobile', '手机'],
  mobile_verified: ['Mobile confirmed', '手机已验证'],
  multi_account_enabled: ['Several sub-accounts', '多个子账户'],
  name: words.name,
  node_id: ['Node', '节点'],
  node_name: ['Name of the node', '节点名称'],
  node_path: ['Path', '路径'],
  number: ['Number', '编号'],
  object_code: ['Tree', '组织树'],
  parent_id: ['Parent', '上级节点'],
  path: ['Path', '路径'],
  pointer_id: ['Points to', '指向'],
  policy: ['Policy', '策略'],
  protocol: ['Protocol', '协议'],
  provider_code: ['Provider', '提供方'],
  provider_id: ['Number of the provider', '提供方编号'],
  real_name: ['Real name', '真实姓名'],
  real_name_status: ['Check of the real name', '实名核验'],
  redirect_url: ['Redirect addresses', '回调地址'],
  resource_id: ['Resource', '资源'],
  resource_match_all_actions: ['All actions', '全部操作'],
  resource_match_all_resources: ['All resources', '全部资源'],
  resource_set_id: ['Resource set', '资源集'],
  retry: ['Retries after a failure', '失败后重试次数'],
  revision: ['Revision', '修订'],
  revisions: ['Revisions', '历次修订'],
  role: ['Role', '角色'],
  rule_count: ['Rules', '规则数'],
  schedule: ['Schedule', '计划'],
  schema: ['Schema', '结构'],
  scopes: ['Scopes', '权限范围'],
  seq: ['Order', '排序'],
  shared_contacts: ['Shared contacts', '共享的联系方式'],
  session_id: ['Session', '会话'],
  size: ['Size', '大小'],
  source: ['Source', '源代码'],
  source_node_id: ['From node', '起始节点'],
  sso_enabled: ['Single sign-on', '单点登录'],
  state: words.state,
  status: words.status,
  'job.status': words.state,
  steps: ['Steps', '步骤'],
  sub_account_policy: ['Sub-account in sign-on', '登录返回子账户'],
  subject: ['Subject', '主题'],
  successor_id: ['Successor', '接任者'],
  tag: ['Tag', '标签'],
  target: ['Target', '目标'],
  target_node_id: ['To node', '目标节点'],
  tenant_id: words.tenant,
  time_created: words.created,
  time_expires: ['Expires', '过期'],
  time_finished: ['Finished', '完成时间'],
  time_last_login: ['Last login', '上次登录'],
  time_modified: words.modified,
  time_published: ['Published', '发布时间'],
  time_resigned: ['Resigned', '离职'],
  time_started: ['Started', '开始时间'],
  timeout_seconds: ['Time limit of an attempt (s)', '每次尝试的时限（秒）'],
  title: ['Title', '职务'],
  trigger: ['Started by', '触发方式'],
  triggers: ['Triggers', '触发器'],
  type: words.kind,
  'component.type': ['Type', '类型'],
  uri: ['Path', '路径'],
  user_id: words.user,
  username: ['Username', '用户名'],
  valid_from: ['Valid from', '生效时间'],
  valid_to: ['Valid until', '失效时间'],
  value: ['Value', '值'],
  version: words.version,
  zoneinfo: ['Time zone', '时区'],
});

const values = texts({
  'auth_rule.type.api': ['API', 'API'],
  'auth_rule.type.app': ['Use of the application', '使用应用'],
  'auth_rule.type.data': ['Data', '数据'],
  'auth_rule.type.res': ['Several, by pattern', '多个（按模式）'],
  'auth_rule.type.res_set': ['Resource set', '资源集'],
  'auth_rule.type.ui': ['User interface', '界面'],
  'affect.affect': words.allows,
  'affect.deny': words.denies,
  'category.1': words.category1,
  'category.2': words.category2,
  'category.3': words.category3,
  'category.4': words.category4,
  'event_subscription.status.1': words.active,
  'event_subscription.status.0': words.paused,
  'factor.1': ['First', '第一'],
  'factor.2': ['Second', '第二'],
  off: words.off,
  on: words.on,
  'membership.role.leader': words.leader,
  'membership.role.member': ['Member', '成员'],
  'real_name_status.none': ['None', '无'],
  'real_name_status.pending': ['Waiting', '等待中'],
  'real_name_status.rejected': ['Rejected', '未通过'],
  'real_name_status.verified': ['Verified', '已通过'],
  'status.1': words.enabled,
  'status.0': words.disabled,
  'user.status.1': words.active,
  'user.status.0': words.disabled,
  'user.status.resigned': words.resigned,
});

const onOff = ['sso_enabled', 'mfa_enabled', 'multi_account_enabled', 'sub_account_policy'];
const yesNo = /^(is|resource_match_all)_/;

/** valueWord is what people call a value of a member; undefined of one without a word. */
function valueWord(entity: string, member: string, v: unknown): string | undefined {
  if (typeof v === 'object') return undefined; // also a number that is kept as it is written
  if (typeof v === 'boolean') return ui(v ? 'yes' : 'no');
  if (typeof v === 'string' && /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(v)) return dateTime(v);
  if (v === '1' || v === '0') {
    if (onOff.includes(member)) return values(v === '1' ? 'on' : 'off');
    if (yesNo.test(member)) return ui(v === '1' ? 'yes' : 'no');
  }
  const own = [`${entity}.${member}.${String(v)}`, `${member}.${String(v)}`];
  const key = own.find((k) => values.word('', k) !== k);
  return key && values.word('', key);
}

/** valueText is a value of a member as people read it: by its word, as it is, or as JSON. */
export function valueText(entity: string, member: string, v: unknown): string {
  return valueWord(entity, member, v) ?? (typeof v === 'string' ? v : (JSON.stringify(v) ?? ''));
}

/** refers are the members that hold the id of a record, by its kind. */
const refers: Record<string, string> = {
  app_id: 'application',
  application_id: 'application',
  auth_unit_id: 'auth_unit',
  connection_ids: 'connection',
  function_id: 'function',
  job_id: 'job',
  node_id: 'node',
  'node.parent_id': 'node',
  pointer_id: 'node',
  resource_id: 'resource',
  resource_set_id: 'resource_set',
  source_node_id: 'node',
  successor_id: 'user',
  target_node_id: 'node',
  user_id: 'user',
};

/** Value is a value of a member as people read it; the id of a record is its name, which leads to the record. */
export function Value({entity, member, v}: {entity: string; member: string; v: unknown}) {
  const kind = own(refers, `${entity}.${member}`) ?? own(refers, member);
  if (kind && typeof v === 'string' && v) return <RecordName kind={kind} id={v} />;
  if (['created_by', 'developer_id'].includes(member) && typeof v === 'string') return <Actor actor={v} />;
  if (member === 'provider_code') return <>{providerName({provider_code: String(v)})}</>;
  return <>{valueText(entity, member, v)}</>;
}

/** memberWord is what people call a member of a kind of record; of one without a word, its name in the API. */
export function memberWord(entity: string, member: string): string {
  const own = names.word('', `${entity}.${member}`);
  return own === `${entity}.${member}` ? names.word('', member) : own;
}

/** Member is the head of a line of differences; the API's name is its title. */
export function Member({entity, member}: {entity: string; member: string}) {
  const word = memberWord(entity, member);
  return (
    <th scope="row" title={member} class={word === member ? 'mono' : undefined}>
      {word}
    </th>
  );
}
